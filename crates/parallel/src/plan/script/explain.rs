//! Explains to users which stages of a script are taken over, and why others are left to the shell.

use brush_parser::ast::SourceLocation as _;
use contend_commands::Simple;
use contend_record::run::Left;

use super::edits::Edits;
use super::stages::Runs;
use super::{Rewriter, walk};

/// The stages of a script, either taken over or left to the shell.
#[derive(Debug, Default)]
pub struct Explanation {
    /// The stages of each run that is taken over, in the order of their lines, as plain words;
    /// `None` if their words are known only at run time.
    pub taken: Vec<Option<Vec<Simple>>>,
    /// The stages left to the shell, in the order of the lines.
    pub left: Vec<Left>,
    /// Number of further stages left to the shell, each alone in its pipeline: builtins, functions,
    /// and unknown commands.
    pub others: usize,
}

impl Rewriter<'_> {
    /// Explains how a script has been rewritten. `text` is the original script. The explanation is
    /// empty if the script cannot be parsed.
    pub fn explain(self, text: &str) -> Explanation {
        let mut explanation = Explanation::default();
        let Some(program) = walk::parse(text) else { return explanation };
        let walk = walk::Walk::of(&program);
        let runs = Runs { rewriter: self, functions: &walk.functions, text };
        let mut edits = Edits::new(text, self.dialect);
        let mut taken = Vec::new();
        for found in &walk.pipelines {
            let (mut kept, stages) = (runs.of(found.pipeline), &found.pipeline.seq);
            let lines = edits.add(found, &kept);
            if lines.is_none() {
                kept.clear();
            }
            for (run, line) in kept.iter().zip(lines.unwrap_or_default()) {
                taken.push((line, runs.simples(&stages[run.clone()])));
            }
            let line = found.pipeline.location().map_or(1, |place| place.start.line);
            for (index, stage) in stages.iter().enumerate() {
                if kept.iter().any(|run| run.contains(&index)) || walk::is_compound(stage) {
                    continue;
                }
                match runs.why_left(found.pipeline, index) {
                    why if stages.len() > 1 || runs.is_known(stage) || walk::substitutes(stage) => {
                        explanation.left.push(Left { line, text: stage.to_string(), why });
                    }
                    _ => explanation.others += 1,
                }
            }
        }
        taken.sort_by_key(|(line, _)| *line);
        explanation.taken = taken.into_iter().map(|(_, simples)| simples).collect();
        explanation.left.sort_by_key(|left| left.line);
        explanation
    }
}
