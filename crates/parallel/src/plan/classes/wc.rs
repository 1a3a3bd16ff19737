//! Classifies `wc`: the counts of chunks are summed; for `-L`, the maximum is taken.

use contend_commands::wc::TABLE;
use contend_shell::environment::Maker;

use super::{Class, Combinable, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Column, Combine, Numbers, Records};

/// Minimum width in characters of each column, if there are several and the input is a pipe.
const WIDTH: usize = 7;

/// The options for the counts that wc can write, in the order of its columns, each with how the
/// counts of chunks are combined.
const COLUMNS: [(char, Column); 5] = [
    ('l', Column::Sum),
    ('w', Column::Sum),
    ('m', Column::Sum),
    ('c', Column::Sum),
    ('L', Column::Greatest),
];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    subject.encoding()?;
    let options = subject.options(&TABLE, &[])?;
    subject.reads_standard_input(&options.operands)?;
    if !options.operands.is_empty() {
        return Err("it writes the name of its input file".into());
    }
    let given = |letter| {
        if options.given.is_empty() { "lwc".contains(letter) } else { options.has(letter) }
    };
    let wanted = COLUMNS.iter().filter(|(letter, _)| given(*letter));
    let columns: Vec<Column> = wanted.map(|(_, column)| *column).collect();
    let is_single = columns.len() == 1;
    if !is_single && subject.simple.input.is_some() {
        return Err("the width of its columns depends on the file's size".into());
    }
    let digits = ByteSet::from_iter(*b" 0123456789\n");
    let output = Output { keeps_utf8: true, adds: digits, ..Output::of(Records::Lines) };
    let each = PerRecord { output, ..PerRecord::new(Records::Lines) };
    let numbers = Numbers { columns, width: if is_single { 1 } else { WIDTH } };
    Ok(Class::Combinable(Combinable::unordered(each, Combine::Numbers(numbers))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, combinable};
    use super::*;

    fn numbers(text: &str) -> Numbers {
        match combinable(text).combine {
            Combine::Numbers(numbers) => numbers,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn columns_add_up() {
        use Column::{Greatest, Sum};
        let read = |text: &str| (numbers(text).columns, numbers(text).width);
        assert_eq!(read("wc"), (vec![Sum; 3], 7));
        assert_eq!(read("wc -l"), (vec![Sum], 1));
        assert_eq!(read("wc -ll"), (vec![Sum], 1));
        assert_eq!(read("wc -L"), (vec![Greatest], 1));
        assert_eq!(read("wc -Lcl"), (vec![Sum, Sum, Greatest], 7));
        assert_eq!(read("wc -l <f"), (vec![Sum], 1));
        assert!(combinable("wc -m").any_order && combinable("wc -w").ignores_order);
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("wc <f", "the width of its columns depends on the file's size"),
            ("wc -l f", "it reads files named in its arguments"),
            ("wc -l -", "the name of its input file"),
            ("wc --files0-from=f", "options"),
        ]);
    }
}
