//! Where the results of a measurement go.

use std::path::Path;

use anyhow::Result;
use contend_report::render::pipe::Detail;

use crate::cli::export::ExportArgs;
use crate::exit::UsageError;
use crate::output::ReportFile;

/// The reports to write.
#[derive(Debug)]
pub struct Reports {
    /// Amount of detail of the report for people.
    pub detail: Detail,
    /// File for that report instead of standard error.
    pub output: Option<ReportFile>,
    /// Files for the record.
    pub files: RecordFiles,
}

/// The files for a record: one for each of the forms that are requested.
#[derive(Debug, Default)]
pub struct RecordFiles {
    /// File for the record as JSON.
    pub json: Option<ReportFile>,
    /// File for the record as a web page.
    pub html: Option<ReportFile>,
    /// File for the record's figures as Markdown.
    pub markdown: Option<ReportFile>,
    /// File for the record's figures as CSV.
    pub csv: Option<ReportFile>,
    /// Label of the run in the history, which the figures have; empty if none.
    pub label: String,
}

/// The files that the options name, as far as they are given.
#[derive(Debug, Clone, Copy)]
pub struct RecordPaths<'a> {
    /// `--json`.
    pub json: Option<&'a Path>,
    /// `--html`.
    pub html: Option<&'a Path>,
    /// The options for exports.
    pub exports: &'a ExportArgs,
}

impl<'a> RecordPaths<'a> {
    /// Returns the paths with the options that name them.
    pub fn named(self) -> impl Iterator<Item = (&'static str, &'a Path)> {
        let Self { json, html, exports } = self;
        let all = [
            ("--json", json),
            ("--html", html),
            ("--export-markdown", exports.export_markdown.as_deref()),
            ("--export-csv", exports.export_csv.as_deref()),
        ];
        all.into_iter().filter_map(|(option, path)| Some((option, path?)))
    }
}

impl RecordFiles {
    /// Prepares to write the files.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if a file cannot be written, or two options name the same file.
    pub fn prepare(paths: RecordPaths<'_>) -> Result<Self> {
        let prepare = |path: Option<&Path>| path.map(ReportFile::prepare).transpose();
        let files = Self {
            json: prepare(paths.json)?,
            html: prepare(paths.html)?,
            markdown: prepare(paths.exports.export_markdown.as_deref())?,
            csv: prepare(paths.exports.export_csv.as_deref())?,
            label: String::new(),
        };
        check_all_differ(files.named())?;
        Ok(files)
    }

    /// Adds the label of the run, if it has one.
    #[must_use]
    pub fn with_label(self, label: Option<&str>) -> Self {
        Self { label: label.unwrap_or_default().to_owned(), ..self }
    }

    /// Returns the files with the options that name them.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &ReportFile)> {
        let all = [
            ("--json", &self.json),
            ("--html", &self.html),
            ("--export-markdown", &self.markdown),
            ("--export-csv", &self.csv),
        ];
        all.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }

    /// Returns whether no file is requested.
    pub fn is_empty(&self) -> bool {
        self.named().next().is_none()
    }

    /// Returns whether one of the files is standard output, by the name `-`. It then replaces a report
    /// that would go there.
    pub fn has_stdout(&self) -> bool {
        self.named().any(|(_, file)| file.is_stdout())
    }
}

impl Reports {
    /// Prepares to write the reports. `output` is the path that `--output` names.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if a file cannot be written, or two options name the same file.
    pub fn prepare(detail: Detail, output: Option<&Path>, paths: RecordPaths<'_>) -> Result<Self> {
        let output = output.map(ReportFile::prepare).transpose()?;
        let reports = Self { detail, output, files: RecordFiles::prepare(paths)? };
        check_all_differ(reports.files())?;
        Ok(reports)
    }

    /// Adds the label of the run, if it has one.
    #[must_use]
    pub fn with_label(self, label: Option<&str>) -> Self {
        Self { files: self.files.with_label(label), ..self }
    }

    /// Returns the files with the options that name them.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &ReportFile)> {
        let output = self.output.iter().map(|file| ("--output", file));
        output.chain(self.files.named())
    }
}

fn check_all_differ<'a>(
    files: impl Iterator<Item = (&'static str, &'a ReportFile)>,
) -> Result<(), UsageError> {
    let files: Vec<_> = files.collect();
    for (number, &file) in files.iter().enumerate() {
        files[..number].iter().try_for_each(|&other| check_differ(other, file))?;
    }
    Ok(())
}

/// Returns an error if two options name the same file.
///
/// # Errors
/// Returns that error.
pub fn check_differ(
    (option, file): (&str, &ReportFile),
    (other, other_file): (&str, &ReportFile),
) -> Result<(), UsageError> {
    if file.is_same_as(other_file) {
        let message = format!("{option} and {other} name the same file: give them different names");
        return Err(UsageError(message));
    }
    Ok(())
}
