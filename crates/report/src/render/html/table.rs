//! Tables that the reader can sort.

use maud::{Markup, html};

/// A table of a page.
#[derive(Debug, Clone, Default)]
pub(super) struct Table {
    /// Headings, and whether the column has numbers.
    headings: Vec<(String, bool)>,
    rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    text: String,
    /// The value by which rows are sorted, if the column has numbers.
    value: Option<f64>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, value: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Cell {
    /// Returns a cell with a number, formatted for people.
    pub(super) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), value: value.is_finite().then_some(value) }
    }
}

impl Table {
    /// Returns a table without rows. A heading that begins with `#` is that of a column with numbers.
    pub(super) fn new(headings: &[&str]) -> Self {
        let heading = |text: &&str| match text.strip_prefix('#') {
            Some(name) => (name.trim_start().to_owned(), true),
            None => ((*text).to_owned(), false),
        };
        Self { headings: headings.iter().map(heading).collect(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table. Its headings are buttons that sort it, if there is more than one row.
    pub(super) fn markup(&self, caption: &str) -> Markup {
        let sorts = self.rows.len() > 1;
        html! {
            div.scroll tabindex="0" {
                table {
                    caption { (caption) }
                    thead {
                        tr {
                            @for (heading, is_number) in &self.headings {
                                th scope="col" class=[is_number.then_some("number")] {
                                    @if sorts && !heading.is_empty() { button type="button" { (heading) } } @else { (heading) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (cell, (_, is_number)) in row.iter().zip(&self.headings) {
                                    td class=[is_number.then_some("number")] data-value=[cell.value] { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
