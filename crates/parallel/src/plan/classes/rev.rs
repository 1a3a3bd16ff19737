//! Classifies `rev`, which reverses each line.

use contend_commands::options::Table;
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Guard, Records};

const TABLE: Table = Table { short: "", long: &[] };

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::UtilLinux)?;
    let utf8 = subject.needs_utf8()?;
    let options = subject.options(&TABLE, &[])?;
    subject.reads_standard_input(&options.operands)?;
    if !options.operands.is_empty() {
        return Err("it reads files named in its arguments".into());
    }
    Ok(Class::PerRecord(PerRecord {
        // rev ends a line at a NUL as well.
        guard: Guard { without: ByteSet::from_iter([0]), utf8, ..Guard::NONE },
        // rev fails on invalid characters.
        may_fail: true,
        output: Output::LINES,
        ..PerRecord::new(Records::Lines)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, per_record};

    #[test]
    fn each_line_backwards() {
        let class = per_record("rev");
        assert!(class.may_fail && class.guard.utf8 && class.guard.without.contains(0));
        all_opaque(&[("rev f", "it reads files named in its arguments"), ("rev -0", "options")]);
    }
}
