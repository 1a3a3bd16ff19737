//! A graph with two columns of nodes, and edges between them.

use maud::{Markup, html};

use super::{Colour, pixels};
use crate::render::layout::cut;

/// Height of a node, and distance of its text's baseline from its top, in pixels.
const NODE: f64 = 30.0;
const BASELINE: f64 = 19.0;
/// Width of the thickest and of the thinnest edge.
const MAX_EDGE: f64 = 9.0;
const MIN_EDGE: f64 = 1.0;
/// Largest width of a node's text, in columns. More does not fit a telephone.
const MAX_COLUMNS: usize = 20;

/// A node.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Node {
    pub label: String,
    /// Its figures.
    pub text: String,
}

/// An edge from a node on the left to one on the right.
#[derive(Debug, Clone)]
pub(in crate::render::html) struct Edge {
    pub left: usize,
    pub right: usize,
    pub weight: f64,
    pub colour: Colour,
    /// Whether it leads from right to left.
    pub is_back: bool,
    /// Its figures.
    pub text: String,
}

/// Draws a graph. The width of an edge shows its weight. `alternative` describes the graph in a sentence.
pub(in crate::render::html) fn draw(
    left: &[Node],
    right: &[Node],
    edges: &[Edge],
    alternative: &str,
) -> Markup {
    let rows = left.len().max(right.len());
    let height = NODE * rows as f64;
    // The nodes of the shorter column are spread over the same height.
    let y = |number: usize, count: usize| height * (number as f64 + 0.5) / count.max(1) as f64;
    let most = edges.iter().map(|edge| edge.weight).fold(0.0, f64::max);
    let width = |edge: &Edge| {
        if most > 0.0 { (MAX_EDGE * edge.weight / most).max(MIN_EDGE) } else { MIN_EDGE }
    };
    html! {
        svg.chart width="100%" height=(pixels(height)) role="img" aria-label=(alternative) tabindex="0" {
            @for edge in edges {
                line class={ "mark edge " (edge.colour.class()) (if edge.is_back { " back" } else { "" }) } x1="42%" x2="58%" y1=(pixels(y(edge.left, left.len()))) y2=(pixels(y(edge.right, right.len()))) stroke-width=(pixels(width(edge))) data-text=(edge.text) {}
            }
            @for (number, node) in left.iter().enumerate() {
                text.mark.label x="41%" y=(pixels(y(number, left.len()) - NODE / 2.0 + BASELINE)) text-anchor="end" data-text=(node.text) { (cut(&node.label, MAX_COLUMNS)) }
            }
            @for (number, node) in right.iter().enumerate() {
                text.mark.label x="59%" y=(pixels(y(number, right.len()) - NODE / 2.0 + BASELINE)) data-text=(node.text) { (cut(&node.label, MAX_COLUMNS)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_join_the_middles_of_their_nodes() {
        let node = |label: &str| Node { label: label.to_owned(), text: label.to_owned() };
        let edge = |left, weight| Edge {
            left,
            right: 0,
            weight,
            colour: Colour(3),
            is_back: false,
            text: String::new(),
        };
        let left = [node("a"), node("b")];
        let text = draw(&left, &[node("lock")], &[edge(0, 2.0), edge(1, 1.0)], "a graph");
        let text = text.into_string();
        assert!(text.contains(r#"y1="15" y2="30" stroke-width="9""#), "{text}");
        assert!(text.contains(r#"y1="45" y2="30" stroke-width="4.5""#), "{text}");
    }
}
