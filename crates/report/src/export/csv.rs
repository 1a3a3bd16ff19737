//! Writes tables as CSV ([RFC 4180](https://www.rfc-editor.org/rfc/rfc4180), with line feeds), for
//! spreadsheets and data frames.
//!
//! All tables are merged into one, with the columns of each of them. Numbers have all their digits and the
//! unit of the column's name, and no cell depends on a locale.
//!
//! A spreadsheet executes a cell that begins with `=`, `+`, `-` or `@` as a formula, also if the cell
//! is quoted. A record may come from another user, so text with such a beginning gets an apostrophe
//! before it. Numbers do not need it, and keep their sign.

use super::ExportError;
use super::sheet::{Cell, Column, Sheet, Workbook};
use super::text::printable_lines;

/// Characters at the beginning of a cell that make it a formula, also after spaces. Spreadsheets in some locales
/// accept the full-width ones.
const FORMULA_STARTS: [char; 8] =
    ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
/// Name of the column with the kind of each row, if there are several kinds.
const ROW_KIND: &str = "row";

/// Returns the tables of records of one kind as one table in CSV.
///
/// # Errors
/// Returns an error if the records are of different kinds, since their columns have nothing in common.
pub fn csv(workbooks: &[Workbook]) -> Result<String, ExportError> {
    check_kinds(workbooks)?;
    let sheets =
        || workbooks.iter().flat_map(|book| book.sheets.iter().map(move |one| (book, one)));
    let mut kinds: Vec<&str> = sheets().map(|(_, sheet)| sheet.row).collect();
    kinds.dedup();
    let has_kinds = kinds.len() > 1;
    let (mut rows, mut context) = (Vec::new(), Vec::new());
    for (book, sheet) in sheets() {
        merge(
            &mut rows,
            sheet
                .columns
                .iter()
                .filter(|column| column.is_for_programs())
                .map(|column| column.name.clone()),
        );
        let columns =
            book.context.iter().map(|(column, _)| column).filter(|column| column.is_for_programs());
        merge(&mut context, columns.map(|column| book.context_name(column)));
    }
    let mut headings: Vec<String> = has_kinds.then(|| ROW_KIND.to_owned()).into_iter().collect();
    headings.extend(rows);
    headings.extend(context);
    let mut bytes = Vec::new();
    let mut writer = ::csv::Writer::from_writer(&mut bytes);
    writer.write_record(headings.iter().map(|name| guarded(name)))?;
    for (book, sheet) in sheets() {
        let places: Vec<Place> =
            headings.iter().map(|name| place(name, has_kinds, book, sheet)).collect();
        for row in rows_of(book, sheet) {
            writer.write_record(places.iter().map(|place| match *place {
                Place::RowKind if row.is_empty() => String::new(),
                Place::RowKind => sheet.row.to_owned(),
                Place::Row(index) => row.get(index).map_or_else(String::new, text),
                Place::Context(index) => text(&book.context[index].1),
                Place::Nowhere => String::new(),
            }))?;
        }
    }
    writer.flush().map_err(::csv::Error::from)?;
    drop(writer);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the rows of a table. The first table of a record that has no rows has an empty one, for the record's
/// context.
fn rows_of<'a>(book: &'a Workbook, sheet: &'a Sheet) -> Vec<&'a [Cell]> {
    let has_rows = book.sheets.iter().any(|sheet| !sheet.rows.is_empty());
    let is_first = book.sheets.first().is_some_and(|first| std::ptr::eq(first, sheet));
    if !has_rows && is_first && !book.context.is_empty() {
        return vec![&[]];
    }
    sheet.rows.iter().map(Vec::as_slice).collect()
}

fn check_kinds(workbooks: &[Workbook]) -> Result<(), ExportError> {
    let Some(first) = workbooks.first() else { return Ok(()) };
    match workbooks.iter().find(|other| other.kind != first.kind) {
        Some(other) => Err(ExportError::Kinds { first: first.kind, other: other.kind }),
        None => Ok(()),
    }
}

/// Adds the missing ones of `names` to `headings`, each after the one that precedes it in `names`.
fn merge(headings: &mut Vec<String>, names: impl Iterator<Item = String>) {
    let mut end = headings.len();
    for name in names {
        if let Some(known) = headings.iter().position(|heading| *heading == name) {
            end = known + 1;
        } else {
            headings.insert(end, name);
            end += 1;
        }
    }
}

/// Where the cells of a column come from.
enum Place {
    /// The word for what the row describes.
    RowKind,
    /// The column of the row with this index.
    Row(usize),
    /// The element of the context with this index.
    Context(usize),
    /// The record has no such column.
    Nowhere,
}

fn place(name: &str, has_kinds: bool, book: &Workbook, sheet: &Sheet) -> Place {
    if has_kinds && name == ROW_KIND {
        return Place::RowKind;
    }
    let in_row = sheet.columns.iter().position(|column| {
        column.is_for_programs() && column.name == name // people may have a column of this name, too
    });
    let is_name = |(column, _): &(Column, Cell)| {
        column.is_for_programs() && book.context_name(column) == name
    };
    let in_context = || book.context.iter().position(is_name);
    in_row.map(Place::Row).or_else(|| in_context().map(Place::Context)).unwrap_or(Place::Nowhere)
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Flag(flag) => flag.to_string(),
        Cell::Text(text) => guarded(text),
        Cell::Number(number) => number.to_string(),
    }
}

/// Returns the text with visible control characters, and with an apostrophe before it if a spreadsheet
/// would take it for a formula.
fn guarded(text: &str) -> String {
    let text = printable_lines(text);
    if text.trim_start().starts_with(FORMULA_STARTS) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_merged_in_their_order() {
        let mut headings = Vec::new();
        for names in [["case", "n", "median", "host"], ["case", "kind", "median", "host"]] {
            merge(&mut headings, names.into_iter().map(str::to_owned));
        }
        assert_eq!(headings, ["case", "kind", "n", "median", "host"]);
    }

    #[test]
    fn numbers_have_all_digits_and_formulas_are_guarded() {
        assert_eq!(text(&0.000_000_087_2.into()), "0.0000000872");
        assert_eq!(text(&(-1.5).into()), "-1.5");
        assert_eq!(text(&25_276_502_016_u64.into()), "25276502016");
        assert_eq!(text(&f64::NAN.into()), "");
        assert_eq!(text(&"=1+1".into()), "'=1+1");
        assert_eq!(text(&"\t@SUM(A1)".into()), "'\t@SUM(A1)");
        assert_eq!(text(&"\u{ff1d}1".into()), "'\u{ff1d}1");
        assert_eq!(text(&"sort -n | tail".into()), "sort -n | tail");
        assert_eq!(text(&"a\u{1b}[2J\nb\r".into()), "a␛[2J\nb␍");
    }
}
