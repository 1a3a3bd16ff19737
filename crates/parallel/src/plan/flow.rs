//! Estimates the volume of data between commands from their names and arguments.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use contend_commands::options::Options;
use contend_commands::{Word, grep, head, sort, tr};

use super::rates::{is_sort, known_rate, name_of, rate};
use crate::objects;
use crate::plan::ir::Command;

/// Typical length of a line in bytes.
pub(crate) const USUAL_LINE_BYTES: f64 = 50.0;
/// Typical length in bytes of a line that consists of one word.
const USUAL_WORD_BYTES: f64 = 6.0;
/// Fraction of lines that typically remains after equal ones are merged.
const DISTINCT_SHARE: f64 = 0.2;
/// Fraction of its input that `grep` typically selects.
const FOUND_SHARE: f64 = 0.2;
/// CPU time of `grep` for its output, in nanoseconds per byte.
const SELECT_NS_PER_BYTE: f64 = 1.0;
/// Maximum number of bytes of an input that are examined to measure its lines.
const BEGINNING_BYTES: usize = 16 << 10;

/// Names of programs that select lines as `grep` does.
const GREPS: [&str; 3] = ["grep", "egrep", "fgrep"];

/// The volume of a command's input, and the command's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Flow {
    /// CPU time that the command needs, in nanoseconds per byte of its input.
    pub rate: f64,
    /// Volume of the command's input, in bytes per byte of the pipeline's input.
    pub volume: f64,
    /// Whether the command is `sort`.
    pub sorts: bool,
}

impl Flow {
    /// Returns the CPU time of the command, in nanoseconds per byte of the pipeline's input.
    pub(crate) fn cpu(&self) -> f64 {
        self.rate * self.volume
    }
}

/// Properties of the data between two commands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stream {
    /// Size of the data, in bytes per byte of the pipeline's input.
    pub volume: f64,
    /// Mean length of a line in bytes.
    pub line: f64,
}

impl Stream {
    /// Returns the input of a pipeline, with the given mean line length in bytes.
    pub(crate) fn of_lines(line: f64) -> Self {
        Self { volume: 1.0, line }
    }

    /// Replaces the stream by the output of a command, and returns the flow through that command.
    /// An unknown command has a default rate.
    pub(crate) fn flow_through(&mut self, command: &Command) -> Flow {
        let rate = rate(&command.program, &command.arguments, self.line);
        self.at(rate, &command.program, &command.arguments)
    }

    /// Replaces the stream by the output of a command, and returns the flow through that command.
    /// Returns `None`, and leaves the stream unchanged, if the command is unknown.
    pub(crate) fn flow_through_known(
        &mut self,
        program: &str,
        arguments: &[String],
    ) -> Option<Flow> {
        Some(self.at(known_rate(program, arguments, self.line)?, program, arguments))
    }

    fn at(&mut self, rate: f64, program: &str, arguments: &[String]) -> Flow {
        let mut flow = Flow { rate, volume: self.volume, sorts: is_sort(program) };
        self.apply_command(name_of(program), arguments);
        if GREPS.contains(&name_of(program)) && flow.volume > 0.0 {
            flow.rate += SELECT_NS_PER_BYTE * self.volume / flow.volume;
        }
        flow
    }

    fn apply_command(&mut self, name: &str, arguments: &[String]) {
        let words: Vec<Word> = arguments.iter().map(Word::new).collect();
        let read = |table| Options::read(&words, table);
        let any = |texts: &[&str]| {
            arguments.iter().any(|argument| texts.iter().any(|text| argument.contains(text)))
        };
        match name {
            "tr" => {
                let deletes = read(&tr::TABLE).is_none_or(|options| options.has('d'));
                if !deletes && arguments.last().is_some_and(|set| is_line_break(set)) {
                    self.split_into_words();
                }
            }
            "sed" if any(&["/\\n/"]) => self.split_into_words(),
            "awk" | "mawk" | "gawk" | "nawk" | "original-awk" if any(&["NF; i++", "NF;i++"]) => {
                self.split_into_words();
            }
            name if GREPS.contains(&name) => {
                if let Some(options) = read(&grep::TABLE) {
                    self.apply_grep(&options, &words);
                }
            }
            "wc" => self.volume = 0.0,
            "head" | "tail" if is_short(&words) => self.volume = 0.0,
            "sort" if read(&sort::TABLE).is_some_and(|options| options.has('u')) => {
                self.volume *= DISTINCT_SHARE;
            }
            "uniq" => self.volume *= DISTINCT_SHARE,
            _ => {}
        }
    }

