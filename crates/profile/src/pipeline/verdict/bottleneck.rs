//! Identifies the bottleneck: a stage, the CPUs, or a process outside the pipeline.
//!
//! Stages joined by pipes run at the rate of the slowest one. Let S be a stage's service time for
//! the whole input (on a CPU, or waiting for anything but a CPU or its neighbours), and C the CPU
//! time of all stages. The pipeline needs at least max S, and at least C / CPUs. The larger bound
//! identifies the bottleneck: the slowest stage, or the CPUs. A stage's share of the CPU is not the criterion: a stage that sleeps, or waits for a
//! disk or a network, can be the bottleneck without using a CPU. The processes that feed the first
//! stage and read from the last one are like stages, but only the waits that they cause are
//! visible.

use contend_record::pipe::{Bottleneck, BottleneckKind, Limit, OtherWaits, Stage};
use contend_record::units::time;

use super::Situation;

/// Factor by which the bound of the CPUs must exceed that of the slowest stage for the CPUs to be
/// the bottleneck. Stages are preferred because a user can change them.
const MACHINE_FACTOR: f64 = 1.15;
/// Share of the CPUs that must be in use for them to be the bottleneck.
const MIN_CPU_USE: f64 = 0.75;
/// Share of the run below which a service time does not make a stage the bottleneck.
const MIN_SERVICE_SHARE: f64 = 0.25;
/// Share of the run for which a stage must wait for the pipeline's input or output to make that the
/// bottleneck.
const MIN_OUTSIDE_WAIT_SHARE: f64 = 0.15;
/// Share of the run above which a neighbour's wait for the bottleneck is mentioned.
const MIN_NEIGHBOUR_WAIT_SHARE: f64 = 0.05;
/// Share of the slowest stage's service time above which another stage limits the pipeline almost
/// as much.
const SIMILAR_SERVICE_SHARE: f64 = 0.9;
/// Share of the run for which a stage may be stopped. With more, the other stages mostly wait for
/// it, and there is no verdict.
const MAX_STOPPED_SHARE: f64 = 0.5;
/// Minimum number of samples for a verdict.
const MIN_SAMPLES: u64 = 10;

/// The facts about a phase, or a whole run, on which the verdict is based.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// The stages, first to last.
    pub stages: &'a [Stage],
    /// Length of the phase, or wall time of the run.
    pub wall_seconds: f64,
    /// Number of CPUs that the pipeline can use at once.
    pub cpus: f64,
    /// Share of the machine's CPU time that other programs used, from 0 to 1.
    pub others_share: f64,
    /// Whether the evidence describes the neighbours of the bottleneck.
    pub with_neighbours: bool,
    /// Whether the first stage reads from a pipe, a socket or a terminal.
    pub fed_from_outside: bool,
    /// Mean fill of the pipe that feeds the first stage, from 0 to 1; `None` if there is no such
    /// pipe, or no sample of it.
    pub input_fill: Option<f64>,
    /// Whether the last stage may write to a pipe, a socket or a terminal.
    pub read_from_outside: bool,
}

/// Returns the bottleneck, with the evidence for it as a sentence. Its kind is
/// [`BottleneckKind::None`] if no stage was busy for long enough.
pub(super) fn bottleneck(evidence: &Evidence<'_>) -> Bottleneck {
    let stages = evidence.stages;
    let Some(slowest) = slowest(stages) else {
        return no_bottleneck("There is no stage.".into());
    };
    outside_bottleneck(evidence, slowest)
        .or_else(|| machine_bottleneck(evidence, slowest))
        .unwrap_or_else(|| of_stage(evidence, slowest))
}

