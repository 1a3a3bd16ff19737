//! `contend history`: lists, shows, labels, removes and exports saved runs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use contend_record::{doctor, pipe, run, versus};
use contend_report::render::history::Trend;
use contend_report::store::{Entry, Filter, Store};
use contend_report::{export, render};
use serde_json::{Value, json};

use super::{import, reports};
use crate::exit::{Exit, UsageError};
use crate::settings::{History, HistoryAction, RecordFiles};
use crate::{output, records};

/// Carries out the action on saved runs.
///
/// # Errors
/// Returns an error if the store cannot be used, a run does not exist or cannot be shown, a file
/// cannot be read or written, or the output cannot be written.
pub fn run(settings: History) -> Result<Exit> {
    let store = &settings.store;
    match settings.action {
        HistoryAction::List { filter, max, files } => list(store, &filter, max, *files)?,
        HistoryAction::Show { number, detail, json } => {
            let (entry, text) = records::saved(store, number)?;
            if let Some(file) = json {
                file.write(&(text + "\n"))?;
            } else {
                output::stdout(&report(&entry, &text, detail)?)?;
            }
        }
        HistoryAction::Remove { numbers } => {
            // Opening a store would create it.
            let missing = if store.exists() {
                Store::open(store)?.remove(&numbers)?
            } else {
                numbers.clone()
            };
            check_all_exist(&missing, "removed")?;
            output::stderr(&format!("removed {}\n", counted(&numbers)))?;
        }
        HistoryAction::Label { label, numbers } => {
            let missing = if store.exists() {
                Store::open(store)?.label(&numbers, &label)?
            } else {
                numbers.clone()
            };
            check_all_exist(&missing, "labelled")?;
        }
        HistoryAction::Export { numbers, filter, file } => {
            file.write(&export(store, &numbers, &filter)?)?;
        }
        HistoryAction::Import { paths, redaction } => {
            let runs = import::read(&paths, &redaction)?;
            let added = import::add(store, &runs)?;
            output::stderr(&format!("{added}\n"))?;
        }
    }
    Ok(Exit::Success)
}

/// Returns the report of a saved run. That of `contend run` has the statistics and, in full detail,
/// the plan.
fn report(entry: &Entry, text: &str, detail: render::lab::Detail) -> Result<String> {
    let width = output::width();
    let full = detail == render::lab::Detail::Full;
    let of_pipe = if full { render::pipe::Detail::Full } else { render::pipe::Detail::Summary };
    let damaged = || format!("cannot read the record of run {}", entry.id);
    Ok(match entry.schema.as_str() {
        pipe::SCHEMA => {
            let record = serde_json::from_str(text).with_context(damaged)?;
            render::pipe::report(&record, of_pipe, width)
        }
        versus::SCHEMA => {
            let record = serde_json::from_str(text).with_context(damaged)?;
            render::versus::report(&record, of_pipe, width)
        }
        doctor::SCHEMA => {
            let record = serde_json::from_str(text).with_context(damaged)?;
            render::doctor::report(&record, of_pipe, width)
        }
        run::SCHEMA => {
            let record = serde_json::from_str(text).with_context(damaged)?;
            let plan = if full { render::run::explanation(&record, width) } else { String::new() };
            let command = render::text::printable(&record.command);
            format!("{command}\n{plan}{}", render::run::statistics(&record, width))
        }
        schema => {
            let record = records::saved_lab(entry.id, schema, text)?;
            let heading = render::history::heading(entry, record.quick, width);
            format!("{heading}{}", render::lab::report(&record, detail, width))
        }
    })
}

/// Returns an error that names the missing runs, if there are any. `done` is the participle of the
/// action, such as `removed`.
fn check_all_exist(missing: &[i64], done: &str) -> Result<(), UsageError> {
    if missing.is_empty() {
        return Ok(());
    }
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let missing = missing.join(", ");
    Err(UsageError(format!(
        "no saved run {missing}; none was {done} (`contend history` lists them)"
    )))
}

/// Formats a number of runs: `run 3` or `3 runs`.
fn counted(numbers: &[i64]) -> String {
    match numbers {
        [number] => format!("run {number}"),
        numbers => format!("{} runs", numbers.len()),
    }
}

