//! Where the results of a measurement go.

use std::path::Path;

use anyhow::Result;
use contend_report::render::pipe::Detail;

use crate::exit::UsageError;
use crate::output::ReportFile;

/// The reports to write.
#[derive(Debug)]
pub struct Reports {
    /// Amount of detail of the report for people.
    pub detail: Detail,
    /// File for that report instead of standard error.
    pub output: Option<ReportFile>,
    /// File for the record as JSON.
    pub json: Option<ReportFile>,
    /// File for the record as a web page.
    pub html: Option<ReportFile>,
}

/// The files that the options name, as far as they are given.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportPaths<'a> {
    /// `--output`.
    pub output: Option<&'a Path>,
    /// `--json`.
    pub json: Option<&'a Path>,
    /// `--html`.
    pub html: Option<&'a Path>,
}

impl Reports {
    /// Prepares to write the reports.
    ///
    /// # Errors
    /// Returns a [`UsageError`] if a file cannot be written, or two options name the same file.
    pub fn prepare(detail: Detail, paths: ReportPaths<'_>) -> Result<Self> {
        let prepare = |path: Option<&Path>| path.map(ReportFile::prepare).transpose();
        let reports = Self {
            detail,
            output: prepare(paths.output)?,
            json: prepare(paths.json)?,
            html: prepare(paths.html)?,
        };
        let files: Vec<(&str, &ReportFile)> = reports.files().collect();
        for (number, (option, file)) in files.iter().enumerate() {
            for (other, other_file) in &files[..number] {
                check_differ((other, other_file), (option, file))?;
            }
        }
        Ok(reports)
    }

    /// Returns the files with the options that name them.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &ReportFile)> {
        let all = [("--output", &self.output), ("--json", &self.json), ("--html", &self.html)];
        all.into_iter().filter_map(|(option, file)| Some((option, file.as_ref()?)))
    }
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
