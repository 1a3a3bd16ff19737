//! The subject of experiments that run a pipeline.

use contend_record::lab::Step;

use super::stages::{Stage, run};
use crate::engine::experiment::{ErrorContext, Facts, Sample, Subject, SubjectError};
use crate::support::inputs::{Input, base64_lines};
use crate::support::programs;

/// A pipeline and its input. Each sample creates the input anew, because keeping the inputs of all
/// cases would use too much memory.
pub struct PipelineSubject {
    /// Stages in order.
    pub stages: Vec<Stage>,
    /// Number of copies of the pipeline that run concurrently.
    pub copies: u64,
    /// Creates the input of a sample.
    pub input: Box<dyn Fn() -> std::io::Result<Input>>,
}

impl PipelineSubject {
    /// Creates a subject that runs one copy of a pipeline on an input of `lines` lines of base64.
    pub fn on_lines(lines: u64, stages: Vec<Stage>) -> Self {
        let input = move || Input::new(|file| base64_lines(file, lines));
        Self { stages, copies: 1, input: Box::new(input) }
    }
}

impl Subject for PipelineSubject {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let input = (self.input)().context("make the input")?;
        run(&self.stages, &input, self.copies)
    }

    /// Returns the paths of the programs, and the locale, because the speed of some programs
    /// depends on it.
    fn facts(&self) -> Facts {
        let mut programs: Vec<_> = self
            .stages
            .iter()
            .filter_map(|stage| programs::find(stage.words.first()?)?.canonicalize().ok())
            .map(|path| path.display().to_string())
            .collect();
        programs.dedup();
        Facts::from([
            ("programs".to_owned(), programs.join(" | ").into()),
            ("locale".to_owned(), locale().into()),
        ])
    }
}

/// Returns the locale that the environment sets for character types in child processes; `C` if it
/// sets none.
fn locale() -> String {
    let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
    name.and_then(|name| std::env::var(name).ok()).unwrap_or_else(|| "C".to_owned())
}
