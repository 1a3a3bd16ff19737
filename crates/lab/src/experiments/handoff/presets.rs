//! `handoff/0` to `handoff/9`: the programs of the test report, and `handoff/sweep`.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::preset::Preset;
use super::primitives::{EVENT, NONE, SEMAPHORE, SLEEP, SLEEP_ONLY, TIMER};
use super::settings::{TICK, TURNS};
use super::turn_taking::{ResolvedCase, SETTINGS, TurnTaking};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling, Scope};
use crate::engine::setting::Setting;
use crate::support::partners::Placement;

const EVENTS: Preset =
    Preset { mechanisms: [EVENT; 4], factor: 1, main_works: false, placement: Placement::Free };

const ABOUT: &str = "One of the programs of the test report on inter-process synchronisation \
    (Windows), reimplemented. Main and sub alternate turns: sub computes (37 µs of CPU time, or 100 \
    times that) while main waits for it. The value is the time of 10,000 turns. If a turn takes \
    long, fewer are run and the time is scaled up; `turns` says how many ran. A sleep is requested \
    for 1 ms and ends at a multiple of `tick_us`, if that is not 0: 15,625 µs on the machines of \
    the report. `load_max` and `load_mean` are the CPU time of both partners in percent of all \
    CPUs, in the busiest 50 ms and overall. `p50`, `p99` and `p99.9` are those of single turns; \
    `p99` needs 100 turns and `p99.9` 1,000. `not_ready` is the percentage of turns in which main polled \
    before sub was ready. `predicted` is the result of a model: if main polls, a turn in which sub \
    is not ready ends with the first sleep that ends after sub's work (at a tick, or after 1 ms \
    and the timer slack), and any other turn ends with the work; if main is notified, a turn is \
    the work and two hand-offs, which are measured with twice the work; if main does not wait, it \
    is the work.";

macro_rules! preset {
    ($constant:ident, $name:literal, $summary:literal, $preset:expr) => {
        #[doc = concat!("The definition of `handoff/", $name, "`.")]
        pub const $constant: Experiment = Experiment {
            name: concat!("handoff/", $name),
            summary: $summary,
            about: ABOUT,
            view: View::HandoffPreset,
            unit: Unit::Nanoseconds,
            sampling: Sampling::Fixed(2),
            fit: Fit::None,
            settings: &SETTINGS,
            cases: |scope| cases(scope, &$preset),
            unavailable: |parameters| {
                ResolvedCase::resolve(parameters, &$preset).pair.placement.unavailable()
            },
            alternates_cpus: |parameters| {
                ResolvedCase::resolve(parameters, &$preset).pair.placement.uses_two_cpus()
            },
            demands: Demands::NONE.with_cost_ms(100, 900).with_conflict(|parameters| {
                ResolvedCase::resolve(parameters, &$preset).conflict(parameters)
            }),
            subject: |parameters| Ok(Box::new(TurnTaking::new(parameters, &$preset)?)),
        };
    };
}

preset!(
    PRESET_0,
    "0",
    "semaphore to signal, sleep-polling to wait (the original program)",
    Preset::new(SEMAPHORE, SLEEP, SLEEP)
);
preset!(
    PRESET_0_PLUS,
    "0+",
    "as handoff/0, with 100 times the work",
    Preset::new(SEMAPHORE, SLEEP, SLEEP).with_factor_100()
);
preset!(
    PRESET_1,
    "1",
    "no synchronisation; main sleeps in every turn",
    Preset::new(NONE, SLEEP_ONLY, SEMAPHORE)
);
preset!(
    PRESET_1A,
    "1a",
    "no synchronisation; main computes instead of sleeping",
    Preset::new(NONE, NONE, SEMAPHORE).with_main_working()
);
preset!(
    PRESET_1A_PLUS,
    "1a+",
    "as handoff/1a, with 100 times the work",
    Preset::new(NONE, NONE, SEMAPHORE).with_main_working().with_factor_100()
);
preset!(
    PRESET_2,
    "2",
    "semaphores in both directions",
    Preset::new(SEMAPHORE, SEMAPHORE, SEMAPHORE)
);
preset!(
    PRESET_2_PLUS,
    "2+",
    "as handoff/2, with 100 times the work",
    Preset::new(SEMAPHORE, SEMAPHORE, SEMAPHORE).with_factor_100()
);
preset!(
    PRESET_3,
    "3",
    "semaphore to signal, timer-polling to wait",
    Preset::new(SEMAPHORE, TIMER, TIMER)
);
preset!(PRESET_4, "4", "events in both directions", EVENTS);
preset!(PRESET_4_PLUS, "4+", "as handoff/4, with 100 times the work", EVENTS.with_factor_100());
preset!(
    PRESET_8,
    "8",
    "as handoff/0, with each partner on a CPU of its own",
    Preset::new(SEMAPHORE, SLEEP, SLEEP).with_placement(Placement::TwoCpus)
);
preset!(
    PRESET_9,
    "9",
    "as handoff/0, with both partners on one CPU",
    Preset::new(SEMAPHORE, SLEEP, SLEEP).with_placement(Placement::Same)
);

