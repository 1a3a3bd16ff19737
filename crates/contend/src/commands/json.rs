//! `contend json`: prints values out of JSON.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;

use anyhow::{Context as _, Result};
use contend_json::error::FilterError;

use crate::exit::Exit;
use crate::settings::{Json, JsonInput};

/// Goes through the inputs, one after the other.
///
/// # Errors
/// When one of them is not JSON or cannot be read, or the output cannot be written.
pub fn run(settings: Json) -> Result<Exit> {
    // The standard library's own handle would look for line ends in what goes through it.
    let output = io::stdout().as_fd().try_clone_to_owned().context("cannot use standard output")?;
    let mut output = File::from(output);
    for JsonInput { name, mut file } in settings.inputs {
        let found = contend_json::filter(&mut file, &mut output, &settings.query, settings.format);
        match found {
            // The reader has gone, which is the reader's choice.
            Err(FilterError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            found => found.with_context(|| name)?,
        }
    }
    Ok(Exit::Success)
}
