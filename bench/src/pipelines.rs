//! The pipelines in `bench/pipelines/`, with which predictions and rewrites are tested.
//!
//! The folder's README.md describes the format. The listing is compiled in, so that all programs of
//! this crate measure the same pipelines.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use contend_record::pipe::PipeRecord;

use crate::inputs::{self, Input};
use crate::listing::{Block, blocks, megabytes};

/// Files of the listing, with their contents.
const FILES: [(&str, &str); 5] = [
    ("text.txt", include_str!("../pipelines/text.txt")),
    ("logs.txt", include_str!("../pipelines/logs.txt")),
    ("tables.txt", include_str!("../pipelines/tables.txt")),
    ("json.txt", include_str!("../pipelines/json.txt")),
    ("lines.txt", include_str!("../pipelines/lines.txt")),
];

/// Locale of a pipeline that names none: a common one for UTF-8.
pub const LOCALE: &str = "C.UTF-8";
/// Largest size of an input, in millions of bytes, so that all inputs fit on a disk.
const MAX_MEGABYTES: u64 = 400;

/// Programs that a pipeline may use. They access only their input and output, and any Debian with
/// `jq` and `bsdextrautils` has them.
pub const PROGRAMS: &[&str] = &[
    "awk", "cat", "col", "cut", "expand", "fold", "grep", "head", "jq", "nl", "paste", "rev",
    "sed", "sort", "tac", "tail", "tr", "uniq", "wc",
];

/// A pipeline of the listing.
#[derive(Debug)]
pub struct Entry {
    /// Unique name of the pipeline.
    pub name: String,
    /// Input file of the pipeline.
    pub input: &'static Input,
    /// Size of the input, in millions of bytes.
    pub megabytes: u64,
    /// Whether the pipeline reads its input from standard input instead of naming the file.
    pub from_stdin: bool,
    /// Value of `LC_ALL` for the run.
    pub locale: String,
    /// For a pipeline that tests for wrong advice: the output that a rewrite would break, or why
    /// there is nothing to gain. `None` for other pipelines.
    pub trap: Option<String>,
    /// Source of the pipeline.
    pub text: String,
}

/// Options of programs that measure some of the pipelines.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// Folder with inputs that `bench-inputs` has made.
    pub inputs: PathBuf,
    /// Only pipelines whose name contains this text.
    #[arg(long, default_value = "")]
    only: String,
    /// Only every Nth of the chosen pipelines.
    #[arg(long, default_value_t = 1)]
    every: usize,
}

impl Selection {
    /// Returns the chosen pipelines.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`listing`].
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let chosen = listing()?.into_iter().filter(|entry| entry.name.contains(&self.only));
        Ok(chosen.step_by(self.every.max(1)).collect())
    }
}

/// Returns all pipelines of the listing.
///
/// # Errors
/// Returns an error if a file does not have the format, or if two pipelines have the same name.
pub fn listing() -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (file, text) in FILES {
        entries.extend(parse(file, text)?);
    }
    let mut names = BTreeSet::new();
    for entry in &entries {
        ensure!(names.insert(&entry.name), "two pipelines are named {}: rename one", entry.name);
    }
    Ok(entries)
}

/// Parses the pipelines in `text`, the content of `file`.
///
/// # Errors
/// Returns an error if the text does not have the format. Errors name file and line.
pub fn parse(file: &str, text: &str) -> Result<Vec<Entry>> {
    blocks(file, "pipeline", text)?.iter().map(entry).collect()
}

fn entry(block: &Block<'_>) -> Result<Entry> {
    block.check(&["input", "stdin", "locale", "trap", "run"], &[])?;
    let named = block.read("input", input)?;
    let from_stdin = named.is_none();
    let fed = block.read("stdin", input)?;
    let (input, megabytes) = named.or(fed).with_context(|| block.missing("input"))?;
    Ok(Entry {
        text: block.value("run").with_context(|| block.missing("run"))?.to_owned(),
        name: block.name.to_owned(),
        input,
        megabytes,
        from_stdin,
        locale: block.value("locale").unwrap_or(LOCALE).to_owned(),
        trap: block.value("trap").map(str::to_owned),
    })
}

/// Parses an input such as `access.log 100MB`; returns the input and its size in millions of bytes.
fn input(value: &str) -> Result<(&'static Input, u64)> {
    let (name, size) = value
        .split_once(' ')
        .with_context(|| format!("`{value}` has no size: write as in access.log 100MB"))?;
    let input = inputs::known(name)?;
    let megabytes = size
        .ends_with("MB")
        .then(|| megabytes(size))
        .flatten()
        .filter(|megabytes| (1..=MAX_MEGABYTES).contains(megabytes))
        .with_context(|| format!("`{size}` is not a size: write 1MB to {MAX_MEGABYTES}MB"))?;
    Ok((input, megabytes))
}

impl Entry {
    /// Returns the subfolder of `inputs` to run in, which is named for the input's size.
    pub fn folder(&self, inputs: &Path) -> PathBuf {
        inputs.join(format!("{}MB", self.megabytes))
    }

    /// Returns the path of the pipeline's input.
    pub fn path(&self, inputs: &Path) -> PathBuf {
        self.folder(inputs).join(self.input.file)
    }

    /// Returns a command that runs the pipeline with bash in its folder and locale, and the
    /// command's standard input: the input file, or `/dev/null` if the pipeline names the file.
    ///
    /// # Errors
    /// Returns an error if the input does not exist or cannot be opened.
    pub fn command(&self, inputs: &Path) -> Result<(Command, Stdio)> {
        let path = self.path(inputs);
        let file = File::open(&path).with_context(|| {
            format!("{}: no input: make it with `bench-inputs {}`", self.name, inputs.display())
        })?;
        let stdin = if self.from_stdin { file.into() } else { Stdio::null() };
        let mut command = crate::bash_command(&self.text);
        command.current_dir(self.folder(inputs)).env("LC_ALL", &self.locale);
        Ok((command, stdin))
    }

    /// Profiles the pipeline with `contend pipe`, and returns the record. `options` are further
    /// options of the command.
    ///
    /// # Errors
    /// Returns an error if contend cannot be started or writes no record.
    pub fn profile(&self, contend: &Path, inputs: &Path, options: &[&str]) -> Result<PipeRecord> {
        let mut command = Command::new(contend);
        command.args(["pipe", "--no-store"]).args(options);
        if self.from_stdin {
            command.arg("--stdin").arg(self.input.file);
        }
        command.current_dir(self.folder(inputs)).env("LC_ALL", &self.locale);
        crate::record_of(command, &self.text)
    }
}

/// Splits a pipeline at each `|` that is not quoted, and removes white space around the stages.
pub fn stages(text: &str) -> Vec<&str> {
    let (mut stages, mut begin, mut quote) = (Vec::new(), 0, None);
    let mut escaped = false;
    for (place, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, '|') => {
                stages.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    stages.push(text[begin..].trim());
    stages
}

/// Returns the name of a stage's program, which follows assignments such as `LC_ALL=C`; empty if
/// there is none.
pub fn program(stage: &str) -> &str {
    stage.split_whitespace().find(|word| !word.contains('=')).unwrap_or("")
}

#[cfg(test)]
mod tests;
