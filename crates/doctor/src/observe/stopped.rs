//! Recognises stopped processes.
//!
//! A thread that was stopped while it waited is still in its system call, so that its call does not
//! show the stop. But all threads of a process stop together, which wakes them before. So whether a
//! process is stopped is only read when none of its threads runs any more.

use super::{Observer, now};
use crate::thread::{Sample, Sampled};
use crate::trace::Taken;
use crate::wait;

impl Observer<'_> {
    /// Looks for processes that were stopped in the interval before this one.
    pub(super) fn find_stopped(&mut self) {
        let quiet: Vec<i32> = self.awake_before.difference(&self.awake).copied().collect();
        for process in quiet {
            let threads = self.threads_of(process);
            // All threads of a process stop together.
            let Some(sampler) = threads.first().and_then(|id| self.samplers.get(id)) else {
                continue;
            };
            if matches!(sampler.files.state_letter(&mut self.buffer), Ok(b'T')) {
                self.note_stopped(threads);
            }
        }
    }

    /// Returns the IDs of the sampled threads of a process, its main thread first.
    fn threads_of(&self, process: i32) -> Vec<i32> {
        let is_alone = self.processes.get(&process).is_some_and(|process| process.threads == 1);
        if is_alone && self.samplers.get(&process).is_some_and(|main| main.process == process) {
            return vec![process];
        }
        let all = self.samplers.iter();
        all.filter(|(_, sampler)| sampler.process == process).map(|(id, _)| *id).collect()
    }

    /// Notes that threads are stopped from now on. Until now, they were in the waits that are known.
    fn note_stopped(&mut self, threads: Vec<i32>) {
        self.sample(threads.clone());
        for id in threads {
            let Some(sampler) = self.samplers.get_mut(&id) else { continue };
            sampler.files.set_stopped();
            let state = Sampled::Waiting(wait::STOPPED);
            self.timeline.settle(id, state);
            if let Some(trace) = &mut self.trace {
                let now = now();
                let sample = Sample { on_cpu: 0, run_queue: 0, slices: 1, state };
                let taken = Taken { before: now, after: now, sample: &sample };
                trace.sample(sampler.process, id, &taken);
            }
        }
    }
}
