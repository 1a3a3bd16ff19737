//! Finds the string literals of Rust sources, except those of tests.
//!
//! The module is a lexer for comments, strings, characters and braces, not a parser. It skips from
//! `#[cfg(test)]` to the end of the next item.

/// String literals and test modules of a source.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Literals<'a> {
    /// All strings outside of tests, with escapes unresolved, and their line numbers from 1.
    pub strings: Vec<(usize, &'a str)>,
    /// Names of test modules with files of their own: `#[cfg(test)] mod NAME;`.
    pub test_modules: Vec<&'a str>,
}

/// Returns the string literals and test modules of a source.
pub fn literals(source: &str) -> Literals<'_> {
    let mut lexer = Lexer { source, at: 0, depth: 0, test: Test::No, found: Literals::default() };
    while lexer.at < source.len() {
        lexer.step();
    }
    lexer.found
}

/// Where the lexer is, relative to code for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Test {
    No,
    /// Between `#[cfg(test)]`, which ended at byte `from`, and the braces of its item.
    Item {
        from: usize,
    },
    /// Inside the braces of a test item, which close at the given depth.
    Braces {
        depth: usize,
    },
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    depth: usize,
    test: Test,
    found: Literals<'a>,
}

impl<'a> Lexer<'a> {
    fn step(&mut self) {
        let rest = &self.source[self.at..];
        let byte = rest.as_bytes()[0];
        match byte {
            b'/' if rest.starts_with("//") => self.skip(rest.find('\n').unwrap_or(rest.len())),
            b'/' if rest.starts_with("/*") => self.skip(block_comment(rest)),
            b'r' if !self.continues_name() && raw_hashes(rest).is_some() => self.raw_string(rest),
            b'"' => self.string(rest),
            b'\'' => self.skip(character(rest)),
            b'#' if self.test == Test::No && rest.starts_with("#[cfg(test)]") => {
                self.skip("#[cfg(test)]".len());
                self.test = Test::Item { from: self.at };
            }
            b'{' => self.open(),
            b'}' => self.close(),
            b';' => self.end_of_item(),
            _ => self.skip(rest.chars().next().map_or(1, char::len_utf8)),
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Returns whether the `r` at the lexer's position continues a name. In `br` and `cr`, the
    /// prefixes of raw byte and C strings, it does not.
    fn continues_name(&self) -> bool {
        let before = &self.source.as_bytes()[..self.at];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match before {
            [.., first, b'b' | b'c'] => is_name(first),
            [.., last] => is_name(last) && before.len() > 1,
            [] => false,
        }
    }

    fn string(&mut self, rest: &'a str) {
        let mut end = 1;
        let bytes = rest.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.keep(1, end.min(bytes.len()));
        self.skip((end + 1).min(bytes.len()));
    }

    fn raw_string(&mut self, rest: &'a str) {
        let hashes = raw_hashes(rest).unwrap_or_default();
        let start = hashes + 2;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = rest[start..].find(&close).map_or(rest.len(), |length| start + length);
        self.keep(start, end);
        self.skip((end + close.len()).min(rest.len()));
    }

    fn keep(&mut self, from: usize, to: usize) {
        if self.test == Test::No {
            let line = self.source[..self.at].matches('\n').count() + 1;
            self.found.strings.push((line, &self.source[self.at + from..self.at + to]));
        }
    }

    fn open(&mut self) {
        self.skip(1);
        self.depth += 1;
        if let Test::Item { .. } = self.test {
            self.test = Test::Braces { depth: self.depth };
        }
    }

    fn close(&mut self) {
        self.skip(1);
        if self.test == (Test::Braces { depth: self.depth }) {
            self.test = Test::No;
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn end_of_item(&mut self) {
        if let Test::Item { from } = self.test {
            let item = self.source[from..self.at].trim();
            let name = item.rsplit_once("mod ").map(|(_, name)| name);
            self.found.test_modules.extend(name);
            self.test = Test::No;
        }
        self.skip(1);
    }
}

/// Returns the length in bytes of the comment `/* … */` at the start of a text, including nested
/// ones. A comment without an end extends to the end of the text.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Returns the number of `#` in the opening delimiter of the raw string at the start of a text, or
/// `None` if the text does not start with a raw string.
fn raw_hashes(text: &str) -> Option<usize> {
    let after_r = text.strip_prefix('r')?;
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    after_r[hashes..].starts_with('"').then_some(hashes)
}

/// Returns the length in bytes of the character literal at the start of a text, or 1 for the quote
/// of a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            let escape = characters.next().map_or(text.len(), |(at, found)| at + found.len_utf8());
            text[escape..].find('\'').map_or(text.len(), |length| escape + length + 1)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(source: &str) -> Vec<&str> {
        literals(source).strings.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn strings_of_every_kind_are_found_with_their_lines() {
        let source =
            "let a = \"one\";\nlet b = r#\"t\"wo\"#;\nlet c = br\"three\"; f(\"\\\"four\")";
        let found = literals(source).strings;
        assert_eq!(found, [(1, "one"), (2, "t\"wo"), (3, "three"), (3, "\\\"four")]);
    }

    #[test]
    fn comments_characters_and_lifetimes_do_not_begin_a_string() {
        assert_eq!(strings("// \"no\"\n/* \"no\" /* */ \"no\" */ \"yes\""), ["yes"]);
        assert_eq!(strings("f('\"', '\\'', 'ü', b'{'); g::<'a>(\"yes\")"), ["yes"]);
    }

    #[test]
    fn test_only_code_is_excluded() {
        let source = "#[cfg(test)]\nmod tests { fn f() { \"no\"; } }\nconst A: &str = \"yes\";";
        assert_eq!(strings(source), ["yes"]);
        let source = "#[cfg(test)]\npub(crate) mod sample;\nconst A: &str = \"yes\";";
        let found = literals(source);
        assert_eq!(found.strings, [(3, "yes")]);
        assert_eq!(found.test_modules, ["sample"]);
    }

    #[test]
    fn unfinished_text_ends_the_search() {
        for text in ["\"abc", "\"abc\\", "r#\"abc\"", "/* abc", "'\\", "'"] {
            literals(text);
        }
    }
}
