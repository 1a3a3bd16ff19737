//! Family `runtime`: what a unit of concurrency costs in every runtime. Probes make the units; see
//! `probes/README.md`.

mod cost;
pub mod document;
pub mod memory;
mod own;
mod probe;
mod program;
pub mod round_trip;
mod table;
#[cfg(test)]
mod tests;

use contend_record::parameters::{Parameters, names};

pub use self::own::VERB;
use self::table::{Row, Source};
use crate::engine::experiment::{Demands, SubjectError};
use crate::engine::setting::Setting;
use crate::experiments::units::parent;
use crate::support::limits;

/// The kind of unit.
const UNIT: Setting =
    Setting::named(names::UNIT, "the kind of unit; all by themselves", table::names);

/// How many units.
const N: Setting =
    Setting::number(names::N, "how many units; several by themselves", 1, 1_000_000_000);

/// What is compiled for one case serves the others: it is kept in the user's caches, or else in the
/// scratch directory.
const DEMANDS: Demands = Demands { scratch: || program::caches().is_none(), ..Demands::NONE };

/// Answers commands about units of this program itself on standard input until it ends.
///
/// # Errors
/// When there are no such units, a command is unknown or cannot be done, or nobody reads the answers.
pub fn serve(unit: &str) -> Result<(), SubjectError> {
    match table::find(unit).map(|row| &row.source) {
        Some(Source::Own(make)) => own::serve(*make),
        Some(Source::Program { .. }) | None => {
            Err(SubjectError::wrong(format!("no probe of this program has units {unit}")))
        }
    }
}

/// The row that the parameters name.
fn row(parameters: &Parameters) -> Result<&'static Row, SubjectError> {
    let unit = parameters.text(UNIT.name).unwrap_or_default();
    table::find(unit)
        .ok_or_else(|| SubjectError::wrong(format!("there are no units called {unit}")))
}

/// Why there can be no such units here.
fn unavailable(parameters: &Parameters) -> Option<String> {
    let row = row(parameters).ok()?;
    let n = parameters.number(N.name).unwrap_or(1);
    parent::memory_unreadable()
        .or_else(|| row.missing())
        .or_else(|| row.task.and_then(|kind| limits::not_so_many(kind, n)))
        .or_else(|| {
            let free = limits::memory_available().saturating_sub(limits::memory_floor());
            too_large(row.bytes, n, free)
        })
}

/// Why there is no memory for so many units of so many bytes, if so.
fn too_large(bytes: u64, n: u64, free: u64) -> Option<String> {
    const MEGA: u64 = 1_000_000;
    let needed = bytes.saturating_mul(n);
    let (needed_mb, free_mb) = (needed.div_ceil(MEGA), free / MEGA);
    (needed > free)
        .then(|| format!("about {needed_mb} MB are needed, and {free_mb} MB of memory may be used"))
}
