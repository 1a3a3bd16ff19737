//! Tests that tables, sentences and the documentation page about units follow from the record.

use contend_record::lab::{Case, Chapter, Fit, RunRecord, Unit, View};
use contend_record::parameters::Parameters;
use contend_record::stats::Line;

use super::super::sample::{case, chapter_text, record};
use super::{document_section, kinds, memory_section};
use crate::render::unit_costs;

fn waiting(unit: &str, n: u64, bytes: f64) -> Case {
    let parameters = Parameters::new().with("unit", unit).with("n", n);
    let mut case = case(
        ("runtime/memory", View::RuntimeMemory),
        parameters,
        bytes,
        &[("create", 50.0), ("left_1s", 4096.0)],
    );
    case.facts.insert("version".to_owned(), format!("{unit} 1.0").as_str().into());
    case.facts.insert("unit_is".to_owned(), "a unit that waits".into());
    case
}

fn line(unit: &str, each: f64, kernel: f64) -> [Fit; 2] {
    [("value", each), ("kernel", kernel)].map(|(metric, slope)| {
        let points = [0.0, 1.0, 2.0].map(|n| (n, n * slope));
        Fit {
            experiment: "runtime/memory".to_owned(),
            parameters: Parameters::new().with("unit", unit),
            over: "n".to_owned(),
            metric: metric.to_owned(),
            unit: Unit::Bytes,
            line: Line::through(&points).expect("a line"),
        }
    })
}

fn evaluated(form: &str, at_once: f64, later: f64, begun: f64) -> Case {
    let parameters = Parameters::new().with("form", form).with("n", 10_000);
    let metrics = [
        ("after_1s", 5e6),
        ("after_6s", later),
        ("begun_at_once", 1.0),
        ("begun_6s", begun),
        ("left", 2e6),
    ];
    case(("runtime/document", View::RuntimeDocument), parameters, at_once, &metrics)
}

fn measured() -> RunRecord {
    let trip = case(
        ("runtime/round-trip", View::RuntimeRoundTrip),
        Parameters::new().with("unit", "small"),
        100.0,
        &[],
    );
    let mut missing = waiting("absent", 100, 0.0);
    missing.samples.clear();
    missing.median = None;
    missing.skipped = Some("absent is not installed".to_owned());
    let mut record = record(
        Some(Chapter::Runtimes),
        vec![
            waiting("large", 100, 4e6),
            waiting("large", 10_000, 4e8),
            waiting("small", 100, 5e3),
            waiting("small", 100_000, 5e6),
            missing,
            trip,
            evaluated("callback", 4e6, 6e8, 6.0),
            evaluated("process", 28e6, 28e6, 10_000.0),
            evaluated("sister", 3e6, 1e6, 10_000.0),
        ],
    );
    record.fits = [line("large", 40_000.0, 20_000.0), line("small", 50.0, 0.0)].concat();
    record
}

#[test]
fn the_smallest_comes_first_and_keeps_its_letter() {
    let record = measured();
    let names: Vec<_> = kinds(&record).into_iter().map(|kind| (kind.mark, kind.unit)).collect();
    assert_eq!(names[..2], [('a', "small".to_owned()), ('b', "large".to_owned())]);
    let text = anstream::adapter::strip_str(&memory_section(&record, 100)).to_string();
    let row = text.lines().find(|line| line.starts_with("b  large")).expect("a row");
    assert!(row.contains("40.0kB") && row.contains("20.0kB"), "{text}");
    assert!(text.contains("Total bytes over the number of units"), "{text}");
}

