//! `sed`: its script, and whether it treats every line for itself.
//!
//! `script.rs` is a whole script as data, `parse.rs` its only reader. [`Sed`] is a command whose
//! script is so plain that rewrites may take it apart; `state.rs` proves of any script that it does
//! not look beyond its line, and `letters.rs` tells what can become of characters.

mod brackets;
mod letters;
mod parse;
pub mod script;
pub mod state;

use self::script::{Address, Delimiters, Function, Regex, Script, Selection, Substitution};
use super::options::{Options, Table};
use super::{Simple, Word};

/// The options that GNU `sed` has.
pub const TABLE: Table = Table {
    short: "ne:f:Ersuzb\u{1}",
    long: &[
        ("quiet", 'n'),
        ("silent", 'n'),
        ("expression", 'e'),
        ("file", 'f'),
        ("regexp-extended", 'E'),
        ("separate", 's'),
        ("unbuffered", 'u'),
        ("null-data", 'z'),
        ("binary", 'b'),
        ("posix", '\u{1}'),
    ],
};

/// A `sed` whose script was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sed {
    /// Its commands, in their order.
    pub commands: Vec<Command>,
    /// Lines are not printed at the end of the cycle (`-n`).
    pub quiet: bool,
    /// Regular expressions are extended ones.
    pub extended: bool,
    /// Lines end with NUL.
    pub null_data: bool,
    /// The files, empty for standard input.
    pub files: Vec<Word>,
}

/// One command of a script that does not look beyond its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// As it stands in the script, with its address.
    pub text: String,
    /// The regular expression that selects its lines, if any.
    pub address: Option<String>,
    /// What it does.
    pub action: Action,
}

/// What a command does to its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `s`.
    Substitute {
        /// What is replaced: a regular expression.
        pattern: String,
        /// What takes its place, as written.
        replacement: String,
        /// `g`, `I`, a number.
        flags: String,
    },
    /// `y`.
    Transliterate {
        /// The characters, as written.
        from: String,
        /// What they become.
        to: String,
    },
    /// `d`.
    Delete,
    /// `p`.
    Print,
}

impl Sed {
    /// Reads the command. `None` if its script has anything in it that looks beyond its line
    /// (line numbers, `$`, ranges, hold space, `N`, `n`, `q`, branches), that writes or reads
    /// other files, that can make several lines of one, or that is not known.
    pub fn read(simple: &Simple) -> Option<Self> {
        if simple.name() != "sed" {
            return None;
        }
        let options = Options::read(&simple.arguments, &TABLE)?;
        if !options.has_only("neErz") {
            return None;
        }
        let (text, files) = given(simple, &options, |_| None)?;
        let script = Script::read(&text, Delimiters::Certain).ok()?;
        let commands: Option<Vec<_>> =
            script.commands.iter().map(|command| plain_command(&text, command)).collect();
        let commands = commands.filter(|commands| !commands.is_empty() && !script.quiet)?;
        Some(Self {
            commands,
            quiet: options.has('n'),
            extended: options.has('E') || options.has('r'),
            null_data: options.has('z'),
            files,
        })
    }

    /// Whether it writes exactly one line for every line it reads.
    pub fn is_one_to_one(&self) -> bool {
        let changes = |command: &Command| {
            matches!(command.action, Action::Substitute { .. } | Action::Transliterate { .. })
        };
        !self.quiet && self.commands.iter().all(changes)
    }

    /// Whether it writes each line, changed or not, at most once, at the end of its cycle.
    pub fn writes_at_most_once(&self) -> bool {
        !self.quiet && !self.commands.iter().any(|command| command.action == Action::Print)
    }

    /// The regular expression if all it does is to keep the lines that match: `sed -n '/x/p'`.
    pub fn only_keeps(&self) -> Option<&str> {
        match self.commands.as_slice() {
            [Command { address: Some(address), action: Action::Print, .. }] if self.quiet => {
                Some(address)
            }
            _ => None,
        }
    }

