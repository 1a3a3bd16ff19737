//! Renders the demonstrations: what happened, step by step, and the conclusion.

use std::fmt::Write as _;

use contend_record::lab::{Case, Step, Task, View};
use contend_record::parameters::Value;

use super::super::layout::{BOLD, aligned_left, dimmed, fitted_lines, paragraph, plain_table};
use super::super::units::{bytes, seconds};

/// Returns the heading of a demonstration.
pub fn heading(experiment: &str) -> String {
    format!("{BOLD}{experiment}{BOLD:#}, step by step\n")
}

/// Renders one step, and the state of the tasks at that moment.
pub fn step(step: &Step, width: usize) -> String {
    let mut out = String::new();
    let mut line = format!("{} {}", step.who, step.what);
    if let (Some(address), Some(value)) = (&step.address, step.value) {
        let _ = write!(line, ": n = {value} at {address}");
    }
    paragraph(&mut out, &format!("{:>7} ", seconds(step.at_seconds)), &line, width);
    if step.tasks.is_empty() {
        return out; // it is about lines, not about processes
    }
    let mut table = plain_table();
    let first = if width < 70 { "   PID" } else { "       PID" };
    let headings = [first, "TID", "PPID", "STAT", "RSS", "PSS", "shared", "private", "faults"];
    let row = |cells: [String; 9]| cells.into_iter().map(|text| aligned_left(1, 0, text));
    table.add_row(row(headings.map(str::to_owned)));
    step.tasks.iter().for_each(|task| {
        table.add_row(row(cells(task)));
    });
    out.push_str(&fitted_lines(table, 2, width));
    out
}

fn cells(task: &Task) -> [String; 9] {
    let size = |value: u64| format!("{}kB", value / 1024);
    [
        task.pid.to_string(),
        task.tid.to_string(),
        task.ppid.to_string(),
        task.state.clone(),
        size(task.rss_bytes),
        size(task.pss_bytes),
        size(task.shared_bytes),
        size(task.private_bytes),
        task.minor_faults.to_string(),
    ]
}

/// Returns the conclusions that follow from the steps.
pub fn closing(cases: &[&Case], width: usize) -> String {
    let mut out = String::new();
    for case in cases {
        let text = match case.view {
            View::ProcessSharing => processes(case),
            _ => threads(case),
        };
        paragraph(&mut out, "", &text, width);
    }
    let note = "kB in the steps are 1,024 bytes, as in ps; PSS divides a shared page by its users.";
    dimmed(&mut out, note, width);
    out
}

fn fact(case: &Case, name: &str) -> String {
    case.facts.get(name).map_or_else(|| "?".to_owned(), Value::to_string)
}

/// Describes at how many different addresses the units saw the variable.
fn place(case: &Case) -> String {
    let mut addresses: Vec<&String> =
        case.timeline.iter().filter_map(|step| step.address.as_ref()).collect();
    addresses.dedup();
    match addresses.as_slice() {
        [one] => format!("at the same address {one}"),
        many => format!("at {} different addresses", many.len()),
    }
}

fn processes(case: &Case) -> String {
    let copied = case.median.unwrap_or(0.0);
    let faults = case.metric("page_faults").unwrap_or(0.0);
    let copy = if copied > 0.0 {
        format!(
            "Its first write cost {faults:.0} page fault{} and made {copied:.0} bytes of its memory \
             private: the kernel copied the page at that moment, and not before",
            if (faults - 1.0).abs() < 0.5 { "" } else { "s" },
        )
    } else {
        "No growth of private memory was seen at its first write".to_owned()
    };
    let [inherited, wrote, still, last] =
        ["child_inherited", "child_wrote", "parent_still_saw", "parent_wrote"]
            .map(|name| fact(case, name));
    let pages = if wrote == still { "" } else { ": what one writes the other does not see" };
    format!(
        "Both processes saw n {}. The child inherited {inherited}, wrote {wrote} and the parent \
         still saw {still}{pages}. {copy}. The parent then wrote {last} to its own.",
        place(case),
    )
}

fn threads(case: &Case) -> String {
    let added = case.median.unwrap_or(0.0);
    let copy = if added == 0.0 {
        "Its write made no memory private: there is nothing to copy".to_owned()
    } else {
        format!("Private memory grew by {} meanwhile, for other reasons than n", bytes(added.abs()))
    };
    let [saw, wrote, then, last] =
        ["thread_saw", "thread_wrote", "main_then_saw", "main_wrote"].map(|name| fact(case, name));
    let pages = if wrote == then { ": what one writes the other sees" } else { "" };
    format!(
        "Both threads saw n {}. The thread saw {saw}, wrote {wrote} and main then saw {then}{pages}. \
         {copy}. Main then wrote {last}.",
        place(case),
    )
}
