//! Lanes over time, one below the other: stacked shares of intervals of equal length.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::rows::anchor;
use super::{Colour, Format, Scale, across, pixels};
use crate::render::layout::cut;

/// Height of a lane's label, and distance of its baseline from the top.
const LABEL: f64 = 20.0;
const BASELINE: f64 = 14.0;
/// Space below a lane.
const GAP: f64 = 8.0;
/// Height of the axis below the lanes.
const AXIS: f64 = 22.0;
/// Largest width of a label, in columns. More does not fit a telephone.
const MAX_LABEL_COLUMNS: usize = 42;

/// A lane of a chart.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Lane {
    pub label: String,
    /// Height in pixels.
    pub height: f64,
    /// The stacked parts, from the bottom.
    pub layers: Vec<Layer>,
    /// The figures of each interval.
    pub texts: Vec<String>,
}

/// A share of each interval, from 0 to 1.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Layer {
    pub colour: Colour,
    pub shares: Vec<f64>,
}

/// Draws lanes from 0 to the end of the last interval. `interval` is the length of an interval, `dividers`
/// are values at which a line goes through all lanes. `alternative` describes the chart in a sentence.
pub(in crate::render::html) fn draw(
    lanes: &[Lane],
    interval: f64,
    format: Format,
    dividers: &[f64],
    alternative: &str,
) -> Markup {
    let count = lanes.iter().map(|lane| lane.texts.len()).max().unwrap_or(0);
    let scale = Scale::over(0.0, interval * count as f64);
    let mut tops = Vec::new();
    let mut height = 0.0;
    for lane in lanes {
        tops.push(height);
        height += LABEL + lane.height + GAP;
    }
    html! {
        svg.chart width="100%" height=(pixels(height + AXIS)) role="img" aria-label=(alternative) tabindex="0" {
            @for tick in scale.ticks() {
                @let at = across(scale.at(tick));
                line.grid x1=(at) x2=(at) y1="0" y2=(pixels(height)) {}
                text.tick x=(at) y=(pixels(height + BASELINE)) text-anchor=(anchor(scale.at(tick))) { (format(tick)) }
            }
            @for (lane, top) in lanes.iter().zip(&tops) {
                (self::lane(lane, *top, count))
            }
            @for divider in dividers {
                @let at = across(scale.at(*divider));
                line.divider x1=(at) x2=(at) y1="0" y2=(pixels(height)) {}
            }
        }
    }
}

fn lane(lane: &Lane, top: f64, count: usize) -> Markup {
    let area_top = pixels(top + LABEL);
    let mut floor = vec![0.0; count];
    let mut areas = Vec::new();
    for layer in &lane.layers {
        let ceiling: Vec<f64> = floor
            .iter()
            .enumerate()
            .map(|(at, floor)| (floor + layer.shares.get(at).copied().unwrap_or(0.0)).min(1.0))
            .collect();
        if ceiling != floor {
            areas.push((layer.colour, area(&floor, &ceiling, lane.height)));
        }
        floor = ceiling;
    }
    let width = 1.0 / count.max(1) as f64;
    html! {
        text.label x="0" y=(pixels(top + BASELINE)) { (cut(&lane.label, MAX_LABEL_COLUMNS)) }
        rect.lane x="0" width="100%" y=(area_top) height=(pixels(lane.height)) {}
        // An area has no percentages, so that it is stretched.
        svg x="0" y=(area_top) width="100%" height=(pixels(lane.height)) viewBox={ "0 0 " (count) " " (pixels(lane.height)) } preserveAspectRatio="none" {
            @for (colour, path) in areas {
                path class={ "area " (colour.class()) } d=(path) {}
            }
        }
        @for (number, text) in lane.texts.iter().enumerate() {
            rect.mark.hit x=(across(width * number as f64)) width=(across(width)) y=(area_top) height=(pixels(lane.height)) data-text=(text) {}
        }
    }
}

/// Returns the path around the area between two step functions, whose values are from 0 to 1. Steps
/// without a change have no corners.
fn area(floor: &[f64], ceiling: &[f64], height: f64) -> String {
    let mut path = String::new();
    let y = |value: f64| pixels(height * (1.0 - value));
    let _ = write!(path, "M0,{}", y(ceiling[0]));
    for at in 1..ceiling.len() {
        if ceiling[at].to_bits() != ceiling[at - 1].to_bits() {
            let _ = write!(path, "H{at}V{}", y(ceiling[at]));
        }
    }
    let _ = write!(path, "H{}V{}", ceiling.len(), y(floor[floor.len() - 1]));
    for at in (1..floor.len()).rev() {
        if floor[at].to_bits() != floor[at - 1].to_bits() {
            let _ = write!(path, "H{at}V{}", y(floor[at - 1]));
        }
    }
    path.push_str("H0Z");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_goes_around_its_steps() {
        assert_eq!(area(&[0.0; 3], &[0.5; 3], 10.0), "M0,5H3V10H0Z");
        assert_eq!(area(&[0.0, 0.5, 0.5], &[1.0, 1.0, 0.5], 10.0), "M0,0H2V5H3V5H1V10H0Z");
    }

    #[test]
    fn layers_never_leave_their_lane() {
        let layer = |share| Layer { colour: Colour(0), shares: vec![share; 2] };
        let texts = vec![String::new(); 2];
        let lane = Lane {
            label: "one".to_owned(),
            height: 10.0,
            layers: vec![layer(0.75), layer(0.75), layer(0.1)],
            texts,
        };
        let text = self::lane(&lane, 0.0, 2).into_string();
        assert_eq!(text.matches("<path").count(), 2, "the third one has no room: {text}");
        assert!(!text.contains("V-"), "{text}");
    }
}
