//! A number that two threads, each on a CPU of its own, hand to and fro, and nothing around it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use contend_record::lab::Step;
use contend_record::stats::median;
use contend_sys::{cpu, topology};

use crate::engine::experiment::{Attempt, Sample, Subject, SubjectError};

/// How one sees that the other one has written.
pub trait WaitStyle: Send + 'static {
    /// Writes the number, for the other one to see.
    fn publish(line: &AtomicU32, number: u32);

    /// Waits while this number stands there, or a moment.
    fn wait_while(line: &AtomicU32, number: u32);
}

/// Why there cannot be any here, if so.
pub fn unavailable() -> Option<String> {
    (cpu::allowed() < 2).then(|| "needs two CPUs, and only one may be used".to_owned())
}

/// Alone on its cache lines, those fetched together included.
#[repr(align(256))]
struct CacheLine(AtomicU32);

/// The partner stops when it sees this.
const STOP: u32 = u32::MAX;
/// The partner goes to sleep when it sees this.
const PARK: u32 = u32::MAX - 1;
/// Parts of a sample: their median is taken.
const BATCHES_PER_SAMPLE: u64 = 20;
/// Numbers of a sample, at most.
const MAX_ROUND_TRIPS: u64 = 1 << 30;

/// The number and who answers.
pub struct PingPong<H> {
    line: Arc<CacheLine>,
    partner: Option<JoinHandle<()>>,
    wait_style: PhantomData<H>,
}

impl<H: WaitStyle> PingPong<H> {
    /// One between two cores as near to each other as any.
    ///
    /// # Errors
    /// When there is one CPU only, or no thread.
    pub fn new() -> Result<Self, SubjectError> {
        let Some([here, there]) = topology::apart(&topology::allowed()) else {
            return Err(SubjectError::Wrong("needs two CPUs".to_owned()));
        };
        let line = Arc::new(CacheLine(AtomicU32::new(PARK)));
        let shared = Arc::clone(&line);
        let partner = std::thread::Builder::new()
            .spawn(move || {
                let _ = cpu::pin(there); // if it fails, the distance is merely another one
                answer::<H>(&shared.0);
            })
            .attempt("create a thread")?;
        cpu::pin(here).attempt("bind a thread to a CPU")?;
        Ok(Self { line, partner: Some(partner), wait_style: PhantomData })
    }

    /// Tells the partner something that it may have to be woken for.
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

/// Answers every odd number with the next even one.
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
        _tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError> {
        self.publish_and_unpark(0);
        self.round_trip(1); // the partner is awake now
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
            // It binds the thread to a CPU.
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
