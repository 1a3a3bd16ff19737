//! What a unit costs in every runtime.

pub mod chart;
mod document;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::{Value, names};
use contend_record::stats::Line;

use self::chart::Series;
pub use self::document::{chapter, section as document_section};
use super::super::layout::paragraph;
use super::super::units::count;
use super::shown;
use super::table::{figure, grid, parameter, row, values};

/// A kind of unit, and what was measured of it.
pub struct Kind<'a> {
    /// Its name.
    pub unit: String,
    /// The letter by which charts show it.
    pub mark: char,
    /// Its cases that were measured, by how many units they are.
    pub cases: Vec<&'a Case>,
    /// The line through what they take.
    pub each: Option<&'a Line>,
    /// The line through what the kernel keeps for them besides.
    in_kernel: Option<&'a Line>,
    /// The line through what the runtime says that it uses for them.
    counted: Option<&'a Line>,
    /// A message to it and its answer, in nanoseconds.
    pub round_trip: Option<f64>,
}

/// All kinds, the smallest first; those without a line last.
pub fn kinds(record: &RunRecord) -> Vec<Kind<'_>> {
    let measured =
        |view| record.cases_of(view).filter(|case| case.median.is_some()).collect::<Vec<_>>();
    let (memory, trips) = (measured(View::RuntimeMemory), measured(View::RuntimeRoundTrip));
    let kind = |unit: String| {
        let is_it = |case: &&&Case| case.parameters.text(names::UNIT) == Some(&unit);
        let mut cases: Vec<_> = memory.iter().filter(is_it).copied().collect();
        cases.sort_by_key(|case| case.parameters.number(names::N));
        let line = |metric: &str| {
            let of = |fit: &&contend_record::lab::Fit| {
                fit.metric == metric && fit.parameters.text(names::UNIT) == Some(&unit)
            };
            record.fits_of(View::RuntimeMemory).find(of).map(|fit| &fit.line)
        };
        let (each, in_kernel, counted) = (line("value"), line("kernel"), line("runtime"));
        let round_trip = trips.iter().find(is_it).and_then(|case| case.median);
        Kind { unit, mark: ' ', cases, each, in_kernel, counted, round_trip }
    };
    let names = values(&[memory.clone(), trips.clone()].concat(), names::UNIT);
    let mut kinds: Vec<_> = names.into_iter().map(kind).collect();
    let bytes = |kind: &Kind<'_>| kind.bytes().unwrap_or(f64::INFINITY);
    kinds.sort_by(|a, b| bytes(a).total_cmp(&bytes(b)));
    for (kind, mark) in kinds.iter_mut().zip(('a'..='z').chain('A'..='Z')) {
        kind.mark = mark;
    }
    kinds
}

/// The slope of a line that certainly goes up.
fn rising(line: &Line) -> Option<f64> {
    let least = line.slope_ci95.map_or(line.slope, |[low, _]| low);
    (least > 0.0).then_some(line.slope)
}

/// What a cell says of a slope that may be 0 or less.
pub const NOT_TOLD: &str = "not told from 0";

impl Kind<'_> {
    /// The case with the most units.
    pub fn largest(&self) -> Option<&Case> {
        self.cases.last().copied()
    }

    /// What the runtime is, and its version.
    pub fn version(&self) -> String {
        match self.largest().and_then(|case| case.facts.get("version")) {
            Some(Value::Text(version)) => version.clone(),
            _ => String::new(),
        }
    }

    /// What one takes, if that can be told from nothing.
    pub fn bytes(&self) -> Option<f64> {
        rising(self.each?)
    }

    /// The same as text; nothing where there is no line.
    pub fn bytes_shown(&self) -> String {
        match (self.each, self.bytes()) {
            (None, _) => String::new(),
            (Some(_), None) => NOT_TOLD.to_owned(),
            (Some(_), Some(bytes)) => shown(bytes, Unit::Bytes),
        }
    }

    /// What the kernel keeps for one besides, if it is worth a word.
    pub fn kernel(&self) -> Option<f64> {
        const WORTH: f64 = 0.02;
        let kernel = rising(self.in_kernel?)?;
        (kernel >= WORTH * self.bytes().unwrap_or(0.0)).then_some(kernel)
    }

    /// What one takes by the runtime's own count, where it has one.
    pub fn counted(&self) -> Option<f64> {
        rising(self.counted?)
    }

    /// What one takes in all.
    pub fn total(&self) -> Option<f64> {
        Some(self.bytes()? + self.kernel().unwrap_or(0.0))
    }

    /// A metric where there are the most of them.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.largest()?.metric(name)
    }

    /// How many there were at once, at most.
    pub fn most(&self) -> Option<u64> {
        self.largest()?.parameters.number(names::N)
    }
}

