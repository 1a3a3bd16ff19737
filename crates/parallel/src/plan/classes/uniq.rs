//! Classifies `uniq`: adjacent equal lines stay in one chunk, or are collapsed when outputs are
//! combined.

use contend_commands::uniq::TABLE;
use contend_shell::environment::Maker;

use super::{Class, Combinable, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Combine, Cut, Key, Records};

const REFUSED: &[(char, &str)] = &[
    ('i', "`-i` treats different lines as equal"),
    ('f', "`-f` treats different lines as equal"),
    ('s', "`-s` treats different lines as equal"),
    ('w', "`-w` treats different lines as equal"),
];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.reads_standard_input(&options.operands)?;
    subject.orders_by_bytes()?;
    if options.has('c') && options.has('D') {
        return Err("it refuses `-c` with `-D`".into());
    }
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let mut output = Output::of(records);
    if options.has('c') {
        output.adds = output.adds.union(ByteSet::from_iter(*b" 0123456789"));
    }
    let each = PerRecord { output, ..PerRecord::new(records) };
    if options.has_only("c") {
        let combine = Combine::Adjoin { counted: options.has('c') };
        return Ok(Class::Combinable(Combinable::ordered(each, combine)));
    }
    let cut = Cut { differ: Some(Key::Whole), ..Cut::between(records) };
    Ok(Class::PerRecord(PerRecord { cut, ..each }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, class_in, combinable, per_record};
    use super::*;

    #[test]
    fn equal_neighbours_are_merged_or_stay_in_one_chunk() {
        assert_eq!(combinable("uniq").combine, Combine::Adjoin { counted: false });
        let counted = combinable("uniq --count -");
        assert_eq!(counted.combine, Combine::Adjoin { counted: true });
        assert!(counted.each.output.adds.contains(b'7') && !counted.any_order);
        for text in ["uniq -d", "uniq -u", "uniq -D", "uniq -cd", "uniq -z", "uniq -cz"] {
            assert_eq!(per_record(text).cut.differ, Some(Key::Whole), "{text}");
        }
        assert_eq!(per_record("uniq -z").cut.records, Records::Nul);
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("uniq -i", "`-i`"),
            ("uniq -f1", "`-f`"),
            ("uniq -s 2", "`-s`"),
            ("uniq -w 3", "`-w`"),
            ("uniq -cD", "`-D`"),
            ("uniq --group", "options"),
            ("uniq a b", "it reads files named in its arguments"),
        ]);
        assert!(matches!(class_in("uniq", "de_DE.UTF-8"), Class::Opaque(_)));
    }
}
