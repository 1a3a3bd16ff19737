//! Property test: proved scripts write the same output over the chunks of an input as over the
//! whole input, and have the claimed traits.

use std::io::Write;
use std::process::{Command as Program, Stdio};
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{Mode, per_record};

/// Expressions, some of which match the empty string, parts of characters or newlines.
const EXPRESSIONS: &[&str] = &[
    "a", "b*", ".", "^a", "b$", "[ab]", "[^a]", "x*", "é", "\\n", "\\(a\\)b", "a\\|b", "^$", "\\r",
    "\\x61", "",
];

fn address() -> impl Strategy<Value = String> {
    let regex = (select(EXPRESSIONS), select(&["", "I", "M"][..]))
        .prop_map(|(expression, flag)| format!("/{expression}/{flag}"));
    let rare =
        select(&["1", "2", "$", "0~2", "1,2", "/a/,/b/", "/a/,+1", "/b/,~2", "0,/a/", "2,$"][..])
            .prop_map(str::to_owned);
    let one = prop_oneof![6 => Just(String::new()), 6 => regex, 3 => rare];
    (one, select(&["", "", "", "!"][..])).prop_map(|(one, negation)| one + negation)
}

fn substitution() -> impl Strategy<Value = String> {
    let replacements =
        &["", "-", "&&", "\\n", "x\\\ny", "\\U&", "\\xc3", "\\x00", "é", "\\cJ", "[&]"][..];
    let flags = &["", "g", "p", "2", "I", "gI", "M", "2g", "gp"][..];
    (select(EXPRESSIONS), select(replacements), select(flags))
        .prop_map(|(from, to, flags)| format!("s/{from}/{to}/{flags}"))
}

/// Generates commands, most of which the proof accepts. Branches lead only forwards, so that
/// scripts end.
fn command() -> impl Strategy<Value = String> {
    let plain = &["p", "P", "d", "D", "l", "l 4", "z", "F", "G", "g", "b", "t", "T", "be"][..];
    let forbidden = &["n", "N", "h", "H", "x", "=", "q", "Q"][..];
    let texts = &["a x", "i\\\nx\\\ny", "c text", "a\\\n  x", "i é", "c\\\n\\x41"][..];
    let alone = prop_oneof![
        6 => substitution(),
        5 => select(plain).prop_map(str::to_owned),
        3 => select(forbidden).prop_map(str::to_owned),
        2 => select(texts).prop_map(|text| format!("{text}\n")),
        1 => select(&["y/ab/ba/", "y/a/\\n/", "y/b/é/"][..]).prop_map(str::to_owned),
    ];
    let block = (address(), vec((address(), alone.clone()), 1..3)).prop_map(|(outer, inner)| {
        let inner: Vec<_> = inner.into_iter().map(|(address, text)| address + &text).collect();
        format!("{outer}{{{}\n}}", inner.join("\n"))
    });
    let alone = (address(), alone).prop_map(|(address, text)| address + &text);
    prop_oneof![6 => alone, 1 => block]
}

fn script() -> impl Strategy<Value = String> {
    let beginning = select(&["", "", "", ":l\ns/aa/a/\ntl\n", "/a/!b\n", "# x\n", "#n\n"][..]);
    (beginning, vec(command(), 1..4))
        .prop_map(|(beginning, commands)| format!("{beginning}{}\n:e", commands.join("\n")))
}

const LINES: &[&[u8]] = &[
    b"",
    b"a",
    b"ab",
    b"aab b",
    b"xbx",
    b"b\r",
    b"a\0b",
    b"\xff\xc3",
    "é€".as_bytes(),
    b"\\n",
    b"AB",
];

const ENDS: &[&[u8]] = &[b"\n", b"\n", b"\0"];

/// Generates unusual lines that end with a newline or NUL. The last line may lack its terminator.
pub(super) fn input() -> impl Strategy<Value = Vec<u8>> {
    let piece = (select(LINES), select(ENDS));
    (vec(piece, 0..8), any::<bool>()).prop_map(|(pieces, ends)| {
        let mut input: Vec<u8> =
            pieces.iter().flat_map(|(line, end)| [*line, *end].concat()).collect();
        if !ends {
            input.pop();
        }
        input
    })
}

