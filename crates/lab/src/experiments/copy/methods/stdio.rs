//! By the C library's buffers.

use std::os::fd::AsFd;

use super::{CopyMethod, always_available};

/// As the first program of every textbook does it.
pub const METHOD: CopyMethod = CopyMethod {
    name: "fgetc-fputc",
    summary: "fgetc and fputc, a character at a time, through the C library's buffers",
    blocks: &[],
    advices: &[],
    unavailable: always_available,
    prepare: None,
    copy: |job| {
        let files = job.open()?;
        contend_sys::stdio::copy(files.0.as_fd(), files.1.as_fd())?;
        job.close(files);
        Ok(())
    },
    counts_calls: false,
};
