//! Renders the suite `process-thread`: the tables of the workshop that it follows, and the figures
//! of this machine.

use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, Step, StoppedBy, View};
use contend_record::parameters::names;

use super::super::layout::{BOLD, paragraph, paragraph_after};
use super::super::units::{bytes, nanoseconds};
use super::find;
use super::table::{figure, grid, row};

/// Renders all tables of the workshop, each with a sentence on the differences.
pub fn chapter(record: &RunRecord, width: usize) -> String {
    let heading = "Beside the workshop";
    let mut out = format!("{BOLD}{heading}{BOLD:#}");
    let rest = " (processes and threads, 2018; its figures are of another machine)";
    paragraph_after(&mut out, heading.len(), rest, width);
    let parts: Vec<_> = [memory, creation, limit, startup]
        .into_iter()
        .filter_map(|part| part(record, width))
        .collect();
    if parts.is_empty() {
        return String::new(); // nothing was measured that could stand beside it
    }
    format!("\n{out}\n{}", parts.join("\n"))
}

/// Formats by how much one number exceeds another.
fn more(one: u64, other: u64) -> String {
    let gap = bytes(one.abs_diff(other) as f64);
    if one < other { format!("{gap} less") } else { format!("{gap} more") }
}

/// Returns the step at which both units exist and neither has written yet.
fn both_there(case: &Case) -> Option<&Step> {
    case.timeline.get(1)
}

fn memory(record: &RunRecord, width: usize) -> Option<String> {
    let two = both_there(find(record, View::ProcessSharing, &[])?)?;
    let threads = both_there(find(record, View::ThreadSharing, &[])?)?;
    let sum = |of: fn(&contend_record::lab::Task) -> u64| -> u64 { two.tasks.iter().map(of).sum() };
    let one = threads.tasks.first()?;
    let size = |value: u64| bytes(value as f64);
    let (rss, pss) = (sum(|task| task.rss_bytes), sum(|task| task.pss_bytes));
    let rows = [
        row(["memory", "workshop: RSS", "RSS", "PSS", "private"]),
        vec![
            "two processes".into(),
            "2,544KB".into(),
            size(rss),
            size(pss),
            size(sum(|task| task.private_bytes)),
        ],
        vec![
            "two threads".into(),
            "1,724KB".into(),
            size(one.rss_bytes),
            size(one.pss_bytes),
            size(one.private_bytes),
        ],
    ];
    let mut out = grid(&rows, 1, width);
    let text = format!(
        "The workshop added the RSS of the two processes, which counts every page that they share \
         twice. Here that sum is {}, and their proportional sets, which count it once, are {}: the \
         sum says {:.1} times as much. By RSS the two processes take {} than the two threads, by PSS \
         {}. (PSS also divides what they share with other processes of this program. Private is \
         what one process alone has: after a fork the parent's pages are shared until one side \
         writes to them.)",
        size(rss),
        size(pss),
        rss as f64 / (pss as f64).max(1.0),
        more(rss, one.rss_bytes),
        more(pss, one.pss_bytes),
    );
    paragraph(&mut out, "", &text, width);
    Some(out)
}

fn creation(record: &RunRecord, width: usize) -> Option<String> {
    let fork = find(record, View::Creation, &[(names::KIND, "fork"), (names::N, "100")])?;
    let thread = find(record, View::Creation, &[(names::KIND, "thread"), (names::N, "100")])?;
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
        line("processes", "19.1ms", fork),
        line("threads", "8.39ms", thread),
    ];
    let mut out = grid(&rows, 1, width);
    let (own, elapsed) = (fork.metric("cpu_self")?, fork.median?);
    let children = fork.metric("cpu_children").unwrap_or(0.0);
    let text = format!(
        "The workshop took clock(), which is the CPU time of the caller alone: no waiting, and \
         nothing that the children do. For processes that is {:.0} % of the CPU time here, and \
         {:.2} times the elapsed time. Elapsed, a process costs {:.1} times as much as a thread{}.",
        100.0 * own / (own + children).max(1.0),
        own / elapsed.max(1.0),
        elapsed / thread.median?.max(1.0),
        if fork.ci95.is_none() || thread.ci95.is_none() { ", by few samples" } else { "" }
    );
    paragraph(&mut out, "", &text, width);
    Some(out)
}

