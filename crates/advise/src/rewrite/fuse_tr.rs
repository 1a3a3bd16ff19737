//! Merges `tr | tr` into one `tr` with the composed translation table.

use contend_commands::Word;
use contend_commands::tr::Tr;
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let read = |simple: &_| Tr::read(simple, situation.environment.is_multibyte(simple));
        let (simple, outer) = first.read(read)?;
        let (next, inner) = second.read(read)?;
        if !simple.is_sibling_of(next) || next.input.is_some() {
            return None;
        }
        let arguments = outer.then(&inner).arguments()?;
        let text = simple.with(arguments.into_iter().map(Word::new).collect()).text();
        let reason = "a single translation table does the work of both";
        Some(Change::fused(RewriteId::FuseTr, index, text, Safety::Always, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, apply_in};
    use super::*;
    use contend_shell::environment::Environment;

    fn changed(text: &str) -> Vec<String> {
        apply(RewriteId::FuseTr, text)
    }

    #[test]
    fn two_tables_become_one() {
        assert_eq!(changed("tr abc xyz <f | tr x ' '"), ["tr abcx ' yz ' <f"]);
        assert_eq!(changed("tr -d a | tr -d '\\r' | wc"), ["tr -d '\\ra' | wc"]);
        assert_eq!(changed("LC_ALL=C tr a b | LC_ALL=C tr c d"), ["LC_ALL=C tr ac bd"]);
    }

    #[test]
    fn squeezing_and_dependent_sets_are_not_fused() {
        for text in [
            "tr -s a | tr b c",
            "tr -cs A-Za-z '\\n' | tr A-Z a-z",
            "tr -d a | tr b c",
            "tr a b | tr b a <f",
            "tr '[:upper:]' '[:lower:]' | tr a b",
            "tr a b | LC_ALL=C tr c d",
            "tr a b | sed s/c/d/",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn ranges_in_a_multibyte_locale_stay() {
        let utf8 = Environment::for_tests("C.UTF-8");
        let changed = |text: &str| apply_in(RewriteId::FuseTr, text, &utf8);
        assert_eq!(changed("tr a-z A-Z | tr X Y"), [""; 0]);
        assert_eq!(changed("tr é e | tr X Y"), [""; 0]);
        assert_eq!(changed("LC_ALL=C tr a-z A-Z | LC_ALL=C tr X Y").len(), 1);
        assert_eq!(changed("tr ab AB | tr X Y").len(), 1);
    }
}
