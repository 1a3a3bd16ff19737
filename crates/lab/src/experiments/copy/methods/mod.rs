//! Methods of copying a file. Each submodule defines related methods, and `TABLE` lists them all.

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

/// The input of a copy, and the counters that the copy method updates.
pub struct CopyJob<'a> {
    /// Path of the source.
    pub from: &'a Path,
    /// Path of the target, an empty file.
    pub to: &'a Path,
    /// Length of the source in bytes.
    pub bytes: usize,
    /// Advice to the kernel about mappings, for methods that map a file.
    pub advice: MappingAdvice,
    /// Resources that [`CopyMethod::prepare`] has allocated before the copy.
    pub resources: &'a mut Resources,
    /// Counts of the system calls made by the method itself, not by libraries or child processes.
    pub tally: Tally,
    /// Total time that child processes of the method were queued for a CPU.
    pub queued: Duration,
}

/// Resources that a method allocates before the timed copy.
#[derive(Debug, Default)]
pub struct Resources {
    /// Buffer of `read-write`, one block long; empty for other methods.
    pub buffer: Vec<u8>,
    /// Ring and buffers of `io-uring`; `None` for other methods.
    pub uring: Option<Uring>,
}

/// Advice to the kernel about a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingAdvice {
    /// No advice.
    None,
    /// Pages are accessed sequentially (`MADV_SEQUENTIAL`).
    Sequential,
    /// All pages are mapped immediately (`MAP_POPULATE`).
    Populate,
    /// Huge pages are preferred (`MADV_HUGEPAGE`).
    HugePages,
}

impl MappingAdvice {
    /// Values of the `advice` parameter, by name.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("sequential", Self::Sequential),
        ("populate", Self::Populate),
        ("huge-pages", Self::HugePages),
    ];

    /// Returns the advice with the given name, or `None` if there is none.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, advice)| advice)
    }
}

/// A method of copying a file: a row of `TABLE`.
#[derive(Debug)]
pub struct CopyMethod {
    /// Value of the `way` parameter.
    pub name: &'static str,
    /// One-line description for lists and reports.
    pub summary: &'static str,
    /// Block sizes to measure, in bytes; empty if the method has no variable block size.
    pub blocks: &'static [u64],
    /// Mapping advice to measure; empty if the method does not map files.
    pub advices: &'static [&'static str],
    /// Returns why the method cannot be used at the given location with the given mapping advice,
    /// or `None` if it can.
    pub unavailable: fn(Location, MappingAdvice) -> Option<String>,
    /// Allocates resources before the timed copy, for a block size in bytes; `None` if the method
    /// needs no resources.
    pub prepare: Option<fn(usize) -> io::Result<Resources>>,
    /// Opens both files, copies the source to the target, and closes both. The caller times this
    /// call.
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

/// Returns the names of all methods, in display order.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|method| method.name).collect()
}

/// Returns the method with the given name, or `None` if there is none.
pub fn find(name: &str) -> Option<&'static CopyMethod> {
    TABLE.iter().copied().find(|method| method.name == name)
}

/// Returns `None`. Serves as [`CopyMethod::unavailable`] of methods without requirements.
fn always_available(_: Location, _: MappingAdvice) -> Option<String> {
    None
}

impl CopyJob<'_> {
    /// Makes a system call by calling `make`, and retries it while signals interrupt it. Counts
    /// every try as a call of `call`.
    fn call<T>(&mut self, call: Call, mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            self.tally.add(call);
            match make() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                made => return made,
            }
        }
    }

    /// Opens the source for reading, and truncates and opens the target for reading and writing.
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

    /// Closes both files and counts the calls.
    fn close(&mut self, files: (File, File)) {
        self.tally.add_many(Call::Close, 2);
        drop(files);
    }

    /// Maps as many bytes of a file as the source has, gives the kernel the job's advice, and
    /// counts the calls.
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

    /// Unmaps a file and counts the call.
    fn unmap(&mut self, mapping: Mapping) {
        self.tally.add(Call::Munmap);
        drop(mapping);
    }
}
