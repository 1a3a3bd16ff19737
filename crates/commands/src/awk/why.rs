//! Why a program is not run in chunks, for the user.

/// The construct that depends on more than the current record, or was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The program is not understood with certainty.
    #[error("cannot be read: {0}")]
    Unread(String),
    /// A variable that counts records.
    #[error("`{0}` counts lines")]
    Counts(String),
    /// A variable or an array that may be read before it is assigned for the same record.
    #[error("`{0}` keeps its value from line to line")]
    Keeps(String),
    /// A variable that describes the whole input or the command's arguments.
    #[error("`{0}` is not about the line")]
    NotOfTheLine(String),
    /// A rule assigns a variable that affects later records.
    #[error("`{0}` is assigned and acts on the lines that follow")]
    ActsLater(String),
    /// Records may not be lines.
    #[error("`RS` is assigned: its records may not be lines")]
    Separator,
    /// There is an END action.
    #[error("it has an END part")]
    HasEnd,
    /// There is no END action.
    #[error("it has no END part")]
    HasNoEnd,
    /// A BEGIN action has effects other than assignments.
    #[error("{0} in the BEGIN part is done once")]
    Begins(&'static str),
    /// A range pattern.
    #[error("`{0}` is a range of lines")]
    Range(String),
    /// `getline`.
    #[error("`getline` takes lines itself")]
    TakesLines,
    /// `exit`.
    #[error("`exit` ends it early")]
    EndsEarly,
    /// A function whose value differs from run to run.
    #[error("`{0}()` differs from run to run")]
    Differs(String),
    /// A function that affects or observes the world outside the program.
    #[error("`{0}()` reaches beyond the program")]
    ReachesOut(String),
    /// Output to a file or a command.
    #[error("it prints to files or commands")]
    Redirects,
    /// A loop over an array, whose order is unspecified.
    #[error("`for (… in {0})` goes through an array in an order of its own")]
    Order(String),
    /// A user-defined function with side effects.
    #[error("function `{0}` does more than to compute a value")]
    Function(String),
    /// A rule prints, although there is an END action.
    #[error("it prints before its END part")]
    Prints,
    /// The END action uses the last record, or a variable that it assigned.
    #[error("`{0}` in the END part is what the last line left")]
    LastLine(String),
}

impl Why {
    /// Creates [`Why::Unread`].
    pub(super) fn unread(reason: impl Into<String>) -> Self {
        Self::Unread(reason.into())
    }
}
