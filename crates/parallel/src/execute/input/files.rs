//! Files that are read as one input.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use super::super::cut;
use super::pool::BufferPool;
use super::retried;
use crate::objects::PartialCopy;
use crate::plan::ir::Cut;

/// Size in bytes of the first window searched for a cut.
const FIRST_WINDOW_BYTES: u64 = 4 << 10;
/// Size in bytes of the largest window searched for a cut.
pub(super) const MAX_WINDOW_BYTES: u64 = 64 << 10;

/// The part of a file from an offset to the end that it had when the slice was created.
#[derive(Debug)]
pub(in super::super) struct Slice {
    file: File,
    start: u64,
    length: u64,
    /// The name by which the file was opened, or `None` if it was inherited.
    name: Option<String>,
    /// The object that the file is a copy of, if the file may lack some of its bytes.
    copy: Option<Arc<PartialCopy>>,
}

impl Slice {
    /// Creates a slice of a regular file from its current offset to its end.
    pub(in super::super) fn from_here(mut file: File) -> io::Result<Self> {
        let start = io::Seek::stream_position(&mut file)?;
        let length = file.metadata()?.len().saturating_sub(start);
        Ok(Self { file, start, length, name: None, copy: None })
    }

    /// Creates a slice of an object, which reads it where that is needed.
    pub(in super::super) fn of_object(copy: PartialCopy) -> io::Result<Self> {
        let slice = Self::from_here(copy.file()?)?;
        Ok(Self { copy: Some(Arc::new(copy)), ..slice })
    }

    /// Makes sure that the file has all bytes of the slice.
    pub(in super::super) fn complete(self) -> io::Result<Self> {
        self.fetch(self.start..self.start + self.length)?;
        Ok(Self { copy: None, ..self })
    }

    /// Makes sure that the file has a range of bytes.
    fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        self.copy.as_ref().map_or(Ok(()), |copy| copy.fetch(range))
    }

    /// Adds the name by which the file was opened.
    pub(in super::super) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    /// Returns the length of the slice in bytes.
    pub(in super::super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the offset of the slice's end in its file.
    pub(in super::super) fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Returns whether the file has a name that still refers to it.
    fn is_in_place(&self) -> bool {
        let Some(name) = &self.name else { return false };
        let same =
            |one: Metadata, other: Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        std::fs::metadata(name).is_ok_and(|now| self.file.metadata().is_ok_and(|it| same(now, it)))
    }
}

/// Number of bytes before a position that determine whether the input may be cut there.
pub(in super::super) const LOOK_BACK_BYTES: u64 = 2;

/// Returns the slices of the records that begin in a range of the concatenated files, and whether they extend to the end of
/// the last file. The cut must be local. Adjacent ranges share no record, and leave none out.
///
/// # Errors
/// Returns an error if the files cannot be read.
pub(in super::super) fn range_of(
    slices: Vec<Slice>,
    cut: &Cut,
    range: Range<u64>,
) -> io::Result<(Vec<Slice>, bool)> {
    let files = Files::new(slices);
    let size = files.size;
    let (start, end) = (files.cut_at(cut, range.start)?, files.cut_at(cut, range.end)?);
    let mut offset = 0;
    let part = |slice: Slice| {
        let before = offset;
        offset += slice.length;
        let (from, to) = (start.max(before), end.min(offset));
        (from < to).then(|| Slice {
            start: slice.start + from - before,
            length: to - from,
            ..slice
        })
    };
    Ok((files.slices.into_iter().filter_map(part).collect(), end == size))
}

/// Files in order, addressed by offsets in their concatenation.
#[derive(Debug)]
pub(super) struct Files {
    slices: Vec<Slice>,
    size: u64,
    pool: BufferPool,
}

impl Files {
    pub(super) fn new(slices: Vec<Slice>) -> Self {
        let size = slices.iter().map(Slice::length).sum();
        Self { slices, size, pool: BufferPool::default() }
    }

    /// Returns the size of all files in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the file if there is exactly one, and `None` otherwise.
    pub(super) fn only(&self) -> Option<&File> {
        match self.slices.as_slice() {
            [slice] => Some(&slice.file),
            _ => None,
        }
    }

    /// Returns whether every file was opened by a name that still refers to it.
    pub(super) fn are_in_place(&self) -> bool {
        self.slices.iter().all(Slice::is_in_place)
    }

    /// Keeps the memory of `bytes` for later reads.
    pub(super) fn recycle(&self, bytes: Vec<u8>) {
        self.pool.put(bytes);
    }

    /// Splits at least `wanted` bytes off the front of `left`, up to the next position where the
    /// input may be cut, or all bytes if there is no such position. Returns `None` if `left` is
    /// empty. The cut must be local.
    pub(super) fn split_off(
        &self,
        cut: &Cut,
        left: &mut Range<u64>,
        wanted: usize,
    ) -> io::Result<Option<Range<u64>>> {
        if left.is_empty() {
            return Ok(None);
        }
        let (start, size) = (left.start, left.end);
        // The window begins before the wanted position, so that a cut exactly there is found.
        let wanted = start.saturating_add(wanted as u64);
        let mut from = wanted.saturating_sub(LOOK_BACK_BYTES).max(start);
        let mut length = FIRST_WINDOW_BYTES;
        let end = loop {
            if from >= size {
                break size;
            }
            let window = self.read_range(from..size.min(from + length))?;
            if let Some(place) = cut::first(cut, &window) {
                break from + place as u64;
            }
            // The next window repeats the last bytes, since a cut depends on the bytes around it.
            let step = window.len().saturating_sub(2);
            if step == 0 || from + window.len() as u64 >= size {
                break size;
            }
            from += step as u64;
            length = MAX_WINDOW_BYTES.min(2 * length);
        };
        left.start = end;
        Ok(Some(start..end))
    }

    /// Returns the first position at or after `place` at which the input may be cut: 0 for 0, and the size if there
    /// is none. The cut must be local.
    fn cut_at(&self, cut: &Cut, place: u64) -> io::Result<u64> {
        let mut left = 0..self.size;
        if place > 0 {
            self.split_off(cut, &mut left, usize::try_from(place).unwrap_or(usize::MAX))?;
        }
        Ok(left.start)
    }

    /// Reads a range of the concatenated files; the result is shorter if a file has been truncated
    /// or the range exceeds the files.
    pub(super) fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = self.pool.get(length);
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(&mut bytes[filled..], range.start + filled as u64)? {
                0 => break, // a file has been truncated
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    pub(super) fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        let Some((slice, range)) = self.slice_at(place) else { return Ok(0) };
        let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let most = most.min(buffer.len());
        slice.fetch(range.start..range.start + most as u64)?;
        retried(|| slice.file.read_at(&mut buffer[..most], range.start))
    }

    /// Returns the file that contains offset `place` of the concatenation, and the range in that
    /// file from there to the end of its slice. Returns `None` if `place` is at or beyond the end
    /// of the last file.
    pub(super) fn file_at(&self, place: u64) -> Option<(&File, Range<u64>)> {
        self.slice_at(place).map(|(slice, range)| (&slice.file, range))
    }

    fn slice_at(&self, mut place: u64) -> Option<(&Slice, Range<u64>)> {
        for slice in &self.slices {
            if place < slice.length {
                return Some((slice, slice.start + place..slice.start + slice.length));
            }
            place -= slice.length;
        }
        None
    }
}
