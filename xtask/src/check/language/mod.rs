//! Rule: comments, strings and pages use the field's terms, as docs/STYLE.md describes.
//!
//! [`phrases`] lists phrases of literal, coined English, which this module counts per 1,000 words
//! of comments, strings and pages. A single phrase may be right; the density shows whether a text
//! needs editing.

mod phrases;
mod sample;
mod texts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{Source, Violation};
use phrases::{Found, Phrases};
use texts::{Kind, texts, words};

/// Maximum number of phrases per 1,000 words.
const MAX_PHRASES_PER_1000_WORDS: f64 = 3.0;

/// Maximum number of phrases per 1,000 words of labels, in which a phrase is more often right.
const MAX_LABEL_PHRASES_PER_1000_WORDS: f64 = 6.0;

/// Number of words below which a text may have one phrase, whatever its density.
const SHORT_WORDS: usize = 200;

/// A request to `cargo xtask language`.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// The density of phrases in every package and page. With a string, the density and the phrases
    /// of only those packages and pages whose names contain it.
    Report(Option<String>),
    /// The density of phrases in the Rust sources below a folder, which may be outside of this
    /// repository.
    Elsewhere(PathBuf),
    /// `count` doc comments drawn at random; `seed` determines which.
    Sample { count: usize, seed: u64 },
    /// The phrases in the subjects of a range of commits.
    Commits(String),
    /// A check that fails if a package or page is above the limit.
    Check,
}

impl Request {
    /// Parses the task's arguments.
    ///
    /// # Errors
    /// Returns an error for unknown arguments and for numbers that cannot be parsed.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        Ok(match arguments[..] {
            [] => Self::Report(None),
            ["--check"] => Self::Check,
            ["--commits", range] => Self::Commits(range.to_owned()),
            ["--sample", count] => Self::Sample { count: count.parse()?, seed: 0 },
            ["--sample", count, "--seed", seed] => {
                Self::Sample { count: count.parse()?, seed: seed.parse()? }
            }
            [place] if place.starts_with('/') => Self::Elsewhere(place.into()),
            [place] if !place.starts_with('-') => Self::Report(Some(place.to_owned())),
            _ => bail!("expected PLACE, --check, --sample N [--seed N] or --commits RANGE"),
        })
    }
}

/// Numbers of words and phrases in texts.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Count {
    words: usize,
    phrases: usize,
}

impl Count {
    /// Returns the number of phrases per 1,000 words, or 0 if there are no words.
    fn density(self) -> f64 {
        if self.words == 0 { 0.0 } else { self.phrases as f64 * 1e3 / self.words as f64 }
    }

    fn is_above_limit(self, kind: Kind) -> bool {
        let limit = if kind == Kind::Labels {
            MAX_LABEL_PHRASES_PER_1000_WORDS
        } else {
            MAX_PHRASES_PER_1000_WORDS
        };
        self.density() > limit && (self.words >= SHORT_WORDS || self.phrases > 1)
    }
}

type Counts = BTreeMap<(String, Kind), Count>;

/// Returns the density of phrases in each package and page. If `only` is given, covers only
/// packages and pages whose names contain it, and also lists their phrases, each with advice.
///
/// # Errors
/// Returns an error if a phrase is not a valid regular expression.
pub fn report(code: &[Source], pages: &[Source], only: Option<&str>) -> Result<String> {
    let phrases = Phrases::new()?;
    let mut counts = Counts::new();
    let mut report = String::new();
    for text in texts(code, pages) {
        let prose = text.prose();
        let found = phrases.find(&prose);
        let count = counts.entry((text.package.clone(), text.kind)).or_default();
        count.words += words(&prose);
        count.phrases += found.len();
        if only.is_some_and(|only| text.package.contains(only)) {
            for Found { start, phrase, advice } in found {
                let line = text.line + prose[..start].matches('\n').count();
                let path = text.path.display();
                let phrase = phrase.split_whitespace().collect::<Vec<_>>().join(" ");
                writeln!(report, "{path}:{line}: {phrase} ({advice})")?;
            }
        }
    }
    counts.retain(|(package, _), _| only.is_none_or(|only| package.contains(only)));
    for ((package, kind), count) in counts {
        let mark = if count.is_above_limit(kind) { "above the limit" } else { "" };
        let (words, density) = (count.words, count.density());
        let kind = format!("{kind:?}").to_lowercase();
        writeln!(report, "{package:<28} {kind:<9} {words:>7} words {density:>6.1} {mark}")?;
    }
    Ok(report)
}

