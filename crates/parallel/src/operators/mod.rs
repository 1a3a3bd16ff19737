//! Commands that contend runs in its own process, without starting their programs. Each has a
//! module, and a row in the invocation of `operators!` below.
//!
//! An operator is considered only for a classified command. The class proves that the command's
//! program is the one that the operator replaces. The guard of the class holds for the operator's
//! input.

mod count;
mod translate;

use contend_commands::Simple;
use contend_shell::environment::Environment;
use serde::{Deserialize, Serialize};

/// The specification of an operator, which is part of a plan.
trait Definition: Sized {
    /// Commands for which tests compare the operator with the program.
    #[cfg(test)]
    const EXAMPLES: &'static [&'static str];

    /// Parses a command. Returns `None` unless the operator can replace the command for every input
    /// that the command's guard accepts. The operator must write the same bytes, and must neither
    /// fail nor write to standard error where the command does not.
    fn read(simple: &Simple, environment: &Environment) -> Option<Self>;

    /// Starts the operator.
    fn start(&self) -> Box<dyn Operation>;
}

/// A running operator. Its input arrives in blocks of any size.
pub(crate) trait Operation: Send {
    /// Processes a block of the input. Appends to `output` at most the bytes that the command could
    /// have written by now.
    fn push(&mut self, input: &[u8], output: &mut Vec<u8>);

    /// Ends the input. Appends the rest of the output to `output`, and returns the exit code. Must
    /// be called once, after all input.
    fn finish(&mut self, output: &mut Vec<u8>) -> i32;
}

macro_rules! operators {
    ($($(#[$comment:meta])* $name:ident($definition:ty),)*) => {
        /// A command that contend can run in its own process.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Operator {
            $($(#[$comment])* $name($definition),)*
        }

        impl Operator {
            /// Returns the operator for a command, or `None` if there is none. The command must
            /// have a class that is neither opaque nor declared by the user.
            pub(crate) fn read(simple: &Simple, environment: &Environment) -> Option<Self> {
                None$(.or_else(|| <$definition>::read(simple, environment).map(Self::$name)))*
            }

            /// Starts the operator.
            pub(crate) fn start(&self) -> Box<dyn Operation> {
                match self {
                    $(Self::$name(definition) => definition.start(),)*
                }
            }
        }

        #[cfg(test)]
        const EXAMPLES: &[(fn(&Operator) -> bool, &[&str])] = &[
            $((|it| matches!(it, Operator::$name(_)), <$definition>::EXAMPLES),)*
        ];
    };
}

operators! {
    /// An operator that counts lines and bytes, as `wc` does.
    Count(count::Count),
    /// An operator that translates, deletes and squeezes bytes, as `tr` does.
    Translate(translate::Translate),
}

#[cfg(test)]
mod tests;
