//! The query language: paths from the root to values.
//!
//! ```text
//! path = "." | step { step }       the whole value, or steps from it; the first begins with "."
//! step = ".name" | ".*" | '."key"' | "[" inside "]" | ".[" inside "]"
//!      | ".." (name | * | "key" | [inside])
//! inside = number | '"key"' |      an element, a member or, if empty, each of them
//! ```
//!
//! A step after `..` matches at any depth.

use struson::reader::{JsonReader as _, ReaderError, SyntaxErrorKind};

use crate::input::{parser, problem};

/// Maximum length in bytes of the path of a printed or searched value, in formats that print paths.
/// Longer paths are an error, to bound memory.
pub const MAX_PATH_BYTES: usize = 1024 * 1024;

/// A set of paths, all matched in the same pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub(crate) paths: Vec<Vec<Step>>,
}

/// A step from a container to members or elements in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// Whether the step matches at any depth, not only directly inside the container.
    pub(crate) descends: bool,
    pub(crate) choice: Choice,
}

/// The members or elements of a container that a step matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All members with the given key.
    Key(String),
    /// The element with the given index, from 0.
    Index(u64),
    /// Every member.
    AnyMember,
    /// Every element or member.
    Any,
}

/// A syntax error in a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}\n  {text}\n  {}^", .text[..*.place].chars().map(|_| ' ').collect::<String>())]
pub struct PathError {
    /// The problem, worded for users.
    pub problem: String,
    /// The path as given.
    pub text: String,
    /// Byte offset of the problem in the path.
    pub place: usize,
}

impl Query {
    /// Parses paths, which together form a query. Without paths, the query matches nothing.
    ///
    /// # Errors
    /// Returns an error for the first path that has a syntax error.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, PathError> {
        let paths = texts.into_iter().map(|text| Parser { text, at: 0 }.path());
        Ok(Self { paths: paths.collect::<Result<_, _>>()? })
    }
}

/// Returns whether a character may be in a key without quotes.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@')
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn path(mut self) -> Result<Vec<Step>, PathError> {
        let mut steps = Vec::new();
        if self.text == "." {
            return Ok(steps);
        }
        if !self.text.starts_with('.') {
            return Err(self.error("a path begins with a dot"));
        }
        while self.at < self.text.len() {
            steps.push(self.step()?);
        }
        Ok(steps)
    }

    fn step(&mut self) -> Result<Step, PathError> {
        let dotted = self.take('.');
        let descends = dotted && self.take('.');
        let choice = if self.take('[') {
            self.inside_brackets()?
        } else if !dotted {
            return Err(
                self.error("a step begins with `.` or `[`; other keys need quotes: .[\"…\"]")
            );
        } else if self.take('*') {
            Choice::AnyMember
        } else if self.rest().starts_with('"') {
            Choice::Key(self.quoted()?)
        } else {
            Choice::Key(self.bare()?)
        };
        Ok(Step { descends, choice })
    }

    fn inside_brackets(&mut self) -> Result<Choice, PathError> {
        let choice = match self.rest().chars().next() {
            Some(']') => Choice::Any,
            Some('"') => Choice::Key(self.quoted()?),
            Some('0'..='9') => self.index()?,
            Some('-') => {
                let problem =
                    "an index counts from 0: the length of an array is unknown in a single pass";
                return Err(self.error(problem));
            }
            _ => return Err(self.error("expected `]`, an index or a quoted key")),
        };
        if self.take(']') { Ok(choice) } else { Err(self.error("expected `]`")) }
    }

    fn index(&mut self) -> Result<Choice, PathError> {
        let rest = self.rest();
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let index = rest[..digits].parse();
        let index = index.map_err(|_| self.error("the index is too large"))?;
        self.at += digits;
        Ok(Choice::Index(index))
    }

    fn bare(&mut self) -> Result<String, PathError> {
        let rest = self.rest();
        let length = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
        if length == 0 {
            let problem = "expected a key, `*`, `[…]` or a quoted key; keys with characters other than \
                           letters, digits, `_`, `-`, `$` and `@` need quotes";
            return Err(self.error(problem));
        }
        let key = rest[..length].to_owned();
        self.at += length;
        Ok(key)
    }

    /// Parses a key in double quotes, with JSON's escapes, and returns it without quotes.
    fn quoted(&mut self) -> Result<String, PathError> {
        let mut json = parser(self.rest().as_bytes());
        let key = json.next_string();
        let read = json.current_position(false).data_pos.unwrap_or_default();
        let place = self.at + usize::try_from(read).unwrap_or(usize::MAX);
        match key {
            Ok(key) => {
                self.at = place;
                Ok(key)
            }
            Err(ReaderError::SyntaxError(error)) => match error.kind {
                SyntaxErrorKind::IncompleteDocument => {
                    Err(self.error_at(self.text.len(), "missing closing quote"))
                }
                kind => Err(self.error_at(place, &problem(kind))),
            },
            Err(error) => Err(self.error(&error.to_string())),
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn error(&self, problem: &str) -> PathError {
        self.error_at(self.at, problem)
    }

    fn error_at(&self, place: usize, problem: &str) -> PathError {
        PathError { problem: problem.to_owned(), text: self.text.to_owned(), place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<Step> {
        Query::parse([text]).expect("a path").paths.remove(0)
    }

    fn step(choice: Choice) -> Step {
        Step { descends: false, choice }
    }

    fn key(name: &str) -> Step {
        step(Choice::Key(name.to_owned()))
    }

    #[test]
    fn every_form_of_step() {
        assert_eq!(steps("."), []);
        assert_eq!(steps(".a.b-c.$d"), [key("a"), key("b-c"), key("$d")]);
        assert_eq!(steps(".é.日本"), [key("é"), key("日本")]);
        assert_eq!(steps(".[3][0].[1]"), [3, 0, 1].map(|n| step(Choice::Index(n))));
        assert_eq!(steps(".[].a[]"), [step(Choice::Any), key("a"), step(Choice::Any)]);
        assert_eq!(steps(".*.a"), [step(Choice::AnyMember), key("a")]);
        assert_eq!(steps(r#"."a b".c["d.e"].["f"]"#), ["a b", "c", "d.e", "f"].map(key));
        assert_eq!(steps(r#".["\"\u0041\\]"]"#), [key("\"A\\]")]);
        let below = |choice| Step { descends: true, choice };
        assert_eq!(steps("..a"), [below(Choice::Key("a".to_owned()))]);
        assert_eq!(
            steps(".a..[0]..*"),
            [key("a"), below(Choice::Index(0)), below(Choice::AnyMember)]
        );
    }

    #[test]
    fn errors_point_at_the_place() {
        let places = [
            ("a", 0),
            (".a.", 3),
            ("..", 2),
            ("...a", 2),
            (".a b", 2),
            (".a[", 3),
            (".a[1", 4),
            (".a[-1]", 3),
            (".a[1:2]", 4),
            (".a[\"b]", 6),
            (".a[\"\\x\"]", 4),
            (".a[]b", 4),
            (".é.|", 4),
            (".[99999999999999999999]", 2),
            (".a?", 2),
            (".a[x]", 3),
            (".\"a\tb\"", 3),
        ];
        for (text, place) in places {
            let error = Query::parse([text]).expect_err(text);
            assert_eq!(error.place, place, "{error}");
        }
        let error = Query::parse([".é.|"]).expect_err("no key").to_string();
        assert!(error.ends_with("\n  .é.|\n     ^"), "{error}");
    }
}