    /// Adjusts the mean line length to one word per line.
    fn split_into_words(&mut self) {
        self.line = self.line.min(USUAL_WORD_BYTES);
    }

    /// Adjusts the stream to the output of `grep` with the given options and arguments.
    fn apply_grep(&mut self, options: &Options, words: &[Word]) {
        if ['c', 'l', 'L', 'q'].into_iter().any(|letter| options.has(letter)) {
            self.volume = 0.0;
        }
        if options.has('o') {
            self.split_into_words();
        }
        let first = || options.operands.first().map(|&place| words[place].text.as_str());
        let pattern = options.value('e').or_else(first).unwrap_or_default();
        let letters = pattern.trim_start_matches('^');
        let is_rare = letters.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && (letters != pattern || letters.len() > 1);
        if !options.has('v') && is_rare {
            self.volume *= FOUND_SHARE;
        }
    }
}

/// Returns whether `head` or `tail` with the given arguments certainly selects at most 999 lines or
/// bytes.
fn is_short(words: &[Word]) -> bool {
    match words {
        [] => true,
        [count] if count.text.starts_with('-') && is_few(&count.text[1..]) => true,
        _ => Options::read(words, &head::TABLE)
            .is_some_and(|options| options.value('n').or(options.value('c')).is_none_or(is_few)),
    }
}

/// Returns whether `count` is a decimal number with at most three digits.
fn is_few(count: &str) -> bool {
    (1..=3).contains(&count.len()) && count.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether `set`, as the second set of `tr`, consists of a newline.
fn is_line_break(set: &str) -> bool {
    ["\n", "\\n", "\\012", "[\\n*]", "[\\012*]"].contains(&set)
}

/// The size of an input, and the mean length of its lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount {
    /// Size in bytes.
    pub bytes: u64,
    /// Mean length of a line in bytes.
    pub line: f64,
}

impl Amount {
    /// Measures the total size of the named files, and the lines of the first one that is not
    /// empty. Returns `None` if one of them is missing or not a regular file.
    pub fn of_files<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let line = |name: &str| File::open(name).map_or(USUAL_LINE_BYTES, |file| line_at(file, 0));
        Self::of_all(names, size_of, line)
    }

    /// Measures the input of a plan, as [`Self::of_files`] does. Names may also be those of objects.
    pub fn of_input(names: &[String]) -> Option<Self> {
        if !names.iter().any(|name| objects::is_object(name)) {
            return Self::of_files(names.iter().map(String::as_str));
        }
        let bytes = |name: &str| {
            if objects::is_object(name) {
                return objects::properties(name).ok().map(|object| object.bytes);
            }
            size_of(name)
        };
        Self::of_all(names.iter().map(String::as_str), bytes, |_| USUAL_LINE_BYTES)
    }

    /// Adds up what two functions return for the size of a file and for the mean length of its first lines.
    fn of_all<'a>(
        names: impl IntoIterator<Item = &'a str>,
        size: impl Fn(&str) -> Option<u64>,
        line: impl Fn(&str) -> f64,
    ) -> Option<Self> {
        let mut all = Self { bytes: 0, line: USUAL_LINE_BYTES };
        for name in names {
            let bytes = size(name)?;
            if all.bytes == 0 && bytes > 0 {
                all.line = line(name);
            }
            all.bytes = all.bytes.saturating_add(bytes);
        }
        Some(all)
    }

    /// Measures a regular file from its current offset to its end. `bytes` is the size of the whole
    /// file.
    pub fn of_rest(file: impl AsFd, bytes: u64) -> Self {
        let here = rustix::fs::tell(&file).unwrap_or(0);
        Self { bytes: bytes.saturating_sub(here), line: line_at(file, here) }
    }

    /// Measures a buffer: its length, and the lines at its beginning.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as u64,
            line: line_of(&bytes[..bytes.len().min(BEGINNING_BYTES)]),
        }
    }
}

/// Returns the size of a regular file in bytes, or `None` if there is no such file.
pub(crate) fn size_of(name: &str) -> Option<u64> {
    let data = Path::new(name).metadata().ok()?;
    data.is_file().then_some(data.len())
}

