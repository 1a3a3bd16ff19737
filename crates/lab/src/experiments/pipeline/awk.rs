//! A tokenizer and a parser for JSON, written in awk.

use super::stages::Stage;

/// JSON into tokens, one a line.
pub const TOKENIZER: &str = include_str!("awk/tokenizer.awk");
/// Puts strings together again; third of the four commands that are a tokenizer too.
pub const JOIN: &str = include_str!("awk/join.awk");
/// Tokens into calls of functions.
pub const PARSER: &str = include_str!("awk/parser.awk");
/// The functions that print what the parser finds; users replace them by their own.
pub const CALLBACKS: &str = include_str!("awk/callbacks.awk");

/// The implementations of awk that are looked for, and how each is called.
pub const KINDS: [(&str, &[&str]); 4] = [
    ("mawk", &["mawk"]),
    ("gawk", &["gawk"]),
    ("busybox", &["busybox", "awk"]),
    ("original-awk", &["original-awk"]),
];

/// How this implementation is called.
pub fn command(kind: &str) -> Option<&'static [&'static str]> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, command)| *command)
}

/// The tokenizer as one command. The input must be free of NUL and end with a newline, as that
/// of an experiment does: then nothing but this awk has to read it.
pub(super) fn tokenizer(awk: &[&str]) -> Vec<Stage> {
    vec![stage("tokenizer", awk, &["-v", "direct=1", TOKENIZER])]
}

/// The tokenizer as four commands.
pub(super) fn tokenizer_of_four(awk: &[&str]) -> Vec<Stage> {
    vec![
        stage("tokenizer tr", &["tr"], &[r"\000\n", r"\001\r"]),
        stage("tokenizer tr", &["tr"], &["\"", r"\n"]),
        stage("tokenizer join", awk, &[JOIN]),
        stage("tokenizer cut", awk, &["-v", "joined=1", TOKENIZER]),
    ]
}

/// The parser, with the call-backs that print.
pub(super) fn parser(awk: &[&str]) -> Stage {
    stage("parser", awk, &[&format!("{PARSER}\n{CALLBACKS}")])
}

fn stage(label: &str, program: &[&str], arguments: &[&str]) -> Stage {
    let words: Vec<&str> = program.iter().chain(arguments).copied().collect();
    Stage { label: label.to_owned(), ..Stage::new(&words) }
}
