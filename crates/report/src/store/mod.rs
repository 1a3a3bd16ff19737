//! The store of earlier runs, which is a single SQLite file.
//!
//! A run is added before it begins and updated while it runs, so the measurements that it has saved
//! survive however it ends. Several programs may use the file at the same time; each waits up to
//! `BUSY_TIMEOUT` for the others. The file contains contend's application id and the version of its
//! tables. A foreign, newer or damaged file is not changed.

mod migrations;

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;

/// Maximum time to wait for another program that is writing to the store.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The condition on rows that a [`Filter`] accepts, whose fields are the first parameters. A beginning of a time
/// sorts before the time; `~` sorts after all of its characters.
const ACCEPTED: &str = "(?1 IS NULL OR schema = ?1) AND (?2 IS NULL OR instr(title, ?2) > 0)
    AND (?3 IS NULL OR host = ?3) AND (?4 IS NULL OR instr(label, ?4) > 0)
    AND (?5 IS NULL OR started_at >= ?5) AND (?6 IS NULL OR started_at <= ?6 || '~')";

/// A connection to the store's file, for writing or only for reading.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Version of the tables, which may be older than this program if the store is only read.
    version: i64,
}

/// The reason why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store's file cannot be opened, or the file or its directory cannot be created.
    #[error("cannot open the store {}: {reason}", path.display())]
    Open {
        /// Path of the store.
        path: PathBuf,
        /// Description of the cause, for the user.
        reason: String,
    },
    /// The file is not an SQLite database, or is damaged.
    #[error("{} is not a contend store, or is damaged (left untouched)", .0.display())]
    Broken(PathBuf),
    /// The file is a database of another program.
    #[error("{} is a database of another program (left untouched)", .0.display())]
    Foreign(PathBuf),
    /// A newer version of contend created or migrated the store.
    #[error("the store {} was created by a newer contend (format {found}; this version reads up to {known}): upgrade contend, or use another --store", path.display())]
    Newer {
        /// Path of the store.
        path: PathBuf,
        /// Version of the store's tables.
        found: i64,
        /// Newest version of the tables that this program knows.
        known: i64,
    },
    /// The store's file cannot be written.
    #[error("cannot write to the store {}: {reason}", path.display())]
    Write {
        /// Path of the store.
        path: PathBuf,
        /// Description of the cause, for the user.
        reason: String,
    },
    /// The store's file cannot be read.
    #[error("cannot read the store {}: {reason}", path.display())]
    Read {
        /// Path of the store.
        path: PathBuf,
        /// Description of the cause, for the user.
        reason: String,
    },
}

/// An entry in the list of stored runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Number that identifies the run in the store.
    #[serde(rename = "number")]
    pub id: i64,
    /// Start of the run in UTC, formatted as in RFC 3339.
    pub started_at: String,
    /// Name of the record's schema, such as `contend.lab/1`.
    pub schema: String,
    /// Text of the pipeline; for the lab, the name of the suite, or names of the experiments.
    pub title: String,
    /// How the run ended, such as `complete` or `exit 0`.
    pub ending: String,
    /// Label that the user gave to the run; empty if none.
    pub label: String,
    /// Network name of the machine; empty if it is unknown.
    pub host: String,
}

/// Conditions on runs, all of which must hold. `None` accepts every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Name of the record's schema, such as `contend.pipe/1`.
    pub schema: Option<String>,
    /// Text that the title contains.
    pub title: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Text that the label contains.
    pub label: Option<String>,
    /// Earliest start in UTC, formatted as in RFC 3339 or a beginning of that.
    pub since: Option<String>,
    /// Latest start in UTC, in the same format. A beginning of a time, such as a day or an hour,
    /// includes the runs that start within it.
    pub until: Option<String>,
}

/// The contents of a run to be stored.
#[derive(Debug, Clone, Copy)]
pub struct StoredRun<'a> {
    /// Start of the run in UTC, formatted as in RFC 3339.
    pub started_at: &'a str,
    /// Name of the record's schema, such as `contend.lab/1`.
    pub schema: &'a str,
    /// Text of the pipeline; for the lab, the name of the suite, or names of the experiments.
    pub title: &'a str,
    /// How the run ended, such as `complete` or `exit 0`.
    pub ending: &'a str,
    /// Label that the user gave to the run; empty if none.
    pub label: &'a str,
    /// Network name of the machine; empty if it is unknown.
    pub host: &'a str,
    /// The record, as JSON.
    pub record: &'a str,
}

