//! Records that arguments name: saved runs, files, and standard input.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use contend_record::compare::Origin;
use contend_report::render::html::embedded_record;
use contend_report::store::{Entry, Filter, Store};
use serde::de::IgnoredAny;

use super::{readable, store};
use crate::cli::lab::StoreArgs;
use crate::exit::UsageError;
use crate::records;

/// A record as JSON, and its origin in words.
#[derive(Debug)]
pub struct Text {
    /// The record as JSON.
    pub json: String,
    /// The origin, such as `run 7`.
    pub from: String,
}

impl Text {
    /// Returns the record of a saved run.
    pub fn of_run(entry: &Entry, json: String) -> Self {
        let from = match entry.label.as_str() {
            "" => format!("run {}", entry.id),
            label => format!("run {} ({label})", entry.id),
        };
        Self { json, from }
    }
}

/// Reads the records that arguments name, in this order. A page of several runs has several records.
///
/// # Errors
/// Returns an error if:
/// - a saved run is named, but the store's directory is unknown,
/// - a name is neither that of a file nor the label of exactly one saved run,
/// - a record cannot be read, or
/// - standard input is named twice.
pub fn read(names: &[PathBuf], args: StoreArgs) -> Result<Vec<(Origin, Text)>> {
    let store = store(args);
    let labels = store.as_ref().ok().map(PathBuf::as_path);
    let origins: Vec<Origin> =
        names.iter().map(|name| origin(name, labels)).collect::<Result<_>>()?;
    if origins.iter().filter(|origin| **origin == Origin::StandardInput).count() > 1 {
        return Err(
            UsageError("standard input can be read only once: give `-` once".to_owned()).into()
        );
    }
    let needs_store = origins.iter().any(|origin| matches!(origin, Origin::Kept { .. }));
    let store = if needs_store { Some(store?) } else { None };
    let mut records = Vec::new();
    for (name, mut origin) in names.iter().zip(origins) {
        let texts = match (&mut origin, &store) {
            (Origin::Kept { number, label }, Some(store)) => {
                vec![saved_run(store, *number, label)?]
            }
            (origin, _) => of_file(name, origin)?,
        };
        records.extend(texts.into_iter().map(|text| (origin.clone(), text)));
    }
    Ok(records)
}

/// Returns an error if a file that `option` names is one of the records.
///
/// # Errors
/// Returns that error.
pub fn check_is_not_input(option: &str, file: &Path, names: &[PathBuf]) -> Result<(), UsageError> {
    match names.iter().find(|input| is_same_file(input, file)) {
        None => Ok(()),
        Some(input) => Err(UsageError(format!(
            "{option} would overwrite {}, one of the given records: choose another file",
            input.display()
        ))),
    }
}

/// Returns the origin that an argument names: standard input, a saved run by its number or label, or
/// a file, which takes precedence. `store` is the path of the store in which labels are looked up;
/// `None` if its directory is unknown.
///
/// # Errors
/// Returns an error if there is no such file, and not exactly one run with that label. A name with a
/// slash is always that of a file.
fn origin(name: &Path, store: Option<&Path>) -> Result<Origin> {
    let text = name.to_string_lossy();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let kept = |number| Origin::Kept { number, label: String::new() };
    match text.parse() {
        _ if text == "-" => Ok(Origin::StandardInput),
        _ if name.exists() || text.contains('/') => Ok(Origin::File { path: text.into_owned() }),
        Ok(number) if is_number => Ok(kept(number)),
        _ => Ok(kept(labelled(store, &text)?)),
    }
}

/// Returns the number of the only saved run with the given label.
fn labelled(store: Option<&Path>, label: &str) -> Result<i64> {
    let filter = Filter { label: Some(label.to_owned()), ..Filter::default() };
    let entries = match store.filter(|path| path.exists()) {
        Some(path) => Store::open_to_read(path)?.list(&filter, usize::MAX)?,
        None => Vec::new(),
    };
    let numbers = entries.iter().filter(|entry| entry.label == label).map(|entry| entry.id);
    let mut numbers: Vec<i64> = numbers.collect();
    numbers.sort_unstable();
    match numbers.as_slice() {
        [number] => Ok(*number),
        [] => Err(UsageError(format!(
            "no file '{label}', and no saved run with this label: give a file, or the number or \
             label of a saved run; `contend history` lists them"
        ))
        .into()),
        several => {
            let several: Vec<_> = several.iter().map(ToString::to_string).collect();
            let message = format!(
                "{} saved runs have the label '{label}': give one of their numbers, {}",
                several.len(),
                several.join(", ")
            );
            Err(UsageError(message).into())
        }
    }
}

/// Reads the saved run with the given number, and sets `label` to its label.
fn saved_run(store: &Path, number: i64, label: &mut String) -> Result<Text> {
    if !store.exists() {
        let message = format!(
            "no file '{number}', and no saved run {number}: {} does not exist",
            store.display()
        );
        return Err(UsageError(message).into());
    }
    let (entry, json) = records::saved(store, number)?;
    let text = Text::of_run(&entry, json);
    *label = entry.label;
    Ok(text)
}

/// Reads a record from a file, or those of a page.
fn of_file(path: &Path, origin: &Origin) -> Result<Vec<Text>, UsageError> {
    let (name, opened) = match origin {
        Origin::StandardInput => {
            ("standard input".to_owned(), io::stdin().as_fd().try_clone_to_owned().map(File::from))
        }
        _ => (path.display().to_string(), File::open(path)),
    };
    let mut json = String::new();
    readable(&name, opened)?
        .read_to_string(&mut json)
        .map_err(|source| UsageError(format!("cannot read {name}: {source}")))?;
    // A page of `--html` contains its record, or those of several runs.
    let Some(embedded) = embedded_record(&json) else { return Ok(vec![Text { json, from: name }]) };
    let text = |json: &str, from| Text { json: json.to_owned(), from };
    Ok(match elements(embedded) {
        None => vec![text(embedded, name)],
        Some(records) => (1..)
            .zip(records)
            .map(|(number, record)| text(record, format!("{name}, run {number}")))
            .collect(),
    })
}

/// Returns the texts of the elements of a JSON array; `None` if the text is not an array with elements.
fn elements(json: &str) -> Option<Vec<&str>> {
    let mut rest = json.trim_start().strip_prefix('[')?;
    let mut elements = Vec::new();
    loop {
        // The text is kept: a value in memory does not keep the order of fields.
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        let (element, after) = rest.split_at(values.byte_offset());
        elements.push(element.trim());
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return (after.trim_end() == "]").then_some(elements),
        }
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| path.metadata().ok().filter(std::fs::Metadata::is_file);
    let place = |path: &Path| file(path).map(|data| (data.dev(), data.ino()));
    place(one).is_some_and(|place_of_one| place(other) == Some(place_of_one))
}

#[cfg(test)]
mod tests {
    use super::elements;

    #[test]
    fn an_array_is_split_into_the_texts_of_its_elements() {
        let text = " [{\"b\": [1, 2], \"a\": \"],{\"}, {} ,{\"c\":1e3}\n] ";
        let expected = [r#"{"b": [1, 2], "a": "],{"}"#, "{}", r#"{"c":1e3}"#];
        assert_eq!(elements(text).as_deref(), Some(&expected[..]));
        for other in ["", "{}", "[]", "[", "[{}", "[{},]", "[{}] x", "[{} {}]", "[{]"] {
            assert_eq!(elements(other), None, "{other}");
        }
    }
}
