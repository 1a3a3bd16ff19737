//! Finding what is asked for, in one pass.
//!
//! Paths are an automaton without a single state: for every open container there is a set of
//! `State`s, each a path and how many of its steps have led there. A member or element takes those
//! that its key or place lets through; with none left it is passed over, and with one at its end
//! it is printed. A match inside of what is printed is part of it and not printed again, since to
//! print it apart would mean to keep it until the whole has been written.

use std::io::{Read, Write};
use std::ops::Range;

use crate::error::FilterError;
use crate::format::{Format, Printed, push_index};
use crate::output::Output;
use crate::path::{Choice, Query};
use crate::scan::{Kind, Scalar, Scanner, Token, Value};
use crate::text::{Escaped, Sink};

/// Bytes of a path that is printed, and of a key in it. More is an error rather than more memory.
pub const LONGEST_PATH: usize = 1024 * 1024;

/// Prints what `query` asks for. `input` is read in large pieces and needs no buffer of its own,
/// nor does `output`.
///
/// # Errors
/// When the input is no sequence of JSON texts, goes beyond a limit, or input or output fail. The
/// lines that were complete have been written then.
pub fn filter(
    input: &mut dyn Read,
    output: &mut dyn Write,
    query: &Query,
    format: Format,
) -> Result<(), FilterError> {
    let longest_key = if format == Format::JsonLines { query.longest_key() } else { LONGEST_PATH };
    let mut filter = Filter {
        scanner: Scanner::new(input),
        output: Output::new(output),
        query,
        format,
        open: Vec::new(),
        states: Vec::new(),
        path: Vec::new(),
        key: Key { text: Vec::new(), most: longest_key, whole: true },
        fate: Fate::Skip,
    };
    let result = filter.run();
    match (result, filter.output.flush()) {
        // The output's own failure, if there is one, has been met before.
        (Err(error), _) | (Ok(()), Err(error)) => Err(error),
        (Ok(()), Ok(())) => Ok(()),
    }
}

/// A path, and how many of its steps have been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    path: usize,
    steps: usize,
}

/// What becomes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Nothing in it is wanted.
    Skip,
    /// Something in it may be.
    Search,
    /// All of it is.
    Print,
}

/// An open container.
struct Open {
    kind: Kind,
    fate: Fate,
    /// Members or elements so far.
    count: u64,
    /// Those of `Filter::states` that have reached it.
    states: Range<usize>,
    /// How much of `Filter::path` leads to it, in bytes.
    path: usize,
}

/// Which member or element.
#[derive(Clone, Copy)]
enum Child<'a> {
    /// None where the key is longer than any that is asked for.
    Key(Option<&'a [u8]>),
    Index(u64),
}

struct Filter<'a> {
    scanner: Scanner<'a>,
    output: Output<'a>,
    query: &'a Query,
    format: Format,
    open: Vec<Open>,
    /// Those of the open containers, one set after the other.
    states: Vec<State>,
    /// The path to the current value, if the format prints it.
    path: Vec<u8>,
    /// The key read last.
    key: Key,
    /// What becomes of the value after that key.
    fate: Fate,
}

