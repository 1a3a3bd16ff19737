//! Predicts from a profile whether a pipeline would be faster with `contend run`.

use std::fs::File;
use std::time::Duration;

use contend_commands::Simple;
use contend_parallel::plan::planner::{self, Situation};
use contend_record::advice::{Basis, Candidate, Measurement, RewriteId, Safety};
use contend_record::pipe::{PipeRecord, Stage};
use contend_record::run::Class;
use contend_shell::runner::RunError;

use crate::predict::advise::{Prepared, pilot_error};
use crate::predict::model::{Model, was_disturbed};
use crate::predict::pilot::{Pilot, WholeRun, WholeTime};
use crate::rewrite::draft::Draft;
use crate::sample::Sample;

/// Largest ratio of the predicted wall time to that of the unchanged pipeline, multiplied by
/// `PRUDENCE_FACTOR`, that is worth suggesting.
const MAX_SUGGESTED_RATIO: f64 = 0.8;
/// Largest such ratio that is worth measuring, by the pilot or in a trial. The prediction from the
/// profile does not know how much faster contend itself sorts and counts.
const MAX_MEASURED_RATIO: f64 = 1.3;
/// Wall time of chunks that take turns on all CPUs, relative to the CPU time of the commands divided
/// by the number of CPUs. The chunks do not end at the same time, but contend does the work of some
/// commands itself, such as sorting, in less time. In 21 pipelines of `bench/pipelines`, the median
/// of this factor was 0.81.
const WORK_FACTOR: f64 = 0.85;
/// Wall time to start contend, plan, and start the commands of the first chunks, in seconds.
const START_SECONDS: f64 = 0.01;
/// Factor on a ratio predicted from the profile where it is compared with limits or other
/// candidates, which are predicted more exactly, and do not need contend.
const PRUDENCE_FACTOR: f64 = 1.3;
/// The same for a ratio that the pilot measured.
const PILOT_PRUDENCE_FACTOR: f64 = 1.1;
/// Range of the measured wall time as a multiple of the prediction, for 19 of these pipelines.
const ERROR_RANGE: [f64; 2] = [0.25, 2.5];
/// Time in which the pilot should be able to run the pipeline once, in seconds.
const PILOT_SECONDS: f64 = 1.0;
/// Longest time for which the pilot runs the pipeline on the whole input, in seconds.
const MAX_PILOT_SECONDS: f64 = 3.0;
/// The large sample may take this many times as long as it should.
const MAX_SAMPLE_TIMES: u32 = 2;
/// Share of the input from which the pilot reads all of it.
const MIN_WHOLE_SHARE: f64 = 0.5;
/// Largest output that the pilot should write, in bytes.
const MAX_PILOT_OUTPUT_BYTES: f64 = 64e6;
/// The small sample is the large one divided by this number.
const PARTS: u64 = 4;
/// Relative error of a prediction from measurements on the whole input, except for their spread.
const WHOLE_ERROR: f64 = 0.15;

/// Returns a candidate that runs the profiled pipeline with `runner`, a `contend run` command with
/// options, if the pipeline may be faster with it. `stages` are the commands of the profile's
/// stages, in order. Returns `None` if no stage can run over chunks, the profile allows fewer than
/// two CPUs, `stages` and the profile differ in length, or a gain is out of the question.
/// [`is_worth_suggesting`] tells whether the candidate needs no trial.
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
    if prudent_ratio > MAX_MEASURED_RATIO {
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
        measured: Measurement::default(),
    };
    Some(Prepared {
        candidate,
        draft,
        changes: Vec::new(),
        expected_ratios: Some((prudent_ratio, 1.0)),
        is_doubtful: was_disturbed(record),
    })
}

/// Replaces the prediction for `parallel`, a candidate for the profiled pipeline, by one from the
/// pilot, which runs it on `input`, or on a part of it if the pipeline takes long. Removes the
/// prediction if that takes too long, and leaves it as it is if a stage must not be repeated.
///
/// # Errors
/// Returns an error if the pilot was interrupted, or a system call failed.
pub fn predict_by_pilot(
    parallel: &mut Prepared,
    record: &PipeRecord,
    input: &File,
    pilot: &mut Pilot<'_>,
) -> Result<(), RunError> {
    let unchanged = Model::of(record, 0.0).forecast(1.0);
    let (expected, _) = parallel.expected_ratios.unwrap_or((1.0, 1.0));
    let output = record.stages.last().and_then(|stage| stage.bytes_out).unwrap_or(0) as f64;
    let share = (PILOT_SECONDS / (expected * unchanged.wall).max(1e-9))
        .min(MAX_PILOT_OUTPUT_BYTES / output.max(1.0));
    let (run, error) = time(parallel, input, share, unchanged.wall, pilot)?;
    let time = match run {
        WholeRun::Timed(time) => Some(time),
        WholeRun::TooLong => None,
        WholeRun::NotRepeatable => return Ok(()),
    };
    let wall = time.map(|time| time.wall).filter(|_| !was_disturbed(record));
    let cpu = time.map(|time| time.cpu);
    let interval = |value: f64| [value / (1.0 + error), value * (1.0 + error)];
    let candidate = &mut parallel.candidate;
    candidate.predicted_wall_seconds = wall;
    candidate.predicted_interval = wall.map(interval);
    candidate.predicted_cpu_seconds = cpu;
    candidate.predicted_cpu_interval = cpu.map(interval);
    candidate.basis = time.map(|_| Basis::Pilot);
    let ratio = |new: f64, old: f64| new / old.max(f64::MIN_POSITIVE);
    parallel.expected_ratios = time.map(|time| {
        let wall = PILOT_PRUDENCE_FACTOR * ratio(time.wall, unchanged.wall);
        (wall, ratio(time.cpu, unchanged.cpu))
    });
    Ok(())
}

