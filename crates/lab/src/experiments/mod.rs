//! All experiments, a module for each family, and the table that lists them.

mod copy;
mod engine;
pub mod handoff;
pub mod ipc;
pub mod pipeline;
mod placement;
pub mod runtimes;
pub mod saturation;
pub mod server;
mod sharing;
pub mod suites;
mod units;

use crate::engine::experiment::Experiment;
use crate::engine::registry::{Calibrators, Registry};

/// All experiments, in the order of lists and reports.
pub const TABLE: &[&Experiment] = &[
    &engine::empty::EXPERIMENT,
    &engine::clock::EXPERIMENT,
    &engine::cache_line::EXPERIMENT,
    &engine::futex::EXPERIMENT,
    &engine::handed_copy::EXPERIMENT,
    &sharing::process::EXPERIMENT,
    &sharing::thread::EXPERIMENT,
    &units::create::EXPERIMENT,
    &units::memory::EXPERIMENT,
    &units::callback::EXPERIMENT,
    &units::limit::EXPERIMENT,
    &units::startup::EXPERIMENT,
    &runtimes::memory::EXPERIMENT,
    &runtimes::round_trip::EXPERIMENT,
    &runtimes::document::EXPERIMENT,
    &handoff::mechanisms::EXPERIMENT,
    &handoff::presets::PRESET_0,
    &handoff::presets::PRESET_0_PLUS,
    &handoff::presets::PRESET_1,
    &handoff::presets::PRESET_1A,
    &handoff::presets::PRESET_1A_PLUS,
    &handoff::presets::PRESET_2,
    &handoff::presets::PRESET_2_PLUS,
    &handoff::presets::PRESET_3,
    &handoff::presets::PRESET_4,
    &handoff::presets::PRESET_4_PLUS,
    &handoff::presets::PRESET_8,
    &handoff::presets::PRESET_9,
    &handoff::presets::SWEEP,
    &ipc::one_byte::EXPERIMENT,
    &ipc::messages::ONE_WAY,
    &ipc::messages::ROUND_TRIP,
    &ipc::rate::EXPERIMENT,
    &copy::EXPERIMENT,
    &placement::EXPERIMENT,
    &saturation::compute::EXPERIMENT,
    &saturation::memory::EXPERIMENT,
    &saturation::allocation::EXPERIMENT,
    &server::requests::HELLO,
    &server::requests::WAIT,
    &server::idle::EXPERIMENT,
    &pipeline::JSON,
    &pipeline::SED,
    &pipeline::FILTER,
    &pipeline::HOLD,
    &pipeline::STARTUP,
];

/// The experiments and suites that the engine offers, and the experiments that calibrate it.
pub const REGISTRY: Registry = Registry {
    experiments: TABLE,
    suites: suites::SUITES,
    calibration: Calibrators {
        empty: &engine::empty::EXPERIMENT,
        distance: &engine::cache_line::EXPERIMENT,
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::experiment::{Scope, Size};
    use crate::engine::pattern::matches;
    use crate::engine::plan::{Plan, PlannedCase};
    use crate::engine::setting::Choices;
    use std::collections::HashSet;

    #[test]
    fn experiments_are_chosen_by_pattern_or_family() {
        let names = |patterns: &[&str]| -> Vec<_> {
            REGISTRY.matching(patterns).expect("they match").iter().map(|e| e.name).collect()
        };
        assert_eq!(names(&["sharing/thread", "engine/e*"]), ["engine/empty", "sharing/thread"]);
        assert_eq!(names(&["sharing"]), ["sharing/process", "sharing/thread"]);
        assert_eq!(REGISTRY.matching(&["units/*", "nothing"]).expect_err("no such"), "nothing");
    }

    #[test]
    fn rows_are_complete_and_cases_distinct() {
        let mut names = HashSet::new();
        for experiment in TABLE {
            assert!(names.insert(experiment.name), "{} occurs twice", experiment.name);
            assert!(!experiment.summary.is_empty() && !experiment.about.is_empty());
            assert!(experiment.name.contains('/'));
            for size in [Size::Full, Size::Quick, Size::Smallest] {
                let scope = Scope::of(size);
                let cases = (experiment.cases)(&scope);
                assert!(!cases.is_empty(), "{} has no case in {size:?}", experiment.name);
                let different: HashSet<_> = cases.iter().collect();
                assert_eq!(different.len(), cases.len(), "{}", experiment.name);
            }
        }
    }

    #[test]
    fn every_suite_has_experiments_for_each_pattern() {
        for suite in REGISTRY.suites {
            assert!(REGISTRY.matching(suite.patterns).is_ok(), "{}", suite.name);
            assert_eq!(REGISTRY.suite(suite.name).map(|found| found.name), Some(suite.name));
            for (pattern, parameter, _) in suite.only {
                let knows = |experiment: &&Experiment| {
                    let cases = (experiment.cases)(&Scope::of(Size::Full));
                    matches(pattern, experiment.name)
                        && cases.iter().any(|case| case.get(parameter).is_some())
                };
                let known = REGISTRY.of_suite(suite).iter().any(knows);
                assert!(known, "{}: {pattern} {parameter}", suite.name);
            }
            let mut choices = Choices::default();
            suite.add_choices(&REGISTRY.of_suite(suite), &mut choices, |_, _| true);
            for (name, value) in suite.set {
                let is_chosen = choices.of(name).iter().any(|chosen| chosen.to_string() == *value);
                assert!(is_chosen, "{}: {name}={value}", suite.name);
            }
            for size in [Size::Full, Size::Quick] {
                let plan = Plan::of_suite(suite, &REGISTRY.of_suite(suite), Scope::of(size));
                for (pattern, ..) in suite.decisive {
                    let is_met = |case: &PlannedCase| {
                        case.is_decisive && matches(pattern, case.experiment.name)
                    };
                    assert!(plan.cases.iter().any(is_met), "{}: {pattern}", suite.name);
                }
            }
        }
    }

    #[test]
    fn experiments_apply_chosen_values() {
        for experiment in TABLE {
            for setting in experiment.settings {
                let value = setting.example();
                assert_eq!(setting.parse(&value.to_string()), Ok(value.clone()));
                let mut scope = Scope::of(Size::Full);
                scope.choices.add(setting.name, value.clone());
                for case in (experiment.cases)(&scope) {
                    // Only sleeping cases have a tick.
                    let untouched = setting.name == "tick_us" && case.get("tick_us").is_none();
                    let heeded = case.get(setting.name) == Some(&value);
                    assert!(heeded || untouched, "{} {}: {case}", experiment.name, setting.name);
                }
            }
        }
    }
}
