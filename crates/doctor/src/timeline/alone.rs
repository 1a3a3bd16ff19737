//! The longest time for which only one thread ran.

use super::Timeline;

/// Length of a run that is too short to interrupt another thread's time alone, in nanoseconds.
const BRIEF_NANOS: u64 = 2_000_000;
/// Time alone must be this many times as long as all brief runs of other threads in it.
const MIN_ALONE_RATIO: u64 = 50;
/// Smallest share of the time alone for which the thread must run.
const MIN_ALONE_SHARE: f64 = 0.7;

/// Time for which a thread runs alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    thread: i32,
    since: u64,
    /// Time before, for which at least two threads ran, in nanoseconds.
    together: u64,
    /// Time for which it ran, in nanoseconds.
    own: u64,
    /// Sum of the brief runs of others, in nanoseconds.
    brief: u64,
}

impl Timeline {
    /// Notes a run of a thread, for the time that threads run alone.
    pub(super) fn note_run(&mut self, thread: i32, begun: u64, ended: u64) {
        let length = ended.saturating_sub(begun);
        if length < BRIEF_NANOS {
            if let Some(alone) = &mut self.alone {
                let is_own = alone.thread == thread;
                *(if is_own { &mut alone.own } else { &mut alone.brief }) += length;
            }
            return;
        }
        if self.alone.is_none_or(|alone| alone.thread != thread) {
            self.end_alone(begun);
            let since = begun.max(self.last_end);
            let together = self.levels[2..].iter().sum();
            self.alone = Some(Alone { thread, since, together, own: 0, brief: 0 });
        }
        if let Some(alone) = &mut self.alone {
            alone.own += ended.saturating_sub(begun.max(alone.since));
        }
        self.last_end = ended;
    }

    /// Ends the time for which a thread has run alone, at `time`.
    pub(super) fn end_alone(&mut self, time: u64) {
        if let Some(Alone { thread, since, together, own, brief }) = self.alone.take() {
            let length = time.saturating_sub(since);
            let is_alone =
                brief * MIN_ALONE_RATIO <= length && own as f64 >= MIN_ALONE_SHARE * length as f64;
            if is_alone && self.longest_alone.is_none_or(|(_, longest)| length > longest) {
                self.longest_alone = Some((thread, length));
                self.together_before = together;
            }
        }
    }
}
