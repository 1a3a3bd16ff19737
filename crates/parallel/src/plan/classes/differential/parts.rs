//! Cuts an input as a class allows, and checks the outputs of the chunks.

use super::super::PerRecord;
use super::programs::CommandOutput;
use crate::plan::ir::{Cut, Guard, Key, Records};

/// Cuts an input at one to four random positions that `cut` permits. Returns `None` if it permits
/// none.
pub(super) fn cut(cut: &Cut, input: &[u8], random: &mut fastrand::Rng) -> Option<Vec<Vec<u8>>> {
    let mut places: Vec<usize> = ends(cut.records, input)
        .into_iter()
        .filter(|&place| place < input.len() && allows(cut, input, place))
        .collect();
    random.shuffle(&mut places);
    places.truncate(random.usize(1..5));
    places.sort_unstable();
    let (first, last) = (*places.first()?, *places.last()?);
    let mut parts = vec![input[..first].to_vec()];
    parts.extend(places.windows(2).map(|pair| input[pair[0]..pair[1]].to_vec()));
    parts.push(input[last..].to_vec());
    Some(parts)
}

/// Returns the positions after separators; for JSON, only those outside of values.
fn ends(records: Records, input: &[u8]) -> Vec<usize> {
    let (mut within_string, mut depth, mut escaped) = (false, 0_i32, false);
    let mut places = Vec::new();
    for (place, &byte) in input.iter().enumerate() {
        let outside = !within_string && depth <= 0;
        if byte == records.separator() && (records != Records::Json || outside) {
            places.push(place + 1);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if within_string => escaped = true,
            b'"' => within_string = !within_string,
            b'[' | b'{' if !within_string => depth += 1,
            b']' | b'}' if !within_string => depth -= 1,
            _ => {}
        }
    }
    places
}

fn allows(cut: &Cut, input: &[u8], place: usize) -> bool {
    let separator = cut.records.separator();
    let before = &input[..place - 1];
    let after = &input[place..];
    let earlier = before.rsplit(|byte| *byte == separator).next().unwrap_or_default();
    let later = after.split(|byte| *byte == separator).next().unwrap_or_default();
    let in_order = cut.differ.is_none_or(|key| {
        let (earlier, later) = (key_of(key, earlier), key_of(key, later));
        if cut.ascending { earlier < later } else { earlier != later }
    });
    cut.before.contains(*before.last().unwrap_or(&separator))
        && after.first().is_none_or(|byte| cut.after.contains(*byte))
        && in_order
}

pub(super) fn key_of(key: Key, record: &[u8]) -> &[u8] {
    let blank = |byte: &u8| [b' ', b'\t'].contains(byte);
    match key {
        Key::Whole => record,
        Key::FirstField(separator) => {
            record.split(|byte| *byte == separator).next().unwrap_or_default()
        }
        Key::FirstWord => {
            let start = record.iter().position(|byte| !blank(byte)).unwrap_or(record.len());
            record[start..].split(blank).next().unwrap_or_default()
        }
    }
}

/// Returns whether a chunk satisfies the guard.
pub(super) fn holds(guard: &Guard, separator: u8, part: &[u8]) -> bool {
    if guard.terminated && part.last() != Some(&separator) {
        return false;
    }
    let clean = !part.iter().any(|byte| guard.without.contains(*byte));
    clean && (!guard.utf8 || std::str::from_utf8(part).is_ok())
}

/// Distributes the chunks to two processes in any order, and returns the input of each process. The
/// first chunk comes before all others of its process, and the last chunk after them.
pub(super) fn in_any_order(parts: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let [first, middle @ .., last] = parts else { return parts.to_vec() };
    let mut middle = middle.to_vec();
    random.shuffle(&mut middle);
    let mut processes = vec![first.clone(), Vec::new()];
    for part in middle {
        let process = random.usize(..processes.len());
        processes[process].extend(part);
    }
    let end = random.usize(..processes.len());
    processes[end].extend(last);
    if end != 0 && random.bool() {
        processes.swap(0, end);
    }
    processes
}

/// Checks that the outputs of the given chunks have the properties that the class claims. The error
/// names the missing property, the chunk and the output.
pub(super) fn check_outputs(
    each: &PerRecord,
    parts: &[Vec<u8>],
    outputs: &[CommandOutput],
) -> Result<(), String> {
    let said = &each.output;
    for (number, (part, ran)) in parts.iter().zip(outputs).enumerate() {
        let wrong = |what: &str| Err(format!("{what}: of {} {ran:?}", part.escape_ascii()));
        let ends = part.last() == Some(&each.cut.records.separator());
        if let Some(separator) = said.records.map(Records::separator)
            && (ends || number + 1 < parts.len() && !part.is_empty())
            && ran.output.last().is_some_and(|last| *last != separator)
        {
            return wrong("the output ends within a record");
        }
        if said.records == Some(Records::Json) && !ran.output.is_empty() {
            let end = ends_of_json(&ran.output);
            if end != Some(ran.output.len()) {
                return wrong("the output ends within a value");
            }
        }
        if said.keeps_utf8
            && std::str::from_utf8(part).is_ok()
            && std::str::from_utf8(&ran.output).is_err()
        {
            return wrong("the output is not UTF-8");
        }
        if said.keeps_ascii() && part.is_ascii() && !ran.output.is_ascii() {
            return wrong("the output is not ASCII");
        }
        if ran.output.iter().any(|byte| !said.adds.contains(*byte) && !part.contains(byte)) {
            return wrong("a byte is new");
        }
        if let Some(map) = said.map {
            let mapped: Vec<u8> = part.iter().map(|byte| map[usize::from(*byte)]).collect();
            if mapped != ran.output {
                return wrong("it is no map");
            }
        }
    }
    Ok(())
}

fn ends_of_json(output: &[u8]) -> Option<usize> {
    ends(Records::Json, output).last().copied()
}