/// Returns a bottleneck of kind [`BottleneckKind::None`] if there are too few samples of the stages
/// for a verdict, otherwise `None`.
pub(super) fn too_short(situation: &Situation<'_>) -> Option<Bottleneck> {
    let stages = situation.stages;
    let samples = stages.iter().map(|stage| stage.samples).max().unwrap_or(0);
    let has_failed = stages.iter().any(Stage::has_failed);
    let (subject, remedy) = match situation.is_attached {
        true => ("observation", ": observe the pipeline for longer."),
        false if has_failed => ("run", "."),
        false => ("run", ": use a larger input."),
    };
    (samples < MIN_SAMPLES).then(|| {
        no_bottleneck(format!(
            "The {subject} of {} is too short to analyse ({}){remedy}",
            time(situation.wall_seconds),
            if samples == 1 { "1 sample".to_owned() } else { format!("{samples} samples") },
        ))
    })
}

/// Returns a bottleneck of kind [`BottleneckKind::None`] if a stage was stopped for most of the time,
/// otherwise `None`.
pub(super) fn stopped(situation: &Situation<'_>) -> Option<Bottleneck> {
    let of = |stage: &Stage| stage.other_waits.stopped;
    let stage = situation.stages.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
    (of(stage) > MAX_STOPPED_SHARE * situation.wall_seconds).then(|| {
        no_bottleneck(format!(
            "Stage {} `{}` was stopped (by SIGSTOP or Ctrl-Z) for {} of {}.",
            stage.index,
            short(&stage.command),
            time(of(stage)),
            time(situation.wall_seconds),
        ))
    })
}

/// Returns the stage with the longest service time, or `None` without stages.
pub fn slowest(stages: &[Stage]) -> Option<&Stage> {
    stages.iter().max_by(|a, b| a.service_seconds().total_cmp(&b.service_seconds()))
}

/// Returns the pipeline's input or output as the bottleneck, or `None` if it is neither. The
/// slowest stage must be idle for at least `MIN_OUTSIDE_WAIT_SHARE` of its lifetime. In addition,
/// the first stage must wait for input, or the last stage for its reader, for more than that share
/// of the run. A pipe that is mostly full is not a slow input.
fn outside_bottleneck(evidence: &Evidence<'_>, slowest: &Stage) -> Option<Bottleneck> {
    let wall = evidence.wall_seconds;
    let min_wait_seconds = MIN_OUTSIDE_WAIT_SHARE * wall;
    let busy = slowest.service_seconds() + slowest.run_queue_seconds;
    if busy > (1.0 - MIN_OUTSIDE_WAIT_SHARE) * slowest.wall_seconds {
        return None;
    }
    let first = evidence.stages.first()?;
    let last = evidence.stages.last()?;
    let starved = if evidence.fed_from_outside { first.starved_seconds } else { 0.0 };
    let blocked = if evidence.read_from_outside { last.blocked_seconds } else { 0.0 };
    let input_is_full = evidence.input_fill.is_some_and(|fill| fill > 0.5);
    if starved >= blocked && starved > min_wait_seconds && !input_is_full {
        let evidence = format!(
            "Stage 1 `{}` waited for the pipeline's standard input for {} of {}; the busiest \
             stage, {}, needed only {}.",
            short(&first.command),
            time(starved),
            time(wall),
            slowest.index,
            time(slowest.service_seconds()),
        );
        return Some(bottleneck_of_kind(BottleneckKind::Input, None, Limit::Wait, evidence));
    }
    if blocked > starved && blocked > min_wait_seconds {
        let evidence = format!(
            "Stage {} `{}` was blocked by the reader of the pipeline's standard output for {} of \
             {}; the busiest stage, {}, needed only {}.",
            last.index,
            short(&last.command),
            time(blocked),
            time(wall),
            slowest.index,
            time(slowest.service_seconds()),
        );
        return Some(bottleneck_of_kind(BottleneckKind::Output, None, Limit::Wait, evidence));
    }
    None
}

