//! Bars and spans, one row below the other. Each row has its label and its figure above it, so that long labels
//! and narrow pages do not take room from the bars.

use std::borrow::Cow;
use std::collections::HashMap;

use maud::{Markup, html};

use super::{Colour, Format, Scale, across, pixels};
use crate::render::layout::cut;

/// Height of a row with its label and its figure, and of its bar, in pixels.
const ROW: f64 = 54.0;
const BAR: f64 = 14.0;
/// Distances of the baselines of the label and of the figure below it from the top of a row.
const LABEL: f64 = 14.0;
const VALUE: f64 = 28.0;
/// Distance of a bar from the top of its row.
const TOP: f64 = 33.0;
/// Largest width of a label, in columns. A narrow page shows the beginning.
const MAX_LABEL_COLUMNS: usize = 90;
/// Radius of a point, in pixels.
const RADIUS: f64 = 5.0;
/// Ratio of the longest bar to the shortest up to which bars show both.
const MAX_BAR_RATIO: f64 = 100.0;
/// Height of the axis below the rows.
const AXIS: f64 = 22.0;

/// A row of a chart.
#[derive(Debug, Clone, Default)]
pub(in crate::render::html) struct Row {
    pub label: String,
    /// The figure, below the label.
    pub value: String,
    pub spans: Vec<Span>,
    pub shape: Shape,
    /// Ends of an interval around the end of the bar.
    pub interval: Option<[f64; 2]>,
    /// A figure of another source, shown as a line across the bar, and its description.
    pub reference: Option<(f64, String)>,
}

/// How the spans of a row are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::render::html) enum Shape {
    #[default]
    Bar,
    /// A point at the end of the span.
    Point,
}

/// A part of a row.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Span {
    pub from: f64,
    pub to: f64,
    pub colour: Colour,
    /// Its figures.
    pub text: String,
}

impl Row {
    /// Returns a row with a bar from 0, which goes to the left if `length` is negative.
    pub(in crate::render::html) fn bar(
        label: impl Into<String>,
        length: f64,
        value: impl Into<String>,
        colour: Colour,
    ) -> Self {
        let (label, value) = (label.into(), value.into());
        let text = format!("{label}: {value}");
        let spans = vec![Span { from: length.min(0.0), to: length.max(0.0), colour, text }];
        Self { label, value, spans, ..Self::default() }
    }

    /// Returns a row of parts in order, each beginning where the one before ends: length, colour, text.
    pub(in crate::render::html) fn stacked(
        label: impl Into<String>,
        value: impl Into<String>,
        parts: impl IntoIterator<Item = (f64, Colour, String)>,
    ) -> Self {
        let mut from = 0.0;
        let spans = parts.into_iter().filter(|(length, ..)| *length > 0.0).map(|part| {
            let (length, colour, text) = part;
            let begun = from;
            from += length;
            Span { from: begun, to: from, colour, text }
        });
        Self { label: label.into(), value: value.into(), spans: spans.collect(), ..Self::default() }
    }

    /// Returns the end of a bar that begins at 0. `None` without a bar.
    fn end(&self) -> Option<f64> {
        self.spans.first().map(|span| if span.from < 0.0 { span.from } else { span.to })
    }

    /// Returns all values in the row.
    fn values(&self) -> impl Iterator<Item = f64> {
        let spans = self.spans.iter().flat_map(|span| [span.from, span.to]);
        let reference = self.reference.as_ref().map(|(value, _)| *value);
        spans.chain(self.interval.into_iter().flatten()).chain(reference)
    }
}

/// Returns a linear scale for these rows, from 0 or from the smallest value below it.
pub(in crate::render::html) fn scale(rows: &[Row]) -> Scale {
    Scale::from_zero(rows.iter().flat_map(Row::values))
}

/// Returns a linear scale as [`scale`] does, which also includes the values of dividers.
pub(in crate::render::html) fn scale_with(rows: &[Row], dividers: &[f64]) -> Scale {
    let values = rows.iter().flat_map(Row::values);
    Scale::from_zero(values.chain(dividers.iter().copied()))
}

