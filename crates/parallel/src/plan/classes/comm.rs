//! Classifies `comm` with a file as one operand, which compares lines of the input with the file.

use contend_commands::Word;
use contend_commands::options::Table;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Reason, Subject, is_regular_file};
use crate::plan::ir::{Cut, Key, Records};

const CHECK: char = '\u{1}';
const OUTPUT_DELIMITER: char = '\u{3}';
const TABLE: Table = Table {
    short: "123z\u{1}\u{2}\u{3}:\u{4}",
    long: &[
        ("check-order", CHECK),
        ("nocheck-order", '\u{2}'),
        ("output-delimiter", OUTPUT_DELIMITER),
        ("total", '\u{4}'),
        ("zero-terminated", 'z'),
    ],
};

const REFUSED: &[(char, &str)] = &[('\u{4}', "`--total` counts lines")];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let options = subject.options(&TABLE, REFUSED)?;
    subject.orders_by_bytes()?;
    // Lines that are only in the file would be written for every chunk.
    let only_in_file = match piped(subject, &options.operands)? {
        Side::First => '2',
        Side::Second => '1',
    };
    if !options.has(only_in_file) {
        return Err(format!("without `-{only_in_file}` it writes lines of its file").into());
    }
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let mut output = Output::of(records);
    let delimiter = options.value(OUTPUT_DELIMITER).unwrap_or("\t");
    let bytes = if delimiter.is_empty() { &[0] } else { delimiter.as_bytes() };
    output.adds = output.adds.union(bytes.iter().copied().collect());
    Ok(Class::PerRecord(PerRecord { output, ..merging(subject, records, Key::Whole)? }))
}

/// Returns the class of a command that merges its input with a file, both sorted by the given key.
/// Adds `--check-order`, which makes the command fail on every chunk that is not in order; the
/// fallback then runs the original command, which reports the disorder as usual. Returns an error
/// if the arguments contain `--`, after which no option can be added.
pub(super) fn merging(
    subject: &Subject<'_>,
    records: Records,
    key: Key,
) -> Result<PerRecord, Reason> {
    let mut arguments = subject.simple.arguments.clone();
    if arguments.iter().any(|word| word.text == "--") {
        return Err("one of its options is not supported".into());
    }
    arguments.push(Word::new("--check-order"));
    let cut = Cut { differ: Some(key), ascending: true, ..Cut::between(records) };
    let arguments = Some(arguments);
    Ok(PerRecord { cut, arguments, may_fail: true, ..PerRecord::new(records) })
}

/// The position of the operand that is the piped input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Second,
}

/// Returns which operand is the piped input. Fails unless there are two operands: `-` and a regular
/// file.
pub(super) fn piped(subject: &Subject<'_>, operands: &[usize]) -> Result<Side, Reason> {
    let files: Vec<&str> =
        operands.iter().map(|&place| subject.simple.arguments[place].text.as_str()).collect();
    let (side, file) = match files.as_slice() {
        ["-", file] => (Side::First, file),
        [file, "-"] => (Side::Second, file),
        _ => return Err("it reads files named in its arguments".into()),
    };
    if *file == "-" || !is_regular_file(file) {
        return Err(format!("`{file}` cannot be re-read").into());
    }
    Ok(side)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, class_in, per_record};
    use super::*;
    use crate::plan::ir::ByteSet;

    #[test]
    fn lines_that_are_in_the_file_or_not() {
        all_per_record(&[
            "comm -23 - /etc/passwd",
            "comm -12 - /etc/passwd",
            "comm -13 /etc/passwd -",
            "comm -2 --nocheck-order - /etc/passwd",
        ]);
        let class = per_record("comm -23 - /etc/passwd");
        assert_eq!((class.cut.differ, class.cut.ascending), (Some(Key::Whole), true));
        let arguments: Vec<_> = class.arguments.iter().flatten().map(|word| &word.raw).collect();
        assert_eq!(arguments, ["-23", "-", "/etc/passwd", "--check-order"]);
        all_opaque(&[
            ("comm - /etc/passwd", "`-2`"),
            ("comm -13 - /etc/passwd", "`-2`"),
            ("comm -23 /etc/passwd -", "`-1`"),
            ("comm -23 - -", "re-read"),
            ("comm -23 - /nonexistent", "re-read"),
            ("comm -23 a b", "it reads files named in its arguments"),
            ("comm -23 --total - /etc/passwd", "`--total`"),
        ]);
        let german = class_in("comm -23 - /etc/passwd", "de_DE.UTF-8");
        assert!(matches!(german, Class::Opaque(_)));
    }

    #[test]
    fn output_delimiters_are_added_bytes() {
        let adds = |text: &str| per_record(text).output.adds;
        assert_eq!(adds("comm -23 - /etc/passwd"), ByteSet::from_iter(*b"\t\n"));
        let text = "comm -2z --output-delimiter , - /etc/passwd";
        assert_eq!(adds(text), ByteSet::from_iter(*b",\0"));
    }
}