#[test]
fn the_chapter_compares_the_document_with_this_machine() {
    let record = measured();
    let of_it = |case: &&Case| case.experiment == "runtime/document";
    let cases: Vec<_> = record.cases.iter().filter(of_it).collect();
    let text = anstream::adapter::strip_str(&document_section(&cases, 120)).to_string();
    let words = chapter_text(&record, 120);
    assert!(words.contains("left begun at once begun after 6 s"), "{text}");
    assert_eq!(text.matches("13.0MB").count(), 1, "{text}");
    assert!(words.contains("With the library in elixir/ all 10.0k had"), "{text}");
    assert!(words.contains("callback 10.0k 13.0MB 4.00MB 5.00MB 600MB 2.00MB 1 6"), "{text}");
    assert!(words.contains("A. confirmed: ") && words.contains("B. not confirmed: "), "{words}");
    assert!(
        words.contains("takes 400B, 0.14 (0.14 to 0.14) times as much as a process, but only 1 of"),
        "{words}"
    );
    assert!(words.contains("after 6 s 6 of 10.0k had begun"), "{text}");
    assert!(words.contains("A process takes 2.80kB here, 0.99 times"), "{text}");
    assert!(words.contains("from 50B (small) to 60.0kB (large)"), "{text}");
    assert!(words.contains("holds 20.0M of the former and 16.7k of the latter"), "{text}");
}

#[test]
fn functions_that_have_not_begun_are_not_counted() {
    let mut record = measured();
    record.cases.retain(|case| case.parameters.text("form") != Some("sister"));
    record.cases.push(evaluated("sister", 3e6, 1e6, 9000.0));
    let words = chapter_text(&record, 110);
    assert!(words.contains("With the library in elixir/ 9.00k of 10.0k had"), "{words}");
}

#[test]
fn wide_tables_show_what_runtimes_report() {
    let mut record = measured();
    let [mut counted, _] = line("small", 48.0, 0.0);
    counted.metric = "runtime".to_owned();
    record.fits.push(counted);
    let wide = anstream::adapter::strip_str(&memory_section(&record, 110)).to_string();
    assert!(wide.contains("by its own count") && wide.contains(" 48B "), "{wide}");
    let narrow = anstream::adapter::strip_str(&memory_section(&record, 100)).to_string();
    assert!(narrow.contains("\nLeft out for lack of width: by its own count.\n"), "{narrow}");
    assert_eq!(narrow.matches("by its own count").count(), 1, "{narrow}");
    let page = unit_costs::page(&record).expect("it has units");
    assert!(page.contains("| a | `small` | small 1.0 | 50B | 50B to 50B | 48B |"), "{page}");
}

#[test]
fn a_slope_that_may_be_0_is_no_figure() {
    let mut record = measured();
    record.cases.push(waiting("vague", 100, -5e3));
    record.cases.push(waiting("vague", 1000, 4e3));
    let mut vague = line("vague", -0.1, -3.0);
    for fit in &mut vague {
        fit.line.slope_ci95 = Some([-9.0, 2.0]);
    }
    record.fits.extend(vague);
    let all = kinds(&record);
    let vague = all.iter().find(|kind| kind.unit == "vague").expect("it has cases");
    assert_eq!((vague.bytes(), vague.kernel(), vague.total()), (None, None, None));
    let words = chapter_text(&record, 110);
    assert!(words.contains("from 50B (small) to 60.0kB (large)"), "{words}");
    let page = unit_costs::page(&record).expect("it has units");
    assert!(
        page.contains("| `vague` | vague 1.0 | indistinguishable from 0 | -9B to 2B |"),
        "{page}"
    );
}

#[test]
fn the_page_has_a_row_for_each_kind_and_says_what_is_missing() {
    let page = unit_costs::page(&measured()).expect("it has units");
    assert!(page.contains("| a | `small` | small 1.0 | 50B |"), "{page}");
    assert!(page.contains("the distance of 3 samples from the line"), "{page}");
    assert!(page.contains("Samples per case: 2 for memory, 2 for messages."), "{page}");
    assert!(page.contains("- not measured: unit=absent n=100: absent is not installed"), "{page}");
    assert!(page.contains("| b | `large` | 4.00MB | 400MB |  |"), "{page}");
    assert_eq!(unit_costs::page(&record(Some(Chapter::Runtimes), Vec::new())), None);
}
