//! The commands of a group as they run over a part: in the C locale where its text is ASCII and
//! that makes no difference but in time.

use std::io;

use super::input::{ChunkData, ChunkSource};
use crate::plan::ir::Command;

/// Commands, as they are and as they may be over ASCII.
#[derive(Debug)]
pub(super) struct LocaleVariants<'g> {
    commands: &'g [Command],
    in_c: Option<Vec<Command>>,
}

impl<'g> LocaleVariants<'g> {
    pub(super) fn new(commands: &'g [Command]) -> Self {
        let in_c = commands.iter().any(|command| command.ascii_in_c);
        Self { commands, in_c: in_c.then(|| commands.iter().map(in_the_c_locale).collect()) }
    }

    /// The same in the locale that they have.
    pub(super) fn as_they_are(commands: &'g [Command]) -> Self {
        Self { commands, in_c: None }
    }

    /// Whether some of them are to run in the C locale over this part.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn use_c(&self, chunks: &ChunkSource<'_>, chunk: &ChunkData) -> io::Result<bool> {
        if self.in_c.is_some() { chunks.is_ascii(chunk) } else { Ok(false) }
    }

    /// The commands, as they are or for ASCII.
    pub(super) fn commands(&self, use_c: bool) -> &[Command] {
        self.in_c.as_deref().filter(|_| use_c).unwrap_or(self.commands)
    }
}

fn in_the_c_locale(command: &Command) -> Command {
    let mut command = command.clone();
    if command.ascii_in_c {
        command.variables.push(("LC_ALL".to_owned(), "C".to_owned()));
    }
    command
}
