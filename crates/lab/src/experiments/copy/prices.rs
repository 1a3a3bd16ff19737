//! What the parts of copying cost on this machine, so that it can be said which of them a copy comes to.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use contend_sys::mapping::{Backing, Mapping};
use rustix::fs::ftruncate;

use crate::support::files::unnamed_in;

/// What single things take, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    /// A system call that reads or writes one byte of a file, where the file has it in memory.
    pub call: f64,
    /// A page of a file touched for the first time in a mapping, where the file has it in memory.
    pub fault: f64,
    /// A page that a file gets when it is written to, without the copying itself.
    pub new_page: f64,
    /// A page of a file that is read, without the copying itself.
    pub read_page: f64,
    /// A byte copied from memory to memory, both far beyond all caches.
    pub byte: f64,
}

const PAGE: usize = 4096;
/// Bytes that are tried: far beyond all caches.
const TRIED: usize = 64 << 20;
const ROUNDS: usize = 2;

impl Prices {
    /// Those of this folder, measured when they are first asked for: a few tenths of a second.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn at(folder: &Path) -> io::Result<Self> {
        static KNOWN: Mutex<Vec<(PathBuf, Prices)>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, prices)) = known.iter().find(|(path, _)| path == folder) {
            return Ok(*prices);
        }
        let prices = Self::measure(folder)?;
        known.push((folder.to_owned(), prices));
        Ok(prices)
    }

    fn measure(folder: &Path) -> io::Result<Self> {
        let least = |mut once: Box<dyn FnMut() -> io::Result<f64> + '_>| {
            let times = (0..ROUNDS).map(|_| once()).collect::<io::Result<Vec<_>>>()?;
            Ok::<_, io::Error>(times.into_iter().fold(f64::INFINITY, f64::min))
        };
        let copied = least(Box::new(byte))?;
        let without_copy = |page: f64| (page - copied * PAGE as f64).max(0.0);
        let (mut new_page, mut read_page) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            let [written, read] = pages(folder)?;
            (new_page, read_page) = (new_page.min(written), read_page.min(read));
        }
        Ok(Self {
            call: least(Box::new(|| call(folder)))?,
            fault: least(Box::new(|| fault(folder)))?,
            new_page: without_copy(new_page),
            read_page: without_copy(read_page),
            byte: copied,
        })
    }
}

fn nanoseconds(time: Duration, parts: usize) -> f64 {
    time.as_nanos() as f64 / parts as f64
}

fn call(folder: &Path) -> io::Result<f64> {
    const CALLS: usize = 10_000;
    let file = unnamed_in(folder)?;
    rustix::io::pwrite(&file, &[1; PAGE], 0)?;
    let begun = Instant::now();
    for place in 0..CALLS / 2 {
        let (mut byte, place) = ([0], (place % PAGE) as u64);
        rustix::io::pread(&file, &mut byte, place)?;
        rustix::io::pwrite(&file, &byte, place)?;
    }
    Ok(nanoseconds(begun.elapsed(), CALLS))
}

fn fault(folder: &Path) -> io::Result<f64> {
    let file = unnamed_in(folder)?;
    ftruncate(&file, TRIED as u64)?;
    let all = Mapping::populated(Backing::File(file.as_fd()), TRIED)?; // the file has its pages now
    let mapping = Mapping::new(Backing::File(file.as_fd()), TRIED)?;
    let begun = Instant::now();
    let faults = mapping.touch();
    let time = begun.elapsed();
    drop(all);
    Ok(nanoseconds(time, faults))
}

/// A page that is written, and one that is read.
fn pages(folder: &Path) -> io::Result<[f64; 2]> {
    let file = unnamed_in(folder)?;
    let mut bytes = vec![1; 1 << 20];
    let begun = Instant::now();
    for place in (0..TRIED).step_by(bytes.len()) {
        rustix::io::pwrite(&file, &bytes, place as u64)?;
    }
    let written = nanoseconds(begun.elapsed(), TRIED / PAGE);
    let begun = Instant::now();
    for place in (0..TRIED).step_by(bytes.len()) {
        rustix::io::pread(&file, &mut bytes, place as u64)?;
    }
    Ok([written, nanoseconds(begun.elapsed(), TRIED / PAGE)])
}

fn byte() -> io::Result<f64> {
    let memory = || Mapping::populated(Backing::Private, TRIED);
    let (from, to) = (memory()?, memory()?);
    let begun = Instant::now();
    to.copy(&from, TRIED);
    Ok(nanoseconds(begun.elapsed(), TRIED))
}
