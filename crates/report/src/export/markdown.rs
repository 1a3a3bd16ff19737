//! Writes tables as Markdown, with the extension for tables that GitHub, GitLab and most other
//! renderers have.
//!
//! Figures are formatted for people. Columns for programs and empty columns are left out. Texts of a
//! record are shown unchanged: no character of them is markup. A pipe becomes a character reference,
//! because renderers disagree on `\|` in a table.

use super::sheet::{Cell, Column, Quantity, Sheet, Workbook};
use crate::render::text::printable;
use crate::render::units;

/// Returns the tables of records as Markdown.
pub fn markdown(workbooks: &[Workbook]) -> String {
    workbooks.iter().map(document).collect::<Vec<_>>().join("\n")
}

fn document(book: &Workbook) -> String {
    let subject = escaped(&book.subject);
    let mut out = format!("## contend {}: {subject}\n", book.kind);
    let shown = book.context.iter().filter(|(column, cell)| {
        // The heading has the subject.
        let is_subject = *cell == Cell::Text(book.subject.clone());
        column.is_for_people() && *cell != Cell::Empty && !is_subject
    });
    for (place, (column, cell)) in shown.enumerate() {
        out.push_str(if place == 0 { "\n" } else { "" });
        out.push_str(&format!("- {}: {}\n", title(column), formatted(cell, column.quantity)));
    }
    let has_several = book.sheets.len() > 1;
    for sheet in book.sheets.iter().filter(|sheet| !sheet.rows.is_empty()) {
        if has_several {
            out.push_str(&format!("\n### {}\n", escaped(&sheet.title)));
        }
        out.push('\n');
        out.push_str(&table(sheet));
    }
    out
}

fn table(sheet: &Sheet) -> String {
    let shown: Vec<usize> = (0..sheet.columns.len())
        .filter(|&index| {
            sheet.columns[index].is_for_people()
                && sheet.rows.iter().any(|row| row[index] != Cell::Empty)
        })
        .collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let columns = || shown.iter().map(|&index| &sheet.columns[index]);
    let mut out = line(columns().map(title).collect());
    out.push_str(&line(shown.iter().map(|&index| alignment(sheet, index).to_owned()).collect()));
    for row in &sheet.rows {
        let cells =
            shown.iter().map(|&index| formatted(&row[index], sheet.columns[index].quantity));
        out.push_str(&line(cells.collect()));
    }
    out
}

/// Returns the mark for the alignment of a column: numbers to the right.
fn alignment(sheet: &Sheet, index: usize) -> &'static str {
    let is_text = sheet.rows.iter().any(|row| matches!(row[index], Cell::Text(_) | Cell::Flag(_)));
    if is_text { ":--" } else { "--:" }
}

/// Returns the heading of a column: its name without the unit, which the cells have, in words.
fn title(column: &Column) -> String {
    let unit = column.quantity.unit().filter(|_| column.quantity != Quantity::Ratio);
    let name = unit.and_then(|unit| column.name.strip_suffix(unit)).unwrap_or(&column.name);
    let words = name.split('_').filter(|word| !word.is_empty()).map(|word| match word {
        "cpu" => "CPU",
        "cpus" => "CPUs",
        "ci95" => "95 %",
        "rss" => "RSS",
        other => other,
    });
    escaped(&words.collect::<Vec<_>>().join(" "))
}

fn formatted(cell: &Cell, quantity: Quantity) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Cell::Text(text) => escaped(text),
        Cell::Number(number) if *number < 0.0 => format!("-{}", figure(-number, quantity)),
        Cell::Number(number) => figure(*number, quantity),
    }
}

/// Formats a number of at least 0.
fn figure(number: f64, quantity: Quantity) -> String {
    match quantity {
        // Below it, seconds are too coarse.
        Quantity::Seconds if number > 0.0 && number < 1e-3 => units::nanoseconds(number * 1e9),
        Quantity::Seconds => units::seconds(number),
        Quantity::Bytes => units::bytes(number),
        Quantity::Count => units::count(number),
        Quantity::Ratio => units::ratio(number),
        Quantity::Share => format!("{:.1}%", 100.0 * number),
        Quantity::Plain | Quantity::Instant => number.to_string(),
    }
}

/// Returns the text on one line, with visible control characters, and without markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in printable(text).chars() {
        match character {
            // Renderers agree on these after a backslash.
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' => out.extend(['\\', character]),
            // Markup in HTML, in tables, for struck-out text and for formulas.
            '&' | '<' | '>' | '|' | '~' | '$' => {
                out.push_str(&format!("&#{};", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(escaped("a|b\nc"), "a&#124;b c");
        assert_eq!(escaped("<script>*x*</script>"), "&#60;script&#62;\\*x\\*&#60;/script&#62;");
        assert_eq!(escaped("x\u{202e}y"), "x\\\\u{202e}y");
    }

    #[test]
    fn figures_are_formatted_for_people() {
        let seconds = |number: f64| formatted(&number.into(), Quantity::Seconds);
        assert_eq!([0.0, 8.72e-8, 0.31, -1.25].map(seconds), ["0", "87.2ns", "310ms", "-1.25s"]);
        assert_eq!(formatted(&65_536_u64.into(), Quantity::Bytes), "65.5kB");
        assert_eq!(formatted(&0.125.into(), Quantity::Share), "12.5%");
    }
}
