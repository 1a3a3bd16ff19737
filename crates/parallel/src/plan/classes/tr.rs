//! Classifies `tr`, which maps bytes. With `-s`, a run of equal characters must stay in one chunk.

use contend_commands::tr::Effect;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Cut, Records};

const NEWLINE: u8 = b'\n';

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    subject.encoding()?;
    let plain_letters = subject.environment.has_plain_letters(subject.simple);
    let effect = Effect::read(subject.simple, plain_letters).ok_or("its sets cannot be parsed")?;
    let cut = Cut { after: beginnings(&effect), ..Cut::between(Records::Lines) };
    if cut.after.is_empty() {
        return Err("it squeezes repeats across every possible chunk boundary".into());
    }
    let output = output(&effect);
    Ok(Class::PerRecord(PerRecord { cut, output, ..PerRecord::new(Records::Lines) }))
}

/// Returns the bytes that a chunk may begin with. Their output cannot be squeezed together with the
/// output before them.
fn beginnings(effect: &Effect) -> ByteSet {
    match effect.image(NEWLINE) {
        // The last character of the previous output is unknown.
        None if ByteSet::of(|byte| effect.squeezes(byte)).is_empty() => ByteSet::ALL,
        None => ByteSet::of(|byte| effect.image(byte).is_some_and(|image| !effect.squeezes(image))),
        Some(last) if effect.squeezes(last) => {
            ByteSet::of(|byte| effect.image(byte).is_some_and(|image| image != last))
        }
        Some(_) => ByteSet::ALL,
    }
}

fn output(effect: &Effect) -> Output {
    let images = || (0..=255).filter_map(|byte| Some((byte, effect.image(byte)?)));
    let is_complete = images().count() == 256;
    let never_squeezes = !effect.squeezed.contains(&true);
    let whole = images().all(|(byte, image)| if byte.is_ascii() { image.is_ascii() } else { true });
    let stay = (128..=255).all(|b| effect.image(b) == Some(b) && !effect.squeezes(b));
    let vanish = (128..=255).all(|byte| effect.image(byte).is_none_or(|image| image.is_ascii()));
    let map = (is_complete && never_squeezes)
        .then(|| std::array::from_fn(|byte| effect.map[byte].unwrap_or_default()));
    Output {
        records: match effect.image(NEWLINE) {
            Some(NEWLINE) => Some(Records::Lines),
            Some(0) => Some(Records::Nul),
            _ => None,
        },
        keeps_utf8: whole && (stay || vanish),
        adds: images().filter(|(byte, image)| byte != image).map(|(_, image)| image).collect(),
        ascii_of_ascii: false,
        map,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, class_in, per_record};
    use super::*;

    #[test]
    fn tables_are_for_single_bytes() {
        all_per_record(&[
            "tr a-z A-Z",
            "tr '[:upper:]' '[:lower:]'",
            "tr -d '\\r'",
            "tr -cd '[:print:]\\n'",
            "tr -cs A-Za-z '\\n'",
            "tr -s ' '",
            "tr -ds a b",
            "tr '\\n' ' '",
            "tr ' ' '\\n'",
            "tr '[=a=]' '[b*3]'",
            "tr a-e 'x[y*]z'",
            "tr -t abc x",
            "tr 'a\\377' '\\200b'",
        ]);
        assert!(per_record("tr a-z A-Z").output.map.is_some_and(|map| map[97] == b'A'));
        assert!(per_record("tr -d a").output.map.is_none());
        assert!(per_record("tr -s a b").output.map.is_none());
    }

    #[test]
    fn parts_begin_where_nothing_is_torn() {
        assert!(per_record("tr -s ' '").cut.after.is_all());
        let blank = per_record("tr -s '\\n'").cut.after;
        assert_eq!(blank, ByteSet::from_iter([NEWLINE]).complement());
        let words = per_record("tr -cs A-Za-z '\\n'").cut.after;
        assert_eq!(words, ByteSet::of(|byte| byte.is_ascii_alphabetic()));
        let joined = per_record("tr -ds '\\n' a").cut.after;
        assert_eq!(joined, ByteSet::from_iter(*b"\na").complement());
        assert!(per_record("tr -d '\\n'").cut.after.is_all());
    }

    #[test]
    fn output_records_depend_on_the_sets() {
        let records = |text: &str| per_record(text).output.records;
        assert_eq!(records("tr -cs A-Za-z '\\n'"), Some(Records::Lines));
        assert_eq!(records("tr '\\n' '\\0'"), Some(Records::Nul));
        assert_eq!(records("tr '\\n' ' '"), None);
        assert_eq!(records("tr -d '\\n'"), None);
        assert!(per_record("tr a b").output.keeps_utf8);
        assert!(per_record("tr -cd 'a-z\\n'").output.keeps_utf8);
        assert!(!per_record("tr a '\\377'").output.keeps_utf8);
        assert!(!per_record("tr '\\303' a").output.keeps_utf8);
        assert!(!per_record("tr -s '\\200-\\377'").output.keeps_utf8);
        assert_eq!(per_record("tr a-c x").output.adds, ByteSet::from_iter([b'x']));
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        let sets = "sets cannot be parsed";
        all_opaque(&[
            ("tr c-a x", sets),
            ("tr a", sets),
            ("tr -d a b", sets),
            ("tr é e", sets),
            ("tr a ''", sets),
            ("tr abc '[:upper:]'", sets),
            ("tr '[:digit:]' '[:upper:]'", sets),
            ("tr -c '[:upper:]' '[:lower:]'", sets),
            ("tr '[x*]' y", sets),
            ("tr '\\777' y", sets),
            ("tr 'a\\' y", sets),
            (
                "tr -ds '\\n' '\\000-\\377'",
                "it squeezes repeats across every possible chunk boundary",
            ),
        ]);
        assert!(matches!(class_in("tr '[:lower:]' x", "tr_TR.UTF-8"), Class::Opaque(_)));
        assert!(matches!(class_in("tr a-z A-Z", "tr_TR.UTF-8"), Class::PerRecord(_)));
    }
}
