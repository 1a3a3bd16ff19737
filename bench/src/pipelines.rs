//! The listing of pipelines that predictions and rewrites are measured on: `bench/pipelines/`.
//!
//! README.md there describes the format. The listing is part of the program, so that every
//! program of this crate measures the same pipelines.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::inputs::{self, Input};

/// The files of the listing, with their text.
const FILES: [(&str, &str); 5] = [
    ("text.txt", include_str!("../pipelines/text.txt")),
    ("logs.txt", include_str!("../pipelines/logs.txt")),
    ("tables.txt", include_str!("../pipelines/tables.txt")),
    ("json.txt", include_str!("../pipelines/json.txt")),
    ("lines.txt", include_str!("../pipelines/lines.txt")),
];

/// The locale of a pipeline that names none: what a user of UTF-8 has.
const LOCALE: &str = "C.UTF-8";
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
    let mut entries = Vec::new();
    let mut open: Option<(usize, Draft)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let place = || format!("{file}:{number}");
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let (key, value) = line.split_once(' ').with_context(|| {
            format!("{}: `{line}` has no value: write a key, a space and the value", place())
        })?;
        if key == "pipeline" {
            entries.extend(open.take().map(|draft| finish(file, draft)).transpose()?);
            open = Some((number, Draft { name: value.trim().to_owned(), ..Draft::default() }));
        } else {
            let (_, draft) = open.as_mut().with_context(|| {
                format!("{}: `{key}` stands before the first `pipeline NAME`", place())
            })?;
            draft.set(key, value.trim()).with_context(place)?;
        }
    }
    entries.extend(open.map(|draft| finish(file, draft)).transpose()?);
    Ok(entries)
}

/// What has been read of an entry.
#[derive(Debug, Default)]
struct Draft {
    name: String,
    input: Option<(&'static Input, u64, bool)>,
    locale: Option<String>,
    trap: Option<String>,
    text: Option<String>,
}

impl Draft {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let twice = match key {
            "input" => self.input.replace(input(value, false)?).is_some(),
            "stdin" => self.input.replace(input(value, true)?).is_some(),
            "locale" => self.locale.replace(value.to_owned()).is_some(),
            "trap" => self.trap.replace(value.to_owned()).is_some(),
            "run" => self.text.replace(value.to_owned()).is_some(),
            _ => bail!("unknown key `{key}`: use pipeline, input, stdin, locale, trap or run"),
        };
        ensure!(!twice, "`{key}` stands twice in pipeline {}: remove one", self.name);
        Ok(())
    }
}

/// As in `access.log 100MB`.
fn input(value: &str, from_stdin: bool) -> Result<(&'static Input, u64, bool)> {
    let (name, size) = value
        .split_once(' ')
        .with_context(|| format!("`{value}` has no size: write as in access.log 100MB"))?;
    let input = inputs::find(name)
        .with_context(|| format!("no input is named {name}: see the table in inputs/mod.rs"))?;
    let megabytes = size
        .strip_suffix("MB")
        .and_then(|number| number.parse().ok())
        .filter(|megabytes| (1..=MOST_MEGABYTES).contains(megabytes))
        .with_context(|| format!("`{size}` is no size: write 1MB to {MOST_MEGABYTES}MB"))?;
    Ok((input, megabytes, from_stdin))
}

fn finish(file: &str, (line, draft): (usize, Draft)) -> Result<Entry> {
    let missing = |key| format!("{file}:{line}: pipeline {} has no `{key}`: add it", draft.name);
    let (input, megabytes, from_stdin) = draft.input.with_context(|| missing("input"))?;
    Ok(Entry {
        text: draft.text.with_context(|| missing("run"))?,
        name: draft.name,
        input,
        megabytes,
        from_stdin,
        locale: draft.locale.unwrap_or_else(|| LOCALE.to_owned()),
        trap: draft.trap,
    })
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
