//! Classifies `cat`, which forwards its input, makes some of its bytes visible, or squeezes empty
//! lines.

use contend_commands::options::Table;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject, printable};
use crate::plan::ir::{ByteSet, Cut, Records};

const TABLE: Table = Table {
    short: "AbeEnstTuv",
    long: &[
        ("show-all", 'A'),
        ("number-nonblank", 'b'),
        ("show-ends", 'E'),
        ("number", 'n'),
        ("squeeze-blank", 's'),
        ("show-tabs", 'T'),
        ("show-nonprinting", 'v'),
    ],
};

const REFUSED: &[(char, &str)] = &[('n', "`-n` numbers lines"), ('b', "`-b` numbers lines")];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.reads_standard_input(&options.operands)?;
    if options.has_only("u") {
        return Ok(Class::Nothing);
    }
    let mut cut = Cut::between(Records::Lines);
    let mut output = Output::LINES;
    if options.has('s') {
        // With `-s`, a run of empty lines must stay in one chunk.
        cut.after = ByteSet::from_iter([b'\n']).complement();
    }
    if !options.has_only("su") {
        output.adds = printable();
    }
    Ok(Class::PerRecord(PerRecord { cut, output, ..PerRecord::new(Records::Lines) }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, class, per_record};
    use super::*;

    #[test]
    fn nothing_or_signs() {
        assert_eq!(class("cat"), Class::Nothing);
        assert_eq!(class("cat -u -"), Class::Nothing);
        assert!(per_record("cat -A").output.adds.contains(b'$'));
        assert!(per_record("cat -sE").cut.after.contains(b'a'));
        assert!(!per_record("cat -s").cut.after.contains(b'\n'));
        all_opaque(&[
            ("cat -n", "`-n` numbers"),
            ("cat -sb", "`-b` numbers"),
            ("cat - f", "it reads files named in its arguments"),
            ("cat --newfangled", "options"),
        ]);
    }
}
