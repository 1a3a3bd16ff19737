//! Stages that write nothing until their input has ended: what follows them cannot start,
//! and the pipeline falls into two, one after the other.

use contend_record::pipe::{Finding, FindingId};

use super::{Facts, bytes, finding};
use crate::pipeline::known::holds_by_nature;
use crate::pipeline::verdict::{short, time};

/// The buffer of the C library for output that is not a terminal.
const STDIO_BUFFER: u64 = 4096;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    facts
        .stages
        .iter()
        // A count or a sum at the very end holds up nobody.
        .filter(|stage| stage.index < facts.stages.len() || stage.bytes_out > Some(STDIO_BUFFER))
        .filter(|stage| stage.holds_output)
        .map(|stage| {
            let first = stage.first_output_seconds.unwrap_or(stage.wall_seconds);
            let mut message = format!(
                "Stage {} `{}` held its output until its input had ended: first output after {} \
                 of {}.",
                stage.index,
                short(&stage.command),
                time(first),
                time(stage.wall_seconds),
            );
            if stage.index < facts.stages.len() {
                message.push_str(" The stages after it could not start before.");
            }
            if let Some(written) = stage.bytes_out
                && written <= STDIO_BUFFER
                && !holds_by_nature(&stage.command)
            {
                message.push_str(&format!(
                    " It wrote {} in all, which a program may hold in its output buffer without \
                     need.",
                    bytes(written as f64)
                ));
            }
            finding(FindingId::HoldsOutput, vec![stage.index], message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;
    use contend_record::pipe::Stage;

    #[test]
    fn a_small_output_may_only_be_buffered() {
        let held = Stage { holds_output: true, bytes_out: Some(58), ..stage(2) };
        let found = apply(find, &[stage(1), held.clone(), stage(3)]);
        assert_eq!(found[0].stages, [2]);
        assert!(found[0].message.contains("58 B"));
        let sort = Stage { command: "LC_ALL=C sort -n".to_owned(), ..held.clone() };
        assert!(!apply(find, &[stage(1), sort, stage(3)])[0].message.contains("buffer"));
        assert!(apply(find, &[stage(1), held.clone()]).is_empty(), "nobody comes after it");
        let large = Stage { bytes_out: Some(1 << 20), ..held };
        assert!(!apply(find, &[stage(1), large, stage(3)])[0].message.contains("buffer"));
    }
}
