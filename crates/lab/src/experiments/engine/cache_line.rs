//! `engine/cache-line`: a cache line to another CPU and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;
use contend_record::stats::median;
use contend_sys::cpu;

use crate::experiment::{
    Attempt, Experiment, Sample, Sampling, Subject, SubjectError, never_hands_over,
};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "engine/cache-line",
    summary: "a cache line to another CPU and back: the sentinel",
    about: "Two threads, each bound to a CPU of its own, hand a number to and fro by spinning on \
            it. The median over parts of a sample is taken, since single parts are cut up by \
            interrupts. It tells how far apart two CPUs are; in a virtual machine it changes when \
            the host moves a CPU to another core, which spoils whatever two CPUs do together. \
            Before and after every sample of such an experiment it runs for about 10 ms.",
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit_over: None,
    settings: &[],
    cases: |_| vec![Parameters::new()],
    unavailable: |_| {
        (cpu::allowed() < 2).then(|| "needs two CPUs, and only one may be used".to_owned())
    },
    hands_over: never_hands_over,
    subject: |_| Ok(Box::new(CacheLine::new()?)),
};

/// Alone on its cache lines, those fetched together included.
#[repr(align(256))]
struct Line(AtomicU64);

/// The partner stops when it sees this.
const STOP: u64 = u64::MAX;
/// The partner goes to sleep when it sees this.
const REST: u64 = u64::MAX - 1;
const PARTS: u64 = 20;

struct CacheLine {
    line: Arc<Line>,
    partner: Option<JoinHandle<()>>,
}

impl CacheLine {
    fn new() -> Result<Self, SubjectError> {
        let cpus = cpu::allowed_list();
        let &[here, there, ..] = cpus.as_slice() else {
            return Err(SubjectError::Wrong("needs two CPUs".to_owned()));
        };
        let line = Arc::new(Line(AtomicU64::new(REST)));
        let shared = Arc::clone(&line);
        let partner = std::thread::Builder::new()
            .spawn(move || {
                let _ = cpu::pin(there); // if it fails, the distance is merely another one
                answer(&shared.0);
            })
            .attempt("create a thread")?;
        cpu::pin(here).attempt("bind a thread to a CPU")?;
        Ok(Self { line, partner: Some(partner) })
    }

    fn wake(&self) {
        self.line.0.store(0, Ordering::SeqCst);
        if let Some(partner) = &self.partner {
            partner.thread().unpark();
        }
    }
}

/// Answers every odd number with the next even one.
fn answer(line: &AtomicU64) {
    loop {
        match line.load(Ordering::Acquire) {
            STOP => return,
            REST => std::thread::park(),
            number if number % 2 == 1 => line.store(number + 1, Ordering::Release),
            _ => std::hint::spin_loop(),
        }
    }
}

impl Subject for CacheLine {
    fn sample(
        &mut self,
        iterations: u64,
        _tell: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError> {
        self.wake();
        let line = &self.line.0;
        let round = |number: u64| {
            line.store(number, Ordering::Release);
            while line.load(Ordering::Acquire) != number + 1 {
                std::hint::spin_loop();
            }
        };
        round(1); // the partner is awake now
        let turns = iterations.div_ceil(PARTS);
        let mut number = 3;
        let mut parts = Vec::with_capacity(usize::try_from(PARTS).unwrap_or(0));
        for _ in 0..PARTS {
            let started = Instant::now();
            for _ in 0..turns {
                round(number);
                number += 2;
            }
            parts.push(started.elapsed().as_nanos() as f64 / turns as f64);
        }
        line.store(REST, Ordering::Release);
        Ok(Sample::of(median(&parts).unwrap_or(0.0)))
    }
}

impl Drop for CacheLine {
    fn drop(&mut self) {
        self.line.0.store(STOP, Ordering::SeqCst);
        if let Some(partner) = self.partner.take() {
            partner.thread().unpark();
            let _ = partner.join();
        }
    }
}