/// Returns a scale for rows of one bar each: a linear one, unless the longest bar would hide the others. Then the
/// scale is logarithmic, and the rows get points, because the length of a bar would mean nothing.
pub(in crate::render::html) fn bars_or_points(rows: &mut [Row]) -> Scale {
    let values = rows.iter().flat_map(|row| {
        let interval = row.interval.into_iter().flatten();
        let reference = row.reference.iter().map(|(value, _)| *value);
        row.end().into_iter().chain(interval).chain(reference)
    });
    let values: Vec<f64> = values.collect();
    let ends = || rows.iter().filter_map(Row::end);
    let (least, most) = (ends().fold(f64::MAX, f64::min), ends().fold(0.0, f64::max));
    if values.iter().any(|value| *value <= 0.0) || most / least <= MAX_BAR_RATIO {
        return scale(rows);
    }
    for row in rows {
        row.shape = Shape::Point;
    }
    Scale::log(values)
}

/// Draws rows over a common scale. `alternative` describes the chart in a sentence, `dividers` are values at
/// which a line goes through all rows. There is also one at 0, if the scale has values on both sides.
pub(in crate::render::html) fn draw(
    rows: &[Row],
    scale: &Scale,
    format: Format,
    dividers: &[f64],
    alternative: &str,
) -> Markup {
    let rows_height = ROW * rows.len() as f64;
    let ticks = scale.ticks();
    let zero = scale.crosses_zero().then_some(&0.0);
    html! {
        svg.chart width="100%" height=(pixels(rows_height + AXIS)) role="img" aria-label=(alternative) tabindex="0" {
            @for tick in &ticks {
                line.grid x1=(across(scale.at(*tick))) x2=(across(scale.at(*tick))) y1="0" y2=(pixels(rows_height)) {}
            }
            @for (number, (row, label)) in rows.iter().zip(labels(rows)).enumerate() {
                (self::row(row, &label, scale, ROW * number as f64))
            }
            @for divider in dividers.iter().chain(zero) {
                line.divider x1=(across(scale.at(*divider))) x2=(across(scale.at(*divider))) y1="0" y2=(pixels(rows_height)) {}
            }
            @for tick in &ticks {
                text.tick x=(across(scale.at(*tick))) y=(pixels(rows_height + LABEL)) text-anchor=(anchor(scale.at(*tick))) {
                    (format(*tick))
                }
            }
        }
    }
}

/// Returns the labels of rows, shortened, except for those that would then be equal.
fn labels(rows: &[Row]) -> Vec<Cow<'_, str>> {
    let short = |row: &Row| cut(&row.label, MAX_LABEL_COLUMNS);
    let mut full: HashMap<String, Vec<&str>> = HashMap::new();
    for row in rows {
        let of_short = full.entry(short(row)).or_default();
        if !of_short.contains(&row.label.as_str()) {
            of_short.push(&row.label);
        }
    }
    let label = |row| {
        let short = short(row);
        if full.get(&short).is_some_and(|full| full.len() > 1) {
            Cow::from(row.label.as_str())
        } else {
            Cow::from(short)
        }
    };
    rows.iter().map(label).collect()
}

fn row(row: &Row, label: &str, scale: &Scale, top: f64) -> Markup {
    let bar_top = top + TOP;
    let middle = pixels(bar_top + BAR / 2.0);
    html! {
        text.label x="0" y=(pixels(top + LABEL)) { (label) }
        text.value x="0" y=(pixels(top + VALUE)) { (row.value) }
        @for span in &row.spans {
            @let (from, to) = (scale.at(span.from), scale.at(span.to));
            @if row.shape == Shape::Point {
                circle class={ "mark " (span.colour.class()) } cx=(across(to)) cy=(middle) r=(pixels(RADIUS)) data-text=(span.text) {}
            } @else {
                rect class={ "mark " (span.colour.class()) } x=(across(from)) width=(across(to - from)) y=(pixels(bar_top)) height=(pixels(BAR)) data-text=(span.text) {}
            }
        }
        @if let Some([low, high]) = row.interval {
            line.interval x1=(across(scale.at(low))) x2=(across(scale.at(high))) y1=(middle) y2=(middle) {}
        }
        @if let Some((value, text)) = &row.reference {
            line.mark.reference x1=(across(scale.at(*value))) x2=(across(scale.at(*value))) y1=(pixels(bar_top - 2.0)) y2=(pixels(bar_top + BAR + 2.0)) data-text=(text) {}
        }
    }
}

