//! Merges `cut | cut` into one `cut`, if both select by the same unit and have the same delimiter.

use contend_commands::cut::Cut;
use contend_record::advice::{RewriteId, Safety};

use super::{Change, Situation};

pub(super) fn find(situation: &Situation<'_>) -> Vec<Change> {
    situation.neighbours(|index, first, second| {
        let (simple, outer) = first.read(Cut::read)?;
        let (next, inner) = second.read(Cut::read)?;
        let alike = outer.unit == inner.unit && outer.delimiter == inner.delimiter;
        let reads_pipe = next.input.is_none() && inner.files.is_empty();
        if !(alike && reads_pipe && simple.is_sibling_of(next)) {
            return None;
        }
        // cut prints lines without a delimiter in full. So if the first cut leaves a single field,
        // the second one prints it even if its list lacks the first field. The merged cut does not.
        let always = outer.unit != 'f' || inner.list.has_first();
        let cut = Cut { list: outer.list.then(&inner.list)?, ..outer };
        let text = simple.with(cut.arguments()).text();
        let safety = if always { Safety::Always } else { Safety::ThisData };
        let reason = "a single cut selects what both select";
        Some(Change::fused(RewriteId::FuseCut, index, text, safety, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{apply, safety};
    use super::*;

    #[test]
    fn two_choices_become_one() {
        let changed = |text: &str| apply(RewriteId::FuseCut, text);
        assert_eq!(changed("cut -d: -f2-5 f | cut -d: -f1,3"), ["cut -d: -f2,4 f"]);
        assert_eq!(changed("cut -c 1-10 <f | cut -c3-5"), ["cut -c3-5 <f"]);
        let safety = |text: &str| safety(RewriteId::FuseCut, text);
        assert_eq!(safety("cut -f2-5 | cut -f1,3"), Safety::Always);
        assert_eq!(safety("cut -f2-5 | cut -f2"), Safety::ThisData);
        assert_eq!(safety("cut -b2-5 | cut -b2"), Safety::Always);
        for text in [
            "cut -d: -f2 | cut -d, -f1",
            "cut -f1 | cut -c1",
            "cut -sf1 | cut -f1",
            "cut -f1 | cut -f2",
            "cut -f1 --complement | cut -f2",
            "cut -f1-3 | cut -f1 g",
        ] {
            assert_eq!(changed(text), [""; 0], "{text}");
        }
    }
}
