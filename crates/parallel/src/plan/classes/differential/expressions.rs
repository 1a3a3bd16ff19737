//! Tests expressions that are classified as plain: in the C locale, they must match the same ASCII
//! text as in UTF-8.

use contend_commands::regex::plain;
use contend_shell::environment::in_path;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::programs::Program;
use super::{requested_cases, skip};

/// Number of expressions to try, multiplied by `PROPTEST_CASES` if that is set.
const CASES: u32 = 150;

/// Elements of plain and other expressions. More than half of the expressions made of them are
/// plain.
const PIECES: &[&str] = &[
    "a",
    "b",
    "A",
    "z",
    "x1",
    "_",
    " ",
    ",",
    ".",
    ".*",
    "*",
    "[a-c]",
    "[^b]",
    "[A-Z]",
    "[^a-z ]",
    "[[:alpha:]]",
    "[^[:space:]1]",
    "[-a]",
    "[]b]",
    "^",
    "$",
    "\\.",
    "\\(",
    "\\)",
    "\\|",
    "\\+",
    "\\?",
    "\\{1,2\\}",
    "(",
    ")",
    "|",
    "+",
    "?",
    "{2}",
    "\\t",
];

/// Returns `sed` and `grep` commands that use an expression.
fn commands(expression: &str, extended: bool) -> [(&'static str, Vec<String>); 5] {
    let kind = if extended { "-E" } else { "-e" };
    let sed = |script: String| vec!["-n".to_owned(), kind.to_owned(), script];
    let grep = |option: &str| {
        let kind = if extended { "-E" } else { "-G" };
        [option, kind, "-e", expression].map(str::to_owned).to_vec()
    };
    [
        ("sed", sed(format!("s/{expression}/<&>/gp"))),
        ("sed", sed(format!("s/{expression}/<&>/2p"))),
        ("sed", sed(format!("/{expression}/!p"))),
        ("grep", grep("-o")),
        ("grep", grep("-v")),
    ]
}

fn case() -> impl Strategy<Value = (String, bool, String)> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 1..8);
    let expression = (pieces.prop_map(|pieces| pieces.concat()), any::<bool>());
    let plain = expression
        .prop_filter("it is to be plain", |(text, extended)| plain(text, *extended).is_some());
    let lines = prop::collection::vec("[abcxzABZ1_ ,.\\t^$+-]{0,12}", 1..12);
    (plain, lines).prop_map(|((text, extended), lines)| (text, extended, lines.join("\n") + "\n"))
}

#[test]
fn plain_expressions_match_the_same_in_c() {
    if in_path("sed").is_none() || in_path("grep").is_none() {
        return skip("there is no sed or no grep");
    }
    let config = Config {
        cases: requested_cases().map_or(CASES, |cases| cases * CASES),
        failure_persistence: None,
        max_global_rejects: u32::MAX,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(&case(), |(expression, extended, text)| {
        for (program, arguments) in commands(&expression, extended) {
            let ran = |locale| {
                let arguments = arguments.iter().map(String::as_str);
                Program::new(program, arguments, locale).run(text.as_bytes())
            };
            let (in_c, in_utf8) = (ran("C"), ran("C.UTF-8"));
            if in_c != in_utf8 && in_c.errors.is_empty() {
                let said = format!("{program} {arguments:?}: {in_c:?}, in UTF-8 {in_utf8:?}");
                return Err(TestCaseError::fail(said));
            }
        }
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}
