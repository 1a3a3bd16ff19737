//! Predicts from a profile whether a pipeline would be faster with `contend run`.

use contend_commands::Simple;
use contend_parallel::plan::planner::{self, Situation};
use contend_record::advice::{Basis, Candidate, RewriteId, Safety, Verdict};
use contend_record::pipe::{PipeRecord, Stage};
use contend_record::run::Class;

use crate::predict::advise::Prepared;
use crate::predict::model::{Model, was_disturbed};
use crate::rewrite::draft::Draft;

/// Largest ratio of the predicted wall time to that of the unchanged pipeline, multiplied by
/// `PRUDENCE_FACTOR`, that is worth suggesting.
const MAX_SUGGESTED_RATIO: f64 = 0.8;
/// Largest such ratio that is worth trying. A trial measures the truth, and the prediction does not
/// know how much faster contend itself sorts and counts.
const MAX_TRIED_RATIO: f64 = 1.3;
/// Wall time of chunks that take turns on all CPUs, relative to the CPU time of the commands divided
/// by the number of CPUs. The chunks do not end at the same time, but contend does the work of some
/// commands itself, such as sorting, in less time. In 21 pipelines of `bench/pipelines`, the median
/// of this factor was 0.81.
const WORK_FACTOR: f64 = 0.85;
/// Wall time to start contend, plan, and start the commands of the first chunks, in seconds.
const START_SECONDS: f64 = 0.01;
/// Factor on the predicted ratio where it is compared with limits or other candidates, which are
/// predicted more exactly, and do not need contend.
const PRUDENCE_FACTOR: f64 = 1.3;
/// Range of the measured wall time as a multiple of the prediction, for 19 of these pipelines.
const ERROR_RANGE: [f64; 2] = [0.25, 2.5];

