//! Helpers shared by the tests of runs.

use std::io;

use contend_commands::{Simple, Word};

use super::observer::{Notice, Observer};
use crate::execute::Tally;
use crate::plan::ir::{Command, Plan, StatusRule};

/// An observer that records notifications.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Names of the methods about progress that were called, in order.
    pub calls: Vec<&'static str>,
    /// Notices as strings, in order.
    pub notices: Vec<String>,
}

impl Observer for Recorder {
    fn notify(&mut self, notice: Notice<'_>) -> io::Result<()> {
        self.notices.push(match notice {
            Notice::MissingFile(message) => format!("missing {message}"),
            Notice::Left(path, error) => format!("left {}: {error}", path.display()),
            Notice::Kept(path) => format!("kept {}", path.display()),
            Notice::Waiting(why) => format!("waiting: {why}"),
            Notice::NotDivided(why) => format!("not divided: {why}"),
            Notice::CommandStderr(bytes) => format!("stderr {}", String::from_utf8_lossy(bytes)),
            Notice::CannotWrite(error) => error.to_string(),
            Notice::NotCompared => "not compared".to_owned(),
            Notice::Compared(comparison) => {
                let byte = comparison.first.map(|first| format!(", byte {}", first.byte));
                format!("compared, same {}{}", comparison.check.same, byte.unwrap_or_default())
            }
        });
        Ok(())
    }

    fn started(&mut self, _plan: &Plan, _tally: &Tally) {
        self.calls.push("started");
    }

    fn tick(&mut self, _tally: &Tally) {
        self.calls.push("tick");
    }

    fn ended(&mut self) {
        self.calls.push("ended");
    }
}

/// Returns a command with the given words, for the given stage.
pub(super) fn command(stage: usize, words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().expect("a program");
    Command {
        stage,
        variables: Vec::new(),
        program: (*program).to_owned(),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        status: StatusRule::Zero,
        input: None,
        sorts: false,
        ascii_in_c: false,
        operator: None,
    }
}

/// Returns stages with the given words.
pub(super) fn stages(texts: &[&[&str]]) -> Vec<Simple> {
    let simple = |words: &&[&str]| Simple {
        variables: Vec::new(),
        program: Word::new(words[0]),
        arguments: words[1..].iter().map(|&word| Word::new(word)).collect(),
        input: None,
    };
    texts.iter().map(simple).collect()
}
