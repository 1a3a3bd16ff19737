//! Settings of `contend compare`: reads the records to compare.

use anyhow::Result;
use contend_record::compare::Origin;
use contend_record::lab::RunRecord;
use contend_report::compare::SavedRuns;
use contend_report::render::history::kind;

use super::named::{self, Text};
use super::{RecordFiles, RecordPaths};
use crate::cli::compare::CompareArgs;
use crate::exit::UsageError;
use crate::records;

/// Settings of `contend compare`.
#[derive(Debug)]
pub struct Compare {
    /// The runs; the first is the baseline.
    pub runs: ComparedRuns,
    /// The files for the comparison.
    pub files: RecordFiles,
}

/// Runs of the same kind.
#[derive(Debug)]
pub enum ComparedRuns {
    /// Runs of the lab.
    Lab(Vec<(Origin, RunRecord)>),
    /// Runs of pipelines.
    Pipelines(Vec<SavedRuns>),
}

/// Smallest number of runs that can be compared.
const MIN_RUNS: usize = 2;

/// Returns the settings of `contend compare`.
///
/// # Errors
/// Returns an error if:
/// - there is only one run,
/// - a run cannot be read, as [`named::read`] says, or the runs are of different kinds, or
/// - a file cannot be written, or is one of the runs.
pub fn compare(args: CompareArgs) -> Result<Compare> {
    let (origins, texts): (Vec<_>, Vec<_>) =
        named::read(&args.runs, args.store)?.into_iter().unzip();
    if texts.len() < MIN_RUNS {
        let message =
            "one run has nothing to be compared with: give at least two runs, or a page of several";
        return Err(UsageError(message.to_owned()).into());
    }
    let runs = compared_runs(origins, &texts)?;
    let paths = RecordPaths {
        json: args.json.as_deref(),
        html: args.html.as_deref(),
        exports: &args.exports,
    };
    for (option, path) in paths.named() {
        named::check_is_not_input(option, path, &args.runs)?;
    }
    Ok(Compare { runs, files: RecordFiles::prepare(paths)? })
}

/// Checks that records can be compared with the first one. Returns the place of one that cannot, and why.
fn check_kinds(texts: &[Text]) -> Result<(), (usize, String)> {
    let kinds: Vec<String> = texts
        .iter()
        .map(|text| match records::schema_of(&text.json) {
            schema if schema.is_empty() => schema,
            schema => kind(&schema).to_owned(),
        })
        .collect();
    let is_of_pipelines = |kind: &str| ["pipe", "versus", "run"].contains(&kind);
    for (place, (kind, text)) in kinds.iter().zip(texts).enumerate() {
        let is_like_first =
            *kind == kinds[0] || is_of_pipelines(kind) && is_of_pipelines(&kinds[0]);
        let what = match kind.as_str() {
            "" => records::without_schema(&text.json),
            "doctor" => {
                "it is a diagnosis of `contend doctor`; compare the program's wall time before and \
                         after a change, for instance with `contend pipe --vs`"
                    .to_owned()
            }
            kind if is_of_pipelines(kind) && !records::is_of_pipelines(&text.json) => {
                let schema = records::schema_of(&text.json);
                format!("this version of contend does not know the schema {schema}")
            }
            _ if !is_like_first => format!(
                "it is a record of the kind {kind}, and the first one is of the kind {}: compare runs of \
                 the lab, or runs of pipelines",
                kinds[0]
            ),
            _ => continue,
        };
        return Err((place, what));
    }
    Ok(())
}

/// Parses records, which must be of the same kind.
///
/// # Errors
/// Returns an error if a record cannot be read, or is of another kind than the first one.
pub fn compared_runs(origins: Vec<Origin>, texts: &[Text]) -> Result<ComparedRuns> {
    let wrong = |place: usize, what: String| {
        let name = match &origins[place] {
            Origin::StandardInput => "standard input".to_owned(),
            Origin::Kept { number, .. } => format!("run {number}"),
            Origin::File { path } => path.clone(),
        };
        UsageError(format!("cannot compare {name}: {what}"))
    };
    check_kinds(texts).map_err(|(place, what)| wrong(place, what))?;
    let are_pipelines = texts.first().is_some_and(|first| records::is_of_pipelines(&first.json));
    if are_pipelines {
        let read = |(place, text): (usize, &Text)| {
            records::of_pipelines(&text.json, &text.from).map_err(|what| wrong(place, what))
        };
        let runs = texts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        return Ok(ComparedRuns::Pipelines(runs.into_iter().flatten().collect()));
    }
    let read = |(place, text): (usize, &Text)| {
        if let Origin::Kept { number, .. } = origins[place] {
            return records::saved_lab(number, &records::schema_of(&text.json), &text.json);
        }
        Ok(records::of_lab(&text.json, "contend lab --json").map_err(|what| wrong(place, what))?)
    };
    let runs: Vec<RunRecord> = texts.iter().enumerate().map(read).collect::<Result<_>>()?;
    Ok(ComparedRuns::Lab(origins.into_iter().zip(runs).collect()))
}