fn limit(record: &RunRecord, width: usize) -> Option<String> {
    let of_kind = |kind| find(record, View::UnitLimit, &[(names::KIND, kind)]);
    let (process, thread) = (of_kind("process")?, of_kind("thread")?);
    let (processes, threads) = (process.limit.as_ref()?, thread.limit.as_ref()?);
    let by = |report: &contend_record::lab::LimitReport| match &report.stopped_by {
        StoppedBy::Cap => "the cap".to_owned(),
        StoppedBy::MemoryFloor => "the guard: memory".to_owned(),
        StoppedBy::Limit(name) => name.clone(),
        StoppedBy::Unknown => "not found out".to_owned(),
    };
    let next = |report: &contend_record::lab::LimitReport| {
        report
            .limits
            .first()
            .map_or_else(String::new, |limit| format!("{} ({})", limit.allows, limit.name))
    };
    let rows = [
        row(["most at once", "workshop", "created", "stopped by", "predicted"]),
        vec![
            "processes".into(),
            "1,193".into(),
            processes.created.to_string(),
            by(processes),
            next(processes),
        ],
        vec![
            "threads".into(),
            "4,095".into(),
            threads.created.to_string(),
            by(threads),
            next(threads),
        ],
    ];
    let mut out = grid(&rows, 1, width);
    let mut text = "The workshop created until it failed and did not say what failed; its numbers \
                    are those of its machine's settings."
        .to_owned();
    if processes.stopped_by == StoppedBy::Cap || threads.stopped_by == StoppedBy::Cap {
        let _ = write!(
            text,
            " Here a cap ends the trial, so that nobody else is hindered; `contend lab run {} \
             --cap none` goes to the end.",
            process.experiment
        );
    }
    paragraph(&mut out, "", &text, width);
    Some(out)
}

fn startup(record: &RunRecord, width: usize) -> Option<String> {
    let command = |name| find(record, View::Startup, &[(names::COMMAND, name)]);
    let known = [
        ("fork", "fork", "0.5ms"),
        ("true", "true", "1ms"),
        ("awk (mawk)", "mawk", "3ms"),
        ("awk (gawk)", "gawk", "3ms"),
        ("in a loop: true", "bash-loop-true", "1ms"),
        ("in a loop: awk", "bash-loop-awk", "3ms"),
    ];
    let mut rows = vec![row(["starting", "study: about", "elapsed", "CPU self", "CPU children"])];
    for (title, name, document) in known {
        let Some(case) = command(name) else { continue };
        rows.push(vec![
            title.to_owned(),
            document.to_owned(),
            figure(case.median),
            figure(case.metric("cpu_self")),
            figure(case.metric("cpu_children")),
        ]);
    }
    if rows.len() == 1 {
        return None;
    }
    let mut out = grid(&rows, 1, width);
    let mut text = "The study of shell pipelines (2021) took 1,000 starts in a shell's loop; both \
                    ways stand here, the loop's own turns included."
        .to_owned();
    let known = |name| command(name).filter(|case| case.ci95.is_some()).and_then(|c| c.median);
    if let (Some(bare), Some(dynamic)) = (known("static"), known("true"))
        && dynamic > bare
    {
        let _ = write!(
            text,
            " A static program that only ends takes {} in the same way: {:.0} % of what `true` takes \
             is the dynamic linker, the C library and the program itself.",
            nanoseconds(bare),
            100.0 * (1.0 - bare / dynamic)
        );
    }
    paragraph(&mut out, "", &text, width);
    Some(out)
}
