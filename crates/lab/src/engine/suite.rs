//! A suite: the experiments of one source document, run and shown together.

use contend_record::lab::Chapter;

/// One suite.
#[derive(Debug)]
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The chapter of a report that shows it.
    pub chapter: Chapter,
    /// The experiments, by name or pattern.
    pub patterns: &'static [&'static str],
    /// Of experiments by these patterns that know these parameters, only the cases with one of these
    /// values.
    pub only: &'static [(&'static str, &'static str, &'static str)],
    /// The most time for measuring it takes by itself, in seconds.
    pub budget_seconds: f64,
}
