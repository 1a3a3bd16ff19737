//! Runs a command in the C locale, which avoids decoding characters and applying collation rules.

use contend_commands::{Simple, Word};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

/// Commands known to be much slower in locales with multibyte characters or collation rules.
const COMMANDS: &[&str] = &["egrep", "fgrep", "grep", "sed", "sort", "tr"];

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.worthwhile(|index, stage| {
        let simple = stage.simple.as_ref()?;
        let known = COMMANDS.contains(&simple.name());
        if !known || situation.environment.is_byte_locale(simple) || sets_locale(simple) {
            return None;
        }
        let mut changed = simple.clone();
        changed.variables.push(("LC_ALL".to_owned(), Word::new("C")));
        let reason = format!(
            "in the C locale {} works on bytes, without decoding characters or collation rules",
            simple.name()
        );
        let text = changed.text();
        let safety = Safety::Environment;
        Some(vec![Change::of_one(RewriteId::ByteLocale, index, text, None, safety, reason)])
    })
}

fn sets_locale(simple: &Simple) -> bool {
    simple.variables.iter().any(|(name, _)| name.starts_with("LC_") || name == "LANG")
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply_in;
    use super::*;
    use contend_shell::environment::Environment;

    #[test]
    fn only_where_the_locale_is_another_and_not_asked_for() {
        let utf8 = Environment::for_tests("C.UTF-8");
        let changed = |text: &str| apply_in(RewriteId::ByteLocale, text, &utf8);
        assert_eq!(changed("X=1 sort f | cut -f1"), ["X=1 LC_ALL=C sort f | cut -f1"]);
        assert_eq!(changed("grep a f | tr b c").len(), 2);
        assert_eq!(changed("LC_ALL=C sort | LC_CTYPE=de_DE.UTF-8 grep x | wc -l"), [""; 0]);
        let c = Environment::for_tests("C");
        assert_eq!(apply_in(RewriteId::ByteLocale, "sort f", &c), [""; 0]);
    }
}
