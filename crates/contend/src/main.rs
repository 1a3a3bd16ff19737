//! The command-line program, which parses and checks the command line, calls the libraries, and
//! prints their results:
//!
//! ```text
//!  cli ──────▶ settings ──────▶ commands ──────▶ output
//!  (clap)      (checked         (one module      (report, JSON, live view)
//!              before anything  per verb)
//!              runs)               │
//!                                  ▼
//!              profile   advise   parallel   lab   json   report   serve
//! ```
//!
//! Each step after `cli` reports failures as an [`anyhow::Error`]. [`exit_code`] prints the error
//! with its causes, and [`exit`] maps it to an exit status.

mod browser;
mod cli;
mod commands;
mod exit;
mod host;
mod live;
mod output;
mod progress;
mod publish;
mod records;
mod settings;
mod suggest;
mod terminal;
mod tips;
mod version;

use std::process::ExitCode;

use clap::Parser;
use contend_lab::experiments::server::Concurrency;

use crate::cli::{Args, Verb};
use crate::exit::Exit;

fn main() -> ExitCode {
    abort_on_panic();
    // The shell starts a process like this for every stage of a script, so this path skips the
    // parser of the complete command line.
    if let Some(result) = commands::run::run_as_stage() {
        return exit_code(result);
    }
    let Args { color, verb } = match cli::run::parse_fast().map_or_else(Args::try_parse, Ok) {
        Ok(args) => args,
        Err(error) => return exit::report_usage(error),
    };
    output::set_color(color);
    let result = match verb {
        Verb::Pipe(args) => settings::pipe(args).and_then(commands::pipe::run),
        Verb::Run(args) if args.cluster.probe => settings::probe(args.cluster, args.execution.jobs)
            .and_then(|probe| commands::run::probe::run(&probe)),
        Verb::Run(args) => settings::run(args, color).and_then(commands::run::run),
        Verb::RunStage(_) => unreachable!("handled before the command line is parsed"),
        Verb::Doctor(args) => settings::doctor(args).and_then(commands::doctor::run),
        Verb::Demo(args) => settings::demo(&args).and_then(commands::demo::run),
        Verb::Lab(args) => settings::lab(args).and_then(commands::lab::run),
        Verb::History(args) => settings::history(args).and_then(commands::history::run),
        Verb::Import(args) => settings::import(args).and_then(commands::history::run),
        Verb::Compare(args) => settings::compare(args).and_then(commands::compare::run),
        Verb::Report(args) => settings::report(args).and_then(commands::report::run),
        Verb::Serve(args) => settings::serve(args).and_then(commands::serve::run),
        Verb::Json(args) => settings::json(args).and_then(commands::json::run),
        Verb::LabCase => serve_case(),
        Verb::LabProbe { unit } => serve_probe(&unit),
        Verb::LabServer { model, answer, processes, threads, connections } => {
            let concurrency = processes
                .zip(threads)
                .map(|(processes, threads)| Concurrency { processes, threads });
            serve_connections(&model, &answer, concurrency, connections.unwrap_or(1))
        }
        Verb::Part(args) => commands::part::run(&args),
        Verb::Generate(args) => commands::generate::run(&args),
    };
    exit_code(result)
}

/// Prints the error and any hint for it, and returns the exit code. For [`Exit::Signal`], ends the
/// process by that signal instead.
fn exit_code(result: anyhow::Result<Exit>) -> ExitCode {
    let exit = result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}{}", exit::hint(&error)));
        Exit::of_error(&error)
    });
    exit.terminate()
}

/// Installs a panic hook that aborts the process after the panic's message, because without the
/// panicking thread a measurement or the output of a plan is wrong. The release profile aborts
/// anyway (`panic = "abort"`); the profiles for development and tests unwind. If the terminal shows
/// the live view, it is restored first, so that the message can be read.
fn abort_on_panic() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        live::watch::restore();
        default_hook(panic);
        std::process::abort();
    }));
}

/// Runs as the child process for one case of the lab, and measures what the parent requests, until
/// the parent closes standard input.
fn serve_case() -> anyhow::Result<Exit> {
    match contend_lab::engine::serve::serve_standard_streams(&contend_lab::experiments::REGISTRY) {
        // The parent has died, so an error message has no reader.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Failure),
        result => Ok(result.map(|()| Exit::Success)?),
    }
}

/// Runs the lab's built-in probe for `unit`, which creates processes, threads or tasks on request,
/// until standard input ends.
fn serve_probe(unit: &str) -> anyhow::Result<Exit> {
    contend_lab::experiments::runtimes::serve(unit)?;
    Ok(Exit::Success)
}

/// Runs a server for the lab's experiments with connections, until standard input ends.
fn serve_connections(
    server: &str,
    handler: &str,
    concurrency: Option<Concurrency>,
    connections: u64,
) -> anyhow::Result<Exit> {
    contend_lab::experiments::server::serve(server, handler, concurrency, connections)?;
    Ok(Exit::Success)
}
