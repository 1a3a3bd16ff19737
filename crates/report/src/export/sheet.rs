//! Tables of figures, which every format writes in its own way.

/// The tables of one record, and what holds for all of their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Workbook {
    /// Kind of the record, as in the name of its schema: `pipe`, `lab`.
    pub(super) kind: &'static str,
    /// Subject of the measurement, such as the text of the pipeline; not made printable.
    pub(super) subject: String,
    /// What holds for all rows: the machine, the start, figures of the whole.
    pub(super) context: Vec<(Column, Cell)>,
    /// The tables. At least one, which may have no rows.
    pub(super) sheets: Vec<Sheet>,
}

/// A table with typed cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sheet {
    /// What a row describes, in one word: `stage`.
    pub row: &'static str,
    /// Heading; not made printable.
    pub title: String,
    pub columns: Vec<Column>,
    /// Each row has a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    /// The figure is unknown, or the row does not have it.
    Empty,
    /// Yes or no.
    Flag(bool),
    /// Text as in the record; not made printable.
    Text(String),
    /// A finite number in the unit of the column.
    Number(f64),
}

/// A column, or a figure of the whole record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Name for programs, which ends with the unit: `wall_seconds`.
    pub name: String,
    pub quantity: Quantity,
    pub role: Role,
    pub audience: Audience,
    pub notation: Notation,
    /// What a figure is, in one sentence; empty for other columns.
    pub help: &'static str,
}

/// What a column measures, and in which unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Text, or a number without a unit that is shown unchanged, such as a position or an exit code.
    Plain,
    /// Time in seconds.
    Seconds,
    /// Size in bytes.
    Bytes,
    /// Number of things.
    Count,
    /// Ratio to a baseline.
    Ratio,
    /// Share of a whole, from 0 to 1.
    Share,
    /// Point in time: text as in RFC 3339, in UTC.
    Instant,
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Identifies the row, together with the other labels.
    Label,
    /// A measured figure, worth observing over time.
    Figure,
    /// Anything else.
    Detail,
}

/// Who a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Everyone,
    /// Only people: a sentence about the whole record.
    People,
    /// Only programs: for people, the table would be too wide.
    Programs,
}

/// How times are formatted for people. Each is that of a part of the terminal's reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Two or three digits, as in most tables: `12ms`.
    Table,
    /// Three digits, as in sentences and headlines: `12.5 ms`.
    Sentence,
    /// Three digits, down to nanoseconds, as in reports of the lab: `12.5ms`, `87.2ns`.
    Lab,
}

impl Column {
    pub(super) fn is_for_people(&self) -> bool {
        self.audience != Audience::Programs
    }

    pub(super) fn is_for_programs(&self) -> bool {
        self.audience != Audience::People
    }

    fn new(name: impl Into<String>, quantity: Quantity, role: Role, help: &'static str) -> Self {
        let (audience, notation) = (Audience::Everyone, Notation::Table);
        Self { name: name.into(), quantity, role, audience, notation, help }
    }
}

/// A column, and how its cells are made from an item of type `T`.
pub(super) struct Field<'a, T> {
    column: Column,
    cell: Box<dyn Fn(&T) -> Cell + 'a>,
}

impl<'a, T> Field<'a, T> {
    fn new<C: Into<Cell>>(column: Column, value: impl Fn(&T) -> C + 'a) -> Self {
        Self { column, cell: Box::new(move |item| value(item).into()) }
    }

    /// A column that identifies a row.
    pub(super) fn label<C: Into<Cell>>(name: &str, value: impl Fn(&T) -> C + 'a) -> Self {
        Self::new(Column::new(name, Quantity::Plain, Role::Label, ""), value)
    }

    /// A column with text, or with numbers without a unit.
    pub(super) fn detail<C: Into<Cell>>(
        name: impl Into<String>,
        value: impl Fn(&T) -> C + 'a,
    ) -> Self {
        Self::new(Column::new(name, Quantity::Plain, Role::Detail, ""), value)
    }

