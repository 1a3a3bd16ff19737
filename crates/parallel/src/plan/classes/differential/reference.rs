//! A simple reference implementation of the combiners.

use contend_commands::awk::sums::Totals;

use super::TestedCommand;
use super::programs::{CommandOutput, Program};
use crate::execute::order::{Equal, Kind};
use crate::plan::ir::{Column, Combine, Command, LineOrder, Merge, Numbers};

/// Returns the combined output. Returns `None` if the command that combines outputs fails, if
/// totals are not exact, or for [`Combine::Counts`], which no class has.
pub(super) fn combined(subject: &TestedCommand, outputs: &[CommandOutput]) -> Option<Vec<u8>> {
    let outputs: Vec<&[u8]> = outputs.iter().map(|ran| ran.output.as_slice()).collect();
    match &subject.class.combine {
        Combine::Concatenate => Some(outputs.concat()),
        Combine::Adjoin { counted } => Some(adjoined(&outputs, *counted)),
        Combine::Merge(merge) => Some(merged(subject, merge, &outputs)),
        Combine::Numbers(numbers) => Some(added_up(numbers, &outputs)),
        Combine::Through(command) => through(subject, command, &outputs),
        Combine::Totals(command) => {
            let exact = Totals::are_exact(outputs.iter().copied());
            exact.then(|| through(subject, command, &outputs)).flatten()
        }
        Combine::Counts { .. } => None,
    }
}

fn through(subject: &TestedCommand, command: &Command, outputs: &[&[u8]]) -> Option<Vec<u8>> {
    let arguments = command.arguments.iter().map(String::as_str);
    let ran = Program::new(&command.program, arguments, subject.locale).run(&outputs.concat());
    (ran.status == 0).then_some(ran.output)
}

fn adjoined(outputs: &[&[u8]], counted: bool) -> Vec<u8> {
    let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
    for output in outputs {
        for (number, line) in output.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let (count, text) = if counted { counted_line(line) } else { (1, line) };
            match all.last_mut() {
                Some(last) if number == 0 && last.1 == text => last.0 += count,
                _ => all.push((count, text.to_vec())),
            }
        }
    }
    let written = all.into_iter().flat_map(|(count, text)| {
        let count = if counted { format!("{count:7} ") } else { String::new() };
        count.into_bytes().into_iter().chain(text)
    });
    written.collect()
}

fn counted_line(line: &[u8]) -> (u64, &[u8]) {
    let start = line.iter().position(|byte| *byte != b' ').expect("a count");
    let digits = line[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let count = std::str::from_utf8(&line[start..start + digits]).expect("digits");
    (count.parse().expect("a number"), &line[start + digits + 1..])
}

fn merged(subject: &TestedCommand, merge: &Merge, outputs: &[&[u8]]) -> Vec<u8> {
    let files: Vec<String> = (0..outputs.len())
        .map(|number| subject.folder.path().join(number.to_string()))
        .map(|path| path.to_str().expect("UTF-8").to_owned())
        .collect();
    for (file, output) in files.iter().zip(outputs) {
        std::fs::write(file, output).expect("written");
    }
    let arguments = merge.command.arguments.iter().chain(&files).map(String::as_str);
    let ran = Program::new(&merge.command.program, arguments, subject.locale).run(b"");
    assert!(ran.status == 0 && ran.errors.is_empty(), "{}: {ran:?}", subject.text);
    if let Some(order) = &merge.lines {
        assert_eq!(in_order(order, outputs), ran.output, "{}", subject.text);
    }
    ran.output
}

fn in_order(order: &LineOrder, outputs: &[&[u8]]) -> Vec<u8> {
    let records = outputs.iter().flat_map(|output| {
        output
            .split_inclusive(|byte| *byte == order.separator)
            .map(|record| record.strip_suffix(&[order.separator]).unwrap_or(record))
    });
    let mut records: Vec<&[u8]> = records.collect();
    let kind = Kind { order, equal: Equal::Kept };
    records.sort_unstable_by(|one, other| kind.compare(one, other));
    if order.unique {
        records.dedup();
    }
    records.into_iter().flat_map(|record| [record, &[order.separator]].concat()).collect()
}

fn added_up(numbers: &Numbers, outputs: &[&[u8]]) -> Vec<u8> {
    let mut totals = vec![0_u64; numbers.columns.len()];
    for output in outputs {
        let text = std::str::from_utf8(output).expect("digits");
        let row = text.split_whitespace().map(|number| number.parse::<u64>().expect("a number"));
        for ((total, column), number) in totals.iter_mut().zip(&numbers.columns).zip(row) {
            *total = match column {
                Column::Sum => *total + number,
                Column::Greatest => number.max(*total),
            };
        }
    }
    let row: Vec<String> =
        totals.iter().map(|total| format!("{total:>width$}", width = numbers.width)).collect();
    (row.join(" ") + "\n").into_bytes()
}
