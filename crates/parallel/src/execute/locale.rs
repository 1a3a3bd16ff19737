//! Runs commands in the C locale over ASCII chunks, if their output is the same there.

use std::io;

use super::input::{ChunkData, ChunkSource};
use crate::plan::ir::Command;

/// The commands of a group in their own locale, and variants for the C locale.
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

    /// Creates a set of variants that has only the commands in their own locale.
    pub(super) fn without_c(commands: &'g [Command]) -> Self {
        Self { commands, in_c: None }
    }

    /// Returns whether any command has a variant for the C locale.
    pub(super) fn has_c(&self) -> bool {
        self.in_c.is_some()
    }

    /// Returns whether commands run in the C locale over the given chunk: they have variants for
    /// it, and the chunk is ASCII without NUL.
    ///
    /// # Errors
    /// Returns an error if the chunk cannot be read.
    pub(super) fn use_c(&self, chunks: &ChunkSource<'_>, chunk: &ChunkData) -> io::Result<bool> {
        if self.has_c() { chunks.is_ascii(chunk) } else { Ok(false) }
    }

    /// Returns the variants for the C locale if `use_c` is true and there are any. Otherwise,
    /// returns the commands in their own locale.
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
