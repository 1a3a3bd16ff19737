//! Finds stages that read or write so little at a time that system calls cost more than copying the
//! data.

use contend_record::pipe::{Finding, FindingId, Stage};

use super::{Facts, bytes, finding};
use crate::pipeline::verdict::short;

/// Minimum number of calls for a finding; fewer take at most about a millisecond.
const MIN_CALLS: u64 = 5_000;
/// Largest mean size of a tiny call, in bytes. Copying that many bytes costs about as much as the
/// system call.
const MAX_TINY_CALL_BYTES: f64 = 512.0;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    // Programs started by a stage make most of their calls during start-up.
    let alone = facts.stages.iter().filter(|stage| stage.children_cpu_seconds <= 0.0);
    alone
        .flat_map(|stage| {
            [
                finding_for(
                    stage,
                    stage.mean_read_bytes,
                    stage.reads,
                    FindingId::TinyReads,
                    "reads",
                ),
                finding_for(
                    stage,
                    stage.mean_write_bytes,
                    stage.writes,
                    FindingId::TinyWrites,
                    "writes",
                ),
            ]
        })
        .flatten()
        .collect()
}

fn finding_for(
    stage: &Stage,
    mean: Option<f64>,
    calls: Option<u64>,
    id: FindingId,
    does: &str,
) -> Option<Finding> {
    let (mean, calls) = (mean?, calls?);
    if calls < MIN_CALLS || mean > MAX_TINY_CALL_BYTES {
        return None;
    }
    let message = format!(
        "Stage {} `{}` {does} {} in {calls} calls of {} on average; programs that buffer move \
         4 kB to 128 kB with each call.",
        stage.index,
        short(&stage.command),
        bytes(mean * calls as f64),
        bytes(mean),
    );
    Some(finding(id, vec![stage.index], message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;

    #[test]
    fn many_small_calls_are_named_and_few_or_large_ones_are_not() {
        let with =
            |mean, reads| Stage { mean_read_bytes: Some(mean), reads: Some(reads), ..stage(1) };
        assert_eq!(apply(find, &[with(1.0, 100_000)])[0].id, FindingId::TinyReads);
        assert!(apply(find, &[with(1.0, 100)]).is_empty());
        assert!(apply(find, &[with(10_000.0, 100_000)]).is_empty());
    }
}
