//! Answers to whoever has spawned a callback thread.

use std::fmt;
use std::sync::mpsc;
use std::time::Duration;

use crate::worker_thread::assert_may_wait;

/// Where an answer of type `T` goes. Dropped without one, whoever waits is told that none comes.
pub struct Reply<T>(Option<Way<T>>);

enum Way<T> {
    Thread(mpsc::SyncSender<T>),
    Unit(Box<dyn FnOnce(Option<T>) + Send>),
}

impl<T> Reply<T> {
    /// To a thread that waits.
    pub(crate) fn to_thread() -> (Self, Promise<T>) {
        let (sender, receiver) = mpsc::sync_channel(1);
        (Self(Some(Way::Thread(sender))), Promise(receiver))
    }

    /// To a callback thread: the answer, or that there is none, is made a message of it.
    pub(crate) fn to_unit(tell: impl FnOnce(Option<T>) + Send + 'static) -> Self {
        Self(Some(Way::Unit(Box::new(tell))))
    }

    /// Answers. If whoever asked has ended, nothing happens.
    pub fn send(mut self, value: T) {
        match self.0.take() {
            Some(Way::Thread(sender)) => drop(sender.try_send(value)),
            Some(Way::Unit(tell)) => tell(Some(value)),
            None => {}
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(Way::Unit(tell)) = self.0.take() {
            tell(None);
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// An answer that a thread can wait for.
#[derive(Debug)]
pub struct Promise<T>(mpsc::Receiver<T>);

/// No answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoReply {
    /// Whoever should have answered has ended without doing so.
    #[error("the callback thread has ended without an answer")]
    Ended,
    /// It has not come in time; it still may.
    #[error("there is no answer yet")]
    Late,
}

impl<T> Promise<T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// [`NoReply::Ended`].
    ///
    /// # Panics
    /// In a callback, of whichever runtime, unless the answer is there: its Worker would wait, perhaps for itself.
    pub fn wait(self) -> Result<T, NoReply> {
        match self.poll() {
            Err(NoReply::Late) => {
                assert_may_wait("Promise::wait");
                self.0.recv().map_err(|_| NoReply::Ended)
            }
            done => done,
        }
    }

    /// Waits for so long at most. With no time at all it only looks whether the answer is there.
    ///
    /// # Errors
    /// [`NoReply::Ended`], [`NoReply::Late`].
    ///
    /// # Panics
    /// As [`wait`](Self::wait), if it were to wait for any time.
    pub fn wait_for(&self, most: Duration) -> Result<T, NoReply> {
        let answer = self.poll();
        if most.is_zero() || !matches!(answer, Err(NoReply::Late)) {
            return answer;
        }
        assert_may_wait("Promise::wait_for");
        self.0.recv_timeout(most).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => NoReply::Late,
            mpsc::RecvTimeoutError::Disconnected => NoReply::Ended,
        })
    }

    fn poll(&self) -> Result<T, NoReply> {
        self.0.try_recv().map_err(|error| match error {
            mpsc::TryRecvError::Empty => NoReply::Late,
            mpsc::TryRecvError::Disconnected => NoReply::Ended,
        })
    }
}
