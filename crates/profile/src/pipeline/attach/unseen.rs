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
    sentences.extend(inner_pipeline(first, processes).filter(|_| stages.len() == 1));
    sentences
}

/// Returns a hint if a stage without pipes, such as a shell, has started a pipeline, which is then
/// part of the stage.
fn inner_pipeline(stage: i32, processes: &Snapshot) -> Option<String> {
    if processes.get(&stage)?.has_pipe() {
        return None;
    }
    let (pid, _) = processes
        .iter()
        .find(|(pid, process)| process.has_pipe() && is_in_tree(processes, **pid, stage))?;
    let command = short(&text(*pid));
    Some(format!(
        "stage 1 has started a pipeline, to which process {pid} (`{command}`) belongs: --pid {pid} \
         observes its stages"
    ))
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

#[cfg(test)]
mod tests {
    use super::super::snapshot::Process;
    use super::*;

    fn process(parent: i32, input: Option<&str>, output: Option<&str>) -> Process {
        let owned = |pipe: Option<&str>| pipe.map(str::to_owned);
        Process { parent, input: owned(input), output: owned(output), ..Process::default() }
    }

    #[test]
    fn the_pipeline_of_an_observed_shell_is_named() {
        let processes = Snapshot::from([
            (-4, process(0, None, None)),
            (-3, process(-4, None, Some("pipe:[7]"))),
            (-2, process(-4, Some("pipe:[7]"), None)),
        ]);
        let sentences = describe(&[-4], &processes);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(sentences[0].ends_with("--pid -3 observes its stages"), "{sentences:?}");
        assert_eq!(describe(&[-3, -2], &processes), Vec::<String>::new());
    }

    #[test]
    fn other_processes_at_a_pipe_are_named_unless_they_descend_from_the_stage() {
        let (writer, reader) =
            (process(0, None, Some("pipe:[7]")), process(0, Some("pipe:[7]"), None));
        let child = process(-3, None, Some("pipe:[7]"));
        let mut processes = Snapshot::from([(-3, writer.clone()), (-2, reader), (-5, child)]);
        assert_eq!(describe(&[-3, -2], &processes), Vec::<String>::new());
        processes.insert(-6, writer);
        let sentences = describe(&[-3, -2], &processes);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(sentences[0].starts_with("process -6 "), "{sentences:?}");
        assert!(sentences[0].contains("also writes to the output of stage 1, and is not observed"));
    }
}
