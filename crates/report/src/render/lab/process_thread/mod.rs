//! Chapter of the suite `process-thread`: the tables of its source, a workshop, with the
//! measurements of the run, and whether these confirm the workshop's conclusions.

mod conclusions;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use contend_record::lab::{Case, LimitReport, RunRecord, Step, StoppedBy, Task, View};
use contend_record::parameters::names;
use contend_record::stats::Ratio;

use super::super::layout::paragraph;
use super::super::units::{bytes, nanoseconds, ratio};
use super::chapter::Content;
use super::table::{figure, grid, ratio_of, row, values};
use super::{Reported, find, handoff};

/// Returns the chapter, or `None` if the run has measured nothing that the workshop reports.
pub fn chapter(record: &RunRecord, width: usize) -> Option<Content> {
    let tables: Vec<_> = [memory, creation, switching, limit, startup]
        .into_iter()
        .filter_map(|table| table(record, width))
        .collect();
    if tables.is_empty() {
        return None;
    }
    let meaning =
        [clock_misses_children, memory_cost, switch_cost, limit_is_a_setting, startup_cost];
    Some(Content {
        conclusions: &conclusions::CONCLUSIONS,
        meaning: meaning.into_iter().filter_map(|sentence| sentence(record)).collect(),
        tables,
        ..Content::default()
    })
}

/// Returns the step of a demonstration at which both units exist and neither has written to the
/// variable, or `None` if the demonstration ended before that step.
fn both_exist(case: &Case) -> Option<&Step> {
    case.timeline.get(1)
}

/// Memory of two processes together, and of one process with two threads, in bytes.
struct Memory {
    rss: [u64; 2],
    pss: [u64; 2],
    private: [u64; 2],
}

impl Memory {
    fn of(record: &RunRecord) -> Option<Self> {
        let processes = both_exist(find(record, View::ProcessSharing, &[])?)?;
        let threads = both_exist(find(record, View::ThreadSharing, &[])?)?;
        let one = threads.tasks.first()?;
        let pair = |of: fn(&Task) -> u64| [processes.tasks.iter().map(of).sum(), of(one)];
        Some(Self {
            rss: pair(|task| task.rss_bytes),
            pss: pair(|task| task.pss_bytes),
            private: pair(|task| task.private_bytes),
        })
    }
}

fn memory(record: &RunRecord, width: usize) -> Option<String> {
    let memory = Memory::of(record)?;
    let line = |index: usize, name: &str, document: &str| {
        let figures = [memory.rss[index], memory.pss[index], memory.private[index]];
        let words = [name.to_owned(), document.to_owned()];
        words.into_iter().chain(figures.map(|value| bytes(value as f64))).collect()
    };
    let rows = [
        row(["memory", "workshop: RSS", "RSS", "PSS", "private"]),
        line(0, "two processes", "2,544KB"),
        line(1, "two threads", "1,724KB"),
    ];
    let mut out = grid(&rows, 1, width);
    let note = "RSS counts shared pages in full for each process, and PSS divides them by their users. \
                Private pages belong to one process alone: after a fork, most are still shared.";
    paragraph(&mut out, "", note, width);
    Some(out)
}

/// Returns the measured case that creates 100 units of the given kind, or `None` if there is none.
fn hundred<'a>(record: &'a RunRecord, kind: &str) -> Option<&'a Case> {
    find(record, View::Creation, &[(names::KIND, kind), (names::N, "100")])
}

/// CPU time of the creator for 100 units, in milliseconds, by kind: the workshop's figures.
const CREATION_MS: [(&str, f64); 2] = [("fork", 19.1), ("thread", 8.39)];

/// Returns the workshop's time to create the units of a case; `None` if it did not measure them.
pub(super) fn reported(case: &Case) -> Option<Reported> {
    let kind = case.parameters.text(names::KIND)?;
    let (_, ms) = CREATION_MS.iter().find(|(known, _)| *known == kind)?;
    let is_original =
        case.parameters.number(names::N) == Some(100) && case.parameters.iter().count() == 2;
    let source = "the workshop, CPU time of the creator alone";
    is_original.then_some(Reported { value: ms * 1e6 / 100.0, source })
}

