//! The cases in `bench/run/`, whose README.md describes the format.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::forms::{FORMS, PARTS, forms};
use crate::inputs::folder::{self, repeated};
use crate::inputs::{self, Input};
use crate::listing::{Block, blocks, megabytes};
use crate::pipelines::LOCALE;

/// Files of the listing, with their contents.
const FILES: [(&str, &str); 4] = [
    ("oneliners.txt", include_str!("../../run/oneliners.txt")),
    ("unix.txt", include_str!("../../run/unix.txt")),
    ("logs.txt", include_str!("../../run/logs.txt")),
    ("weather.txt", include_str!("../../run/weather.txt")),
];

/// The default sizes of a case, in millions of bytes.
const DEFAULT_SIZES_MEGABYTES: [u64; 3] = [1, 100, 1000];
/// Size in millions of bytes above which an input consists of repeated blocks.
const MAX_UNREPEATED_MEGABYTES: u64 = 200;
const MILLION: u64 = 1_000_000;

/// A pipeline or script that is measured on inputs of several sizes.
#[derive(Debug)]
pub struct Case {
    /// Unique name of the case.
    pub name: String,
    /// Name of the listing's file, without its extension.
    pub theme: &'static str,
    /// Sizes of the input, in millions of bytes.
    pub sizes: Vec<u64>,
    /// Input file of the case.
    pub input: &'static Input,
    /// Whether the case reads its input from standard input instead of naming the file.
    pub from_stdin: bool,
    /// Files that the case reads in addition to the input, with their sizes in millions of bytes.
    pub with: Vec<(&'static Input, u64)>,
    /// Value of `LC_ALL` for the run.
    pub locale: String,
    /// The pipeline, or the lines of a script.
    pub text: String,
    /// Whether `text` is a script of more than one line.
    pub script: bool,
    /// Numbers of the stages that cannot be data-parallel, from 1.
    pub serial: Vec<usize>,
    /// Share of CPU time that can be data-parallel, from 0 to 1. Scripts must state it, because
    /// their stages are not known. `None` for a pipeline whose share follows from `serial`.
    pub part: Option<f64>,
    /// Commands that run once in each folder of inputs, before measuring.
    pub prepare: Option<String>,
    /// Source for each tool in [`FORMS`]; `None` if the tool cannot run the case.
    pub forms: [Option<String>; 3],
}

/// Returns all cases of the listing.
///
/// # Errors
/// Returns an error if a file does not have the format, or if two cases have the same name.
pub fn listing() -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    for (file, text) in FILES {
        cases.extend(parse(file, text)?);
    }
    for (place, case) in cases.iter().enumerate() {
        let twice = cases[..place].iter().any(|other| other.name == case.name);
        ensure!(!twice, "two cases are named {}: rename one", case.name);
    }
    Ok(cases)
}

/// Parses the cases in `text`, the content of `file`.
///
/// # Errors
/// Returns an error if the text does not have the format. Errors name file and line.
pub fn parse(file: &'static str, text: &str) -> Result<Vec<Case>> {
    blocks(file, "case", text)?.iter().map(|block| case(file, block)).collect()
}

const ONCE: [&str; 7] = ["input", "stdin", "sizes", "locale", "serial", "part", "prepare"];
const OFTEN: [&str; 2] = ["with", "run"];

fn case(file: &'static str, block: &Block<'_>) -> Result<Case> {
    block
        .check(&[&ONCE[..], &PARTS].concat(), &[&OFTEN[..], &FORMS.map(|(_, key)| key)].concat())?;
    let named = block.read("input", inputs::known)?;
    let from_stdin = named.is_none();
    let fed = block.read("stdin", inputs::known)?;
    let input = named.or(fed).with_context(|| block.missing("input"))?;
    let text = block.lines("run").with_context(|| block.missing("run"))?;
    let script = text.contains('\n');
    let part = block.read("part", percent)?;
    ensure!(!script || part.is_some(), block.missing("part"));
    Ok(Case {
        name: block.name.to_owned(),
        theme: file.strip_suffix(".txt").unwrap_or(file),
        sizes: block.read("sizes", sizes)?.unwrap_or_else(|| DEFAULT_SIZES_MEGABYTES.to_vec()),
        input,
        from_stdin,
        with: block.values("with").map(with).collect::<Result<_>>()?,
        locale: block.value("locale").unwrap_or(LOCALE).to_owned(),
        text,
        script,
        serial: block.read("serial", numbers)?.unwrap_or_default(),
        part,
        prepare: block.value("prepare").map(str::to_owned),
        forms: forms(block, input.file, from_stdin),
    })
}

