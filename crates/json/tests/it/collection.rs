//! Filters the texts in `testdata/json`: valid JSON, invalid JSON, and texts whose validity RFC
//! 8259 leaves open.

use std::fs;
use std::path::Path;

use contend_json::format::Format;

use crate::{FORMATS, filtered, printed, refused};

/// Returns the names and contents of the texts in a folder of `testdata/json`, sorted by name.
fn texts(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json").join(folder);
    let entries = fs::read_dir(path).expect("the collection");
    let mut texts: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("readable");
            let name = entry.file_name().into_string().expect("plain name");
            (name, fs::read(entry.path()).expect("readable"))
        })
        .collect();
    texts.sort();
    texts
}

/// Returns whether a text is accepted, after checking that several paths give the same result:
/// skipped values are validated like printed ones.
fn is_accepted(name: &str, text: &[u8]) -> bool {
    let ends = [".", ".nothing", "..nothing", ".[].nothing"].map(|path| {
        let (_, result) = filtered(text, &[usize::MAX], &[path], Format::JsonLines);
        result.map_err(|error| error.to_string())
    });
    assert!(ends.iter().all(|end| *end == ends[0]), "{name}: {ends:?}");
    ends[0].is_ok()
}

#[test]
fn valid_json_is_accepted() {
    let texts = texts("accept");
    assert!(texts.len() >= 60);
    for (name, text) in texts {
        assert!(is_accepted(&name, &text), "{name}");
    }
}

#[test]
fn invalid_json_is_rejected() {
    let texts = texts("reject");
    assert!(texts.len() >= 100);
    for (name, text) in texts {
        assert!(!is_accepted(&name, &text), "{name}");
    }
}

#[test]
fn undefined_cases_are_accepted_except_lone_surrogates() {
    for (name, text) in texts("either") {
        assert_eq!(is_accepted(&name, &text), !name.starts_with("surrogate-"), "{name}");
    }
}

#[test]
fn values_are_those_that_serde_json_reads() {
    for (name, text) in texts("accept") {
        let text = String::from_utf8(text).expect("UTF-8");
        let line = printed(&text, &["."], Format::JsonLines);
        assert_eq!(line.find('\n'), Some(line.len() - 1), "{name}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
        assert_eq!(read(&line), read(&text), "{name}");
    }
}

#[test]
fn output_and_errors_do_not_depend_on_read_sizes() {
    let all = ["accept", "reject", "either"].into_iter().flat_map(texts);
    for (name, text) in all.filter(|(_, text)| text.len() < 10_000) {
        for format in FORMATS {
            for paths in [&["."][..], &["..a", ".[1]", "..menu.*"]] {
                let [whole, pieces @ ..] = [&[usize::MAX][..], &[1], &[2], &[3], &[7, 1], &[64, 5]]
                    .map(|sizes| {
                        let (output, result) = filtered(&text, sizes, paths, format);
                        (output, result.map_err(|error| error.to_string()))
                    });
                for piece in pieces {
                    assert_eq!(piece, whole, "{name}");
                }
            }
        }
    }
}

#[test]
fn undefined_cases_have_a_defined_result() {
    let lines = |text: &str| printed(text, &["."], Format::JsonLines);
    let tsv = |text: &str| printed(text, &["."], Format::PathValue);
    // A byte order mark at the beginning of the input is not printed.
    assert_eq!(lines("\u{feff}[1]"), "[1]\n");
    // A surrogate pair is one character; half of a pair is an error.
    assert_eq!(tsv(r#""\uD83D\ude00""#), ".\t\u{1f600}\n");
    assert!(refused(br#"["\ud83d\u0041"]"#).contains("unpaired surrogate"));
    // Members with the same key are all printed.
    assert_eq!(printed(r#"{"a":1,"\u0061":2}"#, &[".a"], Format::PathValue), ".a\t1\n.a\t2\n");
    // Numbers are printed as written.
    let numbers = "[1.0,1E400,-0,9007199254740993,0.10]\n";
    assert_eq!(lines(numbers), numbers);
    // Texts follow one another; only numbers and words need white space between them.
    assert_eq!(lines("1 \"a\"true\n[]{}null"), "1\n\"a\"\ntrue\n[]\n{}\nnull\n");
}
