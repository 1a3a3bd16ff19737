//! Settings of `contend doctor --try`.

use std::time::Duration;

use contend_advise::trial::rounds::Effort;
use contend_doctor::remedy::Selection;

use super::pipe::{check_text, shell};
use crate::cli::remedies::{RemedyArg, TryArgs};
use crate::exit::UsageError;

/// Time for the rounds if the user gives none.
const DEFAULT_BUDGET: Duration = Duration::from_mins(1);
/// Number of rounds that run even if the budget is used up: fewer prove nothing.
pub const MIN_ROUNDS: usize = 3;

/// Settings of a trial of remedies.
#[derive(Debug)]
pub struct Remedies {
    /// Which remedies are tried.
    pub selection: Selection,
    /// When the rounds end.
    pub effort: Effort,
    /// Shell text to run before every run, if any.
    pub prepare: Option<String>,
    /// The shell for that text.
    pub shell: String,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Whether progress is shown on the terminal.
    pub progress: bool,
}

/// Returns the settings of a trial; `None` if none is asked for.
///
/// # Errors
/// Returns a [`UsageError`] if values of `--try` exclude each other, or a text contains a NUL byte.
pub fn remedies(args: TryArgs) -> Result<Option<Remedies>, UsageError> {
    let Some(wanted) = args.remedies else { return Ok(None) };
    check_text("--prepare", args.prepare.as_deref().unwrap_or(""))?;
    let budget = args.budget.map_or(DEFAULT_BUDGET, Duration::from_secs_f64);
    let effort = match args.runs {
        Some(rounds) => Effort::Rounds(rounds),
        None => Effort::Budget { time: budget, min_rounds: MIN_ROUNDS },
    };
    Ok(Some(Remedies {
        selection: selection(&wanted)?,
        effort,
        prepare: args.prepare,
        shell: shell(None)?,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..)),
        progress: super::shows_progress(false),
    }))
}

fn selection(wanted: &[RemedyArg]) -> Result<Selection, UsageError> {
    let mut ids = Vec::new();
    for one in wanted {
        match one {
            RemedyArg::Findings if wanted.len() == 1 => return Ok(Selection::Findings),
            RemedyArg::All if wanted.len() == 1 => return Ok(Selection::All),
            RemedyArg::Findings | RemedyArg::All => {
                let message =
                    "--try: 'all' and 'findings' stand alone; leave out the other remedies";
                return Err(UsageError(message.to_owned()));
            }
            RemedyArg::One(id) => ids.push(*id),
        }
    }
    Ok(Selection::Named(ids))
}
