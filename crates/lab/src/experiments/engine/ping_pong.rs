//! A number passed back and forth by two threads, each on a CPU of its own.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use contend_record::lab::Step;
use contend_record::stats::median;
use contend_sys::{cpu, topology};

use crate::engine::experiment::{ErrorContext, Sample, Subject, SubjectError};

/// The strategy by which a thread waits for the other thread's write.
pub trait WaitStyle: Send + 'static {
    /// Writes `number` to `line`, and wakes the other thread if threads of this style sleep.
    fn publish(line: &AtomicU32, number: u32);

    /// Waits while `line` contains `number`. May return early.
    fn wait_while(line: &AtomicU32, number: u32);
}

/// Returns why two threads cannot run on different CPUs, or `None` if they can.
pub fn unavailable() -> Option<String> {
    (cpu::allowed() < 2).then(|| "needs two CPUs, and only one may be used".to_owned())
}

/// A shared number, aligned so that no other data is on its cache line or on adjacent lines that
/// are prefetched with it.
#[repr(align(256))]
struct CacheLine(AtomicU32);

/// Value that makes the partner exit.
const STOP: u32 = u32::MAX;
/// Value that makes the partner park until it is unparked.
const PARK: u32 = u32::MAX - 1;
/// Number of batches in a sample. The sample's value is the median of their mean round-trip times.
const BATCHES_PER_SAMPLE: u64 = 20;
/// Maximum number of round trips in a sample, before rounding up to whole batches. Keeps the
/// numbers below `PARK`.
const MAX_ROUND_TRIPS: u64 = 1 << 30;

/// A shared number and the partner thread that replies to it.
pub struct PingPong<H> {
    line: Arc<CacheLine>,
    partner: Option<JoinHandle<()>>,
    wait_style: PhantomData<H>,
}

impl<H: WaitStyle> PingPong<H> {
    /// Creates the partner thread, and binds it and the calling thread to two CPUs: those of cores
    /// that are as close to each other as possible, or else two hardware threads of one core.
    ///
    /// # Errors
    /// Returns an error if there is only one CPU, the partner thread cannot be created, or the
    /// calling thread cannot be bound to its CPU.
    pub fn new() -> Result<Self, SubjectError> {
        let Some([here, there]) = topology::nearest_cores(&topology::allowed()) else {
            return Err(SubjectError::Unexpected("needs two CPUs".to_owned()));
        };
        let line = Arc::new(CacheLine(AtomicU32::new(PARK)));
        let shared = Arc::clone(&line);
        let partner = std::thread::Builder::new()
            .spawn(move || {
                let _ = cpu::pin(there); // a failure only changes the distance
                run_partner::<H>(&shared.0);
            })
            .context("create a thread")?;
        cpu::pin(here).context("bind a thread to a CPU")?;
        Ok(Self { line, partner: Some(partner), wait_style: PhantomData })
    }

    /// Writes `number` and unparks the partner, in case it is parked.
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

/// Replies to every odd number with the next even one, and parks at `PARK`, until `STOP` arrives.
fn run_partner<H: WaitStyle>(line: &AtomicU32) {
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
            // `new` binds the calling thread to a CPU.
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
