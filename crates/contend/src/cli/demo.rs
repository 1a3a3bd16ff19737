//! Arguments of `contend demo`.

use clap::Args;

/// Profile three small pipelines and explain the results.
///
/// The demo writes 1,000,000 lines of base64 to a temporary file and runs four `sed` commands over
/// them: as four stages, followed by a slow fifth stage, and fused into one stage before the slow
/// one. It takes less than half a minute.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Lines of input to generate.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = super::whole_number::<u64>(1_000..=100_000_000))]
    pub lines: u64,

    /// Do not show the stages while they run.
    #[arg(long)]
    pub no_progress: bool,
}
