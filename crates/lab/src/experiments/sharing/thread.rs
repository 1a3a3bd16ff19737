//! `sharing/thread`: a variable of two threads.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use contend_record::lab::{Step, View};
use contend_record::parameters::Parameters;
use contend_sys::pages::{Pages, increment};

use super::{Seen, Story, look, of, own_pid, row};
use crate::engine::experiment::{Attempt, Experiment, Facts, Sample, Subject, SubjectError};

/// The row of the table.
pub const EXPERIMENT: Experiment = row(
    "sharing/thread",
    "a variable of two threads: one place, seen by both",
    "The same as sharing/process with a thread instead of a child: main sets n to 1 and \
            creates a thread; the thread looks and adds one; main looks, joins the thread, and \
            adds one. There is one n, and no copy: the private memory that the thread's write \
            adds, which is the value, is none. The threads are shown with their own numbers \
            (TID) and the memory of their one process.",
    View::ThreadSharing,
    |parameters| Ok(Box::new(Demonstration(parameters.clone()))),
);

struct Demonstration(Parameters);

/// What the thread is told to do next, and what it answers.
#[derive(Default)]
struct Post {
    slot: Mutex<Slot>,
    changed: Condvar,
}

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Look,
    Add,
    End,
    Answer(i64),
}

impl Post {
    fn put(&self, slot: Slot) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = slot;
        self.changed.notify_all();
    }

    fn take(&self, wanted: fn(&Slot) -> bool) -> Slot {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        while !wanted(&slot) {
            slot = self.changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::take(&mut slot)
    }

    fn tell(&self, command: Slot) -> i64 {
        self.put(command);
        match self.take(|slot| matches!(slot, Slot::Answer(_))) {
            Slot::Answer(value) => value,
            _ => 0,
        }
    }

    /// What the thread does.
    fn serve(&self, variable: &Pages) {
        loop {
            match self.take(|slot| matches!(slot, Slot::Look | Slot::Add | Slot::End)) {
                Slot::Look => self.put(Slot::Answer(variable.number().load(Ordering::SeqCst))),
                Slot::Add => self.put(Slot::Answer(increment(variable.number()))),
                _ => return,
            }
        }
    }
}

impl Subject for Demonstration {
    fn sample(&mut self, _: u64, tell: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut story = Story::new(&self.0, tell);
        let variable = Arc::new(Pages::map(4096).attempt("map a page")?);
        let address = variable.address();
        let at = |value| Some(Seen { address, value });
        let own = || variable.number().load(Ordering::SeqCst);
        let process = [own_pid()];

        variable.number().store(1, Ordering::SeqCst);
        story.step("main", "sets n to 1", at(own()), look(&process));

        let post = Arc::new(Post::default());
        let (theirs, page) = (Arc::clone(&post), Arc::clone(&variable));
        let thread = std::thread::Builder::new()
            .spawn(move || theirs.serve(&page))
            .attempt("create a thread")?;
        let inherited = post.tell(Slot::Look);
        story.step("thread", "is there, and looks", at(inherited), look(&process));

        let before = of(&look(&process), own_pid());
        let written = post.tell(Slot::Add);
        let after = look(&process);
        let added = of(&after, own_pid()).private_bytes as f64 - before.private_bytes as f64;
        story.step("thread", "adds 1 to n", at(written), after);

        let seen = own();
        story.step("main", "looks: it is the same n", at(seen), look(&process));

        post.put(Slot::End);
        let _ = thread.join();
        let last = increment(variable.number());
        story.step("main", "has joined the thread, and adds 1 to n", at(last), look(&process));

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
