//! `contend demo`.

use clap::Args;

/// Profiles three small pipelines and explains what is seen.
///
/// It makes 1,000,000 lines of base64 in a temporary file, which it removes, and runs
/// four `sed` commands on them: in four stages, with a slow fifth stage, and fused into
/// one with the slow stage. It takes less than half a minute.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Lines of input to make.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub lines: u64,

    /// Do not show the stages on the terminal while they run.
    #[arg(long)]
    pub no_progress: bool,
}
