//! Computes the exit code and the statistics of a run.

use std::time::Duration;

use contend_record::run::{Outcome, StageOutcome};
use contend_sys::{child, cpu, procfs};

use super::error::{Context as _, RunError};
use super::observer::{Notice, Observer};
use crate::execute::{ExecuteError, Tally};
use crate::plan::ir::{Group, Plan, Step};

/// Returns the exit code of the pipeline, as a shell would report it. Notifies the observer if
/// commands failed over chunks of a stream, or if the output could not be written. Fails with any
/// other error in `result`, or if the observer fails.
pub(super) fn status(
    plan: &Plan,
    tally: &Tally,
    pipefail: bool,
    result: Result<(), ExecuteError>,
    observer: &mut dyn Observer,
) -> Result<i32, RunError> {
    let cannot_write = "cannot write standard error";
    match result {
        Ok(()) => {}
        Err(ExecuteError::Failed { stderr, status }) => {
            observer.notify(Notice::CommandStderr(&stderr)).context(cannot_write)?;
            return Ok(status);
        }
        // The last command would have failed with the same error.
        Err(error @ ExecuteError::Output(_)) => {
            observer.notify(Notice::CannotWrite(&error)).context(cannot_write)?;
            return Ok(plan.steps.last().map_or(1, status_of_failed_write));
        }
        Err(error) => return Err(error.into()),
    }
    let stages = tally.stages();
    let of = |stage: usize| stages.get(&stage).map_or(0, |figures| figures.status);
    let count = plan.stages.len();
    Ok(if pipefail {
        (0..count).rev().map(of).find(|&status| status != 0).unwrap_or(0)
    } else {
        count.checked_sub(1).map_or(0, of)
    })
}

/// Exit codes of commands that cannot write their output, for commands that use a code other than
/// 1.
const FAILED_WRITES: &[(&[&str], i32)] = &[
    (&["sort", "grep", "egrep", "fgrep", "jq"], 2),
    (&["awk", "mawk", "gawk", "nawk", "original-awk"], 2),
    (&["sed"], 4),
    (&["xargs"], 123),
];

/// Returns the exit code of a step whose last command cannot write its output.
fn status_of_failed_write(step: &Step) -> i32 {
    let (Step::Serial(commands) | Step::Parallel(Group { serial: commands, .. })) = step;
    let name = commands.last().and_then(|last| last.program.rsplit('/').next()).unwrap_or("");
    let known = FAILED_WRITES.iter().find(|(names, _)| names.contains(&name));
    known.map_or(1, |(_, status)| *status)
}

/// Returns the statistics of a run with the given wall time and exit code.
pub(super) fn outcome(tally: &Tally, wall: Duration, exit_code: i32) -> Outcome {
    let stages = tally.stages();
    let last = stages.keys().max().map_or(0, |last| last + 1);
    let stages = (0..last).map(|stage| {
        let figures = stages.get(&stage).copied().unwrap_or_default();
        StageOutcome {
            index: stage + 1,
            exit_code: figures.status,
            cpu_seconds: figures.cpu.as_secs_f64(),
            starts: figures.starts,
        }
    });
    Outcome {
        exit_code,
        wall_seconds: wall.as_secs_f64(),
        own_cpu_seconds: cpu::own_time().as_secs_f64(),
        own_max_rss_bytes: procfs::own_peak_rss(),
        command_max_rss_bytes: child::children_usage().max_rss,
        input_bytes: tally.bytes(),
        parts: tally.chunks(),
        in_one_piece: tally.notes(),
        divided: tally.division().map(|(_, divided)| divided),
        stages: stages.collect(),
        work: tally.work().recorded(),
        ..Outcome::default()
    }
}