impl Filter<'_> {
    fn run(&mut self) -> Result<(), FilterError> {
        loop {
            match self.scanner.next()? {
                Token::End => return Ok(()),
                Token::Key => self.member()?,
                Token::Value(value) => self.value(value)?,
                Token::Close(_) => self.close()?,
            }
            if self.open.is_empty() && self.scanner.source.is_drained() {
                // The next text may be long in coming; what is found does not wait for it.
                self.output.flush()?;
            }
        }
    }

    fn member(&mut self) -> Result<(), FilterError> {
        self.key.text.clear();
        self.key.whole = true;
        self.scanner.key(&mut self.key)?;
        let key = std::mem::take(&mut self.key.text);
        self.fate = self.enter(Child::Key(self.key.whole.then_some(&key)));
        if self.fate != Fate::Skip && self.format != Format::JsonLines {
            if !self.key.whole {
                return Err(self.path_too_long());
            }
            self.format.push_key(&mut self.path, &String::from_utf8_lossy(&key));
            self.check_path()?;
        }
        self.key.text = key;
        Ok(())
    }

    fn value(&mut self, value: Value) -> Result<(), FilterError> {
        let fate = match self.open.last_mut() {
            None => self.begin_text(),
            Some(object) if object.kind == Kind::Object => {
                object.count += 1;
                self.fate
            }
            Some(array) => {
                let index = array.count;
                array.count += 1;
                self.element(index)?
            }
        };
        match (fate, value) {
            (Fate::Search, Value::Container(kind)) => self.open(kind, fate),
            (Fate::Skip | Fate::Search, _) => self.scanner.skip(value)?,
            (Fate::Print, _) if self.format == Format::JsonLines => self.copy(value)?,
            (Fate::Print, Value::Scalar(scalar)) => self.print(scalar)?,
            (Fate::Print, Value::Container(kind)) => {
                if self.format == Format::Assignments {
                    self.print_empty(kind)?;
                }
                self.open(kind, fate);
            }
        }
        Ok(())
    }

    fn begin_text(&mut self) -> Fate {
        self.states.clear();
        self.path.clear();
        self.path.extend_from_slice(self.format.root().as_bytes());
        for (path, steps) in self.query.paths.iter().enumerate() {
            if steps.is_empty() {
                return Fate::Print;
            }
            self.states.push(State { path, steps: 0 });
        }
        Fate::Search
    }

    fn element(&mut self, index: u64) -> Result<Fate, FilterError> {
        let fate = self.enter(Child::Index(index));
        if fate != Fate::Skip && self.format != Format::JsonLines {
            push_index(&mut self.path, index);
            self.check_path()?;
        }
        Ok(fate)
    }

    /// Leaves the member or element before, and makes the step to this one.
    fn enter(&mut self, child: Child) -> Fate {
        let Some(parent) = self.open.last() else { return Fate::Skip };
        self.path.truncate(parent.path);
        if parent.fate == Fate::Print {
            return Fate::Print;
        }
        let (begin, end) = (parent.states.start, parent.states.end);
        self.states.truncate(end);
        for at in begin..end {
            let State { path, steps } = self.states[at];
            let all = &self.query.paths[path];
            if is_chosen(&all[steps].choice, child) {
                if steps + 1 == all.len() {
                    return Fate::Print;
                }
                self.reach(end, State { path, steps: steps + 1 });
            }
            if all[steps].descends {
                self.reach(end, State { path, steps });
            }
        }
        if self.states.len() > end { Fate::Search } else { Fate::Skip }
    }

    /// Two ways can lead to the same state.
    fn reach(&mut self, from: usize, state: State) {
        if !self.states[from..].contains(&state) {
            self.states.push(state);
        }
    }

    fn open(&mut self, kind: Kind, fate: Fate) {
        let begin = self.open.last().map_or(0, |parent| parent.states.end);
        let states = begin..self.states.len();
        self.open.push(Open { kind, fate, count: 0, states, path: self.path.len() });
    }

    fn close(&mut self) -> Result<(), FilterError> {
        let Some(closed) = self.open.pop() else { return Ok(()) };
        let is_empty_and_wanted = closed.fate == Fate::Print && closed.count == 0;
        if is_empty_and_wanted && self.format == Format::PathValue {
            self.print_empty(closed.kind)?;
        }
        Ok(())
    }

    /// A line for a container without what is in it.
    fn print_empty(&mut self, kind: Kind) -> Result<(), FilterError> {
        self.begin_line()?;
        self.output.push(&[kind.opening(), kind.closing()])?;
        self.end_line()
    }

    fn print(&mut self, scalar: Scalar) -> Result<(), FilterError> {
        self.begin_line()?;
        self.print_scalar(scalar)?;
        self.end_line()
    }

    fn begin_line(&mut self) -> Result<(), FilterError> {
        let path = if self.path.is_empty() { b"." } else { self.path.as_slice() };
        self.output.push(path)?;
        self.output.push(if self.format == Format::Assignments { b" = " } else { b"\t" })
    }

    fn end_line(&mut self) -> Result<(), FilterError> {
        self.output.end_line(if self.format == Format::Assignments { b";\n" } else { b"\n" })
    }

    fn print_scalar(&mut self, scalar: Scalar) -> Result<(), FilterError> {
        let quote: &[u8] = match scalar {
            Scalar::String if self.format != Format::PathValue => b"\"",
            _ => b"",
        };
        self.output.push(quote)?;
        let mut printed = Printed { output: &mut self.output, format: self.format };
        self.scanner.scalar(scalar, &mut printed)?;
        self.output.push(quote)
    }

    /// One line with the whole value, without white space.
    fn copy(&mut self, value: Value) -> Result<(), FilterError> {
        let outside = self.scanner.depth() - usize::from(matches!(value, Value::Container(_)));
        let mut token = Token::Value(value);
        let mut separator: &[u8] = b"";
        loop {
            if !matches!(token, Token::Close(_)) {
                self.output.push(separator)?;
            }
            separator = b",";
            match token {
                Token::Value(Value::Scalar(scalar)) => self.print_scalar(scalar)?,
                Token::Value(Value::Container(kind)) => {
                    self.output.push(&[kind.opening()])?;
                    separator = b"";
                }
                Token::Key => {
                    self.copy_key()?;
                    separator = b"";
                }
                Token::Close(kind) => self.output.push(&[kind.closing()])?,
                Token::End => {}
            }
            if self.scanner.depth() == outside {
                return self.end_line();
            }
            token = self.scanner.next()?;
        }
    }

    fn copy_key(&mut self) -> Result<(), FilterError> {
        self.output.push(b"\"")?;
        self.scanner.key(&mut Printed { output: &mut self.output, format: self.format })?;
        self.output.push(b"\":")
    }

    fn check_path(&self) -> Result<(), FilterError> {
        if self.path.len() > LONGEST_PATH { Err(self.path_too_long()) } else { Ok(()) }
    }

    #[cold]
    fn path_too_long(&self) -> FilterError {
        self.scanner.source.error(format!(
            "the path to this value is longer than {LONGEST_PATH} bytes: JSON lines print no paths"
        ))
    }
}

fn is_chosen(choice: &Choice, child: Child) -> bool {
    match (choice, child) {
        (Choice::Key(wanted), Child::Key(Some(key))) => wanted.as_bytes() == key,
        (Choice::Index(wanted), Child::Index(index)) => *wanted == index,
        (Choice::AnyMember, Child::Key(_)) | (Choice::Any, _) => true,
        _ => false,
    }
}

/// Keeps a key, as far as it can matter.
struct Key {
    text: Vec<u8>,
    most: usize,
    whole: bool,
}

impl Sink for Key {
    #[inline]
    fn plain(&mut self, text: &[u8]) -> Result<(), FilterError> {
        self.whole &= self.text.len() + text.len() <= self.most;
        if self.whole {
            self.text.extend_from_slice(text);
        }
        Ok(())
    }

    fn escaped(&mut self, escaped: Escaped) -> Result<(), FilterError> {
        self.plain(escaped.character().encode_utf8(&mut [0; 4]).as_bytes())
    }
}
