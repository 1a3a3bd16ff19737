//! Renders points of several series as a text chart with two logarithmic axes.

use super::super::super::units::{bytes, count};

/// A series of points that share a mark.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Letter that marks the points of the series.
    pub mark: char,
    /// The points: a number of units and their bytes, both above 0.
    pub points: Vec<(f64, f64)>,
}

/// Number of lines of the chart for each power of ten.
const LINES_PER_DECADE: f64 = 4.0;
/// Width of the labels to the left of the points, in columns.
const LABEL_COLUMNS: usize = 9;
/// Mark for points of several series that coincide.
const OVERLAP_MARK: char = '*';

/// Renders a chart of bytes over numbers of units, at most `width` columns wide and never wider
/// than 111. Returns `None` if there are no points, or if all values on one of the axes are the
/// same power of ten.
///
/// # Panics
/// Panics if there is a chart to render and `width` is less than 12.
pub fn bytes_over_numbers(all: &[Series], width: usize) -> Option<String> {
    let points = || all.iter().flat_map(|series| &series.points);
    let (left, right) = decades(points().map(|point| point.0))?;
    let (bottom, top) = decades(points().map(|point| point.1))?;
    let columns = width.saturating_sub(LABEL_COLUMNS + 2).min(100);
    let lines = rounded((top - bottom) * LINES_PER_DECADE) + 1;
    let mut field = vec![vec![' '; columns]; lines];
    for series in all {
        for &(x, y) in &series.points {
            let column = rounded((x.log10() - left) / (right - left) * (columns - 1) as f64);
            let line = lines - 1 - rounded((y.log10() - bottom) * LINES_PER_DECADE);
            let place = &mut field[line][column.min(columns - 1)];
            *place =
                if *place == ' ' || *place == series.mark { series.mark } else { OVERLAP_MARK };
        }
    }
    let mut out = String::new();
    for (line, row) in field.iter().enumerate() {
        let decade = top - line as f64 / LINES_PER_DECADE;
        let label = if (decade - decade.round()).abs() < 0.01 {
            bytes(10_f64.powf(decade.round()))
        } else {
            String::new()
        };
        let text: String = row.iter().collect();
        out.push_str(format!("{label:>LABEL_COLUMNS$} │{text}").trim_end());
        out.push('\n');
    }
    out.push_str(&format!("{:>LABEL_COLUMNS$} └{}\n", "", "─".repeat(columns)));
    let mut labels = vec![' '; LABEL_COLUMNS + 2 + columns];
    for decade in rounded(left)..=rounded(right) {
        let share = (decade as f64 - left) / (right - left);
        let text = count(10_f64.powf(decade as f64));
        let at = LABEL_COLUMNS + 2 + rounded(share * (columns - 1) as f64);
        let at = at.min(labels.len() - text.len());
        for (place, letter) in labels[at..].iter_mut().zip(text.chars()) {
            *place = letter;
        }
    }
    out.push_str(labels.iter().collect::<String>().trim_end());
    out.push('\n');
    Some(out)
}

/// Returns the exponents of the two powers of ten that enclose all values: the largest that is at
/// most the smallest value, and the smallest that is at least the largest value. Returns `None` if
/// the exponents are equal, or without values.
fn decades(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let (low, high) = (least.log10().floor(), most.log10().ceil());
    (low.is_finite() && high > low).then_some((low, high))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small and not below 0"
)]
fn rounded(value: f64) -> usize {
    value.round().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_at_their_places_and_both_axes_are_named() {
        let series = |mark, points: &[(f64, f64)]| Series { mark, points: points.to_vec() };
        let all = [
            series('a', &[(100.0, 1000.0), (10_000.0, 100_000.0)]),
            series('b', &[(100.0, 100_000.0), (1000.0, 10_000.0), (10_000.0, 100_000.0)]),
        ];
        let chart = bytes_over_numbers(&all, 32).expect("a chart");
        let expected = "    100kB │b                   *
          │
          │
          │
   10.0kB │          b
          │
          │
          │
   1.00kB │a
          └─────────────────────
           100       1.00k 10.0k
";
        assert_eq!(chart, expected, "{chart}");
        assert_eq!(bytes_over_numbers(&[series('a', &[(100.0, 1000.0)])], 80), None);
        assert_eq!(bytes_over_numbers(&[], 80), None);
    }
}
