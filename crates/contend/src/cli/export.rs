//! Options for exporting results to other programs, which several verbs have.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Options for exporting the figures of a result. JSON, which has all of it, is the option `--json` of
/// each verb, with `--export-json` as another name.
#[derive(Debug, Clone, Default, Args)]
pub struct ExportArgs {
    /// Write the figures as Markdown to FILE, or `-` for stdout.
    ///
    /// Tables with figures for people, for a document or an issue.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Exports")]
    pub export_markdown: Option<PathBuf>,

    /// Write the figures as CSV to FILE, or `-` for stdout.
    ///
    /// One table, in which numbers have all their digits, in the units that the headings name. A text
    /// that a spreadsheet would execute as a formula has an apostrophe before it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Exports")]
    pub export_csv: Option<PathBuf>,
}
