//! Objects of a store, such as `s3://bucket/key` or `hdfs://server/path`, as files.
//!
//! An object is read into a temporary file, in the ranges that are needed: a part of a job needs its own bytes and the rest of
//! its last record. Only the feature `object-store` has a client for stores; without it, objects cannot be read.

#[cfg(feature = "object-store")]
mod client;
mod prefix;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

pub use prefix::Prefix;

/// Beginning of the names of objects in Amazon S3, or in a store with the same interface.
pub(crate) const S3: &str = "s3://";
/// Beginning of the names of files in the file system of Hadoop.
const HDFS: &str = "hdfs://";
/// Objects are read in ranges that begin and end at multiples of this number of bytes.
const BLOCK_BYTES: u64 = 1 << 20;
/// Largest number of blocks in a request. The client gives a request 30 seconds.
const MAX_BLOCKS: usize = 16;
/// Largest size of a request for an object in bytes.
const MAX_REQUEST_BYTES: u64 = MAX_BLOCKS as u64 * BLOCK_BYTES;

/// Whether the run is being ended, so that requests are given up.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Gives up all requests of this process, except for removals.
pub(crate) fn interrupt() {
    IS_OVER.store(true, Ordering::Relaxed);
}

/// Returns whether this contend can read and write objects.
pub(crate) fn is_supported() -> bool {
    cfg!(feature = "object-store")
}

/// Returns whether a name is that of an object.
pub(crate) fn is_object(name: &str) -> bool {
    [S3, HDFS].iter().any(|scheme| name.starts_with(scheme))
}

/// What a store says about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Properties {
    /// The size in bytes.
    pub bytes: u64,
    /// The time of the last modification, in nanoseconds since 1970.
    pub modified: i128,
    /// The version of the contents, which all reads must find.
    pub tag: String,
}

/// The properties that stores have told.
static KNOWN: LazyLock<Mutex<HashMap<String, Properties>>> = LazyLock::new(Mutex::default);

/// Returns the properties of an object. Asks the store once for each name, so that a process sees one version of it.
///
/// # Errors
/// Returns an error if the object cannot be read.
pub(crate) fn properties(name: &str) -> io::Result<Properties> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(properties) = known.get(name) {
        return Ok(properties.clone());
    }
    let found = client::properties(std::iter::once(name))?.pop();
    let found = found.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))?;
    known.insert(name.to_owned(), found.clone());
    Ok(found)
}

/// Makes reads of an object fail if it has other properties.
pub(crate) fn expect(name: &str, properties: Properties) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.insert(name.to_owned(), properties);
}

/// Requests the properties of all objects among the names concurrently. Ignores errors, which [`properties`] returns.
pub(crate) fn ask_for(names: &[String]) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = |name: &&str| is_object(name) && !known.contains_key(*name);
    let names: Vec<&str> = names.iter().map(String::as_str).filter(wanted).collect();
    if names.len() < 2 {
        return;
    }
    let found = client::properties(names.iter().copied()).unwrap_or_default();
    for (name, found) in names.into_iter().zip(found) {
        if let Ok(properties) = found {
            known.insert(name.to_owned(), properties);
        }
    }
}

/// Returns the bytes of an object in a range.
///
/// # Errors
/// Returns an error if the object cannot be read, or has changed.
pub(crate) fn read(name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
    let (mut bytes, properties) = (Vec::new(), properties(name)?);
    let range = range.start..range.end.min(properties.bytes);
    client::copy(name, &properties.tag, range, &mut bytes)?;
    Ok(bytes)
}

/// Writes the whole object, in its present version.
///
/// # Errors
/// Returns an error if the object cannot be read or changes, or the output cannot be written.
pub(crate) fn copy_all(name: &str, to: &mut dyn io::Write) -> io::Result<()> {
    let found = client::properties(std::iter::once(name))?.pop();
    let Properties { bytes, tag, .. } =
        found.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))?;
    let mut begin = 0;
    while begin < bytes {
        let end = bytes.min(begin + MAX_REQUEST_BYTES);
        client::copy(name, &tag, begin..end, to)?;
        begin = end;
    }
    Ok(())
}

