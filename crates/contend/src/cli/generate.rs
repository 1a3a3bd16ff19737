//! Arguments of `contend generate`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// Print shell completions, man pages, JSON schemas and data of the lab.
///
/// Everything goes to standard output.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// The subcommand with its arguments.
    #[command(subcommand)]
    pub what: What,
}

const AWK_EXAMPLE: &str = "\
Example:
  for name in tokenizer parser callbacks; do contend generate awk $name >$name.awk; done
  awk -f tokenizer.awk <FILE.json | awk -f parser.awk -f callbacks.awk";

/// A subcommand of `contend generate`.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Print completions for a shell.
    Completions {
        /// Shell to complete in.
        shell: clap_complete::Shell,
    },
    /// Print the man page, or write all pages to a directory.
    Man {
        /// Write contend.1 and a page for each verb to DIR.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Print the experiments of the lab as Markdown.
    Experiments,
    /// Print a guide to communication mechanisms as Markdown.
    ///
    /// The figures are those of a saved lab run.
    Mechanisms {
        /// JSON file of a lab run with ipc/one-way and ipc/round-trip.
        ///
        /// `contend lab suite shared-memory --json FILE` writes one.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        record: PathBuf,
    },
    /// Print the cost of processes, threads and tasks as Markdown.
    ///
    /// The figures are those of a saved lab run.
    UnitCosts {
        /// JSON file of a lab run with runtime/memory.
        ///
        /// `contend lab suite callback --json FILE` writes one.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        record: PathBuf,
    },
    /// Print an awk program of the lab's JSON parser.
    ///
    /// The tokenizer writes one token per line. The parser turns tokens into calls of the three
    /// functions in callbacks; replace these to process the JSON in another way.
    #[command(after_long_help = AWK_EXAMPLE)]
    Awk {
        /// Program to print.
        program: Program,
    },
    /// Print the lab's JSON input: an array of identical documents.
    ///
    /// Each document has 243 bytes.
    JsonArray {
        /// Number of documents; the lab uses 100000.
        #[arg(value_name = "N")]
        count: u64,
    },
    /// Print the JSON schema of a record.
    Schema {
        /// Record to describe.
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
    /// Written by `contend pipe --json`.
    Pipe,
    /// Written by `contend lab run --json`.
    Lab,
    /// Written by `contend run --json`.
    Run,
    /// Written by `contend compare --json`.
    Compare,
    /// Written by `contend pipe --vs --json`.
    Versus,
    /// Written by `contend doctor --json`.
    Doctor,
}

/// An awk program of the lab.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Program {
    /// JSON to tokens, one per line.
    Tokenizer,
    /// Third of four commands that also form a tokenizer; its head shows how to call them.
    Join,
    /// Tokens to function calls.
    Parser,
    /// Functions that the parser calls, which print paths and values.
    Callbacks,
}
