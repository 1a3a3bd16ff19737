//! Bars and spans, one row below the other. Each row has its label and its figure above it, so that long labels
//! and narrow pages do not take room from the bars.

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
/// Largest width of a label, in columns. More does not fit a telephone.
const MAX_LABEL_COLUMNS: usize = 38;
/// Height of the axis below the rows.
const AXIS: f64 = 22.0;

/// A row of a chart.
#[derive(Debug, Clone, Default)]
pub(in crate::render::html) struct Row {
    pub label: String,
    /// The figure, below the label.
    pub value: String,
    pub spans: Vec<Span>,
    /// Ends of an interval around the end of the bar.
    pub interval: Option<[f64; 2]>,
    /// A figure of another source, shown as a line across the bar, and its description.
    pub reference: Option<(f64, String)>,
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
            @for (number, row) in rows.iter().enumerate() {
                (self::row(row, scale, ROW * number as f64))
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

fn row(row: &Row, scale: &Scale, top: f64) -> Markup {
    let bar_top = top + TOP;
    let middle = pixels(bar_top + BAR / 2.0);
    html! {
        text.label x="0" y=(pixels(top + LABEL)) { (cut(&row.label, MAX_LABEL_COLUMNS)) }
        text.value x="0" y=(pixels(top + VALUE)) { (row.value) }
        @for span in &row.spans {
            @let (from, to) = (scale.at(span.from), scale.at(span.to));
            rect class={ "mark " (span.colour.class()) } x=(across(from)) width=(across(to - from)) y=(pixels(bar_top)) height=(pixels(BAR)) data-text=(span.text) {}
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
}
