//! Publishes the progress of a run for `contend serve` (`--publish`).
//!
//! ```text
//! pipeline, threads, … ──▶ Publisher ──▶ DIRECTORY/PID.live ──▶ contend serve ──▶ browser
//! ```
//!
//! The directory belongs to the user alone. A publisher holds a lock on its file as long as it lives, so that
//! readers recognise the file of a program that was killed. The file appears under its name once it is locked
//! and has its first line; it is removed after its last line, which readers still read.
//!
//! Publishing must not disturb the run: an update is one short write to a file that is usually in memory,
//! [`MIN_INTERVAL`] or more after the last one, and less often the longer the run takes, so that a day's run
//! has a few megabytes. If a write fails, nothing more is published.

mod input;
mod rounds;
mod stages;
mod threads;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use contend_record::live::{Chart, End, FORMAT, Head, Line, Unit, Update};

use crate::records::save::Redaction;

pub use input::PublishedInput;
pub use rounds::PublishedRounds;
pub use stages::PublishedStages;
pub use threads::PublishedThreads;

/// Minimum time between two updates, at the start of a run.
pub const MIN_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum time between two updates in a long run.
const MAX_INTERVAL: Duration = Duration::from_secs(3);
/// Number of updates after which the minimum time is doubled.
const UPDATES_PER_INTERVAL: u32 = 1000;

/// Figures of a moment: a list for each chart.
pub type Values = Vec<Vec<Option<f64>>>;

/// The file in which a run publishes its progress. Removed when the value is dropped.
#[derive(Debug)]
pub struct Publisher {
    file: File,
    path: PathBuf,
    started: Instant,
    interval: Duration,
    /// When the next update is due, as a time since the start.
    due: Duration,
    updates: u32,
    /// Whether nothing more is written: the last line has been written, or a write has failed.
    is_over: bool,
}

impl Publisher {
    /// Begins to publish a run of the given verb, measured subject and charts. What looks like a secret in
    /// their texts is redacted.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or others can write to the directory.
    pub fn begin(
        folder: &Path,
        redaction: &Redaction,
        verb: &str,
        subject: &str,
        charts: Vec<Chart>,
    ) -> Result<Self> {
        let redact = |mut chart: Chart| {
            chart.series.iter_mut().for_each(|name| *name = redaction.apply(name));
            chart
        };
        let head = Head {
            format: FORMAT.to_owned(),
            verb: verb.to_owned(),
            subject: redaction.apply(subject),
            started_at: crate::commands::now(),
            charts: charts.into_iter().map(redact).collect(),
        };
        Self::create(folder, &head)
            .with_context(|| format!("cannot publish the run in {}", folder.display()))
    }