impl Store {
    /// Opens the store for reading and writing. Creates it and its directory if they do not exist,
    /// and migrates its tables to the newest version.
    ///
    /// # Errors
    /// Returns an error if:
    /// - the store cannot be opened, created or migrated,
    /// - the file is not a store, or is damaged, or
    /// - a newer version of contend has created or migrated the tables.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_private(folder).map_err(|error| StoreError::Open {
                path: path.to_owned(),
                reason: format!(
                    "cannot create the directory {}: {}",
                    folder.display(),
                    error.kind()
                ),
            })?;
        }
        // Command lines may hold secrets. SQLite would let other users read a new file.
        let mut new = std::fs::OpenOptions::new();
        let _ = new.write(true).create_new(true).mode(0o600).open(path); // it may exist
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut store = Self::connect(path, flags)?;
        store.check()?;
        store.migrate()?;
        store.version = migrations::known();
        Ok(store)
    }

    /// Opens an existing store for reading. Writes to the file only to undo a transaction that a
    /// killed program has left unfinished.
    ///
    /// # Errors
    /// Returns an error if:
    /// - the file does not exist or cannot be read,
    /// - the file is not a store, or is damaged, or
    /// - a newer version of contend has created or migrated the tables.
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        store.version = match store.check() {
            // A program that was killed while it wrote leaves a journal. Rolling it back needs
            // write access.
            Err(StoreError::Read { .. }) => {
                store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
                store.check()?
            }
            version => version?,
        };
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir()) {
            let reason = "not a regular file".to_owned();
            return Err(StoreError::Open { path: path.to_owned(), reason });
        }
        let failed = |error: rusqlite::Error| StoreError::Open {
            path: path.to_owned(),
            reason: match std::fs::File::open(path).and_then(|file| file.metadata()) {
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
                    "no such file, or no permission to create it".to_owned()
                }
                // SQLite always says "unable to open database file", whatever the cause.
                Err(source) => source.kind().to_string(),
                Ok(data) if data.is_dir() => "it is a directory".to_owned(),
                Ok(data) if !data.is_file() => "it is not a regular file".to_owned(),
                Ok(_) => plain(&error),
            },
        };
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        Ok(Self { connection, path: path.to_owned(), version: 0 })
    }

    /// Checks that the file is a store with tables of a version that this program knows, or an
    /// empty database. Returns the version, or 0 for an empty database.
    fn check(&self) -> Result<i64, StoreError> {
        let number = |query| self.connection.query_row(query, [], |row| row.get::<_, i64>(0));
        let read = || -> rusqlite::Result<_> {
            // One transaction, for a consistent view: another program may be creating the store.
            let moment = self.connection.unchecked_transaction()?;
            let tables = number("SELECT count(*) FROM sqlite_master")?;
            let application_id = number("PRAGMA application_id")?;
            let found = number("PRAGMA user_version")?;
            moment.finish()?;
            Ok((tables, application_id, found))
        };
        let (tables, application_id, found) = read().map_err(|error| self.reading(&error))?;
        if application_id != migrations::APPLICATION_ID && (application_id != 0 || tables > 0) {
            return Err(StoreError::Foreign(self.path.clone()));
        }
        let known = migrations::known();
        if found > known {
            return Err(StoreError::Newer { path: self.path.clone(), found, known });
        }
        Ok(found)
    }

    /// Returns the source of rows for a query that reads entries. Runs in tables of the first
    /// version have neither a label nor a host.
    fn rows(&self) -> &'static str {
        if self.version < 2 { "(SELECT *, '' AS label, '' AS host FROM run)" } else { "run" }
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        migrations::run(&mut self.connection).map_err(|error| self.writing(&error))
    }

    /// Adds a run and returns the number that the store gives to it.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn add(&self, run: &StoredRun<'_>) -> Result<i64, StoreError> {
        self.connection
            .execute(
                "INSERT INTO run (started_at, schema, title, ending, label, host, record)
                 VALUES (?, ?, ?, ?, ?, ?, ?)",
                params![
                    run.started_at,
                    run.schema,
                    run.title,
                    run.ending,
                    run.label,
                    run.host,
                    run.record
                ],
            )
            .map_err(|error| self.writing(&error))?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Calls `change` in one transaction, which is rolled back if it fails. Adding many runs takes much less
    /// time then.
    ///
    /// # Errors
    /// Returns the error of `change`, or an error if the store cannot be written.
    pub fn together<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.connection.unchecked_transaction();
        let transaction = begun.map_err(|error| self.writing(&error))?;
        let result = change(self)?;
        transaction.commit().map_err(|error| self.writing(&error))?;
        Ok(result)
    }

    /// Checks that the store can be written, by adding `run` and rolling the addition back. A full
    /// disk may go unnoticed.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn check_writable(&self, run: &StoredRun<'_>) -> Result<(), StoreError> {
        let transaction =
            self.connection.unchecked_transaction().map_err(|error| self.writing(&error))?;
        self.add(run)?;
        transaction.rollback().map_err(|error| self.writing(&error))
    }

    /// Replaces the ending and the record of the run with the number `id`; its other columns stay.
    /// Returns `false` if there is no such run.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written; the earlier record stays.
    pub fn update(&self, id: i64, run: &StoredRun<'_>) -> Result<bool, StoreError> {
        let rows = self
            .connection
            .execute(
                "UPDATE run SET ending = ?, record = ? WHERE id = ?",
                params![run.ending, run.record, id],
            )
            .map_err(|error| self.writing(&error))?;
        Ok(rows > 0)
    }

    /// Removes the runs with the numbers `ids`, either all or none. Returns the numbers without a
    /// run; if there are any, nothing is removed. The number of a removed run is never reused.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written; no run is removed then.
    pub fn remove(&mut self, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
        let delete = "DELETE FROM run WHERE id = ?";
        let missing =
            for_all(&mut self.connection, ids, |transaction, id| transaction.execute(delete, [id]))
                .map_err(|error| self.writing(&error))?;
        if missing.is_empty() {
            // Shrinks the file. This fails while another program uses the file; the next removal
            // then shrinks it.
            let _ = self.connection.execute_batch("VACUUM");
        }
        Ok(missing)
    }

    /// Updates a run as [`Store::update`] does, but waits only 50 ms for another program that is
    /// writing. Returns `false` if there is no such run.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written, or if another program is still writing to
    /// it after 50 ms. If the write itself failed, the earlier record stays.
    pub fn update_if_free(&self, id: i64, run: &StoredRun<'_>) -> Result<bool, StoreError> {
        let set = |patience| self.connection.busy_timeout(patience);
        set(Duration::from_millis(50)).map_err(|error| self.writing(&error))?;
        let result = self.update(id, run);
        set(BUSY_TIMEOUT).map_err(|error| self.writing(&error))?;
        result
    }

    /// Returns the newest runs that `filter` accepts, at most `most`, in descending order of their
    /// numbers.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn list(&self, filter: &Filter, most: usize) -> Result<Vec<Entry>, StoreError> {
        self.list_from(filter, 0, most)
    }

    /// Returns runs as [`Store::list`] does, but leaves out the newest `skip` of them.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn list_from(
        &self,
        filter: &Filter,
        skip: usize,
        most: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Entry>> {
            let mut statement = self.connection.prepare(&format!(
                "SELECT id, started_at, schema, title, ending, label, host FROM {}
                 WHERE {ACCEPTED} ORDER BY id DESC LIMIT ?7 OFFSET ?8",
                self.rows()
            ))?;
            let Filter { schema, title, host, label, since, until } = filter;
            let [most, skip] = [most, skip].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            let parameters = params![schema, title, host, label, since, until, most, skip];
            let rows = statement.query_map(parameters, entry)?;
            rows.collect()
        };
        read().map_err(|error| self.reading(&error))
    }

    /// Returns the number of runs that `filter` accepts.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn count(&self, filter: &Filter) -> Result<usize, StoreError> {
        let Filter { schema, title, host, label, since, until } = filter;
        let query = format!("SELECT count(*) FROM {} WHERE {ACCEPTED}", self.rows());
        let count: Result<i64, _> = self.connection.query_row(
            &query,
            params![schema, title, host, label, since, until],
            |row| row.get(0),
        );
        count.map(|count| usize::try_from(count).unwrap_or(0)).map_err(|error| self.reading(&error))
    }

    /// Returns the names of the machines of all runs, sorted, without the empty one.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn hosts(&self) -> Result<Vec<String>, StoreError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let query =
                format!("SELECT DISTINCT host FROM {} WHERE host <> '' ORDER BY host", self.rows());
            let mut statement = self.connection.prepare(&query)?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        };
        read().map_err(|error| self.reading(&error))
    }

    /// Returns the run with the number `id` as it is listed, and its record, as JSON; `None` if
    /// there is no such run.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn entry(&self, id: i64) -> Result<Option<(Entry, String)>, StoreError> {
        self.connection
            .query_row(
                &format!(
                    "SELECT id, started_at, schema, title, ending, label, host, record FROM {}
                     WHERE id = ?",
                    self.rows()
                ),
                [id],
                |row| Ok((entry(row)?, row.get("record")?)),
            )
            .optional()
            .map_err(|error| self.reading(&error))
    }

    /// Sets the label of the runs with the numbers `ids`, either of all or of none. Returns the
    /// numbers without a run; if there are any, nothing is changed.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn label(&mut self, ids: &[i64], label: &str) -> Result<Vec<i64>, StoreError> {
        let set = "UPDATE run SET label = ?2 WHERE id = ?1";
        for_all(&mut self.connection, ids, |transaction, id| {
            transaction.execute(set, params![id, label])
        })
        .map_err(|error| self.writing(&error))
    }

    /// Removes the oldest runs without a label whose schema is `schema`, so that at most `most` of
    /// them stay.
    ///
    /// # Errors
    /// Returns an error if the store cannot be written.
    pub fn prune(&self, schema: &str, most: usize) -> Result<(), StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.connection
            .execute(
                // Imported runs may be older than those with smaller numbers.
                "DELETE FROM run WHERE schema = ?1 AND label = '' AND id NOT IN (
                     SELECT id FROM run WHERE schema = ?1 AND label = ''
                     ORDER BY started_at DESC, id DESC LIMIT ?2)",
                params![schema, most],
            )
            .map(|_| ())
            .map_err(|error| self.writing(&error))
    }

    /// Returns the name of the schema and the record, as JSON, of the run with the number `id`, or
    /// `None` if there is no such run.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub fn get(&self, id: i64) -> Result<Option<(String, String)>, StoreError> {
        self.connection
            .query_row("SELECT schema, record FROM run WHERE id = ?", [id], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|error| self.reading(&error))
    }

    fn reading(&self, error: &rusqlite::Error) -> StoreError {
        self.broken(error)
            .unwrap_or_else(|| StoreError::Read { path: self.path.clone(), reason: plain(error) })
    }

    fn writing(&self, error: &rusqlite::Error) -> StoreError {
        self.broken(error)
            .unwrap_or_else(|| StoreError::Write { path: self.path.clone(), reason: plain(error) })
    }

    fn broken(&self, error: &rusqlite::Error) -> Option<StoreError> {
        let broken = matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
        );
        broken.then(|| StoreError::Broken(self.path.clone()))
    }
}

