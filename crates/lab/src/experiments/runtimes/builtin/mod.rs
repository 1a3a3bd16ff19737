//! Probes that are this program itself: units of runtimes that are written in Rust, and of the
//! kernel.
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

/// The hidden verb with which this program becomes a probe.
pub const VERB: &str = "lab-probe";

/// Units of one kind, which are made, wait and are woken as `probes/README.md` says.
pub trait Units {
    /// What the runtime is, and its version.
    fn version(&self) -> String;

    /// Makes ready what only the probe needs for so many.
    ///
    /// # Errors
    /// When there is no memory.
    fn reserve(&mut self, n: u64) -> Result<(), SubjectError>;

    /// Makes so many, and waits until all of them wait. Those that wait for time are due at this
    /// moment. Says how many wait, by their own count.
    ///
    /// # Errors
    /// When one cannot be made.
    fn park(&mut self, n: u64, due: Instant) -> Result<u64, SubjectError>;

    /// How many have ended since they were made, by their own count.
    fn ended(&self) -> u64;

    /// Lets all of them end, and waits until they have.
    ///
    /// # Errors
    /// When one has not waited, or does not end.
    fn wake(&mut self) -> Result<(), SubjectError>;

    /// Frees what `reserve` has made.
    ///
    /// # Errors
    /// When it cannot.
    fn forget(&mut self) -> Result<(), SubjectError>;

    /// Exchanges so many messages with one unit, there and back, when it has answered a first one.
    /// How long they took.
    ///
    /// # Errors
    /// Why it cannot.
    fn trips(&mut self, messages: u64) -> Result<Duration, String>;
}

/// Makes units of a kind.
pub type Make = fn() -> Result<Box<dyn Units>, SubjectError>;

/// Units that are made at the start, so that what the runtime starts at its first unit is there.
const FIRST: u64 = 100;

/// Answers commands about these units on standard input until it ends.
///
/// # Errors
/// When a command is unknown, or cannot be done; when nobody reads the answers.
pub fn serve(make: Make) -> Result<(), SubjectError> {
    let mut units = make()?;
    let began = Instant::now();
    units.reserve(FIRST)?;
    units.park(FIRST, began)?;
    units.wake()?;
    rest(units.as_mut())?;
    answer(&format!("ready {}", units.version()))?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| SubjectError::wrong(error.to_string()))?;
        answer(&execute(units.as_mut(), &line)?)?;
    }
    Ok(())
}

fn execute(units: &mut dyn Units, line: &str) -> Result<String, SubjectError> {
    let read = Instant::now();
    let words: Vec<_> = line.split_whitespace().collect();
    let number =
        |word: &str| word.parse().map_err(|_| SubjectError::wrong(format!("{word}: not a number")));
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
            match units.trips(messages) {
                Ok(took) => format!("trips {messages} {}", nanoseconds(took)),
                Err(reason) => format!("trips none {reason}"),
            }
        }
        _ => return Err(SubjectError::wrong(format!("{line}: no such command"))),
    })
}

/// Forgets everything about units that have ended. There is no garbage but what the allocator
/// keeps.
fn rest(units: &mut dyn Units) -> Result<(), SubjectError> {
    units.forget()?;
    allocation::give_back();
    Ok(())
}

fn answer(line: &str) -> Result<(), SubjectError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| SubjectError::wrong(error.to_string()))
}

/// Waits until a count has reached so many.
///
/// # Errors
/// When it does not change any more.
fn await_count(what: &str, wanted: u64, count: impl Fn() -> u64) -> Result<(), SubjectError> {
    const STILL: Duration = Duration::from_mins(1);
    let (mut last, mut since) = (count(), Instant::now());
    loop {
        let now = count();
        if now >= wanted {
            return Ok(());
        }
        if now != last {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() > STILL {
            return Err(SubjectError::wrong(format!(
                "of {wanted} units, {now} {what}, and no more in a minute"
            )));
        }
        std::thread::yield_now();
    }
}
