//! Tests that need an otherwise idle machine, because other programs could become the bottleneck.
//! They are in a separate target, because Cargo runs one target at a time, and a lock runs them one
//! by one.

mod advice;
mod book;
mod doctor;
mod lab;
mod named;
mod slurm;
mod spark;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of attempts, during which a shared machine is likely to be idle at least once.
const MAX_ATTEMPTS: u64 = 6;

/// Runs the body of a test while no other test of this target runs. If it fails, repeats it after
/// increasing pauses, because other programs may have disturbed it.
fn in_quiet(body: impl Fn()) {
    run_exclusively(|| retry(body));
}

/// Runs the body of a test while no other test of this target runs.
fn run_exclusively(body: impl FnOnce()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    body();
}

fn retry(body: impl Fn()) {
    for attempt in 1..=MAX_ATTEMPTS {
        match catch_unwind(AssertUnwindSafe(&body)) {
            Ok(()) => return,
            Err(panic) if attempt == MAX_ATTEMPTS => resume_unwind(panic),
            Err(_) => std::thread::sleep(Duration::from_secs(attempt)),
        }
    }
}
