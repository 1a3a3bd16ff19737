//! Writes tables as Markdown, with the extension for tables that GitHub, GitLab and most other
//! renderers have.
//!
//! Figures are formatted for people. Columns for programs and empty columns are left out. Texts of a
//! record are shown unchanged: no character of them is markup. A pipe becomes a character reference,
//! because renderers disagree on `\|` in a table.

use contend_record::units::time;

use super::sheet::{Cell, Column, Notation, Quantity, Sheet, Workbook};
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
        out.push_str(&format!("- {}: {}\n", title(column), formatted(cell, column)));
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
        let cells = shown.iter().map(|&index| formatted(&row[index], &sheet.columns[index]));
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

fn formatted(cell: &Cell, column: &Column) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Cell::Text(text) => escaped(text),
        Cell::Number(number) if *number < 0.0 => format!("-{}", figure(-number, column)),
        Cell::Number(number) => figure(*number, column),
    }
}

/// Formats a number of at least 0.
fn figure(number: f64, column: &Column) -> String {
    match column.quantity {
        Quantity::Seconds => seconds(number, column.notation),
        Quantity::Bytes => units::bytes(number),
        Quantity::Count => units::count(number),
        Quantity::Ratio => units::ratio(number),
        Quantity::Share => format!("{:.1}%", 100.0 * number),
        Quantity::Plain | Quantity::Instant => number.to_string(),
    }
}

/// Formats a time of at least 0 seconds.
fn seconds(number: f64, notation: Notation) -> String {
    let is_short = number > 0.0 && number < 1e-3;
    match notation {
        Notation::Sentence => time(number),
        Notation::Lab if number > 0.0 => units::nanoseconds(number * 1e9),
        // Below it, seconds are too coarse.
        Notation::Table if is_short => units::nanoseconds(number * 1e9),
        Notation::Lab | Notation::Table => units::seconds(number),
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
    use super::super::sheet::Field;
    use super::*;

    #[test]
    fn no_text_is_markup() {
        assert_eq!(escaped("a|b\nc"), "a&#124;b c");
        assert_eq!(escaped("<script>*x*</script>"), "&#60;script&#62;\\*x\\*&#60;/script&#62;");
        assert_eq!(escaped("x\u{202e}y"), "x\\\\u{202e}y");
    }

    fn shown(cell: impl Into<Cell>, quantity: Quantity, notation: Notation) -> String {
        let help = "Only for a test.";
        let field = Field::figure("figure", quantity, help, |(): &()| Cell::Empty);
        let sheet = Sheet::new("row", "", [], vec![field.with_notation(notation)]);
        formatted(&cell.into(), &sheet.columns[0])
    }

    #[test]
    fn figures_are_formatted_for_people() {
        let seconds = |number: f64| shown(number, Quantity::Seconds, Notation::Table);
        assert_eq!([0.0, 8.72e-8, 0.31, -1.25].map(seconds), ["0", "87.2ns", "310ms", "-1.25s"]);
        assert_eq!(shown(65_536_u64, Quantity::Bytes, Notation::Table), "65.5kB");
        assert_eq!(shown(0.125, Quantity::Share, Notation::Table), "12.5%");
    }

    #[test]
    fn times_have_the_digits_of_the_terminal() {
        let times = |notation| {
            [8.72e-8, 0.0104, 0.008_02, 4.078].map(|time| shown(time, Quantity::Seconds, notation))
        };
        assert_eq!(times(Notation::Table), ["87.2ns", "10ms", "8.0ms", "4.08s"]);
        assert_eq!(times(Notation::Lab), ["87.2ns", "10.4ms", "8.02ms", "4.08s"]);
        assert_eq!(times(Notation::Sentence), ["0.0 ms", "10.4 ms", "8.0 ms", "4.08 s"]);
        assert_eq!(shown(0.0, Quantity::Seconds, Notation::Lab), "0");
    }
}
