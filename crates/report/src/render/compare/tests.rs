use contend_record::compare::{CompareRecord, Origin};
use contend_record::lab::{self, Ending, Metric, RunRecord, Unit, View};
use contend_record::parameters::Parameters;
use contend_record::warning::WarningId;
use contend_record::{Host, Warning};

use super::report;
use crate::compare::compare;
use crate::compare::tests::{case, run};

/// Returns nine samples around their median `middle`, from 96 % to 104 % of it.
fn around(middle: f64) -> Vec<f64> {
    (-4..=4).map(|step| middle * (1.0 + 0.01 * f64::from(step))).collect()
}

fn laptop() -> Host {
    Host {
        cpu_model: "Quick 9".to_owned(),
        cpus_online: 8,
        cpus_allowed: 8,
        memory_bytes: 16_000_000_000,
        kernel: "Linux 6.1 x86_64".to_owned(),
        clocksource: "tsc".to_owned(),
        cores: Some(4),
        mitigations: [("retbleed".to_owned(), "Mitigation: IBRS".to_owned())].into(),
        libc: "glibc 2.36".to_owned(),
        governor: Some("powersave".to_owned()),
        ..Host::default()
    }
}

fn board() -> Host {
    Host {
        cpu_model: "Slow 2".to_owned(),
        cpus_online: 2,
        cpus_allowed: 1,
        cpu_quota: Some(0.5),
        cores: Some(2),
        mitigations: [("retbleed".to_owned(), "Vulnerable".to_owned())].into(),
        ..laptop()
    }
}

fn on(host: Host, path: &str, cases: Vec<lab::Case>) -> (Origin, RunRecord) {
    let (_, mut record) = run(cases);
    record.host = host;
    (Origin::File { path: path.to_owned() }, record)
}

fn plain(runs: &[(Origin, RunRecord)], width: usize) -> String {
    shown(&compare(runs), width)
}

fn shown(record: &CompareRecord, width: usize) -> String {
    anstream::adapter::strip_str(&report(record, width)).to_string()
}

/// Returns the part of `text` after `line`, or all of it if the line does not occur.
fn below<'a>(text: &'a str, line: &str) -> &'a str {
    text.split_once(line).map_or(text, |(_, below)| below)
}

