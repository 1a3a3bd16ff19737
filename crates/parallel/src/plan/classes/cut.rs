//! Classifies `cut`, which handles each line independently.

use contend_commands::cut::{List, TABLE};
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::Records;

const OUTPUT_DELIMITER: char = '\u{2}';

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    subject.encoding()?;
    let options = subject.options(&TABLE, &[])?;
    subject.reads_standard_input(&options.operands)?;
    let mut lists = options.given.iter().filter(|(letter, _)| "bcf".contains(*letter));
    let (Some((unit, Some(list))), None) = (lists.next(), lists.next()) else {
        return Err("it selects in several ways, or in none".into());
    };
    let by_field = *unit == 'f';
    if List::read(list).is_none() || !by_field && (options.has('d') || options.has('s')) {
        return Err("its list of ranges cannot be parsed".into());
    }
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let delimiter = match options.value('d').unwrap_or("\t").as_bytes() {
        [] => 0,
        &[byte] => byte,
        _ => return Err("its delimiter is not a single byte".into()),
    };
    if by_field && delimiter == records.separator() {
        return Err("with a newline as delimiter, lines are fields".into());
    }
    let mut output = Output::of(records);
    // With `-b`, and so far with `-c` as well, cut may split a character.
    output.keeps_utf8 = by_field;
    if let Some(text) = options.value(OUTPUT_DELIMITER) {
        let bytes = if text.is_empty() { &[0] } else { text.as_bytes() };
        output.adds = output.adds.union(bytes.iter().copied().collect());
    }
    Ok(Class::PerRecord(PerRecord { output, ..PerRecord::new(records) }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};
    use super::*;

    #[test]
    fn parts_of_lines() {
        all_per_record(&[
            "cut -f1",
            "cut -d: -f 1,3- -",
            "cut -b 2-4",
            "cut -c -3 --complement",
            "cut -sd, -f2 --output-delimiter=;",
            "cut -d '' -f1",
        ]);
        assert_eq!(per_record("cut -zf1").cut.records, Records::Nul);
        assert!(per_record("cut -f1").output.keeps_utf8);
        assert!(!per_record("cut -c1").output.keeps_utf8);
        let output = per_record("cut -f1,2 --output-delimiter=").output;
        assert!(output.adds.contains(0) && output.adds.contains(b'\n'));
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("cut -d '\n' -f1", "lines are fields"),
            ("cut -zd '' -f1", "lines are fields"),
            ("cut -d:: -f1", "not a single byte"),
            ("cut -f0", "its list of ranges cannot be parsed"),
            ("cut -f1 -c1", "several ways"),
            ("cut", "none"),
            ("cut -f1 a b", "it reads files named in its arguments"),
            ("cut -w -f1", "options"),
        ]);
    }
}
