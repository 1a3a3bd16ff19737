//! The pages of saved runs and of comparisons: those of `contend report` and `contend compare` with a bar above
//! them.

use contend_report::render::history::kind;
use contend_report::render::html;
use contend_report::render::text::printable;
use contend_report::store::Entry;
use maud::{Markup, html};

use super::{bar, document, links, sentence, time};

/// Returns the page of a record, with a bar above it.
pub fn framed(root: &str, page: &str, bar: &Markup) -> String {
    html::served(page, &links(root), bar)
}

/// The bar above a saved run: its number and forms for its label and for comparisons.
pub fn run_bar(root: &str, entry: &Entry) -> Markup {
    let id = entry.id;
    let content = html! {
        p {
            "Run " (id) ", " (printable(kind(&entry.schema))) ", " (time(&entry.started_at)) " UTC"
            @if !entry.ending.is_empty() { ", " (printable(&entry.ending)) }
        }
        form method="post" action={ (root) "run/" (id) "/label" } {
            label { "Label" input type="text" name="label" value=(entry.label) maxlength="1000"; }
            button type="submit" { "Save" }
        }
        form method="get" action={ (root) "compare" } {
            input type="hidden" name="run" value=(id);
            label {
                "Compare with run"
                input.short type="text" name="run" inputmode="numeric" pattern=" *[0-9]+ *" required;
            }
            button type="submit" { "Compare" }
        }
    };
    bar(root, &content)
}

/// The bar above a comparison, with links to its runs.
pub fn comparison_bar<'a>(root: &str, runs: impl Iterator<Item = &'a Entry>) -> Markup {
    let content = html! {
        p {
            "Comparison of"
            @for entry in runs {
                " "
                a href={ (root) "run/" (entry.id) } {
                    "run " (entry.id)
                    @if !entry.label.is_empty() { " (" (printable(&entry.label)) ")" }
                }
            }
        }
    };
    bar(root, &content)
}

/// Renders the page of a run whose record has no page, for the reason `why`.
pub fn without_page(root: &str, bar: &Markup, entry: &Entry, why: &str) -> String {
    let title = printable(&entry.title);
    let main = html! {
        h1 { code dir="auto" { (title) } }
        p.warning { (sentence(why)) }
    };
    document(root, &title, &html! {}, bar, &main)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_run_is_markup() {
        let hostile = "\"onload=\"alert(1)\"><script>alert(2)</script>".to_owned();
        let entry = Entry {
            id: 7,
            started_at: hostile.clone(),
            schema: hostile.clone(),
            title: hostile.clone(),
            ending: hostile.clone(),
            label: hostile.clone(),
            host: hostile.clone(),
        };
        let bar = run_bar("/t/", &entry);
        let pages = [
            without_page("/t/", &bar, &entry, &hostile),
            comparison_bar("/t/", [&entry].into_iter()).into_string(),
        ];
        for page in pages {
            assert!(!page.contains("<script") && !page.contains("\"onload=\""), "{page}");
        }
    }
}
