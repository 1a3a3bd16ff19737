//! Settings of `contend json`: tells JSON paths from file names, and opens the files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use anyhow::Result;
use contend_json::format::Format;
use contend_json::path::Query;

use super::readable;
use crate::cli::json::JsonArgs;
use crate::exit::UsageError;

/// Settings of `contend json`.
#[derive(Debug)]
pub struct Json {
    /// The paths of the values to print.
    pub query: Query,
    /// The format of the printed values.
    pub format: Format,
    /// The inputs, in the order of the command line.
    pub inputs: Vec<JsonInput>,
}

/// An input of `contend json`: a file, or standard input.
#[derive(Debug)]
pub struct JsonInput {
    /// The name of the input in error messages.
    pub name: String,
    /// The file or standard input, open for reading.
    pub file: File,
}

/// Returns the settings of `contend json`.
///
/// # Errors
/// Returns a [`UsageError`] if there is no path, a path cannot be parsed, or a file cannot be
/// opened or is a directory.
pub fn json(args: JsonArgs) -> Result<Json> {
    let (paths, mut files): (Vec<_>, Vec<_>) = args.arguments.into_iter().partition(is_json_path);
    if paths.is_empty() {
        let message = "missing path: a path begins with a dot, and `.` is the whole value";
        return Err(UsageError(message.to_owned()).into());
    }
    let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
    let query = Query::parse(paths.iter().map(AsRef::as_ref));
    let query = query.map_err(|error| UsageError(error.to_string()))?;
    if files.is_empty() {
        files.push("-".into());
    }
    let inputs = files.iter().map(|name| json_input(name)).collect::<Result<_, _>>()?;
    Ok(Json { query, format: args.format.into(), inputs })
}

/// Returns whether the argument is a path into JSON, rather than a file. Users write `./.name` for
/// a file whose name begins with a dot.
fn is_json_path(argument: &OsString) -> bool {
    let text = argument.to_string_lossy();
    text.starts_with('.') && !text.starts_with("./") && !text.starts_with("../")
}

fn json_input(name: &OsStr) -> Result<JsonInput, UsageError> {
    let (name, opened) = if name == "-" {
        let input = io::stdin().as_fd().try_clone_to_owned().map(File::from);
        ("standard input".to_owned(), input)
    } else {
        (name.to_string_lossy().into_owned(), File::open(name))
    };
    let file = readable(&name, opened)?;
    Ok(JsonInput { name, file })
}
