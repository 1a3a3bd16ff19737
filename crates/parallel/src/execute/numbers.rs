//! Numbers of parts, put together.

use std::io::{self, Read};

use crate::plan::ir::{Column, Numbers};

use super::instance::Take;

/// Reads the numbers of every output, puts them together and writes them. `false` if nobody wants
/// them.
///
/// # Errors
/// When an output cannot be read, or has other things than these numbers in it.
pub(super) fn combine<R: Read>(
    kinds: &Numbers,
    outputs: Vec<R>,
    to: &mut impl Take,
) -> io::Result<bool> {
    let mut totals = vec![0_u64; kinds.columns.len()];
    for mut output in outputs {
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        let numbers: Option<Vec<u64>> =
            text.split_whitespace().map(|number| number.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == totals.len());
        let numbers = numbers.ok_or(io::ErrorKind::InvalidData)?;
        for ((total, number), kind) in totals.iter_mut().zip(numbers).zip(&kinds.columns) {
            *total = match kind {
                Column::Sum => *total + number,
                Column::Greatest => number.max(*total),
            };
        }
    }
    let width = kinds.width;
    let fields: Vec<String> = totals.iter().map(|total| format!("{total:width$}")).collect();
    to.take(format!("{}\n", fields.join(" ")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_added_or_compared() {
        let kinds = Numbers { columns: vec![Column::Sum, Column::Greatest], width: 7 };
        let mut text = Vec::new();
        let mut take = |bytes: &[u8]| {
            text.extend_from_slice(bytes);
            Ok(true)
        };
        let outputs = vec!["      1      20\n".as_bytes(), b"2 3\n"];
        assert!(combine(&kinds, outputs, &mut take).expect("numbers"));
        assert_eq!(text, b"      3      20\n");
        assert!(combine(&kinds, vec![b"x\n".as_slice()], &mut |_: &[u8]| Ok(true)).is_err());
    }
}
