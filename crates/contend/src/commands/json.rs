//! `contend json`: prints values out of JSON.

use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use contend_json::error::FilterError;

use crate::exit::Exit;
use crate::output;
use crate::settings::{Json, JsonInput};

/// Goes through the inputs, one after the other.
///
/// # Errors
/// When one of them is not JSON or cannot be read, or the output cannot be written.
pub fn run(settings: Json) -> Result<Exit> {
    // The standard library's own handle would look for line ends in what goes through it.
    let mut output = output::Stdout::open().context("cannot open standard output")?;
    for JsonInput { name, mut file } in settings.inputs {
        let found = contend_json::filter(&mut file, &mut output, &settings.query, settings.format);
        match found {
            // The reader has gone, which is the reader's choice.
            Err(FilterError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(FilterError::Write(error)) => return Err(error).context(output::STDOUT_FAILED),
            found => found.with_context(|| name)?,
        }
    }
    Ok(Exit::Success)
}
