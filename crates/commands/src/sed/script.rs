//! Types for the syntax of GNU `sed` scripts.
//!
//! Commands form a flat list that includes `{` and `}`, as in `sed` itself, so blocks of any depth
//! need no recursive type.

use std::ops::Range;

/// A parsed script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Whether the first line is `#n`, which has the effect of `-n`.
    pub quiet: bool,
    /// The commands in order, without comments. Braces are balanced, and the label of every branch
    /// is defined.
    pub commands: Vec<Command>,
}

/// An error or an ambiguity in a script, which prevents parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the script cannot be parsed: {reason} (byte {at})")]
pub struct Unread {
    /// Offset in the script at which parsing stopped, in bytes from 0.
    pub at: usize,
    /// Description of the error or ambiguity, for the user.
    pub reason: &'static str,
}

/// Interpretation of a delimiter within a bracket expression, which differs between implementations
/// of `sed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiters {
    /// A script whose meaning depends on the interpretation is rejected.
    Certain,
    /// The delimiter is an ordinary character, as in GNU `sed`.
    Shielded,
    /// The delimiter ends the regular expression.
    Everywhere,
}

/// A command with its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Byte range of the command in the script, from its address up to its terminator.
    pub place: Range<usize>,
    /// The lines that the addresses select.
    pub selection: Selection,
    /// Whether the command applies to all other lines instead (`!`).
    pub negated: bool,
    /// The function with its arguments.
    pub function: Function,
}

/// Lines to which a command applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All lines.
    All,
    /// Lines that match one address.
    One(Address),
    /// Lines from one that matches the address up to the end of the range.
    Range(Address, End),
}

/// A condition that selects lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A line number; 0 only as the first address of a range.
    Line(u64),
    /// Every `step`th line, starting at line `first` (`first~step`).
    Step {
        /// The number of the first selected line; 0 if that is line `step`.
        first: u64,
        /// The distance between selected lines, at least 1.
        step: u64,
    },
    /// The last line (`$`).
    Last,
    /// Lines that match a regular expression (`/re/` or `\cREc`).
    Regex(Regex),
}

impl Address {
    fn regex(&self) -> Option<&Regex> {
        match self {
            Self::Regex(regex) => Some(regex),
            _ => None,
        }
    }
}

/// The second address of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The next line that matches an address.
    Address(Address),
    /// `+N`: `N` lines after the first.
    Later(u64),
    /// `~N`: the first line of the range whose number is a multiple of `N`.
    Multiple(u64),
}

/// A regular expression, with its delimiter and flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regex {
    /// The expression as written, without delimiters. An empty expression repeats the last one
    /// used.
    pub text: String,
    /// The character around the expression.
    pub delimiter: char,
    /// Whether matching ignores case (`I`).
    pub ignores_case: bool,
    /// Whether `^` and `$` also match at newlines (`M`).
    pub multiline: bool,
    /// Whether a bracket expression contains a backslash, `[.` or `[=`, or is not closed, which
    /// implementations interpret differently.
    pub has_odd_brackets: bool,
}

/// The function of a command, with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Function {
    /// The start of a block (`{`).
    Open,
    /// The end of a block (`}`).
    Close,
    /// The definition of a label (`:label`).
    Label(String),
    /// `b`, `t` or `T`, with the label. The empty label is the end of the script.
    Branch(char, String),
    /// A substitution (`s`).
    Substitute(Substitution),
    /// A transliteration (`y`), with both strings as written.
    Transliterate(String, String),
    /// `a`, `i` or `c`, with the text as written.
    Text(char, String),
    /// `r` or `R`, with the file to read.
    ReadFile(char, String),
    /// `w` or `W`, with the file to write.
    WriteFile(char, String),
    /// `q` or `Q`, with the exit code if it is given.
    Quit(char, Option<u64>),
    /// `l`, with the line length if it is given.
    List(Option<u64>),
    /// `e`, with the command as written. If it is empty, `sed` executes the pattern space.
    Execute(String),
    /// `v`, with the required version of `sed`.
    Version(String),
    /// One of `=dDFgGhHnNpPxz`, which take no argument.
    Plain(char),
}

