//! A matrix as a table whose cells are coloured by their values. The values are also in the text.

use maud::{Markup, html};

use super::{Format, Scale};

/// Number of shades.
const SHADES: f64 = 8.0;

/// Draws a matrix with a heading for each row and column. A cell without a value is empty.
pub(in crate::render::html) fn draw(
    corner: &str,
    headings: &[String],
    rows: &[(String, Vec<Option<f64>>)],
    format: Format,
) -> Markup {
    let values = rows.iter().flat_map(|(_, cells)| cells.iter().copied().flatten());
    let scale = Scale::log(values);
    html! {
        div.scroll tabindex="0" {
            table.heat {
                thead { tr { th scope="col" { (corner) } @for heading in headings { th scope="col" { (heading) } } } }
                tbody {
                    @for (heading, cells) in rows {
                        tr {
                            th scope="row" { (heading) }
                            @for cell in cells {
                                @match cell {
                                    Some(value) => td class={ "mark h" (shade(&scale, *value)) } { (format(*value)) },
                                    None => td {},
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shade(scale: &Scale, value: f64) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 8")]
    let shade = (scale.at(value) * SHADES).min(SHADES - 1.0) as u8;
    shade
}