/// Returns the mean length in bytes of the lines in a buffer, or `USUAL_LINE_BYTES` if it is empty.
/// A line ends with a newline or a NUL.
fn line_of(bytes: &[u8]) -> f64 {
    let lines = memchr::memchr2_iter(b'\n', 0, bytes).count();
    if bytes.is_empty() { USUAL_LINE_BYTES } else { bytes.len() as f64 / lines.max(1) as f64 }
}

/// Returns the mean length in bytes of the first lines after the given offset, or
/// `USUAL_LINE_BYTES` if none can be read there. The file's own offset does not change.
fn line_at(file: impl AsFd, place: u64) -> f64 {
    let mut bytes = [0; BEGINNING_BYTES];
    let read = rustix::io::pread(file, &mut bytes, place).unwrap_or(0);
    line_of(&bytes[..read])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the output of the given command for lines of 100 bytes.
    fn output_of(command: &str) -> Stream {
        let mut words = command.split(' ').map(str::to_owned);
        let program = words.next().expect("a program");
        let mut stream = Stream::of_lines(100.0);
        stream.flow_through_known(&program, &words.collect::<Vec<_>>()).expect("it is known");
        stream
    }

    /// Returns whether the output of the given command has the given volume, in bytes per byte of
    /// input.
    fn has_volume(command: &str, volume: f64) -> bool {
        output_of(command) == Stream { volume, ..output_of(command) }
    }

    #[test]
    fn words_come_each_on_a_line() {
        for command in ["tr -cs A-Za-z \\n", "grep -ao [a-z]*", "sed s/x/\\n/g", "tr -s x \\012"] {
            assert_eq!(output_of(command), Stream::of_lines(USUAL_WORD_BYTES), "{command}");
        }
        for command in ["tr -d \\n", "tr a-z A-Z", "grep -e[ocv]", "sed s/x/y/", "cut -c 3"] {
            assert_eq!(output_of(command), Stream::of_lines(100.0), "{command}");
        }
    }

    #[test]
    fn grep_needs_time_for_its_output() {
        let rate = |pattern: &str| {
            let arguments = [pattern.to_owned()];
            let flow = Stream::of_lines(100.0).flow_through_known("grep", &arguments);
            flow.expect("it is known").rate
        };
        let (frequent, rare) = (rate("7"), rate("77"));
        assert!((frequent - rare - SELECT_NS_PER_BYTE * (1.0 - FOUND_SHARE)).abs() < 1e-9);
    }

    #[test]
    fn counting_commands_write_almost_nothing() {
        for command in ["wc -l", "grep --count x", "head", "head -5", "tail -n 3", "head -c 9"] {
            assert!(has_volume(command, 0.0), "{command}");
        }
        for command in ["tail -n +2", "head -n -1", "head -n 1000000", "tail -c +5", "rev"] {
            assert!(has_volume(command, 1.0), "{command}");
        }
    }

    #[test]
    fn longer_patterns_that_begin_with_a_letter_are_rare() {
        assert!(has_volume("grep ^From: words", FOUND_SHARE));
        assert!(has_volume("grep -e xy", FOUND_SHARE));
        assert!(has_volume("grep ^x", FOUND_SHARE));
        assert!(has_volume("grep 7", 1.0), "most lines may contain the digit");
        for command in ["grep -v x", "grep --invert-match x", "grep [xy] words", "grep -A 3 [x]"] {
            assert!(has_volume(command, 1.0), "{command}");
        }
        assert!(has_volume("sort --unique", DISTINCT_SHARE));
        assert!(has_volume("sort -T/usr", 1.0));
    }

    #[test]
    fn an_input_is_as_large_as_what_is_left_of_it() {
        let mut file = tempfile::tempfile().expect("a file");
        std::io::Write::write_all(&mut file, b"1234567\n123\n123\n").expect("room");
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(8)).expect("it is there");
        assert_eq!(Amount::of_rest(&file, 16), Amount { bytes: 8, line: 4.0 });
        assert_eq!(Amount::of_bytes(b"ab\0ab\0"), Amount { bytes: 6, line: 3.0 });
        assert_eq!(Amount::of_bytes(b""), Amount { bytes: 0, line: USUAL_LINE_BYTES });
        assert_eq!(Amount::of_files(["/nonexistent"]), None);
    }
}
