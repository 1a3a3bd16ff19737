//! Which contend this is: the one place for its version and its commit.

use contend_record::Writer;

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The Git commit that this program was built from, where `build.rs` could find it.
const COMMIT: Option<&str> = option_env!("CONTEND_COMMIT");

/// What a record says of this program.
pub fn writer() -> Writer {
    Writer { version: VERSION.to_owned(), commit: COMMIT.map(str::to_owned) }
}
