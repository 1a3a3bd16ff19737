//! Generates pages of the book's reference from the definitions that the program itself uses.

mod exit_codes;
mod options;
mod records;

use anyhow::Result;

use crate::cli::generate::Page;

/// Width of the pages, in columns.
const PAGE_COLUMNS: usize = 118;

/// Returns a page as Markdown.
///
/// # Errors
/// Returns an error if a JSON Schema cannot be made.
pub fn page(page: Page) -> Result<String> {
    match page {
        Page::Options => Ok(options::page()),
        Page::Records => records::page(),
        Page::ExitCodes => Ok(exit_codes::page()),
    }
}

/// Returns the given prose as one paragraph, wrapped to the page width.
pub(super) fn paragraph(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    textwrap::fill(&words, PAGE_COLUMNS) + "\n"
}

/// Escapes the characters that Markdown would interpret, but leaves code spans unchanged.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        for character in part.chars() {
            if index % 2 == 0 && matches!(character, '<' | '*' | '[' | '|' | '_') {
                escaped.push('\\');
            }
            escaped.push(character);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_are_up_to_date() {
        let pages = [
            (Page::Options, "options"),
            (Page::Records, "records"),
            (Page::ExitCodes, "exit-codes"),
        ];
        for (made, name) in pages {
            let path = format!("{}/../../docs/reference/{name}.md", env!("CARGO_MANIFEST_DIR"));
            let committed = std::fs::read_to_string(&path).expect("the page");
            let made = page(made).expect("a page");
            assert!(committed == made, "docs/reference/{name}.md: run `cargo xtask generate`");
        }
    }

    #[test]
    fn only_text_outside_of_code_is_escaped() {
        assert_eq!(escaped("a <b> `c <d>` *e*"), "a \\<b> `c <d>` \\*e\\*");
    }
}
