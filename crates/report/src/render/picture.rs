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

/// Returns a line of `columns` columns with a symbol for each of as many equal ranges of the values, by the
/// number of values in it: the first range begins with the smallest value, the last one ends with the
/// largest. Empty if there are fewer than two different values.
pub fn histogram(values: &[f64], columns: usize) -> String {
    let (least, most) = extremes(values);
    if least >= most || columns == 0 {
        return String::new();
    }
    let mut counts = vec![0.0; columns];
    for value in values {
        counts[position((value - least) / (most - least), columns)] += 1.0;
    }
    let largest = counts.iter().copied().fold(0.0, f64::max);
    sparkline(&counts, largest, columns)
}

/// Returns a line with a symbol for each of at most `columns` parts of `values`, by its mean: the smallest
/// value is the lowest block, the largest one a full block.
pub fn trend(values: &[f64], columns: usize) -> String {
    let (least, most) = extremes(values);
    if least >= most {
        return sparkline(&vec![0.5; values.len()], 1.0, columns);
    }
    let relative: Vec<f64> =
        values.iter().map(|value| 0.125 + 0.875 * (value - least) / (most - least)).collect();
    sparkline(&relative, 1.0, columns)
}

/// Returns a line of `columns` columns with an interval, its estimate and the mark `│` at `origin`. All are
/// positions from 0, at the left end, to 1; arrows stand for ends outside.
pub fn interval([low, middle, high]: [f64; 3], origin: f64, columns: usize) -> String {
    let mut line = vec![' '; columns];
    line[position(origin, columns)] = '│';
    let (from, to) = (position(low, columns), position(high, columns));
    line[from..=to].fill('─');
    line[to] = '┤';
    line[from] = '├';
    if low < 0.0 {
        line[0] = '◂';
    }
    if high > 1.0 {
        line[columns - 1] = '▸';
    }
    if (0.0..=1.0).contains(&middle) {
        line[position(middle, columns)] = '●';
    }
    line.into_iter().collect()
}

/// Returns the index of the column at a position between 0 and 1; the nearest one for others.
fn position(place: f64, columns: usize) -> usize {
    let column = (place * columns as f64).floor().clamp(0.0, columns.saturating_sub(1) as f64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to columns")]
    let column = column as usize;
    column
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(*value), high.max(*value))
    })
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
    fn histograms_count_values_in_equal_ranges() {
        assert_eq!(histogram(&[1.0, 1.1, 1.2, 1.3, 4.9, 5.0], 4), "█  ▄");
        assert_eq!(histogram(&[1.0, 2.0], 3), "█ █", "the largest value is in the last range");
        assert_eq!(histogram(&[1.0, 1.0], 3), "");
        assert_eq!(histogram(&[], 3), "");
    }

    #[test]
    fn trends_reach_from_the_smallest_value_to_the_largest() {
        assert_eq!(trend(&[100.0, 101.0, 102.0], 10), "▁▅█");
        assert_eq!(trend(&[7.0, 7.0], 10), "▄▄");
        assert_eq!(trend(&[], 10), "");
    }

    #[test]
    fn intervals_have_ends_and_an_origin() {
        assert_eq!(interval([0.1, 0.25, 0.45], 0.5, 10), " ├●─┤│    ");
        assert_eq!(interval([0.55, 0.55, 0.55], 0.5, 10), "     ●    ");
        assert_eq!(interval([-0.1, 0.5, 1.1], 0.5, 5), "◂─●─▸");
        assert_eq!(interval([1.2, 1.3, 1.4], 0.5, 5), "  │ ▸");
        assert_eq!(interval([-2.0, -1.3, -1.0], 0.5, 5), "◂ │  ");
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