/// Reads the columns of an entry.
fn entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get("id")?,
        started_at: row.get("started_at")?,
        schema: row.get("schema")?,
        title: row.get("title")?,
        ending: row.get("ending")?,
        label: row.get("label")?,
        host: row.get("host")?,
    })
}

/// Calls `change` for each of the given runs in one transaction, if all of them exist. Otherwise,
/// changes nothing. Returns the numbers without a run.
fn for_all(
    connection: &mut Connection,
    ids: &[i64],
    change: impl Fn(&rusqlite::Transaction<'_>, i64) -> rusqlite::Result<usize>,
) -> rusqlite::Result<Vec<i64>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_there = |id: i64| {
        let query = "SELECT EXISTS (SELECT 1 FROM run WHERE id = ?)";
        transaction.query_row(query, [id], |row| row.get::<_, bool>(0))
    };
    let mut missing = Vec::new();
    for &id in ids {
        if !is_there(id)? {
            missing.push(id);
        }
    }
    if missing.is_empty() {
        for &id in ids {
            change(&transaction, id)?;
        }
    }
    transaction.commit()?;
    Ok(missing)
}

/// Describes an error: the common ones without SQLite terminology, and others as SQLite does.
fn plain(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "it may not be written to".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has been writing to it for too long".to_owned()
        }
        Some(ErrorCode::SystemIoFailure) => {
            "input or output failed, perhaps the disk is full".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Creates a directory and its missing parents, which only the owner may enter. Leaves an existing
/// directory as it is.
fn make_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored<'a>(title: &'a str, record: &'a str) -> StoredRun<'a> {
        let (started_at, schema) = ("2026-01-02T03:04:05Z", "contend.lab/1");
        StoredRun { started_at, schema, title, ending: "unfinished", label: "", host: "h1", record }
    }

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/er/contend.db");
        (folder, path)
    }

    #[test]
    fn stored_runs_are_read_back() {
        let (_folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        let first = store.add(&stored("one", "{}")).expect("room");
        let second = store.add(&stored("two", "{}")).expect("room");
        let done = StoredRun { ending: "complete", ..stored("one", "{\"x\":1}") };
        store.update(first, &done).expect("room");
        drop(store);
        let store = Store::open_to_read(&path).expect("it is there");
        let titles: Vec<_> =
            store.list(&Filter::default(), 9).expect("rows").into_iter().map(|e| e.title).collect();
        assert_eq!(titles, ["two", "one"]);
        assert_eq!(
            store.list(&Filter::default(), 1).expect("rows").first().map(|e| e.id),
            Some(second)
        );
        let (_, record) = store.get(first).expect("readable").expect("there");
        assert_eq!(record, "{\"x\":1}");
        assert_eq!(store.get(99).expect("readable"), None);
    }

    #[test]
    fn runs_are_removed_all_or_none_and_their_numbers_are_not_used_again() {
        let (_folder, path) = file();
        let mut store = Store::open(&path).expect("it is made");
        let ids: Vec<_> = ["one", "two", "three"]
            .map(|title| store.add(&stored(title, "{}")).expect("room"))
            .into();
        let titles = |store: &Store| -> Vec<String> {
            store
                .list(&Filter::default(), 9)
                .expect("rows")
                .into_iter()
                .map(|entry| entry.title)
                .collect()
        };
        assert_eq!(store.remove(&[ids[0], 99, 98]).expect("room"), [99, 98]);
        assert_eq!(titles(&store), ["three", "two", "one"]);
        assert_eq!(store.remove(&[ids[2], ids[0]]).expect("room"), [0; 0]);
        assert_eq!(titles(&store), ["two"]);
        assert!(!store.update(ids[2], &stored("three", "{}")).expect("room"), "it is gone");
        assert!(store.add(&stored("four", "{}")).expect("room") > ids[2]);
    }

    #[test]
    fn changes_are_made_together_or_not_at_all() {
        let (_folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        let count = || store.count(&Filter::default()).expect("rows");
        let failed = store.together(|store| {
            store.add(&stored("one", "{}"))?;
            Err::<(), _>(StoreError::Broken(PathBuf::new()))
        });
        assert!(failed.is_err() && count() == 0);
        let added = store.together(|store| {
            store.add(&stored("one", "{}"))?;
            store.add(&stored("two", "{}"))
        });
        assert!(added.is_ok() && count() == 2);
    }

    #[test]
    fn runs_are_filtered() {
        let (_folder, path) = file();
        let mut store = Store::open(&path).expect("it is made");
        let pipe = |title, started_at| StoredRun {
            schema: "contend.pipe/1",
            started_at,
            host: "h2",
            ..stored(title, "{}")
        };
        store.add(&stored("suite one", "{}")).expect("room");
        store.add(&pipe("sort x | uniq", "2026-01-03T10:00:00Z")).expect("room");
        store.add(&pipe("sort y", "2026-01-04T10:00:00Z")).expect("room");
        assert_eq!(store.label(&[2], "before").expect("room"), [0; 0]);
        assert_eq!(store.label(&[1, 9], "none").expect("room"), [9]);
        let ids = |filter: Filter| -> Vec<i64> {
            store.list(&filter, 9).expect("rows").into_iter().map(|entry| entry.id).collect()
        };
        let text = |text: &str| Some(text.to_owned());
        let none = Filter::default;
        assert_eq!(ids(none()), [3, 2, 1]);
        assert_eq!(ids(Filter { schema: text("contend.pipe/1"), ..none() }), [3, 2]);
        assert_eq!(ids(Filter { title: text("uniq"), ..none() }), [2]);
        assert_eq!(ids(Filter { title: text("%"), ..none() }), [0_i64; 0]);
        assert_eq!(ids(Filter { host: text("h1"), ..none() }), [1]);
        assert_eq!(ids(Filter { label: text("bef"), ..none() }), [2]);
        assert_eq!(ids(Filter { since: text("2026-01-03"), ..none() }), [3, 2]);
        assert_eq!(ids(Filter { until: text("2026-01-03"), ..none() }), [2, 1]);
        let entry = store.entry(2).expect("readable").expect("there").0;
        assert_eq!((entry.label.as_str(), entry.host.as_str()), ("before", "h2"));
        let count = |filter: Filter| store.count(&filter).expect("rows");
        assert_eq!((count(none()), count(Filter { host: text("h2"), ..none() })), (3, 2));
        let page = store.list_from(&none(), 1, 1).expect("rows");
        assert_eq!(page.iter().map(|entry| entry.id).collect::<Vec<_>>(), [2]);
        assert_eq!(store.hosts().expect("rows"), ["h1", "h2"]);
    }

    #[test]
    fn old_runs_without_a_label_are_pruned() {
        let (_folder, path) = file();
        let mut store = Store::open(&path).expect("it is made");
        for _ in 0..5 {
            store.add(&stored("one", "{}")).expect("room");
        }
        store.add(&StoredRun { schema: "contend.pipe/1", ..stored("p", "{}") }).expect("room");
        store.label(&[1], "keep").expect("room");
        store.prune("contend.lab/1", 2).expect("room");
        let ids: Vec<_> = store.list(&Filter::default(), 9).expect("rows");
        let ids: Vec<_> = ids.into_iter().map(|entry| entry.id).collect();
        assert_eq!(ids, [6, 5, 4, 1]);
        store.prune("contend.lab/1", 0).expect("room");
        assert_eq!(store.list(&Filter::default(), 9).expect("rows").len(), 2);
    }

    #[test]
    fn a_store_of_the_first_version_is_read_unchanged_and_migrated_when_written() {
        let (_folder, path) = file();
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("room");
        let old = Connection::open(&path).expect("room");
        migrations::run_up_to(&old, 1);
        old.execute_batch(
            "INSERT INTO run (started_at, schema, title, ending, record)
             VALUES ('2026-01-02', 'contend.lab/1', 'old', 'complete', '{\"host\":{\"name\":\"h\"}}')",
        )
        .expect("room");
        drop(old);
        let before = std::fs::read(&path).expect("there");
        let store = Store::open_to_read(&path).expect("it is there");
        let entry = store.list(&Filter::default(), 9).expect("rows").remove(0);
        assert_eq!((entry.title.as_str(), entry.host.as_str()), ("old", ""));
        assert!(store.entry(1).expect("readable").is_some());
        drop(store);
        assert_eq!(std::fs::read(&path).expect("there"), before);
        let store = Store::open(&path).expect("it is migrated");
        let entry = store.list(&Filter::default(), 9).expect("rows").remove(0);
        assert_eq!((entry.title.as_str(), entry.host.as_str()), ("old", "h"));
    }

    #[test]
    fn a_check_adds_no_run() {
        let (_folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        store.check_writable(&stored("one", "{}")).expect("room");
        assert!(store.list(&Filter::default(), 9).expect("rows").is_empty());
        assert_eq!(store.add(&stored("two", "{}")).expect("room"), 1);
        drop(store);
        let store = Store::open_to_read(&path).expect("it is there");
        assert!(matches!(store.check_writable(&stored("x", "{}")), Err(StoreError::Write { .. })));
    }

    #[test]
    fn two_programs_can_write_at_once() {
        let (_folder, path) = file();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let path = path.clone();
                std::thread::spawn(move || {
                    let store = Store::open(&path).expect("it is made once");
                    let id = store.add(&stored("x", "{}")).expect("room");
                    (0..20)
                        .for_each(|_| assert!(store.update(id, &stored("x", "{}")).expect("room")));
                    id
                })
            })
            .collect();
        let ids: Vec<_> = writers.into_iter().map(|w| w.join().expect("no panic")).collect();
        assert_ne!(ids[0], ids[1]);
        assert_eq!(
            Store::open(&path).expect("there").list(&Filter::default(), 9).expect("rows").len(),
            2
        );
    }

    #[test]
    fn imported_runs_are_pruned_by_their_start() {
        let (_folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        let started = |started_at: &'static str| StoredRun { started_at, ..stored("one", "{}") };
        let new = store.add(&started("2026-01-02T03:04:05Z")).expect("room");
        for _ in 0..3 {
            store.add(&started("2020-01-02T03:04:05Z")).expect("room");
        }
        store.prune("contend.lab/1", 1).expect("room");
        let left = store.list(&Filter::default(), 9).expect("rows");
        assert_eq!(left.iter().map(|entry| entry.id).collect::<Vec<_>>(), [new]);
    }

    #[test]
    fn a_new_store_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, path) = file();
        Store::open(&path).expect("it is made");
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_foreign_file_is_left_untouched() {
        let (_folder, path) = file();
        drop(Store::open(&path).expect("it is made"));
        let text = "not a database, but longer than the head of one would be: ".repeat(9);
        std::fs::write(&path, &text).expect("room");
        assert!(matches!(Store::open(&path), Err(StoreError::Broken(_))));
        assert_eq!(std::fs::read_to_string(&path).expect("there"), text);

        std::fs::remove_file(&path).expect("there");
        let foreign = Connection::open(&path).expect("room");
        foreign.execute("CREATE TABLE theirs (x)", []).expect("room");
        assert!(matches!(Store::open(&path), Err(StoreError::Foreign(_))));
    }

    #[test]
    fn a_newer_store_is_left_untouched() {
        let (_folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        store.connection.execute_batch("PRAGMA user_version = 99").expect("room");
        drop(store);
        let error = Store::open(&path).expect_err("it is newer").to_string();
        assert!(error.contains("newer contend (format 99"), "{error}");
        assert!(Store::open_to_read(&path).is_err());
    }

    #[test]
    fn a_writer_that_was_killed_leaves_a_store_that_can_be_read() {
        let (folder, path) = file();
        let store = Store::open(&path).expect("it is made");
        store.add(&stored("one", "{}")).expect("room");
        // Creates the state that a killed writer leaves: a partially changed file, and a journal to
        // undo the change.
        store.connection.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE").expect("free");
        let long = "x".repeat(200_000);
        store.add(&stored("two", &long)).expect("room");
        let copy = folder.path().join("copy.db");
        let beside = |path: &Path| PathBuf::from(format!("{}-journal", path.display()));
        std::fs::copy(beside(&path), beside(&copy)).expect("there is a journal");
        std::fs::copy(&path, &copy).expect("room");
        drop(store);
        let list =
            Store::open_to_read(&copy).expect("it is rolled back").list(&Filter::default(), 9);
        let titles: Vec<_> = list.expect("rows").into_iter().map(|entry| entry.title).collect();
        assert_eq!(titles, ["one"]);
    }

    #[test]
    fn reading_does_not_create_a_store() {
        let (_folder, path) = file();
        assert!(matches!(Store::open_to_read(&path), Err(StoreError::Open { .. })));
        assert!(!path.exists());
    }
}
