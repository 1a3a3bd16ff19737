//! Settings of `contend json`: which arguments are paths, and the files opened.

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

/// What is looked for in JSON, and where.
#[derive(Debug)]
pub struct Json {
    /// The paths.
    pub query: Query,
    /// How values are printed.
    pub format: Format,
    /// What is read, one after the other.
    pub inputs: Vec<JsonInput>,
}

/// An input of `contend json`.
#[derive(Debug)]
pub struct JsonInput {
    /// What it is called in errors.
    pub name: String,
    /// It.
    pub file: File,
}

/// Settings of `contend json`.
///
/// # Errors
/// A [`UsageError`] when there is no path, one is wrong, or a file cannot be opened.
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

/// Files of which the name begins like that are given as `./.name`.
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
