//! How much of the CPUs two partners use at most.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contend_sys::cpu::{self, Clock};

use crate::support::pair::Sub;

/// Looks what main and sub use, piece by piece.
#[derive(Debug)]
pub struct LoadMeter {
    main: Option<Clock>,
    /// Sub's, as soon as there is one.
    sub: OnceLock<Clock>,
    done: AtomicBool,
}

impl LoadMeter {
    /// How long a piece is.
    const SAMPLING_INTERVAL: Duration = Duration::from_millis(50);

    /// One for the calling thread, which is main.
    pub fn new() -> Self {
        Self { main: Clock::of_this_thread(), sub: OnceLock::new(), done: AtomicBool::new(false) }
    }

    /// Looks at sub, too, from now on.
    pub fn watch(&self, sub: Sub) {
        if let Some(clock) = sub.clock() {
            let _ = self.sub.set(clock); // there is one sub
        }
    }

    /// CPU time of both so far, and when that was; none when one is not there, or when this thread
    /// lost its CPU in the middle of looking.
    fn read_cpu_time(&self) -> Option<(Instant, Duration)> {
        let begun = Instant::now();
        let cpu = self.main?.time()? + self.sub.get()?.time()?;
        let now = Instant::now();
        (now - begun < Self::SAMPLING_INTERVAL / 100).then_some((now, cpu))
    }

    /// Does something, and says what the largest load was meanwhile in percent of all CPUs; none if
    /// it was over too soon.
    pub fn measure_during<T>(&self, body: impl FnOnce() -> T) -> (T, Option<f64>) {
        std::thread::scope(|scope| {
            let meter = scope.spawn(|| {
                let mut most: Option<f64> = None;
                let mut before: Option<(Instant, Duration)> = None;
                while !self.done.load(Ordering::Relaxed) {
                    let now = self.read_cpu_time();
                    if let (Some((then, used)), Some((now, cpu))) = (before, now) {
                        let piece = now - then;
                        // What is left at the end may be too short to tell a load.
                        if piece >= Self::SAMPLING_INTERVAL / 2 {
                            let part = cpu.saturating_sub(used).as_secs_f64();
                            let load = part / piece.as_secs_f64() / cpu::allowed() as f64;
                            most = Some(most.unwrap_or(0.0).max(100.0 * load.min(1.0)));
                        }
                    }
                    before = now;
                    std::thread::park_timeout(Self::SAMPLING_INTERVAL);
                }
                most
            });
            let result = body();
            self.done.store(true, Ordering::Relaxed);
            meter.thread().unpark();
            (result, meter.join().unwrap_or_default())
        })
    }
}
