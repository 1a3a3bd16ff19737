//! Tests of what only shows when nothing else is at work, because what sets a pipeline's pace is
//! then another program. They are a target of their own, which cargo runs when the others have
//! ended, and take turns.

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

/// Often enough for a shared machine to have a quiet moment.
const ATTEMPTS: u64 = 6;

/// Runs a test's body while no other one here runs, and again after longer and longer pauses if
/// it fails: on a shared machine others may have been at work.
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
