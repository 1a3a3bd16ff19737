//! Lines on their way out.

use std::io::Write;

use crate::error::FilterError;

/// Bytes that are gathered before they are written.
const ENOUGH: usize = 64 * 1024;

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
        Self { writer, gathered: Vec::with_capacity(2 * ENOUGH), line: 0 }
    }

    /// Adds to the line.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<(), FilterError> {
        self.push_with(|gathered| gathered.extend_from_slice(text))
    }

    /// Adds to the line what `write` appends.
    #[inline]
    pub(crate) fn push_with(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), FilterError> {
        write(&mut self.gathered);
        if self.gathered.len() >= ENOUGH { self.make_room() } else { Ok(()) }
    }

    /// Ends the line with this.
    #[inline]
    pub(crate) fn end_line(&mut self, end: &[u8]) -> Result<(), FilterError> {
        self.push(end)?;
        self.line = self.gathered.len();
        Ok(())
    }

    /// Writes all complete lines.
    pub(crate) fn flush(&mut self) -> Result<(), FilterError> {
        self.write(self.line)?;
        self.writer.flush().map_err(FilterError::Write)
    }

    #[cold]
    fn make_room(&mut self) -> Result<(), FilterError> {
        self.write(if self.line > 0 { self.line } else { self.gathered.len() })
    }

    fn write(&mut self, bytes: usize) -> Result<(), FilterError> {
        self.writer.write_all(&self.gathered[..bytes]).map_err(FilterError::Write)?;
        self.gathered.drain(..bytes);
        self.line = 0;
        Ok(())
    }
}
