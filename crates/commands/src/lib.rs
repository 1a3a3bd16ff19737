//! Models of Unix commands: their argument grammars, and the properties derived from their
//! arguments.
//!
//! ```text
//! stage text ──> Simple ──> cut, grep, head, jq, sed, sort, tr, uniq, wc, awk
//!                 │         (one module per command: options, operands, script)
//!                 ├──> purity     side effects, input files
//!                 ├──> writing    files that it writes, programs that it starts
//!                 └──> behaviour  barrier, early exit, output size
//! ```
//!
//! `words` removes quotes, `options` parses options for all commands but `jq`, and `regex`
//! recognizes expressions that match the same ASCII strings in every locale.
//!
//! Parsers return `None` for a stage that is not a simple command of literal words, an option
//! outside the command's table, or an unknown construct. Callers then leave the stage unchanged.

pub mod awk;
pub mod behaviour;
pub mod cut;
pub mod grep;
pub mod head;
pub mod jq;
pub mod options;
pub mod purity;
pub mod regex;
pub mod sed;
pub mod sort;
pub mod tr;
pub mod uniq;
pub mod wc;
mod words;
pub mod writing;

pub use contend_record::shell::quote;

use brush_parser::ast::{
    AssignmentValue, Command, CommandPrefixOrSuffixItem, IoFileRedirectKind, IoFileRedirectTarget,
    IoRedirect, SeparatorOperator, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

/// Standard directories for programs, in which the file name alone identifies a program.
pub const SYSTEM_FOLDERS: &[&str] = &["/bin", "/usr/bin", "/usr/local/bin"];

/// A word of a command, before and after quote removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as shell source, with quotes.
    pub raw: String,
    /// The word as the command receives it.
    pub text: String,
}

impl Word {
    /// Creates a word that the command receives as `text`, quoted where the shell needs it.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { raw: quote(&text), text }
    }
}

/// A simple command (as POSIX defines it) whose words the shell does not expand, with at most one
/// redirection: its input from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    /// Names and values of the variables assigned for this command only, in order.
    pub variables: Vec<(String, Word)>,
    /// The program, as a name or a path.
    pub program: Word,
    /// The words after the program, without redirections.
    pub arguments: Vec<Word>,
    /// The file after `<`, if standard input is redirected.
    pub input: Option<Word>,
}

impl Simple {
    /// Parses the source of a stage. Returns `None` unless all of these hold:
    /// - the stage is one simple command that names a program, without `!`, `time`, `&`, `+=` or an
    ///   array assignment;
    /// - the shell expands none of its words, and none has quotes like `$'…'`;
    /// - its only redirection, if any, is `<file`.
    pub fn read(text: &str) -> Option<Self> {
        let program =
            Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program().ok()?;
        let [list] = program.complete_commands.as_slice() else { return None };
        let [item] = list.0.as_slice() else { return None };
        if matches!(item.1, SeparatorOperator::Async) {
            return None;
        }
        if !item.0.additional.is_empty() || item.0.first.bang || item.0.first.timed.is_some() {
            return None;
        }
        let [Command::Simple(command)] = item.0.first.seq.as_slice() else { return None };
        Self::from_grammar(command)
    }

