use std::collections::BTreeMap;

use contend_record::doctor::{
    Cause, Evidence, Finding, Moments, Process, Thread, ThreadName, ThreadState,
};
use contend_record::warning::{Warning, WarningId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn screen(record: Option<&DoctorRecord>, view: &View, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("no terminal needed");
    terminal.draw(|frame| draw(frame, record, view)).expect("no terminal needed");
    terminal.backend().clone()
}

fn view() -> View {
    View { elapsed: Duration::from_millis(12_400), ..View::default() }
}

fn thread(tid: i32, name: &str, states: &[(ThreadState, f64)]) -> Thread {
    Thread {
        name: ThreadName { pid: 4711, tid, name: name.to_owned(), function: None },
        observed_seconds: states.iter().map(|(_, time)| time).sum(),
        state_seconds: states.iter().copied().collect(),
        slices: 1000,
        waits: Vec::new(),
    }
}

fn finding(symptom: Symptom, gain: Option<f64>) -> Finding {
    Finding {
        symptom,
        message: "4 threads wait for a lock: on average 2.1 wait while 1.0 run.".to_owned(),
        gain_share: gain,
        argument: "the CPU time, divided evenly among the CPUs".to_owned(),
        evidence: vec![
            Evidence { name: "waiting_threads".to_owned(), value: 2.123 },
            Evidence { name: "threads".to_owned(), value: 4.0 },
            Evidence { name: "longest_wait_seconds".to_owned(), value: 0.0312 },
            Evidence { name: "locked_share".to_owned(), value: 0.873 },
        ],
        threads: Vec::new(),
        remedy:
            "Hold the lock for a shorter time, or split the data that it protects: a lock for each \
                 part, or data of each thread that is merged at the end."
                .to_owned(),
        command: (symptom == Symptom::CpuLimit).then(|| "taskset -c 0-3 ./server".to_owned()),
        unless: "the protected work cannot be divided".to_owned(),
    }
}

/// A record in which each part of the screen has something to show.
fn record() -> DoctorRecord {
    let moment = |cause, share| Moments { cause, seconds: 12.4 * share, share };
    let states = [
        (ThreadState::Running, 13.5),
        (ThreadState::Runnable, 0.4),
        (ThreadState::Lock, 26.0),
        (ThreadState::Condition, 9.6),
        (ThreadState::Disk, 0.1),
    ];
    let worker = |tid| {
        thread(
            tid,
            "worker",
            &[(ThreadState::Running, 3.1), (ThreadState::Runnable, 0.1), (ThreadState::Lock, 9.2)],
        )
    };
    DoctorRecord {
        command: "./server --listen 127.0.0.1:8080 --threads 4".to_owned(),
        started: true,
        observed_seconds: 12.4,
        diagnosis: "The program used 1.1 of 4 CPUs on average. 4 threads wait for a lock (at \
                    0x55c3b06ec140): on average 2.1 wait while 1.0 run, and at least two ran at the \
                    same time for 3 % of the time. A remedy would save about 52 % of the time."
            .to_owned(),
        moments: vec![
            moment(Cause::Serial, 0.81),
            moment(Cause::Lock, 0.12),
            moment(Cause::Busy, 0.05),
            moment(Cause::Idle, 0.019),
            moment(Cause::Unknown, 0.001),
        ],
        thread_seconds: 49.6,
        state_seconds: states.into_iter().collect(),
        cpu_seconds: 13.5,
        cpus: 4.0,
        findings: vec![
            finding(Symptom::LockContention, Some(0.52)),
            finding(Symptom::CpuLimit, Some(0.24)),
            finding(Symptom::NotConcurrency, None),
        ],
        processes: vec![Process {
            pid: 4711,
            threads: 5,
            relation: Relation::Named,
            ..Process::default()
        }],
        threads: vec![
            worker(4712),
            worker(4713),
            worker(4714),
            worker(4715),
            thread(4711, "server", &[(ThreadState::Condition, 12.4)]),
        ],
        ..DoctorRecord::default()
    }
}

#[test]
fn a_usual_terminal_shows_the_diagnosis_the_bars_and_a_finding() {
    insta::assert_snapshot!(screen(Some(&record()), &view(), 80, 24));
}

#[test]
fn another_finding_may_be_selected_and_the_display_paused() {
    let view = View { selected: Some(Symptom::CpuLimit), is_paused: true, ..view() };
    insta::assert_snapshot!(screen(Some(&record()), &view, 80, 24));
}

#[test]
fn the_threads_may_come_first() {
    let view = View { list: List::Threads, scope: Scope::Recent, ..view() };
    insta::assert_snapshot!(screen(Some(&record()), &view, 80, 24));
}

#[test]
fn a_narrow_terminal_has_fewer_columns() {
    insta::assert_snapshot!("60", screen(Some(&record()), &view(), 60, 20));
    let view = View { list: List::Threads, ..view() };
    insta::assert_snapshot!("40", screen(Some(&record()), &view, 40, 20));
}

#[test]
fn a_large_terminal_shows_everything() {
    let record = DoctorRecord {
        warnings: vec![Warning::new(WarningId::OtherLoad, "other programs used 30 %")],
        ..record()
    };
    let view = View { output: vec!["request 1".to_owned(), "request 2".to_owned()], ..view() };
    insta::assert_snapshot!(screen(Some(&record), &view, 120, 45));
}

#[test]
fn without_findings_the_threads_follow() {
    let record = DoctorRecord {
        started: false,
        diagnosis: "The program used 0.0 of 4 CPUs on average. It was idle: no work arrived."
            .to_owned(),
        moments: vec![Moments { cause: Cause::Idle, seconds: 12.4, share: 1.0 }],
        findings: Vec::new(),
        cpu_seconds: 0.0,
        ..record()
    };
    insta::assert_snapshot!(screen(Some(&record), &view(), 80, 24));
}

#[test]
fn any_size_of_terminal_has_a_screen() {
    let output = vec!["x".repeat(300)];
    for width in [1, 2, 5, 10, 20, 39, 55, 56, 57, 100, 300] {
        for height in [1, 2, 3, 4, 7, 12, 17, 30, 100] {
            for list in [List::Findings, List::Threads] {
                let view = View { list, output: output.clone(), ..view() };
                screen(Some(&record()), &view, width, height);
                screen(Some(&DoctorRecord::default()), &view, width, height);
                screen(None, &view, width, height);
            }
        }
    }
    let footer = screen(Some(&record()), &view(), 40, 6).to_string();
    assert!(footer.trim_end().ends_with("q quit  ↑↓ finding  t threads           \""), "{footer}");
}

#[test]
fn colours_are_used_only_if_the_terminal_has_them() {
    let is_styled = |has_styles| {
        let view = View { has_styles, ..view() };
        let buffer = screen(Some(&record()), &view, 80, 24).buffer().clone();
        buffer.content.iter().any(|cell| {
            cell.style().fg.is_some_and(|color| color != ratatui::style::Color::Reset)
                || !cell.modifier.is_empty()
        })
    };
    assert!(is_styled(true));
    assert!(!is_styled(false));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let mut record = record();
    record.command = "a\u{1b}]0;title\u{7}".to_owned();
    record.threads[0].name.name = "b\u{1b}[2J".to_owned();
    let view = View { list: List::Threads, output: vec!["c\u{1b}[H".to_owned()], ..view() };
    let shown = screen(Some(&record), &view, 120, 50).to_string();
    assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    for text in ["a␛]0;title␇", "b␛[2J", "c␛[H"] {
        assert!(shown.contains(text), "{shown}");
    }
}

#[test]
fn the_scope_and_the_elapsed_time_are_named() {
    let times = [9, 75, 3600 + 125].map(|seconds| duration(Duration::from_secs(seconds)));
    assert_eq!(times, ["9 s", "1 min 15 s", "1 h 02 min"]);
    let states: BTreeMap<ThreadState, f64> = BTreeMap::new();
    let record = DoctorRecord { state_seconds: states, cpus: 1.5, ..record() };
    let shown = screen(Some(&record), &View { scope: Scope::Recent, ..view() }, 80, 24);
    assert!(shown.to_string().contains("12 s, last 10 s"), "{shown}");
    assert!(shown.to_string().contains("1.1 of 1.5 used"), "{shown}");
}
