//! Publishes the rounds of a comparison of pipelines.

use std::path::Path;

use anyhow::Result;
use contend_record::live::Unit;

use super::{Publisher, Values, chart};
use crate::records::save::Redaction;

/// The published rounds of a comparison.
#[derive(Debug)]
pub struct PublishedRounds {
    publisher: Publisher,
    /// Wall time of the last run of each variant, in seconds; `None` before the first one.
    wall_seconds: Vec<Option<f64>>,
}

impl PublishedRounds {
    /// Begins to publish a comparison. `variants` are the names of the variants with their commands.
    ///
    /// # Errors
    /// Returns an error if it cannot be published.
    pub fn begin(
        folder: &Path,
        redaction: &Redaction,
        subject: &str,
        variants: Vec<String>,
    ) -> Result<Self> {
        let wall_seconds = vec![None; variants.len()];
        let charts = vec![
            chart("Wall time of the last run", Unit::Seconds, variants),
            chart("Share of the runs that have ended", Unit::Percent, vec!["runs".to_owned()]),
        ];
        let publisher = Publisher::begin(folder, redaction, "pipe", subject, charts)?;
        Ok(Self { publisher, wall_seconds })
    }

    /// Notes the wall time of a run of the variant at `place`, and publishes the latest times if that is due.
    /// `share` of all runs have ended, from 0 to 1, and `note` is the state of the comparison in a few words.
    pub fn show(&mut self, place: usize, wall_seconds: f64, share: f64, note: String) {
        self.wall_seconds[place] = Some(wall_seconds);
        if self.publisher.is_due() {
            let values: Values = vec![self.wall_seconds.clone(), vec![Some(100.0 * share)]];
            self.publisher.update(note, values);
        }
    }

    /// Publishes how the comparison ended, and the number under which it was saved, if it was.
    pub fn end(self, ending: &str, run: Option<i64>) {
        self.publisher.end(ending, run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::live::Line;

    #[test]
    fn the_last_run_of_each_variant_is_published() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("live");
        let redaction = Redaction::new([]).expect("built-in patterns");
        let names = ["A cat", "B tac"].map(str::to_owned).to_vec();
        let mut rounds =
            PublishedRounds::begin(&folder, &redaction, "cat vs tac", names).expect("a folder");
        rounds.show(1, 0.5, 0.25, "round 1 of 2".to_owned());
        rounds.show(0, 0.25, 0.5, "too early for another update".to_owned());
        let file = folder.join(format!("{}.live", std::process::id()));
        let text = std::fs::read_to_string(file).expect("a file");
        let last = text.lines().last().expect("a line");
        let Ok(Line::Update(update)) = serde_json::from_str(last) else { panic!("{last}") };
        assert_eq!(update.values, [vec![None, Some(0.5)], vec![Some(25.0)]]);
        assert_eq!(update.note, "round 1 of 2");
        assert_eq!(rounds.wall_seconds, [Some(0.25), Some(0.5)]);
    }
}
