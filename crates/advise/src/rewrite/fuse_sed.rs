//! Merges `sed | sed` into one sed that runs both scripts, if they process each line independently.

use contend_commands::sed::{Action, Command, Sed};
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (simple, outer) = first.read(Sed::read)?;
        let (next, inner) = second.read(Sed::read)?;
        let reads_pipe = next.input.is_none() && inner.files.is_empty();
        if !(outer.has_same_dialect(&inner) && reads_pipe && simple.is_sibling_of(next)) {
            return None;
        }
        let commands: Vec<_> =
            once_at_most(&outer)?.into_iter().chain(inner.commands.clone()).collect();
        let speaker = if outer.uses_expressions() { &outer } else { &inner };
        let extended = speaker.extended;
        let mut arguments = Sed::arguments(&commands, inner.quiet, extended, outer.null_data);
        arguments.extend(outer.files);
        let text = simple.with(arguments).text();
        let reason = "a single sed reads and writes each line once, but cannot use two CPUs";
        Some(Change::fused(RewriteId::FuseSed, index, text, Safety::Always, reason))
    })
}

/// Returns the commands of an equivalent script that runs without `-n` and writes each line at most
/// once, at the end of the cycle. Returns `None` if no such script is known.
fn once_at_most(sed: &Sed) -> Option<Vec<Command>> {
    if sed.writes_at_most_once() {
        return Some(sed.commands.clone());
    }
    sed.only_keeps()?;
    let [kept] = sed.commands.as_slice() else { return None };
    let address = kept.text.strip_suffix('p')?.trim_end();
    let text = format!("{address}!d");
    Some(vec![Command { text, action: Action::Delete, ..kept.clone() }])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;

    fn changed(text: &str) -> Vec<String> {
        apply(RewriteId::FuseSed, text)
    }

    #[test]
    fn two_scripts_become_one() {
        assert_eq!(
            changed("sed 's/a/A/g;' f | sed -e s/b/B/ -e /x/d"),
            ["sed 's/a/A/g; s/b/B/; /x/d' f"]
        );
        assert_eq!(changed("sed -n '/x/p' | sed 's/a/b/'"), ["sed '/x/!d; s/a/b/'"]);
        assert_eq!(changed("sed -E y/a/b/ | sed s/x+/c/"), ["sed 'y/a/b/; s/x+/c/'"]);
        assert_eq!(changed("sed y/a/b/ | sed -nE /x+/p"), ["sed -n -E 'y/a/b/; /x+/p'"]);
        assert_eq!(
            changed("sed s/a/b/ | sed s/c/d/ | sed s/e/f/"),
            ["sed 's/a/b/; s/c/d/' | sed s/e/f/", "sed s/a/b/ | sed 's/c/d/; s/e/f/'"]
        );
        assert_eq!(safety(RewriteId::FuseSed, "sed s/a/b/ | sed s/c/d/"), Safety::Always);
    }

    #[test]
    fn scripts_that_look_beyond_their_line_stay() {
        for text in [
            "sed 2d | sed s/a/b/",
            "sed s/a/b/ | sed 2d",
            "sed s/a/b/ | sed -n 2p",
            "sed s/a/b/ | sed 5q",
            "sed 'N;s/a/b/' | sed s/c/d/",
            "sed s/a/b/ | sed 'N;s/a/b/'",
            "sed 'H;x' | sed s/a/b/",
            "sed p | sed s/a/b/",
            "sed -n '/a/p;/b/p' | sed s/a/b/",
            "sed 's/a/\\n/' | sed s/a/b/",
            "sed s/a+/b/ | sed -E s/a+/b/",
            "sed -z s/a/b/ | sed s/a/b/",
            "sed s/a/b/w | sed s/a/b/",
            "sed -i s/a/b/ f | sed s/a/b/",
            "sed s/a/b/ | sed s/a/b/ f",
            "sed s/a/b/ | LC_ALL=C sed s/a/b/",
            "sed s/a/b/ | sed s//c/",
            "sed '$d' | sed s/a/b/",
            "sed ':a;s/a/b/;ta' | sed s/a/b/",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
