//! Recognizes regular expressions of `grep` and `sed` that match the same ASCII strings in every
//! locale.
//!
//! Not all expressions do, although ASCII has the same encoding everywhere. In the C locale, GNU
//! programs match with their own automaton; in UTF-8, they leave constructs that it does not
//! support to the C library. The two matchers disagree on ranges with case ignored, on word matches
//! that may be empty, and on repeated anchors. So this module accepts constructs on which they are
//! known to agree, rather than rejecting those on which they are known to differ.

/// Names of character classes, as in `[[:alpha:]]`.
const CLASSES: &[&str] = &[
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "xdigit",
];

/// Constructs in a portable expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plain {
    /// Whether the expression contains a bracket expression.
    pub sets: bool,
    /// Whether a bracket expression contains a range. In another locale's collating order, the
    /// range may contain further characters.
    pub ranges: bool,
}

/// Analyzes a regular expression, which is basic or `extended`. Returns `None` unless it is known
/// to match the same ASCII strings in every locale, except that ranges may contain more characters
/// in other locales (see [`Plain::ranges`]).
pub fn plain(text: &str, extended: bool) -> Option<Plain> {
    let mut reader = Reader { rest: text.as_bytes(), extended, depth: 0, plain: Plain::default() };
    let anchored = reader.take(b"^");
    let is_parted = reader.alternatives(anchored)?;
    let at_end = reader.take(b"$");
    let is_whole = reader.rest.is_empty() && reader.depth == 0;
    (is_whole && !(is_parted && (anchored || at_end))).then_some(reader.plain)
}

struct Reader<'t> {
    rest: &'t [u8],
    extended: bool,
    depth: usize,
    plain: Plain,
}

/// Maximum nesting depth of groups.
const MAX_GROUP_DEPTH: usize = 20;

