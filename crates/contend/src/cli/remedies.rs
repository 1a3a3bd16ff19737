//! Arguments of `contend doctor --try`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use contend_doctor::remedy::TABLE;
use contend_record::remedy::RemedyId;

/// Options for trying remedies.
#[derive(Debug, Args)]
pub struct TryArgs {
    /// Measure whether remedies help that need no change of code.
    ///
    /// After the observation, runs the command unchanged and with one remedy at a time in turn, such as
    /// another number of threads or another memory allocator, and compares wall time, CPU time, output
    /// and exit status. At most six remedies are tried: those for the findings that have an effect on
    /// the program's runtime and libraries. `--try=all` tries all that have an effect on these,
    /// whatever was found, and `--try=REMEDY` tries the named ones in any case; the guide to `contend
    /// doctor` lists them.
    ///
    /// The command runs many times, with all its side effects: reset them with --prepare. Its output
    /// appears once, from the first run. Every run reads the same input. Of an input that comes through
    /// a pipe, the first 64 MiB are kept and the rest is not read; instead of a terminal, the runs after
    /// the first one read an empty input.
    #[arg(long = "try", value_name = "REMEDY", num_args = 0..=1, require_equals = true)]
    #[arg(value_delimiter = ',', default_missing_value = FINDINGS, value_parser = remedy())]
    #[arg(hide_possible_values = true, help_heading = "Remedies")]
    pub remedies: Option<Vec<RemedyArg>>,

    /// Run N rounds for --try.
    ///
    /// In a round, the command runs unchanged and with each remedy once. [default: as many as needed
    /// for a clear result within the budget]
    #[arg(long, value_name = "N", help_heading = "Remedies", requires = "remedies")]
    #[arg(value_parser = super::whole_number::<usize>(1..=10_000), conflicts_with = "budget")]
    pub runs: Option<usize>,

    /// Time limit for --try [default: 60].
    ///
    /// Three rounds run in any case, and a round that has started is completed. If they would take
    /// longer, fewer remedies are tried.
    #[arg(long, value_name = "SECONDS", value_parser = super::budget)]
    #[arg(allow_negative_numbers = true, help_heading = "Remedies", requires = "remedies")]
    pub budget: Option<f64>,

    /// Run shell text before each run of --try, untimed.
    ///
    /// If it fails, the trial ends. The first run, which is observed, takes place without it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Remedies")]
    #[arg(requires = "remedies")]
    pub prepare: Option<String>,

    /// Seed for the run order of --try [default: random].
    #[arg(long, value_name = "N", help_heading = "Remedies", requires = "remedies")]
    #[arg(value_parser = super::whole_number::<u64>(..))]
    pub seed: Option<u64>,
}

/// A value of `--try`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemedyArg {
    /// Remedies for the findings; the value if there is none on the command line.
    Findings,
    /// All remedies that have an effect on the program.
    All,
    /// This remedy.
    One(RemedyId),
}

/// Name of [`RemedyArg::Findings`].
const FINDINGS: &str = "findings";
/// Name of [`RemedyArg::All`].
const ALL: &str = "all";

/// Returns the parser for a value of `--try`.
fn remedy() -> impl clap::builder::TypedValueParser<Value = RemedyArg> {
    let names = [FINDINGS, ALL].into_iter().chain(TABLE.iter().map(|row| row.name));
    PossibleValuesParser::new(names).map(|name| {
        let row = TABLE.iter().find(|row| row.name == name);
        match row {
            Some(row) => RemedyArg::One(row.id),
            None if name == ALL => RemedyArg::All,
            None => RemedyArg::Findings,
        }
    })
}
