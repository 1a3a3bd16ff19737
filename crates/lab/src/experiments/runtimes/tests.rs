//! Tests with fake probes that give wrong answers, and with real ones.

use std::time::Duration;

use super::memory_missing;
use super::probe::Probe;
use super::program::Program;
use super::table::{DEFAULT, Row, Source, TABLE};
use crate::engine::experiment::SubjectError;
use crate::support::limits::UnitKind;

/// A script that simulates a probe: the name of the unit selects its answers.
const FAKE_PROBE: Program = Program {
    files: &[("fake-probe.sh", include_str!("fake-probe.sh"))],
    tools: &["sh"],
    version: "-c :",
    make: &[],
    environment: &[],
    is_cached: false,
};

pub(super) fn fake_probe(unit: &'static str) -> Row {
    Row {
        unit,
        source: Source::Program { program: &FAKE_PROBE, run: &["sh", "fake-probe.sh"] },
        ..DEFAULT
    }
}

fn parks_and_wakes(row: &Row, n: u64) -> Result<(), SubjectError> {
    let mut probe = Probe::start(row)?;
    for _ in 0..2 {
        probe.park(n, row.hold(n))?;
        assert!(probe.memory_use()?.user > 0);
        probe.wake(n)?.map_err(|early| early.of(n))?;
        probe.rest()?;
    }
    Ok(())
}

#[test]
fn units_that_are_missing_or_end_early_are_an_error() {
    parks_and_wakes(&fake_probe("the-truth"), 3).expect("all existed");
    for (unit, complaint) in [
        ("too-few", "of 3 units 2 existed and waited"),
        ("too-many", "of 3 units 4 existed and waited"),
        ("early", "of 3 units 1 had ended before their memory was read"),
        ("lost", "of 3 units 2 have ended"),
        ("twice", "of 3 units 4 have ended"),
        ("nonsense", "unexpected answer of the probe: hello"),
        ("refuses", "there is no room (the probe ended: exit status: 1)"),
        ("mumbles", "it will not do: \u{fffd} (the probe ended: signal: 9 (SIGKILL))"),
        ("leaves", "the probe ended: exit status: 0"),
    ] {
        let error = parks_and_wakes(&fake_probe(unit), 3).expect_err(unit).to_string();
        assert!(error.contains(complaint), "{unit}: {error}");
    }
}

#[test]
fn a_probe_that_never_answers_times_out_and_its_errors_are_shown() {
    let mut probe = Probe::start(&fake_probe("hangs")).expect("a probe");
    probe.park(3, Duration::from_millis(100)).expect("they are there");
    probe.timeout = Duration::from_secs(2);
    let error = probe.wake(3).expect_err("nothing comes").to_string();
    assert_eq!(error, "one of them is lost (no line `woken` within 2.1 s)");
}

/// Checks that units that are processes but not visible are an error. The fake probe has no child
/// processes, as if the kernel did not list them.
#[test]
fn invisible_processes_are_an_error() {
    let row = Row { task: Some(UnitKind::Process), ..fake_probe("the-truth") };
    let error = parks_and_wakes(&row, 3).expect_err("there are none").to_string();
    assert!(error.contains("of 3 processes 0 can be seen"), "{error}");
}

#[test]
fn a_probe_without_messages_says_why() {
    let mut probe = Probe::start(&fake_probe("the-truth")).expect("a probe");
    let error = probe.round_trips(10).expect_err("it has none").to_string();
    assert_eq!(error, "no unit receives");
}

/// Tests probes in other languages whose toolchains are installed. Other tests run the built-in
/// probes through the executable.
#[test]
fn every_kind_of_unit_waits_ends_and_answers() {
    let programs = TABLE.iter().filter(|row| matches!(row.source, Source::Program { .. }));
    for row in programs.filter(|row| row.missing().is_none()) {
        // Old versions of a runtime lack some units. If that cannot be known beforehand, the probe
        // fails at its start.
        let mut probe = match Probe::start(row) {
            Ok(probe) => probe,
            Err(error) => {
                assert!(["java-virtual", "greenlet"].contains(&row.unit), "{}: {error}", row.unit);
                continue;
            }
        };
        assert!(!probe.version.is_empty(), "{}", row.unit);
        for n in [1, 50] {
            let mut park_and_wake = |delay| {
                let woken = probe.park(n, delay).and_then(|_| probe.wake(n))?;
                probe.rest()?;
                Ok::<_, SubjectError>(woken)
            };
            // On a busy machine, units with a short delay may end before all of them wait.
            let delays = [800, 3000, 10_000].map(Duration::from_millis);
            let is_done = delays.into_iter().any(|delay| {
                let woken = park_and_wake(delay);
                woken.unwrap_or_else(|error| panic!("{}: {error}", row.unit)).is_ok()
            });
            assert!(is_done, "{}: some of {n} ended early", row.unit);
        }
        let answered = probe.round_trips(100);
        assert_eq!(answered.is_ok(), row.has_messages, "{}: {answered:?}", row.unit);
    }
}

#[test]
fn the_elixir_library_is_embedded_with_all_of_its_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../elixir/lib/callback_thread");
    let elixir_row =
        TABLE.iter().find(|row| row.unit == "sister-closure").expect("it is in the table");
    let Source::Program { program, .. } = &elixir_row.source else { panic!("it is a program") };
    for file in std::fs::read_dir(folder).expect("it is there").flatten() {
        let name = format!("lib/callback_thread/{}", file.file_name().to_string_lossy());
        assert!(program.files.iter().any(|(other, _)| *other == name), "{name} is not embedded");
    }
}

#[test]
fn units_without_enough_memory_are_skipped_with_the_reason() {
    assert_eq!(memory_missing(6200, 1_000_000, 6_200_000_000), None);
    assert_eq!(
        memory_missing(6200, 1_000_000, 6_100_000_000).as_deref(),
        Some("needs about 6200 MB of memory; 6100 MB are available")
    );
    assert!(TABLE.iter().all(|row| row.bytes > 0), "of each kind");
}

#[test]
fn names_differ() {
    let mut names = super::table::names();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TABLE.len());
}
