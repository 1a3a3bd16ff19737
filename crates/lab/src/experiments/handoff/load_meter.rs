//! Measures the peak CPU load of two partners during a session.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contend_sys::cpu::{self, Clock};

use crate::support::partners::Sub;

/// A meter that samples the CPU time of main and sub at a fixed interval during one session.
#[derive(Debug)]
pub struct LoadMeter {
    main: Option<Clock>,
    /// CPU clock of sub, set once sub has started.
    sub: OnceLock<Clock>,
    done: AtomicBool,
}

impl LoadMeter {
    /// Time between two samples.
    const SAMPLING_INTERVAL: Duration = Duration::from_millis(50);

    /// Creates a meter for a session in which the calling thread is main.
    pub fn new() -> Self {
        Self { main: Clock::of_this_thread(), sub: OnceLock::new(), done: AtomicBool::new(false) }
    }

    /// Sets `sub`, without which there are no samples. Has no effect if `sub` has no CPU clock, or
    /// if a sub has been set before.
    pub fn watch(&self, sub: Sub) {
        if let Some(clock) = sub.clock() {
            let _ = self.sub.set(clock); // already set only if `watch` was called twice
        }
    }

    /// Returns the current time and the total CPU time of both partners; `None` if sub has not
    /// started or has exited, if a partner has no CPU clock, or if the readings took 1% of the
    /// sampling interval or longer, for example because this thread was preempted.
    fn read_cpu_time(&self) -> Option<(Instant, Duration)> {
        let begun = Instant::now();
        let cpu = self.main?.time()? + self.sub.get()?.time()?;
        let now = Instant::now();
        (now - begun < Self::SAMPLING_INTERVAL / 100).then_some((now, cpu))
    }

    /// Runs `body` and returns its result and the largest load between two consecutive samples, in
    /// percent of the CPUs that this process may use. The load is `None` if no two such samples are
    /// at least half a sampling interval apart, for example because `body` was too short. Only the
    /// first call measures a load; the load of later calls is `None`.
    pub fn measure_during<T>(&self, body: impl FnOnce() -> T) -> (T, Option<f64>) {
        std::thread::scope(|scope| {
            let meter = scope.spawn(|| {
                let mut max_load: Option<f64> = None;
                let mut before: Option<(Instant, Duration)> = None;
                while !self.done.load(Ordering::Relaxed) {
                    let now = self.read_cpu_time();
                    if let (Some((then, used)), Some((now, cpu))) = (before, now) {
                        let interval = now - then;
                        // The last interval can be too short for a meaningful load.
                        if interval >= Self::SAMPLING_INTERVAL / 2 {
                            let cpu_time = cpu.saturating_sub(used).as_secs_f64();
                            let load = cpu_time / interval.as_secs_f64() / cpu::allowed() as f64;
                            max_load = Some(max_load.unwrap_or(0.0).max(100.0 * load.min(1.0)));
                        }
                    }
                    before = now;
                    std::thread::park_timeout(Self::SAMPLING_INTERVAL);
                }
                max_load
            });
            let result = body();
            self.done.store(true, Ordering::Relaxed);
            meter.thread().unpark();
            (result, meter.join().unwrap_or_default())
        })
    }
}
