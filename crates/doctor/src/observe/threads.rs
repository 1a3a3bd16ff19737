//! The processes and threads that are sampled: finds new ones, and keeps the files of busy ones open.

use std::collections::HashSet;

use contend_record::doctor::{Relation, Runtime};
use contend_sys::Pid;
use contend_sys::procfs;

use super::{Observer, Sampler, Start, now};
use crate::backoff::Backoff;
use crate::processes::{self, Observed};
use crate::runtime;
use crate::thread::{self, ThreadFiles};

/// Number of threads among which one is searched whose files are closed in place of others.
const MAX_CANDIDATES: usize = 32;
/// Number of intervals until the next sample from which a thread is idle.
const IDLE_BACKOFF: u64 = 4;
/// Largest number of threads that could not be sampled which are counted.
const MAX_UNSAMPLED: usize = 100_000;
/// Largest number of processes that are sampled. Others are only in the records.
const MAX_PROCESSES: usize = 10_000;

impl Observer<'_> {
    /// Adds a process with all its threads.
    pub(super) fn add_process(&mut self, pid: Pid, relation: Relation, start: Start) {
        if self.processes.len() >= MAX_PROCESSES {
            self.left_out += 1;
            return;
        }
        let Ok(mut process) = Observed::open(pid, relation) else { return };
        if self.budget.take(processes::DESCRIPTORS) {
            process.keep_open();
            if !process.is_open() {
                self.budget.give_back(processes::DESCRIPTORS);
            }
        }
        let runtime = process.runtime;
        let id = pid.as_raw_nonzero().get();
        self.processes.insert(id, process);
        for thread in procfs::threads(pid) {
            self.add_thread(pid, thread, runtime, start);
        }
    }

    pub(super) fn add_thread(
        &mut self,
        process: Pid,
        thread: Pid,
        runtime: Option<Runtime>,
        start: Start,
    ) {
        let (pid, id) = (process.as_raw_nonzero().get(), thread.as_raw_nonzero().get());
        if self.samplers.contains_key(&id) {
            return;
        }
        let keep = self.budget.take(thread::DESCRIPTORS) || self.close_idle();
        let before = now();
        let opened = ThreadFiles::open(process, thread, runtime, keep, &mut self.buffer);
        let after = now();
        if keep && !opened.as_ref().is_ok_and(ThreadFiles::is_open) {
            self.budget.give_back(thread::DESCRIPTORS);
        }
        let files = match opened {
            Ok(files) => files,
            Err(error) => {
                if thread::is_out_of_descriptors(&error) && self.unsampled.len() < MAX_UNSAMPLED {
                    self.unsampled.insert(id);
                }
                return;
            }
        };
        self.unsampled.remove(&id);
        self.follow(thread);
        self.shows_calls |= files.shows_calls();
        self.shows_names |= files.shows_name();
        self.timeline.add(pid, id, after, files.state);
        if start == Start::Observed {
            self.timeline.sample(id, after, &files.since_start());
        }
        let name = thread::name(process, thread, &mut self.buffer);
        self.timeline.set_runtime(id, runtime, runtime::is_helper(runtime, &name));
        if let Some(trace) = &mut self.trace {
            trace.add((pid, id), (before, after), files.state, &name);
        }
        self.names.insert(id, name);
        let examined = files.sched;
        let (found, due, run_backoff) = (self.tick, self.tick + 1, Backoff::default());
        let sampler =
            Sampler { files, examined, process: pid, found, due, backoff: 1, run_backoff };
        self.samplers.insert(id, Box::new(sampler));
        if self.recorder.is_none() {
            self.deadlines.enter(id, due);
        }
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads += 1;
            process.most_threads = process.most_threads.max(process.threads);
        }
    }

    /// Keeps the files of a thread open, if necessary in place of those of an idle thread.
    pub(super) fn keep_open(&mut self, id: i32) {
        if !self.budget.take(thread::DESCRIPTORS) && !self.close_idle() {
            return;
        }
        if self.samplers.get_mut(&id).is_none_or(|sampler| sampler.files.keep_open().is_err()) {
            self.budget.give_back(thread::DESCRIPTORS);
        }
    }

    /// Closes the files of a thread that has not run for some time. Returns whether one was found among
    /// the next ones.
    pub(super) fn close_idle(&mut self) -> bool {
        for (id, sampler) in self.samplers.range_mut(self.hand..).take(MAX_CANDIDATES) {
            self.hand = id + 1;
            if sampler.files.is_open() && sampler.backoff >= IDLE_BACKOFF {
                sampler.files.close();
                return true;
            }
        }
        if self.samplers.range(self.hand..).next().is_none() {
            self.hand = 0;
        }
        false
    }

    /// Looks for new threads and children of all processes.
    pub(super) fn search(&mut self) {
        let mut next: Vec<(Pid, Option<Runtime>)> = self
            .processes
            .values()
            .filter(|process| !process.has_ended())
            .map(|process| (process.pid, process.runtime))
            .collect();
        while let Some((pid, runtime)) = next.pop() {
            for thread in procfs::threads(pid) {
                self.add_thread(pid, thread, runtime, Start::Unknown);
            }
            for child in procfs::children(pid) {
                let id = child.as_raw_nonzero().get();
                if !self.processes.contains_key(&id) && id.cast_unsigned() != std::process::id() {
                    self.add_process(child, Relation::Descendant, Start::Unknown);
                    // It may have children of its own.
                    next.push((child, None));
                }
            }
        }
    }

    /// Removes the histories of threads that vanished before the records were last read. Their ends have
    /// been read by now. One that is left was found while it ended, after its end had been read.
    pub(super) fn forget_vanished(&mut self, before: usize) {
        for id in self.vanished.drain(..before) {
            if !self.samplers.contains_key(&id) {
                self.timeline.forget(id, now());
            }
        }
    }

    /// Forgets the files of a thread that has ended. Context switches, if recorded, show when.
    pub(super) fn drop_thread(&mut self, id: i32) {
        let sampler = self.samplers.remove(&id);
        let ended = now();
        if let (Some(sampler), Some(trace)) = (&sampler, &mut self.trace) {
            trace.end_at(sampler.process, id, ended);
        }
        if sampler.as_ref().is_some_and(|sampler| sampler.files.is_open()) {
            self.budget.give_back(thread::DESCRIPTORS);
        }
        let process = sampler.and_then(|sampler| self.processes.get_mut(&sampler.process));
        if let Some(process) = process {
            process.threads = process.threads.saturating_sub(1);
        }
        if self.recorder.is_none() {
            self.timeline.end_at(id, ended);
        } else {
            self.vanished.push(id);
        }
    }

    /// Forgets the names of threads whose histories are not kept.
    pub(super) fn forget_names(&mut self) {
        let finished: HashSet<i32> = self.timeline.finished.iter().map(|(id, _)| *id).collect();
        let tracks = &self.timeline.tracks;
        self.names.retain(|id, _| tracks.contains_key(id) || finished.contains(id));
    }
}
