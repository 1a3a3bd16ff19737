//! Parses `sed` commands and scripts, and proves which scripts process each line independently.
//!
//! ```text
//! script text ──parse──> script::Script ──> Sed        plain scripts, which rewrites may combine
//!                                       └─> state      proof that records are independent
//!                                            └─> characters   which bytes the script may produce
//! ```
//!
//! `brackets` parses bracket expressions for `parse` and `characters`.

mod brackets;
mod characters;
mod parse;
pub mod script;
pub mod state;

use self::script::{Address, Delimiters, Function, Regex, Script, Selection, Substitution};
use super::options::{Options, Table};
use super::{Simple, Word};

/// The supported options of GNU `sed`: all except `-i`, `-l` and rare long options.
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

/// A `sed` whose script is plain enough for rewrites to split and join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sed {
    /// The commands, in script order.
    pub commands: Vec<Command>,
    /// Whether cycles end without printing the pattern space (`-n`).
    pub quiet: bool,
    /// Whether regular expressions are extended (`-E`, `-r`).
    pub extended: bool,
    /// Whether lines end with NUL (`-z`).
    pub null_data: bool,
    /// The input files; empty for standard input.
    pub files: Vec<Word>,
}

/// A command whose effect depends on the current line only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command's source, including its address.
    pub text: String,
    /// The regular expression of the address; `None` if the command applies to every line. A `!`
    /// after the address is only in `text`.
    pub address: Option<String>,
    /// The command's function.
    pub action: Action,
}

/// The function of a command, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A substitution (`s`).
    Substitute {
        /// The regular expression, as written.
        pattern: String,
        /// The replacement, as written.
        replacement: String,
        /// The given flags, in this order: a number, `g` and `I`. Empty if none is given.
        flags: String,
    },
    /// A transliteration (`y`).
    Transliterate {
        /// The characters to replace, as written.
        from: String,
        /// The replacement characters, as written.
        to: String,
    },
    /// Deletion of the line (`d`).
    Delete,
    /// An additional print of the line (`p`).
    Print,
}

impl Sed {
    /// Parses the command. Returns `None` if it is not a `sed`, has options besides `-n`, `-e`,
    /// `-E`, `-r` and `-z`, or has an empty script. Also returns `None` if the script may depend on
    /// anything but the current line (line numbers, `$`, ranges, hold space, `N`, `n`, `q`,
    /// branches), reads or writes other files, may turn one line into several, or contains a
    /// construct that is unknown or not supported, such as a block.
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

    /// Returns whether the script certainly writes exactly one line for each input line. The only
    /// exception is a last line without a terminator, for which `sed` writes nothing if it becomes
    /// empty.
    pub fn is_one_to_one(&self) -> bool {
        let changes = |command: &Command| {
            matches!(command.action, Action::Substitute { .. } | Action::Transliterate { .. })
        };
        !self.quiet && self.commands.iter().all(changes)
    }

    /// Returns whether the script writes each line, changed or not, at most once, at the end of the
    /// cycle. Returns `false` for any script with `-n`.
    pub fn writes_at_most_once(&self) -> bool {
        !self.quiet && !self.commands.iter().any(|command| command.action == Action::Print)
    }

    /// Returns the regular expression of the address if the command only selects matching lines, in
    /// the form `sed -n '/x/p'`. Returns `None` for all other forms, including `sed '/x/!d'`.
    pub fn only_keeps(&self) -> Option<&str> {
        match self.commands.as_slice() {
            [Command { address: Some(address), action: Action::Print, .. }] if self.quiet => {
                Some(address)
            }
            _ => None,
        }
    }

    /// Returns whether the script contains a regular expression.
    pub fn uses_expressions(&self) -> bool {
        self.commands.iter().any(|command| {
            command.address.is_some() || matches!(command.action, Action::Substitute { .. })
        })
    }

    /// Returns whether a single `sed` can run the commands of both scripts: they use at most one
    /// dialect of regular expressions, and lines end alike. Does not consider `-n`.
    pub fn has_same_dialect(&self, other: &Self) -> bool {
        let same_syntax = self.extended == other.extended
            || !self.uses_expressions()
            || !other.uses_expressions();
        same_syntax && self.null_data == other.null_data
    }

    /// Returns the arguments of a `sed` with the given commands and options, without input files.
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

/// Returns the script and the input files from a command's arguments. `options` are the parsed
/// arguments of `simple`, and `contents` returns the contents of a script file. Returns `None` if
/// there is no script, or if `contents` returns `None`.
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

/// Converts a parsed command into one that rewrites can join with others. Returns `None` unless it
/// depends only on the current line and is written on one line.
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
        // A line that `/x/!p` prints does not match the expression.
        Function::Plain('p') if !command.negated => Action::Print,
        _ => return None,
    };
    // The command is joined with others on one line.
    (!text.contains('\n')).then_some(Command { text, address, action })
}

/// Returns the source of an expression that matches within one line and that all implementations
/// interpret alike, and `None` for any other expression. Also returns `None` for an empty
/// expression: it repeats the last one used, which may be another when scripts are joined.
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

/// Returns whether a replacement or a string of `y` may contain a newline, or a character given by
/// number or as a control character (`\cX`).
fn makes_lines(text: &str) -> bool {
    text.contains('\n') || has_escape(text, &['n', 'o', 'd', 'x', 'c', '\n'])
}

/// Returns whether an expression contains neither a newline, nor a character given by number or as
/// a control character (`\cX`), which may be a newline, nor an anchor to the start or end of the
/// whole pattern space (`` \` `` or `\'`).
fn is_local(expression: &str) -> bool {
    !expression.contains('\n') && !has_escape(expression, &['n', '`', '\'', 'o', 'd', 'x', 'c'])
}

/// Returns whether one of `letters` follows a backslash that is not itself escaped.
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
    fn scripts_that_depend_on_other_lines_are_rejected() {
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