/// The arguments of `s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// The expression to match.
    pub regex: Regex,
    /// The replacement, as written.
    pub replacement: String,
    /// Whether all later matches are replaced as well (flag `g`).
    pub global: bool,
    /// The number of the first match to replace, from 1; `None` if it is not given, which means 1.
    pub number: Option<u64>,
    /// Whether a changed pattern space is printed (flag `p`).
    pub print: bool,
    /// Whether the result is executed as a command (flag `e`).
    pub execute: bool,
    /// The file to which changed lines are written (flag `w`), if any.
    pub file: Option<String>,
}

impl Script {
    /// Returns whether the script writes a file or executes a command. Writes to `/dev/stdout` and
    /// `/dev/stderr` do not count.
    pub fn reaches_out(&self) -> bool {
        let is_output = |file: &str| ["/dev/stdout", "/dev/stderr"].contains(&file.trim());
        self.commands.iter().any(|command| match &command.function {
            Function::Execute(_) => true,
            Function::WriteFile(_, file) => !is_output(file),
            Function::Substitute(s) => s.execute || s.file.as_ref().is_some_and(|f| !is_output(f)),
            _ => false,
        })
    }

    /// Returns the regular expressions of all addresses and substitutions, in script order.
    pub fn expressions(&self) -> impl Iterator<Item = &Regex> {
        self.commands.iter().flat_map(|command| {
            let [from, to] = match &command.selection {
                Selection::All => [None, None],
                Selection::Range(address, End::Address(end)) => [Some(address), Some(end)],
                Selection::One(address) | Selection::Range(address, _) => [Some(address), None],
            };
            let own = match &command.function {
                Function::Substitute(substitution) => Some(&substitution.regex),
                _ => None,
            };
            [from.and_then(Address::regex), to.and_then(Address::regex), own].into_iter().flatten()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Command> {
        Script::read(text, Delimiters::Certain).unwrap_or_else(|e| panic!("{text}: {e}")).commands
    }

    fn regex(text: &str, delimiter: char) -> Regex {
        let text = text.to_owned();
        Regex { text, delimiter, ignores_case: false, multiline: false, has_odd_brackets: false }
    }

    #[test]
    fn addresses_are_read() {
        let line = Address::Line;
        let re = |text| Address::Regex(regex(text, '/'));
        let one = Selection::One;
        let range = |from, to| Selection::Range(from, End::Address(to));
        let step = |first, step| Address::Step { first, step };
        let any_case = Regex { ignores_case: true, ..regex("a", '/') };
        let both = Regex { multiline: true, ..any_case.clone() };
        for (text, selection) in [
            ("p", Selection::All),
            ("5p", one(line(5))),
            ("$ p", one(Address::Last)),
            ("2~3p", one(step(2, 3))),
            ("0~4p", one(step(0, 4))),
            ("2 ~ 0p", one(line(2))),
            ("/a b/p", one(re("a b"))),
            ("/a/Ip", one(Address::Regex(any_case))),
            ("/a/ M I p", one(Address::Regex(both))),
            ("\\,a/b,p", one(Address::Regex(regex("a/b", ',')))),
            ("/a\\/b/p", one(re("a\\/b"))),
            ("1,3p", range(line(1), line(3))),
            ("1 , $p", range(line(1), Address::Last)),
            ("0,/a/p", range(line(0), re("a"))),
            ("/a/,/b/p", range(re("a"), re("b"))),
            ("2,1~2p", range(line(2), step(1, 2))),
            ("/a/,+3p", Selection::Range(re("a"), End::Later(3))),
            ("$,~4p", Selection::Range(Address::Last, End::Multiple(4))),
        ] {
            let commands = read(text);
            assert_eq!((commands.len(), &commands[0].selection), (1, &selection), "{text}");
        }
        let negated = |text: &str| read(text)[0].negated;
        assert!(negated("/a/! p") && negated("$!{p}") && !negated("/!/p"));
    }

    #[test]
    fn functions_are_read() {
        let text = |letter, text: &str| Function::Text(letter, text.to_owned());
        let branch = |letter, label: &str| Function::Branch(letter, label.to_owned());
        let label = |label: &str| Function::Label(label.to_owned());
        let execute = |command: &str| Function::Execute(command.to_owned());
        let transliterate = Function::Transliterate("a\\/b".to_owned(), "c;d".to_owned());
        let plain = Function::Plain;
        for (script, functions) in [
            ("{p}", vec![Function::Open, plain('p'), Function::Close]),
            ("p;;\n =#x;d\nd", vec![plain('p'), plain('='), plain('d')]),
            (": a;tb;T\nb a;:b", {
                vec![label("a"), branch('t', "b"), branch('T', ""), branch('b', "a"), label("b")]
            }),
            ("{b}", vec![Function::Open, branch('b', ""), Function::Close]),
            ("a  x y;p}\np", vec![text('a', "x y;p}"), plain('p')]),
            ("a\\\nx\\\ny\np", vec![text('a', "x\\\ny"), plain('p')]),
            ("c\\  x", vec![text('c', "  x")]),
            ("i\\\n\np", vec![text('i', ""), plain('p')]),
            ("r a b;p\np", vec![Function::ReadFile('r', "a b;p".to_owned()), plain('p')]),
            ("W f}", vec![Function::WriteFile('W', "f}".to_owned())]),
            ("q5;Q", vec![Function::Quit('q', Some(5)), Function::Quit('Q', None)]),
            ("l 3;l", vec![Function::List(Some(3)), Function::List(None)]),
            ("e date\ne", vec![execute("date"), execute("")]),
            ("v 4.2", vec![Function::Version("4.2".to_owned())]),
            ("y/a\\/b/c;d/", vec![transliterate]),
        ] {
            let read: Vec<_> = read(script).into_iter().map(|command| command.function).collect();
            assert_eq!(read, functions, "{script}");
        }
    }

    #[test]
    fn flags_are_read() {
        let plain = Substitution {
            regex: regex("a", '/'),
            replacement: "b\\\nc".to_owned(),
            global: false,
            number: None,
            print: false,
            execute: false,
            file: None,
        };
        let all = Substitution {
            regex: Regex { ignores_case: true, multiline: true, ..regex("a", '/') },
            global: true,
            number: Some(12),
            print: true,
            execute: true,
            file: Some("f;p".to_owned()),
            ..plain.clone()
        };
        for (flags, expected) in [("", plain), ("g12 pIMew f;p\n", all)] {
            let function = read(&format!("{{s/a/b\\\nc/{flags}}}")).swap_remove(1).function;
            assert_eq!(function, Function::Substitute(expected), "{flags}");
        }
    }

    #[test]
    fn wrong_or_ambiguous_scripts_are_rejected() {
        const WRONG: &str = "0p|0,5p|+1p|1,p|1,+p|/a/!!p|!|1|/a|p p|p\r|{p}p|{|}|{p}}|1}|1:a|:|\
            :a b|:a#x|:a;:a|bx|b a}|1,2q|q 5 6|l x|s/a/b|s/a\nb/x/|s/a/x\ny/|s/a/b/gg|s/a/b/0|\
            s/a/b/x|s/a/b/12 3|s\na\nb\n|s\\a\\b\\|sxaxbx|séaébé|y/a/b|y/a/b/g|a|a\np|a\\\n|w|\
            r |s/a/b/w|L|k|1#|99999999999999999999p|s/[/]/b/|a x\\|a\\|#no|\u{a0}p";
        for text in WRONG.split('|') {
            assert!(Script::read(text, Delimiters::Certain).is_err(), "{text}");
        }
    }

    #[test]
    fn delimiters_between_brackets_are_read_as_is_wanted() {
        let reaches = |text, delimiters| Script::read(text, delimiters).map(|s| s.reaches_out());
        assert_eq!(reaches("s/[/]/x/;p", Delimiters::Shielded), Ok(false));
        assert!(reaches("s/[/]/x/;p", Delimiters::Everywhere).is_err());
        assert_eq!(reaches("s/[/]/w f/", Delimiters::Shielded), Ok(false));
        assert_eq!(reaches("s/[/]/w f/", Delimiters::Everywhere), Ok(true));
        assert!(reaches("s1a1b1", Delimiters::Everywhere).is_err(), "no delimiter, but a digit");
    }
}
