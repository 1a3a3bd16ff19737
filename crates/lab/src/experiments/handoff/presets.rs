//! `handoff/0` to `handoff/9`: the cases of the document, each a row of one table.

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};

use super::preset::Preset;
use super::settings::{TICK, TURNS};
use super::turns::{SETTINGS, Settled, Turns};
use super::ways::{EVENT, NONE, PAUSE, SEMAPHORE, SLEEP, TIMER};
use crate::engine::experiment::{Demands, Experiment, Fit, Sampling, Scope};
use crate::engine::setting::Setting;
use crate::support::pair::Placement;

const EVENTS: Preset =
    Preset { mechanisms: [EVENT; 4], factor: 1, main_works: false, placement: Placement::Free };

const ABOUT: &str = "One of the document's cases. Main and sub take turns: sub computes (37 µs of CPU \
    time, or 100 times that), main waits for it; the value is the time of 10,000 turns. Fewer are \
    taken where a turn takes long, and the time is scaled up: `turns` says from how many. A sleep is \
    asked to last 1 ms, and ends with a tick of `tick_us` if that is not 0: 15,625 µs on the document's \
    machines. `load_max` and `load_mean` are the CPU time of both in percent of all CPUs, in pieces of \
    50 ms and altogether; `p50`, `p99` and `p99.9` are those of single turns, as far as there are enough \
    (100, 1,000); `not_ready` is the part \
    of the turns, in percent, in which main looked in vain. `predicted` is what a model says: where \
    main sleeps, a turn in which it looks in vain ends with the first sleep behind sub's work (the tick, \
    or 1 ms and the timer's slack), another one with the work; where it is told, a turn is the work and \
    two hand-offs, which are measured with twice the work; where nobody waits, it is the work.";

macro_rules! preset {
    ($constant:ident, $name:literal, $summary:literal, $preset:expr) => {
        #[doc = concat!("The row of `handoff/", $name, "`.")]
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
                Settled::of(parameters, &$preset).pair.placement.unavailable()
            },
            hands_over: |parameters| Settled::of(parameters, &$preset).pair.placement.crosses(),
            demands: Demands::NONE.lasting(100, 900),
            subject: |parameters| Ok(Box::new(Turns::new(parameters, &$preset)?)),
        };
    };
}

preset!(
    ZERO,
    "0",
    "told by a semaphore, waited for by sleeping: the original form",
    Preset::of(SEMAPHORE, SLEEP, SLEEP)
);
preset!(
    ZERO_PLUS,
    "0+",
    "0 with 100 times the work",
    Preset::of(SEMAPHORE, SLEEP, SLEEP).a_hundred_times()
);
preset!(
    ONE,
    "1",
    "no synchronisation, but a sleep in every turn",
    Preset::of(NONE, PAUSE, SEMAPHORE)
);
preset!(
    ONE_A,
    "1a",
    "no synchronisation, and main computes instead of sleeping",
    Preset::of(NONE, NONE, SEMAPHORE).with_work_of_main()
);
preset!(
    ONE_A_PLUS,
    "1a+",
    "1a with 100 times the work",
    Preset::of(NONE, NONE, SEMAPHORE).with_work_of_main().a_hundred_times()
);
preset!(TWO, "2", "semaphores both ways", Preset::of(SEMAPHORE, SEMAPHORE, SEMAPHORE));
preset!(
    TWO_PLUS,
    "2+",
    "2 with 100 times the work",
    Preset::of(SEMAPHORE, SEMAPHORE, SEMAPHORE).a_hundred_times()
);
preset!(
    THREE,
    "3",
    "told by a semaphore, waited for with a timer",
    Preset::of(SEMAPHORE, TIMER, TIMER)
);
preset!(FOUR, "4", "events both ways", EVENTS);
preset!(FOUR_PLUS, "4+", "4 with 100 times the work", EVENTS.a_hundred_times());
preset!(
    EIGHT,
    "8",
    "0 with each partner on a CPU of its own",
    Preset::of(SEMAPHORE, SLEEP, SLEEP).on(Placement::Apart)
);
preset!(
    NINE,
    "9",
    "0 with both partners on the same CPU",
    Preset::of(SEMAPHORE, SLEEP, SLEEP).on(Placement::Same)
);

/// The row of `handoff/sweep`.
pub const SWEEP: Experiment = Experiment {
    name: "handoff/sweep",
    summary: "turns over mechanism, placement, work and tick, the model beside each",
    about: "Two partners take turns as in handoff/2, over what the document did not vary: by which \
            mechanism sub tells main (`to_main`), where they run, how much sub computes, and where \
            clocks tick. Values and the model are those of handoff/0 to handoff/9.",
    view: View::HandoffPreset,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(2),
    fit: Fit::None,
    settings: &SETTINGS,
    cases: sweep,
    unavailable: |parameters| Settled::of(parameters, &BASE).pair.placement.unavailable(),
    hands_over: |parameters| Settled::of(parameters, &BASE).pair.placement.crosses(),
    demands: Demands::NONE.lasting(100, 900),
    subject: |parameters| Ok(Box::new(Turns::new(parameters, &BASE)?)),
};

const BASE: Preset = Preset::of(SEMAPHORE, SEMAPHORE, SEMAPHORE);

/// A case of every preset: the place is always shown.
fn cases(scope: &Scope, preset: &Preset) -> Vec<Parameters> {
    let usual = Parameters::new().with(names::PLACEMENT, preset.placement.name());
    finish(scope, preset, vec![usual])
}

fn sweep(scope: &Scope) -> Vec<Parameters> {
    let mechanisms = scope.choose(
        &["semaphore", "event", "pipe", "spin-futex", "sleep"],
        &["semaphore", "sleep"],
        &["semaphore"],
    );
    let factors = scope.choose(&[1, 100_u64], &[1], &[1]);
    let mut cases = Vec::new();
    for &mechanism in mechanisms {
        for placement in [Placement::Same, Placement::Apart] {
            for &factor in factors {
                let case = Parameters::new().with("to_main", mechanism);
                cases.push(case.with(names::PLACEMENT, placement.name()).with("factor", factor));
            }
        }
    }
    finish(scope, &BASE, cases)
}

/// The cases with what was chosen; where partners sleep, one for each tick.
fn finish(scope: &Scope, preset: &Preset, cases: Vec<Parameters>) -> Vec<Parameters> {
    let all_but_tick: Vec<&Setting> =
        SETTINGS.iter().copied().filter(|setting| setting.name != TICK.name).collect();
    let ticks: &[u64] = scope.choose(&[0, 1000, 10_000, 15_625], &[15_625], &[0]);
    let ticks = scope.choices.numbers(TICK.name, ticks);
    // Turns of a sample: of a second at most, unless they are very long.
    let longest = scope.choose(&[1_000_000_u64], &[300_000], &[20_000])[0];
    let mut finished = Vec::new();
    for case in scope.choices.applied(cases, &all_but_tick) {
        let ticked = if Settled::of(&case, preset).sleeps() {
            ticks.iter().map(|&tick| case.clone().with(TICK.name, tick)).collect()
        } else {
            vec![case]
        };
        finished.extend(ticked.into_iter().map(|case| {
            let usual = Settled::of(&case, preset).turns(longest);
            let turns = case.number(TURNS.name).unwrap_or(usual);
            case.without(TURNS.name).with(TURNS.name, turns)
        }));
    }
    finished
}
