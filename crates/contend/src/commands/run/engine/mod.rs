//! What runs pipelines and scripts.

mod carry;
mod check;
pub(super) mod direct;
mod limits;
mod outcome;
mod peek;
mod prepared;
mod records;
pub(super) mod shell;
mod stage;
mod watch;

pub use stage::from_command_line as stage_of_shell_text;
