//! Estimates how much shorter a run would be if its bottleneck were faster.
//!
//! Samples show for how long each stage was critical (see [`critical`]). If the stage were twice as
//! fast, that time would be half as long, unless another stage works for more than half of it: the
//! phase cannot be shorter than its stages need. If the CPUs are the bottleneck, a faster stage
//! saves half of its CPU time, divided by the number of CPUs, and more CPUs save the time for which
//! critical stages are queued behind other stages.
//!
//! [`critical`]: crate::pipeline::critical

use contend_record::pipe::{BottleneckKind, Phase, Stage};

use super::Situation;
use crate::pipeline::account::PhaseAccount;
use crate::pipeline::critical::Critical;

/// Factor by which an improvement increases the speed of a stage, the input or the output, or the
/// number of CPUs.
const SPEED_UP: f64 = 2.0;

/// What is made twice as fast or, for CPUs, twice as many.
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
    /// Returns the improvement that would relieve the bottleneck of `phase`, or `None` if the phase
    /// has no bottleneck.
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

/// Returns by how many seconds `improvement` would shorten a phase. `is_machine` is whether the
/// CPUs are the bottleneck of the phase.
pub(super) fn saving(
    situation: &Situation<'_>,
    phase: &PhaseAccount,
    is_machine: bool,
    improvement: Improvement,
) -> f64 {
    let cpus = situation.cpus;
    let cpu: f64 = phase.stages.iter().map(Stage::cpu_seconds).sum();
    let of_critical = |critical: Critical, cpu_saved: f64| {
        let seconds = phase.critical.of(critical).as_secs_f64();
        let worked = |stage: usize| phase.critical.worked(critical, stage).as_secs_f64();
        let others = (0..phase.stages.len()).filter(|&stage| critical != Critical::Stage(stage));
        let needed = others.map(worked).fold(seconds / SPEED_UP, f64::max);
        let by_cpus = phase.seconds() - (cpu - cpu_saved) / cpus;
        (seconds - needed).min(by_cpus)
    };
    let saved = match improvement {
        Improvement::Stage(index) => {
            let cpu_saved = phase.stages[index].cpu_seconds() * (1.0 - 1.0 / SPEED_UP);
            if is_machine {
                cpu_saved / cpus
            } else {
                of_critical(Critical::Stage(index), cpu_saved)
            }
        }
        Improvement::Machine => {
            let queued = |index: usize| {
                let stage = &phase.stages[index];
                let active = stage.on_cpu_seconds + stage.run_queue_seconds;
                let share = if active > 0.0 { stage.run_queue_seconds / active } else { 0.0 };
                share * phase.critical.of(Critical::Stage(index)).as_secs_f64()
            };
            let queued: f64 = (0..phase.stages.len()).map(queued).sum();
            let of_others = situation.others_share * phase.seconds() * cpus;
            let queued = if cpu > 0.0 { queued * cpu / (cpu + of_others) } else { 0.0 };
            let slowest = phase.stages.iter().map(Stage::service_seconds).fold(0.0, f64::max);
            let needed = slowest.max(cpu / (SPEED_UP * cpus)).max(phase.seconds() / SPEED_UP);
            queued.min(phase.seconds() - needed)
        }
        Improvement::Input => of_critical(Critical::Input, 0.0),
        Improvement::Output => of_critical(Critical::Output, 0.0),
    };
    saved.max(0.0)
}
