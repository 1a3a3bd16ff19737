//! Finds the input of a pipeline. The plan opens the first stage's files itself if that makes no
//! difference to the output.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use contend_commands::options::{Options, Table};
use contend_commands::{Simple, purity};
use contend_shell::environment::{Paths, is_genuine};
use rustix::fs::SeekFrom;

use super::Situation;
use crate::objects;
use crate::plan::ir::Source;

/// The input of a plan, and what remains of the pipeline's first stage.
#[derive(Debug)]
pub(super) struct Found {
    /// Origin of the input of the plan's first step.
    pub source: Source,
    /// The first stage without the files that the plan opens; `None` if it is unchanged or left
    /// out.
    pub first: Option<Simple>,
    /// Why the first stage is not needed; `None` if it is needed.
    pub left_out: Option<&'static str>,
    /// Why the first stage keeps its files, if there is a specific reason.
    pub obstacle: Option<String>,
}

impl Found {
    /// Returns a result that leaves all files to the first stage.
    fn nothing() -> Self {
        Self { source: Source::Own, first: None, left_out: None, obstacle: None }
    }

    /// Returns the result with all files given back to the first stage. `why` is the reason why the
    /// stage, classified without them, does not run over chunks. A reason that is already recorded
    /// takes precedence.
    pub(super) fn left_alone(self, why: Option<String>) -> Self {
        Self { obstacle: self.obstacle.or(why), ..Self::nothing() }
    }

    /// Returns a result that takes the named files from the first stage.
    fn files(names: Vec<String>) -> Self {
        Self { source: Source::Files(names), ..Self::nothing() }
    }

    /// Returns a result that leaves all files to the first stage, for the given reason.
    fn left_for(obstacle: String) -> Self {
        Self { obstacle: Some(obstacle), ..Self::nothing() }
    }
}

/// Commands whose output for files is the same as for their concatenation on standard input. Those
/// that are also in `NAMELESS_ALONE` qualify only with a single file.
const NAMELESS: &[&str] = &[
    "awk",
    "mawk",
    "gawk",
    "nawk",
    "original-awk",
    "cut",
    "expand",
    "fold",
    "head",
    "iconv",
    "jq",
    "rev",
    "sed",
    "sort",
    "tail",
    "unexpand",
];
/// Commands whose output is the same for standard input and a single file, but not for several
/// files.
const NAMELESS_ALONE: &[&str] = &["grep", "egrep", "fgrep", "head", "tail", "iconv"];

pub(super) fn find(stages: &[Simple], situation: &Situation<'_>) -> Found {
    let Some(first) = stages.first() else { return Found::nothing() };
    let is_known = situation.environment.is_file(&first.program.text);
    if !is_known && super::annotation(first, situation).is_none() {
        return Found::nothing();
    }
    if first.name() == "cat" {
        let only_files =
            Options::read(&first.arguments, &Table { short: "u", long: &[] }).map(|options| {
                options
                    .operands
                    .iter()
                    .map(|&at| first.arguments[at].text.clone())
                    .collect::<Vec<_>>()
            });
        let why = "contend reads its file directly";
        match (only_files, &first.input) {
            (Some(names), None) if !names.is_empty() => {
                match objection(&names, situation.reads_objects) {
                    Some(obstacle) => return Found::left_for(obstacle),
                    None => return Found { left_out: Some(why), ..Found::files(names) },
                }
            }
            _ => {}
        }
    }
    if let Some(file) = &first.input {
        let names = vec![file.text.clone()];
        if let Some(obstacle) = objection(&names, situation.reads_objects) {
            return Found::left_for(obstacle);
        }
        let without = Simple { input: None, ..first.clone() };
        return Found { first: Some(without), ..Found::files(names) };
    }
    match named(first) {
        Some((names, without)) => {
            match objection(&names, situation.reads_objects).or_else(|| open_end(&names, first)) {
                Some(obstacle) => Found::left_for(obstacle),
                None => Found { first: Some(without), ..Found::files(names) },
            }
        }
        None if reads_standard_input(first) => {
            Found { source: Source::Standard, ..Found::nothing() }
        }
        None => Found::nothing(),
    }
}

/// Commands that read a file as they read a pipe with the same contents, and do nothing else with
/// it. `wc` is missing because it uses a file's size, and `tail` because it may wait for the file
/// to grow.
const READERS: &[&str] =
    &["cut", "egrep", "fgrep", "fold", "grep", "head", "rev", "sort", "tr", "uniq"];

