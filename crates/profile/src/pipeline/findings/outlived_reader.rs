//! Finds stages that kept running for a notable time after their reader had ended.

use contend_record::pipe::{Finding, FindingId};
use contend_record::units::time;

use super::{Facts, finding};
use crate::pipeline::verdict::short;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    let min_difference_seconds = (0.05 * facts.wall_seconds).max(0.02);
    facts
        .stages
        .windows(2)
        .filter(|pair| pair[0].wall_seconds - pair[1].wall_seconds > min_difference_seconds)
        .map(|pair| {
            let (writer, reader) = (&pair[0], &pair[1]);
            let message = format!(
                "Stage {} `{}` kept running for {} after its reader, stage {}, had exited: a writer \
                 notices only at its next write, and the shell waits for both.",
                writer.index,
                short(&writer.command),
                time(writer.wall_seconds - reader.wall_seconds),
                reader.index,
            );
            finding(FindingId::OutlivedReader, vec![writer.index, reader.index], message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, stage};
    use super::*;
    use contend_record::pipe::Stage;

    #[test]
    fn only_a_writer_that_outlives_its_reader_is_reported() {
        let brief = Stage { wall_seconds: 0.1, ..stage(2) };
        assert_eq!(apply(find, &[stage(1), brief.clone()]).len(), 1);
        assert!(apply(find, &[brief, stage(2)]).is_empty());
    }
}
