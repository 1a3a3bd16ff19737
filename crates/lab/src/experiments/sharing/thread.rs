//! `sharing/thread`: a variable shared by two threads.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use contend_record::lab::{Step, View};
use contend_record::parameters::Parameters;
use contend_sys::pages::{Pages, increment};

use super::{Observation, StepReporter, experiment, find_task, own_pid, read_tasks};
use crate::engine::experiment::{ErrorContext, Experiment, Facts, Sample, Subject, SubjectError};

/// The definition of `sharing/thread`.
pub const EXPERIMENT: Experiment = experiment(
    "sharing/thread",
    "a variable of two threads: one location, writes visible to both",
    "As sharing/process, with a thread instead of a child: main sets n to 1 and creates a thread; \
     the thread reads n and adds 1; main reads n, joins the thread, and adds 1. There is one n and \
     no copy, so the private memory that the thread's write adds, which is the value, is 0. \
     Threads are shown with their ids (TID) and the memory of their process.",
    View::ThreadSharing,
    |parameters| Ok(Box::new(ThreadSharing(parameters.clone()))),
);

struct ThreadSharing(Parameters);

/// A slot for one command to the thread, or for the thread's answer.
#[derive(Default)]
struct Mailbox {
    state: Mutex<MailboxState>,
    changed: Condvar,
}

#[derive(Default)]
enum MailboxState {
    #[default]
    Empty,
    Read,
    Add,
    End,
    Answer(i64),
}

impl Mailbox {
    fn set(&self, state: MailboxState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    fn wait_for(&self, wanted: fn(&MailboxState) -> bool) -> MailboxState {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !wanted(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut state)
    }

    fn request(&self, command: MailboxState) -> i64 {
        self.set(command);
        match self.wait_for(|state| matches!(state, MailboxState::Answer(_))) {
            MailboxState::Answer(value) => value,
            _ => 0,
        }
    }

    /// Executes commands until [`MailboxState::End`] arrives.
    fn serve(&self, variable: &Pages) {
        loop {
            match self.wait_for(|state| {
                matches!(state, MailboxState::Read | MailboxState::Add | MailboxState::End)
            }) {
                MailboxState::Read => {
                    self.set(MailboxState::Answer(variable.number().load(Ordering::SeqCst)));
                }
                MailboxState::Add => self.set(MailboxState::Answer(increment(variable.number()))),
                _ => return,
            }
        }
    }
}

impl Subject for ThreadSharing {
    fn sample(&mut self, _: u64, on_step: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut reporter = StepReporter::new(&self.0, on_step);
        let variable = Arc::new(Pages::map(4096).context("map a page")?);
        let address = variable.address();
        let at = |value| Some(Observation { address, value });
        let own = || variable.number().load(Ordering::SeqCst);
        let process = [own_pid()];

        variable.number().store(1, Ordering::SeqCst);
        reporter.step("main", "sets n to 1", at(own()), read_tasks(&process));

        let mailbox = Arc::new(Mailbox::default());
        let (thread_mailbox, page) = (Arc::clone(&mailbox), Arc::clone(&variable));
        let thread = std::thread::Builder::new()
            .spawn(move || thread_mailbox.serve(&page))
            .context("create a thread")?;
        let inherited = mailbox.request(MailboxState::Read);
        reporter.step("thread", "reads n", at(inherited), read_tasks(&process));

        let before = find_task(&read_tasks(&process), own_pid());
        let written = mailbox.request(MailboxState::Add);
        let after = read_tasks(&process);
        let added = find_task(&after, own_pid()).private_bytes as f64 - before.private_bytes as f64;
        reporter.step("thread", "adds 1 to n", at(written), after);

        let seen = own();
        reporter.step(
            "main",
            "reads n: the thread's write is visible",
            at(seen),
            read_tasks(&process),
        );

        mailbox.set(MailboxState::End);
        let _ = thread.join();
        let last = increment(variable.number());
        reporter.step("main", "joins the thread and adds 1 to n", at(last), read_tasks(&process));

        let count = |value: i64| u64::try_from(value).unwrap_or(0).into();
        let facts = Facts::from([
            ("thread_saw".to_owned(), count(inherited)),
            ("thread_wrote".to_owned(), count(written)),
            ("main_then_saw".to_owned(), count(seen)),
            ("main_wrote".to_owned(), count(last)),
        ]);
        Ok(Sample { facts, ..Sample::of(added) })
    }
}
