//! The command line, as data. What it means is decided in [`crate::settings`].

pub mod compare;
pub mod demo;
pub mod generate;
pub mod history;
pub mod json;
pub mod lab;
pub mod pipe;
pub mod run;

use clap::{Parser, Subcommand};
use contend_parallel::plan::script::STAGE_VERB;

/// Shows what concurrency costs on this machine and where a pipeline pays for it.
///
/// contend watches programs from outside, as an ordinary user, and says where their time
/// goes: on a CPU, waiting for one, waiting for input, for output, or for something else.
#[derive(Debug, Parser)]
#[command(name = "contend", version, propagate_version = true, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_value_name = "VERB")]
#[command(subcommand_help_heading = "Verbs")]
#[command(after_help = "`contend VERB -h` is short, `contend VERB --help` has everything.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Runs a pipeline and reports where each stage's time went.
    Pipe(pipe::PipeArgs),
    /// Runs a pipeline over parts of its input at the same time.
    Run(run::RunArgs),
    /// A stage of shell text, started by the shell that runs it.
    #[command(hide = true, name = STAGE_VERB)]
    RunStage(run::StageArgs),
    /// Profiles three small pipelines and explains what is seen.
    Demo(demo::DemoArgs),
    /// Measures what processes and threads cost on this machine.
    Lab(lab::LabArgs),
    /// Lists the runs that are kept, or shows one of them again.
    History(history::HistoryArgs),
    /// Sets the same cases of several runs of the lab beside each other, with ratios.
    Compare(compare::CompareArgs),
    /// Prints the values at some paths out of JSON of any size.
    Json(json::JsonArgs),
    /// The process of one case of the lab, started by contend itself.
    #[command(hide = true, name = contend_lab::engine::isolate::VERB)]
    LabCase,
    /// The units of a runtime that is written in Rust, made for a case of the lab.
    #[command(hide = true, name = contend_lab::experiments::runtimes::VERB)]
    LabProbe {
        /// The kind of unit.
        unit: String,
    },
    /// A server of the lab, which serves until its standard input ends.
    #[command(hide = true, name = contend_lab::experiments::server::VERB)]
    LabServer {
        /// How it serves many connections.
        model: String,
        /// What it does with a request.
        answer: String,
        /// Processes of a program.
        processes: Option<u64>,
        /// Threads in each of these processes.
        threads: Option<u64>,
        /// Connections that it has to keep open.
        connections: Option<u64>,
    },
    /// Prints shell completions, man pages, JSON Schemas or the list of experiments.
    Generate(generate::GenerateArgs),
}

/// A time in seconds that suffices to measure something, and ends within a day.
fn budget(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.001 to 86400".to_owned()),
    }
}

/// A number of bytes, with k, M or G behind it for powers of 1024.
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
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "give a size such as 500k, 64M or 1G".to_owned())
}
