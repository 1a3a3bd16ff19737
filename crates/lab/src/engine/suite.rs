//! Suites: experiments that are run together and compared with a source document.

use contend_record::lab::Chapter;
use contend_record::parameters::Value;

use crate::engine::experiment::Experiment;
use crate::engine::setting::Choices;

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
    /// Parameters that the suite sets, each with a value: as with `--set`, experiments that have
    /// such a parameter run a case for each value given for it.
    pub set: &'static [(&'static str, &'static str)],
    /// Conditions on the cases on whose samples conclusions depend, in the form of `only`. These
    /// cases take enough samples for an interval before other cases take a second one.
    pub decisive: &'static [(&'static str, &'static str, &'static str)],
    /// Upper bound on the default budget of a full run, in seconds.
    pub budget_seconds: f64,
}

impl Suite {
    /// Adds the values that the suite sets to those that the user chose, for each parameter of
    /// which `applies` returns `true` for the name and the suite's values. Leaves out values that
    /// no experiment accepts.
    pub fn add_choices(
        &self,
        experiments: &[&'static Experiment],
        choices: &mut Choices,
        applies: impl Fn(&str, &[&str]) -> bool,
    ) {
        let users = choices.clone();
        for &(name, value) in self.set {
            let values = self.set.iter().filter(|(other, _)| *other == name);
            let values: Vec<&str> = values.map(|&(_, value)| value).collect();
            if !users.of(name).is_empty() || !applies(name, &values) {
                continue;
            }
            if let Some(value) = parsed(experiments, name, value) {
                choices.add(name, value);
            }
        }
    }
}

/// Parses a value of the parameter `name`. Returns `None` if no experiment has the parameter, or if
/// the value is not allowed.
fn parsed(experiments: &[&'static Experiment], name: &str, value: &str) -> Option<Value> {
    let mut settings = experiments.iter().flat_map(|experiment| experiment.settings);
    settings.find(|setting| setting.name == name)?.parse(value).ok()
}
