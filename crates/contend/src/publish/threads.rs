//! Publishes what the threads of an observed program do.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use contend_record::doctor::{DoctorRecord, ThreadState};
use contend_record::live::Unit;

use super::{Publisher, Rates, chart};
use crate::records::save::Redaction;

/// Time between two updates. Each takes a snapshot of all threads.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two updates, as a multiple of the time that one takes, if that is longer than [`INTERVAL`].
const INTERVAL_RATIO: u32 = 50;
/// Longest time between two updates. The first one takes longer than the others, as it looks up symbols.
const MAX_INTERVAL: Duration = Duration::from_secs(2);

/// States that have a line of their own, with their names.
const STATES: [(ThreadState, &str); 4] = [
    (ThreadState::Running, "running"),
    (ThreadState::Runnable, "queued for a CPU"),
    (ThreadState::Lock, "waiting for a lock"),
    (ThreadState::Sleep, "sleeping"),
];

/// The published threads of a program.
#[derive(Debug)]
pub struct PublishedThreads {
    publisher: Publisher,
    /// Counters of the CPU time, and of the time of all threads by state.
    rates: [Rates; 2],
    /// When the next update is due, as a time since the start of the observation.
    due: Duration,
}

impl PublishedThreads {
    /// Begins to publish a program. `command` is its command line.
    ///
    /// # Errors
    /// Returns an error if it cannot be published.
    pub fn begin(folder: &Path, redaction: &Redaction, command: &str) -> Result<Self> {
        let states = STATES.iter().map(|(_, name)| (*name).to_owned());
        let charts = vec![
            chart("CPUs that the program uses", Unit::Count, vec!["program".to_owned()]),
            chart(
                "Threads by state",
                Unit::Count,
                states.chain(["waiting for anything else".to_owned()]).collect(),
            ),
        ];
        let publisher = Publisher::begin(folder, redaction, "doctor", command, charts)?;
        Ok(Self { publisher, rates: Default::default(), due: INTERVAL })
    }

    /// Publishes the record that `snapshot` takes, if that is due. `elapsed` is the time since the start of the
    /// observation.
    pub fn show(&mut self, elapsed: Duration, snapshot: impl FnOnce() -> DoctorRecord) {
        if elapsed < self.due || !self.publisher.is_due() {
            return;
        }
        let begun = Instant::now();
        let record = snapshot();
        let time = Duration::from_secs_f64(record.observed_seconds.max(0.0));
        let of = |state| record.state_seconds.get(&state).copied().unwrap_or(0.0);
        let own: Vec<f64> = STATES.iter().map(|(state, _)| of(*state)).collect();
        let all: f64 = record.state_seconds.values().sum();
        let other = (all - own.iter().sum::<f64>()).max(0.0);
        let states: Vec<_> = own.into_iter().chain([other]).map(Some).collect();
        let cpu = self.rates[0].add(time, &[Some(record.cpu_seconds)]);
        let values = vec![cpu, self.rates[1].add(time, &states)];
        self.publisher.update(record.diagnosis, values);
        self.due = elapsed + (INTERVAL_RATIO * begun.elapsed()).clamp(INTERVAL, MAX_INTERVAL);
    }

    /// Publishes how the observation ended, and the number under which it was saved, if it was.
    pub fn end(self, ending: &str, run: Option<i64>) {
        self.publisher.end(ending, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::live::Line;

    #[test]
    fn threads_are_published_as_means_by_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("live");
        let redaction = Redaction::new([]).expect("built-in patterns");
        let mut threads =
            PublishedThreads::begin(&folder, &redaction, "prog").expect("a new folder");
        let record = |seconds: f64| DoctorRecord {
            observed_seconds: seconds,
            cpu_seconds: 1.5 * seconds,
            state_seconds: [(ThreadState::Running, 2.0 * seconds), (ThreadState::Disk, seconds)]
                .into(),
            ..DoctorRecord::default()
        };
        threads.show(Duration::from_millis(10), || panic!("it is too early"));
        threads.show(Duration::from_secs(1), || record(1.0));
        let file = folder.join(format!("{}.live", std::process::id()));
        let text = std::fs::read_to_string(file).expect("a file");
        let last = text.lines().last().expect("a line");
        let Ok(Line::Update(update)) = serde_json::from_str(last) else { panic!("{last}") };
        let states = [2.0, 0.0, 0.0, 0.0, 1.0].map(Some).to_vec();
        assert_eq!(update.values, [vec![Some(1.5)], states]);
    }
}
