//! Reads the configuration file of `contend run`, which names commands that process each record
//! independently.

use std::io;
use std::path::{Path, PathBuf};

use contend_parallel::plan::planner::Annotation;
use contend_record::run::Records;
use rustix::io::Errno;
use serde::Deserialize;

use super::super::user_directory;
use crate::exit::UsageError;

/// Contents of the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default)]
    map: Vec<Entry>,
}

/// A command that processes each record independently.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: toml::Spanned<String>,
    #[serde(default = "lines")]
    records: Records,
}

fn lines() -> Records {
    Records::Lines
}

/// Returns the commands named in the user's configuration file; empty if the user has no readable
/// file.
///
/// # Errors
/// Returns an error if the file is not a valid configuration, or cannot be read for a reason other
/// than those in `is_absent`.
pub(super) fn annotations() -> Result<Vec<Annotation>, UsageError> {
    let Some(path) = path() else { return Ok(Vec::new()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => read(&text, &path),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(UsageError(format!("cannot read {}: {error}", path.display()))),
    }
}

fn path() -> Option<PathBuf> {
    user_directory("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("contend/run.toml"))
}

/// Returns whether the error means that the user has no readable file. An error because no
/// descriptor is free counts, too: nothing can then run in parallel, so the contents do not matter.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let is_limited = [Errno::MFILE, Errno::NFILE]
        .into_iter()
        .any(|limit| error.raw_os_error() == Some(limit.raw_os_error()));
    is_limited || matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn read(text: &str, path: &Path) -> Result<Vec<Annotation>, UsageError> {
    let wrong = |place: usize, what: &str| {
        let line = 1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count();
        // The message may have several lines.
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        UsageError(format!("{}, line {line}: {what}", path.display()))
    };
    let configuration: Configuration = toml::from_str(text)
        .map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message()))?;
    let annotation = |entry: Entry| {
        let command = entry.command.get_ref();
        Annotation::read(command, entry.records).ok_or_else(|| {
            let what = format!("'{command}': expected a command without shell syntax");
            wrong(entry.command.span().start, &what)
        })
    };
    configuration.map.into_iter().map(annotation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Annotation>, String> {
        super::read(text, Path::new("run.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_read_with_their_records() {
        let text = "[[map]]\ncommand = \"./own -x\"\n\n\
                    [[map]]\ncommand = 'two'\nrecords = \"csv\" # quoted\n";
        let own = Annotation { words: vec!["./own".into(), "-x".into()], records: Records::Lines };
        let two = Annotation { words: vec!["two".into()], records: Records::Csv };
        assert_eq!(read(text), Ok(vec![own, two]));
        assert_eq!(read("# nothing\n"), Ok(Vec::new()));
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        for (text, line, part) in [
            ("[[map]]\ncommand = ./own\n", 2, ""),
            ("\n[[map]]\nrecords = \"lines\"\n", 2, "command"),
            ("[[map]]\ncommand = \"a\"\nrecords = \"words\"\n", 3, "words"),
            ("[[map]]\ncommand = \"a\"\nrecord = \"nul\"\n", 3, "record"),
            (
                "[[map]]\ncommand = \"a | b\"\n",
                2,
                "'a | b': expected a command without shell syntax",
            ),
            ("[[maps]]\n", 1, "maps"),
        ] {
            let error = read(text).expect_err("something is wrong");
            assert!(error.starts_with(&format!("run.toml, line {line}: ")), "{text}: {error}");
            assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
