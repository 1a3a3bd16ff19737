//! Helpers for tests of rendered text, and records of earlier runs.

use serde_json::Value;

pub(crate) const PIPE: &str = include_str!("../../../../testdata/records/pipe-1.json");
pub(crate) const DOCTOR: &str = include_str!("../../../../testdata/records/doctor-1.json");
pub(crate) const RUN: &str = include_str!("../../../../testdata/records/run-1.json");
pub(crate) const VERSUS: &str = include_str!("../../../../testdata/records/versus-1.json");
pub(crate) const COMPARE: &str = include_str!("../../../../testdata/records/compare-1.json");
pub(crate) const LAB: [&str; 5] = [
    include_str!("../../../../testdata/lab/experiments.json"),
    include_str!("../../../../testdata/lab/pipeline.json"),
    include_str!("../../../../testdata/lab/process-thread.json"),
    include_str!("../../../../testdata/lab/shared-memory.json"),
    include_str!("../../../../testdata/lab/synchronisation.json"),
];

/// Returns the text without styles.
pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Returns the output of `write`, without styles.
pub(super) fn plain_output(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    plain(&out)
}

/// Replaces each text of a record by `text` in turn, and calls `check` with the record.
pub(crate) fn with_each_text(value: &mut Value, text: &str, check: &mut dyn FnMut(&mut Value)) {
    // A path of keys and indices to each text.
    let mut paths = vec![String::new()];
    let mut texts = Vec::new();
    while let Some(path) = paths.pop() {
        match value.pointer(&path) {
            Some(Value::Object(fields)) => {
                paths.extend(
                    fields
                        .keys()
                        .map(|key| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))),
                );
            }
            Some(Value::Array(items)) => {
                // The first items of a list are like the others.
                paths.extend((0..items.len().min(3)).map(|index| format!("{path}/{index}")));
            }
            Some(Value::String(_)) => texts.push(path),
            _ => {}
        }
    }
    for path in texts {
        let Some(place) = value.pointer_mut(&path) else { continue };
        let before = std::mem::replace(place, Value::String(text.to_owned()));
        check(value);
        if let Some(place) = value.pointer_mut(&path) {
            *place = before;
        }
    }
}
