//! Renders the experiments that copy files.

use std::fmt::Write as _;

use contend_record::lab::Case;
use contend_record::parameters::{Value, names};

use super::super::layout::{columns_left_out, paragraph};
use super::super::units::{bytes, count, nanoseconds};
use super::table::{figure, grid, parameter, row};

/// Renders a table of the cases, and a note on memory bandwidth if it was measured.
pub fn section(cases: &[&Case], width: usize) -> String {
    let is_wide = width >= 100;
    let mut headings = row(["method", "place", "cache", "time", "bytes/s", "user", "sys"]);
    if is_wide {
        headings.extend(row(["faults", "calls"]));
    }
    headings.push("limited by".to_owned());
    let mut lines = vec![headings];
    for case in cases {
        let number = |name: &str| case.metric(name).map_or_else(String::new, count);
        let mut line = vec![
            way(case),
            parameter(*case, names::FILE_SYSTEM),
            parameter(*case, names::CACHE),
            figure(case.median),
            bandwidth(case).map_or_else(String::new, bytes),
            figure(case.metric("user")),
            figure(case.metric("system")),
        ];
        if is_wide {
            line.extend([number("minor_faults"), number("calls")]);
        }
        line.push(limit(case).unwrap_or_default().to_owned());
        lines.push(line);
    }
    let mut out = grid(&lines, 3, width);
    if !is_wide {
        columns_left_out(&mut out, &["faults", "calls"], width);
    }
    if let Some(text) = memory(cases) {
        paragraph(&mut out, "", &text, width);
    }
    out
}

/// Returns the copying method with its block size or its advice to the kernel, if any.
pub fn way(case: &Case) -> String {
    let way = parameter(case, names::METHOD);
    if let Some(block) = case.parameters.number(names::BLOCK) {
        return format!("{way} {}", size(block));
    }
    match case.parameters.text(names::ADVICE) {
        None | Some("none") => way,
        Some(advice) => format!("{way}, {advice}"),
    }
}

/// Formats a size, which is given in bytes, in B, KiB or MiB, rounded down.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Returns the number of bytes copied per second, or `None` if the case was not measured or does
/// not give the size of the file.
pub fn bandwidth(case: &Case) -> Option<f64> {
    Some(case.parameters.number(names::BYTES)? as f64 / case.median? * 1e9)
}

/// Returns the name of the operation that takes most of the time, or `None` if the record does not
/// name it.
pub fn limit(case: &Case) -> Option<&str> {
    match case.facts.get("limit")? {
        Value::Text(limit) => Some(limit),
        _ => None,
    }
}

/// Describes how long it takes to copy the bytes of the largest file within memory, the additional
/// cost of each page of a file, and which method copied only a smaller file. Returns `None` if
/// these were not measured.
fn memory(cases: &[&Case]) -> Option<String> {
    let case = cases.iter().max_by_key(|case| case.parameters.number(names::BYTES))?;
    let (bytes_copied, time) =
        (case.parameters.number(names::BYTES)? as f64, case.metric("at_memory")?);
    let pages = case.metric("at_pages")? / (bytes_copied / 4096.0);
    let mut text = format!(
        "Copying within memory reaches {}/s here: {} for a file of {}. Finding or creating a page of a file \
         adds {}.",
        bytes(bytes_copied / time * 1e9),
        nanoseconds(time),
        bytes(bytes_copied),
        nanoseconds(pages),
    );
    let length = |case: &&&Case| case.parameters.number(names::BYTES);
    let least = cases.iter().min_by_key(length)?;
    if length(&least) < length(&case) {
        let (way, length) = (way(least), length(&least)? as f64);
        let _ = write!(text, " {way} copied only {}.", bytes(length));
    }
    Some(text)
}
