//! The tables, version by version. A step once published is never changed: new ones follow.

use rusqlite::{Connection, TransactionBehavior};

/// `ctnd`: marks the file as contend's.
pub const MARK: i64 = 0x6374_6e64;

const STEPS: &[&str] = &["CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started_at TEXT NOT NULL,
    schema TEXT NOT NULL,
    title TEXT NOT NULL,
    ending TEXT NOT NULL,
    record TEXT NOT NULL
) STRICT;"];

/// The newest version that this program knows.
pub fn known() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Brings the tables up to date, all of it or nothing.
pub fn run(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
    };
    if version(connection)? >= known() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another program may have done it while this one waited.
    let done = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", MARK)?;
    transaction.pragma_update(None, "user_version", known())?;
    transaction.commit()
}
