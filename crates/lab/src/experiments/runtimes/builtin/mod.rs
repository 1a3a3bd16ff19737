//! Probes that are part of this program: units of runtimes written in Rust, and of the kernel.
//!
//! Each child module implements [`Units`] and is exported from here for the table, so the children
//! and this file import each other.

mod kernel;
mod smol;
mod tokio;

use std::io::{self, BufRead, Write};
use std::time::{Duration, Instant};

use contend_sys::allocation;

use crate::engine::experiment::SubjectError;
use crate::engine::timing::nanoseconds;

pub use kernel::{callback, fork, thread};
pub use smol::smol;
pub use tokio::{mpsc, oneshot, pending, sleep};

/// Name of the hidden command that turns this program into a probe.
pub const PROBE_VERB: &str = "lab-probe";

/// Units of one kind, which a built-in probe controls. `probes/README.md` describes the commands.
pub trait Units {
    /// Returns the name and version of the runtime.
    fn version(&self) -> String;

    /// Allocates the memory that the probe itself needs for `n` further units.
    ///
    /// # Errors
    /// Returns an error if there is no memory.
    fn reserve(&mut self, n: u64) -> Result<(), SubjectError>;

    /// Creates `n` units and blocks until all of them wait. Units with timers wait until `due`.
    /// Returns the number of waiting units, which the units count themselves if they can.
    ///
    /// # Errors
    /// Returns an error if a unit cannot be created or does not wait.
    fn park(&mut self, n: u64, due: Instant) -> Result<u64, SubjectError>;

    /// Returns how many units have ended since the last `park`. If units cannot count themselves,
    /// returns 0 until `wake` has returned.
    fn ended(&self) -> u64;

    /// Wakes all units, or waits for their timers, and blocks until they have ended.
    ///
    /// # Errors
    /// Returns an error if a unit was not waiting, or does not end.
    fn wake(&mut self) -> Result<(), SubjectError>;

    /// Frees the memory that `reserve` has allocated.
    ///
    /// # Errors
    /// Returns an error if the memory cannot be freed.
    fn forget(&mut self) -> Result<(), SubjectError>;

    /// Exchanges `messages` messages with one unit, after a first one that is not timed. Returns
    /// the time taken.
    ///
    /// # Errors
    /// Returns why the exchange failed, such as which answer was wrong.
    fn round_trips(&mut self, messages: u64) -> Result<Duration, String>;
}

/// Function that creates the probe for a kind of unit.
pub type Make = fn() -> Result<Box<dyn Units>, SubjectError>;

/// Number of units created and ended at the start, to complete lazy initialisation of the runtime.
const WARM_UP_UNITS: u64 = 100;

/// Runs a probe: reads commands from standard input until end of file, and answers them on standard
/// output.
///
/// # Errors
/// Returns an error in these cases:
/// - The units cannot be set up.
/// - A command fails or is unknown.
/// - Standard input cannot be read, or standard output is closed.
pub fn serve(make: Make) -> Result<(), SubjectError> {
    let mut units = make()?;
    let began = Instant::now();
    units.reserve(WARM_UP_UNITS)?;
    units.park(WARM_UP_UNITS, began)?;
    units.wake()?;
    rest(units.as_mut())?;
    answer(&format!("ready {}", units.version()))?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| SubjectError::unexpected(error.to_string()))?;
        answer(&execute(units.as_mut(), &line)?)?;
    }
    Ok(())
}

fn execute(units: &mut dyn Units, line: &str) -> Result<String, SubjectError> {
    let read = Instant::now();
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |word: &str| {
        word.parse().map_err(|_| SubjectError::unexpected(format!("{word}: not a number")))
    };
    Ok(match words[..] {
        ["park", n, hold] => {
            let (n, due) = (number(n)?, read + Duration::from_millis(number(hold)?));
            units.reserve(n)?;
            let begun = Instant::now();
            let waiting = units.park(n, due)?;
            format!("parked {waiting} {} -", nanoseconds(begun.elapsed()))
        }
        ["wake"] => {
            let early = units.ended();
            units.wake()?;
            format!("woken {early} {} {}", units.ended(), nanoseconds(read.elapsed()))
        }
        ["rest"] => {
            rest(units)?;
            "rested -".to_owned()
        }
        ["trips", messages] => {
            let messages = number(messages)?;
            match units.round_trips(messages) {
                Ok(took) => format!("trips {messages} {}", nanoseconds(took)),
                Err(reason) => format!("trips none {reason}"),
            }
        }
        _ => return Err(SubjectError::unexpected(format!("{line}: no such command"))),
    })
}

/// Frees everything that belonged to ended units, including memory that the allocator retains.
fn rest(units: &mut dyn Units) -> Result<(), SubjectError> {
    units.forget()?;
    allocation::release_free_memory();
    Ok(())
}

fn answer(line: &str) -> Result<(), SubjectError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| SubjectError::unexpected(error.to_string()))
}

/// Blocks until `count` returns `wanted` or more. `what` is the verb for error messages, such as
/// "wait".
///
/// # Errors
/// Returns an error if the count does not change for a minute.
fn await_count(what: &str, wanted: u64, count: impl Fn() -> u64) -> Result<(), SubjectError> {
    const STALL_TIMEOUT: Duration = Duration::from_mins(1);
    let (mut last, mut since) = (count(), Instant::now());
    loop {
        let now = count();
        if now >= wanted {
            return Ok(());
        }
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > STALL_TIMEOUT {
            return Err(SubjectError::unexpected(format!(
                "of {wanted} units {now} {what}, with no progress for a minute"
            )));
        }
        std::thread::yield_now();
    }
}
