//! `contend generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Prints shell completions, man pages, JSON Schemas, or what the lab has: its experiments,
/// its awk programs and its inputs.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to print.
    #[command(subcommand)]
    pub what: What,
}

const AWK_EXAMPLE: &str = "\
Example:
  for name in tokenizer parser callbacks; do contend generate awk $name >$name.awk; done
  awk -f tokenizer.awk <FILE.json | awk -f parser.awk -f callbacks.awk";

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
    /// Which mechanism when: what a record says of messages, as Markdown, to standard output.
    Mechanisms {
        /// A record with ipc/one-way and ipc/round-trip, as --json of `contend lab suite
        /// shared-memory` writes it.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        record: PathBuf,
    },
    /// What a unit costs in every runtime: what a record says of it, as Markdown, to standard output.
    UnitCosts {
        /// A record with runtime/memory, as --json of `contend lab suite callback` writes it.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        record: PathBuf,
    },
    /// An awk program of the lab's JSON parser, to standard output.
    ///
    /// The tokenizer writes a token a line, which the parser turns into calls of the three
    /// functions in callbacks: to do something else with a text, write your own.
    #[command(after_long_help = AWK_EXAMPLE)]
    Awk {
        /// Which program.
        program: Program,
    },
    /// The lab's JSON input: an array of so many times the same document of 243 bytes.
    JsonArray {
        /// How many documents; the lab takes 100,000.
        #[arg(value_name = "N")]
        count: u64,
    },
    /// The JSON Schema of a record, to standard output.
    Schema {
        /// Which record.
        record: Record,
    },
    /// Print a page of the book's reference as Markdown.
    Reference {
        /// Page to print.
        page: Page,
    },
}

/// A generated page of the book's reference.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Page {
    /// Commands and options.
    Options,
    /// Fields of JSON records.
    Records,
    /// Exit codes.
    ExitCodes,
}

/// A kind of record with a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Record {
    /// What `contend pipe --json` writes.
    Pipe,
    /// What `contend lab run --json` writes.
    Lab,
    /// What `contend run --json` writes.
    Run,
    /// What `contend compare --json` writes.
    Compare,
}

/// An awk program of the lab.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Program {
    /// JSON into tokens, one a line.
    Tokenizer,
    /// The third of four commands that are a tokenizer too; it says how they are called.
    Join,
    /// Tokens into calls of functions.
    Parser,
    /// These functions: they print paths and values.
    Callbacks,
}
