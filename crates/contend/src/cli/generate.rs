//! `contend generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Prints shell completions, man pages, JSON Schemas or the list of experiments.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to print.
    #[command(subcommand)]
    pub what: What,
}

/// What to print.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Completions for a shell, to standard output.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// The man page of contend to standard output, or all pages into a folder.
    Man {
        /// Write contend.1 and a page for each verb into this folder.
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// The experiments of the lab as Markdown, to standard output.
    Experiments,
    /// The JSON Schema of a record, to standard output.
    Schema {
        /// Which record.
        record: Record,
    },
}

/// A kind of record with a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Record {
    /// What `contend pipe --json` writes.
    Pipe,
    /// What `contend lab run --json` writes.
    Lab,
}
