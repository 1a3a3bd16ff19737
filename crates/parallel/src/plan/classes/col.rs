//! Classifies `col`, which handles each line independently if no byte of the input moves to another
//! line.

use contend_commands::options::Table;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Guard, Records};

const TABLE: Table = Table {
    short: "bfhpxl:",
    long: &[
        ("no-backspaces", 'b'),
        ("fine", 'f'),
        ("tabs", 'h'),
        ("pass", 'p'),
        ("spaces", 'x'),
        ("lines", 'l'),
    ],
};

const REFUSED: &[(char, &str)] = &[
    ('f', "`-f` moves by half lines"),
    ('p', "`-p` passes on control characters that move between lines"),
    ('l', "`-l` limits the lines that it buffers"),
];

/// Control characters that move the output to another line, select another character set, or end
/// the input.
const MOVING: &[u8] = b"\0\x0b\x0c\x0e\x0f\x1b";

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::UtilLinux)?;
    let utf8 = subject.needs_utf8()?;
    let options = subject.options(&TABLE, REFUSED)?;
    if !options.operands.is_empty() {
        return Err("it takes no operands".into());
    }
    let mut without: ByteSet = MOVING.iter().copied().collect();
    if !utf8 {
        // In this locale, col accepts ASCII only.
        without = without.union(ByteSet::of(|byte| !byte.is_ascii()));
    }
    // Characters that overlap in one column are written with backspaces between them.
    let added: &[u8] = if options.has('b') { b" \t\n" } else { b" \t\n\x08" };
    Ok(Class::PerRecord(PerRecord {
        // How col treats trailing blanks at the end of the input depends on the number of lines
        // before it.
        guard: Guard { without, utf8, terminated: true },
        may_fail: true,
        // A reverse line feed moves back to earlier lines.
        looks_back: true,
        output: Output { adds: added.iter().copied().collect(), ..Output::of(Records::Lines) },
        ..PerRecord::new(Records::Lines)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};

    #[test]
    fn supported_forms_are_per_record() {
        all_per_record(&["col -b", "col -bx", "col -x", "col"]);
        let class = per_record("col -bx");
        assert!(class.may_fail && class.guard.utf8 && class.guard.without.contains(0x1b));
        assert!(per_record("LC_ALL=C col -b").guard.without.contains(0xff));
        all_opaque(&[
            ("col -f", "`-f`"),
            ("col -bp", "`-p`"),
            ("col -l 5", "`-l`"),
            ("col -z", "options"),
            ("col f", "operands"),
        ]);
    }
}