/// Returns the CPUs as the bottleneck, with the stage that uses the most CPU time, in these cases,
/// and `None` otherwise:
/// - the CPUs are busy (`MIN_CPU_USE`), and the CPU time of all stages, divided by the number of
///   CPUs, is more than `MACHINE_FACTOR` times the slowest stage's service time;
/// - the slowest stage is queued for a CPU for longer than it is busy, and both together take more
///   than `MIN_SERVICE_SHARE` of the run.
fn machine_bottleneck(evidence: &Evidence<'_>, slowest: &Stage) -> Option<Bottleneck> {
    let cpu: f64 = evidence.stages.iter().map(Stage::cpu_seconds).sum();
    let bound = cpu / evidence.cpus;
    let largest =
        evidence.stages.iter().max_by(|a, b| a.cpu_seconds().total_cmp(&b.cpu_seconds()))?;
    let cpus = evidence.cpus;
    let plural = if (cpus - 1.0).abs() < 1e-9 { "CPU" } else { "CPUs" };
    let use_share = bound / evidence.wall_seconds + evidence.others_share;
    if bound > MACHINE_FACTOR * slowest.service_seconds() && use_share >= MIN_CPU_USE {
        let text = format!(
            "All stages together need {} of CPU time, at least {} on {cpus} {plural}, but no \
             stage needs more than {}; stage {} `{}` uses {:.0} % of it.",
            time(cpu),
            time(bound),
            time(slowest.service_seconds()),
            largest.index,
            short(&largest.command),
            100.0 * largest.cpu_seconds() / cpu,
        );
        return Some(bottleneck_of_kind(
            BottleneckKind::Machine,
            Some(largest.index),
            Limit::Cpu,
            text,
        ));
    }
    let busy = slowest.run_queue_seconds + slowest.service_seconds();
    if slowest.run_queue_seconds > slowest.service_seconds()
        && busy > MIN_SERVICE_SHARE * evidence.wall_seconds
    {
        let text = format!(
            "Stage {} `{}` was queued for a CPU for {} and busy for {}; all stages together need \
             only {} of CPU time on {cpus} {plural} in {}, so other programs used the rest.",
            slowest.index,
            short(&slowest.command),
            time(slowest.run_queue_seconds),
            time(slowest.service_seconds()),
            time(cpu),
            time(evidence.wall_seconds),
        );
        return Some(bottleneck_of_kind(
            BottleneckKind::Machine,
            Some(largest.index),
            Limit::Cpu,
            text,
        ));
    }
    None
}

/// Returns `slowest` as the bottleneck, or a bottleneck of kind [`BottleneckKind::None`] if that
/// stage was not busy for long enough.
pub(super) fn of_stage(evidence: &Evidence<'_>, slowest: &Stage) -> Bottleneck {
    let wall = evidence.wall_seconds;
    let service = slowest.service_seconds();
    if service < MIN_SERVICE_SHARE * wall {
        return no_bottleneck(format!(
            "No stage was busy for a quarter of the {}: the busiest, stage {} `{}`, needed {}.",
            time(wall),
            slowest.index,
            short(&slowest.command),
            time(service),
        ));
    }
    let limit =
        if slowest.on_cpu_seconds >= slowest.other_wait_seconds { Limit::Cpu } else { Limit::Wait };
    let how = match limit {
        Limit::Cpu => format!("ran for {}", time(slowest.on_cpu_seconds)),
        Limit::Wait => format!(
            "waited for {} ({}) and ran for {}",
            time(slowest.other_wait_seconds - slowest.other_waits.stopped),
            main_waits(&slowest.other_waits),
            time(slowest.on_cpu_seconds),
        ),
    };
    let text = format!(
        "Stage {} {how} of its {}{}.",
        slowest.index,
        time(slowest.wall_seconds),
        if evidence.with_neighbours {
            describe_neighbours(evidence, slowest)
        } else {
            String::new()
        },
    );
    bottleneck_of_kind(BottleneckKind::Stage, Some(slowest.index), limit, text)
}

