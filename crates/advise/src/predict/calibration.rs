//! Measures the costs of pipes and of starting programs on this machine, in a fraction of a second.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use contend_record::advice::CalibrationRecord;
use contend_record::stats::median;

/// Costs of pipe transfers and program starts. Those measured here are wall times, which
/// approximate CPU times on an idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Seconds to pass one byte through a pipe in a large transfer, without the cost of the calls.
    pub pipe_byte: f64,
    /// Seconds for one write and one read of a single byte, neither of which blocks.
    pub pipe_call: f64,
    /// Seconds from the start to the exit of a program that does nothing, or its CPU time if an
    /// earlier lab run measured it.
    pub start_up: f64,
    /// ID of the lab run that measured `start_up`, or `None` if it was measured here.
    pub run: Option<i64>,
}

/// A start-up cost from an earlier lab run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownStartUp {
    /// CPU time in seconds.
    pub seconds: f64,
    /// ID of the lab run that measured it.
    pub run: i64,
}

/// Number of repetitions of each measurement. The result is their median.
const REPETITIONS: usize = 15;
/// Size in bytes of a large transfer, which fits into a pipe of default capacity.
const TRANSFER_BYTES: usize = 64 << 10;

impl Calibration {
    /// Measures the costs, except for the start-up cost if it is `known`.
    ///
    /// # Errors
    /// Returns an error if a pipe or a process cannot be created.
    pub fn measure(known: Option<KnownStartUp>) -> io::Result<Self> {
        let start_up = match known {
            Some(known) => known.seconds,
            None => repeated(|| start_and_end().map(|time| time.as_secs_f64()))?,
        };
        let piece = repeated(|| Ok(through_pipe(TRANSFER_BYTES, 8)?.as_secs_f64() / 8.0))?;
        let pipe_call = repeated(|| Ok(through_pipe(1, 200)?.as_secs_f64() / 200.0))?;
        let pipe_byte = (piece - pipe_call).max(0.0) / TRANSFER_BYTES as f64;
        Ok(Self { pipe_byte, pipe_call, start_up, run: known.map(|known| known.run) })
    }

    /// Returns the calibration as part of a record.
    pub fn record(&self) -> CalibrationRecord {
        CalibrationRecord {
            pipe_byte_seconds: self.pipe_byte,
            pipe_call_seconds: self.pipe_call,
            start_up_seconds: self.start_up,
            start_up_from_run: self.run,
        }
    }

    /// Returns the CPU time in seconds to pass `bytes` bytes through a pipe with `calls` writes and
    /// as many reads.
    pub fn pipe(&self, bytes: f64, calls: f64) -> f64 {
        bytes * self.pipe_byte + calls * self.pipe_call
    }
}

fn repeated(mut once: impl FnMut() -> io::Result<f64>) -> io::Result<f64> {
    let times: Vec<f64> = (0..REPETITIONS).map(|_| once()).collect::<io::Result<_>>()?;
    Ok(median(&times).unwrap_or(0.0))
}

fn start_and_end() -> io::Result<Duration> {
    let begun = Instant::now();
    Command::new("true").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    Ok(begun.elapsed())
}

fn through_pipe(bytes: usize, times: u32) -> io::Result<Duration> {
    let (mut reader, mut writer) = io::pipe()?;
    let mut buffer = vec![1; bytes];
    let begun = Instant::now();
    for _ in 0..times {
        writer.write_all(&buffer)?;
        reader.read_exact(&mut buffer)?;
    }
    Ok(begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_something_and_a_known_one_is_kept() {
        let known = KnownStartUp { seconds: 0.001, run: 7 };
        let calibration = Calibration::measure(Some(known)).expect("pipes");
        assert_eq!(calibration.record().start_up_from_run, Some(7));
        assert!((calibration.start_up - 0.001).abs() < 1e-12);
        assert!(calibration.pipe_call > 0.0);
        assert!(calibration.pipe(1e6, 10.0) >= 10.0 * calibration.pipe_call);
        assert!(start_and_end().expect("true") > Duration::ZERO);
    }
}
