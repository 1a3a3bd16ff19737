//! Buffers lines of output.

use std::io::{self, Write};

/// Fill level in bytes at which the buffer is written.
const FLUSH_BYTES: usize = 64 * 1024;

/// A buffer for lines. Only lines of at least [`FLUSH_BYTES`] are written before they are complete,
/// so an error does not leave half of a shorter line.
pub(crate) struct Output<'a> {
    writer: &'a mut dyn Write,
    buffer: Vec<u8>,
    /// Index of the start of the unfinished line.
    line: usize,
}

impl<'a> Output<'a> {
    pub(crate) fn new(writer: &'a mut dyn Write) -> Self {
        Self { writer, buffer: Vec::with_capacity(2 * FLUSH_BYTES), line: 0 }
    }

    /// Appends `text` to the unfinished line. If the buffer is full, writes its complete lines or,
    /// if it has none, all of it.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> io::Result<()> {
        self.push_with(|buffer| buffer.extend_from_slice(text))
    }

    /// Lets `write` append to the buffer, which ends with the unfinished line. If the buffer is
    /// full, writes as much of it as [`Self::push`] does. `write` must only append.
    #[inline]
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        write(&mut self.buffer);
        if self.buffer.len() >= FLUSH_BYTES { self.make_room() } else { Ok(()) }
    }

    /// Appends `end` and completes the line.
    #[inline]
    pub(crate) fn end_line(&mut self, end: &[u8]) -> io::Result<()> {
        self.push(end)?;
        self.line = self.buffer.len();
        Ok(())
    }

    /// Writes the complete lines in the buffer, if any, and flushes the writer, which may hold
    /// earlier lines.
    pub(crate) fn flush_lines(&mut self) -> io::Result<()> {
        if self.line > 0 {
            self.write_out(self.line)?;
        }
        self.writer.flush()
    }

    #[cold]
    fn make_room(&mut self) -> io::Result<()> {
        self.write_out(if self.line > 0 { self.line } else { self.buffer.len() })
    }

    fn write_out(&mut self, bytes: usize) -> io::Result<()> {
        self.writer.write_all(&self.buffer[..bytes])?;
        self.buffer.drain(..bytes);
        self.line = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_fills_the_buffer_is_flushed() {
        let mut written = Vec::new();
        // Holds all that it gets until it is flushed.
        let mut writer = io::BufWriter::with_capacity(4 * FLUSH_BYTES, &mut written);
        let mut output = Output::new(&mut writer);
        output.push(&vec![b'a'; FLUSH_BYTES - 1]).expect("room");
        output.end_line(b"\n").expect("room");
        output.flush_lines().expect("room");
        assert_eq!(writer.buffer().len(), 0);
        drop(writer);
        assert_eq!(written.len(), FLUSH_BYTES);
    }
}
