//! Tests that a program that never ends is killed at its deadline.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::support::{Command, output, processes_with, wait_until};

#[test]
fn an_endless_program_is_killed_with_its_group_and_its_output_shown() {
    let sleep = format!("sleep {}", 4_000_000 + std::process::id());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("echo so far; {sleep} & wait")]);
    command.deadline(Duration::from_secs(5));
    let failed = catch_unwind(AssertUnwindSafe(|| output(&mut command))).expect_err("it fails");
    let message = failed.downcast::<String>().expect("a text");
    assert!(message.contains("not over after 5s") && message.contains("so far\n"), "{message}");
    wait_until("nothing is left", || processes_with(&sleep).is_empty());
}
