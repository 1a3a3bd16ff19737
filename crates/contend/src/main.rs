//! contend shows what concurrency costs, finds where a pipeline pays for it, and proves
//! what to change.

mod cli;
mod commands;
mod exit;
mod host;
mod live;
mod output;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Args, Verb};
use crate::exit::Exit;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::of_usage(error),
    };
    let result = match args.verb {
        Verb::Pipe(args) => settings::pipe(args).and_then(commands::pipe::run),
        Verb::Demo(args) => settings::demo(&args).and_then(commands::demo::run),
        Verb::Generate(args) => commands::generate::run(&args),
    };
    let exit = result.unwrap_or_else(|error| {
        output::error(&format!("{error:#}"));
        Exit::of_error(&error)
    });
    exit.into()
}