/// Returns how a label at a position is aligned, so that it stays on the page.
pub(super) fn anchor(position: f64) -> &'static str {
    match position {
        ..0.05 => "start",
        0.95.. => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_bar_goes_to_the_left_of_zero() {
        let bar = |length: f64| Row::bar("one", length, "value", Colour(0));
        let rows = [bar(-50.0), Row { interval: Some([-100.0, 20.0]), ..bar(0.0) }, bar(100.0)];
        let text = draw(&rows, &scale(&rows), |value| value.to_string(), &[], "bars").into_string();
        assert!(text.contains(r#"x="25%" width="25%""#), "half of the left side: {text}");
        assert!(text.contains(r#"x="50%" width="50%""#), "the right side: {text}");
        assert!(text.contains(r#"<line class="interval" x1="0%" x2="60%""#), "{text}");
        assert!(text.contains(r#"<line class="divider" x1="50%" x2="50%""#), "{text}");
        let positive = [bar(100.0)];
        let text = draw(&positive, &scale(&positive), |value| value.to_string(), &[], "bars");
        assert!(!text.into_string().contains("divider"));
    }

    #[test]
    fn a_divider_beyond_all_bars_is_on_the_scale() {
        let rows = [Row::bar("one", 0.62, "0.62", Colour(0))];
        let scale = scale_with(&rows, &[1.0]);
        let text = draw(&rows, &scale, |value| value.to_string(), &[1.0], "bars").into_string();
        assert!(text.contains(r#"x="0%" width="62%""#), "{text}");
        assert!(text.contains(r#"<line class="divider" x1="100%" x2="100%""#), "{text}");
        let tick = r#"<text class="tick" x="60%""#;
        assert!(text.contains(tick), "0.6 is at the proportional place: {text}");
    }

    #[test]
    fn rows_of_very_different_lengths_are_points_on_a_logarithmic_scale() {
        let rows = |values: [f64; 3]| values.map(|value| Row::bar("one", value, "", Colour(0)));
        let drawn = |rows: &mut [Row]| {
            let scale = bars_or_points(rows);
            (scale.is_log(), draw(rows, &scale, |value| value.to_string(), &[], "").into_string())
        };
        let (is_log, text) = drawn(&mut rows([1.0, 1000.0, 1e6]));
        assert!(is_log && text.contains(r#"<circle class="mark c0" cx="50%""#), "{text}");
        assert!(!text.contains("<rect"), "{text}");
        for linear in [[1.0, 50.0, 100.0], [0.0, 1.0, 1000.0], [-1.0, 1.0, 1000.0]] {
            let (is_log, text) = drawn(&mut rows(linear));
            assert!(!is_log && !text.contains("<circle"), "{linear:?}: {text}");
        }
        let mut rows = rows([1.0, 2.0, 1000.0]);
        rows[0].interval = Some([0.0, 2.0]);
        assert!(!drawn(&mut rows).0, "an end of an interval is 0");
        assert!(!drawn(&mut []).0);
    }

    #[test]
    fn labels_are_not_shortened_to_the_same_text() {
        let long = "x".repeat(200);
        let bar = |label: String| Row::bar(label, 1.0, "", Colour(0));
        let rows = [bar(format!("{long}a")), bar(format!("{long}b")), bar(format!("y{long}"))];
        let labels = labels(&rows);
        assert_eq!([&labels[0], &labels[1]], [&rows[0].label, &rows[1].label]);
        assert!(labels[2].ends_with('…'), "{}", labels[2]);
        let same = [bar(long.clone()), bar(long)];
        assert!(super::labels(&same)[0].ends_with('…'), "the same case of two runs");
    }
}
