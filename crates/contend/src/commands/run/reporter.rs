//! Shows the notices and the progress of a run.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use contend_parallel::execute::Tally;
use contend_parallel::plan::ir::Plan;
use contend_record::run::Outcome;
use contend_report::render::units::seconds;

use super::progress::Progress;
use crate::output;
use crate::publish::PublishedInput;
use contend_parallel::run::{BLOCK_BYTES, Comparison, Notice, Observer};

/// An observer that prints notices to standard error, and draws progress on the terminal.
#[derive(Debug)]
pub(super) struct Reporter {
    wants_progress: bool,
    /// Whether the output is captured for a comparison.
    checks: bool,
    /// Commands of the run that the user has declared to process each record independently.
    declared: Vec<String>,
    progress: Option<Progress>,
    /// Directory in which the run publishes its progress and its command line; `None` if it does not.
    publish: Option<(PathBuf, String)>,
    published: Option<PublishedInput>,
}

impl Reporter {
    /// Creates the reporter of a run that has not started.
    pub(super) fn new(wants_progress: bool, checks: bool) -> Self {
        Self {
            wants_progress,
            checks,
            declared: Vec::new(),
            progress: None,
            publish: None,
            published: None,
        }
    }

    /// Sets the commands of the run that the user has declared to process each record
    /// independently. If the outputs differ, the message names them.
    pub(super) fn with_declared(self, declared: Vec<String>) -> Self {
        Self { declared, ..self }
    }

    /// Also publishes the progress in the given directory, with the given command line.
    pub(super) fn with_published(self, publish: Option<(PathBuf, String)>) -> Self {
        Self { publish, ..self }
    }

    /// Publishes how the run ended, and the number under which it was saved, if it was. Does nothing if its
    /// progress was not published.
    pub(super) fn end(&mut self, ending: &str, run: Option<i64>) {
        if let Some(published) = self.published.take() {
            published.end(ending, run);
        }
    }
}

impl Observer for Reporter {
    fn notify(&mut self, notice: Notice<'_>) -> io::Result<()> {
        match notice {
            Notice::CommandStderr(bytes) => {
                return output::command_stderr(bytes);
            }
            Notice::MissingFile(message) => output::error(message),
            Notice::Left(path, error) => {
                output::error(&format!("cannot remove {}: {error}", path.display()));
            }
            Notice::Kept(path) => output::error(&format!(
                "the outputs of complete parts are kept in {}: see --resume",
                path.display()
            )),
            Notice::Waiting(why) => output::error(&format!("waiting: {why}")),
            Notice::NotDivided(why) => output::error(&format!("runs on this machine only: {why}")),
            Notice::CannotWrite(error) => output::error(&output::chain(error)),
            Notice::NotCompared => {
                output::error("nothing was compared: the reader closed standard output early");
            }
            Notice::Compared(comparison) => {
                output::error(&verdict(comparison, &self.declared));
            }
        }
        Ok(())
    }

    fn started(&mut self, plan: &Plan, tally: &Tally) {
        // With --check, the thread that writes to the terminal does not clear the line first.
        let shows = self.wants_progress && !(self.checks && io::stdout().is_terminal());
        self.progress = Some(Progress::new(shows, plan, tally));
        if let Some((folder, text)) = self.publish.take() {
            match PublishedInput::begin(&folder, &text) {
                Ok(published) => self.published = Some(published),
                Err(error) => output::error(&format!("{error:#}")),
            }
        }
    }

    fn tick(&mut self, tally: &Tally) {
        if let Some(progress) = &mut self.progress {
            progress.show(tally);
        }
        if let Some(published) = &mut self.published {
            published.show(tally);
        }
    }

    fn ended(&mut self) {
        self.progress = None;
    }
}

