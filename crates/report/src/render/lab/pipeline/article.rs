//! Measurements from the article that the suite follows (pipelines in the shell, 2021), on a
//! processor with 4 cores and 8 threads.

/// Real, user and system time of a whole pipeline, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Whole {
    pub real: f64,
    pub user: f64,
    pub system: f64,
}

const fn whole(real: f64, user: f64, system: f64) -> Whole {
    Whole { real, user, system }
}

impl Whole {
    /// Returns CPU time in percent of wall time, as `time` prints it: 200 is two fully used CPUs.
    pub fn cpu_percent(&self) -> f64 {
        100.0 * (self.user + self.system) / self.real
    }
}

/// A JSON pipeline: implementation of awk, number of commands in the tokenizer, times of the whole
/// pipeline, and CPU use of each stage in percent.
pub type Json = (&'static str, &'static str, Whole, &'static [f64]);

pub const JSON: [Json; 6] = [
    ("original-awk", "one", whole(4.787, 7.135, 0.659), &[63.02, 99.98]),
    ("original-awk", "four", whole(4.853, 8.977, 0.778), &[2.57, 3.37, 35.36, 60.18, 99.91]),
    ("mawk", "one", whole(2.377, 3.776, 0.045), &[100.0, 60.73]),
    ("mawk", "four", whole(1.693, 4.168, 0.122), &[4.99, 5.52, 59.03, 99.89, 84.23]),
    ("gawk", "one", whole(6.409, 9.434, 0.046), &[100.0, 47.91]),
    ("gawk", "four", whole(5.155, 10.351, 0.197), &[2.57, 1.21, 42.90, 99.99, 58.07]),
];

/// Ten concurrent copies of a JSON pipeline, each over the whole input: implementation of awk,
/// number of commands in the tokenizer, and times of all copies together.
pub const TEN: [(&str, &str, Whole); 4] = [
    ("mawk", "one", whole(9.07, 70.37, 0.95)),
    ("mawk", "four", whole(9.36, 72.36, 2.02)),
    ("gawk", "one", whole(23.00, 181.58, 1.57)),
    ("gawk", "four", whole(24.33, 191.26, 2.41)),
];

/// Pipelines of four `sed` commands: form, whether a slow stage follows, times of the whole
/// pipeline, and CPU use of each stage in percent, as far as the article reports it.
pub const SED: [(&str, &str, Whole, &[f64]); 4] = [
    ("piped", "no", whole(0.537, 1.850, 0.215), &[]),
    ("fused", "no", whole(1.360, 1.336, 0.073), &[]),
    ("piped", "yes", whole(4.080, 6.156, 0.493), &[13.0, 14.0, 16.0, 13.0, 99.0]),
    ("fused", "yes", whole(3.789, 5.194, 0.219), &[40.0, 100.0]),
];

/// Pipelines with a filter: the filter program, whether it comes first or last, and times of the
/// whole pipeline.
pub const FILTER: [(&str, &str, Whole); 4] = [
    ("grep", "late", whole(0.496, 0.480, 0.108)),
    ("grep", "early", whole(0.089, 0.083, 0.044)),
    ("sed", "late", whole(0.466, 0.552, 0.159)),
    ("sed", "early", whole(0.180, 0.164, 0.079)),
];

/// Commands as the middle stage, and the delay of each of five lines in seconds. The lines were
/// produced one second apart.
pub const HOLD: [(&str, &str); 4] = [
    ("cat", "0 0 0 0 0"),
    ("sort", "5 4 3 2 1"),
    ("xargs echo", "5 4 3 2 1"),
    ("xargs -n 1 echo", "0 0 0 0 0"),
];

/// Estimates of the time to start programs: title, value of the parameter `command`, and time. The
/// article assumes half a millisecond each for fork and exec.
pub const STARTUP: [(&str, &str, &str); 8] = [
    ("fork", "fork", "0.5ms"),
    ("a static program", "static", "1ms"),
    ("a subshell", "bash-subshell", "0.5ms"),
    ("true", "true", "1ms"),
    ("mawk", "mawk", "3ms"),
    ("gawk", "gawk", "3ms"),
    ("busybox awk", "busybox-awk", "3ms"),
    ("original-awk", "original-awk", "3ms"),
];
