//! Rule: no decision depends on a comparison with an English sentence, or on a search for one.
//!
//! Sentences change whenever their wording is edited. Decisions depend on enums, fields or numbers
//! instead, and reports turn these into text. Tests may search for sentences.

use super::literals::literals;
use super::names::{is_of_tests, test_files};
use super::{Source, Violation};

/// Code that precedes a string which is compared or searched for.
const DECISION_CODE: [&str; 12] = [
    ".contains(",
    ".starts_with(",
    ".ends_with(",
    ".find(",
    ".rfind(",
    ".split(",
    ".split_once(",
    ".rsplit_once(",
    ".strip_prefix(",
    ".strip_suffix(",
    "== ",
    "!= ",
];

/// Sentences printed by other programs, which provide the information in no other form.
const FOREIGN_SENTENCES: &[&str] = &[
    // Printed by PaSh when it runs a script unchanged.
    "No region was parallelized",
];

/// Minimum number of words in a sentence.
const MIN_SENTENCE_WORDS: usize = 3;

/// Finds sentences that code compares or searches for, outside of tests.
pub fn check(sources: &[Source]) -> Vec<Violation> {
    let tests = test_files(sources);
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| !is_of_tests(&source.path, &tests)) {
        let strings = literals(&source.text).strings.into_iter();
        violations.extend(
            strings
                .filter(|(_, text)| is_sentence(text) && !FOREIGN_SENTENCES.contains(text))
                .filter_map(|(line, text)| {
                    let start = text.as_ptr() as usize - source.text.as_ptr() as usize;
                    let before = source.text[..start].trim_end_matches(['"', '#', 'r', 'b', '&']);
                    let decides = DECISION_CODE.iter().any(|decision| before.ends_with(decision));
                    decides.then(|| Violation {
                        file: source.path.clone(),
                        line,
                        problem: format!(
                            "\"{text}\" is searched for or compared: decide by an enum or a field"
                        ),
                    })
                }),
        );
    }
    violations
}

/// Returns whether a text has enough English words for a sentence.
fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    text.split(' ').filter(is_word).count() >= MIN_SENTENCE_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(code: &str) -> usize {
        let path = "crates/report/src/new.rs".into();
        check(&[Source { path, text: format!("fn f() {{ {code} }}") }]).len()
    }

    #[test]
    fn a_sentence_that_is_searched_or_compared_is_a_violation() {
        for code in [
            r#"if why.contains("commands failed over a part") {}"#,
            r#"if why == "it reads its input once" {}"#,
            r#"let rest = reason.strip_prefix("as the stage says");"#,
            r##"if why.starts_with(r#"it has "quotes" in it"#) {}"##,
        ] {
            assert_eq!(found(code), 1, "{code}");
        }
    }

    #[test]
    fn other_texts_and_uses_are_not_violations() {
        for code in [
            r#"let why = "commands failed over a part";"#,
            r#"if setup.contains("pipefail") {}"#,
            r#"if text.contains("a b") {}"#,
            r#"if line.starts_with("-x -y -z 1 2 3") {}"#,
        ] {
            assert_eq!(found(code), 0, "{code}");
        }
        let test = "#[cfg(test)] mod tests { fn f() { why.contains(\"one two three\"); } }";
        assert_eq!(check(&[Source { path: "crates/a/src/a.rs".into(), text: test.into() }]), []);
    }
}
