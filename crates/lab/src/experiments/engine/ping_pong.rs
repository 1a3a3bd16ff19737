//! A number that two threads, each on a CPU of its own, pass back and forth.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use contend_record::lab::Step;
use contend_record::stats::median;
use contend_sys::{cpu, topology};

use crate::engine::experiment::{Attempt, Sample, Subject, SubjectError};

/// How one thread notices that the other one has written.
pub trait WaitStyle: Send + 'static {
    /// Writes a number and wakes the other thread if necessary.
    fn publish(line: &AtomicU32, number: u32);

    /// Waits while the number is unchanged. May return early.
    fn wait_while(line: &AtomicU32, number: u32);
}

/// Returns why this cannot run here, or `None` if it can.
pub fn unavailable() -> Option<String> {
    (cpu::allowed() < 2).then(|| "needs two CPUs, and only one may be used".to_owned())
}

/// Aligned so that no other data shares its cache lines, or those that are prefetched with them.
#[repr(align(256))]
struct CacheLine(AtomicU32);

/// Stops the partner.
const STOP: u32 = u32::MAX;
/// Parks the partner.
const PARK: u32 = u32::MAX - 1;
/// Batches of a sample, whose median is the value.
const BATCHES_PER_SAMPLE: u64 = 20;
/// Maximum round trips of a sample.
const MAX_ROUND_TRIPS: u64 = 1 << 30;

/// The number and the thread that replies.
pub struct PingPong<H> {
    line: Arc<CacheLine>,
    partner: Option<JoinHandle<()>>,
    wait_style: PhantomData<H>,
}

impl<H: WaitStyle> PingPong<H> {
    /// Creates a pair on two cores that are as close to each other as possible.
    ///
    /// # Errors
    /// Returns an error if there is only one CPU or the thread cannot be created.
    pub fn new() -> Result<Self, SubjectError> {
        let Some([here, there]) = topology::nearest_cores(&topology::allowed()) else {
            return Err(SubjectError::Wrong("needs two CPUs".to_owned()));
        };
        let line = Arc::new(CacheLine(AtomicU32::new(PARK)));
        let shared = Arc::clone(&line);
        let partner = std::thread::Builder::new()
            .spawn(move || {
                let _ = cpu::pin(there); // a failure only changes the distance
                answer::<H>(&shared.0);
            })
            .attempt("create a thread")?;
        cpu::pin(here).attempt("bind a thread to a CPU")?;
        Ok(Self { line, partner: Some(partner), wait_style: PhantomData })
    }

    /// Writes a number for a partner that may be parked.
    fn publish_and_unpark(&self, number: u32) {
        H::publish(&self.line.0, number);
        if let Some(partner) = &self.partner {
            partner.thread().unpark();
        }
    }

    fn round_trip(&self, number: u32) {
        let line = &self.line.0;
        H::publish(line, number);
        while line.load(Ordering::Acquire) != number + 1 {
            H::wait_while(line, number);
        }
    }
}

/// Replies to every odd number with the next even one.
fn answer<H: WaitStyle>(line: &AtomicU32) {
    loop {
        match line.load(Ordering::Acquire) {
            STOP => return,
            PARK => std::thread::park(),
            number if number % 2 == 1 => H::publish(line, number + 1),
            number => H::wait_while(line, number),
        }
    }
}

impl<H: WaitStyle> Subject for PingPong<H> {
    fn sample(
        &mut self,
        iterations: u64,
        _on_step: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError> {
        self.publish_and_unpark(0);
        self.round_trip(1); // wait until the partner is awake
        let trips = iterations.min(MAX_ROUND_TRIPS).div_ceil(BATCHES_PER_SAMPLE);
        let mut number = 3;
        let mut batches = Vec::with_capacity(usize::try_from(BATCHES_PER_SAMPLE).unwrap_or(0));
        for _ in 0..BATCHES_PER_SAMPLE {
            let started = Instant::now();
            for _ in 0..trips {
                self.round_trip(number);
                number += 2;
            }
            batches.push(started.elapsed().as_nanos() as f64 / trips as f64);
        }
        self.publish_and_unpark(PARK);
        Ok(Sample::of(median(&batches).unwrap_or(0.0)))
    }
}

impl<H> Drop for PingPong<H> {
    fn drop(&mut self) {
        self.line.0.store(STOP, Ordering::SeqCst);
        let _ = rustix::thread::futex::wake(&self.line.0, rustix::thread::futex::Flags::empty(), 1);
        if let Some(partner) = self.partner.take() {
            partner.thread().unpark();
            let _ = partner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{cache_line::SpinWait, futex::FutexWait};
    use super::*;

    #[test]
    fn numbers_come_back_in_repeated_samples() {
        fn twice<H: WaitStyle>() {
            // `new` binds its thread to a CPU.
            let thread = std::thread::spawn(|| {
                let mut ping_pong = PingPong::<H>::new().expect("two CPUs");
                for _ in 0..2 {
                    let sample = ping_pong.sample(200, &mut |_| ()).expect("a sample");
                    assert!(sample.value > 0.0);
                }
            });
            thread.join().expect("it works");
        }
        if unavailable().is_none() {
            twice::<SpinWait>();
            twice::<FutexWait>();
        }
    }
}
