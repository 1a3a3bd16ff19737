//! Replaces `grep | wc -l` by `grep -c`.

use contend_commands::grep::Grep;
use contend_commands::{Word, wc};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Replacement, Situation, Variant};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (simple, grep) = first.read(Grep::read)?;
        let counter = second.simple.as_ref().filter(|simple| wc::counts_lines(simple))?;
        if !grep.is_plain_filter() || grep.options.has('z') || counter.input.is_some() {
            return None;
        }
        let count = [Word::new("-c")].into_iter();
        let text = simple.with(count.chain(simple.arguments.iter().cloned()).collect()).text();
        Some(Change {
            rewrite: RewriteId::CountInGrep,
            at: index..index + 2,
            stages: vec![Replacement::of(text, [index])],
            // `grep -c` counts differently in binary data, and exits with 1 if no line matches.
            safety: Safety::ThisData,
            variant: Variant::Only,
            reasons: vec![
                "grep counts the lines and does not write them".to_owned(),
                "exits with 1 if no line matches".to_owned(),
            ],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;

    #[test]
    fn grep_counts() {
        let changed = |text: &str| apply(RewriteId::CountInGrep, text);
        assert_eq!(changed("grep -vi 'a b' f | wc -l"), ["grep -c -vi 'a b' f"]);
        assert_eq!(safety(RewriteId::CountInGrep, "grep a f | wc -l"), Safety::ThisData);
        for text in [
            "grep -c a f | wc -l",
            "grep -m 5 a f | wc -l",
            "grep -A1 a f | wc -l",
            "grep -B1 a f | wc -l",
            "grep -o a f | wc -l",
            "grep -l a f | wc -l",
            "grep -q a f | wc -l",
            "grep a f g | wc -l",
            "grep -r a f | wc -l",
            "grep a f | wc",
            "grep a f | wc -l g",
            "grep a f | wc -c",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
