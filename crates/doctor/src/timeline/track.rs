//! The history of one thread.

use contend_record::doctor::Runtime;

use super::accounts::Account;
use super::wakes::Waking;
use super::{SHORT_NANOS, SHORT_SLEEP, STATES, Waits};
use crate::histogram::Histogram;
use crate::wait::Wait;

/// A thread's history.
#[derive(Debug, Clone)]
pub struct Track {
    /// PID of its process.
    pub process: i32,
    /// Time of the first observation, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// Time of its end; `None` if it had not ended.
    pub ended: Option<u64>,
    /// Time by state, in nanoseconds, by samples.
    pub states: [u64; STATES],
    /// Time and samples by wait; at most `MAX_WAITS`.
    pub waits: Waits,
    /// Number of times that the scheduler gave it the CPU.
    pub slices: u64,
    /// Time on a CPU by context switches, in nanoseconds.
    pub run_nanos: u64,
    /// Lengths of its runs, by context switches.
    pub runs: Histogram,
    /// Lengths of its waits, by context switches.
    pub blocks: Histogram,
    /// Number of times that it left the CPU although it could have continued.
    pub preemptions: u64,
    /// Number of short sleeps.
    pub short_sleeps: u64,
    /// Number of short sleeps during which another thread began to run when none did.
    pub sleeps_with_event: u64,
    /// The program that its process has executed during the observation.
    pub(super) program: Option<Box<str>>,
    /// Whether that is a program which only sleeps, and for a short time.
    pub(super) is_short_program: bool,
    pub(super) runtime: Option<Runtime>,
    /// Whether it only serves its runtime.
    pub(super) is_helper: bool,
    /// Whether it is on a CPU, queued or waiting, and since when.
    pub(super) position: Position,
    pub(super) since: u64,
    /// Whether it has been there for longer than since then, for an unknown time.
    pub(super) is_cut: bool,
    /// The current wait or, while the thread runs, the last one.
    pub(super) wait: Wait,
    /// Whether an event has been counted for the current sleep.
    pub(super) has_event: bool,
    /// The last wake-up since it began to run, if these are recorded.
    pub(super) waking: Option<Waking>,
    pub(super) account: Account,
}

/// Where a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    OnCpu,
    Queued,
    Waiting,
}

impl Track {
    pub(super) fn new(process: i32, now: u64) -> Self {
        Self {
            process,
            begun: now,
            ended: None,
            states: [0; STATES],
            waits: Waits::default(),
            slices: 0,
            run_nanos: 0,
            runs: Histogram::default(),
            blocks: Histogram::default(),
            preemptions: 0,
            short_sleeps: 0,
            sleeps_with_event: 0,
            program: None,
            is_short_program: false,
            runtime: None,
            is_helper: false,
            position: Position::Waiting,
            since: now,
            is_cut: false,
            wait: Wait::UNKNOWN,
            has_event: false,
            waking: None,
            account: Account::new(now),
        }
    }

    /// Returns the time for which it was observed until its end, or until `now`, in nanoseconds.
    pub fn life_nanos(&self, now: u64) -> u64 {
        self.ended.unwrap_or(now).saturating_sub(self.begun)
    }

    /// Returns whether it has not been seen to move or been sampled.
    pub(super) fn is_new(&self) -> bool {
        self.slices == 0 && self.runs.count() == 0 && self.since == self.begun
    }

    pub(super) fn was_sampled(&self) -> bool {
        self.account.was_sampled()
    }

    /// Returns whether it is in a sleep that may be part of polling, while it waits.
    pub(super) fn is_in_short_sleep(&self) -> bool {
        !self.is_helper
            && self.wait.is_timer(self.runtime)
            && match self.wait.timeout() {
                Some(time) => time <= SHORT_SLEEP,
                // A sleep of unknown length counts if such sleeps have been short so far.
                None if self.is_short_program => true,
                None => self.blocks.count() > 0 && self.blocks.median_nanos() <= SHORT_NANOS,
            }
    }

    /// Returns whether a wait of this length was a short sleep. A sleep does not end early, so a shorter
    /// wait was another one, although the last sample found a sleep.
    pub(super) fn has_slept(&self, nanos: u64) -> bool {
        self.is_in_short_sleep()
            && match self.wait.timeout() {
                Some(time) => u128::from(nanos) >= time.as_nanos(),
                None => 2 * nanos >= self.blocks.median_nanos(),
            }
    }

    pub(super) fn enter(&mut self, position: Position, time: u64) {
        let length = time.saturating_sub(self.since);
        match (self.position, position) {
            (Position::OnCpu, _) => {
                self.run_nanos += length;
                if !self.is_cut {
                    self.runs.add(length);
                }
                self.preemptions += u64::from(position == Position::Queued);
            }
            (Position::Waiting, _) if self.since > self.begun && !self.is_cut => {
                self.blocks.add(length);
            }
            _ => {}
        }
        self.is_cut = false;
        self.has_event = false;
        self.position = position;
        self.since = time;
    }
}
