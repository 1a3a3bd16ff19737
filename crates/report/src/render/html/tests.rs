//! Tests of whole pages, from records of earlier runs in `testdata`.

use contend_record::{compare, doctor, lab, pipe, run, versus};
use serde_json::Value;

use super::super::testing::{COMPARE, DOCTOR, LAB, PIPE, RUN, VERSUS, with_each_text};
use super::*;

/// Returns the page of a record; `None` if it is not a valid record.
fn page(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    let page = match value["schema"].as_str()? {
        pipe::SCHEMA => pipe(&serde_json::from_str(json).ok()?),
        doctor::SCHEMA => doctor(&serde_json::from_str(json).ok()?),
        run::SCHEMA => run(&serde_json::from_str(json).ok()?),
        versus::SCHEMA => versus(&serde_json::from_str(json).ok()?),
        compare::SCHEMA => compare(&serde_json::from_str(json).ok()?),
        lab::SCHEMA => lab(&serde_json::from_str(json).ok()?),
        _ => return None,
    };
    Some(page.expect("JSON"))
}

fn all() -> impl Iterator<Item = (&'static str, String)> {
    let records = [PIPE, DOCTOR, RUN, VERSUS, COMPARE].into_iter().chain(LAB);
    records.map(|record| (record, page(record).expect("a valid record")))
}

#[test]
fn pages_contain_their_records() {
    for (record, page) in all() {
        let embedded = embedded_record(&page).expect("a record");
        assert_eq!(self::page(embedded).as_ref(), Some(&page), "a page of the page's record");
        let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        assert_eq!(parse(embedded)["schema"], parse(record)["schema"]);
    }
}

#[test]
fn texts_between_backticks_are_code() {
    let shown = |text: &str| prose(text).into_string();
    assert_eq!(shown("no code"), "no code");
    assert_eq!(shown("`a|b` and `<c>`"), "<code>a|b</code> and <code>&lt;c&gt;</code>");
    assert_eq!(shown("`echo `date``` is odd"), "`echo `date``` is odd");
    assert_eq!(shown("an ` alone"), "an ` alone");
    assert_eq!(shown("`\u{1b}[2J`"), "<code>␛[2J</code>");
}

#[test]
fn charts_have_numbers_tables_and_alternatives() {
    for (record, page) in all() {
        let markup = page.split_once("<script").expect("the record comes last").0;
        assert!(!markup.contains("NaN") && !markup.contains("inf%"), "{record:.200}");
        let count = |text: &str| markup.matches(text).count();
        assert!(count("<figure") > 0, "{record:.200}");
        assert_eq!(count("role=\"img\""), count("aria-label="), "{record:.200}");
        assert!(count("<details><summary>Table") >= count("<figure") - 1, "{record:.200}");
        assert_eq!(count("<figure"), count("class=\"readout\""), "{record:.200}");
        assert!(page.len() < 2_000_000, "{} bytes: {record:.200}", page.len());
    }
}

#[test]
fn each_experiment_of_the_lab_has_a_figure() {
    for record in LAB {
        let page = page(record).expect("a valid record");
        let record: lab::RunRecord = serde_json::from_str(record).expect("a record");
        for name in record.experiments() {
            let is_measured =
                record.cases.iter().any(|case| case.experiment == name && case.median.is_some());
            let figure = format!("<figcaption>{name}: ");
            assert_eq!(page.contains(&figure), is_measured, "{name}");
        }
    }
}

#[test]
fn no_text_of_a_record_is_markup() {
    let long = "x".repeat(10_000);
    let hostile = format!("\"><img src=x onerror=alert(1)></script><script>\u{202e}{long}");
    for record in [PIPE, DOCTOR, RUN, VERSUS, COMPARE, LAB[2]] {
        let mut value: Value = serde_json::from_str(record).expect("JSON");
        let mut checked = 0;
        with_each_text(&mut value, &hostile, &mut |value| {
            // A name of a fixed set cannot be replaced: the record is then damaged.
            let Some(page) = page(&value.to_string()) else { return };
            checked += 1;
            if let Some(place) = page.find("<img") {
                panic!("{}", &page[place.saturating_sub(300)..place + 30]);
            }
            assert_eq!(page.matches("<script").count(), 2);
            assert!(!page.contains('\u{202e}'));
        });
        assert!(checked > 5, "{checked}");
    }
}

#[test]
fn quantities_are_those_of_the_terminal() {
    let record: pipe::PipeRecord = serde_json::from_str(PIPE).expect("a record");
    let page = page(PIPE).expect("a valid record");
    for stage in &record.stages {
        let running = super::super::units::seconds(stage.on_cpu_seconds);
        assert!(page.contains(&format!("{running} running")), "{running}");
    }
    let doctor: doctor::DoctorRecord = serde_json::from_str(DOCTOR).expect("a record");
    let page = self::page(DOCTOR).expect("a valid record");
    for moments in doctor.moments.iter().filter(|moments| moments.seconds > 0.0) {
        let time = super::super::units::seconds(moments.seconds);
        assert!(page.contains(&time), "{time}");
    }
}