#[test]
fn two_runs_are_compared_case_by_case() {
    let mut disturbed = case(100, &around(2000.0));
    disturbed.disturbed = vec![1];
    disturbed.warnings = vec![Warning::new(WarningId::OtherLoad, "1 of 9 samples was disturbed")];
    let first = on(
        laptop(),
        "laptop.json",
        vec![case(1, &around(1000.0)), case(10, &around(1000.0)), case(100, &around(1000.0))],
    );
    let mut second = on(
        laptop(),
        "later.json",
        vec![case(1, &around(1005.0)), case(10, &[800.0, 900.0]), disturbed],
    );
    second.1.quick = true;
    second.1.ending = Ending::Interrupted;
    second.1.warnings = vec![Warning::new(WarningId::Steal, "the host took 1.00 s away")];
    insta::assert_snapshot!(plain(&[first, second], 80), @r"
    2 runs, 3 cases: 3 measured in all runs
    A  laptop.json (2026-01-02 03:04:05 UTC): units/create; 3 of 3 cases measured
    B  later.json (2026-01-02 03:04:05 UTC): units/create; quick; interrupted; 3 of
      3 cases measured; against A: 1 higher, 1 within noise, 1 with too few samples
    All machines: Quick 9, 8 of 8 CPUs, 4 cores, no CPU quota, 16.0GB of memory, no
      memory limit, Linux 6.1 x86_64, no virtual machine, clocksource tsc, governor
      powersave, glibc 2.36, huge pages unknown, mitigations of 1 vulnerability.

    units/create
    kind    n       A       B    B/A       [interval]  0.33 ─────────── 3.00
    fork    1  1.00µs  1.00µs   1.00~    [0.97, 1.05]            ●
    fork   10  1.00µs   850ns   0.85?  (0.77 to 0.94)         ├●┤│
    fork  100  1.00µs  2.00µs!  2.00     [1.92, 2.08]            │     ├●

    warning: B: the host took 1.00 s away
    warning: B: units/create kind=fork n=100: 1 of 9 samples was disturbed

    B/A: median of B divided by median of A. [Brackets]: 95 % interval, from the
    scatter within each run; runs may differ by more. (Parentheses): range, if a run
    has fewer than six samples. ~: within noise. ?: too few samples for an interval;
    the difference may be chance. !: some samples were disturbed by other load.
    ");
}

/// With two samples in each run, the ranges of two equal runs are disjoint one time in three, so the
/// ratio is marked although its range lacks 1.
#[test]
fn a_ratio_of_few_samples_is_marked() {
    let disturbed = |samples: &[f64], count: usize| {
        let mut case = case(1, samples);
        case.disturbed = (0..count).collect();
        case
    };
    let runs = |count| {
        let of = |path, samples: &[f64]| on(laptop(), path, vec![disturbed(samples, count)]);
        [of("a.json", &[1000.0, 1100.0]), of("b.json", &[600.0, 660.0])]
    };
    let text = plain(&runs(2), 100);
    assert!(text.contains("0.60?  (0.55 to 0.66)"), "{text}");
    assert!(text.contains("?: too few samples for an interval"), "{text}");
    assert!(text.contains("!: all samples were disturbed by"), "{text}");
    assert!(plain(&runs(1), 100).contains("!: some samples were disturbed"), "{text}");
}

#[test]
fn differences_between_machines_are_listed() {
    let runs = [
        on(laptop(), "laptop.json", vec![case(1, &around(1000.0))]),
        on(board(), "board.json", vec![case(1, &around(9000.0))]),
        on(laptop(), "later.json", vec![case(1, &around(1200.0))]),
    ];
    insta::assert_snapshot!(plain(&runs, 80), @r#"
    3 runs, 1 case: 1 measured in all runs
    A  laptop.json (2026-01-02 03:04:05 UTC): units/create; 1 of 1 case measured
       Quick 9, 8 of 8 CPUs, 4 cores, no CPU quota
    B  board.json (2026-01-02 03:04:05 UTC): units/create; 1 of 1 case measured;
      against A: 1 higher
       Slow 2, 1 of 2 CPUs, 2 cores, CPU quota 0.5
    C  later.json (2026-01-02 03:04:05 UTC): units/create; 1 of 1 case measured;
      against A: 1 higher
       Quick 9, 8 of 8 CPUs, 4 cores, no CPU quota
    - retbleed: "Mitigation: IBRS" in A and C, "Vulnerable" in B
    All machines: 16.0GB of memory, no memory limit, Linux 6.1 x86_64, no virtual
      machine, clocksource tsc, governor powersave, glibc 2.36, huge pages unknown.

    units/create
    kind  n       A       B       C   B/A    [interval]   C/A    [interval]
    fork  1  1.00µs  9.00µs  1.20µs  9.00  [8.65, 9.36]  1.20  [1.15, 1.25]

    B/A: median of B divided by median of A. [Brackets]: 95 % interval, from the
    scatter within each run; runs may differ by more.
    "#);
}

fn preset(name: &str, tick: bool, seconds: f64, load: f64) -> lab::Case {
    let parameters =
        if tick { Parameters::new().with("tick_us", 15_625) } else { Parameters::new() };
    let parameters = parameters.with("placement", "free").with("turns", 96);
    let mut case = lab::Case::new(name, View::HandoffPreset, parameters, Unit::Nanoseconds);
    case.samples = vec![seconds * 1e9, seconds * 1.1e9];
    let loads = Metric::of(Unit::Count, vec![load; 2]);
    case.metrics.insert("load_max".to_owned(), loads);
    case
}

#[test]
fn programs_of_the_document_share_one_table() {
    let cases = |factor: f64| {
        vec![
            preset("handoff/0", true, 156.0, 2.0 * factor),
            preset("handoff/0+", true, 156.0 * factor, 9.8),
            preset("handoff/2", false, 0.9 * factor, 22.0),
        ]
    };
    let runs = [
        on(laptop(), "laptop.json", cases(1.0)),
        on(board(), "board.json", cases(2.0)),
        on(laptop(), "later.json", cases(1.0).split_off(2)),
    ];
    let text = plain(&runs, 100);
    insta::assert_snapshot!(below(&text, "unknown.\n"), @r"
    handoff: 10,000 turns; load: largest CPU load over 50 ms, in percent of all CPUs
    case  tick_us  placement  turns      A  load      B  load      C  load
    0       15625       free     96   164s     2   164s     4      -     -
    0+      15625       free     96   164s  9.80   328s  9.80      -     -
    2                   free     96  945ms    22  1.89s    22  945ms    22

    case  tick_us  placement  turns   B/A       [interval]   C/A       [interval]
    0       15625       free     96  1.00?  (0.91 to 1.10)     -
    0+      15625       free     96  2.00?  (1.82 to 2.20)     -
    2                   free     96  2.00?  (1.82 to 2.20)  1.00?  (0.91 to 1.10)

    Not measured in all runs
    measured in A and B; not part of C:
    - handoff/0 tick_us=15625 placement=free turns=96
    - handoff/0+ tick_us=15625 placement=free turns=96

    B/A: median of B divided by median of A. (Parentheses): range, if a run has fewer than six samples.
    ?: too few samples for an interval; the difference may be chance.
    ");
}

#[test]
fn unequal_cases_are_listed_with_the_reason() {
    let skipped = |n, reason: &str| {
        let mut case = case(n, &[]);
        case.skipped = Some(reason.to_owned());
        case
    };
    let mut bytes = case(3, &[4096.0]);
    bytes.unit = Unit::Bytes;
    let first = (10..20).map(|n| case(n, &[1.0])).chain([case(1, &[0.0]), case(2, &[5.0])]);
    let runs = [
        on(laptop(), "laptop.json", first.chain([case(3, &[5.0])]).collect()),
        on(laptop(), "x\u{1b}[31m.json", vec![case(1, &[1.0]), skipped(2, "no room"), bytes]),
        on(laptop(), "none.json", vec![skipped(2, "no time"), case(4, &[])]),
    ];
    let text = plain(&runs, 80);
    assert!(text.contains("x␛[31m.json"), "{text}");
    insta::assert_snapshot!(below(&text, "vulnerability.\n"), @r"
    units/create
    kind  n       A       B
    fork  1  0.00ns  1.00ns

    Not measured in all runs
    measured in A; not part of B and C:
    - units/create, 10 cases (kind: fork; n: 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
    measured in A and B; not part of C:
    - units/create kind=fork n=1
    measured in A; not measured in B (no room); not measured in C (no time):
    - units/create kind=fork n=2
    measured in A; left out in B (counts bytes, not nanoseconds); not part of C:
    - units/create kind=fork n=3
    no samples in C (the run did not reach it); not part of A and B:
    - units/create kind=fork n=4

    -: no ratio, as A may be 0 or less.
    ");
    let nothing = plain(&[run(Vec::new()), run(Vec::new())], 80);
    assert!(nothing.starts_with("2 runs, 0 cases: none was measured in both runs\n"));
}

#[test]
fn tables_are_cut_to_the_width() {
    let cases = || {
        let create = (1..4).map(|n| case(n, &around(1e6)));
        let presets = (0..3).map(|n| preset(&format!("handoff/{n}"), n < 2, 156.0, 20.0));
        create.chain(presets).collect::<Vec<_>>()
    };
    for count in 2..8 {
        let runs: Vec<_> = (0..count).map(|_| on(laptop(), "laptop.json", cases())).collect();
        let record = compare(&runs);
        for width in 40..200 {
            let text = shown(&record, width);
            let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > width).collect();
            assert!(wide.is_empty(), "{count} runs, {width} columns: {wide:#?}");
            let named = |name: &str| text.contains(name) || width < 60;
            assert!(named("B/A") && named("load"), "{width}: {text}");
            assert!(text.contains("[interval]"), "shown or named as left out: {width}: {text}");
        }
    }
}