/// Splits an input into chunks, of which the first may be empty. A chunk begins at each record
/// whose element of `cuts`, repeated cyclically, is `true`. `end` is the terminator of records.
pub(super) fn parts(input: &[u8], end: u8, cuts: &[bool]) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for (place, record) in input.split_inclusive(|&byte| byte == end).enumerate() {
        if cuts[place % cuts.len()] {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.extend_from_slice(record);
        }
    }
    parts
}

/// Runs the installed `sed`, and returns its output and whether it succeeded.
pub(super) fn run(script: &str, mode: Mode, input: &[u8]) -> (Vec<u8>, bool) {
    let options = [(mode.quiet, "-n"), (mode.extended, "-E"), (mode.null_data, "-z")];
    let mut child = Program::new("sed")
        .args(options.iter().filter(|(is_set, _)| *is_set).map(|(_, option)| option))
        // Prevents side effects if the proof is wrong.
        .args(["--sandbox", "-e", script])
        .env("LC_ALL", if mode.multibyte { "C.UTF-8" } else { "C" })
        .env_remove("POSIXLY_CORRECT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sed");
    // `sed` may fail without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("sed");
    (output.stdout, output.status.success())
}

/// Returns whether the installed `sed` is GNU `sed`. Only the first call runs it, and prints a line
/// to standard error if it is not.
pub(super) fn is_gnu_sed() -> bool {
    static IS_GNU: LazyLock<bool> = LazyLock::new(|| {
        let output = Program::new("sed").arg("--version").output();
        let is_gnu = output.is_ok_and(|output| output.stdout.starts_with(b"sed (GNU sed)"));
        if !is_gnu {
            let _ = writeln!(std::io::stderr(), "SKIPPED sed::state: there is no GNU sed");
        }
        is_gnu
    });
    *IS_GNU
}

/// Checks the traits that `per_record` claims against the outputs for single records.
fn check_traits(script: &str, mode: Mode, input: &[u8]) -> Result<(), TestCaseError> {
    let known = per_record(script, mode).expect("proved");
    let end = if mode.null_data { 0 } else { b'\n' };
    for record in input.split_inclusive(|&byte| byte == end) {
        let (output, _) = run(script, mode, record);
        let records = output.split_inclusive(|&byte| byte == end).count();
        let ends = record.ends_with(&[end]);
        prop_assert!(!known.one_to_one || !ends || records == 1, "one to one");
        prop_assert!(!known.at_most_once || records <= 1, "at most once");
        let own = output.is_empty() || output == record;
        prop_assert!(!known.writes_at_most_its_line || own, "its own line");
        let was_text = std::str::from_utf8(record).is_ok();
        let is_text = std::str::from_utf8(&output).is_ok();
        prop_assert!(known.may_split_characters || !was_text || is_text, "text");
        let has_nul = |bytes: &[u8]| bytes.contains(&0);
        let new_nul = !mode.null_data && has_nul(&output) && !has_nul(record);
        prop_assert!(known.may_write_nul || !new_nul, "NUL");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: proptest::test_runner::RngSeed::Fixed(20),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn chunks_print_what_the_whole_input_prints(
        script in script(),
        input in input(),
        cuts in vec(any::<bool>(), 1..6),
        (quiet, extended, null_data, multibyte) in any::<(bool, bool, bool, bool)>(),
    ) {
        if !is_gnu_sed() {
            return Ok(());
        }
        let mode = Mode { quiet, extended, null_data, names_files: false, multibyte };
        if per_record(&script, mode).is_err() {
            return Ok(());
        }
        let (whole, succeeds) = run(&script, mode, &input);
        let end = if null_data { 0 } else { b'\n' };
        let mut joined = Vec::new();
        for part in parts(&input, end, &cuts) {
            let (output, part_succeeds) = run(&script, mode, &part);
            prop_assert!(part_succeeds == succeeds, "status");
            joined.extend(output);
        }
        prop_assert_eq!(joined, whole);
        if succeeds {
            check_traits(&script, mode, &input)?;
        }
    }
}