/// Returns the time of the candidate on the whole input, and its relative error. From a `share` of
/// the input below `MIN_WHOLE_SHARE`, the time is extrapolated. On the whole input, the candidate may
/// take as long as the unchanged pipeline, `unchanged` seconds.
fn time(
    parallel: &Prepared,
    input: &File,
    share: f64,
    unchanged: f64,
    pilot: &mut Pilot<'_>,
) -> Result<(WholeRun, f64), RunError> {
    let budget = Duration::from_secs_f64(PILOT_SECONDS);
    let draft = &parallel.draft;
    if share >= MIN_WHOLE_SHARE {
        let budget = budget.max(Duration::from_secs_f64(unchanged.clamp(0.0, MAX_PILOT_SECONDS)));
        let whole = pilot.run_whole(draft, input, budget)?;
        let spread = if let WholeRun::Timed(time) = whole { time.spread } else { 0.0 };
        return Ok((whole, WHOLE_ERROR.hypot(spread)));
    }
    let sample = |input: &File, bytes: u64| {
        input
            .try_clone()
            .and_then(|input| Sample::of(input, bytes))
            .map_err(RunError::io("sample the input"))
    };
    let bytes = input.metadata().map_or(0, |data| data.len()) as f64;
    // The value is at most the size of the input.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let large = sample(input, (bytes * share) as u64)?;
    let small = sample(&large.file, large.bytes() / PARTS)?;
    let part = match pilot.run_whole(draft, &small.file, budget)? {
        WholeRun::Timed(part) => part,
        other => return Ok((other, 0.0)),
    };
    let most = match pilot.run_whole(draft, &large.file, MAX_SAMPLE_TIMES * budget)? {
        WholeRun::Timed(most) => most,
        other => return Ok((other, 0.0)),
    };
    let part_share = small.bytes() as f64 / large.bytes().max(1) as f64;
    let scale = bytes / large.bytes().max(1) as f64;
    let whole = |most: f64, part: f64| extrapolated(most, part, part_share, scale);
    let time = WholeTime {
        wall: whole(most.wall, part.wall),
        cpu: whole(most.cpu, part.cpu),
        spread: most.spread,
    };
    Ok((WholeRun::Timed(time), pilot_error(most.spread)))
}

/// Returns the time for an input that is `scale` times as large as the sample, on a line through
/// `sample`, the time for the sample, and `part`, that for a `share` of it. The line does not fall,
/// nor does it rise more than in proportion to the size. Costs of starting, and of collecting
/// distinct lines, do not grow with the input.
fn extrapolated(sample: f64, part: f64, share: f64, scale: f64) -> f64 {
    let slope = (sample - part) / (1.0 - share).max(0.1);
    sample + slope.clamp(0.0, sample) * (scale - 1.0)
}

/// Returns whether the candidate is predicted to be so much faster that it can be suggested without
/// a trial.
pub fn is_worth_suggesting(parallel: &Prepared) -> bool {
    parallel.expected_ratios.is_some_and(|(wall, _)| wall <= MAX_SUGGESTED_RATIO)
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
            reads_objects: false,
        };
        let text: Vec<_> = stages.iter().map(|(text, _)| *text).collect();
        let parsed = parse(&text.join(" | ")).expect("a pipeline");
        let draft = Draft::read(&parsed, &environment).expect("plain stages");
        candidate(&record, &draft, "contend run", &simples, &situation)
            .filter(is_worth_suggesting)
            .map(|one| one.candidate)
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
    fn constant_costs_are_not_scaled() {
        let near = |found: f64, expected: f64| {
            assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
        };
        near(extrapolated(3.0, 1.5, 0.25, 10.0), 1.0 + 2.0 * 10.0);
        near(extrapolated(2.0, 0.5, 0.25, 10.0), 20.0);
        near(extrapolated(2.0, 0.0, 0.25, 10.0), 20.0);
        near(extrapolated(2.0, 3.0, 0.25, 10.0), 2.0);
        near(extrapolated(2.0, 1.0, 1.0, 1.0), 2.0);
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
