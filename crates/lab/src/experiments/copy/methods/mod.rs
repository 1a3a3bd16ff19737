//! Methods of copying a file: one file each, and the table of them.

mod in_kernel;
mod mapped;
mod program;
mod read_write;
mod stdio;
mod uring;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use contend_sys::mapping::{Backing, Mapping};
use contend_sys::uring::Uring;
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::location::Location;
use crate::support::syscalls::{Call, Tally};

/// The input of a copy, and the counters that it fills in.
pub struct CopyJob<'a> {
    /// The source.
    pub from: &'a Path,
    /// The target, which is empty.
    pub to: &'a Path,
    /// The size of the source, in bytes.
    pub bytes: usize,
    /// The advice for mappings, for methods that map a file.
    pub advice: MappingAdvice,
    /// Buffers allocated before the copy.
    pub resources: &'a mut Resources,
    /// The system calls that the method has made itself.
    pub tally: Tally,
    /// Time that child processes have spent queued for a CPU.
    pub queued: Duration,
}

/// What a method allocates before the copy, outside of its time.
#[derive(Debug, Default)]
pub struct Resources {
    /// The buffer of `read-write`.
    pub buffer: Vec<u8>,
    /// The submission ring of `io-uring`.
    pub uring: Option<Uring>,
}

/// Advice to the kernel about a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingAdvice {
    /// No advice.
    None,
    /// It is read sequentially.
    Sequential,
    /// Map all of its pages immediately.
    Populate,
    /// Use huge pages.
    HugePages,
}

impl MappingAdvice {
    /// The values of the `advice` parameter.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("sequential", Self::Sequential),
        ("populate", Self::Populate),
        ("huge-pages", Self::HugePages),
    ];

    /// Returns the advice with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, advice)| advice)
    }
}

/// A row of the table: a method of copying a file.
#[derive(Debug)]
pub struct CopyMethod {
    /// The value of the `way` parameter.
    pub name: &'static str,
    /// One line for lists and reports.
    pub summary: &'static str,
    /// The block sizes to measure, in bytes; empty if the method has none.
    pub blocks: &'static [u64],
    /// The mapping advice to measure; empty if the method does not map files.
    pub advices: &'static [&'static str],
    /// Returns why the method cannot be used here, or `None` if it can.
    pub unavailable: fn(Location, MappingAdvice) -> Option<String>,
    /// Allocates resources for blocks of this size, before the timed copy.
    pub prepare: Option<fn(usize) -> io::Result<Resources>>,
    /// Copies the file.
    pub copy: fn(&mut CopyJob<'_>) -> io::Result<()>,
    /// Whether the method counts its system calls itself. Calls of other programs and libraries are
    /// known only from the kernel's counters.
    pub counts_calls: bool,
}

/// All methods, in display order.
pub const TABLE: &[&CopyMethod] = &[
    &stdio::METHOD,
    &read_write::METHOD,
    &mapped::BY_BYTE,
    &mapped::BY_MEMCPY,
    &mapped::WRITE_FROM_MAPPING,
    &in_kernel::COPY_FILE_RANGE,
    &in_kernel::SENDFILE,
    &in_kernel::SPLICE,
    &uring::METHOD,
    &program::CP,
    &program::DD,
];

/// Returns the names of all methods.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|method| method.name).collect()
}

/// Returns the method with this name.
pub fn find(name: &str) -> Option<&'static CopyMethod> {
    TABLE.iter().copied().find(|method| method.name == name)
}

/// For methods that work everywhere.
fn always_available(_: Location, _: MappingAdvice) -> Option<String> {
    None
}

impl CopyJob<'_> {
    /// Makes a system call, and retries it when a signal interrupts it.
    fn call<T>(&mut self, call: Call, mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            self.tally.add(call);
            match make() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                made => return made,
            }
        }
    }

    /// Opens the source for reading, and the target truncated for reading and writing.
    fn open(&mut self) -> io::Result<(File, File)> {
        let (from, to) = (self.from, self.to);
        let open = |path: &Path, flags: OFlags| {
            Ok(openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?)
        };
        let from = self.call(Call::Openat, || open(from, OFlags::RDONLY))?;
        let truncate = OFlags::RDWR | OFlags::TRUNC;
        let to: OwnedFd = self.call(Call::Openat, || open(to, truncate))?;
        Ok((File::from(from), File::from(to)))
    }

    /// Closes both files.
    fn close(&mut self, files: (File, File)) {
        self.tally.add_many(Call::Close, 2);
        drop(files);
    }

    /// Maps a file, with the advice of the case.
    fn map(&mut self, backing: Backing<'_>) -> io::Result<Mapping> {
        let (advice, bytes) = (self.advice, self.bytes);
        let mapping = self.call(Call::Mmap, || match advice {
            MappingAdvice::Populate => Mapping::populated(backing, bytes),
            _ => Mapping::new(backing, bytes),
        })?;
        let advice = match advice {
            MappingAdvice::None | MappingAdvice::Populate => return Ok(mapping),
            MappingAdvice::Sequential => contend_sys::mapping::Advice::Sequential,
            MappingAdvice::HugePages => contend_sys::mapping::Advice::HugePages,
        };
        self.call(Call::Madvise, || mapping.advise(advice))?;
        Ok(mapping)
    }

    /// Removes a mapping.
    fn unmap(&mut self, mapping: Mapping) {
        self.tally.add(Call::Munmap);
        drop(mapping);
    }
}
