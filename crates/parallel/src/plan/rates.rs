//! Typical CPU time of common commands.
//!
//! The rates were measured on a server's CPU. The estimates use them for inputs so small that an
//! error costs little, and for stages that have not been measured over a sample of their input.

use super::classes;

/// The rate of an unknown command, in nanoseconds per byte.
const UNKNOWN_NS_PER_BYTE: f64 = 5.0;

/// CPU time of commands per byte and per line, in nanoseconds. For a command whose CPU time depends
/// on options, the values are those of the most common form.
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

/// CPU time of an awk program that sums by keys, relative to one that does not.
const AWK_BY_KEYS_FACTOR: f64 = 3.0;
/// Time for `xargs` to start a command and for that command to run, in nanoseconds.
const PROCESS_NS: f64 = 1e6;
/// Usual time to start a command and wait for its end, in seconds.
pub(crate) const START_SECONDS: f64 = 0.0015;
/// Commands that take long to start, with their start-up time in seconds.
const SLOW_STARTS: &[(&str, f64)] = &[("jq", 0.02)];

/// Returns a program's name without its directory.
pub(crate) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns whether the program is called `sort`, in any directory.
pub(crate) fn is_sort(program: &str) -> bool {
    name_of(program) == "sort"
}

/// Returns the rate of a command in nanoseconds per byte, for the given mean line length in bytes.
/// An unknown command has a default rate.
pub(crate) fn rate(program: &str, arguments: &[String], line: f64) -> f64 {
    known_rate(program, arguments, line).unwrap_or(UNKNOWN_NS_PER_BYTE)
}

/// Returns the rate of a command in nanoseconds per byte, for the given mean line length in bytes,
/// or `None` if the command is unknown.
pub(crate) fn known_rate(program: &str, arguments: &[String], line: f64) -> Option<f64> {
    let name = name_of(program);
    let (_, for_byte, for_line) = RATES.iter().find(|(known, ..)| *known == name)?;
    // Back-references cannot be matched by an automaton.
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

/// Returns whether an awk program among the arguments seems to add to elements of arrays, which
/// takes longer than adding to variables.
fn keeps_by_keys(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| {
        let mut behind = argument.split(']').skip(1).map(str::trim_start);
        behind.any(|text| text.starts_with("+=") || text.starts_with("++"))
    })
}

/// Returns the time to start a command and wait for its end, in seconds: the usual one, unless the
/// command is known to be slow.
pub(crate) fn start_of(program: &str) -> f64 {
    let name = name_of(program);
    SLOW_STARTS.iter().find(|(known, _)| *known == name).map_or(START_SECONDS, |(_, start)| *start)
}
