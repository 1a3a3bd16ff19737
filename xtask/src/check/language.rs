//! Rule: texts are written in the field's terms, as docs/STYLE.md describes.
//!
//! This counts phrases of literal, coined English per 1,000 words of comments, of strings and of pages. A phrase may be
//! right in its place; the density shows whether a text needs editing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use regex::Regex;

use super::Source;
use super::literals::literals;
use super::names::{is_of_tests, test_files};

/// Largest number of phrases per 1,000 words.
pub const LIMIT: f64 = 3.0;

/// The phrases, of which most have a better form in docs/STYLE.md.
const PHRASES: &[&str] = &[
    r"so (many|much)",
    r"(nobody|whoever|somebody|anybody)",
    r"what (is|are|was|were|comes|stands|goes|remains|belongs|follows|others)",
    r"who (is|has|have|does|reads|writes|waits|ends|comes|asks|knows|takes|holds|sends|gets|wants)",
    r"(is|are|was|were|be|been|being) told",
    r"tells? (that|from|whether|how|what|of|it|them|others|apart)",
    r"meanwhile",
    r"(by|for|of) (itself|themselves|oneself)",
    r"behind",
    r"beside",
    r"as (it|they) (is|are|was|were|stands?|comes?)",
    r"one (after|behind|beside) the other",
    r"in one piece",
    r"put together",
    r"go(es)? on",
    r"(is|are|goes|go|went|ends?|ended) well",
    r"look(s|ed|ing)? at",
    r"stands? (before|there|in the way|beside)",
    r"comes? of",
    r"some (hundred|thousand|ten|tens|hundreds|thousands)",
    r"(all|nothing|anything|everything|something) that (is|there|was)",
    r"(that|this) (many|much)",
    r"(heeds?|mend(s|ed)?|fares?)",
];

/// Pages that quote phrases in order to forbid them.
const EXEMPT: &[&str] = &["docs/GLOSSARY.md", "docs/STYLE.md"];

/// Words and phrases of a text.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Count {
    words: usize,
    phrases: usize,
}

impl Count {
    /// Returns the number of phrases per 1,000 words.
    fn density(self) -> f64 {
        if self.words == 0 { 0.0 } else { self.phrases as f64 * 1e3 / self.words as f64 }
    }
}

/// A kind of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Comments,
    Strings,
    Page,
}

/// A text, and the line on which it starts.
struct Text<'a> {
    package: String,
    kind: Kind,
    source: &'a Source,
    line: usize,
    content: &'a str,
}

/// Returns the number of phrases in each package and page. If `only` is given, reports the packages
/// whose names contain it, with every phrase.
///
/// # Errors
/// If a phrase is not a valid regular expression.
pub fn report(code: &[Source], pages: &[Source], only: Option<&str>) -> Result<String> {
    let phrases = phrases()?;
    let mut counts: BTreeMap<(String, Kind), Count> = BTreeMap::new();
    let mut report = String::new();
    for text in texts(code, pages) {
        let found: Vec<_> = phrases.find_iter(text.content).collect();
        let count = counts.entry((text.package.clone(), text.kind)).or_default();
        count.words += text.content.split_whitespace().filter(|word| is_word(word)).count();
        count.phrases += found.len();
        if only.is_some_and(|only| text.package.contains(only)) {
            for phrase in found {
                let line = text.line + text.content[..phrase.start()].matches('\n').count();
                let path = text.source.path.display();
                writeln!(report, "{path}:{line}: {}", phrase.as_str())?;
            }
        }
    }
    let is_wanted = |package: &str| only.is_none_or(|only| package.contains(only));
    for ((package, kind), count) in counts.into_iter().filter(|((name, _), _)| is_wanted(name)) {
        let mark = if count.density() > LIMIT { "above the limit" } else { "" };
        let (words, density) = (count.words, count.density());
        let kind = format!("{kind:?}").to_lowercase();
        writeln!(report, "{package:<28} {kind:<9} {words:>7} words {density:>6.1} {mark}")?;
    }
    Ok(report)
}

fn phrases() -> Result<Regex> {
    Regex::new(&format!(r"(?i)\b(?:{})\b", PHRASES.join("|"))).context("phrases")
}

fn is_word(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Returns all comments, all string literals of three words or more outside of tests, and all
/// pages.
fn texts<'a>(code: &'a [Source], pages: &'a [Source]) -> Vec<Text<'a>> {
    let tests = test_files(code);
    let mut texts = Vec::new();
    for source in code {
        let package = package(source);
        for (line, text) in source.text.lines().enumerate() {
            if let Some(text) = text.trim_start().strip_prefix("//") {
                let (package, kind) = (package.clone(), Kind::Comments);
                texts.push(Text { package, kind, source, line: line + 1, content: text });
            }
        }
        if !is_of_tests(&source.path, &tests) {
            let strings = literals(&source.text).strings.into_iter();
            let sentences = strings
                .filter(|(_, text)| text.split(' ').filter(|word| is_word(word)).count() > 2);
            texts.extend(sentences.map(|(line, text)| Text {
                package: package.clone(),
                kind: Kind::Strings,
                source,
                line,
                content: text,
            }));
        }
    }
    let is_counted = |page: &&Source| !EXEMPT.iter().any(|path| page.path == Path::new(path));
    texts.extend(pages.iter().filter(is_counted).map(|source| Text {
        package: source.path.display().to_string(),
        kind: Kind::Page,
        source,
        line: 1,
        content: &source.text,
    }));
    texts
}

/// Returns the folder of a source's package: `crates/lab`, or `bench`.
fn package(source: &Source) -> String {
    let mut parts = source.path.iter().map(|part| part.to_string_lossy());
    let first = parts.next().unwrap_or_default();
    match (first.as_ref(), parts.next()) {
        ("crates", Some(name)) => format!("crates/{name}"),
        _ => first.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.to_owned() }
    }

    #[test]
    fn phrases_are_counted_for_each_kind_of_text() {
        let code = source(
            "crates/new/src/lib.rs",
            "/// Who waits is told so much.\n// A buffer.\nfn f() { say(\"it goes on behind it\"); say(\"one\") }",
        );
        let page = source("docs/new.md", "A page.\n\nIt is\nbeside another.");
        let (code, page) = (&[code], &[page]);
        let all = report(code, page, None).expect("a report");
        let lines: Vec<_> = all.lines().collect();
        assert!(
            lines[0].starts_with("crates/new                   comments        8 words  375.0")
        );
        assert!(
            lines[1].starts_with("crates/new                   strings         5 words  400.0")
        );
        let report = report(code, page, Some("docs/")).expect("a report");
        let lines: Vec<_> = report.lines().collect();
        assert_eq!(lines[0], "docs/new.md:4: beside");
        assert!(
            lines[1].starts_with("docs/new.md                  page            6 words  166.7")
        );
        assert_eq!(lines.len(), 2, "{report}");
    }
}
