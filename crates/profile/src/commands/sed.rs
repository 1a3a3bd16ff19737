//! `sed`: its script, read far enough to tell whether it treats every line for itself.

use super::options::{Options, Table};
use super::{Simple, Word};

pub(crate) const TABLE: Table = Table {
    short: "ne:f:Ersuzb\u{1}",
    long: &[
        ("quiet", 'n'),
        ("silent", 'n'),
        ("expression", 'e'),
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
        let mut operands = options.operands.iter().map(|&index| simple.arguments[index].clone());
        let scripts: Vec<String> = if options.has('e') {
            options.values('e').map(str::to_owned).collect()
        } else {
            vec![operands.next()?.text]
        };
        let script = scripts.join("\n");
        if script.starts_with("#n") {
            return None;
        }
        Some(Self {
            commands: Script { rest: &script }.commands()?,
            quiet: options.has('n'),
            extended: options.has('E') || options.has('r'),
            null_data: options.has('z'),
            files: operands.collect(),
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
            .chain([Word { raw: super::words::quote_always(&script), text: script }])
            .collect()
    }
}

/// The rest of a script.
struct Script<'a> {
    rest: &'a str,
}

impl Script<'_> {
    fn commands(mut self) -> Option<Vec<Command>> {
        let mut commands = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', ';']);
            if self.rest.is_empty() {
                return (!commands.is_empty()).then_some(commands);
            }
            let before = self.rest;
            let (address, action) = self.command()?;
            let text = before[..before.len() - self.rest.len()].trim_end().to_owned();
            // It is written into one line with others.
            if text.contains('\n') {
                return None;
            }
            commands.push(Command { text, address, action });
            let after = self.rest.trim_start_matches([' ', '\t']);
            if !(after.is_empty() || after.starts_with([';', '\n'])) {
                return None;
            }
        }
    }

    fn command(&mut self) -> Option<(Option<String>, Action)> {
        let address = self.address()?;
        self.skip_blanks();
        let mut negated = false;
        while self.take('!') {
            negated = true;
            self.skip_blanks();
        }
        if negated && address.is_none() {
            return None;
        }
        let letter = self.next()?;
        let action = match letter {
            's' => self.substitution()?,
            'y' => self.transliteration()?,
            'd' => Action::Delete,
            // A line that is kept by `/x/!p` is not one that matches.
            'p' if !negated => Action::Print,
            _ => return None,
        };
        Some((address, action))
    }

    /// A regular expression, if there is one; a line number, `$` or a range is not read.
    #[expect(clippy::option_option, reason = "no address is no failure")]
    fn address(&mut self) -> Option<Option<String>> {
        let delimiter = match self.rest.chars().next()? {
            '/' => '/',
            '\\' => {
                self.next();
                self.rest.chars().next()?
            }
            '0'..='9' | '$' | '+' | '~' => return None,
            _ => return Some(None),
        };
        self.next();
        let expression = self.until(delimiter, true)?;
        // An empty one stands for the one that was used last, which fusing would change.
        if expression.is_empty() || !is_local(&expression) {
            return None;
        }
        if self.take('I') || self.rest.starts_with(',') || self.rest.starts_with('M') {
            return None;
        }
        self.skip_blanks();
        (!self.rest.starts_with(',')).then_some(Some(expression))
    }

    fn substitution(&mut self) -> Option<Action> {
        let delimiter = self.delimiter()?;
        let pattern = self.until(delimiter, true)?;
        let replacement = self.until(delimiter, false)?;
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_digit() || "gIi".contains(c)))
            .unwrap_or(self.rest.len());
        let (flags, rest) = self.rest.split_at(end);
        let flags = flags.to_owned();
        self.rest = rest;
        let makes_lines = replacement.contains('\n')
            || has_escape(&replacement, &['n', 'o', 'd', 'x', 'c', '\n']);
        (!pattern.is_empty() && is_local(&pattern) && !makes_lines).then_some(Action::Substitute {
            pattern,
            replacement,
            flags,
        })
    }

    fn transliteration(&mut self) -> Option<Action> {
        let delimiter = self.delimiter()?;
        let from = self.until(delimiter, false)?;
        let to = self.until(delimiter, false)?;
        let touches_lines =
            |text: &str| text.contains('\n') || has_escape(text, &['n', 'o', 'd', 'x', 'c', '\n']);
        (!touches_lines(&from) && !touches_lines(&to)).then_some(Action::Transliterate { from, to })
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|&c| c != '\n' && c != '\\')
    }

    /// Everything before the delimiter, which is skipped; escapes stay as written. Within
    /// brackets of a regular expression the delimiter is a character like others.
    fn until(&mut self, delimiter: char, expression: bool) -> Option<String> {
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                c if c == delimiter => return Some(text),
                '\\' => {
                    text.push('\\');
                    text.push(self.next()?);
                }
                '[' if expression => {
                    text.push('[');
                    text.push_str(&self.bracket(delimiter)?);
                }
                c => text.push(c),
            }
        }
        None
    }

    /// The rest of a bracket expression with its `]`. One that holds the delimiter, a class or
    /// a backslash is read differently by different seds.
    fn bracket(&mut self, delimiter: char) -> Option<String> {
        let mut text = String::new();
        if self.take('^') {
            text.push('^');
        }
        if self.take(']') {
            text.push(']');
        }
        loop {
            match self.next()? {
                c if c == delimiter => return None,
                '\\' | '\n' => return None,
                '[' if self.rest.starts_with(':') => {
                    let end = self.rest.find(":]")? + 2;
                    let (class, rest) = self.rest.split_at(end);
                    text.push('[');
                    text.push_str(class);
                    self.rest = rest;
                }
                '[' if self.rest.starts_with(['.', '=']) => return None,
                ']' => {
                    text.push(']');
                    return Some(text);
                }
                c => text.push(c),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest.starts_with(wanted);
        if found {
            self.next();
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }
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
    use super::super::tests::simple;
    use super::*;

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
