//! Shared parts of the tests. Tests whose programs are not installed are skipped.

use std::io::Write as _;

use crate::pipelines::{program, stages};

/// Returns whether the programs of `pipeline` are installed. If not, prints that `test` is skipped.
/// Prints directly to standard error, which the test harness does not capture, so that CI can count
/// skipped tests.
pub fn installed(test: &str, pipeline: &str) -> bool {
    let Some(missing) = stages(pipeline).into_iter().map(program).find(|name| !on_path(name))
    else {
        return true;
    };
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no {missing} here");
    false
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
    })
}
