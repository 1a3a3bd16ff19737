//! A tokenizer and a parser for JSON, written in awk.

use super::stages::Stage;

/// Program that splits JSON into tokens, one per line.
pub const TOKENIZER: &str = include_str!("awk/tokenizer.awk");
/// Program that joins the parts of strings: the third command of the four-command tokenizer.
pub const JOIN: &str = include_str!("awk/join.awk");
/// Program that parses tokens and calls a function for each event.
pub const PARSER: &str = include_str!("awk/parser.awk");
/// Functions that the parser calls, which print its events. Users can replace them with their own.
pub const CALLBACKS: &str = include_str!("awk/callbacks.awk");

/// Supported awk implementations and their commands.
pub const IMPLEMENTATIONS: [(&str, &[&str]); 4] = [
    ("mawk", &["mawk"]),
    ("gawk", &["gawk"]),
    ("busybox", &["busybox", "awk"]),
    ("original-awk", &["original-awk"]),
];

/// Returns the command of an awk implementation, or `None` if `kind` is not in `IMPLEMENTATIONS`.
pub fn command(kind: &str) -> Option<&'static [&'static str]> {
    IMPLEMENTATIONS.iter().find(|(name, _)| *name == kind).map(|(_, command)| *command)
}

/// Returns the tokenizer as one command. The input must not contain NUL and must end with a
/// newline. The inputs of experiments satisfy both conditions, so no other program has to prepare
/// them.
pub(super) fn tokenizer(awk: &[&str]) -> Vec<Stage> {
    vec![stage("tokenizer", awk, &["-v", "direct=1", TOKENIZER])]
}

/// Returns the tokenizer as a pipeline of four commands.
pub(super) fn four_command_tokenizer(awk: &[&str]) -> Vec<Stage> {
    vec![
        stage("tokenizer tr", &["tr"], &[r"\000\n", r"\001\r"]),
        stage("tokenizer tr", &["tr"], &["\"", r"\n"]),
        stage("tokenizer join", awk, &[JOIN]),
        stage("tokenizer cut", awk, &["-v", "joined=1", TOKENIZER]),
    ]
}

/// Returns the parser with callbacks that print events.
pub(super) fn parser(awk: &[&str]) -> Stage {
    stage("parser", awk, &[&format!("{PARSER}\n{CALLBACKS}")])
}

fn stage(label: &str, program: &[&str], arguments: &[&str]) -> Stage {
    let words: Vec<&str> = program.iter().chain(arguments).copied().collect();
    Stage { label: label.to_owned(), ..Stage::new(&words) }
}
