//! Keeps what a command writes to the terminal away from the screen, and remembers the end of it.
//!
//! The command writes to a file in memory, which never makes it wait: a pipe that contend reads late
//! would, and appear in the diagnosis. What has been read is removed from the file.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};

use rustix::fs::{FallocateFlags, MemfdFlags, OFlags, fallocate, fcntl_setfl, memfd_create};

use crate::output;

/// Largest number of bytes that are read at a time. If the command has written more since the last
/// time, only the end is read.
const MAX_READ_BYTES: u64 = 64 * 1024;
/// Number of bytes of which the last lines are remembered.
const MAX_TAIL_BYTES: usize = 4096;
/// Number of lines that are remembered.
const MAX_LINES: usize = 10;

/// The output of a command.
#[derive(Debug)]
pub struct Capture {
    file: File,
    /// Offset up to which the file has been read.
    position: u64,
    tail: Vec<u8>,
}

impl Capture {
    /// Redirects those standard streams of a command that are terminals: its output to the returned
    /// value, and its input from `/dev/null`, so that it does not read the keys. Returns the numbers of
    /// these streams, too.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn redirect(command: &mut Command) -> io::Result<(Self, Vec<u8>)> {
        let file = File::from(memfd_create("contend-output", MemfdFlags::CLOEXEC)?);
        // Two streams, and programs that open /dev/stderr, write to it.
        fcntl_setfl(&file, OFlags::APPEND)?;
        let mut redirected = Vec::new();
        if io::stdin().is_terminal() {
            command.stdin(Stdio::null());
            redirected.push(0);
        }
        if io::stdout().is_terminal() {
            command.stdout(file.try_clone()?);
            redirected.push(1);
        }
        if io::stderr().is_terminal() {
            command.stderr(file.try_clone()?);
            redirected.push(2);
        }
        Ok((Self { file, position: 0, tail: Vec::new() }, redirected))
    }

    /// Reads what the command has written since the last call, and returns at most the last
    /// 64 KiB of that.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let end = self.file.metadata()?.len();
        // Opening /dev/stderr for writing truncates the file.
        if end < self.position {
            self.position = 0;
        }
        let mut read = Vec::new();
        if end == self.position {
            return Ok(read);
        }
        let start = self.position.max(end.saturating_sub(MAX_READ_BYTES));
        // The command's descriptors append: they do not use the offset that they share with this one.
        self.file.seek(SeekFrom::Start(start))?;
        self.file.by_ref().take(end - start).read_to_end(&mut read)?;
        let remove = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, remove, 0, end)?;
        self.position = end;
        self.tail.extend_from_slice(&read);
        let old = self.tail.len().saturating_sub(MAX_TAIL_BYTES);
        self.tail.drain(..old);
        Ok(read)
    }

    /// Reads and prints what the command has written since the last call. Ignores errors, as those of a
    /// closed terminal.
    pub fn print_new(&mut self) {
        let _ = self.read().and_then(|bytes| output::command_stderr(&bytes));
    }

    /// Prints the last lines that the command has written. Ignores errors, as those of a closed
    /// terminal.
    pub fn print_end(&mut self) {
        let _ = self.read(); // what was read before can still be printed
        let lines = self.last_lines().join("\n") + "\n";
        let _ = output::command_stderr(lines.as_bytes());
    }

    /// Returns the last lines that have been read, at most ten.
    pub fn last_lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(MAX_LINES);
        lines[first..].iter().map(|line| (*line).to_owned()).collect()
    }
}
