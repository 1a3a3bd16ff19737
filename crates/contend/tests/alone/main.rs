//! Tests that need an otherwise idle machine, because other programs could be the bottleneck. They
//! are a separate target, which Cargo runs after the others, and run one at a time.

mod advice;
mod book;
mod lab;
mod named;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "the other target uses the rest")]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Enough attempts for a shared machine to become quiet once.
const ATTEMPTS: u64 = 6;

/// Runs a test's body while no other test here runs. If it fails, repeats it after increasing
/// pauses, as other programs may have disturbed it.
fn in_quiet(body: impl Fn()) {
    in_turn(|| attempts(body));
}

/// Runs a test's body while no other one here runs.
fn in_turn(body: impl FnOnce()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    body();
}

fn attempts(body: impl Fn()) {
    for attempt in 1..=ATTEMPTS {
        match catch_unwind(AssertUnwindSafe(&body)) {
            Ok(()) => return,
            Err(panic) if attempt == ATTEMPTS => resume_unwind(panic),
            Err(_) => std::thread::sleep(Duration::from_secs(attempt)),
        }
    }
}
