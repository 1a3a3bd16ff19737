//! Classifies `join` with a file as one operand, which adds fields of the file to lines of the
//! input.

use contend_commands::options::{Options, Table};
use contend_shell::environment::{Encoding, Maker};

use super::comm::{Side, merging, piped};
use super::{Class, Finding, Output, PerRecord, Reason, Subject, is_number};
use crate::plan::ir::{ByteSet, Guard, Key, Records};

const TABLE: Table = Table {
    short: "a:e:ij:o:t:v:1:2:z\u{1}\u{2}\u{3}",
    long: &[
        ("ignore-case", 'i'),
        ("zero-terminated", 'z'),
        ("check-order", '\u{1}'),
        ("nocheck-order", '\u{2}'),
        ("header", '\u{3}'),
    ],
};

const REFUSED: &[(char, &str)] = &[
    ('i', "`-i` treats different fields as equal"),
    ('z', "with `-z`, newlines separate fields"),
    ('\u{3}', "`--header` treats the first line differently"),
];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.orders_by_bytes()?;
    let side = piped(subject, &options.operands)?;
    by_first_field(subject, &options, side)?;
    let own = if side == Side::First { "1" } else { "2" };
    if options.values('a').chain(options.values('v')).any(|number| number != own) {
        return Err("it writes unpaired lines of its file".into());
    }
    if options.values('o').any(|format| format == "auto") {
        return Err("`-o auto` counts the fields of the first line".into());
    }
    let (key, guard) = match options.value('t').map(str::as_bytes) {
        // Versions of join disagree about which characters beyond ASCII are blanks.
        None => {
            let beyond = ByteSet::of(|byte| !byte.is_ascii());
            let is_multibyte = subject.encoding()? == Encoding::Utf8;
            let without = if is_multibyte { beyond } else { ByteSet::EMPTY };
            (Key::FirstWord, Guard { without, ..Guard::NONE })
        }
        Some(&[byte]) if byte != b'\n' && byte.is_ascii() => (Key::FirstField(byte), Guard::NONE),
        Some(_) => return Err("the separator of `-t` is not a single byte".into()),
    };
    let output = Output { records: Some(Records::Lines), ..Output::ANYTHING };
    let class = merging(subject, Records::Lines, key)?;
    Ok(Class::PerRecord(PerRecord { guard, output, ..class }))
}

/// Checks that lines of the input are joined by their first field.
fn by_first_field(subject: &Subject<'_>, options: &Options, side: Side) -> Result<(), Reason> {
    // `-j1` and `-j2` are old forms of `-1` and `-2`.
    let old = subject.simple.arguments.iter().any(|word| ["-j1", "-j2"].contains(&&*word.text));
    let own = if side == Side::First { '1' } else { '2' };
    let is_first = options.values(own).chain(options.values('j')).all(|field| field == "1");
    let numbers = options.values('1').chain(options.values('2')).all(is_number);
    if is_first && numbers && !old {
        return Ok(());
    }
    Err("it joins on a field other than the first".into())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, class_in, per_record};
    use super::*;

    #[test]
    fn lines_and_what_belongs_to_them() {
        all_per_record(&[
            "join - /etc/passwd",
            "join -t: /etc/passwd -",
            "join -t , -1 1 -2 3 - /etc/passwd",
            "join -j 1 -a1 -e x -o 1.1,2.2 - /etc/passwd",
            "join -v2 /etc/passwd -",
        ]);
        let class = per_record("join - /etc/passwd");
        assert_eq!((class.cut.differ, class.cut.ascending), (Some(Key::FirstWord), true));
        assert!(class.guard.without.contains(0x80));
        let class = per_record("join -t: - /etc/passwd");
        assert_eq!((class.cut.differ, class.guard), (Some(Key::FirstField(b':')), Guard::NONE));
        let Class::PerRecord(class) = class_in("join - /etc/passwd", "C") else { panic!("C") };
        assert!(class.guard.is_none());
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("join -i - /etc/passwd", "`-i`"),
            ("join --header - /etc/passwd", "`--header`"),
            ("join -a2 - /etc/passwd", "it writes unpaired lines of its file"),
            ("join -v1 /etc/passwd -", "it writes unpaired lines of its file"),
            ("join -1 2 - /etc/passwd", "it joins on a field other than the first"),
            ("join -j1 - /etc/passwd", "it joins on a field other than the first"),
            ("join -j 2 - /etc/passwd", "it joins on a field other than the first"),
            ("join -o auto - /etc/passwd", "`-o auto`"),
            ("join -t '' - /etc/passwd", "`-t`"),
            ("join a b", "it reads files named in its arguments"),
        ]);
    }
}
