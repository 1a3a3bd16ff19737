//! Kinds of units, and what was measured of each.

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::{Value, names};
use contend_record::stats::Line;

use super::super::shown;
use super::super::table::values;

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
