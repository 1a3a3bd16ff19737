//! Probes for the units that the family `units` parks: processes, threads and callback threads.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Receptor, Reply};
use contend_sys::child::{ExitStatus, reap};
use contend_sys::process::fork as fork_process;

use super::Units;
use crate::engine::experiment::{ErrorContext, SubjectError};
use crate::experiments::units::parked::{self, Callbacks, ParkedUnits};
use crate::support::limits::UnitKind;

/// Creates the probe for processes that wait for end of file on a pipe.
pub fn fork() -> Result<Box<dyn Units>, SubjectError> {
    let (park, version) = (parked::empty_set(UnitKind::Process)?, kernel());
    Ok(Box::new(Parked { park, version, ended: 0, exchange: exchange_with_process }))
}

/// Creates the probe for threads that wait on a condition variable.
pub fn thread() -> Result<Box<dyn Units>, SubjectError> {
    let (park, version) = (parked::empty_set(UnitKind::Thread)?, kernel());
    Ok(Box::new(Parked { park, version, ended: 0, exchange: exchange_with_thread }))
}

/// Creates the probe for callback threads that wait for a message.
pub fn callback() -> Result<Box<dyn Units>, SubjectError> {
    let version = format!("contend-callback {}", env!("CARGO_PKG_VERSION"));
    let (park, version) = (Box::new(Callbacks::new()?), version);
    Ok(Box::new(Parked { park, version, ended: 0, exchange: exchange_with_callback }))
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// A set of parked units, with the version and the message exchange that a probe needs.
struct Parked {
    park: Box<dyn ParkedUnits>,
    version: String,
    /// Number of units that ended after they were woken.
    ended: u64,
    exchange: fn(u64) -> Result<Duration, SubjectError>,
}

impl Units for Parked {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn reserve(&mut self, n: u64) -> Result<(), SubjectError> {
        self.park.reserve(n)
    }

    fn park(&mut self, n: u64, _: Instant) -> Result<u64, SubjectError> {
        self.ended = 0;
        self.park.add(n).map_err(|source| {
            let what = format!("create more than {} units", self.park.count());
            SubjectError::Syscall { what, source }
        })?;
        self.park.await_all()?;
        Ok(self.park.count())
    }

    fn ended(&self) -> u64 {
        self.ended
    }

    fn wake(&mut self) -> Result<(), SubjectError> {
        let count = self.park.count();
        self.park.release()?; // fails if one has ended before
        self.ended = count;
        Ok(())
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.park.forget()
    }

    fn round_trips(&mut self, messages: u64) -> Result<Duration, String> {
        (self.exchange)(messages).map_err(|error| error.to_string())
    }
}

/// Calls `ask` with every number from 0 to `messages`, inclusive, and checks that it returns the
/// same number. Returns the total time without the first call, which only shows that the other side
/// is ready.
fn time_exchange(
    messages: u64,
    mut ask: impl FnMut(u64) -> Result<u64, SubjectError>,
) -> Result<Duration, SubjectError> {
    let mut ask_one = |number| match ask(number)? {
        answer if answer == number => Ok(()),
        answer => {
            Err(SubjectError::unexpected(format!("message {number} was answered by {answer}")))
        }
    };
    ask_one(0)?;
    let begun = Instant::now();
    (1..=messages).try_for_each(ask_one)?;
    Ok(begun.elapsed())
}

/// Exchanges `messages` messages with a thread over two channels of the standard library, after a
/// first message that is not timed. Returns the time taken.
fn exchange_with_thread(messages: u64) -> Result<Duration, SubjectError> {
    let gone = |_| SubjectError::unexpected("the other thread has ended");
    let echo = |comes: Receiver<u64>, back: SyncSender<u64>| {
        comes.iter().try_for_each(|number| back.send(number)).is_ok()
    };
    std::thread::scope(|scope| {
        let ((there, comes), (back, answers)) = (sync_channel(1), sync_channel(1));
        scope.spawn(move || echo(comes, back));
        time_exchange(messages, |number| {
            there
                .send(number)
                .map_err(|_| SubjectError::unexpected("the other thread has ended"))?;
            answers.recv().map_err(gone)
        })
    })
}

/// Exchanges `messages` messages with a child process over two pipes, after a first message that is
/// not timed. Returns the time taken.
fn exchange_with_process(messages: u64) -> Result<Duration, SubjectError> {
    let pipe = || rustix::pipe::pipe().context("make a pipe");
    let ((comes, there), (answers, back)) = (pipe()?, pipe()?);
    let mut there = Some(there);
    let child = fork_process(|| {
        drop(there.take());
        let mut number = [0; 8];
        while matches!(rustix::io::read(&comes, &mut number), Ok(8)) {
            if rustix::io::write(&back, &number).is_err() {
                return 1;
            }
        }
        0
    });
    let child = child.context("fork")?;
    drop(back);
    let asked = time_exchange(messages, |number| {
        let there = there.as_ref().ok_or_else(|| SubjectError::unexpected("there is no pipe"))?;
        rustix::io::write(there, &number.to_ne_bytes()).context("write to a pipe")?;
        let mut answer = [0; 8];
        let read = rustix::io::read(&answers, &mut answer).context("read from a pipe")?;
        if read == answer.len() {
            Ok(u64::from_ne_bytes(answer))
        } else {
            Err(SubjectError::unexpected("the process has ended"))
        }
    });
    drop(there);
    let status = reap(child).context("wait for a process")?.status;
    let took = asked?;
    if status == ExitStatus::Exited(0) {
        Ok(took)
    } else {
        Err(SubjectError::unexpected("the process failed"))
    }
}

/// The address to send the answer to, and the number to echo.
struct Request(Address<u64>, u64);

/// Sends `messages` messages from one unit to another on the same Worker, each answered before the
/// next is sent. Returns the time of these round trips; a first one is not timed.
fn exchange_with_callback(messages: u64) -> Result<Duration, SubjectError> {
    let failed = |error: &dyn std::fmt::Display| SubjectError::unexpected(error.to_string());
    let receptor = Receptor::builder().workers(1).start().context("start a Worker")?;
    let answered = receptor.spawn_reply(move |context, answered| {
        let begun = ask_callback(context, messages, answered);
        if begun.is_some() { context.end() } else { context.fail("out of memory") }
    });
    let answered = answered.map_err(|error| failed(&error))?.wait();
    let took = answered.map_err(|error| failed(&error))?;
    took.ok_or_else(|| SubjectError::unexpected("a message was answered by another one"))
}

/// Spawns a unit that echoes numbers and a unit that sends them to it. The second one passes to
/// `answered` the time of `messages` round trips (after an untimed first one), or `None` if an
/// answer was wrong or a number could not be sent. Returns `None` if a unit cannot be spawned or
/// started.
fn ask_callback(
    context: &mut Context<'_>,
    messages: u64,
    answered: Reply<Option<Duration>>,
) -> Option<()> {
    let echo = context.spawn_handler(|context, Request(by, number)| {
        let sent = context.send(by, number).is_ok();
        if sent { context.keep_receiving() } else { context.end() }
    });
    let echo = echo.ok()?;
    let (mut answered, mut wanted, mut begun) = (Some(answered), 0, None);
    let asks = context.spawn_handler(move |context: &mut Context<'_, u64>, number| {
        if number == 1 {
            begun = Some(Instant::now());
        }
        let by = context.address();
        if number == wanted && number <= messages {
            wanted += 1;
            if context.send(echo, Request(by, wanted)).is_ok() {
                return context.keep_receiving();
            }
        }
        if let Some(answered) = answered.take() {
            let took = begun.map(|begun| begun.elapsed());
            answered.send(took.filter(|_| number == wanted));
        }
        context.end()
    });
    context.send(asks.ok()?, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_an_error_and_the_first_is_not_counted() {
        let mut asked = Vec::new();
        let echo = |number| {
            asked.push(number);
            Ok(number)
        };
        time_exchange(2, echo).expect("they are right");
        assert_eq!(asked, [0, 1, 2]);
        let wrong = time_exchange(5, |number| Ok(if number == 3 { 7 } else { number }));
        let error = wrong.expect_err("one is wrong").to_string();
        assert!(error.contains("message 3 was answered by 7"), "{error}");
    }
}
