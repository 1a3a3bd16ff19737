//! Tests positions of errors, the output before an error, limits on nesting and path length, and
//! long strings, numbers and queries.

use std::io::{self, Read};

use contend_json::error::FilterError;
use contend_json::format::Format;
use contend_json::path::MAX_PATH_BYTES;
use contend_json::path::Query;

use crate::{FORMATS, filtered, printed, refused};

#[test]
fn errors_name_the_place() {
    let refusals = [
        ("{\n  \"a\": 1,\n  \"b\": x\n}", "line 3, column 8 (byte 19): expected a value"),
        ("[\"é\u{1f600}\", tru]", "line 1, column 8 (byte 11): expected `true`, `false` or `null`"),
        ("[\"\\ud8zz\"]", "line 1, column 3 (byte 2): incomplete escape sequence"),
        ("[1,\n", "line 2, column 1 (byte 4): unexpected end of the input"),
        ("", "line 1, column 1 (byte 0): unexpected end of the input"),
        ("\u{feff}[x", "line 1, column 2 (byte 4): expected a value"),
        ("[1,]", "line 1, column 3 (byte 2): trailing comma"),
    ];
    for (input, refusal) in refusals {
        assert_eq!(refused(input.as_bytes()), refusal);
    }
    assert_eq!(refused(b"\n\"\xff\""), "line 2, column 2 (byte 2): this is not UTF-8");
    assert_eq!(refused(b"\xef\xbb["), "line 1, column 1 (byte 0): expected a value");
}

#[test]
fn input_that_cannot_be_read_is_not_taken_for_json_that_is_wrong() {
    for begun in [&b""[..], b"[", b"[\"a", b"{\"", b"[1"] {
        for path in [".", ".a"] {
            let query = Query::parse([path]).expect("a path");
            let mut reader = begun.chain(Broken);
            let result =
                contend_json::filter(&mut reader, &mut io::sink(), &query, Format::PathValue);
            let error = result.expect_err("it cannot be read");
            assert!(matches!(&error, FilterError::Read(error) if error.kind() == REFUSED));
        }
    }
}

const REFUSED: io::ErrorKind = io::ErrorKind::PermissionDenied;

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(REFUSED.into())
    }
}

#[test]
fn places_are_right_far_into_the_input() {
    let line = "{\"a\": \"é\"}\n";
    let mut input = line.repeat(100_000);
    input.push_str("  ]");
    let at = input.len() - 1;
    for sizes in [&[usize::MAX][..], &[4096], &[1, 100_000]] {
        let (output, result) = filtered(input.as_bytes(), sizes, &[".a"], Format::JsonLines);
        assert_eq!(output.len(), "\"é\"\n".len() * 100_000);
        assert_eq!(
            result.expect_err("not JSON").to_string(),
            format!("line 100001, column 3 (byte {at}): expected a value, found a closing bracket")
        );
    }
}

#[test]
fn an_error_leaves_no_half_of_a_line() {
    for (format, expected) in
        FORMATS.into_iter().zip([".[0]\t1\n", "json = [];\njson[0] = 1;\n", ""])
    {
        let (output, _) = filtered(b"[1, \"two", &[3], &["."], format);
        assert_eq!(output, expected);
    }
}

#[test]
fn nesting_is_limited_and_costs_no_stack() {
    for (open, close) in [("[", "]"), ("{\"\":", "}")] {
        let nested = |levels| format!("{}0{}", open.repeat(levels), close.repeat(levels));
        for path in [".", "..nothing", ".[0]"] {
            let deepest = nested(100_000);
            let (_, result) =
                filtered(deepest.as_bytes(), &[usize::MAX], &[path], Format::JsonLines);
            result.expect("not too deep");
            let (_, result) =
                filtered(nested(100_001).as_bytes(), &[usize::MAX], &[path], Format::JsonLines);
            let error = result.expect_err("too deep").to_string();
            assert!(error.contains("nested more than 100000 deep"), "{error}");
        }
    }
}

#[test]
fn a_path_that_is_printed_is_limited_and_others_are_not() {
    let long = "k".repeat(MAX_PATH_BYTES + 1);
    let input = format!("{{\"{long}\":[1],\"a\":2}}");
    for format in FORMATS {
        assert!(printed(&input, &[".a"], format).contains('2'));
    }
    assert_eq!(printed(&input, &[".*"], Format::JsonLines), "[1]\n2\n");
    let (_, result) = filtered(input.as_bytes(), &[usize::MAX], &[".*"], Format::Assignments);
    assert!(result.expect_err("too long").to_string().contains("is longer than 1048576 bytes"));
    // A key that shares a prefix or a suffix with the requested one does not match.
    let input = r#"{"aa":1,"a":2,"":3,"bbb\u0061":4}"#;
    assert_eq!(printed(input, &[".a"], Format::JsonLines), "2\n");
}

#[test]
fn long_strings_and_numbers_go_through_whole() {
    let text = "é\\n".repeat(200_000);
    let input = format!("{{\"a\":\"{text}\",\"b\":{}}}", "9".repeat(300_000));
    assert_eq!(printed(&input, &["."], Format::JsonLines), format!("{input}\n"));
    assert_eq!(printed(&input, &[".a"], Format::PathValue), format!(".a\t{text}\n"));
}

#[test]
fn many_ways_to_one_state_are_one() {
    // The path matches in more than 10^16 ways.
    let input = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let path = "..[]".repeat(10);
    assert_eq!(printed(&input, &[&format!("{path}.a")], Format::JsonLines), "");
    let found = printed(&input, &[&path], Format::JsonLines);
    assert_eq!(found.trim_end(), &input[10..input.len() - 10]);
}
