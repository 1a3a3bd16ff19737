//! Rule: a link in a Markdown page leads to a file that exists.

use std::path::{Component, Path, PathBuf};

use super::{Source, Violation};

/// Finds links to files that do not exist, according to `exists`, which gets paths relative to the
/// repository's root. Does not check links to other sites. [`mod@super::book`] checks links to
/// headings.
pub fn check(pages: &[Source], exists: &dyn Fn(&Path) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    for page in pages {
        for (line, target) in files(&page.text) {
            let path = resolve(&page.path, &target);
            if !path.as_deref().is_some_and(exists) {
                let problem = format!("the link to {target} leads to no file of the repository");
                violations.push(Violation { file: page.path.clone(), line, problem });
            }
        }
    }
    violations
}

/// Returns the targets of links to files, with line numbers from 1.
fn files(text: &str) -> Vec<(usize, String)> {
    let without_anchor = |target: String| target.split('#').next().unwrap_or_default().to_owned();
    let targets = links_with_anchors(text).into_iter();
    let files = targets.map(|(line, target)| (line, without_anchor(target)));
    files.filter(|(_, file)| !file.is_empty()).collect()
}

/// Returns the targets of links to files and headings, with line numbers from 1. Leaves out links
/// in code and in comments.
pub fn links_with_anchors(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in without_comments(text).lines().enumerate() {
        let marker =
            ["```", "~~~"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => {
                let targets = targets(&without_code(line));
                found.extend(targets.into_iter().map(|target| (index + 1, target)));
            }
            _ => {}
        }
    }
    found
}

/// Removes HTML comments, but keeps their line breaks.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (comment, after) = part.split_once("-->").unwrap_or((part, ""));
        kept.extend(comment.matches('\n').chain([after]));
    }
    kept
}

/// Returns the line without the contents of its code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Returns the local targets of `[text](target)` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let inline = line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let definition = definition.and_then(|(_, target)| target.split_whitespace().next());
    inline
        .chain(definition)
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter(|target| !target.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the path of a link's target, relative to the repository's root, or `None` if the target
/// is outside of the repository.
pub fn resolve(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            _ => return None,
        }
    }
    Some(if path.as_os_str().is_empty() { PathBuf::from(".") } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<(usize, String)> {
        let page = Source { path: PathBuf::from("docs/page.md"), text: text.to_owned() };
        let exists = |path: &Path| {
            ["README.md", "docs/a.md", "."].iter().any(|known| path == Path::new(known))
        };
        let found = check(&[page], &exists);
        found.into_iter().map(|violation| (violation.line, violation.problem)).collect()
    }

    #[test]
    fn a_link_to_a_missing_file_is_a_violation() {
        let found =
            broken("good [a](a.md)\nbad [b](b.md#part), [c](../c.md \"title\")\n[d]: d.md\n");
        let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 2, 3]);
        assert!(found[1].1.contains("../c.md"), "{found:?}");
    }

    #[test]
    fn a_link_out_of_the_repository_is_a_violation() {
        assert_eq!(broken("[a](../../README.md) [b](/README.md)").len(), 2);
    }

    #[test]
    fn other_links_and_code_are_left_alone() {
        let text = "<!-- [i](none.md)\n --> [a](https://example.org/x) [b](#part) [c](mailto:x@y) [d](../README.md) \
                    [e](..)\n`[f](none.md)`\n```text\n[g](none.md)\n```\n~~~\n```\n[h](no.md)\n~~~\n";
        assert_eq!(broken(text), []);
    }
}
