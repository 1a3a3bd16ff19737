//! Tables that are cut into pieces where they are too wide.

use unicode_width::UnicodeWidthStr;

use super::super::lab::table::grid;
use super::super::layout::gap;

/// A heading and a cell for each row.
#[derive(Debug, Clone)]
pub struct Column(Vec<String>);

impl Column {
    /// A column.
    pub fn new(heading: &str, cells: impl IntoIterator<Item = String>) -> Self {
        Self([heading.to_owned()].into_iter().chain(cells).collect())
    }

    /// A column of cells of which some are marked behind; the others keep their place.
    pub fn marked(heading: &str, cells: &[(String, bool)], mark: char) -> Self {
        let some = cells.iter().any(|(_, marked)| *marked);
        let behind = |marked| match (some, marked) {
            (true, true) => mark.to_string(),
            (true, false) => " ".to_owned(),
            _ => String::new(),
        };
        let heading = format!("{heading}{}", behind(false));
        Self::new(&heading, cells.iter().map(|(text, marked)| format!("{text}{}", behind(*marked))))
    }

    /// Whether no row has anything in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().skip(1).all(String::is_empty)
    }

    fn width(&self) -> usize {
        self.0.iter().map(|cell| cell.width()).max().unwrap_or(0)
    }
}

/// Columns that stay together.
pub type Block = Vec<Column>;

/// A table of cases.
#[derive(Debug)]
pub struct Cases {
    /// What tells the rows apart; in every piece.
    pub left: Vec<Column>,
    /// How many of the first of these hold words.
    pub words: usize,
    /// What the runs have measured.
    pub values: Vec<Block>,
    /// How they relate. The first column of each block is what is left where the room is scant.
    pub ratios: Vec<Block>,
}

impl Cases {
    /// One table if there is room, else values and ratios apart, each in as many pieces as it
    /// takes; ratios lose their intervals where not even one has room for it.
    pub fn pieces(&self, width: usize) -> String {
        let together: Vec<Block> = self.values.iter().chain(&self.ratios).cloned().collect();
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
        pieces.join("\n")
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
