//! contend shows what concurrency costs, finds where a pipeline pays for it, and proves
//! what to change.

mod cli;
mod commands;
mod exit;
mod host;
mod live;
mod output;
mod progress;
mod records;
mod settings;
mod suggest;
mod tips;
mod version;

use std::process::ExitCode;

use clap::Parser;
use contend_lab::experiments::server::Concurrency;

use crate::cli::{Args, Verb};
use crate::exit::Exit;

fn main() -> ExitCode {
    abort_on_panic();
    // A shell starts these for every stage: they must not cost more than they have to.
    if let Some(result) = commands::run::stage_of_shell_text() {
        return exit_of(result);
    }
    let verb = match cli::run::quickly().map_or_else(|| Ok(Args::try_parse()?.verb), Ok) {
        Ok(verb) => verb,
        Err(error) => return exit::of_usage(error),
    };
    let result = match verb {
        Verb::Pipe(args) => settings::pipe(args).and_then(commands::pipe::run),
        Verb::Run(args) => settings::run(args).and_then(commands::run::run),
        Verb::RunStage(_) => unreachable!("it was found before the command line was read"),
        Verb::Demo(args) => settings::demo(&args).and_then(commands::demo::run),
        Verb::Lab(args) => settings::lab(args).and_then(commands::lab::run),
        Verb::History(args) => settings::history(args).and_then(commands::history::run),
        Verb::Compare(args) => settings::compare(args).and_then(commands::compare::run),
        Verb::Json(args) => settings::json(args).and_then(commands::json::run),
        Verb::LabCase => serve_case(),
        Verb::LabProbe { unit } => serve_probe(&unit),
        Verb::LabServer { model, answer, processes, threads, connections } => {
            let concurrency = processes
                .zip(threads)
                .map(|(processes, threads)| Concurrency { processes, threads });
            serve_connections(&model, &answer, concurrency, connections.unwrap_or(1))
        }
        Verb::Generate(args) => commands::generate::run(&args),
    };
    exit_of(result)
}

/// Says what went wrong, if anything did, and how this program ends.
fn exit_of(result: anyhow::Result<Exit>) -> ExitCode {
    let exit = result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        Exit::of_error(&error)
    });
    exit.into()
}

/// Has the program end with the first panic, whichever thread it is in: a measurement or a plan of
/// which a thread is missing is none. (The profile does not say so, as libraries in this workspace
/// are to live on.)
fn abort_on_panic() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::abort();
    }));
}

/// What this program does as the process of a case of the lab.
fn serve_case() -> anyhow::Result<Exit> {
    match contend_lab::engine::serve::serve_standard_streams(&contend_lab::experiments::REGISTRY) {
        // Whoever asked has died; there is nobody to tell.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Failure),
        result => Ok(result.map(|()| Exit::Success)?),
    }
}

/// What this program does as a probe of units.
fn serve_probe(unit: &str) -> anyhow::Result<Exit> {
    contend_lab::experiments::runtimes::serve(unit)?;
    Ok(Exit::Success)
}

/// What this program does as a server whose connections are measured.
fn serve_connections(
    server: &str,
    handler: &str,
    concurrency: Option<Concurrency>,
    connections: u64,
) -> anyhow::Result<Exit> {
    contend_lab::experiments::server::serve(server, handler, concurrency, connections)?;
    Ok(Exit::Success)
}