/// Describes how long the neighbours waited for the slowest stage, if long enough to mention, and
/// how busy the next busiest stage was.
fn describe_neighbours(evidence: &Evidence<'_>, slowest: &Stage) -> String {
    let position = slowest.index - 1;
    let is_long = |seconds: f64| seconds > MIN_NEIGHBOUR_WAIT_SHARE * evidence.wall_seconds;
    let before = position.checked_sub(1).and_then(|i| evidence.stages.get(i));
    let blocked = before.filter(|stage| is_long(stage.blocked_seconds)).map(|stage| {
        format!("stage {} was blocked by it for {}", stage.index, time(stage.blocked_seconds))
    });
    let after = evidence.stages.get(position + 1);
    let starved = after.filter(|stage| is_long(stage.starved_seconds)).map(|stage| {
        format!("stage {} was starved for {}", stage.index, time(stage.starved_seconds))
    });
    let others = evidence.stages.iter().filter(|stage| stage.index != slowest.index);
    let next = others.max_by(|a, b| a.service_seconds().total_cmp(&b.service_seconds()));
    let next = next.map(|stage| {
        let (index, busy) = (stage.index, time(stage.service_seconds()));
        if stage.service_seconds() > slowest.service_seconds() {
            format!("stage {index} was busy for longer ({busy}), but not alone")
        } else if stage.service_seconds() > SIMILAR_SERVICE_SHARE * slowest.service_seconds() {
            format!("stage {index} needed almost as long ({busy})")
        } else {
            format!("the next busiest, stage {index}, needed only {busy}")
        }
    });
    [blocked, starved, next]
        .into_iter()
        .flatten()
        .fold(String::new(), |text, part| text + "; " + &part)
}