/// An opened file, or an object.
#[derive(Debug)]
pub enum Opened {
    /// A file.
    File(File),
    /// An object, of which nothing may have been read yet.
    Object(PartialCopy),
}

impl Opened {
    /// Opens a file, or an object if the path is its name.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        match path.to_str().filter(|name| is_object(name)) {
            Some(name) => PartialCopy::new(name).map(Self::Object),
            None => File::open(path).map(Self::File),
        }
    }

    /// Returns the file. It has the whole object.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read.
    pub(crate) fn whole(self) -> io::Result<File> {
        match self {
            Self::File(file) => Ok(file),
            Self::Object(copy) => {
                copy.fetch(0..copy.properties.bytes)?;
                copy.file()
            }
        }
    }
}

/// A temporary file for the ranges of an object that have been read. The rest of the file is a hole.
#[derive(Debug)]
pub struct PartialCopy {
    name: String,
    properties: Properties,
    file: File,
    /// For each block of the object, whether it is in the file.
    blocks: Mutex<Vec<bool>>,
}

impl PartialCopy {
    /// Creates the file for an object.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read, or no file can be created.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let properties = properties(name)?;
        let file = tempfile::tempfile()?;
        file.set_len(properties.bytes)?;
        let count = usize::try_from(properties.bytes.div_ceil(BLOCK_BYTES)).unwrap_or(usize::MAX);
        Ok(Self { name: name.to_owned(), properties, file, blocks: Mutex::new(vec![false; count]) })
    }

    /// Returns the file.
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Reads a range of the object into the file, as far as it is not there.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read or has changed, or the file cannot be written.
    pub(crate) fn fetch(&self, range: Range<u64>) -> io::Result<()> {
        let end = range.end.min(self.properties.bytes);
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, last] = [range.start / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES)]
            .map(|block| usize::try_from(block).unwrap_or(usize::MAX).min(blocks.len()));
        let mut next = first;
        while next < last {
            // Blocks that are missing in a row are one request.
            let missing = blocks[next..last].iter().take(MAX_BLOCKS);
            let missing = missing.take_while(|&&is_there| !is_there).count();
            if missing == 0 {
                next += 1;
                continue;
            }
            let begin = next as u64 * BLOCK_BYTES;
            let end = self.properties.bytes.min(begin + missing as u64 * BLOCK_BYTES);
            let writer = &mut At { file: &self.file, place: begin };
            client::copy(&self.name, &self.properties.tag, begin..end, writer)?;
            blocks[next..next + missing].fill(true);
            next += missing;
        }
        Ok(())
    }
}

/// Writes to a file from a place on, whatever its offset is.
struct At<'a> {
    file: &'a File,
    place: u64,
}

impl io::Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = std::os::unix::fs::FileExt::write_at(self.file, bytes, self.place)?;
        self.place += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The client of a contend that cannot read objects.
#[cfg(not(feature = "object-store"))]
mod client {
    use super::{File, Properties, Range, io};

    fn unsupported<T>() -> io::Result<T> {
        Err(io::Error::other("this contend was built without the feature object-store"))
    }

    pub(super) fn properties<'a>(
        _: impl Iterator<Item = &'a str>,
    ) -> io::Result<Vec<io::Result<Properties>>> {
        unsupported()
    }

    pub(super) fn copy(_: &str, _: &str, _: Range<u64>, _: &mut dyn io::Write) -> io::Result<()> {
        unsupported()
    }

    pub(super) fn open(_: &str, _: &str) -> io::Result<()> {
        unsupported()
    }

    pub(super) fn contents(_: &[String]) -> io::Result<Vec<io::Result<Vec<u8>>>> {
        unsupported()
    }

    pub(super) fn put(_: &str, _: &File) -> io::Result<()> {
        unsupported()
    }

    pub(super) fn list(_: &str) -> io::Result<Vec<String>> {
        unsupported()
    }

    pub(super) fn remove(_: &str) -> io::Result<()> {
        unsupported()
    }
}