/// Returns a message with the result of a comparison: whether the run and the original had the same
/// output and exit status, and if not, how they differ. `declared` names the commands of which only
/// the user says that they process each record independently.
fn verdict(comparison: &Comparison<'_>, declared: &[String]) -> String {
    let Comparison { check, first, outcome, parallel, original_stderr } = *comparison;
    let name = if parallel { "parallel" } else { "plain" };
    let (status, other) = (outcome.exit_code, check.exit_code);
    if check.same {
        let same = format!("identical output ({} bytes, exit {status})", check.bytes);
        if check.bytes == 0 || has_failed(outcome) {
            return same; // such a run says nothing about speed
        }
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
            "{same}; {name} {}, original {} ({ratio})",
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
            let place = first.map_or_else(
                || format!("between bytes {start} and {end}"),
                |first| format!("at byte {}, in line {}", first.byte, first.line),
            );
            format!(
                "outputs differ, first {place}: {name} {} bytes, exit {status}; \
                 original {} bytes, exit {other} ({})",
                check.bytes,
                check.original_bytes,
                suspicion(declared)
            )
        }
    };
    if original_stderr.is_empty() {
        difference
    } else {
        format!("{difference}; stderr of the original:\n{original_stderr}")
    }
}

/// Exit code of a command that SIGPIPE has ended, which is usual before `head`.
const SIGPIPE_CODE: i32 = 128 + 13;

/// Returns whether the run or one of its stages failed.
fn has_failed(outcome: &Outcome) -> bool {
    let fails = |code: i32| code != 0 && code != SIGPIPE_CODE;
    fails(outcome.exit_code) || outcome.stages.iter().any(|stage| fails(stage.exit_code))
}

/// Returns the most likely reason why outputs differ.
fn suspicion(declared: &[String]) -> String {
    match declared {
        [] => "times and random numbers always differ".to_owned(),
        [one] => format!(
            "check first whether `{one}` really processes each record independently, as --map or \
             run.toml declares"
        ),
        several => format!(
            "check first whether these commands really process each record independently, as --map \
             or run.toml declares: `{}`",
            several.join("`, `")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_parallel::run::Difference;
    use contend_record::run::{Check, StageOutcome};

    fn verdict_on(check: &Check, original_stderr: &str) -> String {
        verdict_after(0, check, None, original_stderr, &[])
    }

    fn verdict_after(
        stage_exit_code: i32,
        check: &Check,
        first: Option<Difference>,
        original_stderr: &str,
        declared: &[&str],
    ) -> String {
        let stages = vec![StageOutcome { exit_code: stage_exit_code, ..StageOutcome::default() }];
        let outcome = Outcome { stages, wall_seconds: 1.0, ..Outcome::default() };
        let outcome = &outcome;
        let comparison = Comparison { check, first, outcome, parallel: true, original_stderr };
        let declared: Vec<_> = declared.iter().map(|&command| command.to_owned()).collect();
        verdict(&comparison, &declared)
    }

    #[test]
    fn an_empty_or_failed_run_has_no_speed() {
        let same = |bytes| Check { same: true, bytes, wall_seconds: 2.0, ..Check::default() };
        assert_eq!(verdict_on(&same(0), ""), "identical output (0 bytes, exit 0)");
        let after = |code| verdict_after(code, &same(7), None, "", &[]);
        assert_eq!(after(1), "identical output (7 bytes, exit 0)");
        assert!(after(SIGPIPE_CODE).ends_with("(2.0 times as fast)"));
    }

    #[test]
    fn a_difference_has_its_byte_and_its_first_suspect() {
        let differs = Check { first_difference: Some(0), bytes: 9, ..Check::default() };
        let first = Some(Difference { byte: 5, line: 2 });
        let text = verdict_after(0, &differs, first, "", &[]);
        assert!(text.starts_with("outputs differ, first at byte 5, in line 2: "), "{text}");
        assert!(text.ends_with("(times and random numbers always differ)"), "{text}");
        let text = verdict_after(0, &differs, first, "", &["awk"]);
        assert!(text.contains("check first whether `awk` really processes"), "{text}");
        assert!(!text.contains("random"), "{text}");
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