fn creation(record: &RunRecord, width: usize) -> Option<String> {
    let all = |value: Option<f64>| figure(value.map(|one| 100.0 * one));
    let line = |name: &str, document: &str, case: &Case| {
        vec![
            name.to_owned(),
            document.to_owned(),
            all(case.median),
            all(case.metric("cpu_self")),
            all(case.metric("cpu_children")),
        ]
    };
    let rows = [
        row(["creating 100", "workshop: CPU", "elapsed", "CPU self", "CPU children"]),
        line("processes", &format!("{}ms", CREATION_MS[0].1), hundred(record, "fork")?),
        line("threads", &format!("{}ms", CREATION_MS[1].1), hundred(record, "thread")?),
    ];
    let mut out = grid(&rows, 1, width);
    let note = "The workshop's figures are from clock(), which returns the CPU time of the caller without its \
                children's.";
    paragraph(&mut out, "", note, width);
    Some(out)
}

/// Placement of partners on one CPU.
const ONE_CPU: &str = "same-cpu";

/// Returns the measured hand-offs on one CPU, each of which contains a context switch.
fn switches(record: &RunRecord) -> Vec<&Case> {
    let is_on_one_cpu = |case: &&Case| case.parameters.text(names::PLACEMENT) == Some(ONE_CPU);
    let measured = record.cases_of(View::HandoffMechanisms).filter(|case| case.median.is_some());
    measured.filter(is_on_one_cpu).collect()
}

fn switching(record: &RunRecord, width: usize) -> Option<String> {
    let cases = switches(record);
    if cases.is_empty() {
        return None;
    }
    let mut out = handoff::side_by_side(record, &cases, "hand-off on one CPU", width);
    let note = "Half of a round trip between two processes, or between two threads of one process. It contains \
                a context switch. The workshop did not measure it.";
    paragraph(&mut out, "", note, width);
    Some(out)
}

/// Compares hand-offs between threads on one CPU with those between processes, for each mechanism.
/// Returns `None` if no mechanism was measured with both.
fn switch_cost(record: &RunRecord) -> Option<String> {
    let of = |mechanism: &str, partners: &str| {
        let parameters = [
            (names::MECHANISM, mechanism),
            (names::PARTNERS, partners),
            (names::PLACEMENT, ONE_CPU),
        ];
        find(record, View::HandoffMechanisms, &parameters)
    };
    let measured = |mechanism: &String| {
        let (thread, process) = (of(mechanism, "thread")?, of(mechanism, "process")?);
        let ratio = Ratio::of(&thread.samples, &process.samples, record.seed)?;
        let doubt = match ratio.compare_to_one() {
            None => " (too few samples to tell)",
            Some(Ordering::Equal) => " (within noise)",
            Some(_) => "",
        };
        Some(format!(
            "{} by {mechanism}, {} times as long as between processes{doubt}",
            nanoseconds(thread.median?),
            ratio_of(&thread.samples, &process.samples, record.seed)?
        ))
    };
    let times: Vec<_> =
        values(&switches(record), names::MECHANISM).iter().filter_map(measured).collect();
    (!times.is_empty()).then(|| {
        format!(
            "A hand-off between threads on one CPU, which contains a context switch, takes {}.",
            times.join("; ")
        )
    })
}

/// Returns the attempts to create as many processes, and as many threads, as possible, or `None` if
/// either was not made.
fn limits(record: &RunRecord) -> Option<[(&Case, &LimitReport); 2]> {
    let of_kind = |kind| {
        let case = find(record, View::UnitLimit, &[(names::KIND, kind)])?;
        Some((case, case.limit.as_ref()?))
    };
    Some([of_kind("process")?, of_kind("thread")?])
}

/// Names what ended an attempt to create units.
fn stopped_by(report: &LimitReport) -> String {
    match &report.stopped_by {
        StoppedBy::Cap => "the cap".to_owned(),
        StoppedBy::MemoryFloor => "the memory guard".to_owned(),
        StoppedBy::Limit(name) => name.clone(),
        StoppedBy::Unknown => "an unknown limit".to_owned(),
    }
}

