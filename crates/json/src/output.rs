//! Lines on their way out.

use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const FLUSH_BYTES: usize = 64 * 1024;

/// Gathers lines. Only a line longer than the buffer is written before it is complete, so that
/// an error leaves no half of an ordinary one.
pub(crate) struct Output<'a> {
    writer: &'a mut dyn Write,
    gathered: Vec<u8>,
    /// Where the unfinished line begins.
    line: usize,
}

impl<'a> Output<'a> {
    pub(crate) fn new(writer: &'a mut dyn Write) -> Self {
        Self { writer, gathered: Vec::with_capacity(2 * FLUSH_BYTES), line: 0 }
    }

    /// Adds to the line.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> io::Result<()> {
        self.push_with(|gathered| gathered.extend_from_slice(text))
    }

    /// Adds to the line what `write` appends.
    #[inline]
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        write(&mut self.gathered);
        if self.gathered.len() >= FLUSH_BYTES { self.make_room() } else { Ok(()) }
    }

    /// Ends the line with this.
    #[inline]
    pub(crate) fn end_line(&mut self, end: &[u8]) -> io::Result<()> {
        self.push(end)?;
        self.line = self.gathered.len();
        Ok(())
    }

    /// Writes all complete lines.
    pub(crate) fn flush_lines(&mut self) -> io::Result<()> {
        if self.line == 0 {
            return Ok(());
        }
        self.write_out(self.line)?;
        self.writer.flush()
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        self.write_out(if self.line > 0 { self.line } else { self.gathered.len() })
    }

    fn write_out(&mut self, bytes: usize) -> io::Result<()> {
        self.writer.write_all(&self.gathered[..bytes])?;
        self.gathered.drain(..bytes);
        self.line = 0;
        Ok(())
    }
}
