//! `pipeline/startup`: the time to start commands that are common in pipelines.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};

use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_alternates_cpus,
};
use crate::experiments::units::startup;

/// The definition of `pipeline/startup`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/startup",
    summary: "time to start a command: fork, exec, a subshell, true, every awk",
    about: "Starts the commands of `units/startup` that matter to pipelines, in the same way, a \
        fixed number of times. `fork` exits without executing a program, `static` executes a \
        program of a few hundred bytes, and each awk gets a program that does nothing. \
        `bash-subshell` is a loop in bash around a subshell, divided by its iterations.",
    view: View::PipelineStartup,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(7),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: startup::unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(50, 30).with_ns_per(&[("turns", 3_000_000)]),
    subject,
};

const COMMANDS: [&str; 8] =
    ["fork", "static", "bash-subshell", "true", "mawk", "gawk", "busybox-awk", "original-awk"];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let turns = scope.choose(&[100], &[20], &[2])[0];
    let case = |command| Parameters::new().with(names::COMMAND, command).with(names::TURNS, turns);
    COMMANDS.map(case).to_vec()
}

/// Returns whether the command of the case is a loop in bash.
fn is_bash_loop(parameters: &Parameters) -> bool {
    parameters.text(names::COMMAND).is_some_and(|command| command.starts_with("bash-"))
}

fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    if is_bash_loop(parameters) {
        return startup::subject(parameters);
    }
    let iterations = parameters.number(names::TURNS).unwrap_or(1);
    let inner = startup::subject(&parameters.without(names::TURNS))?;
    Ok(Box::new(Repeated { inner, iterations }))
}

/// A subject whose samples run a fixed number of iterations of `inner`, whatever the engine
/// requests.
struct Repeated {
    inner: Box<dyn Subject>,
    iterations: u64,
}

impl Subject for Repeated {
    fn sample(&mut self, _: u64, on_step: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        self.inner.sample(self.iterations, on_step)
    }

    fn facts(&self) -> Facts {
        self.inner.facts()
    }
}
