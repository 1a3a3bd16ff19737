//! A pipeline as an editable list of stages.

use contend_commands::Simple;
use contend_record::shell::quote_text;
use contend_shell::environment::Environment;
use contend_shell::parse::Parsed;

use super::{Change, Replacement};

/// A pipeline as a list of stages, which changes can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Whether the exit status is inverted by `!`.
    inverted: bool,
    /// Whether the output goes to `/dev/null`.
    discards: bool,
    /// The command that takes the pipeline as its last argument and runs it; `None` if the shell
    /// runs the pipeline itself.
    runner: Option<String>,
    /// The stages, first to last.
    pub stages: Vec<Stage>,
}

/// One stage of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// The shell text of the stage.
    pub text: String,
    /// The parsed command, if the stage is a simple command whose name refers to a program file.
    pub simple: Option<Simple>,
    /// Indices, from 0, of the original's stages whose work this stage does. An unchanged stage has
    /// its index in the original.
    pub origin: Vec<usize>,
}

impl Draft {
    /// Splits a pipeline into stages, and separates a redirection of its output to `/dev/null`.
    /// Returns `None` if [`Parsed::plain_stages`] does, as for `|&`, comments and here-documents.
    pub fn read(parsed: &Parsed, environment: &Environment) -> Option<Self> {
        let mut texts = parsed.plain_stages()?;
        let kept = texts.pop()?;
        let discarded = without_dev_null(kept);
        texts.push(discarded.unwrap_or(kept));
        let stages = texts.into_iter().enumerate();
        let stages = stages.map(|(i, text)| Stage::new(text.to_owned(), vec![i], environment));
        Some(Self {
            inverted: parsed.inverted,
            discards: discarded.is_some(),
            runner: None,
            stages: stages.collect(),
        })
    }

    /// Returns the shell text of the pipeline, with its redirection to `/dev/null`, if any.
    pub fn text(&self) -> String {
        self.text_with_output() + if self.discards { " >/dev/null" } else { "" }
    }

    /// Returns whether the pipeline's output goes to `/dev/null`.
    pub fn discards(&self) -> bool {
        self.discards
    }

    /// Returns the shell text of the pipeline without its redirection to `/dev/null`, if any.
    pub fn text_with_output(&self) -> String {
        let stages: Vec<_> = self.stages.iter().map(|stage| stage.text.as_str()).collect();
        let inverted = if self.inverted { "! " } else { "" };
        let text = format!("{inverted}{}", stages.join(" | "));
        match &self.runner {
            Some(runner) => format!("{runner} {}", quote_text(&text)),
            None => text,
        }
    }

    /// Returns the pipeline as an argument of `runner`, a command with options that runs it.
    #[must_use]
    pub fn run_by(&self, runner: &str) -> Self {
        Self { runner: Some(runner.to_owned()), ..self.clone() }
    }

    /// Returns the pipeline with a change applied.
    ///
    /// # Panics
    /// Panics if the stages to which the change refers do not exist.
    #[must_use]
    pub fn changed(&self, change: &Change, environment: &Environment) -> Self {
        let new = change.stages.iter().map(|Replacement { text, work }| {
            let places = if work.is_empty() {
                change.at.clone().collect()
            } else {
                work.iter().map(|(place, _)| *place).collect::<Vec<_>>()
            };
            let mut origin: Vec<_> =
                places.iter().flat_map(|&place| self.stages[place].origin.clone()).collect();
            origin.sort_unstable();
            origin.dedup();
            Stage::new(text.clone(), origin, environment)
        });
        let mut stages = self.stages.clone();
        stages.splice(change.at.clone(), new.collect::<Vec<_>>());
        Self { stages, ..self.clone() }
    }
}

/// Returns the text of a simple command without its final redirection of standard output to
/// `/dev/null`. Returns `None` if there is no such redirection, or if the rest is not a simple
/// command.
fn without_dev_null(text: &str) -> Option<&str> {
    let before = text.strip_suffix("/dev/null")?.trim_end().strip_suffix('>')?;
    // A number directly before `>` is a file descriptor.
    let number = before.rsplit(char::is_whitespace).next().filter(|word| !word.is_empty());
    let before = match number {
        Some("1") => &before[..before.len() - 1],
        Some(word) if word.parse::<u32>().is_ok() || word.ends_with(['>', '&']) => return None,
        _ => before,
    };
    let before = before.trim_end();
    Simple::read(before).map(|_| before)
}

impl Stage {
    fn new(text: String, origin: Vec<usize>, environment: &Environment) -> Self {
        let simple = Simple::read(&text).filter(|simple| environment.is_file(&simple.program.text));
        Self { text, simple, origin }
    }

    /// Parses the stage with the grammar of a command. Returns `None` if [`Self::simple`] is `None`
    /// or `grammar` returns `None`.
    pub fn read<T>(&self, grammar: impl Fn(&Simple) -> Option<T>) -> Option<(&Simple, T)> {
        let simple = self.simple.as_ref()?;
        Some((simple, grammar(simple)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_shell::parse::parse;

    fn read(text: &str) -> Option<Draft> {
        Draft::read(&parse(text).expect("one pipeline"), &Environment::for_tests("C"))
    }

    #[test]
    fn a_pipeline_is_taken_apart_and_put_together() {
        let draft = read("! sort  -n f|\n  uniq -c | weird \"$x\";").expect("a draft");
        assert_eq!(draft.text(), "! sort  -n f | uniq -c | weird \"$x\"");
        let known: Vec<_> = draft.stages.iter().map(|stage| stage.simple.is_some()).collect();
        assert_eq!(known, [true, true, false]);
    }

    #[test]
    fn output_to_dev_null_can_be_looked_at() {
        for text in ["a | sort >/dev/null", "a | sort > /dev/null", "a | sort 1>/dev/null"] {
            let draft = read(text).expect("a draft");
            assert_eq!(draft.text(), "a | sort >/dev/null");
            assert_eq!(draft.text_with_output(), "a | sort");
            assert!(draft.stages[1].simple.is_some());
        }
        let kept = ["a | sort 2>/dev/null", "a | { sort; } >/dev/null", "a | sort >>/dev/null"];
        for text in kept {
            assert_eq!(read(text).expect("a draft").text_with_output(), text);
        }
    }

    #[test]
    fn a_pipeline_can_be_the_argument_of_a_command() {
        let draft = read("sort f | cut -d' ' -f1 >/dev/null").expect("a draft");
        assert_eq!(
            draft.run_by("contend run").text(),
            "contend run \"sort f | cut -d' ' -f1\" >/dev/null"
        );
    }

    #[test]
    fn syntax_between_or_after_stages_is_rejected() {
        for text in ["a |& b", "cat <<E | b\nx\nE\n", "a | b # c", "a | # c\n b"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
