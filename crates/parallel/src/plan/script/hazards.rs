//! Finds features of a script that a prefix could disturb: code that inspects the shell itself, or
//! that changes the meaning of names.

use super::Dialect;

/// Words for features that a prefix would disturb, with reasons. The whole script is searched for
/// them, including comments: a needless refusal only costs time.
const WORDS: &[(&str, &str)] = &[
    ("PIPESTATUS", "the script uses the exit code of every stage"),
    ("xtrace", "the script prints its commands"),
    ("verbose", "the script prints its commands"),
    ("BASH_COMMAND", "the script inspects its commands"),
    ("BASH_EXECUTION_STRING", "the script inspects its commands"),
    ("DEBUG", "the script may inspect its commands"),
    ("jobs", "the script may print its commands"),
    ("monitor", "the script may print its commands"),
    ("fc", "the script may print its commands"),
    ("alias", "names may be aliases"),
    ("eval", "`eval` may redefine names"),
    ("source", "names may be functions from another file"),
    ("enable", "names may be builtins"),
    ("hash", "names may be mapped to other programs"),
    ("command_not_found_handle", "the script handles missing commands"),
    ("BASH_SOURCE", "the script uses `BASH_SOURCE`, which would name another file"),
    ("BASH_ARGV0", "the script changes its own name"),
    ("caller", "the script uses `caller`, which would name another file"),
    ("compgen", "the script may list its variables"),
    ("onecmd", "the script exits after one command"),
];

/// Returns why prefixes must not be inserted into the script, or `None` if they disturb nothing.
pub(super) fn find(text: &str, dialect: Dialect) -> Option<&'static str> {
    if let Some((_, why)) = WORDS.iter().find(|(word, _)| has_word(text, word)) {
        return Some(why);
    }
    if commands(text).any(|command| command.starts_with(". ")) {
        return Some("names may be functions from another file");
    }
    if shows_commands(text) {
        return Some("the script prints its commands");
    }
    if commands(text).any(shows_names) || text.contains("${!_") {
        return Some("the script prints or exports its functions or variables");
    }
    if (has_word(text, "unset") && has_word(text, "PATH")) || hides_programs(text) {
        return Some("the script may set a `PATH` without these programs");
    }
    if uses_last_argument(text) {
        return Some("the script uses `$_`");
    }
    if dialect == Dialect::Posix && (sets(text, 'a') || has_word(text, "allexport")) {
        return Some("the script exports all of its variables");
    }
    None
}

/// Returns the words of a script that could be names of commands.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_./+".contains(c)))
}

/// Returns the possible commands of a script, each starting at its first word.
fn commands(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ';', '&', '|', '{', '(', '`', '!']).map(|command| {
        let command = command.trim_start();
        let words = ["then ", "do ", "else ", "if ", "while ", "until "];
        words.iter().find_map(|word| command.strip_prefix(word)).unwrap_or(command).trim_start()
    })
}

/// Returns whether a command may print functions or variables, or export functions.
fn shows_names(command: &str) -> bool {
    let mut words = command.split([' ', '\t', ')', '"', '}']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or("").trim_start_matches(['"', '$']);
    let option = |letter| {
        let begins = |word: &&str| word.starts_with('-');
        words.clone().take_while(begins).any(|word| word.contains(letter))
    };
    match first {
        "declare" | "typeset" => {
            option('f') || option('F') || option('p') || words.next().is_none()
        }
        "export" | "readonly" | "local" => option('f'),
        "type" => !(option('t') || option('p') || option('P')),
        "command" => option('V'),
        "set" => words.next().is_none(),
        _ => false,
    }
}

/// Returns whether the script makes the shell print its commands, by `set -x`, `set -ev` or
/// `#!/bin/sh -x`, or report background jobs, by `set -m`.
fn shows_commands(text: &str) -> bool {
    let first = text.lines().next().filter(|line| line.starts_with("#!"));
    let options = first.and_then(|line| line.split_once(" -")).map_or("", |(_, options)| options);
    ['x', 'v', 'm']
        .into_iter()
        .any(|letter| sets(text, letter) || letters(options).contains(letter))
}

/// Returns whether the script passes the option with the given letter to `set`, in its first group
/// of options.
fn sets(text: &str, letter: char) -> bool {
    text.match_indices("set -")
        .any(|(at, found)| letters(&text[at + found.len()..]).contains(letter))
}

fn letters(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or("")
}

/// Returns whether the script sets `PATH` to a value that seems to lack system directories: it
/// contains neither `PATH`, nor `/bin`, nor `$(`. The shell has its own messages for programs that
/// it does not find.
fn hides_programs(text: &str) -> bool {
    let values = text.match_indices("PATH=").map(|(at, name)| &text[at + name.len()..]);
    let values =
        values.map(|value| value.split([' ', '\t', '\n', ';', '&', '|']).next().unwrap_or(""));
    { values }.any(|value| !["PATH", "/bin", "$("].iter().any(|part| value.contains(part)))
}

/// Returns whether the script uses `$_`, the last argument of the previous command.
fn uses_last_argument(text: &str) -> bool {
    ["$_", "${_"].into_iter().any(|sign| {
        text.match_indices(sign).any(|(at, _)| {
            let next = text[at + sign.len()..].chars().next();
            !next.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

/// Returns whether the script contains `word`, other than as part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}
