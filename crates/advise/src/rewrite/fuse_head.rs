//! Merges `head | head` and `tail | tail` into one command with the smaller count.

use contend_commands::head::{Lines, head, tail};
use contend_commands::{Simple, Word};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let both =
            |read: fn(&Simple) -> Option<Lines>| Some((first.read(read)?, second.read(read)?));
        let ((simple, outer), (next, inner)) = both(head).or_else(|| both(tail))?;
        if !simple.is_sibling_of(next) || next.input.is_some() || !inner.files.is_empty() {
            return None;
        }
        let count = Word::new(format!("-n{}", outer.count.min(inner.count)));
        let text = simple.with([count].into_iter().chain(outer.files).collect()).text();
        let reason = format!("only the smaller count of the two {} matters", simple.name());
        Some(Change::fused(RewriteId::FuseHead, index, text, Safety::Always, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;
    use super::*;

    #[test]
    fn the_smaller_count_is_kept() {
        let changed = |text: &str| apply(RewriteId::FuseHead, text);
        assert_eq!(changed("head -n 20 f | head -5"), ["head -n5 f"]);
        assert_eq!(changed("tail <f | tail -n 50 | wc -l"), ["tail -n10 <f | wc -l"]);
        for text in [
            "head -n 20 | tail -n 5",
            "head -c 20 | head -n 5",
            "head -n -3 | head -n 5",
            "tail -n +3 | tail -n 5",
            "head -n 3 f | head -n 5 g",
            "head -n 3 f g | head",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
