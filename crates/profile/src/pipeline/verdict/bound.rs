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
//! stage works on it, the stage before it fills the pipe and then waits. Both stages then determine
//! the speed together, although neither is busy all the time.
//!
//! If the CPUs are the bottleneck, the bound is the CPU time of all stages divided by the number of
//! CPUs, or the time for which a stage worked, was queued, or waited for a stage that was queued,
//! whichever is longer.

use contend_record::pipe::{Bottleneck, BottleneckKind, Rest, Stage};

use super::Situation;
use crate::pipeline::account::PhaseAccount;
use crate::pipeline::blame::{Blame, Cause};

/// Minimum share of a phase for which the bottleneck must wait for a stage, to alternate with it.
const MIN_ALTERNATION_SHARE: f64 = 0.05;

/// What the bottleneck explains of a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explained {
    /// See [`contend_record::pipe::Phase::alternates_with`].
    pub alternates_with: Option<usize>,
    /// See [`contend_record::pipe::Phase::bound_seconds`].
    pub bound_seconds: f64,
    /// The rest of the phase.
    pub rest: Rest,
}

/// Returns what `bottleneck` explains of a phase.
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

/// Limits the parts so that they add up to `seconds`.
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
pub(super) fn longest(stages: &[Stage]) -> Option<usize> {
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
        let begin = account.begin.as_secs_f64();
        let stage = account.stages.get(index)?;
        let cpu_of_stages: f64 = account.stages.iter().map(Stage::cpu_seconds).sum();
        let cpu_of_neighbours = cpu_of_stages - stage.cpu_seconds();
        let cpu_of_others = situation.others_share * seconds * situation.cpus;
        let both = cpu_of_neighbours + cpu_of_others;
        let neighbours_share = if both > 0.0 { cpu_of_neighbours / both } else { 0.0 };
        let queued = stage.run_queue_seconds;

        let first_input =
            situation.first_inputs.get(index).copied().flatten().filter(|_| index > 0);
        let before = first_input.map_or(0.0, |at| (at - begin).clamp(0.0, stage.starved_seconds));
        let waits = Waits::of(stage, &account.blame, index, account.stages.len(), before);
        let others = || (0..account.stages.len()).filter(|&other| other != index);
        let queued_share = |stage: &Stage| {
            let active = stage.on_cpu_seconds + stage.run_queue_seconds;
            if active > 0.0 { stage.run_queue_seconds / active } else { 0.0 }
        };
        let for_queued_stages = others()
            .map(|other| {
                waits.because_of(Cause::Stage(other)) * queued_share(&account.stages[other])
            })
            .sum();
        let (input, output) = (waits.because_of(Cause::Input), waits.because_of(Cause::Output));
        Some(Self {
            service: stage.service_seconds(),
            queued_behind_stages: queued * neighbours_share,
            queued_behind_others: queued * (1.0 - neighbours_share),
            alternation: waits.alternation(MIN_ALTERNATION_SHARE * seconds),
            for_queued_stages,
            for_stages: waits.seconds - input - output,
            input,
            output,
            outside_of_work: before + (seconds - stage.wall_seconds).max(0.0),
        })
    }
}

/// Waits of a stage for the stages before it, or for those after it.
struct Alternation {
    /// The stage, from 1, for which it waited for longest.
    stage: usize,
    /// Time for which it waited for the stages on that side, in seconds.
    seconds: f64,
}

/// The waits of a stage for its neighbours in a phase.
struct Waits<'a> {
    blame: &'a Blame,
    index: usize,
    stages: usize,
    /// Time waited, in seconds.
    seconds: f64,
    starved_seconds: f64,
}

impl<'a> Waits<'a> {
    /// `before` is the time before the stage's first input, in seconds, which is not included.
    fn of(stage: &Stage, blame: &'a Blame, index: usize, stages: usize, before: f64) -> Self {
        let starved_seconds = stage.starved_seconds - before;
        let seconds = starved_seconds + stage.blocked_seconds;
        Self { blame, index, stages, seconds, starved_seconds }
    }

    /// Returns the waits for the stages before this one, or for those after it, whichever are
    /// longer. Returns `None` if they do not exceed `min_seconds`.
    fn alternation(&self, min_seconds: f64) -> Option<Alternation> {
        let side = |stages: std::ops::Range<usize>| {
            let waits = stages.map(|other| (other + 1, self.because_of(Cause::Stage(other))));
            let waits: Vec<_> = waits.collect();
            let (stage, _) = waits.iter().max_by(|a, b| a.1.total_cmp(&b.1)).copied()?;
            Some(Alternation { stage, seconds: waits.iter().map(|(_, seconds)| seconds).sum() })
        };
        [side(0..self.index), side(self.index + 1..self.stages)]
            .into_iter()
            .flatten()
            .filter(|side| side.seconds > min_seconds)
            .max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }

    /// Returns the time waited because of `cause`, in seconds. Samples show the shares of the
    /// causes; without samples, each wait is because of the nearest neighbour.
    fn because_of(&self, cause: Cause) -> f64 {
        let total = self.blame.total(self.index).as_secs_f64();
        if total > 0.0 {
            return self.seconds * self.blame.of(self.index, cause).as_secs_f64() / total;
        }
        let before = self.index.checked_sub(1).map_or(Cause::Input, Cause::Stage);
        let after = match self.index + 1 {
            next if next == self.stages => Cause::Output,
            next => Cause::Stage(next),
        };
        match cause {
            cause if cause == before => self.starved_seconds,
            cause if cause == after => self.seconds - self.starved_seconds,
            _ => 0.0,
        }
    }
}
