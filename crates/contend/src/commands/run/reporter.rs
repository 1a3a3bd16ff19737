//! Shows the notices and the progress of a run.

use std::io::{self, IsTerminal as _};

use contend_parallel::execute::Tally;
use contend_parallel::plan::ir::Plan;
use contend_report::render::units::seconds;

use super::progress::Progress;
use crate::output;
use contend_parallel::run::{BLOCK_BYTES, Comparison, Notice, Observer};

/// An observer that prints notices to standard error, and draws progress on the terminal.
#[derive(Debug)]
pub(super) struct Reporter {
    wants_progress: bool,
    /// Whether the output is captured for a comparison.
    checks: bool,
    progress: Option<Progress>,
}

impl Reporter {
    /// Creates the reporter of a run that has not started.
    pub(super) fn new(wants_progress: bool, checks: bool) -> Self {
        Self { wants_progress, checks, progress: None }
    }
}

impl Observer for Reporter {
    fn notify(&mut self, notice: Notice<'_>) -> io::Result<()> {
        match notice {
            Notice::CommandStderr(bytes) => {
                return output::command_stderr(bytes);
            }
            Notice::MissingFile(message) => output::error(message),
            Notice::CannotWrite(error) => output::error(&output::chain(error)),
            Notice::NotCompared => {
                output::error("nothing was compared: the reader closed standard output early");
            }
            Notice::Compared(comparison) => output::error(&verdict(comparison)),
        }
        Ok(())
    }

    fn started(&mut self, plan: &Plan, tally: &Tally) {
        // With --check, the thread that writes to the terminal does not clear the line first.
        let shows = self.wants_progress && !(self.checks && io::stdout().is_terminal());
        self.progress = Some(Progress::new(shows, plan, tally));
    }

    fn tick(&mut self, tally: &Tally) {
        if let Some(progress) = &mut self.progress {
            progress.show(tally);
        }
    }

    fn ended(&mut self) {
        self.progress = None;
    }
}

/// Returns a message with the result of a comparison: whether the run and the original had the same
/// output and exit status, and if not, how they differ.
fn verdict(comparison: &Comparison<'_>) -> String {
    let Comparison { check, outcome, parallel, original_stderr } = *comparison;
    let name = if parallel { "parallel" } else { "plain" };
    let (status, other) = (outcome.exit_code, check.exit_code);
    if check.same {
        let (wall, original) = (outcome.wall_seconds, check.wall_seconds);
        let (faster, slower) = (original / wall.max(1e-6), wall / original.max(1e-6));
        let ratio = if faster.max(slower) < 1.05 {
            "equally fast".to_owned()
        } else if faster >= 1.0 {
            format!("{faster:.1} times as fast")
        } else {
            format!("takes {slower:.1} times as long")
        };
        return format!(
            "identical output ({} bytes, exit {status}); {name} {}, original {} ({ratio})",
            check.bytes,
            seconds(wall),
            seconds(original),
        );
    }
    let difference = match check.first_difference {
        None => format!(
            "identical output ({} bytes), but different exit status: {name} {status}, original {other}",
            check.bytes
        ),
        Some(start) => {
            let end = check.bytes.max(check.original_bytes).min(start + BLOCK_BYTES as u64);
            format!(
                "outputs differ, first between bytes {start} and {end}: {name} {} bytes, exit {status}; \
                 original {} bytes, exit {other} (times and random numbers always differ)",
                check.bytes, check.original_bytes
            )
        }
    };
    if original_stderr.is_empty() {
        difference
    } else {
        format!("{difference}; stderr of the original:\n{original_stderr}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::run::{Check, Outcome};

    fn verdict_on(check: &Check, original_stderr: &str) -> String {
        let outcome = Outcome { exit_code: 0, wall_seconds: 1.0, ..Outcome::default() };
        let comparison = Comparison { check, outcome: &outcome, parallel: true, original_stderr };
        verdict(&comparison)
    }

    #[test]
    fn a_verdict_has_the_first_difference_and_stderr_of_the_original() {
        let same = Check { same: true, bytes: 7, wall_seconds: 2.0, ..Check::default() };
        let text = verdict_on(&same, "unheard");
        assert!(text.starts_with("identical output (7 bytes, exit 0); parallel "), "{text}");
        assert!(text.ends_with("(2.0 times as fast)"), "{text}");
        let status = Check { bytes: 7, exit_code: 3, ..Check::default() };
        let text = verdict_on(&status, "");
        assert!(text.ends_with("different exit status: parallel 0, original 3"), "{text}");
        let bytes = Check {
            first_difference: Some(BLOCK_BYTES as u64),
            bytes: BLOCK_BYTES as u64 + 5,
            original_bytes: BLOCK_BYTES as u64 + 9,
            ..Check::default()
        };
        let text = verdict_on(&bytes, "oops");
        assert!(text.contains("between bytes 65536 and 65545: "), "{text}");
        assert!(text.ends_with("; stderr of the original:\noops"), "{text}");
    }
}