/// Returns the second stage with the first one's file as its standard input. Returns `None` unless
/// the first one is a `cat` that only forwards that file, and the second one is known to read the
/// file as it reads a pipe.
pub(super) fn reader_of_file(stages: &[Simple], paths: &Paths) -> Option<Simple> {
    let [first, second, ..] = stages else { return None };
    let [file] = first.arguments.as_slice() else { return None };
    let hands_on =
        first.program.text == "cat" && first.variables.is_empty() && first.input.is_none();
    let name = &file.text;
    let is_operand = !name.starts_with('-');
    let are_known = [first, second].iter().all(|stage| {
        let path = paths.get(&stage.program.text).and_then(|path| path.to_str());
        path.is_some_and(is_genuine)
    });
    let reads = READERS.contains(&second.program.text.as_str()) && reads_standard_input(second);
    // A command that finds its output file among its inputs reports an error.
    if !are_known
        || !hands_on
        || !is_operand
        || !reads
        || second.input.is_some()
        || objection(std::slice::from_ref(name), false).is_some()
    {
        return None;
    }
    Some(Simple { input: Some(file.clone()), ..second.clone() })
}

/// Returns whether standard output is, or may be, the named file.
fn is_standard_output(name: &str) -> bool {
    let [Ok(file), Ok(output)] = [rustix::fs::stat(name), rustix::fs::fstat(std::io::stdout())]
    else {
        return true;
    };
    (file.st_dev, file.st_ino) == (output.st_dev, output.st_ino)
}

/// Returns the names of a command's input files, and the command without them. Returns `None` if
/// the files are unknown, if there are none, or if the output may depend on their names or number.
fn named(simple: &Simple) -> Option<(Vec<String>, Simple)> {
    let name = simple.name();
    let files = purity::named_files(simple)?;
    let names: Vec<String> = files.iter().map(|file| file.text.clone()).collect();
    let nameless = NAMELESS_ALONE.contains(&name) && names.len() == 1
        || NAMELESS.contains(&name) && !NAMELESS_ALONE.contains(&name);
    if !nameless {
        return None;
    }
    Some((names, purity::without_files(simple)?))
}

fn reads_standard_input(simple: &Simple) -> bool {
    matches!(purity::source(simple), purity::Source::Standard)
}

/// Returns why the plan cannot read the named files itself, or `None` if all are regular, readable,
/// non-empty files without holes, none of which can be the output. With `reads_objects`, they may be objects.
fn objection(names: &[String], reads_objects: bool) -> Option<String> {
    if reads_objects {
        objects::ask_for(names);
    }
    let objection = |name: &String| -> io::Result<Option<&str>> {
        if name == "-" {
            return Ok(Some("is its standard input"));
        }
        match (objects::is_object(name), reads_objects) {
            (true, true) => return objects::properties(name).map(|_| None),
            // A file with such a name cannot be told from an object later.
            (true, false) => return Ok(Some("has the name of an object")),
            (false, _) => {}
        }
        // Opening another kind of file may have an effect: a fifo's writer, for example, would
        // notice.
        if !Path::new(name).metadata()?.is_file() {
            return Ok(Some("is not a regular file"));
        }
        let file = File::open(name)?;
        let size = file.metadata()?.len();
        if size == 0 {
            return Ok(Some("is empty, or does not report its size"));
        }
        // grep looks for holes, which a pipe cannot have.
        if rustix::fs::seek(&file, SeekFrom::Hole(0)).unwrap_or(0) < size {
            return Ok(Some("has holes"));
        }
        Ok(is_standard_output(name).then_some("is also the output"))
    };
    names.iter().find_map(|name| match objection(name) {
        Ok(why) => why.map(|why| format!("`{name}` {why}")),
        Err(error) => Some(format!("`{name}` cannot be read: {error}")),
    })
}

/// Returns a message about the first file that may end with an incomplete record: its last byte is
/// not the separator, or cannot be read. The separator is NUL if the command's options may select
/// that, and a newline otherwise. Returns `None` if there is no such file. The last of the files is
/// not examined, since no other follows it.
fn open_end(names: &[String], command: &Simple) -> Option<String> {
    let mut options = command.arguments.iter().filter(|word| word.text.starts_with('-'));
    let may_be_null = options.any(|word| word.text.contains('z') || word.text.contains("null"));
    let end = if may_be_null { 0 } else { b'\n' };
    let ends_well = |name: &String| -> std::io::Result<bool> {
        if objects::is_object(name) {
            let bytes = objects::properties(name)?.bytes;
            return Ok(bytes == 0 || objects::read(name, bytes - 1..bytes)? == [end]);
        }
        let file = File::open(name)?;
        let mut last = [0];
        file.read_exact_at(&mut last, file.metadata()?.len().saturating_sub(1))?;
        Ok(last == [end])
    };
    let (_, others) = names.split_last()?;
    let open = others.iter().find(|name| !ends_well(name).unwrap_or(false))?;
    Some(format!("`{open}` ends with an incomplete record"))
}
