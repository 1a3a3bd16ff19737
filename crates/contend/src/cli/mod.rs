//! Definitions of the command line, from which clap derives the parser and the help.
//! [`crate::settings`] checks the parsed arguments.

pub mod compare;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod generate;
pub mod history;
pub mod json;
pub mod lab;
pub mod part;
pub mod pipe;
pub mod remedies;
pub mod report;
pub mod run;
pub mod serve;

use std::ops::{Bound, RangeBounds};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use contend_parallel::plan::script::STAGE_VERB;

/// Find out which stage makes your shell pipeline slow, and make it faster.
///
/// contend profiles a pipeline from outside, without root and without changing its data: it shows
/// where the time of every stage goes, suggests faster versions and measures whether they help. It
/// also runs pipelines in parallel, and measures what processes, threads and messages cost on this
/// machine.
#[derive(Debug, Parser)]
#[command(name = "contend", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_value_name = "VERB")]
#[command(subcommand_help_heading = "Verbs")]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Use colours: auto, always or never.
    ///
    /// `auto` uses colours on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`;
    /// `CLICOLOR_FORCE` enables them elsewhere, too. Files that contend itself opens, as for
    /// --output, never get colours.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true, display_order = 1000)]
    pub color: ColorArg,

    /// The verb with its arguments.
    #[command(subcommand)]
    pub verb: Verb,
}

const AFTER_HELP: &str = "\
Start with `contend demo`, or put `contend pipe` before a quoted pipeline:
  contend pipe 'sort words.txt | uniq -c | sort -rn | head'

Use `contend VERB -h` for a summary of a verb, and `--help` for full details.";

/// A value of `--color`: when to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// Colours on a terminal.
    #[default]
    Auto,
    /// Colours in pipes and redirected output, too, but not in files that contend writes itself.
    Always,
    /// No colours.
    Never,
}

impl ColorArg {
    /// Returns the last valid value of `--color` in a command line that clap has rejected, or else
    /// the default. `words` does not include the name of the program.
    pub fn find(words: &[String]) -> Self {
        let values = words.iter().zip(words.iter().skip(1).map(Some).chain([None]));
        let given = values.filter_map(|(word, next)| match word.strip_prefix("--color")? {
            "" => next.map(String::as_str),
            rest => rest.strip_prefix('='),
        });
        given.filter_map(|value| Self::from_str(value, false).ok()).last().unwrap_or_default()
    }
}

/// A verb with its arguments. clap takes the help of a verb from the type of its arguments. A
/// variant with such a type has no doc comment, because that would hide the long help.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Pipe(pipe::PipeArgs),
    Run(run::RunArgs),
    #[command(hide = true, name = STAGE_VERB)]
    RunStage(run::StageArgs),
    Doctor(doctor::DoctorArgs),
    Demo(demo::DemoArgs),
    Lab(lab::LabArgs),
    History(history::HistoryArgs),
    Import(history::ImportArgs),
    Compare(compare::CompareArgs),
    Report(report::ReportArgs),
    Serve(serve::ServeArgs),
    Json(json::JsonArgs),
    /// Measure one case of the lab; started by contend itself.
    #[command(hide = true, name = contend_lab::engine::isolate::CASE_VERB)]
    LabCase,
    /// Create processes, threads or tasks on request, for a case of the lab.
    #[command(hide = true, name = contend_lab::experiments::runtimes::PROBE_VERB)]
    LabProbe {
        /// Kind of unit.
        unit: String,
    },
    /// Serve connections for a case of the lab until standard input ends.
    #[command(hide = true, name = contend_lab::experiments::server::SERVER_VERB)]
    LabServer {
        /// How the server handles many connections.
        model: String,
        /// How the server answers a request.
        answer: String,
        /// Processes of the program.
        processes: Option<u64>,
        /// Threads of each process.
        threads: Option<u64>,
        /// Connections that it has to keep open.
        connections: Option<u64>,
    },
    #[command(hide = true, name = contend_parallel::cluster::PART_VERB)]
    Part(part::PartArgs),
    Generate(generate::GenerateArgs),
}

/// Parses a time such as `10s`, `500ms`, `2m` or `1h`, or a number of seconds, up to a day. The error
/// says what is expected.
fn duration(text: &str) -> Result<Duration, String> {
    const DAY_SECONDS: f64 = 86_400.0;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = digits.parse::<f64>().map_or(f64::NAN, |number| number * unit);
    if (1e-3..=DAY_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err("expected a time such as 10s, 500ms or 2m, at most a day".to_owned())
}

/// Parses a time budget in seconds, from a millisecond to a day. The error says what is expected.
fn budget(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.001 to 86400".to_owned()),
    }
}

/// Returns a parser for whole numbers in the given range. The parser's error names the lower bound
/// of the range, and also the upper bound if the range includes it.
fn whole_number<T: TryFrom<u64>>(
    range: impl RangeBounds<u64> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match range.end_bound() {
            Bound::Included(max) => {
                format!("expected a whole number from {} to {max}", min(&range))
            }
            _ => format!("expected a whole number of at least {}", min(&range)),
        })
    }
}

/// Returns the smallest number in the range.
fn min(range: &impl RangeBounds<u64>) -> u64 {
    match range.start_bound() {
        Bound::Included(&min) => min,
        Bound::Excluded(&min) => min + 1,
        Bound::Unbounded => 0,
    }
}

/// Parses a positive number of bytes, with an optional suffix k, K, M or G for powers of 1024. The
/// error says what is expected.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(rest) => (rest, 1 << 10),
        None => match (text.strip_suffix('M'), text.strip_suffix('G')) {
            (Some(rest), _) => (rest, 1 << 20),
            (_, Some(rest)) => (rest, 1 << 30),
            _ => (text, 1),
        },
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| "expected a size such as 500k, 64M or 1G".to_owned())
}
