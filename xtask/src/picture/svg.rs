//! Draws the contents of a terminal as SVG. Colours follow the reader's choice of a light or a dark
//! scheme.

use std::fmt::Write as _;

use super::screen::{Line, Style};

/// Width and height of a character cell, in pixels.
const CELL: (f64, f64) = (8.43, 19.0);
/// Width of the margin around the text, in pixels.
const MARGIN: f64 = 14.0;

/// Colours of the light scheme: background, text, and the 8 colours of terminals.
const LIGHT: [&str; 10] = [
    "#ffffff", "#1f2328", "#24292f", "#cf222e", "#116329", "#7d4e00", "#0969da", "#8250df",
    "#1b7c83", "#6e7781",
];
/// Colours of the dark scheme, in the order of the light one.
const DARK: [&str; 10] = [
    "#0d1117", "#e6edf3", "#8b949e", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff",
    "#39c5cf", "#b1bac4",
];

/// Returns an SVG image of the lines on a terminal of `columns` columns.
pub fn draw(lines: &[Line], columns: usize) -> String {
    let width = (columns as f64).mul_add(CELL.0, 2.0 * MARGIN);
    let height = (lines.len() as f64).mul_add(CELL.1, 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n{}</style>\n\
         <rect class=\"background\" width=\"100%\" height=\"100%\" rx=\"6\"/>\n<text>\n",
        style_sheet()
    );
    for (number, line) in lines.iter().enumerate() {
        let y = ((number + 1) as f64).mul_add(CELL.1, MARGIN) - 5.0;
        let pieces: String =
            line.chunk_by(|(_, one), (_, other)| one == other).map(piece).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(svg, "<tspan x=\"{MARGIN:.0}\" y=\"{y:.0}\">{pieces}</tspan>");
    }
    svg + "</text>\n</svg>\n"
}

fn style_sheet() -> String {
    let colours = |scheme: &[&str; 10]| {
        let [background, text, rest @ ..] = scheme;
        let mut rules = format!(".background {{ fill: {background} }} text {{ fill: {text} }}");
        for (number, colour) in rest.iter().enumerate() {
            let _ = write!(rules, " .c{number} {{ fill: {colour} }}");
        }
        rules
    };
    format!(
        "text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', \
         'Liberation Mono', monospace }}\ntspan {{ white-space: pre }}\n.bold {{ font-weight: bold }} \
         .dim {{ opacity: 0.7 }} .underlined {{ text-decoration: underline }}\n{}\n\
         @media (prefers-color-scheme: dark) {{ {} }}\n",
        colours(&LIGHT),
        colours(&DARK)
    )
}

/// Returns the SVG text of characters with the same style.
fn piece(characters: &[(char, Style)]) -> String {
    let text: String = characters.iter().map(|(character, _)| character).collect();
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let style = characters.first().map(|(_, style)| *style).unwrap_or_default();
    match classes(style) {
        classes if classes.is_empty() => text,
        classes => format!("<tspan class=\"{classes}\">{text}</tspan>"),
    }
}

fn classes(style: Style) -> String {
    let effects = [(style.bold, "bold"), (style.dim, "dim"), (style.underlined, "underlined")];
    let effects = effects.into_iter().filter(|(is_used, _)| *is_used);
    let mut classes: Vec<_> = effects.map(|(_, class)| class.to_owned()).collect();
    classes.extend(style.colour.map(|colour| format!("c{colour}")));
    classes.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::screen::lines;
    use super::*;

    #[test]
    fn styles_become_classes() {
        let svg = draw(&lines("a \u{1b}[1;31mb\u{1b}[0m\r\n\u{1b}[2mc\u{1b}[22m e"), 80);
        assert!(svg.contains(">a <tspan class=\"bold c1\">b</tspan></tspan>"), "{svg}");
        assert!(svg.contains("\"><tspan class=\"dim\">c</tspan> e</tspan>"), "{svg}");
    }

    #[test]
    fn characters_of_xml_are_escaped() {
        let svg = draw(&lines("<a> & b"), 80);
        assert!(svg.contains("\">&lt;a&gt; &amp; b</tspan>"), "{svg}");
    }

    #[test]
    fn the_size_follows_from_columns_and_lines() {
        assert!(draw(&lines("a"), 88).contains("width=\"770\" height=\"47\""));
        assert!(draw(&lines("a\r\nb"), 88).contains("height=\"66\""));
    }
}
