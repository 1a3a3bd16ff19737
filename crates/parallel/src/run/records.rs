//! Records of the pipelines that a shell hands on to contend.

use std::fs::File;
use std::io::{BufReader, Seek as _};
use std::os::fd::AsRawFd as _;

use contend_record::run::RunRecord;
use rustix::fs::{MemfdFlags, memfd_create};

use super::error::{Context as _, RunError};

/// Where they go: a file without a name, to which everybody appends.
#[derive(Debug)]
pub(super) struct Records(File);

impl Records {
    /// A place for records.
    ///
    /// # Errors
    /// When there is no descriptor to be had.
    pub(super) fn new() -> Result<Self, RunError> {
        let file = memfd_create("contend-records", MemfdFlags::CLOEXEC);
        Ok(Self(file.context("there is no room for records")?.into()))
    }

    /// The path under which others find it, as long as this process lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// All that have been written.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn read(mut self) -> Result<Vec<RunRecord>, RunError> {
        self.0.rewind().context("cannot read the records of pipelines")?;
        let records = serde_json::Deserializer::from_reader(BufReader::new(self.0)).into_iter();
        records.collect::<Result<_, _>>().map_err(RunError::Records)
    }
}