/// The definition of `handoff/sweep`.
pub const SWEEP: Experiment = Experiment {
    name: "handoff/sweep",
    summary: "time of turns by mechanism, placement, work and tick, with predictions",
    about: "Two partners alternate turns as in handoff/2. Unlike the test report, this varies the \
        mechanism by which sub notifies main (`to_main`), the placement, the work, and the clock \
        tick. Values and predictions are those of handoff/0 to handoff/9.",
    view: View::HandoffPreset,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(2),
    fit: Fit::None,
    settings: &SETTINGS,
    cases: sweep_cases,
    unavailable: |parameters| {
        ResolvedCase::resolve(parameters, &SWEEP_BASE).pair.placement.unavailable()
    },
    alternates_cpus: |parameters| {
        ResolvedCase::resolve(parameters, &SWEEP_BASE).pair.placement.uses_two_cpus()
    },
    demands: Demands::NONE.with_cost_ms(100, 900).with_conflict(|parameters| {
        ResolvedCase::resolve(parameters, &SWEEP_BASE).conflict(parameters)
    }),
    subject: |parameters| Ok(Box::new(TurnTaking::new(parameters, &SWEEP_BASE)?)),
};

const SWEEP_BASE: Preset = Preset::new(SEMAPHORE, SEMAPHORE, SEMAPHORE);

/// Returns the cases of a preset. Each has a `placement` parameter, even if the scheduler places
/// the partners.
fn cases(scope: &Scope, preset: &Preset) -> Vec<Parameters> {
    let default = Parameters::new().with(names::PLACEMENT, preset.placement.name());
    with_ticks_and_turns(scope, preset, vec![default])
}

fn sweep_cases(scope: &Scope) -> Vec<Parameters> {
    let mechanisms = scope.choose(
        &["semaphore", "event", "pipe", "spin-futex", "sleep"],
        &["semaphore", "sleep"],
        &["semaphore"],
    );
    let factors = scope.choose(&[1, 100_u64], &[1], &[1]);
    let mut cases = Vec::new();
    for &mechanism in mechanisms {
        for placement in [Placement::Same, Placement::TwoCpus] {
            for &factor in factors {
                let case = Parameters::new().with("to_main", mechanism);
                cases.push(case.with(names::PLACEMENT, placement.name()).with("factor", factor));
            }
        }
    }
    with_ticks_and_turns(scope, &SWEEP_BASE, cases)
}

/// Applies the user's parameters, expands each case with a sleeping partner into one case for each
/// tick, and sets the number of turns unless the user has chosen it.
fn with_ticks_and_turns(scope: &Scope, preset: &Preset, cases: Vec<Parameters>) -> Vec<Parameters> {
    let all_but_tick: Vec<&Setting> =
        SETTINGS.iter().copied().filter(|setting| setting.name != TICK.name).collect();
    let ticks: &[u64] = scope.choose(&[0, 1000, 10_000, 15_625], &[15_625], &[0]);
    let ticks = scope.choices.numbers(TICK.name, ticks);
    // Maximum expected time of a sample, in microseconds.
    let max_sample_us = scope.choose(&[1_000_000_u64], &[300_000], &[20_000])[0];
    let mut finished = Vec::new();
    for case in scope.choices.applied(cases, &all_but_tick) {
        let cases_by_tick = if ResolvedCase::resolve(&case, preset).sleeps() {
            ticks.iter().map(|&tick| case.clone().with(TICK.name, tick)).collect()
        } else {
            vec![case]
        };
        finished.extend(cases_by_tick.into_iter().map(|case| {
            let default = ResolvedCase::resolve(&case, preset).turns_within(max_sample_us);
            let turns = case.number(TURNS.name).unwrap_or(default);
            case.without(TURNS.name).with(TURNS.name, turns)
        }));
    }
    finished
}
