//! Compares every operator with the program that it replaces.

use std::io::{Seek as _, Write as _};
use std::process::Command;

use contend_commands::Simple;
use contend_shell::environment::Environment;

use super::{EXAMPLES, Operator};
use crate::plan::classes::{Class, Subject, classify};

/// Number of random inputs for each command in each locale.
const INPUTS: u64 = 12;

/// Returns the operator of a command, or `None` if it has none. Panics unless the command is per
/// record or combinable on this machine.
fn operator(text: &str, locale: &str) -> Option<Operator> {
    let simple = Simple::read(text).expect("a simple command");
    let environment = Environment::of_this_machine(&[simple.program.text.as_str()], locale);
    match classify(&Subject { simple: &simple, environment: &environment }) {
        Class::PerRecord(class) => class.operator,
        Class::Combinable(class) => class.each.operator,
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns the output and exit code of a program that reads the input from a pipe.
fn of_program(text: &str, locale: &str, input: &[u8]) -> (Vec<u8>, Option<i32>) {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(input).expect("room");
    file.rewind().expect("a file");
    // As in a group, standard input is a pipe.
    let cat = Command::new("cat").stdin(file).stdout(std::process::Stdio::piped()).spawn();
    let mut cat = cat.expect("cat");
    let stdin = cat.stdout.take().expect("a pipe");
    let mut program = Command::new("sh");
    program.args(["-c", text]).env("LC_ALL", locale).stdin(stdin);
    let ran = program.output().expect("a program");
    assert!(ran.stderr.is_empty(), "{text}: {}", ran.stderr.escape_ascii());
    cat.wait().expect("cat ends");
    (ran.stdout, ran.status.code())
}

/// Returns the output and exit code of an operator over the input, cut into blocks of random size.
fn of_operator(
    operator: &Operator,
    mut input: &[u8],
    random: &mut fastrand::Rng,
) -> (Vec<u8>, Option<i32>) {
    let (mut operation, mut output) = (operator.start(), Vec::new());
    while !input.is_empty() {
        let (block, rest) = input.split_at(random.usize(1..=input.len()));
        operation.push(block, &mut output);
        input = rest;
    }
    let status = operation.finish(&mut output);
    (output, Some(status))
}

/// Returns random bytes of text, runs of blanks, control characters, and invalid UTF-8.
fn input(random: &mut fastrand::Rng) -> Vec<u8> {
    let length = random.choice([0, 1, 2, 50, 3000]).expect("one of them");
    let bytes = b"aabbcczzAZ  \n\n\n\t\r\0,-[]\\\x7f\x80\xc3\xa9\xff";
    std::iter::repeat_with(|| random.choice(*bytes).expect("one of them")).take(length).collect()
}

#[test]
fn operators_write_what_programs_write() {
    let mut random = fastrand::Rng::with_seed(26);
    for (is_of_row, examples) in EXAMPLES {
        assert!(!examples.is_empty(), "an operator that nothing compares with its program");
        for (text, locale) in examples.iter().flat_map(|text| [(text, "C"), (text, "C.UTF-8")]) {
            let operator = operator(text, locale).unwrap_or_else(|| panic!("{text}: no operator"));
            assert!(is_of_row(&operator), "{text}: {operator:?}");
            for _ in 0..INPUTS {
                let input = input(&mut random);
                let expected = of_program(text, locale, &input);
                let found = of_operator(&operator, &input, &mut random);
                assert_eq!(found, expected, "{locale}: {text} of {}", input.escape_ascii());
            }
        }
    }
}

#[test]
fn plans_carry_operators_to_other_machines() {
    for text in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
        let operator = operator(text, "C").expect("an operator");
        let shipped = serde_json::to_string(&operator).expect("data");
        assert_eq!(serde_json::from_str::<Operator>(&shipped).expect("the same data"), operator);
    }
}

#[test]
fn locale_dependent_options_have_no_operator() {
    for text in ["wc", "wc -w", "wc -m", "wc -lm", "wc -L", "grep a", "cut -c 1", "rev"] {
        assert_eq!(operator(text, "C.UTF-8"), None, "{text}");
    }
}
