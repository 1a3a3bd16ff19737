//! Finds barriers: stages that write nothing until their input has ended. The stages after a
//! barrier cannot start their work before that, so the pipeline runs in two phases.

use contend_commands::behaviour::is_barrier;
use contend_record::pipe::{Figure, Finding, FindingId, Stage};
use contend_record::units::time;

use super::{Facts, approximate_prefix, bytes, finding};
use crate::pipeline::verdict::short;

/// Size in bytes of the C library's buffer for output that does not go to a terminal.
const STDIO_BUFFER_BYTES: u64 = 4096;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .stages
        .iter()
        .filter(|stage| stage.holds_output)
        .filter(|stage| stage.index < facts.stages.len() || !is_summary(stage))
        .map(|stage| {
            let first = stage.first_output_seconds.unwrap_or(stage.wall_seconds);
            let mut message = format!(
                "Stage {} `{}` is a barrier: it wrote nothing until its input ended (first output \
                 at {} of {}), so ",
                stage.index,
                short(&stage.command),
                time(first),
                time(stage.wall_seconds),
            );
            message.push_str(if stage.index < facts.stages.len() {
                "later stages had to wait."
            } else {
                "the reader of the pipeline's output had to wait."
            });
            if let Some(written) = stage.bytes_out
                && written <= STDIO_BUFFER_BYTES
                && !is_barrier(&stage.command)
            {
                message.push_str(&format!(
                    " Its output of {}{} probably just sat in its stdout buffer.",
                    approximate_prefix(stage.is_approximate(Figure::BytesOut)),
                    bytes(written as f64)
                ));
            }
            finding(FindingId::HoldsOutput, vec![stage.index], message)
        })
        .collect()
}

/// Returns whether a stage's output is a summary, such as a count: small, and at most an eighth of
/// its input. An unknown output counts as small, an unknown input as large. No finding reports a
/// last stage that writes a summary, because it can do so only once its input has ended.
fn is_summary(stage: &Stage) -> bool {
    let small = stage.bytes_out <= Some(STDIO_BUFFER_BYTES);
    small && stage.bytes_in.unwrap_or(u64::MAX) / 8 >= stage.bytes_out.unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;

    #[test]
    fn a_small_output_may_only_be_buffered() {
        let held = Stage { holds_output: true, bytes_out: Some(58), ..stage(2) };
        let found = apply(find, &[stage(1), held.clone(), stage(3)]);
        assert_eq!(found[0].stages, [2]);
        assert!(found[0].message.contains("58 B"));
        let sort = Stage { command: "LC_ALL=C sort -n".to_owned(), ..held.clone() };
        assert!(!apply(find, &[stage(1), sort, stage(3)])[0].message.contains("buffer"));
        assert!(apply(find, &[stage(1), held.clone()]).is_empty(), "nobody comes after it");
        let count = Stage { bytes_in: Some(1 << 20), ..held.clone() };
        assert!(apply(find, &[stage(1), count]).is_empty(), "a count at the end");
        let large = Stage { bytes_out: Some(1 << 20), ..held };
        assert!(!apply(find, &[stage(1), large, stage(3)])[0].message.contains("buffer"));
    }

    #[test]
    fn a_last_stage_that_holds_its_output_is_named() {
        let sort = Stage {
            command: "sort".to_owned(),
            holds_output: true,
            bytes_in: Some(16),
            bytes_out: Some(16),
            ..stage(2)
        };
        let found = apply(find, &[stage(1), sort.clone()]);
        assert_eq!(found[0].stages, [2]);
        assert!(!found[0].message.contains("stages after"), "{}", found[0].message);
        let streams = Stage { holds_output: false, ..sort };
        assert!(apply(find, &[stage(1), streams]).is_empty());
    }
}
