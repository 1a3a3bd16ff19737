//! Merges sorted outputs line by line.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::ops::ControlFlow::{self, Break, Continue};
use std::ops::Range;

use memchr::memchr;

use super::counted;
use super::error::GroupError;
use super::order::{Equal, Kind, Located};
use super::processes::BLOCK_BYTES;
use super::sink::OutputSink;

/// A sorted output and its current line.
struct Run<R> {
    input: R,
    buffer: Vec<u8>,
    /// Offset of the current line in the buffer.
    start: usize,
    /// Offset of the end of the current line, after its separator.
    end: usize,
    /// Number of bytes at the start of the buffer that have been read from `input`.
    filled: usize,
    /// Number of occurrences of the current line, if lines are counted.
    count: u64,
    /// Offset in the buffer at which the text of the current line begins, after its count.
    text: usize,
    /// The prefix of the text; see [`Kind::prefix`].
    prefix: u64,
    /// The range of the first key in the text.
    key: Range<usize>,
}

impl<R: Read> Run<R> {
    fn new(input: R) -> Self {
        let buffer = vec![0; BLOCK_BYTES];
        let (start, end, filled, count, text, prefix) = (0, 0, 0, 0, 0, 0);
        Self { input, buffer, start, end, filled, count, text, prefix, key: 0..0 }
    }

    /// Advances to the next line. Returns `false` at the end of the output.
    fn next(&mut self, kind: Kind<'_>) -> io::Result<bool> {
        let separator = kind.order.separator;
        self.start = self.end;
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr(separator, &self.buffer[searched..self.filled]) {
                self.end = searched + at + 1;
                self.examine(kind)?;
                return Ok(true);
            }
            searched = self.filled;
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.filled, 0);
                searched -= self.start;
                self.filled -= self.start;
                self.start = 0;
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) if self.filled == 0 => {
                    self.end = 0;
                    return Ok(false);
                }
                Ok(0) => {
                    // A complete output ends in a separator.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Finds the count of the current line, and what is needed to compare it.
    fn examine(&mut self, kind: Kind<'_>) -> io::Result<()> {
        self.text = self.start;
        if kind.equal == Equal::Counted {
            let line = &self.buffer[self.start..self.end];
            let (count, text) = counted::read(line).ok_or(io::ErrorKind::InvalidData)?;
            self.count = count;
            self.text = self.end - text.len();
        }
        let text = self.text();
        (self.prefix, self.key) = (kind.prefix(text), kind.first_key(text));
        Ok(())
    }

    /// Returns the bytes to compare: the line without its count and its separator.
    fn text(&self) -> &[u8] {
        &self.buffer[self.text..self.end - 1]
    }

    /// Compares the current line with that of another run.
    fn compare(&self, other: &Self, kind: Kind<'_>) -> Ordering {
        kind.directed(self.prefix.cmp(&other.prefix))
            .then_with(|| kind.compare_located(self.prefix, self.located(), other.located()))
    }

    fn located(&self) -> Located<'_> {
        let line = self.text();
        Located { line, key: &line[self.key.clone()] }
    }

    fn line(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }
}

/// Merges `inputs`, which must be sorted as `kind` says, and writes the first `first` lines, or all
/// if it is `None`. Equal lines are in the order of their inputs, and are merged into one unless
/// `kind` keeps all. Returns `Break` if the reader wants no more output.
///
/// # Errors
/// Returns an error in these cases:
///
/// - An input cannot be read, or does not end with a separator.
/// - A line has no count, although `kind` requires one.
/// - Writing fails.
pub(super) fn merge<R: Read>(
    inputs: Vec<R>,
    kind: Kind<'_>,
    first: Option<u64>,
    output: &mut impl OutputSink,
) -> Result<ControlFlow<()>, GroupError> {
    let equal = kind.equal;
    let mut runs: Vec<Run<R>> = inputs.into_iter().map(Run::new).collect();
    // The runs that still have a line, in descending order of their lines.
    let mut waiting: Vec<usize> = Vec::new();
    for index in (0..runs.len()).rev() {
        if runs[index].next(kind)? {
            insert(&runs, &mut waiting, index, kind);
        }
    }
    let mut merged = Merged { block: Vec::new(), last: None, count: 0, equal, left: first };
    while let Some(&index) = waiting.last() {
        if merged.left == Some(0) {
            break;
        }
        merged.line(&runs[index]);
        if merged.block.len() >= BLOCK_BYTES && merged.flush(output)?.is_break() {
            return Ok(Break(()));
        }
        if !runs[index].next(kind)? {
            waiting.pop();
        } else if waiting.len() > 1 {
            waiting.pop();
            insert(&runs, &mut waiting, index, kind);
        }
    }
    merged.end_counted();
    merged.flush(output)
}

/// Inserts the run at `index` into `waiting`, which is in descending order of the runs' lines. Of
/// runs with equal lines, the one with the lowest index comes last.
fn insert<R: Read>(runs: &[Run<R>], waiting: &mut Vec<usize>, index: usize, kind: Kind<'_>) {
    let is_after = |&other: &usize| match runs[other].compare(&runs[index], kind) {
        Ordering::Equal => other > index,
        order => order == Ordering::Greater,
    };
    // The next line of a run is often close to its last one, so that the search begins at the end, with growing steps.
    let (mut to, mut step) = (waiting.len(), 1);
    let from = loop {
        let probe = to.saturating_sub(step);
        if to == 0 || is_after(&waiting[probe]) {
            break probe;
        }
        to = probe;
        step *= 2;
    };
    waiting.insert(from + waiting[from..to].partition_point(is_after), index);
}