impl Reader<'_> {
    fn take(&mut self, sign: &[u8]) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Consumes the operator `sign`, which has a backslash in basic expressions, if it is next.
    /// Returns whether it was.
    fn operator(&mut self, sign: u8) -> bool {
        if self.extended { self.take(&[sign]) } else { self.take(&[b'\\', sign]) }
    }

    /// Parses alternatives up to the end of the group, and returns whether there is more than one.
    /// Returns `None` for an atom or a repetition that is not portable, and for an empty
    /// alternative, except the first if it `may_be_empty`.
    fn alternatives(&mut self, may_be_empty: bool) -> Option<bool> {
        let mut count = 0;
        loop {
            let mut atoms = 0;
            while self.atom()? {
                self.repetition()?;
                atoms += 1;
            }
            count += 1;
            if atoms == 0 && !(may_be_empty && count == 1) {
                return None;
            }
            if !self.operator(b'|') {
                return Some(count > 1);
            }
        }
    }

    /// Parses an atom, and returns `Some(true)`. Returns `Some(false)` at the end of the
    /// alternative, and `None` for an atom that is not portable.
    fn atom(&mut self) -> Option<bool> {
        if self.operator(b'(') {
            self.depth += 1;
            if self.depth > MAX_GROUP_DEPTH {
                return None;
            }
            self.alternatives(false)?;
            if !self.operator(b')') {
                return None;
            }
            self.depth -= 1;
            return Some(true);
        }
        let [first, rest @ ..] = self.rest else { return Some(false) };
        match first {
            b'[' => {
                self.rest = rest;
                self.set()?;
            }
            b'\\' => match rest.first()? {
                // The end of a group or an alternative.
                b')' | b'|' if !self.extended => return Some(false),
                b't' | b'n' => self.rest = &rest[1..],
                b'(' | b')' | b'{' | b'}' | b'|' | b'+' | b'?' if !self.extended => return None,
                // An escaped punctuation character is literal, unless the escape is an anchor.
                sign if sign.is_ascii_punctuation() && !b"<>`'".contains(sign) => {
                    self.rest = &rest[1..];
                }
                _ => return None,
            },
            b')' | b'|' if self.extended => return Some(false),
            b'$' => return Some(false),
            b'*' | b'^' => return None,
            b'+' | b'?' | b'{' | b'}' if self.extended => return None,
            sign if (b' '..=b'~').contains(sign) || *sign == b'\t' => self.rest = rest,
            _ => return None,
        }
        Some(true)
    }

    /// Parses at most one repetition operator after an atom. Returns `None` for an interval that is
    /// not portable.
    fn repetition(&mut self) -> Option<()> {
        if self.take(b"*") || self.operator(b'+') || self.operator(b'?') {
            return Some(());
        }
        if self.operator(b'{') {
            let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            self.rest = &self.rest[digits..];
            let mut most = 0;
            if self.take(b",") {
                most = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                self.rest = &self.rest[most..];
            }
            // Some implementations limit repetition to 255.
            if !(1..=2).contains(&digits) || most > 2 || !self.operator(b'}') {
                return None;
            }
        }
        Some(())
    }

    /// Parses a bracket expression after its `[`. Returns `None` if it is not portable.
    fn set(&mut self) -> Option<()> {
        self.plain.sets = true;
        self.take(b"^");
        let mut is_first = true;
        loop {
            if !is_first && self.take(b"]") {
                return Some(());
            }
            is_first = false;
            if self.take(b"[:") {
                let name = CLASSES.iter().find(|name| self.rest.starts_with(name.as_bytes()))?;
                self.rest = &self.rest[name.len()..];
                if !self.take(b":]") {
                    return None;
                }
                continue;
            }
            let [first, rest @ ..] = self.rest else { return None };
            self.rest = rest;
            match rest {
                [b'-', b']', ..] => {} // the hyphen is literal
                [b'-', last, after @ ..] => {
                    let is_range = |kind: fn(&u8) -> bool| kind(first) && kind(last);
                    let known = is_range(u8::is_ascii_lowercase)
                        || is_range(u8::is_ascii_uppercase)
                        || is_range(u8::is_ascii_digit);
                    if !known || first > last {
                        return None;
                    }
                    self.plain.ranges = true;
                    self.rest = after;
                    continue;
                }
                _ => {}
            }
            let is_sign = (b' '..=b'~').contains(first) || *first == b'\t';
            if !is_sign || *first == b'[' || *first == b'\\' {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_portable_expressions_are_plain() {
        for text in [
            "abc",
            "^a.*b$",
            "^$",
            "^",
            "\"[^\"]*\"$",
            "\\(.\\)\\(..*\\)x",
            ".*duration=\\([0-9]*\\).*",
            "[]a-c]",
            "[-+]",
            "[a-]",
            "[[:alpha:]_][[:alnum:]_]\\{0,3\\}",
            "a\\.b\\/c",
            "a\\|bc",
            "a+(b|c",
        ] {
            assert!(plain(text, false).is_some(), "{text}");
        }
        for text in [
            "^([0-9.]+) - [^ ]+ \\[([^]]+)\\] \"([A-Z]+) ([^ ]+).*\" ([0-9]+) .*",
            "(a|b)c?",
            "a{2,3}",
            "x(y(z)*)+",
        ] {
            assert!(plain(text, true).is_some(), "{text}");
        }
        for text in [
            "",
            "*a",
            "a**",
            "^*a",
            "a^b",
            "a$b",
            "a\\b",
            "\\<a",
            "\\w",
            "\\s*",
            "\\'",
            "\\`",
            "\\1",
            "[A-z]",
            "[ -~]",
            "[b-a]",
            "[[.a.]]",
            "[[=a=]]",
            "[\\n]",
            "[a",
            "[[:word:]]",
            "a\\{300\\}",
            "a\\{,3\\}",
            "^a\\|b",
            "a\\|",
            "\\(\\)",
            "\\(^a\\)",
            "\\(a",
            "a\\)",
            "\u{e9}",
            "a\nb",
        ] {
            assert_eq!(plain(text, false), None, "{text}");
        }
        for text in ["a|", "(a$|b)", "a+*", "a{", "()", "(a", "a)", "^(a|b)|c", "(|a)"] {
            assert_eq!(plain(text, true), None, "{text}");
        }
    }

    #[test]
    fn sets_and_ranges_are_reported() {
        assert_eq!(plain("ab", false), Some(Plain { sets: false, ranges: false }));
        assert_eq!(plain("[^b]", false), Some(Plain { sets: true, ranges: false }));
        assert_eq!(plain("[a-c-]", false), Some(Plain { sets: true, ranges: true }));
    }
}