/// Parses sizes such as `1MB 100MB`, separated by blanks or commas, and returns them in millions of
/// bytes.
///
/// # Errors
/// Returns an error if `value` has another format.
pub fn sizes(value: &str) -> Result<Vec<u64>> {
    let size = |word| {
        megabytes(word).with_context(|| format!("`{word}` is not a size: write as in 1MB or 1GB"))
    };
    value.split([' ', ',']).map(size).collect()
}

fn numbers(value: &str) -> Result<Vec<usize>> {
    let number = |word: &str| {
        word.parse().ok().with_context(|| format!("`{word}` is not a stage: write as in 3,5"))
    };
    value.split(',').map(number).collect()
}

fn percent(value: &str) -> Result<f64> {
    match value.parse::<u8>() {
        Ok(percent) if percent <= 100 => Ok(f64::from(percent) / 100.0),
        _ => bail!("`{value}` is not a share: write percents, 0 to 100"),
    }
}

/// Parses a file and its size, such as `words.txt 1MB`; returns the input and its size in millions
/// of bytes.
fn with(value: &str) -> Result<(&'static Input, u64)> {
    let parts = value.split_once(' ').and_then(|(name, size)| Some((name, megabytes(size)?)));
    let (name, size) =
        parts.with_context(|| format!("`{value}`: write a file and a size: words.txt 1MB"))?;
    Ok((inputs::known(name)?, size))
}

impl Case {
    /// Returns the subfolder of `inputs` for inputs of `size` million bytes, in which the case
    /// runs.
    pub fn folder(&self, inputs: &Path, size: u64) -> PathBuf {
        inputs.join(format!("{size}MB"))
    }

    /// Makes the files of the case that do not exist yet, with an input of at most `size` million
    /// bytes. Then runs the commands that prepare the case, unless they have run in this folder.
    /// Returns the paths of the new files.
    ///
    /// # Errors
    /// Returns an error if a file cannot be made or the commands fail.
    pub fn make(&self, inputs: &Path, size: u64, seed: u64) -> Result<Vec<PathBuf>> {
        let folder = self.folder(inputs, size);
        let mut made = Vec::new();
        for &(input, size) in [(self.input, size)].iter().chain(&self.with) {
            let path = folder.join(input.file);
            let written = folder::make(&path, |out| match size {
                ..=MAX_UNREPEATED_MEGABYTES => input.write(size * MILLION, seed, out),
                _ => repeated(input, size * MILLION, seed, out),
            })?;
            made.extend(written.map(|_| path));
        }
        self.prepare(&folder)?;
        Ok(made)
    }

    fn prepare(&self, folder: &Path) -> Result<()> {
        let done = folder.join(format!("{}.prepared", self.name));
        let Some(text) = self.prepare.as_ref().filter(|_| !done.exists()) else { return Ok(()) };
        let status = crate::bash_command(text).current_dir(folder).status()?;
        ensure!(status.success(), "case {}: `{text}` failed: {status}", self.name);
        std::fs::write(done, "").context("cannot note that a case is prepared")
    }

    /// Returns the paths of the generated files that the case reads, the input first.
    pub fn files(&self, inputs: &Path, size: u64) -> Vec<PathBuf> {
        let folder = self.folder(inputs, size);
        let named = std::iter::once(self.input).chain(self.with.iter().map(|&(input, _)| input));
        named.map(|input| folder.join(input.file)).collect()
    }
}

#[cfg(test)]
mod tests;
