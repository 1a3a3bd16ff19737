//! Collects the measurements of each kind of unit of a runtime.

use contend_record::lab::{Case, RunRecord, Unit, View};
use contend_record::parameters::{Value, names};
use contend_record::stats::Line;

use super::super::shown;
use super::super::table::values;

/// A kind of unit of a runtime, with its measurements.
pub struct Kind<'a> {
    /// Name of the kind: the value of the parameter `unit`.
    pub unit: String,
    /// Letter that marks the kind in charts; a space for each kind after the 52nd.
    pub mark: char,
    /// Cases that measured memory, by ascending number of units; empty if only the round trip was
    /// measured.
    pub cases: Vec<&'a Case>,
    /// Fitted line of memory in bytes over number of units; `None` without one.
    pub memory_line: Option<&'a Line>,
    /// Fitted line of the kernel's additional memory, in bytes; `None` without one.
    in_kernel: Option<&'a Line>,
    /// Fitted line of the memory that the runtime itself reports, in bytes; `None` if it reports
    /// none.
    counted: Option<&'a Line>,
    /// Time of a message and its answer in nanoseconds; `None` if it was not measured.
    pub round_trip: Option<f64>,
}

/// Returns all kinds with a measurement, in ascending order of size. Kinds whose size is unknown or
/// indistinguishable from 0 are last.
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
        let (memory_line, in_kernel, counted) = (line("value"), line("kernel"), line("runtime"));
        let round_trip = trips.iter().find(is_it).and_then(|case| case.median);
        Kind { unit, mark: ' ', cases, memory_line, in_kernel, counted, round_trip }
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

/// Returns the slope of a line if its interval is above 0 or, without an interval, if the slope
/// itself is. Returns `None` otherwise.
fn rising(line: &Line) -> Option<f64> {
    let least = line.slope_ci95.map_or(line.slope, |[low, _]| low);
    (least > 0.0).then_some(line.slope)
}

/// Description of a slope that is not certainly above 0.
pub const INDISTINGUISHABLE: &str = "indistinguishable from 0";

impl Kind<'_> {
    /// Returns the case that measured the memory of the most units, or `None` if memory was not
    /// measured.
    pub fn largest(&self) -> Option<&Case> {
        self.cases.last().copied()
    }

    /// Returns the name of the runtime and its version; empty if they were not recorded.
    pub fn version(&self) -> String {
        match self.largest().and_then(|case| case.facts.get("version")) {
            Some(Value::Text(version)) => version.clone(),
            _ => String::new(),
        }
    }

    /// Returns the size of one unit in bytes, or `None` if it is unknown or indistinguishable from
    /// 0.
    pub fn bytes(&self) -> Option<f64> {
        rising(self.memory_line?)
    }

    /// Formats the size of one unit, or says that it is indistinguishable from 0; empty if there is
    /// no fitted line.
    pub fn bytes_shown(&self) -> String {
        match (self.memory_line, self.bytes()) {
            (None, _) => String::new(),
            (Some(_), None) => INDISTINGUISHABLE.to_owned(),
            (Some(_), Some(bytes)) => shown(bytes, Unit::Bytes),
        }
    }

    /// Returns the kernel's additional bytes for one unit, or `None` if they are unknown,
    /// indistinguishable from 0, or less than 2 % of the unit's size.
    pub fn kernel(&self) -> Option<f64> {
        const MIN_KERNEL_SHARE: f64 = 0.02;
        let kernel = rising(self.in_kernel?)?;
        (kernel >= MIN_KERNEL_SHARE * self.bytes().unwrap_or(0.0)).then_some(kernel)
    }

    /// Returns the size of one unit in bytes as the runtime reports it, or `None` if the runtime
    /// reports no size, or if the size is indistinguishable from 0.
    pub fn counted(&self) -> Option<f64> {
        rising(self.counted?)
    }

    /// Returns the size of one unit in bytes, including kernel memory, or `None` if the size is
    /// unknown or indistinguishable from 0.
    pub fn total(&self) -> Option<f64> {
        Some(self.bytes()? + self.kernel().unwrap_or(0.0))
    }

    /// Returns the median of the metric `name` of the case with the most units, or `None` if it was
    /// not measured.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.largest()?.metric(name)
    }

    /// Returns the largest number of units whose memory was measured, or `None` if it was not
    /// measured.
    pub fn max_units(&self) -> Option<u64> {
        self.largest()?.parameters.number(names::N)
    }
}
