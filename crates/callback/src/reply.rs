//! Answers from callback threads and blocking work to the thread or callback thread that started
//! them.

use std::cell::Cell;
use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use crate::worker_thread::assert_may_wait;

/// The sending side of one answer of type `T`. If it is dropped without an answer, the receiving
/// side learns that no answer will arrive.
pub struct Reply<T>(Option<Receiver<T>>);

enum Receiver<T> {
    Thread(mpsc::SyncSender<T>),
    Unit(Box<dyn FnOnce(Option<T>) + Send>),
}

impl<T> Reply<T> {
    /// Creates a reply to a thread, and the promise on which that thread waits.
    pub(crate) fn to_thread() -> (Self, Promise<T>) {
        let (sender, receiver) = mpsc::sync_channel(1);
        (Self(Some(Receiver::Thread(sender))), Promise { receiver, taken: Cell::new(false) })
    }

    /// Creates a reply to a callback thread. `forward`, which sends the answer on, is called with
    /// the answer, or with `None` if the reply is dropped without one.
    pub(crate) fn to_unit(forward: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Some(Receiver::Unit(Box::new(forward))))
    }

    /// Sends the answer. Does nothing if the receiving side is gone.
    pub fn send(mut self, value: T) {
        match self.0.take() {
            Some(Receiver::Thread(sender)) => drop(sender.try_send(value)),
            Some(Receiver::Unit(forward)) => forward(Some(value)),
            None => {}
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(Receiver::Unit(forward)) = self.0.take() {
            forward(None);
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The receiving side of one answer, on which a thread can wait.
#[derive(Debug)]
pub struct Promise<T> {
    receiver: mpsc::Receiver<T>,
    /// Whether the answer has been returned. The sender may still exist at that time, so the
    /// channel alone would tell the end too late.
    taken: Cell<bool>,
}

/// The reason for which there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoReply {
    /// The [`Reply`] was dropped without an answer, usually because its callback thread has ended,
    /// or the answer has been taken before.
    #[error("the callback thread has ended without an answer")]
    Ended,
    /// The timeout has elapsed. The answer may still arrive.
    #[error("there is no answer yet")]
    Late,
}

impl<T> Promise<T> {
    /// Blocks until the answer arrives.
    ///
    /// # Errors
    /// [`NoReply::Ended`] if the [`Reply`] was dropped without an answer, or
    /// [`wait_for`](Self::wait_for) has already returned the answer.
    ///
    /// # Panics
    /// Panics in a callback of any runtime, unless the answer has arrived: the callback's Worker
    /// would block, perhaps forever.
    pub fn wait(self) -> Result<T, NoReply> {
        match self.poll() {
            Err(NoReply::Late) => {
                assert_may_wait("Promise::wait");
                self.receiver.recv().map_err(|_| NoReply::Ended)
            }
            done => done,
        }
    }

    /// Blocks until the answer arrives, for at most `timeout`. A zero duration polls without
    /// blocking.
    ///
    /// # Errors
    /// [`NoReply::Ended`] if the [`Reply`] was dropped without an answer, or an earlier call has
    /// returned the answer; [`NoReply::Late`] on timeout.
    ///
    /// # Panics
    /// Panics in a callback of any runtime, as [`wait`](Self::wait) does, unless the answer has
    /// arrived or `timeout` is zero.
    pub fn wait_for(&self, timeout: Duration) -> Result<T, NoReply> {
        let answer = self.poll();
        if timeout.is_zero() || !matches!(answer, Err(NoReply::Late)) {
            return answer;
        }
        assert_may_wait("Promise::wait_for");
        self.note_taken(self.receiver.recv_timeout(timeout).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => NoReply::Late,
            mpsc::RecvTimeoutError::Disconnected => NoReply::Ended,
        }))
    }

    fn poll(&self) -> Result<T, NoReply> {
        if self.taken.get() {
            return Err(NoReply::Ended);
        }
        self.note_taken(self.receiver.try_recv().map_err(|error| match error {
            mpsc::TryRecvError::Empty => NoReply::Late,
            mpsc::TryRecvError::Disconnected => NoReply::Ended,
        }))
    }

    /// Notes whether `answer` is the answer, and returns it.
    fn note_taken(&self, answer: Result<T, NoReply>) -> Result<T, NoReply> {
        if answer.is_ok() {
            self.taken.set(true);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a promise, and its sender, which the caller keeps alive.
    fn promise() -> (mpsc::SyncSender<u8>, Promise<u8>) {
        let (mut reply, promise) = Reply::to_thread();
        match reply.0.take() {
            Some(Receiver::Thread(sender)) => (sender, promise),
            _ => panic!("it is a reply to a thread"),
        }
    }

    #[test]
    fn no_answer_follows_a_taken_one_even_while_the_sender_exists() {
        let (sender, polled) = promise();
        assert_eq!(polled.wait_for(Duration::ZERO), Err(NoReply::Late));
        sender.try_send(5).expect("room");
        assert_eq!(polled.wait_for(Duration::ZERO), Ok(5));
        assert_eq!(polled.wait_for(Duration::ZERO), Err(NoReply::Ended));
        assert_eq!(polled.wait(), Err(NoReply::Ended));

        let (sender, waited) = promise();
        let late = std::thread::spawn({
            let sender = sender.clone();
            move || sender.send(6)
        });
        assert_eq!(waited.wait_for(Duration::from_mins(1)), Ok(6));
        assert_eq!(waited.wait(), Err(NoReply::Ended));
        late.join().expect("no panic").expect("the promise exists");
        drop(sender);
    }
}
