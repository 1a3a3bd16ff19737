//! Parked callback threads, on one Worker.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Never, Next, Receptor, Reply};

use super::{ParkedUnits, check_all_ended};
use crate::engine::experiment::{ErrorContext, SubjectError};

/// A set of callback threads. Each has a closure of 8 bytes and waits for one message. One further
/// unit, the spawner, creates them and sends the messages.
#[derive(Debug)]
pub struct Callbacks {
    receptor: Receptor,
    spawner: Address<SpawnerCommand>,
    /// Number of units that have received their message.
    ended: &'static AtomicU64,
    count: u64,
}

/// A command to the spawner.
enum SpawnerCommand {
    /// Allocate room for the given number of further addresses.
    Reserve(usize, Reply<()>),
    /// Create the given number of units; the reply is the number actually created.
    Add(u64, Reply<u64>),
    /// Send a message to all units from the given index on; the reply follows the last message.
    Release(usize, Reply<()>),
    /// Free the addresses of released units and spare room.
    Forget(Reply<()>),
}

/// Maximum number of messages sent in one callback.
const BATCH_MESSAGES: usize = 4096;

/// State of the spawner.
struct SpawnerState {
    ended: &'static AtomicU64,
    /// Addresses of units. Only the first `count` are those of waiting units.
    addresses: Vec<Address<()>>,
    count: usize,
}

impl SpawnerState {
    fn handle(&mut self, context: &mut Context<'_, SpawnerCommand>, command: SpawnerCommand) {
        match command {
            SpawnerCommand::Reserve(count, reply) => {
                self.reserve(context, count);
                reply.send(());
            }
            SpawnerCommand::Forget(reply) => {
                self.addresses.truncate(self.count);
                self.addresses.shrink_to_fit();
                reply.send(());
            }
            SpawnerCommand::Add(more, reply) => {
                let added = (0..more).take_while(|_| self.add(context)).count();
                reply.send(added as u64);
            }
            SpawnerCommand::Release(from, reply) => {
                let to = self.count.min(from + BATCH_MESSAGES);
                for &address in &self.addresses[from..to] {
                    let _ = context.send(address, ()); // units that get it count themselves
                }
                if from < to {
                    // The core delivers this message after those above.
                    let _ = context.send(context.address(), SpawnerCommand::Release(to, reply));
                } else {
                    self.count = 0;
                    reply.send(());
                }
            }
        }
    }

    /// Makes room for `count` further addresses by adding placeholders to the list, so that its
    /// memory exists before units are created. Does nothing if no unit can be spawned.
    fn reserve(&mut self, context: &mut Context<'_, SpawnerCommand>, count: usize) {
        let placeholder = context.spawn_receiving(|context: &mut Context<'_, ()>| context.end());
        if let Ok(placeholder) = placeholder {
            self.addresses.resize(self.count + count, placeholder);
        }
    }

    fn add(&mut self, context: &mut Context<'_, SpawnerCommand>) -> bool {
        let ended = self.ended;
        let waits = move |context: &mut Context<'_, ()>, ()| {
            ended.fetch_add(1, Ordering::Relaxed);
            context.end()
        };
        let Ok(address) = context.spawn_handler(waits) else { return false };
        match self.addresses.get_mut(self.count) {
            Some(slot) => *slot = address,
            None => self.addresses.push(address),
        }
        self.count += 1;
        true
    }
}

impl Callbacks {
    /// Starts a Worker with the spawner on it, and no parked units.
    ///
    /// # Errors
    /// Returns an error if the Worker or the spawner cannot start.
    pub fn new() -> Result<Self, SubjectError> {
        let receptor = Receptor::builder().workers(1).start().context("start a Worker")?;
        let ended: &'static AtomicU64 = Box::leak(Box::default());
        let mut state = SpawnerState { ended, addresses: Vec::new(), count: 0 };
        let spawner =
            receptor.spawn_receiving(move |context: &mut Context<'_, SpawnerCommand>| -> Next {
                context.receive(move |context, command| {
                    state.handle(context, command);
                    context.keep_receiving()
                })
            });
        let spawner = spawner.map_err(subject_error)?;
        Ok(Self { receptor, spawner, ended, count: 0 })
    }

    /// Sends a command to the spawner and waits for its reply. Fails if the spawner does not reply.
    fn request<T: Send + 'static>(
        &self,
        command: impl FnOnce(Reply<T>) -> SpawnerCommand + Send + 'static,
    ) -> Result<T, SubjectError> {
        let spawner = self.spawner;
        let send = move |context: &mut Context<'_, Never>, reply| {
            let sent = context.send(spawner, command(reply));
            if sent.is_ok() { context.end() } else { context.fail("the spawner has ended") }
        };
        self.receptor.spawn_reply(send).map_err(subject_error)?.wait().map_err(subject_error)
    }
}

/// Converts any error to a `SubjectError` with its message, for `map_err`.
#[expect(clippy::needless_pass_by_value, reason = "that is how `map_err` passes it")]
fn subject_error(error: impl ToString) -> SubjectError {
    SubjectError::Unexpected(error.to_string())
}

impl ParkedUnits for Callbacks {
    fn add(&mut self, more: u64) -> io::Result<()> {
        let added = self
            .request(move |reply| SpawnerCommand::Add(more, reply))
            .map_err(io::Error::other)?;
        self.count += added;
        if added == more { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn await_all(&mut self) -> Result<(), SubjectError> {
        // Units wait as soon as they exist, but the Worker updates their number only every few
        // turns.
        const MAX_START_TIME: Duration = Duration::from_secs(10);
        let begun = Instant::now();
        while self.receptor.alive() < self.count + 1 {
            if begun.elapsed() > MAX_START_TIME {
                let alive = self.receptor.alive();
                return Err(subject_error(format!(
                    "only {alive} of {} callback threads are waiting",
                    self.count
                )));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), SubjectError> {
        self.ended.store(0, Ordering::Relaxed);
        self.request(|reply| SpawnerCommand::Release(0, reply))?;
        let created = std::mem::take(&mut self.count);
        check_all_ended(created, self.ended.load(Ordering::Relaxed))
    }

    fn reserve(&mut self, more: u64) -> Result<(), SubjectError> {
        let more = usize::try_from(more).map_err(subject_error)?;
        self.request(move |reply| SpawnerCommand::Reserve(more, reply))
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.request(SpawnerCommand::Forget)
    }

    fn are_tasks(&self) -> bool {
        false
    }
}
