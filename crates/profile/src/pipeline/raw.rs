//! The observations of a run, from which the accounts are computed.

use std::time::Duration;

use super::stage::RawStage;
use super::timeline::{FillSum, Timeline};
use super::trace::StateLog;
use crate::observe::target::End;

/// Maximum time between two samples of the stages.
pub const MAX_SAMPLING_INTERVAL: Duration = Duration::from_millis(25);

/// Observations of a finished run.
#[derive(Debug)]
pub struct RawRun {
    /// The stages, first to last.
    pub stages: Vec<RawStage>,
    /// Fill of the pipes between the stages, first to last.
    pub fills: Vec<FillSamples>,
    /// Fill of the pipe that feeds the first stage; without samples if there is no such pipe.
    pub input_fill: FillSamples,
    /// Time from the opening of the gate until all stages have ended: the largest
    /// [`RawStage::ended`].
    pub wall: Duration,
    /// Whether `pipefail` was on, set by the setup or requested by the user.
    pub pipefail: bool,
    /// The shell's exit code; `None` if a signal killed the shell or it could not be waited for.
    pub shell_status: Option<i32>,
    /// The signal that interrupted contend, if any.
    pub interrupted: Option<i32>,
    /// Number of samples.
    pub ticks: u64,
    /// CPU time of orphans that cannot be attributed to any stage.
    pub orphans_cpu: Duration,
    /// CPU time of contend itself during the run.
    pub own_cpu: Duration,
    /// Largest resident set of contend itself since its start, in bytes; 0 if it cannot be read.
    pub own_peak_rss: u64,
    /// Counters of the stages over time.
    pub timeline: Timeline,
    /// The states of the stages over time, if a trace was requested.
    pub states: Option<StateLog>,
    /// Mean number of stages running on a CPU or queued for one, over the samples.
    pub runnable_mean: f64,
}

impl RawRun {
    /// Returns whether contend was attached to running stages, rather than having started them.
    pub fn is_attached(&self) -> bool {
        self.stages.iter().any(|stage| stage.is_attached)
    }

    /// Returns the stages' exit codes as a shell reports them.
    pub fn statuses(&self) -> Vec<i32> {
        self.stages.iter().map(RawStage::shell_code).collect()
    }

    /// Returns the pipeline's exit code as a shell reports it: that of the shell or, if that is
    /// unknown, one computed from the exit codes of the stages. `inverted` is whether the pipeline
    /// begins with `!`.
    pub fn exit_code(&self, inverted: bool) -> i32 {
        if let Some(status) = self.shell_status {
            return status;
        }
        let mut codes = self.statuses().into_iter().rev();
        let code = if self.pipefail {
            codes.find(|&code| code != 0).unwrap_or(0)
        } else {
            codes.next().unwrap_or(0)
        };
        if inverted { i32::from(code == 0) } else { code }
    }
}

/// Statistics of a pipe's fill over the samples.
#[derive(Debug, Clone, Copy, Default)]
pub struct FillSamples {
    /// Sum of the numbers of bytes in the pipe at all samples.
    pub sum: u64,
    /// Maximum number of bytes in the pipe at any sample.
    pub most: u64,
    /// Number of samples.
    pub samples: u64,
    /// Number of samples that found the pipe empty or nearly so.
    pub empty: u64,
    /// Number of samples that found the pipe full or nearly so.
    pub full: u64,
    /// Capacity of the pipe in bytes at the last sample.
    pub capacity: u64,
}

impl FillSamples {
    /// Returns the mean number of bytes in the pipe, or `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }

    /// Returns the sum over the samples, and their number.
    pub fn total(&self) -> FillSum {
        FillSum { bytes: self.sum, samples: self.samples }
    }

    /// Returns `counted` as a share of the samples, from 0 to 1, or 0 without samples.
    pub fn share(&self, counted: u64) -> f64 {
        counted as f64 / self.samples.max(1) as f64
    }

    /// Samples the fill of the pipe that `end` refers to. Does nothing if `end` is not a pipe or
    /// cannot be read.
    pub fn sample(&mut self, end: Option<&End>) {
        if let Some(fill) = end.and_then(End::fill) {
            self.sum += fill.bytes;
            self.most = self.most.max(fill.bytes);
            self.samples += 1;
            // The tolerance is needed because the writer may have continued while contend used the
            // CPU that the reader needed.
            let tolerance = fill.capacity / 16;
            self.empty += u64::from(fill.bytes < tolerance);
            self.full += u64::from(fill.bytes + tolerance > fill.capacity);
            self.capacity = fill.capacity;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::pipeline::account::tests::raw_stage;
    use contend_sys::child::ExitStatus;

    fn run_of(codes: &[i32], pipefail: bool) -> RawRun {
        let stages = codes
            .iter()
            .map(|&code| RawStage { status: Some(ExitStatus::Exited(code)), ..raw_stage() })
            .collect();
        RawRun { pipefail, ..raw_run(stages) }
    }

    /// Returns a run of 1 s with an empty timeline.
    pub(in crate::pipeline) fn raw_run(stages: Vec<RawStage>) -> RawRun {
        RawRun {
            stages,
            fills: Vec::new(),
            input_fill: FillSamples::default(),
            wall: Duration::from_secs(1),
            pipefail: false,
            shell_status: None,
            interrupted: None,
            ticks: 1,
            orphans_cpu: Duration::ZERO,
            own_cpu: Duration::ZERO,
            own_peak_rss: 0,
            timeline: Timeline::default(),
            states: None,
            runnable_mean: 1.0,
        }
    }

    #[test]
    fn the_exit_code_is_that_of_the_shell() {
        assert_eq!(run_of(&[1, 0], false).exit_code(false), 0);
        assert_eq!(run_of(&[1, 0], false).exit_code(true), 1);
        assert_eq!(run_of(&[3, 4, 0], true).exit_code(false), 4);
        assert_eq!(run_of(&[0, 0], true).exit_code(false), 0);
        assert_eq!(run_of(&[0, 7], false).exit_code(true), 0);
    }
}
