//! Computes how much of a phase its bottleneck explains, and divides the rest by cause.
//!
//! The length of a phase, as a bottleneck stage experiences it:
//!
//! ```text
//! length ─┬─ service time                             ┐
//!         ├─ queued for a CPU, behind other stages    │
//!         ├─ waiting for the stages before it, or     ├ explained
//!         │    for those after it: whichever is       │
//!         │    longer (alternation)                   ┘
//!         ├─ queued behind other programs
//!         ├─ waiting for stages on the other side (bursts), or for the input or output
//!         └─ before its first input, after its end
//! ```
//!
//! A bottleneck should never wait for its neighbours. It does if a neighbour cannot work ahead: a
//! pipe holds 64 KiB, but a stage may read a megabyte before it continues, as sort does. While that
//! stage works on the data, its writer fills the pipe and then waits. Both stages then determine
//! the speed together, although neither is busy all the time.
//!
//! If the CPUs are the bottleneck, the bound is the CPU time of all stages divided by the number of
//! CPUs, or the time for which a stage worked, was queued, or waited for a stage that was queued,
//! whichever is longer.

use contend_record::pipe::{Bottleneck, BottleneckKind, Rest, Stage};

use super::Situation;
use crate::pipeline::account::PhaseAccount;
use crate::pipeline::critical::Critical;

/// Share of a phase above which a bottleneck that waits for the stages on one side alternates with
/// one of them.
const MIN_ALTERNATION_SHARE: f64 = 0.05;

/// The part of a phase that the bottleneck explains, and the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explained {
    /// See [`contend_record::pipe::Phase::alternates_with`].
    pub alternates_with: Option<usize>,
    /// See [`contend_record::pipe::Phase::bound_seconds`].
    pub bound_seconds: f64,
    /// The rest of the phase.
    pub rest: Rest,
}

/// Divides a phase into the part that `bottleneck` explains and the rest.
pub(super) fn explain(
    situation: &Situation<'_>,
    account: &PhaseAccount,
    bottleneck: &Bottleneck,
) -> Explained {
    let seconds = account.seconds();
    let stages = &account.stages;
    let index = match bottleneck.kind {
        BottleneckKind::Stage => bottleneck.stage.map(|stage| stage - 1),
        BottleneckKind::Input => Some(0),
        BottleneckKind::Output => stages.len().checked_sub(1),
        BottleneckKind::Machine | BottleneckKind::None => longest(stages),
    };
    let Some(view) = index.and_then(|index| View::of(situation, account, index)) else {
        let rest = Rest { unknown_seconds: seconds, ..Rest::default() };
        return Explained { alternates_with: None, bound_seconds: 0.0, rest };
    };
    let machine = stages.iter().map(Stage::cpu_seconds).sum::<f64>() / situation.cpus;
    let busy = view.service + view.queued_behind_stages;
    let alternation = view.alternation.as_ref();
    let (bound_seconds, waited) = match bottleneck.kind {
        BottleneckKind::Stage => {
            let waited = alternation.map_or(0.0, |alternation| alternation.seconds);
            (busy + waited, waited)
        }
        BottleneckKind::Input => (busy + view.input, 0.0),
        BottleneckKind::Output => (busy + view.output, 0.0),
        BottleneckKind::Machine | BottleneckKind::None => {
            (machine.max(busy + view.for_queued_stages), view.for_queued_stages)
        }
    };
    let is_stage = bottleneck.kind == BottleneckKind::Stage;
    let explained = Explained {
        alternates_with: alternation.filter(|_| is_stage).map(|alternation| alternation.stage),
        bound_seconds,
        rest: Rest {
            start_up_seconds: view.outside_of_work,
            bursts_seconds: view.for_stages - waited,
            others_seconds: view.queued_behind_others + situation.steal_share * seconds,
            input_seconds: view.input,
            output_seconds: view.output,
            unknown_seconds: 0.0,
        },
    };
    fit(explained, seconds)
}

/// Limits the parts so that they add up to `seconds`. A remainder counts as time without a known
/// cause.
fn fit(explained: Explained, seconds: f64) -> Explained {
    let mut left = seconds;
    let mut take = |part: f64| {
        let part = part.clamp(0.0, left);
        left -= part;
        part
    };
    let rest = explained.rest;
    let bound_seconds = take(explained.bound_seconds);
    let mut rest = Rest {
        start_up_seconds: take(rest.start_up_seconds),
        others_seconds: take(rest.others_seconds),
        input_seconds: take(rest.input_seconds),
        output_seconds: take(rest.output_seconds),
        bursts_seconds: take(rest.bursts_seconds),
        unknown_seconds: 0.0,
    };
    rest.unknown_seconds = left;
    Explained { bound_seconds, rest, ..explained }
}

