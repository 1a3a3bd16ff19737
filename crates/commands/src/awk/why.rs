//! Why a program was not taken, for the user.

/// What of a program looks beyond the line, or was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It was not understood with certainty.
    #[error("cannot be read: {0}")]
    Unread(String),
    /// A variable that counts records.
    #[error("`{0}` counts lines")]
    Counts(String),
    /// A variable or an array that is read before it is assigned for the same record.
    #[error("`{0}` keeps its value from line to line")]
    Keeps(String),
    /// A variable that has something to do with the whole input or the command's arguments.
    #[error("`{0}` is not about the line")]
    NotOfTheLine(String),
    /// A variable that takes effect later is assigned for a record.
    #[error("`{0}` is assigned and acts on the lines that follow")]
    ActsLater(String),
    /// Records are not lines.
    #[error("`RS` is assigned: its records may not be lines")]
    Separator,
    /// There is an END part.
    #[error("it has an END part")]
    HasEnd,
    /// There is no END part.
    #[error("it has no END part")]
    HasNoEnd,
    /// A BEGIN part does more than to assign.
    #[error("{0} in the BEGIN part is done once")]
    Begins(&'static str),
    /// A range of records.
    #[error("`{0}` is a range of lines")]
    Range(String),
    /// `getline`.
    #[error("`getline` takes lines itself")]
    TakesLines,
    /// `exit`.
    #[error("`exit` ends it early")]
    EndsEarly,
    /// A function that gives something else in each run.
    #[error("`{0}()` differs from run to run")]
    Differs(String),
    /// A function that reaches beyond the program.
    #[error("`{0}()` reaches beyond the program")]
    ReachesOut(String),
    /// Output to a file or to a command.
    #[error("it prints to files or commands")]
    Redirects,
    /// An array is gone through.
    #[error("`for (… in {0})` goes through an array in an order of its own")]
    Order(String),
    /// A function of the user's does more than to compute.
    #[error("function `{0}` does more than to compute a value")]
    Function(String),
    /// Something is printed before the END part.
    #[error("it prints before its END part")]
    Prints,
    /// The END part uses the last record or what it left.
    #[error("`{0}` in the END part is what the last line left")]
    LastLine(String),
}

impl Why {
    /// It was not understood.
    pub(super) fn unread(reason: impl Into<String>) -> Self {
        Self::Unread(reason.into())
    }
}