/// Returns a violation for each package and page above the limit.
///
/// # Errors
/// Returns an error if a phrase is not a valid regular expression.
pub fn check(code: &[Source], pages: &[Source]) -> Result<Vec<Violation>> {
    let phrases = Phrases::new()?;
    let mut counts = Counts::new();
    for text in texts(code, pages) {
        let prose = text.prose();
        let count = counts.entry((text.package, text.kind)).or_default();
        count.words += words(&prose);
        count.phrases += phrases.find(&prose).len();
    }
    let above = counts.into_iter().filter(|((_, kind), count)| count.is_above_limit(*kind));
    let violation = |((package, kind), count): ((String, Kind), Count)| Violation {
        problem: format!(
            "{} phrases in {} words of its {}: see `cargo xtask language {package}`",
            count.phrases,
            count.words,
            format!("{kind:?}").to_lowercase(),
        ),
        file: package.into(),
        line: 0,
    };
    Ok(above.map(violation).collect())
}

/// Returns `count` doc comments of `code` drawn at random. See [`sample::sample`].
pub fn sample(code: &[Source], count: usize, seed: u64) -> String {
    sample::sample(&texts(code, &[]), count, seed)
}

/// Returns a report on `log`, whose lines are the subjects of commits: the lines that contain a
/// phrase, and the density of phrases in all lines.
///
/// # Errors
/// Returns an error if a phrase is not a valid regular expression.
pub fn subjects(log: &str) -> Result<String> {
    let phrases = Phrases::new()?;
    let mut count = Count::default();
    let mut report = String::new();
    for subject in log.lines() {
        let found = phrases.find(subject);
        count.words += words(subject);
        count.phrases += found.len();
        if !found.is_empty() {
            let found: Vec<_> = found.iter().map(|found| found.phrase).collect();
            writeln!(report, "{subject} ({})", found.join(", "))?;
        }
    }
    writeln!(report, "subjects of commits: {} words {:.1}", count.words, count.density())?;
    Ok(report)
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
            lines[1].starts_with("crates/new                   labels          1 words    0.0")
        );
        assert!(
            lines[2].starts_with("crates/new                   strings         5 words  400.0")
        );
        let report = report(code, page, Some("docs/")).expect("a report");
        let lines: Vec<_> = report.lines().collect();
        assert!(lines[0].starts_with("docs/new.md:4: beside (next to"), "{report}");
        assert!(
            lines[1].starts_with("docs/new.md                  page            6 words  166.7")
        );
        assert_eq!(lines.len(), 2, "{report}");
    }

    #[test]
    fn a_text_above_the_limit_is_a_violation() {
        let long = "word ".repeat(400);
        let files = |text: &str| [source("a.md", text)];
        for (text, violations) in [
            ("one beside another".to_owned(), 0),
            ("one beside another, behind it".to_owned(), 1),
            (format!("{long} beside"), 0),
            (format!("{long} beside behind"), 1),
        ] {
            assert_eq!(check(&[], &files(&text)).expect("phrases").len(), violations, "{text}");
        }
    }

    #[test]
    fn labels_have_a_wider_limit() {
        let count = Count { words: 200, phrases: 1 };
        assert!(count.is_above_limit(Kind::Strings) && !count.is_above_limit(Kind::Labels));
    }

    #[test]
    fn arguments_select_what_is_printed() {
        let parse = |text: &str| {
            Request::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let sample = Request::Sample { count: 100, seed: 7 };
        assert_eq!(parse("--sample 100 --seed 7").expect("a request"), sample);
        assert_eq!(parse("docs").expect("a request"), Request::Report(Some("docs".to_owned())));
        assert_eq!(parse("/usr").expect("a request"), Request::Elsewhere("/usr".into()));
        for wrong in ["--sample", "--sample x", "a b", "--other"] {
            parse(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn commit_subjects_with_phrases_are_listed() {
        let report = subjects("run: count bytes\nlab: mend what others left").expect("a report");
        let expected =
            "lab: mend what others left (mend, what others)\nsubjects of commits: 8 words 250.0\n";
        assert_eq!(report, expected);
    }
}
