//! Helpers for tests that need plans.

use contend_shell::environment::Environment;

use super::ir::Plan;
use super::planner::{self, Situation};
use super::text::{self, Reading};

/// Plans a pipeline of plain commands in the C locale, whose input, unless it names files, is a stream.
pub(crate) fn planned(text: &str) -> Plan {
    let Reading::Commands { stages, .. } = text::read(text) else { panic!("{text}") };
    let environment = Environment::for_tests("C");
    let situation = Situation {
        environment: &environment,
        annotations: &[],
        input_bytes: None,
        output_is_terminal: false,
        reads_objects: false,
    };
    planner::plan(&stages, &situation)
}
