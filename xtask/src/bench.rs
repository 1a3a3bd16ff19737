//! `cargo xtask bench`: runs the benchmark programs in `bench/src/bin/`, and the callback runtime's
//! benchmark.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::process::{cargo, print_status, run as run_command};

/// Builds contend and the benchmark programs with the profile used for published measurements, and
/// runs the program that the first argument names. For `callback`, runs the callback runtime's
/// benchmark instead. Without arguments, lists the benchmarks.
///
/// # Errors
/// Returns an error if there is no such benchmark, or if a build or the benchmark fails.
pub fn run(arguments: &[String]) -> Result<()> {
    let programs = programs(Path::new("bench/src/bin"))?;
    let Some((name, rest)) = arguments.split_first() else {
        print_status("cargo xtask bench NAME [ARGS]; `bench NAME --help` describes each. Names:");
        programs.iter().map(String::as_str).chain(["callback"]).for_each(print_status);
        return Ok(());
    };
    if name == "callback" {
        return run_command(cargo().args("bench -p contend-callback --".split(' ')).args(rest));
    }
    let program = format!("bench-{}", name.strip_prefix("bench-").unwrap_or(name));
    if !programs.contains(&program) {
        bail!("no benchmark is called {name}: there are {}, callback", programs.join(", "));
    }
    run_command(cargo().args("build --profile dist -p contend -p contend-bench".split(' ')))?;
    run_command(&mut invocation(&program, rest))
}

fn invocation(program: &str, arguments: &[String]) -> Command {
    let mut command = cargo();
    command.args("run --quiet --profile dist -p contend-bench --bin".split(' '));
    command.arg(program).arg("--").args(arguments);
    command
}

/// Returns the sorted names of the files in the given folder, without extensions: each is the
/// source of a program.
fn programs(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let cannot = || format!("cannot read {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_found() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/src/bin");
        let programs = programs(&folder).expect("the folder is there");
        assert!(programs.contains(&"bench-run".to_owned()), "{programs:?}");
    }
}
