//! Unit costs of the operations in a copy, measured on this machine.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use contend_sys::mapping::{Backing, Mapping};
use rustix::fs::ftruncate;

use crate::support::unnamed_file::unnamed_in;

/// Times of single operations in nanoseconds, each the minimum of [`MEASUREMENT_ROUNDS`]
/// measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UnitCosts {
    /// Time of a system call that reads or writes one byte of a cached page.
    pub call: f64,
    /// Time of a minor page fault: the first access to a cached page through a mapping.
    pub fault: f64,
    /// Time to add a page to the page cache in a write, without the copying.
    pub new_page: f64,
    /// Time to read a page from the page cache, without the copying.
    pub read_page: f64,
    /// Time to copy a byte between buffers that are larger than most CPU caches.
    pub byte: f64,
}

const PAGE_BYTES: usize = 4096;
/// Length of the measured files and buffers, which exceeds most CPU caches.
const PROBE_BYTES: usize = 64 << 20;
const MEASUREMENT_ROUNDS: usize = 2;

impl UnitCosts {
    /// Returns the unit costs on the folder's file system. The first call for a folder measures
    /// them, which takes a few tenths of a second.
    ///
    /// # Errors
    /// Returns the error of the failed system call.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        static CACHE: Mutex<Vec<(PathBuf, UnitCosts)>> = Mutex::new(Vec::new());
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, unit_costs)) = cache.iter().find(|(path, _)| path == folder) {
            return Ok(*unit_costs);
        }
        let unit_costs = Self::measure(folder)?;
        cache.push((folder.to_owned(), unit_costs));
        Ok(unit_costs)
    }

    fn measure(folder: &Path) -> io::Result<Self> {
        let minimum = |mut once: Box<dyn FnMut() -> io::Result<f64> + '_>| {
            let times = (0..MEASUREMENT_ROUNDS).map(|_| once()).collect::<io::Result<Vec<_>>>()?;
            Ok::<_, io::Error>(times.into_iter().fold(f64::INFINITY, f64::min))
        };
        let copied = minimum(Box::new(time_byte))?;
        let without_copy = |page: f64| (page - copied * PAGE_BYTES as f64).max(0.0);
        let (mut new_page, mut read_page) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..MEASUREMENT_ROUNDS {
            let [written, read] = time_pages(folder)?;
            (new_page, read_page) = (new_page.min(written), read_page.min(read));
        }
        Ok(Self {
            call: minimum(Box::new(|| time_call(folder)))?,
            fault: minimum(Box::new(|| time_fault(folder)))?,
            new_page: without_copy(new_page),
            read_page: without_copy(read_page),
            byte: copied,
        })
    }
}

fn ns_per(time: Duration, parts: usize) -> f64 {
    time.as_nanos() as f64 / parts as f64
}

fn time_call(folder: &Path) -> io::Result<f64> {
    const CALLS: usize = 10_000;
    let file = unnamed_in(folder)?;
    rustix::io::pwrite(&file, &[1; PAGE_BYTES], 0)?;
    let begun = Instant::now();
    for offset in 0..CALLS / 2 {
        let (mut byte, offset) = ([0], (offset % PAGE_BYTES) as u64);
        rustix::io::pread(&file, &mut byte, offset)?;
        rustix::io::pwrite(&file, &byte, offset)?;
    }
    Ok(ns_per(begun.elapsed(), CALLS))
}

fn time_fault(folder: &Path) -> io::Result<f64> {
    let file = unnamed_in(folder)?;
    ftruncate(&file, PROBE_BYTES as u64)?;
    let all = Mapping::populated(Backing::File(file.as_fd()), PROBE_BYTES)?; // allocates the pages of the file
    let mapping = Mapping::new(Backing::File(file.as_fd()), PROBE_BYTES)?;
    let begun = Instant::now();
    let faults = mapping.touch();
    let time = begun.elapsed();
    drop(all);
    Ok(ns_per(time, faults))
}

/// Returns the times to write and to read a page in nanoseconds, including the copying.
fn time_pages(folder: &Path) -> io::Result<[f64; 2]> {
    let file = unnamed_in(folder)?;
    let mut bytes = vec![1; 1 << 20];
    let begun = Instant::now();
    for offset in (0..PROBE_BYTES).step_by(bytes.len()) {
        rustix::io::pwrite(&file, &bytes, offset as u64)?;
    }
    let written = ns_per(begun.elapsed(), PROBE_BYTES / PAGE_BYTES);
    let begun = Instant::now();
    for offset in (0..PROBE_BYTES).step_by(bytes.len()) {
        rustix::io::pread(&file, &mut bytes, offset as u64)?;
    }
    Ok([written, ns_per(begun.elapsed(), PROBE_BYTES / PAGE_BYTES)])
}

fn time_byte() -> io::Result<f64> {
    let memory = || Mapping::populated(Backing::Private, PROBE_BYTES);
    let (from, to) = (memory()?, memory()?);
    let begun = Instant::now();
    to.copy(&from, PROBE_BYTES);
    Ok(ns_per(begun.elapsed(), PROBE_BYTES))
}
