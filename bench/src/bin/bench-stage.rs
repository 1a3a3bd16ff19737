//! A stage with a known cost in CPU time and sleep, in nanoseconds for each byte.
//!
//! The cost holds for the input as a whole, not for each chunk: if a chunk takes too long, the next
//! one takes less time. The CPU time includes reading and writing.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use rustix::time::{ClockId, clock_gettime};

/// Read, work, sleep and write, at a set cost for each byte.
#[derive(Debug, Parser)]
struct Args {
    /// CPU time for each byte, in nanoseconds.
    #[arg(long, default_value_t = 0.0)]
    cpu: f64,
    /// Sleep for each byte, in nanoseconds.
    #[arg(long, default_value_t = 0.0)]
    sleep: f64,
    /// Make this many bytes instead of reading.
    #[arg(long)]
    source: Option<u64>,
    /// Bytes in a chunk.
    #[arg(long, default_value_t = 8192)]
    chunk: usize,
}

/// Shortest time to sleep. A shorter time is added to the sleep of the next chunk, because the
/// kernel would round it up.
const MIN_SLEEP: Duration = Duration::from_millis(1);

fn main() -> Result<()> {
    let args = Args::parse();
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut buffer = vec![b'x'; args.chunk];
    let mut handled: u64 = 0;
    let mut slept = Duration::ZERO;
    loop {
        let length = match args.source {
            Some(total) => args.chunk.min(usize::try_from(total - handled)?),
            None => input.read(&mut buffer)?,
        };
        if length == 0 {
            return Ok(());
        }
        handled += length as u64;
        work_until(Duration::from_secs_f64(handled as f64 * args.cpu / 1e9));
        slept += sleep_off(Duration::from_secs_f64(handled as f64 * args.sleep / 1e9), slept);
        output.write_all(&buffer[..length])?;
        output.flush()?;
    }
}

/// Spins until this thread has used `total` CPU time.
fn work_until(total: Duration) {
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    while used() < total {
        std::hint::spin_loop();
    }
}

/// Sleeps for the part of `total` that exceeds `slept`, if it is at least `MIN_SLEEP`. Returns the
/// time that the sleep took; 0 if it did not sleep.
fn sleep_off(total: Duration, slept: Duration) -> Duration {
    let due = total.saturating_sub(slept);
    if due < MIN_SLEEP {
        return Duration::ZERO;
    }
    let begun = Instant::now();
    std::thread::sleep(due);
    begun.elapsed()
}
