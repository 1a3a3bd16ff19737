//! Matches the query's paths against the position in the document.
//!
//! All paths together form a nondeterministic automaton. Every open container has a set of
//! [`State`]s. A state is a path and the number of its steps that have matched. Entering a member
//! or element advances the states whose next step matches its key or index. If a path has matched
//! completely, the value is printed; if no state is left, it is skipped; otherwise it is searched.

use std::ops::Range;

use crate::format::{Format, push_index};
use crate::input::Stop;
use crate::path::{Choice, MAX_PATH_BYTES, Query};

/// The result of matching a value against the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// No path matches the value, and none can match inside it.
    Skip,
    /// No path matches the value, but one may match inside it.
    Search,
    /// A path matches the value, or a container around it.
    Print,
}

/// An array or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    Object,
}

impl Kind {
    /// Returns an empty container of this kind, as JSON.
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
    /// Number of members or elements so far, including the current one.
    pub(crate) count: u64,
    /// The container's states, as a range of `PathMatcher::states`.
    states: Range<usize>,
    /// Length of the container's path within `PathMatcher::path`, in bytes.
    path: usize,
}

/// The index of a path in the query, and the number of steps of that path that have matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    path: usize,
    steps: usize,
}

/// A member's key or an element's index.
#[derive(Clone, Copy)]
enum Child<'a> {
    Key(&'a str),
    Index(u64),
}

/// The position in the document: the open containers with their states.
pub(crate) struct PathMatcher<'a> {
    query: &'a Query,
    format: Format,
    open: Vec<Open>,
    /// The states of all open containers, outermost first, and then those of the current value.
    states: Vec<State>,
    /// The path of the current value as the format prints it; while a value is skipped, the path of
    /// its container. Empty for a root without a name, and always if the format prints no paths.
    path: Vec<u8>,
}

impl<'a> PathMatcher<'a> {
    pub(crate) fn new(query: &'a Query, format: Format) -> Self {
        Self { query, format, open: Vec::new(), states: Vec::new(), path: Vec::new() }
    }

    /// Returns the kind of the innermost open container, or `None` at the top level.
    #[inline]
    pub(crate) fn innermost(&self) -> Option<Kind> {
        self.open.last().map(|open| open.kind)
    }

    /// Returns the path of the current value, as printed.
    pub(crate) fn path(&self) -> &[u8] {
        if self.path.is_empty() { b"." } else { &self.path }
    }

    /// Moves to the root of the next JSON text, and returns how it matches.
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

    /// Enters the current value: a container of the given kind, for which matching returned
    /// `matched`.
    pub(crate) fn open(&mut self, kind: Kind, matched: Match) {
        let begin = self.open.last().map_or(0, |parent| parent.states.end);
        let states = begin..self.states.len();
        self.open.push(Open { kind, matched, count: 0, states, path: self.path.len() });
    }

    /// Leaves the innermost container and returns it, or returns `None` at the top level.
    pub(crate) fn close(&mut self) -> Option<Open> {
        let closed = self.open.pop()?;
        self.path.truncate(closed.path);
        Some(closed)
    }

    /// Moves to the next member of the innermost container, and returns how it matches. Fails if
    /// the member's path is too long, unless the member is skipped or the format prints no paths.
    pub(crate) fn member(&mut self, key: &str) -> Result<Match, Stop> {
        self.count();
        let matched = self.enter(Child::Key(key));
        if matched != Match::Skip && self.format != Format::JsonLines {
            self.format.push_key(&mut self.path, key);
            self.check_path()?;
        }
        Ok(matched)
    }

    /// Moves to the next element of the innermost container, and returns how it matches. Fails in
    /// the same case as [`Self::member`].
    pub(crate) fn element(&mut self) -> Result<Match, Stop> {
        let index = self.count();
        let matched = self.enter(Child::Index(index));
        if matched != Match::Skip && self.format != Format::JsonLines {
            push_index(&mut self.path, index);
            self.check_path()?;
        }
        Ok(matched)
    }

    /// Counts a member or element of the innermost container, and returns the number of those
    /// before it.
    fn count(&mut self) -> u64 {
        let Some(parent) = self.open.last_mut() else { return 0 };
        parent.count += 1;
        parent.count - 1
    }

    /// Leaves the previous member or element, computes the states of the given one, and returns how
    /// it matches.
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

    /// Adds a state unless it is among the states from index `from`: several states can advance to
    /// the same one.
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
