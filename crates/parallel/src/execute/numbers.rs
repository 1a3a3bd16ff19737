//! Combines the numbers that commands have written for chunks, such as those of `wc`.

use std::io;
use std::ops::ControlFlow;

use super::error::GroupError;
use super::sink::OutputSink;
use crate::plan::ir::{Column, Numbers};

/// Combines the numbers of all outputs column by column, as sums or maxima, and writes the results
/// as one line. Returns `Break` if the reader wants no more output.
///
/// # Errors
/// Returns an error if an output does not consist of one number for each column, or if writing
/// fails.
pub(super) fn combine(
    kinds: &Numbers,
    outputs: &[Vec<u8>],
    to: &mut impl OutputSink,
) -> Result<ControlFlow<()>, GroupError> {
    let mut totals = vec![0_u64; kinds.columns.len()];
    for output in outputs {
        let text = str::from_utf8(output).map_err(|_| io::ErrorKind::InvalidData)?;
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
    to.write(format!("{}\n", fields.join(" ")).as_bytes())
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
            Ok(ControlFlow::Continue(()))
        };
        let outputs = [b"      1      20\n".to_vec(), b"2 3\n".to_vec()];
        assert!(combine(&kinds, &outputs, &mut take).expect("numbers").is_continue());
        assert_eq!(text, b"      3      20\n");
        let mut none = |_: &[u8]| Ok(ControlFlow::Continue(()));
        for wrong in [b"x\n".as_slice(), b"1\n", b"1 2 3\n", b"1 \xff\n", b""] {
            assert!(combine(&kinds, &[wrong.to_vec()], &mut none).is_err(), "{wrong:?}");
        }
    }
}
