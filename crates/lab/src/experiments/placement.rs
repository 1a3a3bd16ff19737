//! `placement/cpus`: the time of a hand-off between every pair of CPUs.

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::topology::{self, Cpu};

use super::handoff::mechanisms::HandOff;
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::setting::Setting;
use crate::support::partners::{Pair, PartnerKind, Placement};

/// The definition of `placement/cpus`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "placement/cpus",
    summary: "time of a hand-off between every pair of CPUs, as a heat map",
    about: "Two processes, one bound to CPU `from` and the other to CPU `to`, alternate turns as \
        in handoff/mechanisms: `cache-line` spins, `futex` and `pipe` sleep, and are also measured \
        on a single CPU. The value is half of a round trip. A cache line takes longer the farther \
        two CPUs are apart; for the others, waking an idle CPU matters more than the distance. \
        Which CPUs are threads of one core and which share caches comes from sysfs, which need not \
        be true in a virtual machine. On machines with more than 16 CPUs, 16 are measured that \
        cover the full range of distances.",
    view: View::CpuPairs,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(7),
    fit: Fit::None,
    settings: &SETTINGS,
    cases,
    unavailable,
    alternates_cpus: |parameters| parameters.get(FROM.name) != parameters.get(TO.name),
    demands: Demands::NONE,
    subject: |parameters| Ok(Box::new(CpuPair::new(parameters)?)),
};

const FROM: Setting = Setting::number(names::FROM, "number of the CPU on which main runs", 0, 4095);

const TO: Setting = Setting::number(names::TO, "number of the CPU on which sub runs", 0, 4095);

const SETTINGS: [&Setting; 2] = [&FROM, &TO];

const CACHE_LINE: &str = "cache-line";
const MECHANISMS: [&str; 3] = [CACHE_LINE, "futex", "pipe"];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let max_cpus = scope.choose(&[16], &[6], &[2])[0];
    let cpus = topology::spread(&scope.cpus.allowed, max_cpus);
    let case = |mechanism: &str, from: &Cpu, to: &Cpu| {
        let case = Parameters::new().with(names::MECHANISM, mechanism);
        case.with(FROM.name, from.number as u64).with(TO.name, to.number as u64)
    };
    let mut cases = Vec::new();
    for mechanism in MECHANISMS {
        for (index, from) in cpus.iter().enumerate() {
            // Two spinning partners cannot share a CPU. On a machine with a single CPU, the case
            // stays in the list, as unavailable.
            let include_same = mechanism != CACHE_LINE || cpus.len() == 1;
            let others = &cpus[index + usize::from(!include_same)..];
            cases.extend(others.iter().map(|to| case(mechanism, from, to)));
        }
    }
    scope.choices.applied(cases, &SETTINGS)
}

fn pair(parameters: &Parameters) -> [usize; 2] {
    [&FROM, &TO].map(|setting| {
        let number = parameters.number(setting.name);
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    })
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let [from, to] = pair(parameters);
    let cpus = topology::allowed();
    let missing = [from, to].into_iter().find(|cpu| cpus.iter().all(|c| c.number != *cpu));
    if let Some(missing) = missing {
        return Some(format!("CPU {missing} does not exist or may not be used"));
    }
    if from == to && parameters.text(names::MECHANISM) == Some(CACHE_LINE) {
        let why = if cpus.len() == 1 {
            "two CPUs, and only one may be used"
        } else {
            "two different CPUs"
        };
        return Some(format!("needs {why}"));
    }
    None
}

/// The subject of a case, which times hand-offs between two processes, each bound to one CPU of
/// `pair`.
struct CpuPair {
    hand_off: HandOff,
    pair: [usize; 2],
}

impl CpuPair {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let mechanism = match parameters.text(names::MECHANISM) {
            Some(CACHE_LINE) | None => "spin",
            Some(other) => other,
        };
        let pair = pair(parameters);
        let placed =
            Pair { kind: PartnerKind::Processes, placement: Placement::On(pair), slack: None };
        let hand_off = HandOff::with_mechanism(mechanism, placed)?;
        Ok(Self { hand_off, pair })
    }
}

impl Subject for CpuPair {
    fn sample(
        &mut self,
        iterations: u64,
        on_step: &mut dyn FnMut(Step),
    ) -> Result<Sample, SubjectError> {
        self.hand_off.sample(iterations, on_step)
    }

    fn facts(&self) -> Facts {
        let cpus = topology::allowed();
        let [from, to] = self.pair.map(|number| cpus.iter().find(|cpu| cpu.number == number));
        let distance = from.zip(to).map(|(from, to)| from.distance(to).name());
        let mut facts = Facts::from([("topology".to_owned(), topology::describe(&cpus).into())]);
        facts.extend(distance.map(|distance| ("distance".to_owned(), distance.into())));
        facts
    }
}
