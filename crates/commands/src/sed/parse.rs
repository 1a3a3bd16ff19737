//! Parser for `sed` scripts.

use std::collections::BTreeSet;

use super::brackets::{has_odd_brackets, length};
use super::script::{
    Address, Command, Delimiters, End, Function, Regex, Script, Selection, Substitution, Unread,
};

type Read<T> = Result<T, Unread>;

impl Script {
    /// Parses a script. The scripts of several `-e` and `-f` options must be joined with newlines.
    ///
    /// `sed` may still reject a script that parses, since the syntax of regular expressions,
    /// references to their groups and the lengths of the strings of `y` are not checked.
    ///
    /// # Errors
    ///
    /// Fails for scripts with any other error that makes GNU `sed` 4.8 reject them, and for scripts
    /// that versions of `sed` interpret differently.
    pub fn read(text: &str, delimiters: Delimiters) -> Result<Self, Unread> {
        let quiet = text == "#n" || text.starts_with("#n\n");
        let reader = Reader::new(text, delimiters);
        if text.starts_with("#n") && !quiet {
            return Err(reader.fail("some versions read `#n` with more after it as `-n`"));
        }
        Ok(Self { quiet, commands: reader.commands()? })
    }
}

/// A cursor over a script.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    delimiters: Delimiters,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, delimiters: Delimiters) -> Self {
        Self { text, at: 0, delimiters }
    }

    /// Parses all commands. Checks that braces are balanced, that no label is defined twice, and
    /// that the label of every branch is defined.
    fn commands(mut self) -> Read<Vec<Command>> {
        let (mut commands, mut depth) = (Vec::new(), 0_usize);
        loop {
            self.skip(&[' ', '\t', '\n', ';']);
            match self.peek() {
                None => break,
                Some('#') => drop(self.line()),
                Some(_) => commands.push(self.command(&mut depth)?),
            }
        }
        if depth > 0 {
            return Err(self.fail("a `{` is not closed"));
        }
        self.check_labels(&commands)?;
        Ok(commands)
    }

    fn check_labels(&self, commands: &[Command]) -> Read<()> {
        let mut labels = BTreeSet::new();
        for command in commands {
            if let Function::Label(label) = &command.function
                && !labels.insert(label)
            {
                return Err(self.fail("a label is defined twice"));
            }
        }
        let leads_nowhere = |command: &Command| match &command.function {
            Function::Branch(_, label) => !label.is_empty() && !labels.contains(label),
            _ => false,
        };
        if commands.iter().any(leads_nowhere) {
            return Err(self.fail("a label is not defined"));
        }
        Ok(())
    }

    fn command(&mut self, depth: &mut usize) -> Read<Command> {
        let start = self.at;
        let selection = self.selection()?;
        self.skip_blanks();
        let negated = self.take('!');
        self.skip_blanks();
        let Some(letter) = self.next() else { return Err(self.fail("a command is missing")) };
        self.check_addresses(letter, &selection)?;
        match letter {
            '{' => *depth += 1,
            '}' if *depth == 0 => return Err(self.fail("a `}` has no `{`")),
            '}' => *depth -= 1,
            _ => {}
        }
        let function = self.function(letter)?;
        let place = start..start + self.text[start..self.at].trim_end().len();
        if !matches!(letter, '{' | 'a' | 'i' | 'c' | 'e' | 'r' | 'R' | 'w' | 'W') {
            self.end()?;
        }
        Ok(Command { place, selection, negated, function })
    }

    /// Checks the number of addresses before the command `letter`: some commands take none, and `q`
    /// and `Q` take at most one.
    fn check_addresses(&self, letter: char, selection: &Selection) -> Read<()> {
        match (letter, selection) {
            (':' | '}' | '#' | 'v', Selection::One(_) | Selection::Range(..)) => {
                Err(self.fail("this command takes no address"))
            }
            ('q' | 'Q', Selection::Range(..)) => Err(self.fail("this command takes one address")),
            _ => Ok(()),
        }
    }

    fn function(&mut self, letter: char) -> Read<Function> {
        Ok(match letter {
            '{' => Function::Open,
            '}' => Function::Close,
            ':' => Function::Label(self.label(true)?),
            'b' | 't' | 'T' => Function::Branch(letter, self.label(false)?),
            's' => Function::Substitute(self.substitution()?),
            'y' => self.transliteration()?,
            'a' | 'i' | 'c' => Function::Text(letter, self.added_text()?),
            'r' | 'R' => Function::ReadFile(letter, self.file()?),
            'w' | 'W' => Function::WriteFile(letter, self.file()?),
            'q' | 'Q' => Function::Quit(letter, self.argument()?),
            'l' => Function::List(self.argument()?),
            'e' => Function::Execute(self.line().trim_start().to_owned()),
            'v' => Function::Version(self.label(false)?),
            '=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => {
                Function::Plain(letter)
            }
            _ => return Err(self.fail("no such command")),
        })
    }

    fn selection(&mut self) -> Read<Selection> {
        let Some(first) = self.address()? else { return Ok(Selection::All) };
        self.skip_blanks();
        if !self.take(',') {
            return match first {
                Address::Line(0) => Err(self.fail("there is no line 0")),
                _ => Ok(Selection::One(first)),
            };
        }
        self.skip_blanks();
        let end = self.range_end()?;
        let is_regex = matches!(end, End::Address(Address::Regex(_)));
        if first == Address::Line(0) && !is_regex {
            return Err(self.fail("there is no line 0"));
        }
        Ok(Selection::Range(first, end))
    }

    fn range_end(&mut self) -> Read<End> {
        for (sign, end) in [('+', End::Later as fn(u64) -> End), ('~', End::Multiple)] {
            if self.take(sign) {
                return Ok(end(self.number()?));
            }
        }
        let address = self.address()?;
        address.map(End::Address).ok_or_else(|| self.fail("a range has no end"))
    }

    fn address(&mut self) -> Read<Option<Address>> {
        Ok(match self.peek() {
            Some('/' | '\\') => Some(Address::Regex(self.address_regex()?)),
            Some('$') => {
                self.next();
                Some(Address::Last)
            }
            Some('0'..='9') => {
                let first = self.number()?;
                self.skip_blanks();
                let step = if self.take('~') { self.number()? } else { 0 };
                Some(if step > 0 { Address::Step { first, step } } else { Address::Line(first) })
            }
            _ => None,
        })
    }

    fn address_regex(&mut self) -> Read<Regex> {
        self.take('\\');
        let delimiter = self.delimiter()?;
        let mut regex = self.regex(delimiter)?;
        loop {
            self.skip_blanks();
            if self.take('I') {
                regex.ignores_case = true;
            } else if self.take('M') {
                regex.multiline = true;
            } else {
                return Ok(regex);
            }
        }
    }

    fn substitution(&mut self) -> Read<Substitution> {
        let delimiter = self.delimiter()?;
        let regex = self.regex(delimiter)?;
        let replacement = self.plain(delimiter)?;
        let (global, number, print) = (false, None, false);
        let mut s =
            Substitution { regex, replacement, global, number, print, execute: false, file: None };
        while self.flag(&mut s)? {}
        Ok(s)
    }

    /// Parses one flag of `s`, if there is one. Returns `false` if no more can follow.
    fn flag(&mut self, s: &mut Substitution) -> Read<bool> {
        let before = self.at;
        self.skip_blanks();
        let is_again = match self.peek() {
            Some('0'..='9') => {
                let number = self.number()?;
                s.number.replace(number).is_some() || number == 0
            }
            Some('w') => {
                self.next();
                s.file = Some(self.file()?);
                return Ok(false);
            }
            Some(letter @ ('g' | 'p' | 'e' | 'i' | 'I' | 'm' | 'M')) => {
                self.next();
                match letter {
                    'g' => std::mem::replace(&mut s.global, true),
                    'p' => std::mem::replace(&mut s.print, true),
                    'e' => std::mem::replace(&mut s.execute, true),
                    'i' | 'I' => std::mem::replace(&mut s.regex.ignores_case, true),
                    _ => std::mem::replace(&mut s.regex.multiline, true),
                }
            }
            _ => {
                self.at = before;
                return Ok(false);
            }
        };
        if is_again {
            return Err(self.fail("a flag of `s` is repeated or 0"));
        }
        Ok(true)
    }

    fn transliteration(&mut self) -> Read<Function> {
        let delimiter = self.delimiter()?;
        let from = self.plain(delimiter)?;
        Ok(Function::Transliterate(from, self.plain(delimiter)?))
    }

    /// Parses the first delimiter of `s`, of `y`, or of a regular expression in an address.
    fn delimiter(&mut self) -> Read<char> {
        match self.next() {
            // `\1` and `\n` would be ambiguous.
            Some(c) if c.is_ascii_graphic() && c != '\\' || c == ' ' => {
                if c.is_ascii_alphanumeric() {
                    return Err(self.fail("a letter or digit is the delimiter"));
                }
                Ok(c)
            }
            _ => Err(self.fail("this is not a valid delimiter")),
        }
    }

    fn regex(&mut self, delimiter: char) -> Read<Regex> {
        let rest = &self.text[self.at..];
        let shielded = length(rest, delimiter, true);
        let everywhere = length(rest, delimiter, false);
        let end = match self.delimiters {
            Delimiters::Certain if shielded != everywhere => {
                return Err(self.fail("a delimiter is in a bracket expression"));
            }
            Delimiters::Certain | Delimiters::Shielded => shielded,
            Delimiters::Everywhere => everywhere,
        };
        let text = self.until(end)?;
        let has_odd_brackets = has_odd_brackets(&text);
        Ok(Regex { text, delimiter, ignores_case: false, multiline: false, has_odd_brackets })
    }

    fn plain(&mut self, delimiter: char) -> Read<String> {
        self.until(length(&self.text[self.at..], delimiter, false))
    }

    /// Consumes `length` bytes and the delimiter after them, and returns the bytes. Fails if
    /// `length` is `None`, since there is no delimiter.
    fn until(&mut self, length: Option<usize>) -> Read<String> {
        let Some(length) = length else { return Err(self.fail("a delimiter is missing")) };
        let text = self.text[self.at..self.at + length].to_owned();
        self.at += length + 1;
        Ok(text)
    }

    /// Parses the text of `a`, `i` or `c`. The text starts on the same line, with or without a
    /// backslash before it, or on the next line after a backslash. A backslash at the end of a line
    /// continues the text.
    fn added_text(&mut self) -> Read<String> {
        self.skip_blanks();
        if self.take('\\') {
            let before = self.at;
            self.skip_blanks();
            if !self.take('\n') {
                self.at = before;
            }
        }
        let start = self.at;
        loop {
            match self.next() {
                Some('\\') if self.next().is_none() => {
                    return Err(self.fail("a backslash ends the script"));
                }
                Some('\n') if self.at - start > 1 || self.text[..start].ends_with('\n') => {
                    return Ok(self.text[start..self.at - 1].to_owned());
                }
                None if self.at > start => return Ok(self.text[start..].to_owned()),
                Some('\n') | None => return Err(self.fail("a text is missing")),
                Some(_) => {}
            }
        }
    }

    /// Parses a label. With `needed`, after `:`, it must not be empty; after a branch, it is
    /// optional. Rejects labels that contain `{`, `#`, a backslash or, after `:`, `}`, because
    /// versions of `sed` may read them differently.
    fn label(&mut self, needed: bool) -> Read<String> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let ends = |c: char| c.is_whitespace() || c == ';' || (c == '}' && !needed);
        let label = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += label.len();
        if label.contains(['{', '}', '#', '\\']) || (needed && label.is_empty()) {
            return Err(self.fail("this is not a valid label"));
        }
        if needed {
            self.skip_blanks();
            if self.peek().is_some_and(|c| c != ';' && c != '\n') {
                return Err(self.fail("unexpected text after a label"));
            }
        }
        Ok(label.to_owned())
    }

    fn file(&mut self) -> Read<String> {
        self.skip_blanks();
        let name = self.line().to_owned();
        if name.is_empty() {
            return Err(self.fail("a file's name is missing"));
        }
        Ok(name)
    }

    /// Parses a number, or returns `None` if there is none.
    fn argument(&mut self) -> Read<Option<u64>> {
        self.skip_blanks();
        let has_one = self.peek().is_some_and(|c| c.is_ascii_digit());
        has_one.then(|| self.number()).transpose()
    }

    fn number(&mut self) -> Read<u64> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        self.at += digits.len();
        digits.parse().map_err(|_| self.fail("this is not a valid number"))
    }

    /// Checks that the command ends here. `}` and `#` may follow without a separator.
    fn end(&mut self) -> Read<()> {
        // A file name extends to the end of its line, which is already consumed.
        if self.text[..self.at].ends_with('\n') {
            return Ok(());
        }
        self.skip_blanks();
        match self.peek() {
            None | Some('}' | '#' | ';' | '\n') => Ok(()),
            Some(_) => Err(self.fail("unexpected text after a command")),
        }
    }

    /// Consumes the rest of the line with its newline, and returns it without the newline.
    fn line(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        self.at = self.text.len() - behind.len();
        line
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn skip_blanks(&mut self) {
        self.skip(&[' ', '\t']);
    }

    fn skip(&mut self, characters: &[char]) {
        let rest = &self.text[self.at..];
        self.at = self.text.len() - rest.trim_start_matches(characters).len();
    }

    fn fail(&self, reason: &'static str) -> Unread {
        Unread { at: self.at, reason }
    }
}
