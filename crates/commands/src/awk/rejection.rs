//! Reasons why a program is not run in chunks, as messages for the user.

/// The reason why a program cannot run in chunks, such as a construct that depends on more than the
/// current record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The program cannot be parsed. The string is the reason, such as an unknown or ambiguous
    /// construct.
    #[error("cannot be parsed: {0}")]
    Unread(String),
    /// A variable, by name, that counts records.
    #[error("`{0}` counts lines")]
    CountsRecords(String),
    /// A variable or an array, by name, that may be read before it is assigned for the same record.
    #[error("`{0}` keeps its value from line to line")]
    KeepsValue(String),
    /// A variable, by name, that describes the whole input or the command's arguments, or that is
    /// special in gawk; also `NF`, if the command's arguments assign it.
    #[error("`{0}` describes more than the line")]
    DescribesInput(String),
    /// A rule assigns the named variable, which affects later records.
    #[error("`{0}` is assigned and affects later lines")]
    AffectsLaterRecords(String),
    /// `RS` is assigned, so records may not be lines.
    #[error("`RS` is assigned, so records may not be lines")]
    Separator,
    /// The program has an END action.
    #[error("it has an END action")]
    HasEnd,
    /// The program has no END action.
    #[error("it has no END action")]
    HasNoEnd,
    /// A BEGIN action contains the given statement, which has effects other than assignments.
    #[error("{0} in the BEGIN action has to run exactly once")]
    HasBeginEffect(&'static str),
    /// A range pattern, as written.
    #[error("`{0}` is a range of lines")]
    Range(String),
    /// The program uses `getline`.
    #[error("`getline` reads lines itself")]
    UsesGetline,
    /// A rule uses `exit`.
    #[error("`exit` ends the program early")]
    EndsEarly,
    /// A built-in function, by name, whose value differs from run to run.
    #[error("`{0}()` differs from run to run")]
    VariesByRun(String),
    /// A built-in function, by name, that affects the world outside the program.
    #[error("`{0}()` has side effects")]
    ReachesOut(String),
    /// Output to a file or a command.
    #[error("it prints to files or commands")]
    Redirects,
    /// A loop over the named array, whose unspecified order may affect the output.
    #[error("`for (… in {0})` iterates in an unspecified order")]
    UnspecifiedOrder(String),
    /// A user-defined function, by name, that may do more than compute a value from its parameters
    /// and constants.
    #[error("function `{0}` does more than compute a value")]
    Function(String),
    /// A rule prints, although there is an END action.
    #[error("it prints before its END action")]
    Prints,
    /// The END action uses the last record, or a variable whose value a rule assigned for that
    /// record.
    #[error("`{0}` in the END action depends on the last line")]
    LastLine(String),
}

impl Rejection {
    /// Creates a [`Rejection::Unread`].
    pub(super) fn unread(reason: impl Into<String>) -> Self {
        Self::Unread(reason.into())
    }
}