/// Returns the names of the waits that each make up more than a tenth of their total, longest
/// first, separated by commas. Ignores the time for which the stage was stopped.
fn main_waits(waits: &OtherWaits) -> String {
    let mut named = OtherWaits { stopped: 0.0, ..*waits }.named();
    named.sort_by(|a, b| b.1.total_cmp(&a.1));
    let total: f64 = named.iter().map(|(_, seconds)| seconds).sum();
    let main = named.iter().filter(|(_, seconds)| *seconds > 0.1 * total);
    main.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn bottleneck_of_kind(
    kind: BottleneckKind,
    stage: Option<usize>,
    limit: Limit,
    evidence: String,
) -> Bottleneck {
    Bottleneck { kind, stage, limit: Some(limit), evidence }
}

fn no_bottleneck(evidence: String) -> Bottleneck {
    Bottleneck { kind: BottleneckKind::None, stage: None, limit: None, evidence }
}

/// Shortens a command of more than 40 characters to 40, the last of which is `…`, so that it fits
/// in a sentence.
pub(crate) fn short(command: &str) -> String {
    const MAX_CHARS: usize = 40;
    if command.chars().count() <= MAX_CHARS {
        return command.to_owned();
    }
    command.chars().take(MAX_CHARS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy_stage(index: usize, on_cpu: f64, other: f64) -> Stage {
        Stage {
            index,
            wall_seconds: 4.0,
            user_seconds: on_cpu,
            on_cpu_seconds: on_cpu,
            other_wait_seconds: other,
            samples: 1000,
            ..Stage::default()
        }
    }

    fn judge(stages: &[Stage], cpus: f64) -> Bottleneck {
        bottleneck(&Evidence {
            stages,
            wall_seconds: 4.0,
            cpus,
            others_share: 0.0,
            with_neighbours: true,
            fed_from_outside: true,
            input_fill: None,
            read_from_outside: true,
        })
    }

    #[test]
    fn a_waiting_stage_is_the_bottleneck_although_another_uses_more_cpu() {
        let stages = [busy_stage(1, 2.0, 0.0), busy_stage(2, 0.2, 3.5)];
        let verdict = judge(&stages, 2.0);
        assert_eq!((verdict.kind, verdict.stage), (BottleneckKind::Stage, Some(2)));
        assert_eq!(verdict.limit, Some(Limit::Wait));
    }

    #[test]
    fn a_stage_that_is_almost_as_slow_is_mentioned() {
        let verdict = judge(&[busy_stage(1, 3.6, 0.0), busy_stage(2, 3.5, 0.0)], 4.0);
        assert!(verdict.evidence.contains("stage 2 needed almost as long"), "{}", verdict.evidence);
        let verdict = judge(&[busy_stage(1, 3.6, 0.0), busy_stage(2, 0.5, 0.0)], 4.0);
        assert!(verdict.evidence.contains("stage 2, needed only"), "{}", verdict.evidence);
    }

    #[test]
    fn cpu_demand_beyond_the_cpus_makes_the_machine_the_bottleneck() {
        let stages = [busy_stage(1, 1.9, 0.0), busy_stage(2, 2.4, 0.0), busy_stage(3, 2.3, 0.0)];
        let verdict = judge(&stages, 2.0);
        assert_eq!((verdict.kind, verdict.stage), (BottleneckKind::Machine, Some(2)));
        assert_eq!(judge(&stages, 8.0).kind, BottleneckKind::Stage);
    }

    #[test]
    fn idle_cpus_are_not_the_bottleneck() {
        // Together 5.4 s of CPU time, but 4 s on two CPUs would allow 8 s.
        let stages = [busy_stage(1, 1.5, 0.0), busy_stage(2, 2.0, 0.0), busy_stage(3, 1.9, 0.0)];
        let verdict = judge(&stages, 2.0);
        assert_eq!((verdict.kind, verdict.stage), (BottleneckKind::Stage, Some(2)));
    }

    #[test]
    fn queueing_longer_than_running_makes_the_machine_the_bottleneck() {
        let mut stages = [busy_stage(1, 1.0, 0.0), busy_stage(2, 0.5, 0.0)];
        stages[0].run_queue_seconds = 2.9;
        let verdict = judge(&stages, 2.0);
        assert_eq!(verdict.kind, BottleneckKind::Machine);
        assert!(verdict.evidence.contains("other programs"), "{}", verdict.evidence);
    }

    #[test]
    fn a_long_wait_for_input_or_output_makes_that_the_bottleneck() {
        let mut stages = [busy_stage(1, 0.5, 0.0), busy_stage(2, 1.0, 0.0)];
        stages[0].starved_seconds = 3.4;
        stages[1].starved_seconds = 2.9;
        assert_eq!(judge(&stages, 2.0).kind, BottleneckKind::Input);
        stages[0].starved_seconds = 0.0;
        stages[1].blocked_seconds = 2.9;
        assert_eq!(judge(&stages, 2.0).kind, BottleneckKind::Output);
    }

    #[test]
    fn a_busy_stage_is_the_bottleneck_despite_short_waits_for_input() {
        let mut stages = [busy_stage(1, 0.5, 0.0), busy_stage(2, 3.9, 0.0)];
        stages[0].starved_seconds = 1.0;
        assert_eq!(judge(&stages, 2.0).stage, Some(2));
    }

    #[test]
    fn too_little_evidence_gives_no_bottleneck() {
        let mut stages = [busy_stage(1, 0.1, 0.1), busy_stage(2, 0.3, 0.0)];
        assert_eq!(judge(&stages, 2.0).kind, BottleneckKind::None);
        for stage in &mut stages {
            stage.samples = 3;
        }
        let mut situation = Situation {
            stages: &stages,
            wall_seconds: 4.0,
            is_attached: false,
            cpus: 2.0,
            fed_from_outside: false,
            input_fill: None,
            others_share: 0.0,
            steal_share: 0.0,
            first_inputs: &[None, None],
        };
        let evidence =
            |situation: &Situation<'_>| too_short(situation).map(|verdict| verdict.evidence);
        let run = evidence(&situation).expect("three samples");
        assert!(
            run.contains("The run of 4.00 s is too short") && run.contains("larger input"),
            "{run}"
        );
        let mut halted = [busy_stage(1, 0.1, 0.0), busy_stage(2, 0.1, 0.0)];
        halted[1].other_waits.stopped = 3.0;
        let paused = stopped(&Situation { stages: &halted, ..situation });
        assert!(paused.is_some_and(|verdict| verdict.evidence.starts_with("Stage 2 `")));
        assert_eq!(stopped(&situation), None);
        situation.is_attached = true;
        let observation = evidence(&situation).expect("three samples");
        assert!(observation.contains("observe the pipeline for longer"), "{observation}");
    }
}
