//! Estimates from a profile whether a pipeline would be faster with `contend run`.

use contend_commands::Simple;
use contend_parallel::plan::planner::{self, Situation};
use contend_record::pipe::{Finding, FindingId, PipeRecord, Stage};
use contend_record::run::Class;
use contend_record::units::time;

/// Largest ratio of the estimated to the measured wall time that is worth reporting.
const MAX_WALL_RATIO: f64 = 0.8;

/// Returns a finding if running the profiled pipeline over chunks of its input is estimated to
/// reduce its wall time to `MAX_WALL_RATIO` of the measured time or less. `stages` are the
/// commands of the profile's stages, in order. Returns `None` if the gain is smaller, no stage can
/// run over chunks, the profile allows fewer than two CPUs, or `stages` has another length than the
/// profile.
///
/// The estimate is the pipeline's CPU time divided by the number of CPUs, but at least the service
/// time of the slowest stage that needs its whole input.
pub fn find(record: &PipeRecord, stages: &[Simple], situation: &Situation<'_>) -> Option<Finding> {
    let cpus = record.host.cpus_allowed;
    if cpus < 2 || stages.len() != record.stages.len() {
        return None;
    }
    let plan = planner::plan(stages, situation);
    let is_parallel = |class| matches!(class, Class::PerRecord | Class::Combinable);
    let planned = || record.stages.iter().zip(&plan.stages);
    let parallel: Vec<usize> = planned()
        .filter(|(_, planned)| is_parallel(planned.class))
        .map(|(stage, _)| stage.index)
        .collect();
    let alone = planned().filter(|(_, planned)| planned.class == Class::Opaque);
    let slowest_alone = alone.map(|(stage, _)| stage.service_seconds()).fold(0.0, f64::max);
    let cpu: f64 = record.stages.iter().map(Stage::cpu_seconds).sum();
    let at_best = slowest_alone.max(cpu / cpus as f64);
    if at_best > MAX_WALL_RATIO * record.wall_seconds {
        return None;
    }
    let subject = match parallel.as_slice() {
        [] => return None,
        [one] => format!("Stage {one}"),
        [one, two] => format!("Stages {one} and {two}"),
        [first, .., last] if last - first + 1 == parallel.len() => {
            format!("Stages {first} to {last}")
        }
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(ToString::to_string).collect();
            format!("Stages {} and {last}", others.join(", "))
        }
    };
    let message = format!(
        "{subject} can run in parallel over chunks of the input, with identical output (`contend \
         run`): at best {} on {cpus} CPUs instead of {}.",
        time(at_best),
        time(record.wall_seconds),
    );
    Some(Finding { id: FindingId::DataParallel, stages: parallel, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_shell::environment::Environment;

    /// Returns the stages of the finding, if any, for a pipeline profiled for one second on 4 CPUs.
    /// `stages` has the text of each stage and its CPU time in seconds.
    fn found(stages: &[(&str, f64)]) -> Option<Vec<usize>> {
        let simples: Vec<Simple> =
            stages.iter().map(|(text, _)| Simple::read(text).expect("a simple command")).collect();
        let profiled = stages.iter().zip(1..).map(|((text, cpu), index)| Stage {
            index,
            command: (*text).to_owned(),
            user_seconds: *cpu,
            on_cpu_seconds: *cpu,
            ..Stage::default()
        });
        let mut record = PipeRecord { wall_seconds: 1.0, ..PipeRecord::default() };
        record.stages = profiled.collect();
        record.host.cpus_allowed = 4;
        let environment = Environment::for_tests("C");
        let situation = Situation {
            environment: &environment,
            annotations: &[],
            input_bytes: None,
            output_is_terminal: false,
        };
        find(&record, &simples, &situation).map(|finding| finding.stages)
    }

    #[test]
    fn stages_that_use_one_cpu_of_many_could_use_more() {
        assert_eq!(found(&[("cat f", 0.01), ("sed s/a/b/", 1.0)]), Some(vec![2]));
        assert_eq!(found(&[("grep a", 0.1), ("sort", 1.0)]), Some(vec![1, 2]));
        assert_eq!(found(&[("sed s/a/b/", 1.0), ("tac", 0.9)]), None, "tac takes as long");
        assert_eq!(found(&[("nl", 1.0), ("tac", 0.1)]), None);
        assert_eq!(found(&[("tr a b", 0.9), ("cut -c 1", 0.9), ("rev", 0.9), ("rev", 0.9)]), None);
    }
}
