//! What common commands need for text.
//!
//! The rates are those of a server's CPU. They decide about inputs so small that being wrong costs
//! little, and about stages of which no sample can be had; others are judged by what a sample of
//! their input takes.

use super::classes;

/// A command of which nothing is known, in nanoseconds a byte.
const UNKNOWN_NS_PER_BYTE: f64 = 5.0;

/// CPU time of commands for a byte and for a line, in nanoseconds: of those with options that change
/// much, the most usual form.
const RATES: &[(&str, f64, f64)] = &[
    ("awk", 0.5, 75.0),
    ("busybox", 10.0, 0.0),
    ("cat", 0.25, 0.0),
    ("col", 65.0, 0.0),
    ("comm", 2.0, 150.0),
    ("cut", 1.0, 10.0),
    ("egrep", 0.5, 15.0),
    ("expand", 2.0, 0.0),
    ("fgrep", 0.2, 15.0),
    ("fold", 2.2, 0.0),
    ("gawk", 0.8, 100.0),
    ("grep", 0.2, 15.0),
    ("head", 0.1, 0.0),
    ("iconv", 2.0, 0.0),
    ("join", 2.0, 300.0),
    ("jq", 35.0, 0.0),
    ("mawk", 0.5, 75.0),
    ("nawk", 2.0, 150.0),
    ("original-awk", 2.0, 150.0),
    ("rev", 38.0, 0.0),
    ("sed", 0.5, 90.0),
    ("sort", 2.0, 600.0),
    ("tail", 0.1, 0.0),
    ("tr", 1.0, 0.0),
    ("unexpand", 2.0, 0.0),
    ("uniq", 1.0, 50.0),
    ("wc", 0.5, 5.0),
    ("xargs", 1_000.0, 0.0),
];

/// So many times as much time takes awk that adds up by keys.
const AWK_BY_KEYS_FACTOR: f64 = 3.0;
/// What `xargs` takes to start a command, and that to run, in nanoseconds.
const PROCESS_NS: f64 = 1e6;
/// Starting one command and waiting for its end, in seconds.
pub(crate) const START_SECONDS: f64 = 0.0015;
/// Commands that do much before they read anything, and what that takes, in seconds.
const SLOW_STARTS: &[(&str, f64)] = &[("jq", 0.02)];

/// A program's name, without its folder.
pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether it is the program that sorts lines.
pub(crate) fn is_sort(program: &str) -> bool {
    name_of(program) == "sort"
}

/// The rate of a command in nanoseconds a byte, with what its arguments tell, for lines of so many
/// bytes.
pub(crate) fn rate(program: &str, arguments: &[String], line: f64) -> f64 {
    known_rate(program, arguments, line).unwrap_or(UNKNOWN_NS_PER_BYTE)
}

/// The same; `None` if nothing is known of the command.
pub(crate) fn known_rate(program: &str, arguments: &[String], line: f64) -> Option<f64> {
    let name = name_of(program);
    let (_, for_byte, for_line) = RATES.iter().find(|(known, ..)| *known == name)?;
    // A group that is matched again, or used, cannot be looked for by an automaton.
    let refers_back = |argument: &String| ["\\1", "\\2"].iter().any(|it| argument.contains(it));
    let refers = arguments.iter().any(refers_back);
    Some(match name {
        "grep" | "egrep" if refers => 500.0,
        "sed" if refers => 100.0,
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" if keeps_by_keys(arguments) => {
            AWK_BY_KEYS_FACTOR * (for_byte + for_line / line.max(1.0))
        }
        "xargs" if classes::starts_one_each(arguments) => PROCESS_NS / line.max(1.0),
        _ => for_byte + for_line / line.max(1.0),
    })
}

/// Whether a program of awk adds up in arrays, which take more time than fields.
fn keeps_by_keys(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        let mut behind = argument.split(']').skip(1).map(str::trim_start);
        behind.any(|text| text.starts_with("+=") || text.starts_with("++"))
    })
}

/// What starting a command takes, in seconds.
pub(crate) fn start_of(program: &str) -> f64 {
    let name = name_of(program);
    SLOW_STARTS.iter().find(|(known, _)| *known == name).map_or(START_SECONDS, |(_, start)| *start)
}
