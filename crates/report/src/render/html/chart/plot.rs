//! Points and lines over two axes.

use maud::{Markup, html};

use super::rows::anchor;
use super::{Colour, Format, Scale, across, pixels};

/// Height of the plot without its axis, in pixels.
const HEIGHT: f64 = 260.0;
/// Height of the axis below it, and width of the vertical one.
const AXIS: f64 = 22.0;
const SIDE: f64 = 58.0;
/// Space above the plot, for the highest label.
const TOP: f64 = 10.0;
/// Units of a line's coordinates across.
const UNITS: f64 = 1000.0;

/// An axis.
#[derive(Debug, Clone, Copy)]
pub(in crate::render::html) struct Axis<'a> {
    pub label: &'a str,
    pub scale: Scale,
    pub format: Format,
}

/// Points, and a line.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Series {
    pub colour: Colour,
    pub points: Vec<Point>,
    /// Corners of the line.
    pub line: Vec<(f64, f64)>,
    pub style: Style,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::render::html) enum Style {
    /// It joins the points.
    Joined,
    /// A model of points.
    Model,
    /// A bound of a model.
    Bound,
}

impl Style {
    fn class(self) -> &'static str {
        match self {
            Self::Joined => "",
            Self::Model => " model",
            Self::Bound => " bound",
        }
    }
}

/// A point.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Point {
    pub x: f64,
    pub y: f64,
    /// Ends of the interval of `y`.
    pub interval: Option<[f64; 2]>,
    /// Its figures.
    pub text: String,
}

/// Draws series over two axes. `alternative` describes the chart in a sentence.
pub(in crate::render::html) fn draw(
    series: &[Series],
    x: &Axis<'_>,
    y: &Axis<'_>,
    alternative: &str,
) -> Markup {
    let y_at = |value: f64| TOP + HEIGHT * (1.0 - y.scale.at(value));
    let (x_ticks, y_ticks) = (x.scale.ticks(), y.scale.ticks());
    html! {
        p.axis { (y.label) }
        div.plot {
            svg width=(pixels(SIDE)) height=(pixels(TOP + HEIGHT + AXIS)) aria-hidden="true" {
                @for tick in &y_ticks {
                    text.tick x=(pixels(SIDE - 6.0)) y=(pixels(y_at(*tick) + 4.0)) text-anchor="end" { ((y.format)(*tick)) }
                }
            }
            svg.chart width="100%" height=(pixels(TOP + HEIGHT + AXIS)) role="img" aria-label=(alternative) tabindex="0" {
                @for tick in &y_ticks {
                    line.grid x1="0" x2="100%" y1=(pixels(y_at(*tick))) y2=(pixels(y_at(*tick))) {}
                }
                @for tick in &x_ticks {
                    @let position = x.scale.at(*tick);
                    line.grid x1=(across(position)) x2=(across(position)) y1=(pixels(TOP)) y2=(pixels(TOP + HEIGHT)) {}
                    text.tick x=(across(position)) y=(pixels(TOP + HEIGHT + 16.0)) text-anchor=(anchor(position)) { ((x.format)(*tick)) }
                }
                // A line has no percentages, so that it is stretched, but not its stroke.
                svg x="0" y="0" width="100%" height=(pixels(TOP + HEIGHT)) viewBox={ "0 0 " (UNITS) " " (pixels(TOP + HEIGHT)) } preserveAspectRatio="none" {
                    @for series in series.iter().filter(|series| series.line.len() > 1) {
                        polyline class={ "line " (series.colour.class()) (series.style.class()) } points=(corners(&series.line, &x.scale, y_at)) {}
                    }
                }
                @for series in series {
                    @for point in &series.points {
                        (self::point(point, series.colour, &x.scale, y_at))
                    }
                }
            }
        }
        p.axis.below { (x.label) }
    }
}

fn point(point: &Point, colour: Colour, x: &Scale, y_at: impl Fn(f64) -> f64) -> Markup {
    let at = across(x.at(point.x));
    html! {
        @if let Some([low, high]) = point.interval {
            line.interval x1=(at) x2=(at) y1=(pixels(y_at(low))) y2=(pixels(y_at(high))) {}
        }
        circle class={ "mark " (colour.class()) } cx=(at) cy=(pixels(y_at(point.y))) r="4" data-text=(point.text) {}
    }
}

fn corners(line: &[(f64, f64)], x: &Scale, y_at: impl Fn(f64) -> f64) -> String {
    let corner = |(at, value): &(f64, f64)| {
        format!("{},{}", pixels(UNITS * x.at(*at)), pixels(y_at(*value)))
    };
    line.iter().map(corner).collect::<Vec<_>>().join(" ")
}
