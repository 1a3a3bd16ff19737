//! The flow through a chain of parts, from top to bottom: how much goes through each link, and what each
//! part does.

use maud::{Markup, html};

use super::{Colour, across, pixels};
use crate::render::layout::cut;

/// Height of a link, and of a part with its label, in pixels.
const LINK: f64 = 34.0;
const PART: f64 = 24.0;
/// Distance of a link's baseline from its top.
const LINK_BASELINE: f64 = 21.0;
/// Distance of a part's baseline from its top.
const PART_BASELINE: f64 = 16.0;
/// Units of coordinates across.
const UNITS: f64 = 1000.0;
/// Smallest width of a link as a share of the largest, so that it can be seen.
const MIN_WIDTH: f64 = 0.01;
/// Width of the widest link as a share of the page.
const MAX_WIDTH: f64 = 0.9;
/// Largest width of a label, in columns. More does not fit a telephone.
const MAX_LABEL_COLUMNS: usize = 42;

/// A part of the chain.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Part {
    pub label: String,
    pub colour: Colour,
    /// Its figures.
    pub text: String,
}

/// The flow into the first part, between two neighbouring parts, or out of the last one.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Link {
    /// How much flows; `None` if unknown.
    pub amount: Option<f64>,
    pub label: String,
    /// Its figures.
    pub text: String,
}

/// Draws the flow through parts. There is one link more than parts. The width of a link shows its amount.
/// `alternative` describes the chart in a sentence.
pub(in crate::render::html) fn draw(parts: &[Part], links: &[Link], alternative: &str) -> Markup {
    let most = links.iter().filter_map(|link| link.amount).fold(0.0, f64::max);
    let width = |link: &Link| match link.amount {
        Some(amount) if most > 0.0 => MAX_WIDTH * (amount / most).max(MIN_WIDTH),
        _ => MAX_WIDTH * MIN_WIDTH,
    };
    let widths: Vec<f64> = links.iter().map(width).collect();
    let height = LINK * links.len() as f64 + PART * parts.len() as f64;
    let top = |number: usize| (LINK + PART) * number as f64;
    html! {
        svg.chart width="100%" height=(pixels(height)) role="img" aria-label=(alternative) tabindex="0" {
            @for (number, (link, width)) in links.iter().zip(&widths).enumerate() {
                @let y = top(number);
                rect class={ "mark flow " (Colour::NEUTRAL.class()) (if link.amount.is_none() { " unknown" } else { "" }) } x=(across((1.0 - width) / 2.0)) width=(across(*width)) y=(pixels(y)) height=(pixels(LINK)) data-text=(link.text) {}
                @if let (Some(part), Some(next)) = (parts.get(number), widths.get(number + 1)) {
                    (self::part(part, y + LINK, *width, *next))
                }
            }
            @for (number, link) in links.iter().enumerate() {
                text.over x="50%" y=(pixels(top(number) + LINK_BASELINE)) text-anchor="middle" { (link.label) }
            }
            @for (number, part) in parts.iter().enumerate() {
                text.over.label x="50%" y=(pixels(top(number) + LINK + PART_BASELINE)) text-anchor="middle" { (cut(&part.label, MAX_LABEL_COLUMNS)) }
            }
        }
    }
}

/// Draws a part as wide as the link above it at its top, and as the one below it at its end.
fn part(part: &Part, top: f64, above: f64, below: f64) -> Markup {
    let x = |position: f64| pixels(UNITS * position);
    let corners = [
        (0.5 - above / 2.0, 0.0),
        (0.5 + above / 2.0, 0.0),
        (0.5 + below / 2.0, PART),
        (0.5 - below / 2.0, PART),
    ];
    let points: Vec<String> =
        corners.iter().map(|(across, y)| format!("{},{}", x(*across), pixels(*y))).collect();
    html! {
        // A polygon has no percentages, so that it is stretched.
        svg x="0" y=(pixels(top)) width="100%" height=(pixels(PART)) viewBox={ "0 0 " (UNITS) " " (pixels(PART)) } preserveAspectRatio="none" {
            polygon class={ "mark " (part.colour.class()) } points=(points.join(" ")) data-text=(part.text) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(amount: Option<f64>) -> Link {
        Link { amount, label: "some".to_owned(), text: String::new() }
    }

    #[test]
    fn widths_show_amounts() {
        let part = Part { label: "one".to_owned(), colour: Colour(0), text: String::new() };
        let text = draw(&[part], &[link(Some(200.0)), link(Some(100.0))], "a flow").into_string();
        assert!(text.contains(r#"width="90%""#) && text.contains(r#"width="45%""#), "{text}");
        assert!(text.contains(r#"points="50,0 950,0 725,24 275,24""#), "{text}");
    }

    #[test]
    fn an_unknown_amount_is_thin() {
        let text = draw(&[], &[link(None), link(Some(0.0))], "a flow").into_string();
        assert_eq!(text.matches(r#"width="0.9%""#).count(), 2, "{text}");
    }
}
