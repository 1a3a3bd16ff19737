//! What goes through the commands of a pipeline, as far as their names and arguments tell.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use contend_record::run::Command;

use super::rates::{is_sort, known_rate, name_of, rate};

/// A usual length of lines in bytes.
pub(super) const USUAL_LINE: f64 = 50.0;
/// A usual length of words, each on a line.
const WORD: f64 = 6.0;
/// How much of sorted lines is left where each is kept once.
const DISTINCT: f64 = 0.2;
/// How much of an input `grep` finds in it, if that begins with a certain letter.
const FOUND: f64 = 0.2;
/// How much of a file is looked at to know its lines, in bytes.
const BEGINNING: usize = 16 << 10;

/// What goes through a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Flow {
    /// CPU time that it needs, in nanoseconds a byte.
    pub rate: f64,
    /// How much of the input comes to it.
    pub volume: f64,
    /// It is a sort.
    pub sorts: bool,
}

impl Flow {
    /// CPU time that it needs, in nanoseconds for a byte of the input.
    pub(super) fn cpu(&self) -> f64 {
        self.rate * self.volume
    }
}

/// What goes from one command to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stream {
    /// How much of the input it is.
    pub volume: f64,
    /// The mean length of its lines in bytes.
    pub line: f64,
}

impl Stream {
    /// An input with lines of so many bytes.
    pub(super) fn of_lines(line: f64) -> Self {
        Self { volume: 1.0, line }
    }

    /// What this is for a command, which it then has gone through; what is not known of it is
    /// taken for the usual.
    pub(super) fn usual(&mut self, command: &Command) -> Flow {
        let rate = rate(&command.program, &command.arguments, self.line);
        self.at(rate, &command.program, &command.arguments)
    }

    /// The same; `None` if nothing is known of the command.
    pub(super) fn known(&mut self, program: &str, arguments: &[String]) -> Option<Flow> {
        Some(self.at(known_rate(program, arguments, self.line)?, program, arguments))
    }

    fn at(&mut self, rate: f64, program: &str, arguments: &[String]) -> Flow {
        let flow = Flow { rate, volume: self.volume, sorts: is_sort(program) };
        self.go_through(name_of(program), arguments);
        flow
    }

    fn go_through(&mut self, name: &str, arguments: &[String]) {
        let any = |texts: &[&str]| {
            arguments.iter().any(|argument| texts.iter().any(|text| argument.contains(text)))
        };
        let has = |letter| {
            let short = |word: &&String| word.starts_with('-') && !word.starts_with("--");
            arguments.iter().filter(short).any(|word| word.contains(letter))
        };
        let makes_words = match name {
            "tr" => !has('d') && arguments.last().is_some_and(|set| is_line_break(set)),
            "grep" | "egrep" => has('o'),
            "sed" => any(&["/\\n/"]),
            "awk" | "mawk" | "gawk" | "nawk" | "original-awk" => any(&["NF; i++", "NF;i++"]),
            _ => false,
        };
        if makes_words {
            self.line = self.line.min(WORD);
        }
        let is_grep = ["grep", "egrep", "fgrep"].contains(&name);
        let is_plain = |word: &String| {
            word.trim_start_matches('^').starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        if is_grep && !has('v') && arguments.iter().any(is_plain) {
            self.volume *= FOUND;
        }
        let counts = match name {
            "wc" | "head" | "tail" => true,
            _ => is_grep && has('c'),
        };
        if counts {
            self.volume = 0.0;
        }
        if name == "uniq" || name == "sort" && has('u') {
            self.volume *= DISTINCT;
        }
    }
}

/// Whether `tr` makes line breaks with this as its last set.
fn is_line_break(set: &str) -> bool {
    ["\n", "\\n", "\\012", "[\\n*]", "[\\012*]"].contains(&set)
}

/// An input, as far as it matters what can be done with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    /// Its size in bytes.
    pub bytes: u64,
    /// The mean length of its lines in bytes.
    pub line: f64,
}

impl Amount {
    /// That of the regular files with these names; `None` if one is none.
    pub fn of_files<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut all = Self { bytes: 0, line: USUAL_LINE };
        for name in names {
            let bytes = size_of(name)?;
            if all.bytes == 0 && bytes > 0 {
                all.line = File::open(name).map_or(USUAL_LINE, |file| line_at(file, 0));
            }
            all.bytes += bytes;
        }
        Some(all)
    }

    /// That of this regular file from where it is read, of which this is the size in all.
    pub fn of_rest(file: impl AsFd, bytes: u64) -> Self {
        let here = rustix::fs::tell(&file).unwrap_or(0);
        Self { bytes: bytes.saturating_sub(here), line: line_at(file, here) }
    }

    /// That of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, line: line_of(&bytes[..bytes.len().min(BEGINNING)]) }
    }
}

/// The size of a regular file in bytes.
pub(super) fn size_of(name: &str) -> Option<u64> {
    let data = Path::new(name).metadata().ok()?;
    data.is_file().then_some(data.len())
}

/// The mean length of these lines.
fn line_of(bytes: &[u8]) -> f64 {
    let lines = memchr::memchr_iter(b'\n', bytes).count();
    if bytes.is_empty() { USUAL_LINE } else { bytes.len() as f64 / lines.max(1) as f64 }
}

/// The mean length of lines behind this place of a file, which is read without moving in it.
fn line_at(file: impl AsFd, place: u64) -> f64 {
    let mut bytes = [0; BEGINNING];
    let read = rustix::io::pread(file, &mut bytes, place).unwrap_or(0);
    line_of(&bytes[..read])
}