    fn from_grammar(command: &SimpleCommand) -> Option<Self> {
        let program = words::read(&command.word_or_name.as_ref()?.value)?;
        let mut simple =
            Self { variables: Vec::new(), program, arguments: Vec::new(), input: None };
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        for item in prefix {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) if !assignment.append => {
                    let AssignmentValue::Scalar(value) = &assignment.value else { return None };
                    let name = assignment.name.to_string();
                    simple.variables.push((name, words::read(&value.value)?));
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => simple.redirect(redirect)?,
                _ => return None,
            }
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                // After the command's name, `A=b` is an argument like any other.
                CommandPrefixOrSuffixItem::Word(word)
                | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    simple.arguments.push(words::read(&word.value)?);
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => simple.redirect(redirect)?,
                CommandPrefixOrSuffixItem::ProcessSubstitution(..) => return None,
            }
        }
        Some(simple)
    }

    fn redirect(&mut self, redirect: &IoRedirect) -> Option<()> {
        match redirect {
            IoRedirect::File(
                None | Some(0),
                IoFileRedirectKind::Read,
                IoFileRedirectTarget::Filename(file),
            ) if self.input.is_none() => {
                self.input = Some(words::read(&file.value)?);
                Some(())
            }
            _ => None,
        }
    }

    /// Returns the program's name: without its directory if that is one of [`SYSTEM_FOLDERS`], and
    /// as written otherwise, since other directories may contain any program of that name.
    pub fn name(&self) -> &str {
        let text = self.program.text.as_str();
        match text.rsplit_once('/') {
            Some((folder, name)) if SYSTEM_FOLDERS.contains(&folder) => name,
            _ => text,
        }
    }

    /// Returns the value that the command assigns to the variable `name`, or `None` if there is no
    /// such assignment. The last assignment wins.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.text.as_str())
    }

    /// Returns the command as shell source, with a redirection of its input at the end.
    pub fn text(&self) -> String {
        let variables = self.variables.iter().map(|(name, value)| format!("{name}={}", value.raw));
        let arguments = self.arguments.iter().map(|word| word.raw.clone());
        let input = self.input.iter().map(|file| format!("<{}", file.raw));
        variables
            .chain([self.program.raw.clone()])
            .chain(arguments)
            .chain(input)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns a copy of the command with `arguments` in place of its own.
    #[must_use]
    pub fn with(&self, arguments: Vec<Word>) -> Self {
        Self { arguments, ..self.clone() }
    }

    /// Removes the input file: the one after `<`, or else the only word in `files`. `files` must
    /// contain the command's input operands. Returns the command and the removed file, if any.
    /// Returns `None` if there is more than one input, the operand is `-`, or its word does not
    /// occur exactly once among the arguments.
    pub fn without_input(mut self, files: &[Word]) -> Option<(Self, Option<Word>)> {
        let input = match (files, self.input.take()) {
            ([], input) => input,
            ([file], None) if file.text != "-" => {
                // The same word may also be an option's argument.
                let mut places = (0..self.arguments.len()).filter(|&i| self.arguments[i] == *file);
                let (place, None) = (places.next()?, places.next()) else { return None };
                self.arguments.remove(place);
                Some(file.clone())
            }
            _ => return None,
        };
        Some((self, input))
    }

    /// Returns whether `other` names the same program, after quote removal, and has the same
    /// variable assignments in the same order.
    pub fn is_sibling_of(&self, other: &Self) -> bool {
        self.program.text == other.program.text && self.has_same_variables(other)
    }

    /// Returns whether `other` has the same variable assignments, in the same order.
    pub fn has_same_variables(&self, other: &Self) -> bool {
        let values = |simple: &Self| {
            let pairs = simple.variables.iter().map(|(n, v)| (n.clone(), v.text.clone()));
            pairs.collect::<Vec<_>>()
        };
        values(self) == values(other)
    }
}

/// Helpers for tests of this and other crates.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::Simple;

    /// Parses a stage as a simple command.
    ///
    /// # Panics
    /// Panics if [`Simple::read`] returns `None` for `text`.
    pub fn simple(text: &str) -> Simple {
        Simple::read(text).unwrap_or_else(|| panic!("a simple command: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::simple;
    use super::*;

    #[test]
    fn a_simple_command_is_read_and_written_back() {
        let text = "LC_ALL=C X='a b' /bin/grep -e 'a|b' \"c d\" e\\ f x=y <in.txt";
        let read = simple(text);
        assert_eq!(read.text(), text);
        assert_eq!(read.name(), "grep");
        assert_eq!(simple("./sort -u").name(), "./sort");
        assert_eq!(simple("/home/me/bin/sort").name(), "/home/me/bin/sort");
        assert_eq!((read.variable("LC_ALL"), read.variable("X")), (Some("C"), Some("a b")));
        let texts: Vec<_> = read.arguments.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(texts, ["-e", "a|b", "c d", "e f", "x=y"]);
        assert_eq!(read.input.map(|word| word.text).as_deref(), Some("in.txt"));
    }

    #[test]
    fn a_single_input_is_removed() {
        let without = |text: &str, files: &[&str]| {
            let files: Vec<_> = files.iter().map(|file| Word::new(*file)).collect();
            let (command, input) = simple(text).without_input(&files)?;
            Some((command.text(), input.map(|word| word.text)))
        };
        let found =
            |text: &str, file: Option<&str>| Some((text.to_owned(), file.map(String::from)));
        assert_eq!(without("sort -n f", &["f"]), found("sort -n", Some("f")));
        assert_eq!(without("sort -n <f", &[]), found("sort -n", Some("f")));
        assert_eq!(without("sort -n", &[]), found("sort -n", None));
        assert_eq!(without("grep f -e f", &["f"]), None);
        assert_eq!(without("sort a b", &["a", "b"]), None);
        assert_eq!(without("sort -", &["-"]), None);
        assert_eq!(without("sort f <g", &["f"]), None);
    }

    #[test]
    fn other_stages_are_rejected() {
        for text in [
            "{ cat; }",
            "(cat)",
            "while read -r l; do :; done",
            "cat $x",
            "cat \"$x\"",
            "cat *.txt",
            "cat ~/x",
            "cat {a,b}",
            "cat `x`",
            "cat >out",
            "cat 2>/dev/null",
            "cat <<<x",
            "cat 3<x",
            "cat <a <b",
            "cat <(x)",
            "X+=1 cat",
            "X=1",
            "f() { :; }",
            "! cat",
            "time cat",
            "a; b",
            "a && b",
            "a | b",
            "cat &",
            "cat $'a'",
            "cat [a]",
            "cat a#{1..3}",
            "",
        ] {
            assert_eq!(Simple::read(text), None, "{text}");
        }
    }
}