fn limit(record: &RunRecord, width: usize) -> Option<String> {
    let [processes, threads] = limits(record)?;
    let line = |name: &str, document: &str, report: &LimitReport| {
        let tightest = report.limits.first();
        vec![
            name.to_owned(),
            document.to_owned(),
            report.created.to_string(),
            stopped_by(report),
            tightest.map_or_else(String::new, |limit| format!("{} ({})", limit.allows, limit.name)),
        ]
    };
    let rows = [
        row(["most at once", "workshop", "created", "stopped by", "tightest limit allows"]),
        line("processes", "1,193", processes.1),
        line("threads", "4,095", threads.1),
    ];
    let mut out = grid(&rows, 1, width);
    if [processes.1, threads.1].iter().any(|report| report.stopped_by == StoppedBy::Cap) {
        let note = format!(
            "A cap protects other programs; `contend lab run {} --cap none` goes to the limit.",
            processes.0.experiment
        );
        paragraph(&mut out, "", &note, width);
    }
    Some(out)
}

/// Started commands: title, value of the parameter `command`, and the time given by the article on
/// pipelines.
const STARTED: [(&str, &str, &str); 6] = [
    ("fork", "fork", "0.5ms"),
    ("true", "true", "1ms"),
    ("awk (mawk)", "mawk", "3ms"),
    ("awk (gawk)", "gawk", "3ms"),
    ("in a loop: true", "bash-loop-true", "1ms"),
    ("in a loop: awk", "bash-loop-awk", "3ms"),
];

fn command<'a>(record: &'a RunRecord, name: &str) -> Option<&'a Case> {
    find(record, View::Startup, &[(names::COMMAND, name)])
}

fn startup(record: &RunRecord, width: usize) -> Option<String> {
    let mut rows = vec![row(["starting", "article: about", "elapsed", "CPU self", "CPU children"])];
    for (title, name, document) in STARTED {
        let Some(case) = command(record, name) else { continue };
        let figures = [case.median, case.metric("cpu_self"), case.metric("cpu_children")];
        let words = [title.to_owned(), document.to_owned()];
        rows.push(words.into_iter().chain(figures.map(figure)).collect());
    }
    if rows.len() == 1 {
        return None;
    }
    let mut out = grid(&rows, 1, width);
    let note = "The times are from the article of suite `pipeline`, which timed 1,000 starts in a shell loop.";
    paragraph(&mut out, "", note, width);
    Some(out)
}

fn clock_misses_children(record: &RunRecord) -> Option<String> {
    let fork = hundred(record, "fork")?;
    let own = fork.metric("cpu_self")?;
    let children = fork.metric("cpu_children").unwrap_or(0.0);
    Some(format!(
        "clock(), which the workshop used, counts neither waiting nor the CPU time of children. The children's \
         share alone is {:.0} % of the CPU time of creating a process here. Use wall time.",
        100.0 * children / (own + children).max(1.0),
    ))
}

fn memory_cost(record: &RunRecord) -> Option<String> {
    let Memory { rss, pss, .. } = Memory::of(record)?;
    Some(format!(
        "Adding up RSS, as the workshop did, overstates the memory of two processes by a factor of {}, because \
         it counts the pages that they share twice.",
        ratio(rss[0] as f64 / (pss[0] as f64).max(1.0)),
    ))
}

fn limit_is_a_setting(record: &RunRecord) -> Option<String> {
    let [(_, processes), (_, threads)] = limits(record)?;
    let (process, thread) = (processes.limits.first()?, threads.limits.first()?);
    let text = if process.name == thread.name {
        format!("{} limits processes and threads alike", process.name)
    } else {
        format!("{} limits processes, {} limits threads", process.name, thread.name)
    };
    Some(format!(
        "How many can exist at once is a setting of the system, not a property of processes or \
         threads: here {text}."
    ))
}

fn startup_cost(record: &RunRecord) -> Option<String> {
    let known = |name| command(record, name).filter(|case| case.ci95.is_some())?.median;
    let (bare, dynamic) = (known("static")?, known("true")?);
    (dynamic > bare).then(|| {
        format!(
            "Of the {} that starting `true` takes, {:.0} % go to the dynamic linker, the C library \
             and `true` itself: a static program that only exits starts in {}.",
            nanoseconds(dynamic),
            100.0 * (1.0 - bare / dynamic),
            nanoseconds(bare),
        )
    })
}
