//! The way from the root to the current value, and which paths go along it.
//!
//! Paths are an automaton without a single state: for every open container there is a set of
//! `State`s, each a path and how many of its steps have led there. A member or element takes those
//! that its key or place lets through; with none left it is passed over, and with one at its end
//! it is printed.

use std::ops::Range;

use crate::format::{Format, push_index};
use crate::input::Stop;
use crate::path::{Choice, MAX_PATH_BYTES, Query};

/// What becomes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// Nothing in it is wanted.
    Skip,
    /// Something in it may be.
    Search,
    /// All of it is.
    Print,
}

/// What kind of container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Object,
}

impl Kind {
    /// The brackets around nothing.
    pub(crate) fn empty(self) -> &'static [u8] {
        match self {
            Self::Array => b"[]",
            Self::Object => b"{}",
        }
    }
}

/// An open container.
pub(crate) struct Open {
    pub(crate) kind: Kind,
    pub(crate) matched: Match,
    /// Members or elements so far.
    pub(crate) count: u64,
    /// Those of `PathMatcher::states` that have reached it.
    states: Range<usize>,
    /// How much of `PathMatcher::path` leads to it, in bytes.
    path: usize,
}

/// A path, and how many of its steps have been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    path: usize,
    steps: usize,
}

/// Which member or element.
#[derive(Clone, Copy)]
enum Child<'a> {
    Key(&'a str),
    Index(u64),
}

/// Open containers, and the path to the current value.
pub(crate) struct PathMatcher<'a> {
    query: &'a Query,
    format: Format,
    open: Vec<Open>,
    /// Those of the open containers, one set after the other.
    states: Vec<State>,
    /// The path to the current value, if the format prints it.
    path: Vec<u8>,
}

impl<'a> PathMatcher<'a> {
    pub(crate) fn new(query: &'a Query, format: Format) -> Self {
        Self { query, format, open: Vec::new(), states: Vec::new(), path: Vec::new() }
    }

    /// The innermost container.
    #[inline]
    pub(crate) fn innermost(&self) -> Option<Kind> {
        self.open.last().map(|open| open.kind)
    }

    /// The path to the current value.
    pub(crate) fn path(&self) -> &[u8] {
        if self.path.is_empty() { b"." } else { &self.path }
    }

    /// Goes to the root.
    pub(crate) fn begin_text(&mut self) -> Match {
        self.states.clear();
        self.path.clear();
        self.path.extend_from_slice(self.format.root().as_bytes());
        for (path, steps) in self.query.paths.iter().enumerate() {
            if steps.is_empty() {
                return Match::Print;
            }
            self.states.push(State { path, steps: 0 });
        }
        Match::Search
    }

    /// Goes into a container.
    pub(crate) fn open(&mut self, kind: Kind, matched: Match) {
        let begin = self.open.last().map_or(0, |parent| parent.states.end);
        let states = begin..self.states.len();
        self.open.push(Open { kind, matched, count: 0, states, path: self.path.len() });
    }

    /// Leaves the innermost container.
    pub(crate) fn close(&mut self) -> Option<Open> {
        let closed = self.open.pop()?;
        self.path.truncate(closed.path);
        Some(closed)
    }

    /// Goes to the next member of the innermost container.
    pub(crate) fn member(&mut self, key: &str) -> Result<Match, Stop> {
        self.count();
        let matched = self.enter(Child::Key(key));
        if matched != Match::Skip && self.format != Format::JsonLines {
            self.format.push_key(&mut self.path, key);
            self.check_path()?;
        }
        Ok(matched)
    }

    /// Goes to the next element of the innermost container.
    pub(crate) fn element(&mut self) -> Result<Match, Stop> {
        let index = self.count();
        let matched = self.enter(Child::Index(index));
        if matched != Match::Skip && self.format != Format::JsonLines {
            push_index(&mut self.path, index);
            self.check_path()?;
        }
        Ok(matched)
    }

    /// Members or elements before this one.
    fn count(&mut self) -> u64 {
        let Some(parent) = self.open.last_mut() else { return 0 };
        parent.count += 1;
        parent.count - 1
    }

    /// Leaves the member or element before, and makes the step to this one.
    fn enter(&mut self, child: Child) -> Match {
        let Some(parent) = self.open.last() else { return Match::Skip };
        self.path.truncate(parent.path);
        if parent.matched == Match::Print {
            return Match::Print;
        }
        let (begin, end) = (parent.states.start, parent.states.end);
        self.states.truncate(end);
        for at in begin..end {
            let State { path, steps } = self.states[at];
            let all = &self.query.paths[path];
            if is_chosen(&all[steps].choice, child) {
                if steps + 1 == all.len() {
                    return Match::Print;
                }
                self.reach(end, State { path, steps: steps + 1 });
            }
            if all[steps].descends {
                self.reach(end, State { path, steps });
            }
        }
        if self.states.len() > end { Match::Search } else { Match::Skip }
    }

    /// Two ways can lead to the same state.
    fn reach(&mut self, from: usize, state: State) {
        if !self.states[from..].contains(&state) {
            self.states.push(state);
        }
    }

    fn check_path(&self) -> Result<(), Stop> {
        if self.path.len() > MAX_PATH_BYTES {
            Err(Stop::PathTooLong(MAX_PATH_BYTES))
        } else {
            Ok(())
        }
    }
}

fn is_chosen(choice: &Choice, child: Child) -> bool {
    match (choice, child) {
        (Choice::Key(wanted), Child::Key(key)) => wanted == key,
        (Choice::Index(wanted), Child::Index(index)) => *wanted == index,
        (Choice::AnyMember, Child::Key(_)) | (Choice::Any, _) => true,
        _ => false,
    }
}
