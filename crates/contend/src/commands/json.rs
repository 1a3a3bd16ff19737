//! `contend json`: extracts values from JSON.

use std::io::ErrorKind;

use anyhow::{Context as _, Result};
use contend_json::error::FilterError;

use crate::exit::Exit;
use crate::output;
use crate::settings::{Json, JsonInput};

/// Prints the matching values of the inputs, in order. Stops early, with success, if standard
/// output is a pipe that its reader has closed.
///
/// # Errors
/// Returns an error if an input cannot be read, is not JSON or exceeds a limit, or if the output
/// cannot be written for another reason.
pub fn run(settings: Json) -> Result<Exit> {
    // The standard library's handle would search all output for line ends.
    let mut output = output::Stdout::open().context("cannot open standard output")?;
    for JsonInput { name, mut file } in settings.inputs {
        let found = contend_json::filter(&mut file, &mut output, &settings.query, settings.format);
        match found {
            // The reader has closed the pipe, as `head` does.
            Err(FilterError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(FilterError::Write(error)) => return Err(error).context(output::STDOUT_FAILED),
            found => found.with_context(|| name)?,
        }
    }
    Ok(Exit::Success)
}
