//! Helpers for tests of rendered text.

/// Returns the text without styles.
pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Returns the output of `write`, without styles.
pub(super) fn plain_output(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    plain(&out)
}
