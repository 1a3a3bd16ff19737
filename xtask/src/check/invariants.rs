//! Rule: every test that ARCHITECTURE.md names as the enforcement of an invariant exists.

use std::path::Path;

use super::{Source, Violation};

/// Heading of the section with the table of invariants.
const HEADING: &str = "## Invariants";

/// Finds tests that the table of invariants names but no source defines. A table that names no test
/// is also a violation.
pub fn check(page: &Source, sources: &[Source]) -> Vec<Violation> {
    let named = tests_of(&page.text);
    let violation = |line, problem| Violation { file: page.path.clone(), line, problem };
    if named.is_empty() {
        return vec![violation(0, format!("no test is named under `{HEADING}`"))];
    }
    let is_defined = |name: &str| {
        let definition = format!("fn {name}(");
        sources.iter().any(|source| source.text.contains(&definition))
    };
    let missing = named.into_iter().filter(|(_, name)| !is_defined(name));
    missing.map(|(line, name)| violation(line, format!("there is no test `{name}`"))).collect()
}

/// Returns the names of tests in the last column of the table of invariants, with line numbers from
/// 1.
fn tests_of(page: &str) -> Vec<(usize, String)> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    let rows = lines.take_while(|(_, line)| !line.starts_with("## "));
    let rows = rows.filter(|(_, line)| line.starts_with("| ") && !line.starts_with("| |"));
    rows.flat_map(|(index, row)| {
        let last = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let quoted = last.split('`').skip(1).step_by(2);
        quoted.filter(|name| is_test(name)).map(move |name| (index + 1, name.to_owned()))
    })
    .collect()
}

/// Returns whether code in backticks looks like the name of a test, rather than a file, a command
/// or a setting: lowercase words with at least two underscores.
fn is_test(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_part) && name.matches('_').count() > 1
}

/// Reads ARCHITECTURE.md, which has the table of invariants.
///
/// # Errors
/// Returns an error if the page cannot be read.
pub fn page() -> std::io::Result<Source> {
    let path = Path::new("ARCHITECTURE.md");
    Ok(Source { path: path.to_owned(), text: std::fs::read_to_string(path)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    const PAGE: &str = "\
# Map
| 1 | other | `not_in_the_table_at_all` |
## Invariants
| | what holds | enforced by |
|---|---|---|
| 1 | imports `a_b_c_d` | Cargo; `layers.rs`, `unsafe_code = \"deny\"` |
| 2 | bytes | `bytes_are_the_same`, `so_are_the_others` |
## Next
| 3 | more | `not_in_the_table_either` |
";

    #[test]
    fn only_tests_named_in_the_table_are_required() {
        let names: Vec<_> = tests_of(PAGE).into_iter().collect();
        let expected = [(7, "bytes_are_the_same"), (7, "so_are_the_others")];
        assert_eq!(names, expected.map(|(line, name)| (line, name.to_owned())));
    }

    #[test]
    fn a_test_that_does_not_exist_is_a_violation() {
        let page = source("ARCHITECTURE.md", PAGE);
        let one = source("a.rs", "fn bytes_are_the_same() {}\n// so_are_the_others");
        let found = check(&page, &[one]);
        assert_eq!(found.len(), 1);
        assert!(found[0].line == 7 && found[0].problem.contains("so_are_the_others"), "{found:?}");
        let both = source("b.rs", "fn so_are_the_others() {} fn bytes_are_the_same() {}");
        assert_eq!(check(&page, &[both]), []);
    }

    #[test]
    fn a_page_without_tests_is_a_violation() {
        assert_eq!(check(&source("ARCHITECTURE.md", "# Map\n"), &[]).len(), 1);
    }
}
