//! Replaces `sort | uniq` by `sort -u`, which drops equal lines while it merges.

use contend_commands::sort::Sort;
use contend_commands::{Word, uniq};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Replacement, Situation, Variant};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (simple, sort) = first.read(Sort::read)?;
        let (next, options) = second.read(uniq::read)?;
        let alike = options.has_only("z") && options.has('z') == sort.options.has('z');
        if !(alike && sort.compares_whole_lines() && next.input.is_none()) {
            return None;
        }
        let unique = (!sort.drops_equal_lines()).then(|| Word::new("-u")).into_iter();
        let text = simple.with(unique.chain(simple.arguments.iter().cloned()).collect()).text();
        // In the order of a language, different lines may compare as equal.
        let safe = situation.environment.orders_by_bytes(simple) && simple.has_same_variables(next);
        Some(Change {
            rewrite: RewriteId::SortUnique,
            at: index..index + 2,
            stages: vec![Replacement { text, work: vec![(index, 1.0), (index + 1, 0.2)] }],
            safety: if safe { Safety::Always } else { Safety::ThisData },
            variant: Variant::Only,
            reasons: vec!["sort drops duplicates while it merges, and writes less".to_owned()],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, draft, safety};
    use super::*;
    use contend_shell::environment::Environment;

    #[test]
    fn sort_drops_equal_lines_itself() {
        let changed = |text: &str| apply(RewriteId::SortUnique, text);
        assert_eq!(changed("sort -r f | uniq | wc -l"), ["sort -u -r f | wc -l"]);
        assert_eq!(changed("sort -u f | uniq"), ["sort -u f"]);
        assert_eq!(safety(RewriteId::SortUnique, "sort f | uniq"), Safety::Always);
        for text in [
            "sort -n f | uniq",
            "sort -k2 f | uniq",
            "sort -f f | uniq",
            "sort f | uniq -c",
            "sort f | uniq -d",
            "sort f | uniq -i",
            "sort f | uniq -f1",
            "sort f | uniq -z",
            "sort -m f g | uniq",
            "sort -R f | uniq",
            "sort f | uniq - g",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn in_the_order_of_a_language_the_data_must_show_it() {
        let german = Environment::for_tests("de_DE.UTF-8");
        let draft = draft("sort f | uniq", &german);
        let situation = Situation { draft: &draft, environment: &german, profile: None };
        assert_eq!(find(&situation)[0].safety, Safety::ThisData);
    }
}
