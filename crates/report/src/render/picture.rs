//! Small pictures in text.

use unicode_width::UnicodeWidthStr as _;

/// Symbols for an eighth to eight eighths.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a line with a symbol for each of at most `columns` parts of `values`, by its mean. A value of
/// `most` is a full block, 0 is blank. The line has as many columns as there are values, if these are fewer.
pub fn sparkline(values: &[f64], most: f64, columns: usize) -> String {
    parts(values.len(), columns)
        .map(|(from, to)| {
            let sum: f64 = values[from..to].iter().sum();
            level(sum / (to - from) as f64, most)
        })
        .collect()
}

/// Divides `count` values into at most `columns` parts of about the same size, at least one value each.
/// Returns begin and end of each.
pub fn parts(count: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let columns = columns.min(count);
    (0..columns).map(move |part| (part * count / columns, (part + 1) * count / columns))
}

/// Returns the symbol of a value between 0 and `most`. Only 0 and less are blank.
fn level(value: f64, most: f64) -> char {
    if value <= 0.0 || most <= 0.0 {
        return ' ';
    }
    let eighths = (8.0 * value / most).round().clamp(1.0, 8.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 8")]
    let index = eighths as usize - 1;
    LEVELS[index]
}

/// Returns an axis of `columns` columns with a label at each end.
pub fn axis(left: &str, right: &str, columns: usize) -> String {
    let line = columns.saturating_sub(left.width() + right.width() + 2);
    format!("{left} {} {right}", "─".repeat(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_show_means_of_parts() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0], 1.0, 10), " ▄█");
        assert_eq!(sparkline(&[0.0, 1.0, 1.0, 1.0], 1.0, 2), "▄█");
        assert_eq!(sparkline(&[0.001], 1.0, 10), "▁", "little is not nothing");
        assert_eq!(sparkline(&[], 1.0, 10), "");
        assert_eq!(sparkline(&[1.0], 0.0, 10), " ");
    }

    #[test]
    fn parts_cover_all_values() {
        for (count, columns) in [(1, 1), (7, 3), (100, 60), (3, 100), (0, 5)] {
            let parts: Vec<_> = parts(count, columns).collect();
            assert_eq!(parts.len(), count.min(columns));
            assert!(parts.windows(2).all(|pair| pair[0].1 == pair[1].0));
            assert_eq!(parts.last().map_or(0, |last| last.1), count);
            assert!(parts.iter().all(|(from, to)| from < to));
        }
    }

    #[test]
    fn an_axis_has_the_width_of_its_picture() {
        let axis = axis("0", "4.08s", 20);
        assert_eq!((axis.width(), axis.as_str()), (20, "0 ──────────── 4.08s"));
    }
}
