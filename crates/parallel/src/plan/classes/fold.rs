//! Classifies `fold`, `expand` and `unexpand`, which handle each line independently, since columns
//! count from the start of the line.

use contend_commands::options::Table;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Records};

const FOLD: Table =
    Table { short: "bsw:", long: &[("bytes", 'b'), ("spaces", 's'), ("width", 'w')] };
const EXPAND: Table = Table { short: "it:", long: &[("initial", 'i'), ("tabs", 't')] };
const UNEXPAND: Table =
    Table { short: "at:\u{1}", long: &[("all", 'a'), ("tabs", 't'), ("first-only", '\u{1}')] };

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    subject.encoding()?;
    let (table, numbers) = match subject.simple.name() {
        "fold" => (&FOLD, 'w'),
        "expand" => (&EXPAND, 't'),
        _ => (&UNEXPAND, 't'),
    };
    let options = subject.options(table, &[])?;
    subject.reads_standard_input(&options.operands)?;
    let understood = |list: &str| list.bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    if !options.values(numbers).all(understood) {
        return Err("its numbers cannot be parsed".into());
    }
    let output = match subject.simple.name() {
        // fold counts bytes, and may split a character.
        "fold" => Output { keeps_utf8: false, ..Output::of(Records::Lines) },
        _ => Output { adds: ByteSet::from_iter(*b" \t\n"), ..Output::of(Records::Lines) },
    };
    Ok(Class::PerRecord(PerRecord { output, ..PerRecord::new(Records::Lines) }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};

    #[test]
    fn columns_begin_anew() {
        all_per_record(&[
            "fold",
            "fold -sw 20",
            "fold -bw20 -",
            "expand -t 4",
            "expand -i -t1,5",
            "unexpand -a",
            "unexpand --first-only -t 2",
        ]);
        assert!(!per_record("fold").output.keeps_utf8 && per_record("expand").output.keeps_utf8);
        all_opaque(&[
            ("fold -w x", "numbers"),
            ("expand -t /3", "numbers"),
            ("fold -80", "options"),
            ("fold f", "it reads files named in its arguments"),
        ]);
    }
}
