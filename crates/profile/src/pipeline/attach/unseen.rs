//! Describes what cannot be observed of a running pipeline: processes at its pipes that are not part
//! of any stage.

use super::snapshot::{Snapshot, descriptor_of, is_in_tree, text};
use crate::pipeline::verdict::short;

/// Maximum number of processes that a sentence names.
const MAX_NAMED_PROCESSES: usize = 3;

/// Standard input or output of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

impl Side {
    /// Returns the pipe at this side of process `pid`, or `None` if it has none there.
    fn pipe(self, pid: i32, processes: &Snapshot) -> Option<&str> {
        let process = processes.get(&pid)?;
        let pipe = if self == Self::Input { &process.input } else { &process.output };
        pipe.as_deref()
    }

    fn other(self) -> Self {
        if self == Self::Input { Self::Output } else { Self::Input }
    }
}

/// Returns a sentence for each pipe of the pipeline at which there are, or may be, processes that
/// are not observed. `stages` are the IDs of the stages' own processes, first to last.
pub(super) fn describe(stages: &[i32], processes: &Snapshot) -> Vec<String> {
    let (Some(&first), Some(&last)) = (stages.first(), stages.last()) else { return Vec::new() };
    let mut sentences = Vec::new();
    sentences.extend(outside((1, first), Side::Input, processes));
    for (index, pair) in stages.windows(2).enumerate() {
        sentences.extend(sharing((index + 1, pair[0]), Side::Output, processes));
        sentences.extend(sharing((index + 2, pair[1]), Side::Input, processes));
    }
    sentences.extend(outside((stages.len(), last), Side::Output, processes));
    sentences
}

/// Describes the processes that have the same pipe as a stage, at the same side, but do not descend
/// from the stage. Returns `None` if there are none. A stage is given by number and process ID.
fn sharing((number, stage): (usize, i32), side: Side, processes: &Snapshot) -> Option<String> {
    let pipe = side.pipe(stage, processes)?;
    let is_other =
        |pid: &i32| side.pipe(*pid, processes) == Some(pipe) && !is_in_tree(processes, *pid, stage);
    let others: Vec<_> = processes.keys().copied().filter(is_other).collect();
    (!others.is_empty()).then(|| not_observed(&others, "also ", side, (side, number)))
}

/// Describes the processes at the far end of the pipe that leads into or out of the pipeline.
/// Returns `None` if there is no such pipe. A stage is given by number and process ID.
fn outside((number, stage): (usize, i32), side: Side, processes: &Snapshot) -> Option<String> {
    let pipe = side.pipe(stage, processes)?;
    let writes = side == Side::Input;
    let holds = |pid: &i32| *pid != stage && descriptor_of(*pid, pipe, writes).is_some();
    let holders: Vec<_> = processes.keys().copied().filter(holds).collect();
    if !holders.is_empty() {
        return Some(not_observed(&holders, "", side.other(), (side, number)));
    }
    let (end, does) = match side {
        Side::Input => ("input", "writes to it"),
        Side::Output => ("output", "reads from it"),
    };
    Some(format!(
        "the {end} of stage {number} is a pipe, and no process that {does} can be seen: it has \
         ended, or belongs to another user or container"
    ))
}

/// Returns the sentence that processes use the input or output of the stage with the given number,
/// and are not observed. They read from it if `action` is [`Side::Input`], or write to it.
fn not_observed(pids: &[i32], also: &str, action: Side, (side, number): (Side, usize)) -> String {
    let (verb, preposition) = match action {
        Side::Input => ("read", "from"),
        Side::Output => ("write", "to"),
    };
    let end = if side == Side::Input { "input" } else { "output" };
    let (s, are) = if pids.len() == 1 { ("s", "is") } else { ("", "are") };
    let names = names(pids);
    format!(
        "{names} {also}{verb}{s} {preposition} the {end} of stage {number}, and {are} not observed"
    )
}

/// Returns the processes by ID and command line, such as "process 7 (`cat`)".
fn names(pids: &[i32]) -> String {
    let name = |pid: &i32| format!("{pid} (`{}`)", short(&text(*pid)));
    let mut names: Vec<_> = pids.iter().take(MAX_NAMED_PROCESSES).map(name).collect();
    if let Some(more) = pids.len().checked_sub(MAX_NAMED_PROCESSES).filter(|more| *more > 0) {
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            format!("processes {} and {last}", rest.join(", "))
        }
        _ => format!("process {}", names.concat()),
    }
}
