//! Rewrites shell scripts so that contend can take over stages, without changing what the scripts
//! do.
//!
//! The structure of the script does not change. Each stage that contend can take over gets a
//! prefix: `sort -r <in` becomes `"${__contend_f[@]}" sort -r <in`, which starts contend with the
//! stage's words as the shell has expanded them, in the stage's own subshell, after the stage's own
//! redirections. The contend processes of neighbouring stages find each other through the pipe
//! between them and decide: either one of them runs all the stages over chunks of the input, or
//! each executes its own command.
//!
//! ```text
//! text ─ hazards ─┬─ refused, with the reason
//!                 └─ walk: every pipeline ─ stages: runs that fit ─ edits ─ text
//! ```
//!
//! A prefix that never pays off must not cost anything. Pipelines in loops and functions, and the
//! others after the first few, measure how soon they are executed again, by a clock that takes the
//! shell only microseconds to read. If the last few executions of a pipeline were short, its
//! prefixes expand to nothing.

mod constants;
mod dialect;
mod edits;
mod explain;
mod hazards;
mod stages;
mod substitutions;
mod walk;

#[cfg(test)]
mod tests;

use contend_record::run::TakenOver;

use super::planner::Annotation;
use edits::Edits;
use stages::Runs;

pub use dialect::{Dialect, Position, STAGE_VERB};
pub use explain::Explanation;

/// Settings for rewriting a script.
#[derive(Clone, Copy)]
pub struct Rewriter<'a> {
    /// The dialect of the shell that runs the script.
    pub dialect: Dialect,
    /// Commands that the user has declared to process each record independently.
    pub annotations: &'a [Annotation],
    /// A predicate for names of programs that the kernel can start. The shell handles all other
    /// names, and their error messages.
    pub is_program: &'a dyn Fn(&str) -> bool,
}

/// A script after an attempt to insert prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The script with prefixes, or the original if nothing is taken over. Lines keep their
    /// numbers.
    pub text: String,
    /// The runs of stages that contend may take over, in the order of their lines.
    pub taken: Vec<TakenOver>,
    /// Why nothing is taken over; `None` if something is.
    pub refused: Option<String>,
    /// Whether prefixes pass the shell's options to contend, after contend's own.
    pub has_shell_options: bool,
    /// Number of slots for the times of pipelines; some pipelines share one.
    slots: usize,
}

impl Rewritten {
    fn refused(text: &str, why: &str) -> Self {
        let (text, refused) = (text.to_owned(), Some(why.to_owned()));
        Self { text, taken: Vec::new(), refused, has_shell_options: false, slots: 0 }
    }

    /// Restores the original script, with the reason for leaving it to the shell.
    pub fn refuse(&mut self, original: &str, why: &str) {
        *self = Self::refused(original, why);
    }

    /// Returns the code to insert at the beginning of the first line, so that prefixes start
    /// `program` with the given options, as one argument. `dialect` must be that of the rewriter.
    pub fn preamble(&self, dialect: Dialect, program: &str, options: &str) -> String {
        dialect.preamble(program, options, self.slots)
    }
}

/// Maximum number of pipelines that do not read the clock: the first ones in the script outside
/// loops and functions. The cost of their prefixes is not noticeable.
const MAX_UNTIMED_PIPELINES: usize = 16;

impl Rewriter<'_> {
    /// Inserts prefixes into a script, or returns it unchanged with the reason.
    pub fn rewrite(self, text: &str) -> Rewritten {
        const NOTHING: &str = "none of its stages can run on chunks of its input";
        let is_known = |name: &str| stages::is_known(name, self.annotations);
        if !hazards::words(text).any(is_known) {
            return Rewritten::refused(text, NOTHING);
        }
        if let Some(why) = hazards::find(text, self.dialect) {
            return Rewritten::refused(text, why);
        }
        let Some(program) = walk::parse(text) else {
            return Rewritten::refused(
                text,
                "its syntax cannot be parsed, or depends on options of the shell",
            );
        };
        let walk = walk::Walk::of(&program);
        let runs = Runs { rewriter: self, functions: &walk.functions, text };
        let mut edits = Edits::new(text, self.dialect);
        let mut taken = Vec::new();
        for found in &walk.pipelines {
            let runs = runs.of(found.pipeline);
            if let Some(lines) = edits.add(found, &runs) {
                taken.extend(runs.into_iter().zip(lines).map(|(run, line)| {
                    let texts: Vec<_> =
                        found.pipeline.seq[run].iter().map(ToString::to_string).collect();
                    TakenOver { line, text: texts.join(" | "), stages: Vec::new() }
                }));
            }
        }
        if taken.is_empty() {
            return Rewritten::refused(text, NOTHING);
        }
        taken.sort_by_key(|one| one.line);
        let has_shell_options = self.dialect.needs_options(text);
        let (text, slots) = edits.apply();
        Rewritten { text, taken, refused: None, has_shell_options, slots }
    }
}
