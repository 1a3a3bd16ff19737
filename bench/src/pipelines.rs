//! The listing of pipelines that predictions and rewrites are measured on: `bench/pipelines/`.
//!
//! README.md there describes the format. The listing is part of the program, so that every
//! program of this crate measures the same pipelines.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::inputs::{self, Input};
use crate::listing::{Block, blocks, megabytes};

/// The files of the listing, with their text.
const FILES: [(&str, &str); 5] = [
    ("text.txt", include_str!("../pipelines/text.txt")),
    ("logs.txt", include_str!("../pipelines/logs.txt")),
    ("tables.txt", include_str!("../pipelines/tables.txt")),
    ("json.txt", include_str!("../pipelines/json.txt")),
    ("lines.txt", include_str!("../pipelines/lines.txt")),
];

/// The locale of a pipeline that names none: what a user of UTF-8 has.
pub const LOCALE: &str = "C.UTF-8";
/// Larger inputs would not fit beside each other.
const MOST_MEGABYTES: u64 = 400;

/// The programs that a pipeline may use: they read and write nothing but their input and output,
/// and they are found on any Debian with `jq` and `bsdextrautils`.
pub const PROGRAMS: &[&str] = &[
    "awk", "cat", "col", "cut", "expand", "fold", "grep", "head", "jq", "nl", "paste", "rev",
    "sed", "sort", "tac", "tail", "tr", "uniq", "wc",
];

/// A pipeline of the listing.
#[derive(Debug)]
pub struct Entry {
    /// Its name, unlike all others.
    pub name: String,
    /// What it reads.
    pub input: &'static Input,
    /// How much of it, in millions of bytes.
    pub megabytes: u64,
    /// Whether it reads the input from its standard input instead of naming the file.
    pub from_stdin: bool,
    /// What `LC_ALL` is while it runs.
    pub locale: String,
    /// What a rewrite would break, or why there is nothing to gain, where it is there for that.
    pub trap: Option<String>,
    /// The pipeline.
    pub text: String,
}

/// The whole listing.
///
/// # Errors
/// Where a file of it does not keep to the format.
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

/// The pipelines in the text of a file; errors name the file and the line.
///
/// # Errors
/// Where the text does not keep to the format.
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

/// As in `access.log 100MB`.
fn input(value: &str) -> Result<(&'static Input, u64)> {
    let (name, size) = value
        .split_once(' ')
        .with_context(|| format!("`{value}` has no size: write as in access.log 100MB"))?;
    let input = inputs::known(name)?;
    let megabytes = size
        .ends_with("MB")
        .then(|| megabytes(size))
        .flatten()
        .filter(|megabytes| (1..=MOST_MEGABYTES).contains(megabytes))
        .with_context(|| format!("`{size}` is no size: write 1MB to {MOST_MEGABYTES}MB"))?;
    Ok((input, megabytes))
}

impl Entry {
    /// The folder in which it runs: `inputs` has one for each size.
    pub fn folder(&self, inputs: &Path) -> PathBuf {
        inputs.join(format!("{}MB", self.megabytes))
    }

    /// The file that it reads.
    pub fn path(&self, inputs: &Path) -> PathBuf {
        self.folder(inputs).join(self.input.file)
    }

    /// bash with this pipeline, in its folder, its locale and with its standard input.
    ///
    /// # Errors
    /// When its input is not there.
    pub fn command(&self, inputs: &Path) -> Result<(Command, Stdio)> {
        let path = self.path(inputs);
        let file = File::open(&path).with_context(|| {
            format!("{}: no input: make it with `bench-inputs {}`", self.name, inputs.display())
        })?;
        let stdin = if self.from_stdin { file.into() } else { Stdio::null() };
        let mut command = crate::plain(&self.text);
        command.current_dir(self.folder(inputs)).env("LC_ALL", &self.locale);
        Ok((command, stdin))
    }
}

/// The stages of a pipeline's text: parted at each `|` that no quotation mark protects.
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

/// The program of a stage, behind assignments such as `LC_ALL=C`.
pub fn program(stage: &str) -> &str {
    stage.split_whitespace().find(|word| !word.contains('=')).unwrap_or("")
}

#[cfg(test)]
mod tests;
