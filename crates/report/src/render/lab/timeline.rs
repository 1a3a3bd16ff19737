//! Renders demonstrations: their steps, and the conclusions from the steps.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use contend_record::lab::{Case, Step, Task, View};
use contend_record::parameters::Value;

use super::super::layout::{BOLD, aligned_left, dimmed, fitted_lines, paragraph, plain_table};
use super::super::text::printable;
use super::super::units::{bytes, seconds};

/// Returns the heading of the demonstration by the given experiment, as a line.
pub fn heading(experiment: &str) -> String {
    format!("{BOLD}{}{BOLD:#}, step by step\n", printable(experiment))
}

/// Renders one step and, if its tasks were observed, a table of them.
pub fn step(step: &Step, width: usize) -> String {
    let mut out = String::new();
    paragraph(&mut out, &format!("{:>7} ", seconds(step.at_seconds)), &line(step), width);
    if step.tasks.is_empty() {
        return out; // steps of pipelines have no tasks
    }
    let mut table = plain_table();
    let mut headings = TASK_HEADINGS;
    headings[0] = if width < 70 { "   PID" } else { "       PID" };
    let row = |cells: [String; 9]| cells.into_iter().map(|text| aligned_left(1, 0, text));
    table.add_row(row(headings.map(str::to_owned)));
    step.tasks.iter().for_each(|task| {
        table.add_row(row(task_cells(task)));
    });
    out.push_str(&fitted_lines(table, 2, width));
    out
}

/// Returns who did what in a step, and which value of the variable it was about.
pub fn line(step: &Step) -> String {
    let mut line = format!("{} {}", step.who, step.what);
    if let (Some(address), Some(value)) = (&step.address, step.value) {
        let _ = write!(line, ": n = {value} at {address}");
    }
    line
}

/// Headings of a table of tasks.
pub const TASK_HEADINGS: [&str; 9] =
    ["PID", "TID", "PPID", "STAT", "RSS", "PSS", "shared", "private", "faults"];

/// Returns the row of a task.
pub fn task_cells(task: &Task) -> [String; 9] {
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

/// Renders the conclusions that follow from the steps of each case, and then a note on the figures.
pub fn closing(cases: &[&Case], width: usize) -> String {
    let mut out = String::new();
    for text in cases.iter().filter_map(|case| conclusion(case)) {
        paragraph(&mut out, "", &text, width);
    }
    dimmed(&mut out, NOTE, width);
    out
}

/// A note on the figures of tasks.
pub const NOTE: &str =
    "1 kB is 1,024 bytes here, as in ps. PSS divides shared pages by their users.";

/// Returns the conclusion that follows from the steps of a demonstration; `None` for another case.
pub fn conclusion(case: &Case) -> Option<String> {
    match case.view {
        View::ProcessSharing => Some(processes(case)),
        View::ThreadSharing => Some(threads(case)),
        _ => None,
    }
}

fn fact(case: &Case, name: &str) -> String {
    case.facts.get(name).map_or_else(|| "?".to_owned(), Value::to_string)
}

/// Describes at which address the units saw the variable, or at how many different ones.
fn place(case: &Case) -> String {
    let addresses: BTreeSet<&String> =
        case.timeline.iter().filter_map(|step| step.address.as_ref()).collect();
    match addresses.first() {
        Some(one) if addresses.len() == 1 => format!("at the same address {one}"),
        _ => format!("at {} different addresses", addresses.len()),
    }
}

fn processes(case: &Case) -> String {
    let copied = case.median.unwrap_or(0.0);
    let faults = case.metric("page_faults").unwrap_or(0.0);
    let copy = if copied > 0.0 {
        format!(
            "Its first write caused {faults:.0} page fault{} and made {copied:.0} bytes private: the \
             kernel copies a page only when it is written (copy on write)",
            if (faults - 1.0).abs() < 0.5 { "" } else { "s" },
        )
    } else {
        "Its first write did not increase private memory".to_owned()
    };
    let [inherited, wrote, still, last] =
        ["child_inherited", "child_wrote", "parent_still_saw", "parent_wrote"]
            .map(|name| fact(case, name));
    let pages = if wrote == still { "" } else { ": writes are not shared" };
    format!(
        "Both processes see n {}. The child inherited {inherited} and wrote {wrote}; the parent still \
         read {still}{pages}. {copy}. The parent then wrote {last}.",
        place(case),
    )
}

fn threads(case: &Case) -> String {
    let added = case.median.unwrap_or(0.0);
    let copy = if added == 0.0 {
        "Its write copied nothing".to_owned()
    } else {
        format!("Private memory changed by {}, which is unrelated to n", bytes(added.abs()))
    };
    let [saw, wrote, then, last] =
        ["thread_saw", "thread_wrote", "main_then_saw", "main_wrote"].map(|name| fact(case, name));
    let pages = if wrote == then { ": writes are shared" } else { "" };
    format!(
        "Both threads see n {}. The thread read {saw} and wrote {wrote}; main then read {then}{pages}. \
         {copy}. Main then wrote {last}.",
        place(case),
    )
}

#[cfg(test)]
mod tests {
    use contend_record::lab::Unit;
    use contend_record::parameters::Parameters;

    use super::*;

    fn seen_at(address: &str) -> Step {
        Step {
            at_seconds: 0.0,
            who: "child".to_owned(),
            what: "reads n".to_owned(),
            address: Some(address.to_owned()),
            value: Some(1),
            tasks: Vec::new(),
        }
    }

    #[test]
    fn every_address_counts_once() {
        let place_of = |addresses: &[&str]| {
            let view = View::ProcessSharing;
            let mut case = Case::new("a", view, Parameters::new(), Unit::Count);
            case.timeline = addresses.iter().map(|address| seen_at(address)).collect();
            place(&case)
        };
        assert_eq!(place_of(&["0x10", "0x10"]), "at the same address 0x10");
        assert_eq!(place_of(&["0x10", "0x20", "0x10"]), "at 2 different addresses");
    }
}
