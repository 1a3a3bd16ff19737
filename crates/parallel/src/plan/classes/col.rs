//! `col`: without the signs that move between lines, each line for itself.

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
    ('f', "`-f` moves by halves of lines"),
    ('p', "`-p` hands on signs that move between lines"),
    ('l', "`-l` says how many lines it remembers"),
];

/// Signs that move to other lines, begin another set of characters, or end its text.
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
        // They are no characters to it.
        without = without.union(ByteSet::of(|byte| !byte.is_ascii()));
    }
    // It writes several signs at one place with backspaces between them.
    let added: &[u8] = if options.has('b') { b" \t\n" } else { b" \t\n\x08" };
    Ok(Class::PerRecord(PerRecord {
        // What it writes of blanks at the end depends on how many lines came before.
        guard: Guard { without, utf8, terminated: true },
        may_fail: true,
        // Reverse line feeds lead back to earlier lines.
        looks_back: true,
        output: Output { adds: added.iter().copied().collect(), ..Output::of(Records::Lines) },
        ..PerRecord::new(Records::Lines)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};

    #[test]
    fn lines_for_themselves() {
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
