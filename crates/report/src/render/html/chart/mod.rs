//! Charts as SVG that adapts to the width of the page: positions across are percentages, heights and
//! text are in pixels.
//!
//! ```text
//! Scale ── value → position from 0 to 1, and its ticks
//!   ├─ rows ───── bars, points, stacked bars and spans of time, one row below the other
//!   ├─ lanes ──── stacked shares over time, one lane below the other
//!   └─ plot ───── points with intervals, and lines, over two axes
//! graph ───────── nodes in two columns, and edges between them
//! flow ────────── parts and the amounts that go through them
//! heat_map ────── a table whose cells are coloured by their values
//! ```
//!
//! The `data-text` of a mark has its figures as text. The page's script shows them when the pointer or the
//! keyboard reaches the mark. Colours are classes `c0` to `c8` of the page's style sheet.

pub(super) mod flow;
pub(super) mod graph;
pub(super) mod heat_map;
pub(super) mod lanes;
pub(super) mod plot;
pub(super) mod rows;
mod scale;

pub(super) use scale::Scale;

/// Formats a value of an axis.
pub(super) type Format = fn(f64) -> String;

/// A colour of the page's style sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour(pub usize);

/// Number of colours.
pub(super) const COLOURS: usize = 9;

impl Colour {
    /// A colour without a meaning of its own: grey.
    pub(super) const NEUTRAL: Self = Self(8);

    /// Returns the name of its class.
    pub(super) fn class(self) -> &'static str {
        const CLASSES: [&str; COLOURS] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
        CLASSES[self.0 % COLOURS]
    }
}

/// Formats a position from 0 to 1 as a percentage with two decimal places.
fn across(position: f64) -> String {
    let text = format!("{:.2}", 100.0 * position);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a number of pixels with one decimal place.
fn pixels(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}
