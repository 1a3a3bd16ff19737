//! Verdicts come from the record: other figures, other words.

use contend_record::lab::{Case, Chapter, RunRecord, View};
use contend_record::parameters::Parameters;

use super::super::sample::{case, record};
use super::chapter;

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

fn told(cases: Vec<Case>) -> String {
    let record: RunRecord = record(Some(Chapter::SharedMemory), cases);
    let text = anstream::adapter::strip_str(&chapter(&record, 100)).to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_articles_machine_bears_its_conclusions_out() {
    let text = told(vec![
        form("pipe", 0.73e9, 1e6, 178_208.0, 0.0),
        form("ring", 0.05e9, 500.0, 200.0, 0.0),
        copy("fgetc-fputc", None, 4.5e8, 51_200.0, 0.0),
        copy("mmap-bytes", None, 1e8, 9.0, 27_200.0),
    ]);
    for letter in ['A', 'B', 'C'] {
        assert!(text.contains(&format!("{letter} holds here")), "{text}");
    }
    assert!(text.contains("2.00M calls become 1.00k"), "{text}");
    assert!(text.contains("14.6 times as fast"), "{text}");
}

#[test]
fn other_figures_refute_them() {
    let text = told(vec![
        form("pipe", 0.28e9, 1e6, 4.0, 0.0),
        form("ring", 0.5e9, 1e6, 0.0, 0.0),
        form("cell-unguarded", 5e5, 0.0, 0.0, 999_000.0),
        copy("read-write", Some(4096), 0.8e8, 51_200.0, 0.0),
        copy("read-write", Some(65_536), 0.5e8, 3200.0, 0.0),
        copy("mmap-bytes", None, 1e8, 9.0, 27_200.0),
        copy("mmap-memcpy", None, 0.9e8, 9.0, 27_200.0),
    ]);
    for letter in ['A', 'B', 'C'] {
        assert!(text.contains(&format!("{letter} does not hold here")), "{text}");
    }
    assert!(text.contains("999k messages lost"), "{text}");
    assert!(
        text.contains("read-write 64 KiB, read-write 4 KiB; read-write 64 KiB takes 50.0ms"),
        "{text}"
    );
}

#[test]
fn what_was_not_measured_is_not_told() {
    assert_eq!(told(Vec::new()), "");
    let text = told(vec![form("pipe", 0.28e9, 1e6, 4.0, 0.0)]);
    assert!(text.contains("B cannot be told") && text.contains("C cannot be told"), "{text}");
    assert!(!text.contains("What comes of it"), "{text}");
}
