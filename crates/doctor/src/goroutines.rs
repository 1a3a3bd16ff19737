//! What the goroutines of a process do, by the stacks of its busy threads.
//!
//! Go moves goroutines between threads, and implements locks and channels in user space. So neither the
//! threads nor their waits tell which goroutines wait for each other, but the stacks do.

use std::collections::{BTreeMap, BTreeSet};

use contend_record::doctor::Runtime;

use crate::facts::ThreadFacts;
use crate::timeline::SHORT_SLEEP;

/// Number of samples of a process from which its goroutines are judged.
const MIN_SAMPLES: usize = 24;

/// The goroutines of a process. Shares are of its CPU time in user mode.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Goroutines {
    /// Share in code of contended locks.
    pub locking: f64,
    /// Share in code of channels.
    pub channels: f64,
    /// The functions of the goroutines by share; largest first.
    pub entries: Vec<(String, f64)>,
    /// The functions of those that were found in `time.Sleep`.
    pub sleepers: BTreeSet<String>,
    /// Mean time for which the threads wait for the next timer, in seconds, without long times; `None`
    /// if they do not.
    pub timer_seconds: Option<f64>,
}

impl Goroutines {
    /// Returns what the goroutines of the threads of a process do; `None` if too few samples are known.
    pub fn of(threads: &[&ThreadFacts]) -> Option<Self> {
        let codes = || threads.iter().filter_map(|thread| Some((*thread, thread.code.as_ref()?)));
        let weights: f64 = codes().map(|(thread, _)| thread.running).sum();
        let samples: usize = codes().map(|(_, code)| code.samples).sum();
        if samples < MIN_SAMPLES || weights <= 0.0 {
            return None;
        }
        let mut goroutines = Self::default();
        let mut entries = BTreeMap::new();
        for (thread, code) in codes() {
            let weight = thread.running / weights;
            goroutines.locking += weight * code.locking;
            goroutines.channels += weight * code.channels;
            for (name, share) in &code.entries {
                *entries.entry(name.clone()).or_insert(0.0) += weight * share;
            }
            goroutines.sleepers.extend(code.sleepers.iter().map(|(name, _)| name.clone()));
        }
        let timers = threads.iter().flat_map(|thread| &thread.waits).filter_map(|(wait, share)| {
            let time = wait.timeout().filter(|_| wait.is_timer(Some(Runtime::Go)))?;
            (time <= SHORT_SLEEP).then_some((time, share))
        });
        let (sum, weight) = timers.fold((0.0, 0.0), |(sum, weight), (time, share)| {
            (sum + time.as_secs_f64() * share, weight + share)
        });
        goroutines.timer_seconds = (weight > 0.0).then(|| sum / weight);
        goroutines.entries = entries.into_iter().collect();
        goroutines.entries.sort_by(|a, b| b.1.total_cmp(&a.1));
        Some(goroutines)
    }

    /// Returns the share of the function with the given rank; 0 for the largest one.
    pub fn share(&self, rank: usize) -> f64 {
        self.entries.get(rank).map_or(0.0, |(_, share)| *share)
    }

    /// Returns the name of the function with the given rank.
    pub fn name(&self, rank: usize) -> &str {
        self.entries.get(rank).map_or("", |(name, _)| name)
    }
}
