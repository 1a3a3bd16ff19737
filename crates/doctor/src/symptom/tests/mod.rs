//! Tests of the rules on constructed figures.
//!
//! For each symptom, a sick program gives the finding, with a gain in the expected range. Each of the
//! healthy programs that look alike differs from a sick one in the figure that a condition of the
//! rule examines, and gives none. Without that condition, the test fails.

mod cpu_limit;
mod fork_storm;
mod interpreter_lock;
mod lock_contention;
mod lock_polling;
mod lock_step;
mod not_concurrency;
mod oversubscription;
mod pipeline;
mod serial_section;
mod sleep_polling;
mod spinning;
mod tiny_io;
mod uneven_work;

use std::ops::RangeInclusive;

use contend_record::doctor::Symptom;

use super::{Found, TABLE, findings};
use crate::facts::Facts;
use crate::facts::testing::Program;

type Find = fn(&Facts) -> Option<Found>;

/// Returns what the rule finds, which must have a gain in the range.
fn finds(find: Find, program: Program, gain: RangeInclusive<f64>) -> Found {
    let found = find(&program.facts()).expect("a finding");
    let estimated = found.gain.expect("an estimated gain");
    assert!(gain.contains(&estimated), "gain {estimated}: {}", found.message);
    found
}

/// Checks that the rule finds nothing, and says why it should not.
fn is_silent(find: Find, program: Program, why: &str) {
    let found = find(&program.facts());
    assert!(found.is_none(), "{why}: {}", found.unwrap_or_default().message);
}

/// Returns a sick program.
type Sick = fn() -> Program;

/// A sick program for each symptom.
const SICK: &[(Symptom, Sick)] = &[
    (Symptom::CpuLimit, cpu_limit::pinned),
    (Symptom::InterpreterLock, interpreter_lock::computing),
    (Symptom::LockPolling, lock_polling::retrying),
    (Symptom::SleepPolling, sleep_polling::mailboxes),
    (Symptom::ForkStorm, fork_storm::loop_of_commands),
    (Symptom::TinyIo, tiny_io::byte_writes),
    (Symptom::Oversubscription, oversubscription::switching),
    (Symptom::LockContention, lock_contention::one_mutex),
    (Symptom::LockStep, lock_step::turns),
    (Symptom::Spinning, spinning::flag),
    (Symptom::NotConcurrency, not_concurrency::faults),
    (Symptom::Pipeline, pipeline::slow_stage),
    (Symptom::UnevenWork, uneven_work::straggler),
    (Symptom::SerialSection, serial_section::producer),
];

#[test]
fn the_first_finding_of_a_sick_program_is_its_symptom() {
    for rule in TABLE {
        let sick = SICK.iter().find(|(symptom, _)| *symptom == rule.symptom);
        let (symptom, program) = sick.unwrap_or_else(|| panic!("no program: {:?}", rule.symptom));
        let findings = findings(&program().facts());
        let found: Vec<Symptom> = findings.iter().map(|finding| finding.symptom).collect();
        assert_eq!(found.first(), Some(symptom), "{found:?}");
        let first = &findings[0];
        let texts = [&first.message, &first.argument, &first.remedy, &first.unless];
        assert!(texts.iter().all(|text| !text.is_empty()) && !first.evidence.is_empty());
        let share = first.gain_share.unwrap_or(0.0);
        assert!((0.0..=1.0).contains(&share), "{symptom:?}: {share}");
    }
}

#[test]
fn an_idle_program_and_a_busy_one_have_no_finding() {
    use crate::facts::testing::{Program, waiting};
    use contend_record::doctor::{Cause, ThreadState};
    let idle = Program::on(2.0)
        .threads(1..=4, |thread| thread.waits(waiting(ThreadState::Poll), 1.0))
        .cause(Cause::Idle, 1.0);
    let busy =
        Program::on(2.0).threads(1..=2, |thread| thread.runs(1.0, 100.0)).levels(&[0.0, 1.0]);
    for program in [idle, busy] {
        let findings = findings(&program.facts());
        assert!(findings.is_empty(), "{findings:?}");
    }
}

/// One time has one reason: a program that sleeps while it holds a lock has one finding.
#[test]
fn of_several_reasons_for_the_same_time_the_more_specific_one_counts() {
    let both = || {
        let contended = lock_contention::one_mutex();
        contended.wakes(1, 2, 1_000.0).wakes(1, 3, 1_000.0).levels(&[0.9, 0.02])
    };
    let step = lock_step::turns().wakes(1, 3, 1_000.0);
    assert!(super::lock_contention::find(&both().facts()).is_some());
    assert!(super::lock_step::find(&step.clone().facts()).is_some());
    for program in [both(), step] {
        assert_eq!(findings(&program.facts()).len(), 1);
    }
}
