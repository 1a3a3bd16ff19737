//! The proof that a program treats every record for itself.
//!
//! Then running it on consecutive parts of its input, which end at line borders, and putting the
//! outputs one after the other gives the same bytes as running it once. The same awk is meant,
//! with the same options, variables and environment; runs that end with an error are not, such as
//! by a division by zero: what comes behind the first one must be thrown away.
//!
//! A variable is a constant if nothing but BEGIN and the command's arguments assigns it. Any other
//! one may be read only where it has been assigned for the same record, whatever way was taken
//! there: see [`super::flow`].

use std::collections::BTreeSet;

use super::ast::Program;
use super::checks;
use super::flow::{Flow, Known, LINE_START, Stage, assigned, touched};
use super::traits;
use super::why::Why;

/// What is known of a program that treats every record for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerRecord {
    /// For each record it prints that, whole and unchanged, or nothing.
    pub prints_at_most_its_line: bool,
    /// Whatever it prints for a record, the last byte ends a line.
    pub ends_lines: bool,
    /// An awk that works on bytes could take characters of several bytes apart. What the command's
    /// arguments assign, `-F` included, is not looked at.
    pub may_split_characters: bool,
    /// It could print NUL where there was none in its input.
    pub writes_nul: bool,
}

/// Proves that a program treats every record for itself. `given` are the variables that the
/// command's arguments assign.
///
/// # Errors
///
/// What looks beyond the record, or what is not sure not to.
pub fn per_record(program: &Program, given: &[&str]) -> Result<PerRecord, Why> {
    checks::given(given)?;
    if program.ends().next().is_some() {
        return Err(Why::HasEnd);
    }
    checks::begins(program)?;
    checks::rules(program)?;
    let print_ends_line = !traits::changes_line_end(program, given);
    let known = known(program, BTreeSet::new(), print_ends_line);
    checks::functions(program, &known.changing)?;
    let mut flow = Flow::new(known, Stage::Records);
    flow.record(program)?;
    Ok(PerRecord {
        prints_at_most_its_line: print_ends_line && traits::prints_at_most_its_line(program),
        ends_lines: flow.at_end.as_ref().is_none_or(|set| set.contains(LINE_START)),
        may_split_characters: traits::may_split_characters(program),
        writes_nul: traits::writes_nul(program),
    })
}

/// What is known of the names in the rules of a program.
pub(super) fn known<'a>(
    program: &'a Program,
    sums: BTreeSet<&'a str>,
    print_ends_line: bool,
) -> Known<'a> {
    let mut changing: BTreeSet<_> = program.rules().flat_map(assigned).collect();
    changing.retain(|name| !sums.contains(name));
    let functions = program.functions().map(|function| touched(function.body.as_slice()));
    let touched = program.rules().map(touched).chain(functions).flatten().collect();
    let arrays = checks::arrays(program);
    Known { changing, touched, arrays, sums, tallies: BTreeSet::new(), print_ends_line }
}
