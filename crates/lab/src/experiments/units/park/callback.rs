//! Callback threads, on one Worker.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contend_callback::{Address, Context, Never, Next, Receptor, Reply};

use super::{Park, all_have_ended};
use crate::engine::experiment::{Attempt, SubjectError};

/// Callback threads that each wait for one message, with a closure of 8 bytes. One more, the
/// keeper, creates them and sends it.
#[derive(Debug)]
pub struct Callbacks {
    receptor: Receptor,
    keeper: Address<Order>,
    /// How many have got their message.
    ended: &'static AtomicU64,
    count: u64,
}

/// What the keeper is to do.
enum Order {
    /// Have room to note so many.
    Reserve(usize, Reply<()>),
    /// Create so many. The answer is how many there is room for.
    Add(u64, Reply<u64>),
    /// Send to all from this one on.
    Release(usize, Reply<()>),
    /// Keep the list of those that wait, and no room beside.
    Forget(Reply<()>),
}

/// Messages that are on their way at once.
const BATCH: usize = 4096;

/// What the keeper knows.
struct Kept {
    ended: &'static AtomicU64,
    /// The first `count` of them are units that wait.
    addresses: Vec<Address<()>>,
    count: usize,
}

impl Kept {
    fn obey(&mut self, context: &mut Context<'_, Order>, order: Order) {
        match order {
            Order::Reserve(count, reply) => {
                self.reserve(context, count);
                reply.send(());
            }
            Order::Forget(reply) => {
                self.addresses.truncate(self.count);
                self.addresses.shrink_to_fit();
                reply.send(());
            }
            Order::Add(more, reply) => {
                let added = (0..more).take_while(|_| self.add(context)).count();
                reply.send(added as u64);
            }
            Order::Release(from, reply) => {
                let to = self.count.min(from + BATCH);
                for &address in &self.addresses[from..to] {
                    let _ = context.send(address, ()); // they are counted
                }
                if from < to {
                    // It comes behind what was sent to them.
                    let _ = context.send(context.address(), Order::Release(to, reply));
                } else {
                    self.count = 0;
                    reply.send(());
                }
            }
        }
    }

    /// Fills the list, so that memory for it is there, and not taken when units are created.
    fn reserve(&mut self, context: &mut Context<'_, Order>, count: usize) {
        let nobody = context.spawn_receiving(|context: &mut Context<'_, ()>| context.end());
        if let Ok(nobody) = nobody {
            self.addresses.resize(self.count + count, nobody);
        }
    }

    fn add(&mut self, context: &mut Context<'_, Order>) -> bool {
        let ended = self.ended;
        let waits = move |context: &mut Context<'_, ()>, ()| {
            ended.fetch_add(1, Ordering::Relaxed);
            context.end()
        };
        let Ok(address) = context.spawn_handler(waits) else { return false };
        match self.addresses.get_mut(self.count) {
            Some(place) => *place = address,
            None => self.addresses.push(address),
        }
        self.count += 1;
        true
    }
}

impl Callbacks {
    /// None yet.
    ///
    /// # Errors
    /// When there can be no Worker.
    pub fn new() -> Result<Self, SubjectError> {
        let receptor = Receptor::builder().workers(1).start().attempt("start a Worker")?;
        let ended: &'static AtomicU64 = Box::leak(Box::default());
        let mut kept = Kept { ended, addresses: Vec::new(), count: 0 };
        let keeper = receptor.spawn_receiving(move |context: &mut Context<'_, Order>| -> Next {
            context.receive(move |context, order| {
                kept.obey(context, order);
                context.keep_receiving()
            })
        });
        let keeper = keeper.map_err(wrong)?;
        Ok(Self { receptor, keeper, ended, count: 0 })
    }

    /// Has the keeper do something, and waits for its answer.
    fn ask<T: Send + 'static>(
        &self,
        order: impl FnOnce(Reply<T>) -> Order + Send + 'static,
    ) -> Result<T, SubjectError> {
        let keeper = self.keeper;
        let asks = move |context: &mut Context<'_, Never>, reply| {
            let sent = context.send(keeper, order(reply));
            if sent.is_ok() { context.end() } else { context.fail("the keeper has ended") }
        };
        self.receptor.spawn_reply(asks).map_err(wrong)?.wait().map_err(wrong)
    }
}

/// As a [`SubjectError`] for `map_err`.
#[expect(clippy::needless_pass_by_value, reason = "that is how `map_err` passes it")]
fn wrong(error: impl ToString) -> SubjectError {
    SubjectError::Wrong(error.to_string())
}

impl Park for Callbacks {
    fn add(&mut self, more: u64) -> io::Result<()> {
        let added = self.ask(move |reply| Order::Add(more, reply)).map_err(io::Error::other)?;
        self.count += added;
        if added == more { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn await_all(&mut self) -> Result<(), SubjectError> {
        // They wait from the moment on in which they are created. The Worker tells how many it
        // has at the end of its turn.
        const MOST: Duration = Duration::from_secs(10);
        let begun = Instant::now();
        while self.receptor.alive() < self.count + 1 {
            if begun.elapsed() > MOST {
                let alive = self.receptor.alive();
                return Err(wrong(format!("of {} callback threads, {alive} wait", self.count)));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), SubjectError> {
        self.ended.store(0, Ordering::Relaxed);
        self.ask(|reply| Order::Release(0, reply))?;
        let created = std::mem::take(&mut self.count);
        all_have_ended(created, self.ended.load(Ordering::Relaxed))
    }

    fn reserve(&mut self, more: u64) -> Result<(), SubjectError> {
        let more = usize::try_from(more).map_err(wrong)?;
        self.ask(move |reply| Order::Reserve(more, reply))
    }

    fn forget(&mut self) -> Result<(), SubjectError> {
        self.ask(Order::Forget)
    }

    fn are_tasks(&self) -> bool {
        false
    }
}