    fn create(folder: &Path, head: &Head) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let data = folder.metadata()?;
        if data.uid() != rustix::process::geteuid().as_raw() || data.mode() & 0o022 != 0 {
            let message = "other users can write to this directory";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let pid = std::process::id();
        let path = folder.join(format!("{pid}.live"));
        // Only in a container with the same home directory can another process have the same ID.
        if File::open(&path).is_ok_and(|file| file.try_lock_shared().is_err()) {
            let message = format!("a process {pid} of another container publishes there");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let hidden = folder.join(format!(".{pid}"));
        let _ = fs::remove_file(&hidden); // of a killed program that had the same PID
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
        let mut publisher = Self {
            file,
            path,
            started: Instant::now(),
            interval: MIN_INTERVAL,
            due: Duration::ZERO,
            updates: 0,
            is_over: false,
        };
        publisher.file.lock()?;
        publisher.write(&Line::Head(head.clone()))?;
        fs::rename(&hidden, &publisher.path)?;
        Ok(publisher)
    }

    /// Returns whether the time since the last update permits another one.
    pub fn is_due(&self) -> bool {
        !self.is_over && self.started.elapsed() >= self.due
    }

    /// Publishes the figures of this moment, with the state of the run in a few words.
    pub fn update(&mut self, note: String, values: Values) {
        if self.is_over {
            return;
        }
        let elapsed = self.started.elapsed();
        let update = Update { seconds: elapsed.as_secs_f64(), note, values };
        self.is_over = self.write(&Line::Update(update)).is_err();
        self.updates += 1;
        if self.updates.is_multiple_of(UPDATES_PER_INTERVAL) {
            self.interval = (2 * self.interval).min(MAX_INTERVAL);
        }
        self.due = elapsed + self.interval;
    }

    /// Publishes how the run ended, and the number under which it was saved, if it was.
    pub fn end(mut self, ending: &str, run: Option<i64>) {
        self.write_end(ending, run);
    }

    fn write_end(&mut self, ending: &str, run: Option<i64>) {
        if !std::mem::replace(&mut self.is_over, true) {
            let end = End { ending: ending.to_owned(), run };
            let _ = self.write(&Line::End(end)); // the reader then learns only that the run has ended
        }
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.write_end("", None);
        let _ = fs::remove_file(&self.path); // otherwise a reader removes it
    }
}

/// Returns a chart with a line for each name.
fn chart(title: &str, unit: Unit, series: Vec<String>) -> Chart {
    Chart { title: title.to_owned(), unit, series }
}

/// Turns counters, which only grow, into rates.
#[derive(Debug, Default)]
pub struct Rates {
    before: Option<(Duration, Vec<Option<f64>>)>,
}

impl Rates {
    /// Returns how fast each counter has grown per second since the last call, from its values at the given
    /// time. The first call compares with zero. Returns `None` for counters that are or were unknown, or that have
    /// shrunk, and if no time has passed.
    pub fn add(&mut self, time: Duration, counters: &[Option<f64>]) -> Vec<Option<f64>> {
        let zeros = || (Duration::ZERO, vec![Some(0.0); counters.len()]);
        let (then, before) = self.before.take().unwrap_or_else(zeros);
        let passed = time.saturating_sub(then).as_secs_f64();
        let rate = |(now, before): (&Option<f64>, &Option<f64>)| {
            let growth = (*now)? - (*before)?;
            (passed > 0.0 && growth >= 0.0).then(|| growth / passed)
        };
        let rates = counters.iter().zip(&before).map(rate).collect();
        self.before = Some((time, counters.to_vec()));
        rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction() -> Redaction {
        Redaction::new([]).expect("built-in patterns")
    }

    fn lines(path: &Path) -> Vec<Line> {
        let text = fs::read_to_string(path).expect("a file");
        text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
    }

    #[test]
    fn a_run_is_published_from_its_head_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("new/live");
        let subject = "x --token=abc";
        let charts = || vec![chart("CPUs", Unit::Count, vec![subject.to_owned()])];
        let begin = || Publisher::begin(&folder, &redaction(), "pipe", subject, charts());
        let mut publisher = begin().expect("a new folder");
        assert!(publisher.is_due() && folder.metadata().expect("there").mode() & 0o777 == 0o700);
        publisher.update("1 stage".to_owned(), vec![vec![Some(0.5)]]);
        assert!(!publisher.is_due());
        let path = publisher.path.clone();
        let found = lines(&path);
        let [Line::Head(head), Line::Update(update)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(head.subject, "x --token=[redacted]");
        assert_eq!(head.charts[0].series, ["x --token=[redacted]"]);
        assert_eq!((update.note.as_str(), &update.values), ("1 stage", &vec![vec![Some(0.5)]]));
        let reader = File::open(&path).expect("there");
        assert!(reader.try_lock_shared().is_err(), "the publisher holds the lock");
        fs::hard_link(&path, folder.join("copy")).expect("room");
        publisher.end("exit 0", Some(7));
        assert!(!path.exists() && reader.try_lock_shared().is_ok());
        let end = End { ending: "exit 0".to_owned(), run: Some(7) };
        assert_eq!(lines(&folder.join("copy")).last(), Some(&Line::End(end)));
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("own");
        let error = Publisher::begin(folder.path(), &redaction(), "run", "x", Vec::new());
        let error = format!("{:#}", error.expect_err("not private"));
        assert!(error.ends_with("other users can write to this directory"), "{error}");
    }

    #[test]
    fn a_file_of_another_container_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("live");
        let begin = || Publisher::begin(&folder, &redaction(), "run", "x", Vec::new());
        let first = begin().expect("a new folder");
        let error = format!("{:#}", begin().expect_err("the file is in use"));
        assert!(error.contains("of another container"), "{error}");
        drop(first);
        assert!(begin().is_ok());
    }

    #[test]
    fn updates_become_rarer_up_to_a_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut publisher =
            Publisher::begin(&folder.path().join("live"), &redaction(), "run", "x", Vec::new())
                .expect("a new folder");
        for _ in 0..UPDATES_PER_INTERVAL {
            publisher.update(String::new(), Vec::new());
        }
        assert_eq!(publisher.interval, 2 * MIN_INTERVAL);
        for _ in 0..10 * UPDATES_PER_INTERVAL {
            publisher.update(String::new(), Vec::new());
        }
        assert_eq!(publisher.interval, MAX_INTERVAL);
    }

    #[test]
    fn counters_become_rates() {
        let mut rates = Rates::default();
        let second = Duration::from_secs;
        assert_eq!(rates.add(second(2), &[Some(4.0), None]), [Some(2.0), None]);
        assert_eq!(rates.add(second(3), &[Some(5.0), Some(1.0)]), [Some(1.0), None]);
        assert_eq!(rates.add(second(3), &[Some(6.0), Some(2.0)]), [None, None]);
        assert_eq!(rates.add(second(4), &[Some(1.0), Some(5.0)]), [None, Some(3.0)]);
    }
}
