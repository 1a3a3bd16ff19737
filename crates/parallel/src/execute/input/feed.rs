//! Handing the parts of an input to commands.

use std::io;
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use contend_record::run::Guard;
use memchr::memchr;

use super::super::chunk_input::ChunkInput;
use super::super::cut;
use super::super::error::GroupError;
use super::super::instance::Instance;
use super::super::sink::OutputSink;
use super::{BLOCK, Content, Parts};

/// How far the guard is known to hold before commands read what comes first, in bytes. What a
/// command does with what it does not want may begin as far before it as its buffer does, which
/// is 96 KiB for grep.
const AHEAD: u64 = 256 << 10;
/// Where so many bytes hold no end of a record such a buffer may become larger, and stay so.
const LONG: usize = 32 << 10;

/// How feeding commands with a part ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Fed {
    /// They have all of it, or want no more.
    All,
    /// Nobody wants what they write.
    Unwanted,
    /// The guard does not let all of it through.
    Unfit,
}

impl Parts<'_> {
    /// Feeds commands with a part. What stands in files is not copied on its way.
    ///
    /// # Errors
    /// When it cannot be read, or as [`Instance::feed`].
    pub(in super::super) fn feed(
        &self,
        content: &Content,
        instance: &mut Instance<'_>,
        output: &mut impl OutputSink,
    ) -> Result<Fed, GroupError> {
        match content {
            Content::Bytes(bytes) => {
                let wanted = instance.feed(&mut ChunkInput::Bytes(bytes), output)?;
                Ok(if wanted.is_break() { Fed::Unwanted } else { Fed::All })
            }
            Content::Place(range) => self.feed_from_files(range.clone(), instance, output),
        }
    }

    /// The bytes of a part; `None` if the guard does not let them through.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(in super::super) fn bytes(&self, content: Content) -> io::Result<Option<Vec<u8>>> {
        let range = match content {
            Content::Bytes(bytes) => return Ok(Some(bytes)),
            Content::Place(range) => range,
        };
        let bytes = self.read_range(range)?;
        self.counted.inspect(|intake| intake.took(bytes.len() as u64));
        Ok(Some(bytes).filter(|bytes| self.fits(&self.guard, bytes)))
    }

    /// Whether all of a part is ASCII, without NUL, which ends some texts in UTF-8.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(in super::super) fn is_ascii(&self, content: &Content) -> io::Result<bool> {
        let mut range = match content {
            Content::Bytes(bytes) => return Ok(is_ascii(bytes)),
            Content::Place(range) => range.clone(),
        };
        while !range.is_empty() {
            let bytes = self.read_range(range.start..range.end.min(range.start + BLOCK as u64))?;
            let (is_ascii, length) = (is_ascii(&bytes), bytes.len());
            self.used(bytes);
            if !is_ascii || length == 0 {
                return Ok(is_ascii);
            }
            range.start += length as u64;
        }
        Ok(true)
    }

    fn feed_from_files(
        &self,
        mut range: Range<u64>,
        instance: &mut Instance<'_>,
        output: &mut impl OutputSink,
    ) -> Result<Fed, GroupError> {
        if !self.ends_well(&range)? {
            return Ok(Fed::Unfit);
        }
        let mut seen = range.start;
        while !range.is_empty() && instance.is_reading() {
            let Some((file, there)) = self.file_at(range.start) else { break };
            let bytes = (range.end - range.start).min(there.end - there.start).min(BLOCK as u64);
            if !self.holds_until(&mut seen, range.start + bytes + AHEAD)? {
                return Ok(Fed::Unfit);
            }
            let mut left = ChunkInput::File(file, there.start..there.start + bytes);
            if instance.feed(&mut left, output)?.is_break() {
                return Ok(Fed::Unwanted);
            }
            self.counted.inspect(|intake| intake.took(bytes));
            range.start += bytes;
        }
        Ok(Fed::All)
    }

    /// Whether the last record of everything has an end, if this part holds it and that matters.
    fn ends_well(&self, range: &Range<u64>) -> io::Result<bool> {
        if !self.guard.terminated || Some(range.end) != self.size() {
            return Ok(true);
        }
        let last = self.read_range(range.end.saturating_sub(1)..range.end)?;
        let guard = Guard { terminated: true, ..Guard::NONE };
        Ok(self.fits(&guard, &last))
    }

    /// Whether the guard lets through what stands in the files from `seen`, which begins a
    /// character, up to a place; `seen` becomes how far that is known. Once there is a long record
    /// it has to let everything through.
    fn holds_until(&self, seen: &mut u64, place: u64) -> io::Result<bool> {
        let known = *self.throughout();
        if let Some(holds) = known {
            return Ok(holds);
        }
        let mut has_long = false;
        let holds = self.looked_through(seen, place, &mut has_long)?;
        if !(holds && has_long) {
            return Ok(holds);
        }
        let mut throughout = self.throughout();
        if let Some(holds) = *throughout {
            return Ok(holds);
        }
        let holds = self.looked_through(&mut 0, u64::MAX, &mut has_long)?;
        *throughout = Some(holds);
        Ok(holds)
    }

    /// Finds out whether the guard lets through all of the files, once.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(in super::super) fn look_through(&self) -> io::Result<()> {
        if !self.can_be_read_again() || !cut::looks_within(&self.guard) {
            return Ok(());
        }
        let mut throughout = self.throughout();
        if throughout.is_none() {
            *throughout = Some(self.looked_through(&mut 0, u64::MAX, &mut false)?);
        }
        Ok(())
    }

    fn throughout(&self) -> MutexGuard<'_, Option<bool>> {
        self.throughout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn looked_through(&self, seen: &mut u64, place: u64, has_long: &mut bool) -> io::Result<bool> {
        let size = self.size().unwrap_or(0);
        while cut::looks_within(&self.guard) && *seen < place.min(size) {
            let end = size.min(*seen + BLOCK as u64);
            let bytes = self.read_range(*seen..end)?;
            let is_last = end == size || bytes.len() < BLOCK;
            let known = cut::holds_so_far(&self.guard, &bytes, is_last);
            if known.is_none() {
                self.refused.get_or_init(|| cut::breach(&self.guard, &bytes));
            }
            let ends = |bytes: &[u8]| memchr(self.cut.records.separator(), bytes).is_some();
            *has_long |= !bytes.chunks_exact(LONG).all(ends);
            self.used(bytes);
            match known {
                None => return Ok(false),
                Some(0) => break, // the files have become shorter
                Some(known) => *seen += known as u64,
            }
        }
        Ok(true)
    }
}

fn is_ascii(bytes: &[u8]) -> bool {
    bytes.is_ascii() && memchr(0, bytes).is_none()
}
