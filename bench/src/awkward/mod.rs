//! Awkward inputs and random pipelines over them, to find wrong rewrites.
//!
//! A wrong rewrite shows up on inputs that are empty, binary or without a final newline, and on
//! pipelines that only resemble one that may be rewritten. Both are frequent here.

mod inputs;
pub mod parallel;
mod shapes;
mod stages;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result};
use fastrand::Rng;

pub use inputs::Kind;
pub use shapes::{Form, SHAPES, Shape};

/// Name of the input file in the pipelines' working directory.
pub const FILE: &str = "input";

/// Probability that a pipeline contains one of `SHAPES`, as numerator and denominator.
const SHAPE_PROBABILITY: (u8, u8) = (3, 4);
const MAX_STAGES: usize = 5;

/// A pipeline and an input for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Text of the pipeline, whose stages write only to their output. Pipelines from [`pairs`] have
    /// two to five stages.
    pub pipeline: String,
    /// Whether the input is standard input; otherwise the pipeline names [`FILE`].
    pub from_stdin: bool,
    /// Value of `LC_ALL`.
    pub locale: &'static str,
    /// Name and form of the shape in the pipeline; `None` if it contains no shape.
    pub shape: Option<(&'static str, Form)>,
    /// The property that makes the input awkward.
    pub kind: Kind,
    /// Content of the input, of up to about 50 MB.
    pub input: Vec<u8>,
}

/// Returns the first `count` pairs of the sequence that `seed` determines. Inputs rotate through
/// `Kind::ALL`. Each is made when its pair is requested, because together they may take hundreds of
/// megabytes.
pub fn pairs(seed: u64, count: usize) -> impl Iterator<Item = Pair> {
    let mut random = Rng::with_seed(seed);
    let kinds = Kind::ALL.into_iter().cycle();
    kinds.take(count).map(move |kind| pair(kind, &mut random.fork()))
}

fn pair(kind: Kind, random: &mut Rng) -> Pair {
    let (text, shape) = body(random);
    let (pipeline, from_stdin) = feed(text, random);
    Pair {
        pipeline,
        from_stdin,
        locale: if random.u8(0..3) == 0 { "C" } else { "C.UTF-8" },
        shape,
        kind,
        input: kind.bytes(random),
    }
}

/// Draws stages: usually a shape, with other stages around it. Returns the pipeline, and the
/// shape's name and form if there is a shape.
fn body(random: &mut Rng) -> (String, Option<(&'static str, Form)>) {
    let mut parts = Vec::new();
    let mut shape = None;
    if random.u8(0..SHAPE_PROBABILITY.1) < SHAPE_PROBABILITY.0 {
        let drawn = &SHAPES[random.usize(..SHAPES.len())];
        let (template, form) = drawn.draw(random);
        let text = stages::fill(template, random);
        shape = Some((drawn.name, form));
        // A shape that names the input file can only be first.
        if !names_file(&text) && random.bool() {
            parts.push(stages::flowing(random));
        }
        parts.push(text);
    }
    let stages = |parts: &[String]| parts.iter().map(|part| count(part)).sum::<usize>();
    let wanted = random.usize(2..=MAX_STAGES).max(stages(&parts));
    while stages(&parts) < wanted {
        let last = stages(&parts) + 1 == wanted;
        parts.push(if last { stages::any(random) } else { stages::flowing(random) });
    }
    (parts.join(" | "), shape)
}

fn count(text: &str) -> usize {
    crate::pipelines::stages(text).len()
}

fn names_file(text: &str) -> bool {
    text.split([' ', '<']).any(|word| word == FILE)
}

/// Makes the pipeline read the input in one of several usual ways, unless it already names the
/// input file. Returns the pipeline, and whether it reads standard input.
fn feed(text: String, random: &mut Rng) -> (String, bool) {
    if names_file(&text) {
        return (text, false);
    }
    let first = crate::pipelines::stages(&text)[0];
    let rest = &text[first.len()..];
    let takes_operands = crate::pipelines::program(first) != "tr";
    let fits = count(&text) < MAX_STAGES;
    match random.u8(0..4) {
        0 if takes_operands => (format!("{first} {FILE}{rest}"), false),
        1 if fits => (format!("cat {FILE} | {text}"), false),
        2 => (text, true),
        _ => (format!("{first} <{FILE}{rest}"), false),
    }
}

impl Pair {
    /// Writes the input to `folder`, and returns a command that runs the pipeline there with bash,
    /// and the command's standard input.
    ///
    /// # Errors
    /// Returns an error if the input cannot be written or opened.
    pub fn command(&self, folder: &Path) -> Result<(Command, Stdio)> {
        let path = folder.join(FILE);
        std::fs::write(&path, &self.input)
            .with_context(|| format!("cannot write {}", path.display()))?;
        self.command_of(&self.pipeline, folder)
    }

    /// Runs `pipeline` in place of the original on the input that [`Self::command`] has written to
    /// `folder`, and returns its status and standard output.
    ///
    /// # Errors
    /// Returns an error if the input cannot be opened or the pipeline cannot be started.
    pub fn changed(&self, pipeline: &str, folder: &Path) -> Result<Output> {
        let (mut command, stdin) = self.command_of(pipeline, folder)?;
        Ok(command.stdin(stdin).stderr(Stdio::null()).output()?)
    }

    fn command_of(&self, pipeline: &str, folder: &Path) -> Result<(Command, Stdio)> {
        let stdin =
            if self.from_stdin { File::open(folder.join(FILE))?.into() } else { Stdio::null() };
        let mut command = crate::bash_command(pipeline);
        command.current_dir(folder).env("LC_ALL", self.locale);
        Ok((command, stdin))
    }
}

#[cfg(test)]
mod tests;