/// Prints a list of runs, and writes it to the given files. One of them on standard output replaces the
/// printed list.
fn list(path: &Path, filter: &Filter, max: usize, files: RecordFiles) -> Result<()> {
    let exists = path.exists();
    let entries = if exists { Store::open_to_read(path)?.list(filter, max)? } else { Vec::new() };
    let has_stdout = files.has_stdout();
    let RecordFiles { json, markdown, csv, html: _, label: _ } = files;
    let json = json.map_or(Ok(()), |file| file.write(&render::json::history(&entries)?));
    let exports = reports::write_exports(|| export::history(&entries), markdown, csv);
    json.and(exports)?;
    if has_stdout {
        return Ok(());
    }
    let text = if !exists {
        format!("No saved runs: {} does not exist.\n", path.display())
    } else if entries.is_empty() && *filter != Filter::default() {
        "No saved run matches.\n".to_owned()
    } else {
        let list = render::history::list(&entries, output::width());
        let trends = render::history::trends(&trends(path, &entries)?, output::width());
        if trends.is_empty() { list } else { format!("{list}\n{trends}") }
    };
    output::stdout(&text)
}

/// Smallest number of listed runs of a pipeline from which there is a trend of it.
const MIN_TREND_RUNS: usize = 3;

/// Returns the trends of pipelines of which several runs are listed.
fn trends(path: &Path, entries: &[Entry]) -> Result<Vec<Trend>> {
    let mut of_titles: Vec<(&Entry, Vec<i64>)> = Vec::new();
    for entry in entries.iter().rev().filter(|entry| !wall_pointers(&entry.schema).is_empty()) {
        let same = |one: &(&Entry, Vec<i64>)| {
            (&one.0.schema, &one.0.title, &one.0.host) == (&entry.schema, &entry.title, &entry.host)
        };
        match of_titles.iter_mut().find(|one| same(one)) {
            Some((_, runs)) => runs.push(entry.id),
            None => of_titles.push((entry, vec![entry.id])),
        }
    }
    of_titles.retain(|(_, runs)| runs.len() >= MIN_TREND_RUNS);
    if of_titles.is_empty() {
        return Ok(Vec::new());
    }
    let store = Store::open_to_read(path)?;
    let mut trends = Vec::new();
    for (entry, runs) in of_titles {
        let pointers = wall_pointers(&entry.schema);
        let mut wall_seconds = Vec::new();
        for run in runs {
            // A run may have been removed meanwhile, and a damaged record has no time.
            let Some((_, text)) = store.get(run)? else { continue };
            let record: Value = serde_json::from_str(&text).unwrap_or_default();
            let values = pointers.iter().filter_map(|pointer| record.pointer(pointer)?.as_f64());
            wall_seconds.extend(values.take(1));
        }
        if wall_seconds.len() >= MIN_TREND_RUNS {
            let (title, host) = (entry.title.clone(), entry.host.clone());
            trends.push(Trend { title, host, wall_seconds });
        }
    }
    Ok(trends)
}

/// Returns where records of a schema may have the wall time of the run, the preferred place first.
fn wall_pointers(schema: &str) -> &'static [&'static str] {
    match schema {
        pipe::SCHEMA => &["/runs/wall_seconds/median", "/wall_seconds"],
        run::SCHEMA => &["/outcome/wall_seconds"],
        _ => &[],
    }
}

/// Returns the given runs as JSON, one on each line, in ascending order of their numbers. Without
/// `numbers`, returns all runs that the filter accepts.
fn export(path: &Path, numbers: &[i64], filter: &Filter) -> Result<String> {
    if !path.exists() {
        return Err(UsageError(format!("{} does not exist", path.display())).into());
    }
    let store = Store::open_to_read(path)?;
    let is_filtered = *filter != Filter::default();
    if is_filtered && !numbers.is_empty() {
        let message = "export takes numbers of runs, or options that select runs, not both";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut ids: Vec<i64> = match numbers {
        [] => store.list(filter, usize::MAX)?.into_iter().map(|entry| entry.id).collect(),
        numbers => numbers.to_vec(),
    };
    if ids.is_empty() {
        let what = if is_filtered { "no saved run matches" } else { "no runs are saved yet" };
        return Err(UsageError(format!("{what}: nothing was exported")).into());
    }
    ids.sort_unstable();
    let mut text = String::new();
    for id in ids {
        let missing = || UsageError(format!("no saved run {id}; `contend history` lists them"));
        let (entry, record) = store.entry(id)?.ok_or_else(missing)?;
        let record: Value =
            serde_json::from_str(&record).with_context(|| format!("run {id} is damaged"))?;
        let line = json!({
            "format": import::EXPORT_FORMAT,
            "started_at": entry.started_at,
            "schema": entry.schema,
            "title": entry.title,
            "ending": entry.ending,
            "label": entry.label,
            "host": entry.host,
            "record": record,
        });
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}
