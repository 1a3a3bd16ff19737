//! The markup of the server's own pages. Every text from elsewhere is escaped by maud, and its control characters
//! are made visible.

mod list;
mod live;
mod run;

pub use list::page as list;
pub use live::page as live;
pub use run::{comparison_bar, framed, run_bar, without_page};

use contend_report::render::text::printable;
use maud::{DOCTYPE, Markup, html};

/// Renders a page of the server. `root` is the path to the first page.
fn document(root: &str, title: &str, head: &Markup, bar: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (printable(title)) " – contend" }
                link rel="stylesheet" href={ (root) "page.css" };
                (links(root))
                (head)
            }
            body { (bar) main { (main) } }
        }
    };
    page.into_string()
}

/// The style sheet of the bar, and the icon, for the head of any page.
fn links(root: &str) -> Markup {
    html! {
        link rel="stylesheet" href={ (root) "serve.css" };
        link rel="icon" href={ (root) "icon.svg" };
    }
}

/// The bar with a link to the list of runs.
fn bar(root: &str, content: &Markup) -> Markup {
    html! {
        nav.bar aria-label="Saved runs" {
            p { a href=(root) { "All runs" } }
            (content)
        }
    }
}

/// Renders the page that leads a browser to the first page, at `url`.
pub fn opening(url: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (url) };
                meta name="referrer" content="no-referrer";
                title { "contend" }
            }
            body { p { a href=(url) { "Open contend serve" } } }
        }
    };
    page.into_string()
}

/// Renders the page of a request that cannot be answered.
pub fn problem(root: &str, status: u16, message: &str) -> String {
    let title = if status == 404 { "Not found" } else { "Not possible" };
    let main = html! {
        h1 { (title) }
        p.warning { (sentence(message)) }
    };
    document(root, title, &html! {}, &bar(root, &html! {}), &main)
}

/// Returns a message as a sentence.
fn sentence(message: &str) -> String {
    let message = printable(message);
    let mut rest = message.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", rest.as_str())
}

/// Returns a time in UTC for people.
fn time(started_at: &str) -> String {
    printable(started_at).replace('T', " ").replace('Z', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_sentence_without_markup() {
        let page = problem("/t/", 404, "there is no run '<b>'");
        assert!(page.contains("There is no run '&lt;b&gt;'."), "{page}");
        assert!(page.contains("<a href=\"/t/\">All runs</a>"), "{page}");
        assert_eq!(sentence(""), ".");
    }
}
