//! Ways to copy a file: one file each, and the one table.

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
use crate::support::calls::{Call, Tally};

/// A copy that is to be made, and what was made ready for it.
pub struct CopyJob<'a> {
    /// What is copied.
    pub from: &'a Path,
    /// What is still empty.
    pub to: &'a Path,
    /// How long it is.
    pub bytes: usize,
    /// What the kernel is told, where it is told something.
    pub advice: MappingAdvice,
    /// What was made before.
    pub resources: &'a mut Resources,
    /// The system calls that were made here.
    pub tally: Tally,
    /// How long programs that copy have waited for a CPU.
    pub queued: Duration,
}

/// What is made before a copy, and not part of it.
#[derive(Debug, Default)]
pub struct Resources {
    /// A block of memory.
    pub buffer: Vec<u8>,
    /// A ring of submissions.
    pub uring: Option<Uring>,
}

/// What the kernel is told of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingAdvice {
    /// Nothing.
    None,
    /// That it is read from the beginning to the end.
    Sequential,
    /// That all of its pages are wanted at once.
    Populate,
    /// That huge pages are wanted.
    HugePages,
}

impl MappingAdvice {
    /// Those with a name.
    pub const NAMED: [(&'static str, Self); 4] = [
        ("none", Self::None),
        ("sequential", Self::Sequential),
        ("populate", Self::Populate),
        ("huge-pages", Self::HugePages),
    ];

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, advice)| advice)
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct CopyMethod {
    /// Its name.
    pub name: &'static str,
    /// What it does, in some words.
    pub summary: &'static str,
    /// How much it moves at a time, if that can be chosen.
    pub blocks: &'static [u64],
    /// What the kernel can be told, if anything.
    pub advices: &'static [&'static str],
    /// Why it cannot be done here, if so.
    pub unavailable: fn(Location, MappingAdvice) -> Option<String>,
    /// Makes ready what is not part of it, for blocks of so many bytes, if there is something.
    pub prepare: Option<fn(usize) -> io::Result<Resources>>,
    /// Copies.
    pub copy: fn(&mut CopyJob<'_>) -> io::Result<()>,
    /// Whether its system calls are made here; those of other programs and libraries are only known as
    /// far as the kernel counts them.
    pub counts_calls: bool,
}

/// All of them, in the order in which they are shown.
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

/// The names of all.
pub fn names() -> Vec<&'static str> {
    TABLE.iter().map(|method| method.name).collect()
}

/// The one of this name.
pub fn find(name: &str) -> Option<&'static CopyMethod> {
    TABLE.iter().copied().find(|method| method.name == name)
}

/// For those that work everywhere.
fn always_available(_: Location, _: MappingAdvice) -> Option<String> {
    None
}

impl CopyJob<'_> {
    /// Does a system call, and again after a signal.
    fn call<T>(&mut self, call: Call, mut make: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        loop {
            self.tally.add(call);
            match make() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                made => return made,
            }
        }
    }

    /// Opens the one to read, and the other one to write from its beginning.
    fn open(&mut self) -> io::Result<(File, File)> {
        let (from, to) = (self.from, self.to);
        let open = |path: &Path, flags: OFlags| {
            Ok(openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty())?)
        };
        let from = self.call(Call::Openat, || open(from, OFlags::RDONLY))?;
        let anew = OFlags::RDWR | OFlags::TRUNC;
        let to: OwnedFd = self.call(Call::Openat, || open(to, anew))?;
        Ok((File::from(from), File::from(to)))
    }

    /// Closes both.
    fn close(&mut self, files: (File, File)) {
        self.tally.add_many(Call::Close, 2);
        drop(files);
    }

    /// Maps a file as advised.
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

    /// Unmaps it.
    fn unmap(&mut self, mapping: Mapping) {
        self.tally.add(Call::Munmap);
        drop(mapping);
    }
}
