//! For how long a thread was in each of its waits.

use crate::wait::Wait;

/// Largest number of different waits of one thread that are kept.
const MAX_WAITS: usize = 32;

/// Time of a thread in one kind of wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitTime {
    /// Time in nanoseconds.
    pub nanos: u64,
    /// Number of samples that found the thread in it.
    pub samples: u64,
}

impl WaitTime {
    fn since(self, earlier: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(earlier.nanos),
            samples: self.samples.saturating_sub(earlier.samples),
        }
    }
}

/// Times by wait. Most threads have one or two different waits, so that a list takes less memory than a map,
/// and is searched as quickly.
#[derive(Debug, Clone, Default)]
pub struct Waits(Vec<(Wait, WaitTime)>);

impl Waits {
    /// Returns the time of a wait.
    pub fn get(&self, wait: &Wait) -> Option<&WaitTime> {
        self.0.iter().find(|(known, _)| known == wait).map(|(_, time)| time)
    }

    /// Returns the time of a wait, to change it.
    pub(super) fn get_mut(&mut self, wait: &Wait) -> Option<&mut WaitTime> {
        self.0.iter_mut().find(|(known, _)| known == wait).map(|(_, time)| time)
    }

    /// Adds time to a wait, unless it is a new one and there are `MAX_WAITS`.
    pub(super) fn add(&mut self, wait: Wait, added: WaitTime) {
        if let Some(time) = self.get_mut(&wait) {
            time.nanos += added.nanos;
            time.samples += added.samples;
        } else if self.0.len() < MAX_WAITS {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.push((wait, added));
        }
    }

    /// Returns all waits with their times.
    pub fn iter(&self) -> impl Iterator<Item = (&Wait, &WaitTime)> {
        self.0.iter().map(|(wait, time)| (wait, time))
    }

    /// Leaves the times since `earlier`, a previous state of these, without waits that have none.
    pub(super) fn subtract(&mut self, earlier: &Self) {
        for (wait, time) in &mut self.0 {
            *time = time.since(earlier.get(wait).copied().unwrap_or_default());
        }
        self.0.retain(|(_, time)| *time != WaitTime::default());
    }
}
