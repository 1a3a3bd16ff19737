//! Publishes the amount of input that a parallel run has read.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use contend_parallel::execute::Tally;
use contend_record::live::Unit;
use contend_report::render::units::bytes;

use super::{Publisher, Rates, chart};
use crate::records::save::Redaction;

/// The published input of a parallel run.
#[derive(Debug)]
pub struct PublishedInput {
    publisher: Publisher,
    started: Instant,
    rates: Rates,
}

impl PublishedInput {
    /// Begins to publish a run of the given pipeline.
    ///
    /// # Errors
    /// Returns an error if it cannot be published.
    pub fn begin(folder: &Path, text: &str) -> Result<Self> {
        let series = || vec!["input".to_owned()];
        let charts = vec![
            chart("Input read", Unit::BytesPerSecond, series()),
            chart("Share of the input read", Unit::Percent, series()),
        ];
        let publisher = Publisher::begin(folder, &Redaction::new([])?, "run", text, charts)?;
        Ok(Self { publisher, started: Instant::now(), rates: Rates::default() })
    }

    /// Publishes the amount of input read, if that is due.
    pub fn show(&mut self, tally: &Tally) {
        if !self.publisher.is_due() {
            return;
        }
        let (read, size) = (tally.bytes() as f64, tally.size().map(|size| size as f64));
        let rate = self.rates.add(self.started.elapsed(), &[Some(read)]);
        let share = size.filter(|&size| size > 0.0).map(|size| 100.0 * (read / size).min(1.0));
        let of = size.map_or_else(String::new, |size| format!(" of {}", bytes(size)));
        let note = format!("{}{of} read.", bytes(read));
        self.publisher.update(note, vec![rate, vec![share]]);
    }

    /// Publishes how the run ended, and the number under which it was saved, if it was.
    pub fn end(self, ending: &str, run: Option<i64>) {
        self.publisher.end(ending, run);
    }
}