    /// A point in time.
    pub(super) fn instant(name: &str, value: impl Fn(&T) -> String + 'a) -> Self {
        let help = "Start of the measurement, in seconds since 1970.";
        Self::new(Column::new(name, Quantity::Instant, Role::Figure, help), value)
    }

    /// A figure. `help` describes it in a sentence.
    pub(super) fn figure<C: Into<Cell>>(
        name: impl Into<String>,
        quantity: Quantity,
        help: &'static str,
        value: impl Fn(&T) -> C + 'a,
    ) -> Self {
        Self::new(Column::new(name, quantity, Role::Figure, help), value)
    }

    /// Leaves the column out of tables for programs.
    #[must_use]
    pub(super) fn for_people(mut self) -> Self {
        self.column.audience = Audience::People;
        self
    }

    /// Leaves the column out of tables for people.
    #[must_use]
    pub(super) fn for_programs(mut self) -> Self {
        self.column.audience = Audience::Programs;
        self
    }

    /// Formats times for people in the given way.
    #[must_use]
    pub(super) fn with_notation(mut self, notation: Notation) -> Self {
        self.column.notation = notation;
        self
    }

    /// Makes a figure a detail, which is not observed over time.
    #[must_use]
    pub(super) fn into_detail(mut self) -> Self {
        self.column.role = Role::Detail;
        self
    }
}

impl Sheet {
    /// Creates a table with a row for each of `items`. `row` says in one word what a row describes.
    pub(super) fn new<'i, T: 'i>(
        row: &'static str,
        title: impl Into<String>,
        items: impl IntoIterator<Item = &'i T>,
        fields: Vec<Field<'_, T>>,
    ) -> Self {
        let cells = |item| fields.iter().map(|field| (field.cell)(item)).collect();
        let rows = items.into_iter().map(cells).collect();
        let columns = fields.into_iter().map(|field| field.column).collect();
        Self { row, title: title.into(), columns, rows }
    }
}

impl Workbook {
    /// Creates the tables of a record. `fields` are what holds for all of their rows.
    pub(super) fn new<T>(
        kind: &'static str,
        subject: impl Into<String>,
        record: &T,
        fields: Vec<Field<'_, T>>,
        sheets: Vec<Sheet>,
    ) -> Self {
        let evaluate = |field: Field<'_, T>| {
            let cell = (field.cell)(record);
            (field.column, cell)
        };
        let context = fields.into_iter().map(evaluate).collect();
        Self { kind, subject: subject.into(), context, sheets }
    }

    /// Adds the label that the record has in the history, which distinguishes it from others of the
    /// same subject.
    #[must_use]
    pub fn with_label(mut self, label: &str) -> Self {
        let column = Column::new("label", Quantity::Plain, Role::Label, "");
        self.context.push((column, label.into()));
        self
    }

    /// Adds where the record comes from, in words.
    #[must_use]
    pub fn with_source(mut self, source: &str) -> Self {
        let column = Column::new("record", Quantity::Plain, Role::Detail, "");
        self.context.push((column, source.into()));
        self
    }

    /// Returns the name of a column of the context in a table: that of a figure differs from that of
    /// the same figure of a row, as `pipe_wall_seconds` does.
    pub(super) fn context_name(&self, column: &Column) -> String {
        match column.role {
            Role::Figure if column.quantity != Quantity::Instant => {
                format!("{}_{}", self.kind, column.name)
            }
            _ => column.name.clone(),
        }
    }
}

impl Quantity {
    /// Returns the unit with which names end; `None` for a quantity without a unit.
    pub(super) fn unit(self) -> Option<&'static str> {
        match self {
            Self::Seconds => Some("seconds"),
            Self::Bytes => Some("bytes"),
            Self::Ratio => Some("ratio"),
            Self::Plain | Self::Count | Self::Share | Self::Instant => None,
        }
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Number(value) } else { Self::Empty }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Self::Number(value as f64)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Self {
        Self::Number(value.into())
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Text(text) }
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}
