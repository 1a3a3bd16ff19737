//! The first page: runs that are taking place, and saved runs with a search.

use contend_report::render::history::kind;
use contend_report::render::text::printable;
use contend_report::store::{Entry, Filter};
use maud::{Markup, html};

use super::{document, time};
use crate::live::Running;
use crate::query::{KINDS, PAGE_RUNS, Search};
use crate::site::Found;

/// Renders the page.
pub fn page(root: &str, search: &Search, found: &Found, live: &[Running]) -> String {
    let main = html! {
        h1 { "Runs" }
        @if !live.is_empty() { (running(root, live)) }
        (form(root, search, &found.hosts))
        @if found.entries.is_empty() {
            p { (nothing(search, found.count)) }
        } @else {
            p.count role="status" { (range(search, found)) }
            (table(root, &found.entries))
        }
        (pages(root, search, found.count))
    };
    document(root, "Runs", &html! {}, &html! {}, &main)
}

fn running(root: &str, live: &[Running]) -> Markup {
    html! {
        section aria-labelledby="now" {
            h2 id="now" { "Taking place now" }
            ul.running {
                @for run in live {
                    li {
                        a href={ (root) "live/" (run.pid) } {
                            (printable(&run.head.verb)) " " code dir="auto" { (printable(&run.head.subject)) }
                        }
                        " process " (run.pid) ", since " (time(&run.head.started_at))
                    }
                }
            }
        }
    }
}

fn form(root: &str, search: &Search, hosts: &[String]) -> Markup {
    let Filter { title, host, label, since, until, .. } = &search.filter;
    let value = |text: &Option<String>| text.clone().unwrap_or_default();
    html! {
        form.search method="get" action=(root) role="search" {
            label { "Command contains" input type="search" name="command" value=(value(title)); }
            label { "Label contains" input type="search" name="label" value=(value(label)); }
            label {
                "Kind"
                select name="kind" {
                    option value="" { "all" }
                    @for (name, _) in KINDS {
                        option value=(name) selected[search.kind() == name] { (name) }
                    }
                }
            }
            label {
                "Machine"
                select name="host" {
                    option value="" { "all" }
                    @for name in hosts {
                        option value=(name) selected[host.as_ref() == Some(name)] { (printable(name)) }
                    }
                }
            }
            label { "Since (UTC)" input type="date" name="since" value=(value(since)); }
            label { "Until (UTC)" input type="date" name="until" value=(value(until)); }
            button type="submit" { "Search" }
            @if search.filter != Filter::default() { a href=(root) { "Show all" } }
        }
    }
}

fn table(root: &str, entries: &[Entry]) -> Markup {
    html! {
        form method="get" action={ (root) "compare" } {
            div.scroll tabindex="0" {
                table.runs {
                    caption { "Saved runs, newest first; times are in UTC" }
                    thead {
                        tr {
                            th scope="col" { "compare" }
                            th.number scope="col" { "run" }
                            @for heading in ["started", "kind", "measured", "ended", "label", "host"] {
                                th scope="col" { (heading) }
                            }
                        }
                    }
                    tbody { @for entry in entries { (row(root, entry)) } }
                }
            }
            p {
                button type="submit" { "Compare the selected runs" }
                " The oldest one is the baseline."
            }
        }
    }
}

fn row(root: &str, entry: &Entry) -> Markup {
    let id = entry.id;
    html! {
        tr {
            td { input type="checkbox" name="run" value=(id) aria-label={ "Compare run " (id) }; }
            td.number { a href={ (root) "run/" (id) } { (id) } }
            td.time { (time(&entry.started_at)) }
            td { (printable(kind(&entry.schema))) }
            td.measured { a href={ (root) "run/" (id) } { code dir="auto" { (measured(entry)) } } }
            td.label { (printable(&entry.ending)) }
            td.label { (printable(&entry.label)) }
            td.label { (printable(&entry.host)) }
        }
    }
}

/// Returns what a run measured, as the text of a link, which must not be empty.
fn measured(entry: &Entry) -> String {
    const MAX_CHARACTERS: usize = 200;
    let text = printable(&entry.title);
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if text.trim().is_empty() => format!("run {}", entry.id),
        None => text,
    }
}

