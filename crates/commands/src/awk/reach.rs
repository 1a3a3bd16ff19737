//! Detects effects of a program other than reading its input and printing.

use super::ast::{Action, Expression, Output, Program, Source, Statement};
use super::names;
use super::walk::{Node, Walk};

/// Functions that start programs, affect running ones, flush output, load extensions, or return
/// values that differ from run to run.
const IMPURE_FUNCTIONS: &[&str] =
    &["system", "close", "fflush", "rand", "srand", "systime", "strftime", "mktime", "extension"];

/// Variables that describe the environment or the process.
const ENVIRONMENT_VARIABLES: &[&str] = &["ENVIRON", "PROCINFO"];

/// Returns whether a program redirects its output, uses `getline` or the environment, or calls one
/// of [`IMPURE_FUNCTIONS`]. Returns `true` for a program that cannot be parsed.
pub(super) fn does_more(program: &str) -> bool {
    any(program, |node| match node {
        Node::Expression(Expression::Getline(..)) => true,
        Node::Expression(Expression::Call(name, _)) => IMPURE_FUNCTIONS.contains(&name.as_str()),
        Node::Statement(Statement { action: Action::Print(print), .. }) => print.output.is_some(),
        _ => {
            let mut outer = false;
            names::uses(node, &mut |name, _| outer |= ENVIRONMENT_VARIABLES.contains(&name));
            outer
        }
    })
}

/// Returns whether a program writes files or starts other programs. Writing to `/dev/stdout` or
/// `/dev/stderr` does not count. With `may_read_commands`, a command whose output `getline` reads
/// does not count as started. Returns `true` for a program that cannot be parsed.
pub fn writes_or_starts(program: &str, may_read_commands: bool) -> bool {
    any(program, |node| match node {
        Node::Expression(Expression::Call(name, _)) => {
            ["system", "extension"].contains(&name.as_str())
        }
        Node::Expression(Expression::Getline(_, Some(source))) => {
            !may_read_commands && matches!(**source, Source::Command(_))
        }
        Node::Statement(Statement { action: Action::Print(print), .. }) => {
            print.output.as_ref().is_some_and(|output| !is_own(output))
        }
        _ => false,
    })
}

/// Returns whether a redirection leads to the program's own standard output or standard error, and
/// so is not a side effect.
fn is_own(output: &Output) -> bool {
    let own: [&[u8]; 2] = [b"/dev/stderr", b"/dev/stdout"];
    match output {
        Output::File(name) => match name.bare() {
            Expression::Text(text) => {
                text.value.as_deref().is_some_and(|value| own.contains(&value))
            }
            _ => false,
        },
        Output::Command(_) => false,
    }
}

fn any(program: &str, test: impl Fn(Node<'_>) -> bool) -> bool {
    let Ok(program) = Program::read(program) else { return true };
    let mut found = false;
    program.walk(&mut |node| found |= test(node));
    found
}
