//! Merges `grep -v | grep -v` into one grep that rejects lines matching either pattern.

use contend_commands::Word;
use contend_commands::grep::{Grep, Syntax};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

/// Options that the merged command keeps. For each of them, either both commands have it or neither
/// has.
const KEPT: &str = "EFiwxaz";

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (simple, outer) = first.read(fit)?;
        let (next, inner) = second.read(fit)?;
        let reads_pipe = next.input.is_none() && inner.files.is_empty();
        if !(outer.matches_alike(&inner) && reads_pipe && simple.is_sibling_of(next)) {
            return None;
        }
        // For binary data each grep prints its own message.
        let always = outer.reads_anything_as_text() && inner.reads_anything_as_text();
        let safety = if always { Safety::Always } else { Safety::ThisData };
        let text = simple.with(arguments(&outer, &inner)).text();
        let reason = "a single grep drops the lines of both patterns; how fast it is depends on \
                      the patterns";
        Some(Change::fused(RewriteId::FuseGrep, index, text, safety, reason))
    })
}

/// Parses a `grep -v` whose patterns can be merged with those of another `grep -v`. Returns `None`
/// for any other command.
fn fit(simple: &contend_commands::Simple) -> Option<Grep> {
    let grep = Grep::read(simple)?;
    let refers_back =
        |text: &str| text.split('\\').skip(1).any(|c| c.starts_with(|d: char| d.is_ascii_digit()));
    let fit = grep.is_plain_filter()
        && grep.inverted()
        && grep.syntax != Syntax::Perl
        && grep.options.has_only("EFGeiyvwxaz")
        && !grep.patterns.iter().any(|pattern| refers_back(&pattern.text));
    fit.then_some(grep)
}

fn arguments(outer: &Grep, inner: &Grep) -> Vec<Word> {
    let has = |letter: char| outer.options.has(letter) || letter == 'i' && outer.options.has('y');
    let letters: String = KEPT.chars().filter(|&letter| has(letter)).collect();
    let patterns = outer.patterns.iter().chain(&inner.patterns);
    [Word::new(format!("-v{letters}"))]
        .into_iter()
        .chain(patterns.flat_map(|pattern| [Word::new("-e"), pattern.clone()]))
        .chain(outer.files.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;

    #[test]
    fn two_that_leave_out_become_one() {
        let changed = |text: &str| apply(RewriteId::FuseGrep, text);
        assert_eq!(changed("grep -v a f | grep -v 'b c'"), ["grep -v -e a -e 'b c' f"]);
        assert_eq!(
            changed("grep -Eiv 'a|b' | grep -v -E -y c | wc"),
            ["grep -vEi -e 'a|b' -e c | wc"]
        );
        let safety = |text: &str| safety(RewriteId::FuseGrep, text);
        assert_eq!(safety("grep -av a | grep -av b"), Safety::Always);
        assert_eq!(safety("grep -v a | grep -v b"), Safety::ThisData);
    }

    #[test]
    fn counting_or_different_greps_are_not_fused() {
        for text in [
            "grep a | grep b",
            "grep -v a | grep b",
            "grep -v a | grep -vi b",
            "grep -v a | grep -vE b",
            "grep -v a | grep -vc b",
            "grep -v -m 3 a | grep -v b",
            "grep -v -A1 a | grep -v b",
            "grep -vn a | grep -v b",
            "grep -vP a | grep -vP b",
            "grep -v '\\(a\\)\\1' | grep -v b",
            "grep -v a f g | grep -v b",
            "grep -v a | grep -v b f",
            "grep -v a | egrep -v b",
        ] {
            assert_eq!(apply(RewriteId::FuseGrep, text), [""; 0], "{text}");
        }
    }
}
