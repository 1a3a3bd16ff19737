//! What the experiments with pipelines measure.

use contend_record::lab::Step;

use super::stages::{Stage, run};
use crate::engine::experiment::{Attempt, Facts, Sample, Subject, SubjectError};
use crate::support::inputs::{Input, base64_lines};
use crate::support::programs;

/// A pipeline on an input that is made anew for each sample: between samples it would only hold
/// memory, and that of all cases is much.
pub struct PipelineSubject {
    /// Its commands.
    pub stages: Vec<Stage>,
    /// How many of it run at the same time.
    pub copies: u64,
    /// Makes its input.
    pub input: Box<dyn Fn() -> std::io::Result<Input>>,
}

impl PipelineSubject {
    /// One on so many lines of base64.
    pub fn on_lines(lines: u64, stages: Vec<Stage>) -> Self {
        let input = move || Input::of(|file| base64_lines(file, lines));
        Self { stages, copies: 1, input: Box::new(input) }
    }
}

impl Subject for PipelineSubject {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let input = (self.input)().attempt("make the input")?;
        run(&self.stages, &input, self.copies)
    }

    /// The programs, and the locale: for several of them it decides how fast they are.
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

/// The locale for characters that programs started here have.
fn locale() -> String {
    let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
    name.and_then(|name| std::env::var(name).ok()).unwrap_or_else(|| "C".to_owned())
}
