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
        let capture = Self::new()?;
        let mut redirected = Vec::new();
        if io::stdin().is_terminal() {
            command.stdin(Stdio::null());
            redirected.push(0);
        }
        if io::stdout().is_terminal() {
            command.stdout(capture.file.try_clone()?);
            redirected.push(1);
        }
        if io::stderr().is_terminal() {
            command.stderr(capture.file.try_clone()?);
            redirected.push(2);
        }
        Ok((capture, redirected))
    }

    fn new() -> io::Result<Self> {
        let file = File::from(memfd_create("contend-output", MemfdFlags::CLOEXEC)?);
        // Two streams, and programs that open /dev/stderr, write to it.
        fcntl_setfl(&file, OFlags::APPEND)?;
        Ok(Self { file, position: 0, tail: Vec::new() })
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
        let lines = self.last_lines();
        if !lines.is_empty() {
            let _ = output::command_stderr((lines.join("\n") + "\n").as_bytes());
        }
    }

    /// Returns the last lines that have been read, at most ten.
    pub fn last_lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(MAX_LINES);
        lines[first..].iter().map(|line| (*line).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn the_end_of_the_output_is_remembered() {
        let mut capture = Capture::new().expect("a file");
        let mut writer = capture.file.try_clone().expect("a descriptor");
        assert_eq!(capture.read().expect("readable"), b"");
        assert!(capture.last_lines().is_empty());
        for number in 1..=20 {
            writeln!(writer, "line {number}").expect("room");
            if number == 15 {
                assert!(capture.read().expect("readable").ends_with(b"line 15\n"));
            }
        }
        assert!(capture.read().expect("readable").starts_with(b"line 16\n"));
        let lines = capture.last_lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[9].as_str()), (10, "line 11", "line 20"));
    }

    #[test]
    fn a_large_output_takes_no_memory_once_it_was_read() {
        let mut capture = Capture::new().expect("a file");
        let mut writer = capture.file.try_clone().expect("a descriptor");
        writer.write_all(&vec![b'x'; 1_000_000]).expect("room");
        writer.write_all(b"\nend\n").expect("room");
        let used = |capture: &Capture| capture.file.metadata().expect("a file").blocks();
        assert!(used(&capture) > 1000);
        let read = capture.read().expect("readable");
        assert!(read.len() as u64 == MAX_READ_BYTES && read.ends_with(b"x\nend\n"));
        assert!(used(&capture) <= 8, "at most a page is left");
        assert_eq!(capture.last_lines().last().map(String::as_str), Some("end"));
        assert!(capture.tail.len() <= MAX_TAIL_BYTES);
    }

    #[test]
    fn a_program_may_open_its_standard_error_again() {
        let mut capture = Capture::new().expect("a file");
        let mut writer = capture.file.try_clone().expect("a descriptor");
        writer.write_all(b"before, and longer than the rest\n").expect("room");
        capture.read().expect("readable");
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        std::fs::write(path, "again\n").expect("writable"); // truncates the file
        writer.write_all(b"after\n").expect("room");
        assert_eq!(capture.read().expect("readable"), b"again\nafter\n");
    }
}
