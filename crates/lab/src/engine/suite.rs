//! Suites: experiments that are run together and compared with a source document.

use contend_record::lab::Chapter;

/// Experiments that are run together, and the report chapter that compares them with a source
/// document.
#[derive(Debug)]
pub struct Suite {
    /// Name on the command line and in records.
    pub name: &'static str,
    /// One-line description for lists.
    pub summary: &'static str,
    /// Report chapter that presents the results.
    pub chapter: Chapter,
    /// Patterns for experiment names, and names of families. The suite has the experiments that
    /// match one of them.
    pub patterns: &'static [&'static str],
    /// Conditions on cases: a pattern for experiment names, a parameter, and a value. Matching
    /// experiments with the parameter run only cases with one of the values given for it; an empty
    /// value admits cases without the parameter.
    pub only: &'static [(&'static str, &'static str, &'static str)],
    /// Upper bound on the default budget of a full run, in seconds.
    pub budget_seconds: f64,
}
