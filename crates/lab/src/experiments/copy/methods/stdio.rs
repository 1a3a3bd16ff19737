//! Copies a file through the stdio buffers of the C library.

use std::os::fd::AsFd;

use super::{CopyMethod, always_available};

/// The `fgetc-fputc` method, the copy loop of C textbooks.
pub const METHOD: CopyMethod = CopyMethod {
    name: "fgetc-fputc",
    summary: "fgetc and fputc, one character at a time, through the buffers of the C library",
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
