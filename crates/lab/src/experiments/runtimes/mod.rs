//! Family `runtime`: what a unit of concurrency costs in every runtime.
//!
//! ```text
//!  process of the case                      probe: a process of its own
//!  +---------------------------+  commands  +------------------------------------------+
//!  | probe.rs: park N, wake,   |--- stdin ->| contend itself (builtin/), or a program  |
//!  |   rest, trips M           |<- stdout --| in the runtime's language (probes/),     |
//!  | /proc: PSS, page tables   |   answers  | built and cached by program.rs           |
//!  +---------------------------+            +------------------------------------------+
//! ```
//!
//! `memory.rs` reads the probe's memory before it creates n units, while all of them wait, and
//! after they have ended. `round_trip.rs` makes the probe time messages to one unit and back.
//! `document.rs` repeats an evaluation of 2018 in Elixir. `table.rs` has a row for each kind of
//! unit, `requirements.rs` checks what some of them need, and `cost.rs` estimates how long cases
//! take. `probes/README.md` describes the protocol.

mod builtin;
mod cost;
pub mod document;
pub mod memory;
mod probe;
mod program;
mod requirements;
pub mod round_trip;
mod table;
#[cfg(test)]
mod tests;

use contend_record::parameters::{Parameters, names};

pub use self::builtin::PROBE_VERB;
pub use self::program::summarize_output;
use self::table::{Row, Source};
use crate::engine::experiment::{Demands, SubjectError};
use crate::engine::setting::Setting;
use crate::experiments::units::parent;
use crate::support::limits;

/// Parameter for the kind of unit.
const UNIT: Setting = Setting::named(names::UNIT, "kind of unit [default: all]", table::names);

/// Parameter for the number of units.
const N: Setting = Setting::number(
    names::N,
    "number of units [default: several, up to --max-units]",
    1,
    1_000_000_000,
);

/// Demands of all cases: the scratch directory, but only if the user has no cache directory in
/// which compiled probes are kept for later cases.
const DEMANDS: Demands = Demands { scratch: || program::caches().is_none(), ..Demands::NONE };

/// Runs the built-in probe for `unit`: reads commands from standard input until end of file, and
/// answers them on standard output.
///
/// # Errors
/// Returns an error in these cases:
/// - There is no built-in probe for `unit`, or the probe cannot be set up.
/// - A command fails or is unknown.
/// - Standard input cannot be read, or standard output is closed.
pub fn serve(unit: &str) -> Result<(), SubjectError> {
    match table::find(unit).map(|row| &row.source) {
        Some(Source::BuiltIn(make)) => builtin::serve(*make),
        Some(Source::Program { .. }) | None => {
            Err(SubjectError::unexpected(format!("there is no built-in probe for units '{unit}'")))
        }
    }
}

/// Returns the row for the unit in the parameters. Fails if there is no such unit.
fn row(parameters: &Parameters) -> Result<&'static Row, SubjectError> {
    let unit = parameters.text(UNIT.name).unwrap_or_default();
    table::find(unit).ok_or_else(|| SubjectError::unexpected(format!("there is no unit '{unit}'")))
}

/// Returns why the units of a case cannot be created or their memory cannot be read here. Returns
/// `None` if both are possible or there is no such unit.
fn unavailable(parameters: &Parameters) -> Option<String> {
    let row = row(parameters).ok()?;
    let n = parameters.number(N.name).unwrap_or(1);
    parent::memory_unreadable()
        .or_else(|| row.missing())
        .or_else(|| row.task.and_then(|kind| limits::shortage(kind, n)))
        .or_else(|| {
            let free = limits::memory_available().saturating_sub(limits::memory_floor());
            memory_missing(row.bytes, n, free)
        })
}

/// Returns why `free` bytes are too little memory for `n` units of `bytes` each, or `None` if they
/// suffice.
fn memory_missing(bytes: u64, n: u64, free: u64) -> Option<String> {
    const BYTES_PER_MB: u64 = 1_000_000;
    let needed = bytes.saturating_mul(n);
    let (needed_mb, free_mb) = (needed.div_ceil(BYTES_PER_MB), free / BYTES_PER_MB);
    (needed > free)
        .then(|| format!("needs about {needed_mb} MB of memory; {free_mb} MB are available"))
}
