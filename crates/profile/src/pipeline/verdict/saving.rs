//! Estimates how much shorter a run would be if its bottleneck were faster.
//!
//! The estimate takes the view of the stage that was busy for longest. Its life in a phase consists
//! of its service time, its time in the run queue, and its waits, each of which another stage
//! causes. If it becomes faster, its service time shrinks. If another stage becomes faster, the
//! waits that it causes shrink in proportion, because the two do not work at the same time. The
//! phase then takes as long as that life, unless another stage or the CPUs need longer.

use contend_record::pipe::{BottleneckKind, Phase, Stage};

use super::bound::longest;
use crate::pipeline::account::PhaseAccount;
use crate::pipeline::blame::Cause;

/// Factor of the speed of what is improved.
const SPEED_UP: f64 = 2.0;

/// The bottleneck that is made twice as fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Improvement {
    /// A stage, from 0.
    Stage(usize),
    /// Twice as many CPUs.
    Machine,
    /// The process that feeds the first stage.
    Input,
    /// The process that reads from the last stage.
    Output,
}

impl Improvement {
    /// Returns the improvement of the bottleneck of a phase, or `None` if the phase has none.
    pub fn of(phase: &Phase) -> Option<Self> {
        match (phase.bottleneck.kind, phase.bottleneck.stage) {
            (BottleneckKind::Stage, Some(index)) => Some(Self::Stage(index - 1)),
            (BottleneckKind::Machine, _) => Some(Self::Machine),
            (BottleneckKind::Input, _) => Some(Self::Input),
            (BottleneckKind::Output, _) => Some(Self::Output),
            _ => None,
        }
    }

    /// Returns the kind of bottleneck, and the stage, from 1, if it is one.
    pub fn parts(self) -> (BottleneckKind, Option<usize>) {
        match self {
            Self::Stage(index) => (BottleneckKind::Stage, Some(index + 1)),
            Self::Machine => (BottleneckKind::Machine, None),
            Self::Input => (BottleneckKind::Input, None),
            Self::Output => (BottleneckKind::Output, None),
        }
    }
}

/// Returns the time in seconds that the run would be shorter.
pub(super) fn saving(cpus: f64, phases: &[PhaseAccount], improvement: Improvement) -> f64 {
    let saved = |phase: &PhaseAccount| {
        let before = length(phase, cpus, None);
        (before - length(phase, cpus, Some(improvement))).max(0.0)
    };
    phases.iter().map(saved).sum()
}

/// Returns the length of a phase in seconds, as estimated from the lives of its stages.
fn length(phase: &PhaseAccount, cpus: f64, improvement: Option<Improvement>) -> f64 {
    let speed = |one: Improvement| if improvement == Some(one) { SPEED_UP } else { 1.0 };
    let cpu = |index: usize| phase.stages[index].cpu_seconds() / speed(Improvement::Stage(index));
    let cpu_before: f64 = phase.stages.iter().map(Stage::cpu_seconds).sum();
    let cpu_after: f64 = (0..phase.stages.len()).map(cpu).sum();
    let competition = if cpu_before > 0.0 { cpu_after / cpu_before } else { 1.0 };
    // With twice as many CPUs, a stage hardly ever waits for one.
    let queueing = if improvement == Some(Improvement::Machine) { 0.0 } else { competition };
    let busy = |index: usize| {
        let stage = &phase.stages[index];
        let speed = speed(Improvement::Stage(index));
        stage.service_seconds() / speed + stage.run_queue_seconds * queueing
    };
    let shrink = |index: usize| {
        let stage = &phase.stages[index];
        let before = stage.service_seconds() + stage.run_queue_seconds;
        if before > 0.0 { busy(index) / before } else { 1.0 }
    };
    let improved = |index: usize| improvement == Some(Improvement::Stage(index));
    let life = |index: usize, of_longest: bool| {
        let stage = &phase.stages[index];
        let waited = stage.starved_seconds + stage.blocked_seconds;
        let total = phase.blame.total(index).as_secs_f64();
        let share = |cause: Cause| phase.blame.of(index, cause).as_secs_f64() / total;
        let waited_after = if total > 0.0 {
            let for_stages = (0..phase.stages.len())
                // Another stage may work while the improved one does, and then no longer waits.
                .filter(|&other| of_longest || !improved(other))
                .map(|other| share(Cause::Stage(other)) * shrink(other))
                .sum::<f64>();
            let for_input = share(Cause::Input) / speed(Improvement::Input);
            let for_output = share(Cause::Output) / speed(Improvement::Output);
            waited * (for_stages + for_input + for_output)
        } else {
            waited
        };
        busy(index) + waited_after
    };
    let longest = longest(&phase.stages);
    let lives = (0..phase.stages.len()).map(|index| life(index, longest == Some(index)));
    lives.fold(0.0, f64::max).max(cpu_after / (cpus * speed(Improvement::Machine)))
}