    /// Whether there are regular expressions in it at all.
    pub fn uses_expressions(&self) -> bool {
        self.commands.iter().any(|command| {
            command.address.is_some() || matches!(command.action, Action::Substitute { .. })
        })
    }

    /// Whether the commands of one mean the same in a script of the other.
    pub fn speaks_like(&self, other: &Self) -> bool {
        let same_syntax = self.extended == other.extended
            || !self.uses_expressions()
            || !other.uses_expressions();
        same_syntax && self.null_data == other.null_data
    }

    /// The options and the script of a `sed` with these commands.
    pub fn arguments(
        commands: &[Command],
        quiet: bool,
        extended: bool,
        null_data: bool,
    ) -> Vec<Word> {
        let option = |wanted: bool, text: &str| wanted.then(|| Word::new(text));
        let script = commands.iter().map(|c| c.text.as_str()).collect::<Vec<_>>().join("; ");
        [option(quiet, "-n"), option(extended, "-E"), option(null_data, "-z")]
            .into_iter()
            .flatten()
            .chain([Word { raw: contend_record::shell::quote_always(&script), text: script }])
            .collect()
    }
}

/// The script and the files that a command is given. `None` if there is no script, or one in a file
/// that `contents` does not give.
pub fn given(
    simple: &Simple,
    options: &Options,
    contents: impl Fn(&str) -> Option<String>,
) -> Option<(String, Vec<Word>)> {
    let mut operands = options.operands.iter().map(|&index| simple.arguments[index].clone());
    let mut parts = Vec::new();
    for (letter, value) in &options.given {
        match (letter, value) {
            ('e', Some(text)) => parts.push(text.clone()),
            ('f', Some(file)) => {
                let text = contents(file)?;
                parts.push(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text));
            }
            _ => {}
        }
    }
    if parts.is_empty() {
        parts.push(operands.next()?.text);
    }
    Some((parts.join("\n"), operands.collect()))
}

/// A command that stays on its line and stands on one line of the script.
fn plain_command(script: &str, command: &script::Command) -> Option<Command> {
    let text = script[command.place.clone()].to_owned();
    let address = match &command.selection {
        Selection::All if !command.negated => None,
        Selection::One(Address::Regex(regex)) if !regex.ignores_case => Some(plain_regex(regex)?),
        _ => return None,
    };
    let action = match &command.function {
        Function::Substitute(substitution) => plain_substitution(substitution)?,
        Function::Transliterate(from, to) => {
            let (from, to) = (from.clone(), to.clone());
            (!makes_lines(&from) && !makes_lines(&to))
                .then_some(Action::Transliterate { from, to })?
        }
        Function::Plain('d') => Action::Delete,
        // A line that is kept by `/x/!p` is not one that matches.
        Function::Plain('p') if !command.negated => Action::Print,
        _ => return None,
    };
    // It is written into one line with others.
    (!text.contains('\n')).then_some(Command { text, address, action })
}

/// The text of an expression that all seds read alike. An empty one stands for the one that was
/// used last, which fusing would change.
fn plain_regex(regex: &Regex) -> Option<String> {
    let is_plain = !regex.text.is_empty() && !regex.multiline && !regex.has_odd_brackets;
    (is_plain && is_local(&regex.text)).then(|| regex.text.clone())
}

fn plain_substitution(s: &Substitution) -> Option<Action> {
    if s.print || s.execute || s.file.is_some() || makes_lines(&s.replacement) {
        return None;
    }
    let number = s.number.map(|number| number.to_string()).unwrap_or_default();
    let letters = [(s.global, "g"), (s.regex.ignores_case, "I")];
    let letters = letters.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter);
    Some(Action::Substitute {
        pattern: plain_regex(&s.regex)?,
        replacement: s.replacement.clone(),
        flags: number + &letters.collect::<String>(),
    })
}

/// Whether a replacement or a string of `y` may hold a line break, or any character by its number.
fn makes_lines(text: &str) -> bool {
    text.contains('\n') || has_escape(text, &['n', 'o', 'd', 'x', 'c', '\n'])
}

