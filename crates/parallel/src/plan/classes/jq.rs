//! Classifies `jq`, which handles each JSON value independently.

use std::path::Path;

use contend_commands::jq::Jq;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Cut, Guard, Records};

const REFUSED: &[(char, &str)] = &[
    ('n', "`-n` does not read its input"),
    ('s', "`-s` reads the whole input as one value"),
    ('R', "`-R` reads its input as text"),
    ('e', "with `-e` the exit code depends on the last value"),
];

/// The first byte of a byte order mark, which may occur only at the beginning of a stream.
const MARK: u8 = 0xef;

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Jq)?;
    let jq = Jq::read(subject.simple).ok_or("one of its options is not supported")?;
    if let Some((_, reason)) = REFUSED.iter().find(|(letter, _)| jq.has(*letter)) {
        return Err((*reason).into());
    }
    if jq.files.iter().any(|file| file.text != "-") || jq.files.len() > 1 {
        return Err("it reads files named in its arguments".into());
    }
    if let Some(word) = jq.reaches_out() {
        return Err(format!("`{word}` reads beyond the current value").into());
    }
    if std::env::var_os("HOME").is_some_and(|home| Path::new(&home).join(".jq").exists()) {
        return Err("`~/.jq` may redefine any function".into());
    }
    let cut = Cut { after: ByteSet::from_iter([MARK]).complement(), ..Cut::between(Records::Json) };
    Ok(Class::PerRecord(PerRecord {
        cut,
        guard: Guard { without: ByteSet::from_iter([0]), utf8: true, ..Guard::NONE },
        output_depends_on_tty: !jq.has('M') && !jq.has('C'),
        may_fail: true,
        output: output(&jq),
        ..PerRecord::new(Records::Json)
    }))
}

fn output(jq: &Jq) -> Output {
    let raw = jq.has('r') || jq.has('j');
    // jq escapes control characters in JSON strings.
    let escaped = ByteSet::of(|byte| byte >= b' ' || b"\n\t\x1b".contains(&byte));
    Output {
        records: match (jq.has('j'), raw || jq.has('C')) {
            (true, _) => None,
            (_, true) => Some(Records::Lines),
            _ => Some(Records::Json),
        },
        keeps_utf8: true,
        adds: if raw { ByteSet::ALL } else { escaped },
        ascii_of_ascii: false,
        map: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};
    use super::*;

    #[test]
    fn values_for_themselves() {
        all_per_record(&[
            "jq .",
            "jq -c '.a | select(. > 1)' -",
            "jq -r '.input'",
            "jq --arg x y --tab '{$x}'",
        ]);
        let class = per_record("jq -c .");
        assert_eq!((class.cut.records, class.may_fail), (Records::Json, true));
        assert!(class.output_depends_on_tty && !per_record("jq -M .").output_depends_on_tty);
        let records = |text: &str| per_record(text).output.records;
        assert_eq!(records("jq ."), Some(Records::Json));
        assert_eq!(records("jq -r ."), Some(Records::Lines));
        assert_eq!(records("jq -C ."), Some(Records::Lines));
        assert_eq!(records("jq -j ."), None);
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("jq -n '[inputs]'", "`-n`"),
            ("jq -s .", "`-s`"),
            ("jq -R .", "`-R`"),
            ("jq -e .", "`-e`"),
            ("jq '., input'", "`input`"),
            ("jq 'now'", "`now`"),
            ("jq --stream .", "options"),
            ("jq --seq .", "options"),
            ("jq --slurpfile a f .", "options"),
            ("jq . f", "it reads files named in its arguments"),
        ]);
    }
}
