//! Rules for the book in `docs/`: every page is in `SUMMARY.md`, links stay in the book, and
//! anchors exist.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::links::{links_with_anchors, resolve};
use super::{Source, Violation};

const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Finds violations of the rules. `pages` are all pages of the repository. The anchors of links are
/// checked on all of them, the other rules only on those of the book.
pub fn check(pages: &[Source]) -> Vec<Violation> {
    let anchors: HashMap<&Path, HashSet<String>> =
        pages.iter().map(|page| (page.path.as_path(), anchors(&page.text))).collect();
    let mut violations = missing_in_summary(pages);
    for page in pages {
        for (line, target) in links_with_anchors(&page.text) {
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match file {
                "" => Some(page.path.clone()),
                file => resolve(&page.path, file),
            };
            let Some(path) = path else { continue };
            let mut report = |problem: String| {
                violations.push(Violation { file: page.path.clone(), line, problem });
            };
            if page.path.starts_with(BOOK) && !path.starts_with(BOOK) {
                report(format!(
                    "the link to {target} leads out of the book: name the file as code"
                ));
            }
            let known = anchors.get(path.as_path());
            if !anchor.is_empty() && known.is_some_and(|known| !known.contains(anchor)) {
                report(format!("{} has no heading for #{anchor}", path.display()));
            }
        }
    }
    violations
}

/// Finds pages of the book that its table of contents, `SUMMARY.md`, does not list.
fn missing_in_summary(pages: &[Source]) -> Vec<Violation> {
    let summary = pages.iter().find(|page| page.path == Path::new(SUMMARY));
    let text = summary.map_or("", |page| &page.text);
    let listed: HashSet<PathBuf> = links_with_anchors(text)
        .iter()
        .filter_map(|(_, target)| resolve(Path::new(SUMMARY), target))
        .collect();
    pages
        .iter()
        .map(|page| &page.path)
        .filter(|path| path.starts_with(BOOK) && path.as_path() != Path::new(SUMMARY))
        .filter(|path| !listed.contains(*path))
        .map(|path| Violation {
            file: path.clone(),
            line: 0,
            problem: format!("{SUMMARY} does not list this page"),
        })
        .collect()
}

/// Returns the anchors of a page's headings, as mdBook and code hosts derive them.
fn anchors(text: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !is_code && (1..=6).contains(&level) && heading.starts_with(' ') {
            let name = anchor(heading.trim());
            let numbered = (1..).map(|number| format!("{name}-{number}"));
            let free = std::iter::once(name.clone()).chain(numbered);
            let mut free = free.filter(|candidate| !found.contains(candidate));
            found.extend(free.next());
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = |character: char| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ => character.is_alphanumeric().then_some(character),
    };
    heading.to_lowercase().chars().filter_map(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(pages: &[(&str, &str)]) -> Vec<String> {
        let source = |&(path, text): &(&str, &str)| Source {
            path: PathBuf::from(path),
            text: text.to_owned(),
        };
        let pages: Vec<_> = pages.iter().map(source).collect();
        check(&pages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_page_that_the_summary_does_not_list_is_a_violation() {
        let summary = ("docs/SUMMARY.md", "[a](a.md)\n<!-- [b](b.md) -->\n[c](x/c.md)");
        let found = problems(&[summary, ("docs/a.md", ""), ("docs/b.md", ""), ("docs/x/c.md", "")]);
        assert_eq!(found, ["docs/b.md:0: docs/SUMMARY.md does not list this page"]);
    }

    #[test]
    fn a_link_out_of_the_book_is_a_violation() {
        let summary = ("docs/SUMMARY.md", "[a](x/a.md)");
        let page = ("docs/x/a.md", "[b](../SUMMARY.md)\n[c](../../README.md)");
        let found = problems(&[summary, page, ("README.md", "[d](docs/x/a.md)")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("docs/x/a.md:2: the link to ../../README.md"), "{found:?}");
    }

    #[test]
    fn a_link_to_a_missing_heading_is_a_violation() {
        let page =
            ("docs/a.md", "# A `b`: c\n## Same\n## Same\n```sh\n# no\n```\n[x](#same-2)[y](#no)");
        let readme =
            ("README.md", "[b](docs/a.md#a-b-c) [c](docs/a.md#same-1) [d](docs/a.md#other)");
        let found = problems(&[("docs/SUMMARY.md", "[a](a.md)"), page, readme]);
        let headings = ["same-2", "no", "other"];
        assert_eq!(found.len(), headings.len(), "{found:?}");
        for (problem, heading) in found.iter().zip(headings) {
            assert!(
                problem.ends_with(&format!("docs/a.md has no heading for #{heading}")),
                "{problem}"
            );
        }
    }
}
