//! Finds bytes moved without read or write calls (by splice or mmap), which the kernel's counters
//! for processes leave out.

use contend_record::pipe::{Boundary, Finding, FindingId};

use super::{Facts, bytes, finding};
use crate::pipeline::verdict::short;

/// Minimum difference of counts for a finding, in bytes. A program reads less from its libraries,
/// and a pipe of default capacity holds no more.
const MIN_DIFFERENCE_BYTES: u64 = 64 * 1024;

pub(super) fn find(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.is_attached {
        return Vec::new(); // bytes may have been written or read earlier
    }
    facts.boundaries.iter().filter_map(|boundary| finding_for(facts, boundary)).collect()
}

fn finding_for(facts: &Facts<'_>, boundary: &Boundary) -> Option<Finding> {
    let from = facts.stages.get(boundary.from - 1)?;
    let to = facts.stages.get(boundary.to - 1)?;
    let (written, read) = (from.bytes_out?, to.bytes_in?);
    let message = if read > written + MIN_DIFFERENCE_BYTES {
        format!(
            "Stage {} `{}` wrote {} with write calls, but stage {} read {}: the kernel does not \
             count bytes moved by splice or mmap (or stage {} reads files as well).",
            from.index,
            short(&from.command),
            bytes(written as f64),
            to.index,
            bytes(read as f64),
            to.index,
        )
    } else if written > read + MIN_DIFFERENCE_BYTES && to.approximate.is_empty() {
        format!(
            "Stage {} `{}` wrote {}, but stage {} `{}` read only {} with read calls, a difference \
             beyond the pipe's capacity: it moves the rest by splice, which the kernel does not \
             count.",
            from.index,
            short(&from.command),
            bytes(written as f64),
            to.index,
            short(&to.command),
            bytes(read as f64),
        )
    } else if boundary.most_fill_bytes > Some(written) {
        format!(
            "The pipe between stages {} and {} held more bytes at once than stage {} wrote with \
             write calls: it moves them by splice, which the kernel does not count.",
            from.index, to.index, from.index,
        )
    } else {
        return None;
    };
    Some(finding(FindingId::BytesUnseen, vec![from.index, to.index], message))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply_with, stage};
    use super::*;
    use contend_record::pipe::{Stage, WaitingSide};

    fn found(written: u64, read: u64, fill: u64) -> usize {
        let stages = [
            Stage { bytes_out: Some(written), ..stage(1) },
            Stage { bytes_in: Some(read), ..stage(2) },
        ];
        let boundary = Boundary {
            from: 1,
            to: 2,
            bytes: None,
            bytes_approximate: false,
            bytes_per_second: None,
            mean_fill_bytes: Some(fill as f64),
            most_fill_bytes: Some(fill),
            capacity_bytes: Some(65_536),
            writer_blocked_seconds: 0.0,
            reader_starved_seconds: 0.0,
            waiting_side: WaitingSide::Neither,
        };
        apply_with(find, &stages, &[boundary], None, 0, 1.0).len()
    }

    #[test]
    fn counts_that_do_not_agree_are_reported() {
        assert_eq!(found(10, 10_000_000, 100), 1);
        assert_eq!(found(0, 0, 4096), 1);
        assert_eq!(found(1_000_000, 1_000_000, 4096), 0);
        assert_eq!(found(60_000, 500, 4096), 0, "a reader may end early");
        assert_eq!(found(1_000_000, 500, 4096), 1);
    }
}
