//! Suites: experiments that are run together and compared with a source document.

use contend_record::lab::Chapter;

/// A suite.
#[derive(Debug)]
pub struct Suite {
    /// Name of the suite.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Chapter of the report that shows it.
    pub chapter: Chapter,
    /// Patterns of its experiments.
    pub patterns: &'static [&'static str],
    /// Conditions: pattern of the experiments, parameter, value. Experiments with the parameter run
    /// only the cases with one of its values; an empty value admits cases without the parameter.
    pub only: &'static [(&'static str, &'static str, &'static str)],
    /// Default of its budget, in seconds.
    pub budget_seconds: f64,
}
