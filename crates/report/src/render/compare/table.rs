//! Tables that are split into pieces if they are too wide.

use unicode_width::UnicodeWidthStr;

use super::super::lab::table::grid;
use super::super::layout::{columns_left_out, gap};

/// A column: the heading, and then a cell for each row.
#[derive(Debug, Clone)]
pub struct Column(Vec<String>);

impl Column {
    /// Creates a column with the given heading and cells.
    pub fn new(heading: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self([heading.to_owned()].into_iter().chain(cells).collect())
    }

    /// Creates a column of cells, some of which end in a mark. Pads the heading and the other cells,
    /// if necessary, to keep them aligned.
    pub fn marked(heading: &str, cells: &[(String, Option<char>)]) -> Self {
        let some = cells.iter().any(|(_, mark)| mark.is_some());
        let suffix = |mark: Option<char>| match mark {
            Some(mark) => mark.to_string(),
            None if some => " ".to_owned(),
            None => String::new(),
        };
        let heading = format!("{heading}{}", suffix(None));
        Self::new(&heading, cells.iter().map(|(text, mark)| format!("{text}{}", suffix(*mark))))
    }

    /// Returns whether all cells below the heading are empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().skip(1).all(String::is_empty)
    }

    fn width(&self) -> usize {
        self.0.iter().map(|cell| cell.width()).max().unwrap_or(0)
    }
}

/// Columns that stay together if the table is split.
pub type Block = Vec<Column>;

/// A table with a row for each case. All columns must have the same number of cells.
#[derive(Debug)]
pub struct Cases {
    /// Columns that identify the rows, repeated in every piece.
    pub left: Vec<Column>,
    /// Number of columns at the beginning of `left` that contain words, and are left-aligned.
    pub words: usize,
    /// Values and metrics of the runs, with a block for each run that has any.
    pub values: Vec<Block>,
    /// Ratios of the runs to the first one, with a block for each run that has any: the ratios, and
    /// their intervals if there are any.
    pub ratios: Vec<Block>,
    /// A picture of the ratios, which is shown if the whole table fits with it.
    pub picture: Option<Column>,
}

impl Cases {
    /// Renders one table if it fits into `width` columns. Otherwise, renders values and ratios
    /// separately, each in as many pieces as necessary. If the ratios of some run do not fit with
    /// their intervals, all ratios lose their intervals. A piece with a single block may still be
    /// too wide.
    pub fn pieces(&self, width: usize) -> String {
        let together: Vec<Block> = self.values.iter().chain(&self.ratios).cloned().collect();
        let picture = self.picture.iter().map(|picture| vec![picture.clone()]);
        let pictured: Vec<Block> = together.iter().cloned().chain(picture).collect();
        if self.fits(&pictured, width) {
            return self.piece(&pictured, width);
        }
        if self.fits(&together, width) {
            return self.piece(&together, width);
        }
        let mut ratios = self.ratios.clone();
        if !ratios.iter().all(|block| self.fits(std::slice::from_ref(block), width)) {
            for block in &mut ratios {
                block.truncate(1);
            }
        }
        let pieces: Vec<_> = [&self.values, &ratios]
            .into_iter()
            .flat_map(|blocks| self.cut(blocks, width))
            .collect();
        let mut out = pieces.join("\n");
        let count = |blocks: &[Block]| blocks.iter().map(Vec::len).sum::<usize>();
        if count(&ratios) < count(&self.ratios) {
            columns_left_out(&mut out, &["[interval]"], width);
        }
        out
    }

    fn cut(&self, blocks: &[Block], width: usize) -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = blocks;
        while !rest.is_empty() {
            let fitting = (1..=rest.len()).take_while(|&count| self.fits(&rest[..count], width));
            let (now, later) = rest.split_at(fitting.last().unwrap_or(1));
            pieces.push(self.piece(now, width));
            rest = later;
        }
        pieces
    }

    fn fits(&self, blocks: &[Block], width: usize) -> bool {
        let columns = || self.left.iter().chain(blocks.iter().flatten());
        let gaps = usize::from(gap(width)) * columns().count().saturating_sub(1);
        columns().map(Column::width).sum::<usize>() + gaps <= width
    }

    fn piece(&self, blocks: &[Block], width: usize) -> String {
        let columns: Vec<&Column> = self.left.iter().chain(blocks.iter().flatten()).collect();
        let rows = columns.first().map_or(0, |column| column.0.len());
        let row = |row: usize| columns.iter().map(|column| column.0[row].clone()).collect();
        grid(&(0..rows).map(row).collect::<Vec<_>>(), self.words, width)
    }
}
