//! Tests that the article's figures confirm its conclusions, and that other figures do not.

use contend_record::Warning;
use contend_record::lab::{Case, Chapter, RunRecord, View};
use contend_record::parameters::Parameters;
use contend_record::warning::WarningId;

use super::super::sample::{case, chapter_text, record};

fn form(name: &str, time: f64, calls: f64, switches: f64, lost: f64) -> Case {
    let parameters = Parameters::new().with("form", name).with("messages", 1_000_000);
    let metrics = [
        ("calls_main", calls),
        ("calls_sub", calls),
        ("main.write", calls),
        ("voluntary_switches_main", switches),
        ("voluntary_switches_sub", 0.0),
        ("user_main", time / 4.0),
        ("user_sub", time / 4.0),
        ("system_main", time / 4.0),
        ("system_sub", time / 4.0),
        ("lost", lost),
    ];
    case(("ipc/one-byte", View::OneByte), parameters, time, &metrics)
}

fn copy(way: &str, block: Option<u64>, time: f64, calls: f64, faults: f64) -> Case {
    let mut parameters = Parameters::new().with("way", way);
    if let Some(block) = block {
        parameters = parameters.with("block", block);
    }
    let parameters =
        parameters.with("bytes", 104_857_600).with("place", "tmpfs").with("cache", "warm");
    case(
        ("copy/file", View::FileCopy),
        parameters,
        time,
        &[("calls", calls), ("minor_faults", faults)],
    )
}

fn shown(cases: Vec<Case>) -> String {
    let record: RunRecord = record(Some(Chapter::SharedMemory), cases);
    chapter_text(&record, 100)
}

#[test]
fn the_articles_figures_confirm_its_conclusions() {
    let text = shown(vec![
        form("pipe", 0.73e9, 1e6, 178_208.0, 0.0),
        form("ring", 0.05e9, 500.0, 200.0, 0.0),
        copy("fgetc-fputc", None, 4.5e8, 51_200.0, 0.0),
        copy("mmap-bytes", None, 1e8, 9.0, 27_200.0),
    ]);
    for letter in ['A', 'B', 'C'] {
        assert!(text.contains(&format!("{letter}. confirmed")), "{text}");
    }
    assert!(text.contains("replaces 2.00M system calls by 1.00k"), "{text}");
    assert!(text.contains("take 50ms instead of 730ms"), "{text}");
}

#[test]
fn other_figures_do_not_confirm_them() {
    let text = shown(vec![
        form("pipe", 0.28e9, 1e6, 4.0, 0.0),
        form("ring", 0.5e9, 1e6, 0.0, 0.0),
        form("cell-unguarded", 5e5, 0.0, 0.0, 999_000.0),
        copy("read-write", Some(4096), 0.8e8, 51_200.0, 0.0),
        copy("read-write", Some(65_536), 0.5e8, 3200.0, 0.0),
        copy("mmap-bytes", None, 1e8, 9.0, 27_200.0),
        copy("mmap-memcpy", None, 0.9e8, 9.0, 27_200.0),
    ]);
    for letter in ['A', 'B', 'C'] {
        assert!(text.contains(&format!("{letter}. not confirmed")), "{text}");
    }
    assert!(text.contains("999k messages are lost"), "{text}");
    assert!(
        text.contains("2 other methods copy faster than mmap and memcpy; the fastest, read-write 64 KiB, is 1.80 times"),
        "{text}"
    );
}

/// The number of calls per message follows from the program; times and switches need two samples.
#[test]
fn single_samples_are_too_few() {
    let mut cases = vec![
        form("pipe", 0.73e9, 1e6, 178_208.0, 0.0),
        form("ring", 0.05e9, 500.0, 200.0, 0.0),
        copy("fgetc-fputc", None, 4.5e8, 51_200.0, 0.0),
        copy("mmap-bytes", None, 1e8, 9.0, 27_200.0),
    ];
    for case in &mut cases {
        case.samples.truncate(1);
    }
    let text = shown(cases);
    for letter in ['A', 'B', 'C'] {
        assert!(text.contains(&format!("{letter}. inconclusive (too few samples)")), "{text}");
    }
    let refuted = shown(vec![form("pipe", 0.28e9, 1e5, 4.0, 0.0)]);
    assert!(refuted.contains("A. not confirmed"), "fewer than two calls: {refuted}");
}

/// In a disturbed run, system calls of the ring do not refute conclusion B: a partner that loses
/// its CPU makes the other one sleep, which takes calls.
#[test]
fn calls_that_other_load_explains_are_inconclusive() {
    let cases = vec![form("pipe", 1.7e9, 1e6, 15.0, 0.0), form("ring", 1.2e9, 33e3, 33e3, 0.0)];
    let mut record = record(Some(Chapter::SharedMemory), cases);
    assert!(chapter_text(&record, 100).contains("B. not confirmed"));
    record.warnings.push(Warning::new(WarningId::OtherLoad, "others"));
    let text = chapter_text(&record, 100);
    assert!(text.contains("B. inconclusive (disturbed)"), "{text}");
}

#[test]
fn missing_cases_are_inconclusive() {
    assert_eq!(shown(Vec::new()), "");
    let text = shown(vec![form("pipe", 0.28e9, 1e6, 4.0, 0.0)]);
    assert!(
        text.contains("B. inconclusive (not measured)") && text.contains("C. inconclusive"),
        "{text}"
    );
    assert!(!text.contains("What this means"), "{text}");
}
