//! Inserts prefixes before command names, and clocks before lists of pipelines.

use std::ops::Range;

use brush_parser::ast::{
    AndOrList, Command, CommandPrefixOrSuffixItem as Item, SimpleCommand, SourceLocation as _,
};

use super::walk::Found;
use super::{Dialect, MAX_UNTIMED_PIPELINES, Position};

/// Insertions into a script, which are collected and then applied together.
#[derive(Debug)]
pub(super) struct Edits<'t> {
    text: &'t str,
    /// Byte offset of each character, followed by the length of the script.
    offsets: Vec<usize>,
    dialect: Dialect,
    insertions: Vec<(usize, String)>,
    slots: usize,
    untimed: usize,
    /// The slot that pipelines outside loops and functions share, except for the first
    /// `MAX_UNTIMED_PIPELINES`, which have none. `None` until a pipeline needs the slot.
    shared_slot: Option<usize>,
}

impl<'t> Edits<'t> {
    pub(super) fn new(text: &'t str, dialect: Dialect) -> Self {
        let offsets = text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect();
        let insertions = Vec::new();
        Self { text, offsets, dialect, insertions, slots: 0, untimed: 0, shared_slot: None }
    }

    /// Inserts prefixes before the stages of the given runs, and a clock before the list that
    /// contains their pipeline if it needs one. Returns the line, from 1, in which each run begins.
    /// Returns `None` and inserts nothing if there are no runs, or if the pipeline cannot be
    /// changed.
    pub(super) fn add(&mut self, found: &Found<'_>, runs: &[Range<usize>]) -> Option<Vec<usize>> {
        let names: Vec<Vec<usize>> = { runs.iter() }
            .map(|run| found.pipeline.seq[run.clone()].iter().map(|it| self.name(it)).collect())
            .collect::<Option<_>>()?;
        let (first, last) = (names.first()?.first()?, names.last()?.last()?);
        let is_timed = found.is_repeated || self.untimed >= MAX_UNTIMED_PIPELINES;
        let slot = if is_timed {
            let start = self.start(found.list).filter(|start| start <= first)?;
            let line = self.text[*last..].find('\n').map_or(self.text.len(), |end| last + end);
            if asks_for_status(&self.text[start..line]) {
                return None;
            }
            let slot = self.slot(found.is_repeated);
            self.insertions.push((start, self.dialect.tick(slot)));
            Some(slot)
        } else {
            self.untimed += 1;
            None
        };
        let options = self.dialect.needs_options(self.text);
        for run in &names {
            for (index, &place) in run.iter().enumerate() {
                let prefix = self.dialect.prefix(Position::of(index, run.len()), slot, options);
                self.insertions.push((place, prefix));
            }
        }
        Some(names.iter().map(|run| self.line(run[0])).collect())
    }

    fn slot(&mut self, is_own: bool) -> usize {
        if let (false, Some(shared)) = (is_own, self.shared_slot) {
            return shared;
        }
        self.slots += 1;
        if !is_own {
            self.shared_slot = Some(self.slots);
        }
        self.slots
    }

    fn line(&self, place: usize) -> usize {
        self.text[..place].matches('\n').count() + 1
    }

    /// Returns the byte offset of a command's name, or `None` if it cannot be located.
    fn name(&self, command: &Command) -> Option<usize> {
        let Command::Simple(simple) = command else { return None };
        let name = simple.word_or_name.as_ref()?;
        let place = *self.offsets.get(name.location()?.start.index)?;
        // The parser may report a wrong position.
        let (before, after) = self.text.split_at(place);
        let after = after.strip_prefix(name.value.as_str())?;
        let is_separate = |c: char| c.is_whitespace() || ";|&(){}<>!`".contains(c);
        let is_whole = before.chars().next_back().is_none_or(is_separate)
            && after.chars().next().is_none_or(|c| is_separate(c) || c == '\\');
        is_whole.then_some(place)
    }

    /// Returns the byte offset at which a list of pipelines begins, or `None` if it cannot be
    /// located.
    fn start(&self, list: &AndOrList) -> Option<usize> {
        let first = &list.first;
        let command = first.seq.first()?;
        if matches!(command, Command::Simple(simple) if begins_with_redirection(simple)) {
            return None;
        }
        let place = *self.offsets.get(first.location()?.start.index)?;
        if first.bang && first.timed.is_none() {
            // The parser does not report the position of `!`.
            return self.text[..place].trim_end().strip_suffix('!').map(str::len);
        }
        Some(place)
    }

    /// Returns the script with all insertions, and the number of slots.
    pub(super) fn apply(mut self) -> (String, usize) {
        // The sort is stable: a clock stays before the prefix inserted at the same offset.
        self.insertions.sort_by_key(|(place, _)| *place);
        let mut out = String::with_capacity(self.text.len() * 2);
        let mut done = 0;
        for (place, insertion) in &self.insertions {
            out.push_str(&self.text[done..*place]);
            out.push_str(insertion);
            done = *place;
        }
        (out + &self.text[done..], self.slots)
    }
}

/// Returns whether a command begins with a redirection, whose position the parser does not report.
fn begins_with_redirection(simple: &SimpleCommand) -> bool {
    let first = simple.prefix.as_ref().and_then(|prefix| prefix.0.first());
    matches!(first, Some(Item::IoRedirect(_)))
}

/// Returns whether a part of a script uses the exit code of the previous command, which a clock
/// would change.
fn asks_for_status(text: &str) -> bool {
    text.contains("$?") || text.contains("${?")
}