/// Why the same unit takes more here than by another experiment.
pub const COUNTED_WITH_THEM: &str = "What a probe needs to wake its units is counted with them: for a callback \
    thread the 8 bytes of its address, for which units/callback makes room before it measures.";

/// The table of all kinds, and the chart.
pub fn memory_section(record: &RunRecord, width: usize) -> String {
    let kinds: Vec<_> = kinds(record).into_iter().filter(|kind| !kind.cases.is_empty()).collect();
    let (is_wide, is_widest) = (width >= 100, width >= 110);
    let mut headings = row(["", "unit", "one takes"]);
    if is_wide {
        headings.push("[95 % interval]".to_owned());
    }
    if is_widest {
        headings.push("by its own count".to_owned());
    }
    headings.extend(row(["in the kernel", "create", "end", "at most", "left"]));
    let mut rows = vec![headings];
    for kind in &kinds {
        let size =
            |value: Option<f64>| value.map_or_else(String::new, |value| shown(value, Unit::Bytes));
        let mut cells = vec![kind.mark.to_string(), kind.unit.clone(), kind.bytes_shown()];
        if is_wide {
            let interval = kind.each.and_then(|line| line.slope_ci95);
            let text = interval.map(|[low, high]| {
                format!("[{}, {}]", shown(low, Unit::Bytes), shown(high, Unit::Bytes))
            });
            cells.push(text.unwrap_or_default());
        }
        if is_widest {
            cells.push(size(kind.counted()));
        }
        cells.extend([
            size(kind.kernel()),
            figure(kind.metric("create")),
            figure(kind.metric("end")),
            kind.most().map_or_else(String::new, |most| count(most as f64)),
            size(kind.metric("left_1s")),
        ]);
        rows.push(cells);
    }
    let mut out = grid(&rows, 2, width);
    let by_itself = if is_widest { " (by its own count, where there is one)" } else { "" };
    let note = format!(
        "What one takes is the slope of the line through all numbers of units, by the processes' proportional \
         sets{by_itself}; in the kernel, if it is worth a word, what the kernel keeps besides. Create and end are \
         for one of the most that there were at once, and left is what all of them have left behind a second \
         after their end. {COUNTED_WITH_THEM}"
    );
    paragraph(&mut out, "", &note, width);
    if let Some(chart) = chart::bytes_over_numbers(&series(&kinds), width) {
        let _ = write!(out, "\nBytes in all, over the number of units (* several)\n{chart}");
    }
    out
}

/// All kinds for a chart.
pub fn series(kinds: &[Kind<'_>]) -> Vec<Series> {
    kinds.iter().map(|kind| Series { mark: kind.mark, points: points(kind) }).collect()
}

/// Bytes over numbers, where there are any.
fn points(kind: &Kind<'_>) -> Vec<(f64, f64)> {
    let point = |case: &&Case| Some((case.parameters.number(names::N)? as f64, case.median?));
    kind.cases.iter().filter_map(point).filter(|point| point.1 >= 4096.0).collect()
}

/// The table of round trips, the quickest first.
pub fn round_trip_section(cases: &[&Case], width: usize) -> String {
    let mut cases = cases.to_vec();
    cases.sort_by(|a, b| a.median.unwrap_or(f64::MAX).total_cmp(&b.median.unwrap_or(f64::MAX)));
    let mut rows = vec![row(["unit", "there and back", "[95 % interval]"])];
    for case in cases {
        let interval = case
            .ci95
            .map(|[low, high]| format!("[{}, {}]", shown(low, case.unit), shown(high, case.unit)));
        rows.push(vec![
            parameter(case, names::UNIT),
            figure(case.median),
            interval.unwrap_or_default(),
        ]);
    }
    grid(&rows, 1, width)
}
