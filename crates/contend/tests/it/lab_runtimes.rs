//! Tests of the units of every runtime with the real executable.

use serde_json::Value;

use crate::lab::{check_case, check_schema, documentation};
use crate::support::{cases, has, lab_record, metric, skip};

/// Kinds of units, with the programs that they need.
const KINDS: [(&str, &[&str]); 8] = [
    ("goroutine", &["go"]),
    ("java-platform", &["java", "javac"]),
    ("coroutine", &["g++"]),
    ("node-timer", &["node"]),
    ("asyncio", &["python3"]),
    ("beam-process", &["erl", "erlc"]),
    ("sister-registered", &["elixir", "elixirc"]),
    ("callback", &[]),
];

fn unit(case: &Value) -> &str {
    case["parameters"]["unit"].as_str().expect("a name")
}

#[test]
fn every_kind_of_unit_has_a_figure_or_a_reason() {
    let missing: Vec<_> =
        KINDS.iter().filter(|(_, programs)| !programs.iter().all(|program| has(program))).collect();
    let record = lab_record(&["runtime/memory", "runtime/round-trip", "--smallest"]);
    check_schema(&record);
    let docs = documentation();
    let reasons = ["java-virtual", "greenlet"]; // not in every version of Java; not part of Python
    let mut units = Vec::new();
    for case in cases(&record) {
        check_case(case, &docs);
        let unit = unit(case);
        units.push(unit.to_owned());
        match case["skipped"].as_str() {
            Some(reason) if reason.ends_with(" is not installed") => {}
            Some(reason) => assert!(reasons.contains(&unit), "{unit}: {reason}"),
            None => {
                assert!(case["median"].is_number(), "{unit}");
                assert!(
                    case["facts"]["version"].as_str().is_some_and(|text| !text.is_empty()),
                    "{unit}"
                );
                if case["experiment"] == "runtime/memory" {
                    assert!(metric(case, "create") > 0.0, "{unit}");
                }
            }
        }
    }
    for own in [
        "callback",
        "fork",
        "thread",
        "tokio-sleep",
        "tokio-pending",
        "tokio-oneshot",
        "tokio-mpsc",
        "smol",
    ] {
        let of = |case: &&Value| unit(case) == own && case["median"].is_number();
        assert!(cases(&record).iter().any(|case| of(&case)), "{own}");
    }
    for (kind, _) in KINDS {
        assert!(units.iter().any(|unit| unit == kind), "{kind}");
    }
    if let Some((kind, programs)) = missing.first() {
        skip("every_kind_of_unit_has_a_figure_or_a_reason", &format!("{kind} needs {programs:?}"));
    }
}

#[test]
fn max_units_limits_the_number_of_units() {
    let record = lab_record(&[
        "runtime/memory",
        "--quick",
        "--set",
        "unit=tokio-pending",
        "--max-units",
        "1000",
    ]);
    let numbers: Vec<_> =
        cases(&record).iter().map(|case| case["parameters"]["n"].as_u64().expect("n")).collect();
    assert_eq!(numbers, [100, 1000]);
}

/// Tests that the probe frees its own data about units when they end. It keeps at least 8 bytes, an
/// address, for each unit that runs.
#[test]
fn ended_units_leave_less_than_4_bytes_each() {
    const UNITS: u32 = 300_000;
    // On a busy machine, a runtime may need more than a second to free its memory.
    const ATTEMPTS: u32 = 3;
    let (units, n) = ("unit=callback,tokio-oneshot,tokio-mpsc", format!("n={UNITS}"));
    let mut left = Vec::new();
    for _ in 0..ATTEMPTS {
        let record = lab_record(&["runtime/memory", "--set", units, "--set", &n]);
        assert_eq!(cases(&record).len(), 3);
        let bytes = |case| (unit(case).to_owned(), metric(case, "left_1s"));
        left = cases(&record).iter().map(bytes).collect();
        if left.iter().all(|(_, bytes)| *bytes < 4.0 * f64::from(UNITS)) {
            return;
        }
    }
    panic!("bytes are left: {left:?}");
}
