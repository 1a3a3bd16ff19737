//! What a run leaves, as observed.

use std::time::Duration;

use super::stage::RawStage;
use crate::observe::target::End;

/// Longest time between two looks.
pub const LONGEST: Duration = Duration::from_millis(25);

/// What a finished run leaves, as observed.
#[derive(Debug)]
pub struct RawRun {
    /// The stages, first to last.
    pub stages: Vec<RawStage>,
    /// The pipes between them.
    pub fills: Vec<Fills>,
    /// How full the pipe is that feeds the first stage, if it is one.
    pub input_fill: Fills,
    /// From the opening of the gate to the end of the last stage.
    pub wall: Duration,
    /// The shell set or was given `pipefail`.
    pub pipefail: bool,
    /// What the shell itself ended with, if it ended by itself.
    pub shell_status: Option<i32>,
    /// The signal that asked contend to end, if any.
    pub interrupted: Option<i32>,
    /// How often the stages were looked at.
    pub ticks: u64,
    /// CPU time of orphans that no stage is known to have started.
    pub orphans_cpu: Duration,
    /// CPU time of contend itself meanwhile.
    pub own_cpu: Duration,
    /// Largest resident set of contend itself so far, in bytes.
    pub own_peak_rss: u64,
    /// Mean number of stages on a CPU or ready for one, over the looks.
    pub runnable_mean: f64,
}

impl RawRun {
    /// The stages' statuses as the shell counts them.
    pub fn statuses(&self) -> Vec<i32> {
        self.stages.iter().map(RawStage::shell_code).collect()
    }

    /// The pipeline's status as the shell would return it; `inverted` by a `!` before it.
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

/// How full a pipe was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fills {
    /// Sum of the bytes inside over the looks.
    pub sum: u64,
    /// Most bytes inside at any look.
    pub most: u64,
    /// Looks.
    pub looks: u64,
    /// Looks that found it empty or nearly so.
    pub empty: u64,
    /// Looks that found it full or nearly so.
    pub full: u64,
    /// Bytes that fit, at the last look.
    pub capacity: u64,
}

impl Fills {
    /// Bytes inside on average.
    pub fn mean(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.sum as f64 / self.looks as f64)
    }

    /// The part of the looks that found it as `counted`; none where there was no look.
    pub fn share(&self, counted: u64) -> f64 {
        counted as f64 / self.looks.max(1) as f64
    }

    /// Adds what is in the pipe that `end` leads to, if it is one.
    pub fn look(&mut self, end: Option<&End>) {
        if let Some(fill) = end.and_then(End::fill) {
            self.sum += fill.bytes;
            self.most = self.most.max(fill.bytes);
            self.looks += 1;
            // Its writer may have gone on while we took the CPU that its reader wanted.
            let little = fill.capacity / 16;
            self.empty += u64::from(fill.bytes < little);
            self.full += u64::from(fill.bytes + little > fill.capacity);
            self.capacity = fill.capacity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::account::tests::raw_stage;
    use contend_sys::child::ExitStatus;

    fn run_of(codes: &[i32], pipefail: bool) -> RawRun {
        let stages = codes
            .iter()
            .map(|&code| RawStage { status: Some(ExitStatus::Exited(code)), ..raw_stage() })
            .collect();
        RawRun {
            stages,
            fills: Vec::new(),
            input_fill: Fills::default(),
            wall: Duration::from_secs(1),
            pipefail,
            shell_status: None,
            interrupted: None,
            ticks: 1,
            orphans_cpu: Duration::ZERO,
            own_cpu: Duration::ZERO,
            own_peak_rss: 0,
            runnable_mean: 1.0,
        }
    }

    #[test]
    fn the_status_is_the_shell_s() {
        assert_eq!(run_of(&[1, 0], false).exit_code(false), 0);
        assert_eq!(run_of(&[1, 0], false).exit_code(true), 1);
        assert_eq!(run_of(&[3, 4, 0], true).exit_code(false), 4);
        assert_eq!(run_of(&[0, 0], true).exit_code(false), 0);
        assert_eq!(run_of(&[0, 7], false).exit_code(true), 0);
    }
}