/// Whether an expression cannot match a line break, which a pattern space of one line has not
/// got anyway, nor the end of a buffer of several.
fn is_local(expression: &str) -> bool {
    !expression.contains('\n') && !has_escape(expression, &['n', '`', '\'', 'o', 'd', 'x', 'c'])
}

/// Whether one of these characters stands after a backslash that is not escaped itself.
fn has_escape(text: &str, letters: &[char]) -> bool {
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' && characters.next().is_some_and(|escaped| letters.contains(&escaped)) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::quote;
    use super::*;
    use crate::testing::simple;

    fn script(text: &str) -> Option<Sed> {
        Sed::read(&simple(&format!("sed {}", quote(text))))
    }

    #[test]
    fn commands_that_stay_on_their_line_are_read() {
        let sed = script("s/a/A/g; /x y/!d;y,ab,cd,\n\\%p/q% s|/|;|2").expect("understood");
        let texts: Vec<_> = sed.commands.iter().map(|command| command.text.as_str()).collect();
        assert_eq!(texts, ["s/a/A/g", "/x y/!d", "y,ab,cd,", "\\%p/q% s|/|;|2"]);
        assert_eq!(sed.commands[1].address.as_deref(), Some("x y"));
        let replaced = Action::Substitute {
            pattern: "/".to_owned(),
            replacement: ";".to_owned(),
            flags: "2".to_owned(),
        };
        assert_eq!(sed.commands[3].action, replaced);
        assert!(sed.writes_at_most_once() && !sed.is_one_to_one());
        assert!(script("s/[^]/a-z]*;/[&]/g").is_none(), "a delimiter in brackets");
        assert!(script("s,[^]/a-z]*;,[&],g").is_some_and(|sed| sed.is_one_to_one()));
        assert!(script("s/[[:digit:]]\\{2\\}/\\(&\\)/").is_some());
    }

    #[test]
    fn options_and_files() {
        let sed = Sed::read(&simple("sed -nE -e /x+/p f1 f2")).expect("understood");
        assert!(sed.quiet && sed.extended && !sed.null_data);
        assert_eq!((sed.only_keeps(), sed.files.len()), (Some("x+"), 2));
        for text in ["sed -i s/a/b/ f", "sed -f s.sed", "sed -s p", "sed -u p", "gsed p", "sed"] {
            assert_eq!(Sed::read(&simple(text)), None, "{text}");
        }
    }

    #[test]
    fn what_looks_beyond_its_line_is_not_read() {
        for text in [
            "2p",
            "2,5d",
            "$d",
            "/a/,/b/d",
            "/a/,+2d",
            "0~2d",
            "1!d",
            "5q",
            "q",
            "Q",
            "/x/q",
            "N;s/a/b/",
            "n",
            "h",
            "H",
            "g",
            "G",
            "x",
            "D",
            "P",
            ":a",
            "b",
            "ta",
            ":a;s/a/b/;ta",
            "=",
            "l",
            "a text",
            "i text",
            "c text",
            "r f",
            "w f",
            "s/a/b/w f",
            "s/a/b/e",
            "e",
            "s/a/b/p",
            "s/a/b/M",
            "s/a/\\n/",
            "s/a/\\\n/",
            "s/\\n/a/",
            "y/a/\\n/",
            "{p}",
            "# x",
            "#n",
            "s//b/",
            "//d",
            "F",
            "z",
            "s/a/b",
            "s/a",
            "y/a/b",
            "!d",
            "p p",
            "d}",
            "",
            "s/x/\\x0a/",
            "s/\\x26/b/",
            "/x/I,/y/d",
            "/a/Id",
        ] {
            assert_eq!(script(text), None, "{text}");
        }
    }

    #[test]
    fn a_script_is_written_as_one_word() {
        let sed = script("s/a b/'/; /x/d").expect("understood");
        let words = Sed::arguments(&sed.commands, false, true, false);
        let raw: Vec<_> = words.iter().map(|word| word.raw.as_str()).collect();
        assert_eq!(raw, ["-E", r"'s/a b/'\''/; /x/d'"]);
    }
}
