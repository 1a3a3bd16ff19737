//! Publishes the stages of a pipeline.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use contend_profile::pipeline::progress::{Progress, ProgressStage};
use contend_record::live::Unit;

use super::{Publisher, Rates, chart};
use crate::records::save::Redaction;

/// The published stages of one or several runs of a pipeline.
#[derive(Debug)]
pub struct PublishedStages {
    publisher: Publisher,
    /// Counters of CPU time and of bytes in the current run.
    rates: [Rates; 2],
    run: u32,
    runs: u32,
}

impl PublishedStages {
    /// Begins to publish a pipeline that will run `runs` times. `commands` are the texts of its stages.
    ///
    /// # Errors
    /// Returns an error if it cannot be published.
    pub fn begin(
        folder: &Path,
        redaction: &Redaction,
        subject: &str,
        commands: &[String],
        runs: u32,
    ) -> Result<Self> {
        let names = || {
            let number = |(index, command): (usize, &String)| format!("{} {command}", index + 1);
            commands.iter().enumerate().map(number).collect()
        };
        let charts = vec![
            chart("CPUs that each stage uses", Unit::Count, names()),
            chart("Bytes that each stage writes", Unit::BytesPerSecond, names()),
        ];
        let publisher = Publisher::begin(folder, redaction, "pipe", subject, charts)?;
        Ok(Self { publisher, rates: Default::default(), run: 0, runs })
    }

    /// Must be called before every run.
    pub fn begin_run(&mut self) {
        self.run += 1;
        self.rates = Default::default();
    }

    /// Publishes the states of the stages if that is due.
    pub fn show(&mut self, progress: &Progress<'_>) {
        let &Progress::Running { elapsed, stages } = progress else { return };
        if !self.publisher.is_due() {
            return;
        }
        let cpu = |stage: &ProgressStage| {
            let running = stage.time.active_tasks.saturating_sub(stage.run_queue);
            Some(running.as_secs_f64())
        };
        let written = |stage: &ProgressStage| stage.bytes_out.map(|bytes| bytes as f64);
        let cpu: Vec<_> = stages.iter().map(cpu).collect();
        let written: Vec<_> = stages.iter().map(written).collect();
        let values = vec![self.rates[0].add(elapsed, &cpu), self.rates[1].add(elapsed, &written)];
        self.publisher.update(self.note(elapsed, stages), values);
    }

    fn note(&self, elapsed: Duration, stages: &[ProgressStage]) -> String {
        let running = stages.iter().filter(|stage| stage.state.is_some()).count();
        let run = match self.runs {
            0 | 1 => String::new(),
            runs => format!("Run {} of {runs}, {:.0} s. ", self.run, elapsed.as_secs_f64()),
        };
        format!("{run}{running} of {} stages running.", stages.len())
    }

    /// Publishes that the stages have ended, and what contend does next.
    pub fn announce(&mut self, next: &str) {
        self.publisher.update(next.to_owned(), Vec::new());
    }

    /// Publishes how the pipeline ended, and the number under which it was saved, if it was.
    pub fn end(self, ending: &str, run: Option<i64>) {
        self.publisher.end(ending, run);
    }
}
