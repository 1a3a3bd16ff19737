//! Parses GNU `uniq` commands.

use super::Simple;
use super::options::{Options, Table};

/// The supported options of GNU `uniq`.
pub const TABLE: Table = Table {
    short: "cdDf:is:uw:z",
    long: &[
        ("count", 'c'),
        ("repeated", 'd'),
        ("skip-fields", 'f'),
        ("ignore-case", 'i'),
        ("skip-chars", 's'),
        ("unique", 'u'),
        ("check-chars", 'w'),
        ("zero-terminated", 'z'),
    ],
};

/// Parses the options of a `uniq` without operands, which reads standard input and writes standard
/// output. Returns `None` for any other command and for unknown options.
pub fn read(simple: &Simple) -> Option<Options> {
    let options = Options::read(&simple.arguments, &TABLE)?;
    (simple.name() == "uniq" && options.operands.is_empty()).then_some(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn commands_with_files_are_rejected() {
        assert!(read(&simple("uniq")).is_some_and(|options| options.given.is_empty()));
        assert!(read(&simple("uniq -cd")).is_some_and(|options| options.has('c')));
        assert_eq!(read(&simple("uniq in out")), None);
        assert_eq!(read(&simple("uniq --group")), None);
    }
}