fn nothing(search: &Search, count: usize) -> &'static str {
    if search.filter != Filter::default() && count == 0 {
        "No saved run matches."
    } else if count > 0 {
        "There are fewer pages."
    } else {
        "No runs are saved yet. `contend pipe`, `run`, `doctor` and `lab` save their runs."
    }
}

fn range(search: &Search, found: &Found) -> String {
    let first = search.skipped() + 1;
    let last = search.skipped() + found.entries.len();
    match found.count {
        1 => "1 run".to_owned(),
        count if count == found.entries.len() => format!("{count} runs"),
        count => format!("Runs {first} to {last} of {count}"),
    }
}

/// The links to other pages of the list.
fn pages(root: &str, search: &Search, count: usize) -> Markup {
    let last = count.div_ceil(PAGE_RUNS).max(1);
    let link = |page: usize| format!("{root}?{}", search.query_of_page(page));
    html! {
        @if last > 1 {
            nav.pages aria-label="Pages of the list" {
                @if search.page > 1 {
                    a href=(link(1)) { "Newest" }
                    a href=(link((search.page - 1).min(last))) rel="prev" { "Newer" }
                }
                span { "Page " (search.page) " of " (last) }
                @if search.page < last {
                    a href=(link(search.page + 1)) rel="next" { "Older" }
                    a href=(link(last)) { "Oldest" }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use contend_record::live::{Head, Update};

    use super::*;

    const HOSTILE: &str = "\"onload=\"alert(1)\"><script>alert(2)</script>\u{202e}";

    fn entry(id: i64, text: &str) -> Entry {
        let text = text.to_owned();
        Entry {
            id,
            started_at: text.clone(),
            schema: text.clone(),
            title: text.clone(),
            ending: text.clone(),
            label: text.clone(),
            host: text,
        }
    }

    fn searched(query: &str) -> Search {
        Search::parse(query).expect("a search")
    }

    #[test]
    fn nothing_in_a_run_is_markup() {
        let found =
            Found { entries: vec![entry(1, HOSTILE)], count: 1, hosts: vec![HOSTILE.to_owned()] };
        let texts = || HOSTILE.to_owned();
        let head = Head { verb: texts(), subject: texts(), started_at: texts(), ..Head::default() };
        let live = [Running { pid: 7, head, latest: Update::default() }];
        let mut search = searched("");
        search.filter.title = Some(texts());
        search.filter.label = Some(texts());
        search.filter.since = Some(texts());
        let page = page("/t/", &search, &found, &live);
        assert!(!page.contains("<script") && !page.contains("\"onload=\""), "{page}");
    }

    #[test]
    fn pages_are_linked_with_the_search() {
        let entries = (0..50).map(|id| entry(id, "x")).collect();
        let found = Found { entries, count: 10_000, hosts: Vec::new() };
        let page = page("/t/", &searched("command=a%26b&page=2"), &found, &[]);
        assert!(page.contains("Runs 51 to 100 of 10000"), "{page}");
        assert!(page.contains("href=\"/t/?command=a%26b\" rel=\"prev\""), "{page}");
        assert!(page.contains("href=\"/t/?command=a%26b&amp;page=3\" rel=\"next\""), "{page}");
        assert!(page.contains("Page 2 of 200"), "{page}");
    }

    #[test]
    fn an_empty_list_says_why() {
        let none = Found { entries: Vec::new(), count: 0, hosts: Vec::new() };
        assert!(page("/t/", &searched(""), &none, &[]).contains("No runs are saved yet."));
        assert!(page("/t/", &searched("kind=lab"), &none, &[]).contains("No saved run matches."));
        let some = Found { count: 3, ..none };
        assert!(page("/t/", &searched("page=9"), &some, &[]).contains("There are fewer pages."));
    }

    #[test]
    fn a_long_or_empty_title_is_a_link() {
        assert_eq!(measured(&entry(7, " ")), "run 7");
        assert_eq!(measured(&entry(7, &"é".repeat(300))).chars().count(), 201);
    }
}
