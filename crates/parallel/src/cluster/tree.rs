//! Combinations: tasks that combine outputs of other tasks, so that workers reduce the outputs of all parts to a few.
//!
//! ```text
//! parts         0  1  2  3  4  5  6  7  8
//!               └──┼──┘  └──┼──┘  └──┼──┘
//! combinations     9        10       11     read by the driver
//! ```

use std::ops::Range;

use crate::plan::ir::{Combine, Group};

/// Returns the combinations for a number of parts: for each, the range of the tasks whose outputs it combines. The numbers of
/// the combinations follow those of the parts. Each has at most `fan_in` inputs, and so has the driver.
pub fn combinations(parts: usize, fan_in: usize) -> Vec<Range<usize>> {
    let fan_in = fan_in.max(2);
    let mut all: Vec<Range<usize>> = Vec::new();
    let mut level = 0..parts;
    while level.len() > fan_in {
        let count = level.len().div_ceil(fan_in);
        let border = |index: usize| level.start + level.len() * index / count;
        all.extend((0..count).map(|index| border(index)..border(index + 1)));
        level = level.end..level.end + count;
    }
    all
}

/// Greatest number of outputs that are combined at once, if combining makes them smaller.
const FAN_IN: usize = 64;
/// Greatest number of outputs that are combined at once, if combining only merges them. One process can open that many files.
const MERGE_FAN_IN: usize = 128;

/// Returns the combinations for the outputs of a group over parts. `fan_in` is as for [`combinations`]; `None` for the default.
pub fn of_group(group: &Group, parts: usize, fan_in: Option<usize>) -> Vec<Range<usize>> {
    let default = match &group.combine {
        Combine::Counts { .. } => FAN_IN,
        Combine::Merge(merge) => {
            let is_unique = merge.lines.as_ref().is_some_and(|order| order.unique);
            if is_unique || merge.first.is_some() { FAN_IN } else { MERGE_FAN_IN }
        }
        // Numbers are so few that the driver can combine them at once. What is concatenated would only be copied.
        Combine::Numbers(_)
        | Combine::Concatenate
        | Combine::Adjoin { .. }
        | Combine::Through(_)
        | Combine::Totals(_) => return Vec::new(),
    };
    combinations(parts, fan_in.unwrap_or(default))
}

/// Returns how many levels of combinations there are.
pub fn levels(parts: usize, combinations: &[Range<usize>]) -> usize {
    let (mut end, mut count) = (parts, 0);
    for (index, inputs) in combinations.iter().enumerate() {
        // The first one that has an input from the level before.
        if inputs.end > end || count == 0 {
            count += 1;
            end = parts + index;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_output_is_combined_once_and_in_order() {
        for (parts, fan_in) in [(0, 2), (1, 2), (2, 2), (3, 2), (9, 3), (70, 64), (10_000, 64)] {
            let all = combinations(parts, fan_in);
            let mut end = 0;
            for (index, inputs) in all.iter().enumerate() {
                assert_eq!(inputs.start, end, "they follow each other");
                assert!((1..=fan_in).contains(&inputs.len()));
                assert!(inputs.end <= parts + index, "its inputs come before it");
                end = inputs.end;
            }
            assert!(parts + all.len() - end <= fan_in, "the driver combines the rest");
        }
        assert_eq!(combinations(9, 3), [0..3, 3..6, 6..9]);
        assert_eq!(combinations(5, 2), [0..1, 1..3, 3..5, 5..6, 6..8]);
        for (parts, fan_in, expected) in [(5, 8, 0), (9, 3, 1), (5, 2, 2), (10_000, 64, 2)] {
            assert_eq!(levels(parts, &combinations(parts, fan_in)), expected, "{parts}");
        }
    }
}