/// Returns a candidate that runs the profiled pipeline with `runner`, a `contend run` command with
/// options, if the pipeline is predicted to be faster with it or, if `is_tried`, not much slower. `stages` are the commands of the
/// profile's stages, in order. Returns `None` if the gain is small, no stage can run over chunks,
/// the profile allows fewer than two CPUs, or `stages` and the profile differ in length.
///
/// The predicted wall time is the pipeline's CPU time divided by the number of CPUs, multiplied by
/// `WORK_FACTOR`, but at least the service time of the slowest stage that needs its whole
/// input. It is left out if the profile was disturbed.
pub fn candidate(
    record: &PipeRecord,
    draft: &Draft,
    runner: &str,
    stages: &[Simple],
    situation: &Situation<'_>,
    is_tried: bool,
) -> Option<Prepared> {
    if record.host.cpus_allowed < 2 || stages.len() != record.stages.len() {
        return None;
    }
    let plan = planner::plan(stages, situation);
    let is_parallel = |class| matches!(class, Class::PerRecord | Class::Combinable);
    let planned = || record.stages.iter().zip(&plan.stages);
    let parallel: Vec<usize> = planned()
        .filter(|(_, planned)| is_parallel(planned.class))
        .map(|(stage, _)| stage.index)
        .collect();
    if parallel.is_empty() {
        return None;
    }
    let alone = planned().filter(|(_, planned)| planned.class == Class::Opaque);
    let slowest_alone = alone.map(|(stage, _)| stage.service_seconds()).fold(0.0, f64::max);
    let cpu: f64 = record.stages.iter().map(Stage::cpu_seconds).sum();
    let cpus = record.host.usable_cpus();
    let wall = START_SECONDS + slowest_alone.max(WORK_FACTOR * cpu / cpus);
    // The model's own prediction, because the measured time may include that of other programs.
    let unchanged = Model::of(record, 0.0).forecast(1.0);
    let ratio = wall / unchanged.wall.max(f64::MIN_POSITIVE);
    let prudent_ratio = PRUDENCE_FACTOR * ratio;
    if prudent_ratio > if is_tried { MAX_TRIED_RATIO } else { MAX_SUGGESTED_RATIO } {
        return None;
    }
    let interval = |value: f64| ERROR_RANGE.map(|factor| value * factor);
    let predicted = (!was_disturbed(record)).then_some(wall);
    let draft = draft.run_by(runner);
    let candidate = Candidate {
        rewrite: RewriteId::ParallelRun,
        rewrites: Vec::new(),
        variant: None,
        stages: parallel,
        command: draft.text(),
        safety: Safety::Always,
        reason: format!("these stages run over chunks of the input, on {cpus} CPUs"),
        predicted_wall_seconds: predicted,
        predicted_interval: predicted.map(interval),
        predicted_cpu_seconds: Some(cpu),
        predicted_cpu_interval: Some(interval(cpu)),
        basis: Some(Basis::Costs),
        measured_wall_seconds: None,
        measured_interval: None,
        measured_cpu_seconds: None,
        wall_ratio: None,
        cpu_ratio: None,
        output_equal: None,
        difference: None,
        verdict: Verdict::NotTried,
    };
    Some(Prepared {
        candidate,
        draft,
        changes: Vec::new(),
        expected_ratios: Some((prudent_ratio, 1.0)),
        is_doubtful: was_disturbed(record),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_shell::environment::Environment;
    use contend_shell::parse::parse;

    /// Returns the candidate, if any, for a pipeline profiled for one second on 4 CPUs. `stages`
    /// has the text of each stage and its CPU time in seconds. `others` is the share of the CPUs
    /// that other programs used.
    fn found(stages: &[(&str, f64)], others: f64) -> Option<Candidate> {
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
        record.observation.others_cpu_share = Some(others);
        let environment = Environment::for_tests("C");
        let situation = Situation {
            environment: &environment,
            annotations: &[],
            input_bytes: None,
            output_is_terminal: false,
        };
        let text: Vec<_> = stages.iter().map(|(text, _)| *text).collect();
        let parsed = parse(&text.join(" | ")).expect("a pipeline");
        let draft = Draft::read(&parsed, &environment).expect("plain stages");
        let of =
            |is_tried| candidate(&record, &draft, "contend run", &simples, &situation, is_tried);
        let suggested = of(false).map(|one| one.candidate);
        assert!(suggested.is_none() || of(true).is_some(), "whatever is suggested is worth trying");
        suggested
    }

    fn stages(found: Option<Candidate>) -> Option<Vec<usize>> {
        found.map(|candidate| candidate.stages)
    }

    #[test]
    fn stages_that_use_one_cpu_of_many_could_use_more() {
        assert_eq!(stages(found(&[("cat f", 0.01), ("sed s/a/b/", 1.0)], 0.0)), Some(vec![2]));
        assert_eq!(stages(found(&[("grep a", 0.1), ("sort", 1.0)], 0.0)), Some(vec![1, 2]));
        assert_eq!(found(&[("sed s/a/b/", 1.0), ("tac", 0.9)], 0.0), None, "tac takes as long");
        assert_eq!(found(&[("nl", 1.0), ("tac", 0.1)], 0.0), None);
        let busy = [("tr a b", 0.9), ("cut -c 1", 0.9), ("rev", 0.9), ("rev", 0.9)];
        assert_eq!(found(&busy, 0.0), None);
    }

    #[test]
    fn the_wall_time_is_predicted_unless_the_profile_was_disturbed() {
        let stages = [("cat f", 0.0), ("sed s/a/b/", 1.0)];
        let quiet = found(&stages, 0.0).expect("a gain");
        assert_eq!(quiet.command, "contend run 'cat f | sed s/a/b/'");
        assert!(quiet.predicted_wall_seconds.is_some_and(|wall| (wall - 0.2225).abs() < 1e-9));
        assert_eq!(found(&stages, 0.5).expect("a gain").predicted_wall_seconds, None);
    }
}
