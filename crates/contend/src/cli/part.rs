//! Arguments of the hidden verb `contend part`.

use std::path::PathBuf;

use clap::Args;

/// Run a task of a job; started by an engine on the machine of a worker.
#[derive(Debug, Args)]
pub struct PartArgs {
    /// File with the job. Outputs and reports go to its directory.
    #[arg(long, value_name = "FILE")]
    pub plan: PathBuf,

    /// Index of the part, or of a combination, which follow the parts.
    #[arg(long, value_name = "N")]
    pub part: usize,

    /// Directory for the files of the attempt, if the machines share a store.
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,

    /// Number of the attempt, which no other attempt at this task has.
    #[arg(long, value_name = "N")]
    pub attempt: u64,

    /// Chunks to process concurrently.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = super::whole_number::<u16>(1..=1024))]
    pub jobs: u16,

    /// Memory for data in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub memory: u64,
}
