//! Parked threads, which wait on a condition variable.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use contend_sys::thread::{Attributes, Job, Thread, start};

use super::{ParkedUnits, check_all_ended};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// A set of threads that wait on a condition variable until they are released. Dropping the set
/// does not end them.
#[derive(Debug)]
pub struct ParkedThreads {
    waiting: Vec<Thread>,
    attributes: Attributes,
    gate: Arc<Gate>,
    job: &'static Job,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    opened: Condvar,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    /// Number of threads that have arrived at the gate.
    waiting: usize,
    open: bool,
    /// Number of threads that have passed the open gate.
    released: u64,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self) {
        let mut state = self.lock();
        state.waiting += 1;
        self.arrived.notify_one();
        while !state.open {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.released += 1;
    }
}

impl ParkedThreads {
    /// Creates an empty set.
    ///
    /// # Errors
    /// Returns an error if the attributes of the threads cannot be set, such as for lack of memory.
    pub fn new() -> Result<Self, SubjectError> {
        let attributes = Attributes::new(None).context("set thread attributes")?;
        let gate = Arc::new(Gate::default());
        let thread_gate = Arc::clone(&gate);
        let job = Job::leaked(move || thread_gate.wait());
        Ok(Self { waiting: Vec::new(), attributes, gate, job })
    }
}

impl ParkedUnits for ParkedThreads {
    fn add(&mut self, more: u64) -> io::Result<()> {
        for _ in 0..more {
            self.waiting.push(start(&self.attributes, self.job)?);
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn await_all(&mut self) -> Result<(), SubjectError> {
        let mut state = self.gate.lock();
        while state.waiting < self.waiting.len() {
            state = self.gate.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), SubjectError> {
        self.gate.lock().open = true;
        self.gate.opened.notify_all();
        let created = self.count();
        for thread in self.waiting.drain(..) {
            thread.join().context("join a thread")?;
        }
        let ended = std::mem::take(&mut *self.gate.lock()).released;
        check_all_ended(created, ended)
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.waiting.shrink_to_fit();
        Ok(())
    }

    fn stack_bytes(&self) -> u64 {
        self.attributes.stack_bytes() as u64
    }
}
