//! The version of contend, and the commit that it was built from.

use contend_record::Writer;

/// The version of contend, from `Cargo.toml`.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The Git commit that this program was built from; `None` if `build.rs` has not found it.
const COMMIT: Option<&str> = option_env!("CONTEND_COMMIT");

/// Returns the version and the commit of this program, for a record.
pub fn writer() -> Writer {
    Writer { version: VERSION.to_owned(), commit: COMMIT.map(str::to_owned) }
}