/// The pending output of a merge.
struct Merged {
    block: Vec<u8>,
    /// The previous line, if it is needed for comparison.
    last: Option<Vec<u8>>,
    count: u64,
    equal: Equal,
    /// Number of lines left to write, or `None` for all.
    left: Option<u64>,
}

impl Merged {
    fn line<R: Read>(&mut self, run: &Run<R>) {
        let again = self.last.as_deref().is_some_and(|last| last == run.text());
        match self.equal {
            Equal::Counted if again => return self.count += run.count,
            Equal::One if again => return,
            Equal::Counted => {
                self.end_counted();
                self.count = run.count;
            }
            Equal::Kept | Equal::One => {
                self.block.extend_from_slice(run.line());
                self.left = self.left.map(|left| left.saturating_sub(1));
            }
        }
        if self.equal != Equal::Kept {
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(run.text());
        }
    }

    fn end_counted(&mut self) {
        if self.equal == Equal::Counted
            && let Some(last) = &self.last
            && self.left != Some(0)
        {
            counted::write(&mut self.block, self.count, last);
            self.block.push(b'\n');
            self.left = self.left.map(|left| left - 1);
        }
    }

    fn flush(&mut self, output: &mut impl OutputSink) -> Result<ControlFlow<()>, GroupError> {
        let wanted =
            if self.block.is_empty() { Ok(Continue(())) } else { output.write(&self.block) };
        self.block.clear();
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::BYTES;
    use super::*;
    use crate::plan::ir::{FieldPlace, LineOrder, SortKey};
    use proptest::prelude::*;

    fn merged(inputs: &[&str], order: &LineOrder, equal: Equal, first: Option<u64>) -> String {
        let mut text = Vec::new();
        let inputs: Vec<_> = inputs.iter().map(|input| input.as_bytes()).collect();
        let mut take = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            Ok(Continue(()))
        };
        let wanted = merge(inputs, Kind { order, equal }, first, &mut take).expect("sorted lines");
        assert!(wanted.is_continue());
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn equal_lines_are_kept_or_one_or_counted() {
        let inputs = ["a\nb\n", "", "\nb\nc\n"];
        assert_eq!(merged(&inputs, &BYTES, Equal::Kept, None), "\na\nb\nb\nc\n");
        assert_eq!(merged(&inputs, &BYTES, Equal::One, None), "\na\nb\nc\n");
        assert_eq!(merged(&inputs, &BYTES, Equal::Kept, Some(2)), "\na\n");
        let counted = ["      2 a\n      1 b\n", "      3 a\n"];
        assert_eq!(merged(&counted, &BYTES, Equal::Counted, None), "      5 a\n      1 b\n");
        assert_eq!(merged(&counted, &BYTES, Equal::Counted, Some(1)), "      5 a\n");
        let reverse = LineOrder { reverse: true, ..BYTES };
        assert_eq!(merged(&["c\na\n", "b\n"], &reverse, Equal::Kept, None), "c\nb\na\n");
    }

    /// Generates a short line, or one that is longer than a block.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![9 => "[ab]{0,3}", 1 => Just("x".repeat(BLOCK_BYTES + 1))]
    }

    fn text_of(lines: &[String]) -> String {
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]
        #[test]
        fn merging_is_sorting_all(mut runs in prop::collection::vec(
            prop::collection::vec(line(), 0..6), 0..5)) {
            let mut all: Vec<String> = runs.concat();
            all.sort();
            let texts: Vec<String> = runs
                .iter_mut()
                .map(|run| {
                    run.sort();
                    text_of(run)
                })
                .collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let wanted = text_of(&all);
            prop_assert_eq!(merged(&texts, &BYTES, Equal::Kept, None), wanted);
        }

        #[test]
        fn keys_decide_the_order_of_many_runs(
            mut runs in prop::collection::vec(
                prop::collection::vec("[ab]{0,2} [0-3]{0,2}( [ab])?", 0..6), 0..40),
            reverse in any::<[bool; 2]>(),
        ) {
            let place = |field| FieldPlace { field, bytes: 0, skips_blanks: false };
            let numeric = SortKey {
                from: place(1),
                to: Some(place(1)),
                numeric: true,
                fold: false,
                reverse: reverse[0],
            };
            let last = SortKey { from: place(2), to: None, numeric: false, ..numeric.clone() };
            let order = LineOrder { keys: vec![numeric, last], reverse: reverse[1], ..BYTES };
            let kind = Kind { order: &order, equal: Equal::Kept };
            let sort = |lines: &mut Vec<String>| {
                lines.sort_by(|one, other| kind.compare(one.as_bytes(), other.as_bytes()));
            };
            let mut all: Vec<String> = runs.concat();
            sort(&mut all);
            runs.iter_mut().for_each(sort);
            let texts: Vec<String> = runs.iter().map(|run| text_of(run)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            prop_assert_eq!(merged(&texts, &order, Equal::Kept, None), text_of(&all));
        }
    }
}