/// Returns the index of the stage that worked or was queued for a CPU for longest.
fn longest(stages: &[Stage]) -> Option<usize> {
    let busy = |stage: &Stage| stage.service_seconds() + stage.run_queue_seconds;
    (0..stages.len()).max_by(|&a, &b| busy(&stages[a]).total_cmp(&busy(&stages[b])))
}

/// A phase as one stage experiences it. All times are in seconds.
struct View {
    service: f64,
    queued_behind_stages: f64,
    queued_behind_others: f64,
    /// Its waits for the stages on one side, if they are long.
    alternation: Option<Alternation>,
    /// Time waiting for stages that are queued for a CPU.
    for_queued_stages: f64,
    /// Time waiting for any stage.
    for_stages: f64,
    input: f64,
    output: f64,
    /// Time before the first input and after the end.
    outside_of_work: f64,
}

impl View {
    fn of(situation: &Situation<'_>, account: &PhaseAccount, index: usize) -> Option<Self> {
        let seconds = account.seconds();
        let stage = account.stages.get(index)?;
        let cpu_of_stages: f64 = account.stages.iter().map(Stage::cpu_seconds).sum();
        let cpu_of_neighbours = cpu_of_stages - stage.cpu_seconds();
        let cpu_of_others = situation.others_share * seconds * situation.cpus;
        let both = cpu_of_neighbours + cpu_of_others;
        let neighbours_share = if both > 0.0 { cpu_of_neighbours / both } else { 0.0 };
        let queued = stage.run_queue_seconds;

        let first_input =
            situation.first_inputs.get(index).copied().flatten().filter(|_| index > 0);
        let begin = account.begin.as_secs_f64();
        let before = first_input.map_or(0.0, |at| (at - begin).clamp(0.0, stage.starved_seconds));
        let upstream = Side::of(account, stage.starved_seconds - before, 0..index, Critical::Input);
        let downstream = index + 1..account.stages.len();
        let downstream = Side::of(account, stage.blocked_seconds, downstream, Critical::Output);
        let is_long = |side: &&Side| side.for_stages > MIN_ALTERNATION_SHARE * seconds;
        let alternation = [&upstream, &downstream]
            .into_iter()
            .filter(is_long)
            .max_by(|a, b| a.for_stages.total_cmp(&b.for_stages))
            .and_then(|side| {
                Some(Alternation { stage: side.longest_critical? + 1, seconds: side.for_stages })
            });
        Some(Self {
            service: stage.service_seconds(),
            queued_behind_stages: queued * neighbours_share,
            queued_behind_others: queued * (1.0 - neighbours_share),
            alternation,
            for_queued_stages: upstream.for_queued_stages + downstream.for_queued_stages,
            for_stages: upstream.for_stages + downstream.for_stages,
            input: upstream.for_end,
            output: downstream.for_end,
            outside_of_work: before + (seconds - stage.wall_seconds).max(0.0),
        })
    }
}

/// Waits of a stage for the stages before it, or for those after it.
struct Alternation {
    /// The stage, from 1, that was critical for longest on that side.
    stage: usize,
    /// Total waiting time for the stages on that side, in seconds.
    seconds: f64,
}

/// The waits of a stage on one side: for the stages before it and the pipeline's input, or for the
/// stages after it and the output. All times are in seconds.
struct Side {
    for_stages: f64,
    for_queued_stages: f64,
    for_end: f64,
    /// The stage, from 0, that was critical for longest.
    longest_critical: Option<usize>,
}

impl Side {
    /// Divides `waited` seconds between `stages` and `end`, in proportion to the times for which
    /// they were critical. Without samples, all of it is for stages, if there are any.
    fn of(
        account: &PhaseAccount,
        waited: f64,
        stages: std::ops::Range<usize>,
        end: Critical,
    ) -> Self {
        let critical = |one: Critical| account.critical.of(one).as_secs_f64();
        let queued_share = |stage: &Stage| {
            let active = stage.on_cpu_seconds + stage.run_queue_seconds;
            if active > 0.0 { stage.run_queue_seconds / active } else { 0.0 }
        };
        let times: Vec<_> = stages.map(|stage| (stage, critical(Critical::Stage(stage)))).collect();
        let all: f64 = times.iter().map(|(_, time)| time).sum();
        let queued: f64 =
            times.iter().map(|&(stage, time)| time * queued_share(&account.stages[stage])).sum();
        let total = all + critical(end);
        let share = |time: f64| if total > 0.0 { time / total } else { 0.0 };
        let for_end = match (times.is_empty(), total > 0.0) {
            (true, _) => waited,
            (false, true) => waited * share(critical(end)),
            (false, false) => 0.0,
        };
        Self {
            for_stages: waited - for_end,
            for_queued_stages: waited * share(queued),
            for_end,
            longest_critical: times
                .iter()
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map(|(stage, _)| *stage),
        }
    }
}
