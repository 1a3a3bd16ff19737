//! The table of saved runs.

use super::sheet::{Field, Sheet, Workbook};
use crate::render::history::kind;
use crate::store::Entry;

/// Returns the table of saved runs.
pub fn workbook(entries: &[Entry]) -> Workbook {
    type OfRun<'a> = Field<'a, Entry>;
    let fields = vec![
        OfRun::label("number", |entry| entry.id),
        OfRun::detail("started_at", |entry| entry.started_at.clone()),
        OfRun::detail("kind", |entry| kind(&entry.schema).to_owned()),
        OfRun::detail("ending", |entry| entry.ending.clone()),
        OfRun::detail("host", |entry| entry.host.clone()),
        OfRun::detail("label", |entry| entry.label.clone()),
        OfRun::detail("title", |entry| entry.title.clone()),
    ];
    let sheet = Sheet::new("run", "Saved runs", entries, fields);
    Workbook::new("history", "saved runs", &(), Vec::new(), vec![sheet])
}
