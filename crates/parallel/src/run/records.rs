//! Collects the records of the pipelines that contend takes over in shell source.

use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::os::fd::AsRawFd as _;

use contend_record::run::RunRecord;
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::{Context as _, RunError};

/// A file in memory to which the processes that run pipelines of shell source append their records.
#[derive(Debug)]
pub(super) struct Records(File);

impl Records {
    /// Creates an empty file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, for example because no file descriptor is
    /// free.
    pub(super) fn new() -> Result<Self, RunError> {
        let file = memfd_create("contend-records", MemfdFlags::CLOEXEC);
        Ok(Self(file.context("cannot create a temporary file for records")?.into()))
    }

    /// Returns the path by which other processes can open the file, as long as this process lives
    /// and `self` exists.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Returns all records that have been appended.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or contains anything but records.
    pub(super) fn read(mut self) -> Result<Vec<RunRecord>, RunError> {
        self.0.rewind().context("cannot read the records of pipelines")?;
        let records = serde_json::Deserializer::from_reader(BufReader::new(self.0)).into_iter();
        records.collect::<Result<_, _>>().map_err(RunError::Records)
    }
}
