//! Replaces awk by another installed implementation, and proposes one change for each of them.
//! Which implementation is fastest depends on the program.

use contend_commands::Simple;
use contend_commands::awk::{Awk, with_program_files};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation, Variant};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.worthwhile(|index, stage| {
        let arguments = |simple: &Simple| {
            Awk::read(simple).map(|awk| awk.arguments).or_else(|| with_program_files(simple))
        };
        let (simple, arguments) = stage.read(arguments)?;
        let others = situation.environment.other_awks(simple).into_iter();
        let changes = others.map(|other| {
            let mut words: Vec<String> = simple
                .variables
                .iter()
                .map(|(name, value)| format!("{name}={}", value.raw))
                .collect();
            words.push(other.to_owned());
            words.extend(arguments.iter().map(|word| word.raw.clone()));
            words.extend(simple.input.iter().map(|file| format!("<{}", file.raw)));
            let reason = format!("{other} may be faster or slower for this program");
            let text = words.join(" ");
            Change {
                variant: Variant::Program(other.to_owned()),
                ..Change::of_one(RewriteId::AnotherAwk, index, text, None, Safety::ThisData, reason)
            }
        });
        Some(changes.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::apply;
    use super::*;

    #[test]
    fn every_installed_one_but_the_own_is_named() {
        let changed = |text: &str| apply(RewriteId::AnotherAwk, text);
        assert_eq!(
            changed("X=1 awk -F: '{ print $1 }' f | sort"),
            ["X=1 gawk -F: '{ print $1 }' f | sort", "X=1 busybox awk -F: '{ print $1 }' f | sort"]
        );
        assert_eq!(changed("busybox awk 1 <f"), ["mawk 1 <f", "gawk 1 <f"]);
        assert_eq!(changed("gawk 1 | cat").len(), 2);
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| format!("{}/{name}", folder.path().display());
        std::fs::write(path("p"), "{ print $1 }").expect("room");
        std::fs::write(path("w"), "{ print > \"out\" }").expect("room");
        let (reads, writes) = (path("p"), path("w"));
        assert_eq!(changed(&format!("mawk -f {reads} -f {reads} f")).len(), 2);
        assert_eq!(changed(&format!("mawk -f {reads} -f {writes} f")), [""; 0]);
        for text in
            ["awk -f /no/such/program f", "awk '{ system($0) }' f", "awk '{ print > \"out\" }' f"]
        {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
