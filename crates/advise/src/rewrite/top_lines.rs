//! Replaces `sort | head` or `sort | tail` by sorts of chunks. The first (or last) lines of the
//! whole output are among the first (or last) lines of the sorted chunks, so all others are dropped
//! early.

use contend_commands::head::{head, tail};
use contend_commands::quote;
use contend_commands::sort::Sort;
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Replacement, Situation, Variant};

/// Number of lines in a chunk: enough to outweigh the start of a sort for each chunk, and few
/// enough that most of a chunk fits into a cache.
const CHUNK_LINES: u64 = 200_000;
/// Largest number of lines to keep from each chunk for which the rewrite pays off.
const MAX_KEPT_LINES: u64 = CHUNK_LINES / 20;

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    let environment = situation.environment;
    let gnu = environment.is_gnu("split") && environment.is_gnu("sort");
    // split runs its filter with the shell in `SHELL`.
    if !(gnu && environment.splits_with_sh) {
        return Vec::new();
    }
    situation.neighbours(|index, first, second| {
        let (simple, sort) = first.read(Sort::read)?;
        let (next, lines) = second.read(|simple| head(simple).or_else(|| tail(simple)))?;
        let fit = lines.files.is_empty() && next.input.is_none() && lines.count <= MAX_KEPT_LINES;
        // `sort -u` keeps the first of equal lines, which need not be among the last of its chunk.
        let keeps_all = !sort.drops_equal_lines() || next.name() == "head";
        if !fit || !keeps_all || sort.options.has('z') || simple.program.text != "sort" {
            return None;
        }
        let (sorting, input) = simple.clone().without_input(&sort.files)?;
        let part = format!("{} | {}", sorting.text(), next.text());
        let from = input.map_or(String::new(), |file| format!(" <{}", file.raw));
        let split = format!("split -l {CHUNK_LINES} --filter={}{from}", quote(&part));
        Some(Change {
            rewrite: RewriteId::TopLines,
            at: index..index + 2,
            stages: vec![
                Replacement { text: split, work: vec![(index, 0.9)] },
                Replacement { text: sorting.text(), work: vec![(index, 0.0)] },
                Replacement { text: next.text(), work: vec![(index + 1, 1.0)] },
            ],
            safety: Safety::Always,
            variant: Variant::Only,
            reasons: vec![format!(
                "sorts chunks of {CHUNK_LINES} lines and keeps {} lines of each, so memory does not grow \
                 with the input",
                lines.count
            )],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;
    use super::*;

    #[test]
    fn only_the_first_of_each_part_are_kept() {
        let changed = |text: &str| apply(RewriteId::TopLines, text);
        assert_eq!(
            changed("LC_ALL=C sort -t' ' -k2n f | head -n 3"),
            ["split -l 200000 --filter='LC_ALL=C sort -t'\\'' '\\'' -k2n | head -n 3' <f | \
              LC_ALL=C sort -t' ' -k2n | head -n 3"]
        );
        assert_eq!(
            changed("cut -f1 f | sort | tail"),
            ["cut -f1 f | split -l 200000 --filter='sort | tail' | sort | tail"]
        );
        for text in [
            "sort f | head -n 100000",
            "sort f | head -c 10",
            "sort f | head -n -3",
            "sort -u f | tail",
            "sort f g | head",
            "sort -R f | head",
            "sort f | tail -n +3",
            "sort f | head - g",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
