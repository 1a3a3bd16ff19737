//! `pipeline/startup`: what each command of a pipeline costs before it does anything.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_hands_over,
};
use crate::experiments::units::startup;

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/startup",
    summary: "what starting a command costs: fork, exec, a subshell, true, every awk",
    about: "The commands of `units/startup` that pipelines are about, measured in the same way, a \
            set number of times: `fork` ends without executing anything, `static` executes a \
            program of some hundred bytes, each awk gets a program that does nothing. \
            `bash-subshell` is a loop in bash around a subshell, by turn.",
    view: View::PipelineStartup,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(7),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: startup::unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE.lasting(50, 30).and_ns_per(&[("turns", 3_000_000)]),
    subject,
};

const COMMANDS: [&str; 8] =
    ["fork", "static", "bash-subshell", "true", "mawk", "gawk", "busybox-awk", "original-awk"];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let turns = scope.choose(&[100], &[20], &[2])[0];
    let case = |command| Parameters::new().with(names::COMMAND, command).with(names::TURNS, turns);
    COMMANDS.map(case).to_vec()
}

/// Whether bash itself takes the turns.
fn loops(parameters: &Parameters) -> bool {
    parameters.text(names::COMMAND).is_some_and(|command| command.starts_with("bash-"))
}

fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    if loops(parameters) {
        return startup::subject(parameters);
    }
    let turns = parameters.number(names::TURNS).unwrap_or(1);
    let once = startup::subject(&parameters.without(names::TURNS))?;
    Ok(Box::new(InTurns { once, turns }))
}

/// What is done so many times for a sample.
struct InTurns {
    once: Box<dyn Subject>,
    turns: u64,
}

impl Subject for InTurns {
    fn sample(&mut self, _: u64, tell: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        self.once.sample(self.turns, tell)
    }

    fn facts(&self) -> Facts {
        self.once.facts()
    }
}
