//! A stage with a known cost in CPU time and sleep, in nanoseconds for each byte.
//!
//! With `--barrier`, it writes nothing until its input has ended, as sort does: it then works alone
//! for a set time, and writes as many bytes as it has read, at a cost of their own.
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
    /// Bytes in a chunk, which the stage reads completely before it works on it. If a chunk is
    /// larger than a pipe, the stages before and after this one cannot work at the same time.
    #[arg(long, default_value_t = 8192)]
    chunk: usize,
    /// Write nothing before the end of the input.
    #[arg(long)]
    barrier: bool,
    /// With --barrier: CPU time after the end of the input, in seconds.
    #[arg(long, default_value_t = 0.0)]
    alone_cpu: f64,
    /// With --barrier: sleep after the end of the input, in seconds.
    #[arg(long, default_value_t = 0.0)]
    alone_sleep: f64,
    /// With --barrier: CPU time for each byte written, in nanoseconds.
    #[arg(long, default_value_t = 0.0)]
    emit_cpu: f64,
    /// With --barrier: sleep for each byte written, in nanoseconds.
    #[arg(long, default_value_t = 0.0)]
    emit_sleep: f64,
}

/// Shortest time to sleep. A shorter time is added to the sleep of the next chunk, because the
/// kernel would round it up.
const MIN_SLEEP: Duration = Duration::from_micros(300);

/// Size of the chunks that a barrier writes, in bytes.
const EMITTED_CHUNK_BYTES: u64 = 8192;

fn main() -> Result<()> {
    let args = Args::parse();
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut buffer = vec![b'x'; args.chunk];
    let mut handled: u64 = 0;
    let mut work = Work::default();
    loop {
        let length = match args.source {
            Some(total) => args.chunk.min(usize::try_from(total - handled)?),
            None => read_chunk(&mut input, &mut buffer)?,
        };
        if length == 0 {
            break;
        }
        handled += length as u64;
        work.add(length as f64 * args.cpu / 1e9, length as f64 * args.sleep / 1e9);
        if !args.barrier {
            output.write_all(&buffer[..length])?;
            output.flush()?;
        }
    }
    if args.barrier {
        work.add(args.alone_cpu, args.alone_sleep);
        let chunk = vec![b'x'; usize::try_from(EMITTED_CHUNK_BYTES)?];
        while handled > 0 {
            let length = handled.min(EMITTED_CHUNK_BYTES);
            handled -= length;
            work.add(length as f64 * args.emit_cpu / 1e9, length as f64 * args.emit_sleep / 1e9);
            output.write_all(&chunk[..usize::try_from(length)?])?;
            output.flush()?;
        }
    }
    Ok(())
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes.
fn read_chunk(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match input.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

/// The work due so far, and the sleep already taken.
#[derive(Default)]
struct Work {
    /// CPU time that should have been used, in seconds.
    cpu: f64,
    /// Time that should have been slept, in seconds.
    sleep: f64,
    slept: Duration,
}

impl Work {
    /// Adds `cpu` and `sleep`, both in seconds, to the work that is due. Then spins and sleeps
    /// until it is done, except for a sleep shorter than [`MIN_SLEEP`].
    fn add(&mut self, cpu: f64, sleep: f64) {
        self.cpu += cpu;
        self.sleep += sleep;
        work_until(Duration::from_secs_f64(self.cpu));
        self.slept += sleep_off(Duration::from_secs_f64(self.sleep), self.slept);
    }
}

/// Spins until the CPU time of this thread reaches `total`.
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
