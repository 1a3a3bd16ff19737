//! Migrations of the store's tables, one for each version of the tables. A published migration
//! never changes; new ones are appended.

use rusqlite::{Connection, TransactionBehavior};

/// The SQLite application id (`ctnd` in ASCII) that identifies a store of contend.
pub const APPLICATION_ID: i64 = 0x6374_6e64;

const STEPS: &[&str] = &[
    "CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at TEXT NOT NULL,
    schema TEXT NOT NULL,
    title TEXT NOT NULL,
    ending TEXT NOT NULL,
    record TEXT NOT NULL
) STRICT;",
    // The SQLite that is bundled with contend has JSON operators.
    "ALTER TABLE run ADD COLUMN label TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN host TEXT NOT NULL DEFAULT '';
UPDATE run SET host = coalesce(record ->> '$.host.name', '') WHERE json_valid(record);
CREATE INDEX run_schema ON run (schema, id);",
    // The columns of the list without the records, so that a search does not read the records.
    "CREATE INDEX run_list ON run (id, started_at, schema, title, ending, label, host);",
];

/// Returns the newest version of the tables that this program knows.
pub fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Creates the tables of an old version, in an empty database.
#[cfg(test)]
pub(super) fn run_up_to(connection: &Connection, version: usize) {
    for step in &STEPS[..version] {
        connection.execute_batch(step).expect("an empty database");
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID).expect("room");
    let version = i64::try_from(version).expect("a small number");
    connection.pragma_update(None, "user_version", version).expect("room");
}

/// Migrates the tables to the newest version, in one transaction that also sets the application id.
/// Does nothing if the tables have that version or a newer one.
pub fn run(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
    };
    if version(connection)? >= known() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another program may have migrated the tables while this one waited.
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()
}
