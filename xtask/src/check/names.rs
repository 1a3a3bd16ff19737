//! Rule: only `crates/lab` refers to experiments by name.
//!
//! An experiment's row in the lab's table determines how its measurements are processed, so a new
//! experiment needs no change elsewhere. Tests may name experiments.

use std::path::{Path, PathBuf};

use super::literals::literals;
use super::{Source, Violation};
use crate::process::print_status;

/// Files that still name experiments. Do not add files; remove those that no longer do.
const BASELINE: &[&str] = &["bench/src/bin/bench-lab.rs"];

/// Returns the families of experiments, which are the prefixes of names such as `units/create`,
/// from the generated page that lists all experiments.
pub fn families(experiments: &str) -> Vec<String> {
    let names = experiments.lines().filter_map(|line| line.strip_prefix("## "));
    let mut families: Vec<_> =
        names.filter_map(|name| name.split_once('/')).map(|(family, _)| family.into()).collect();
    families.dedup();
    families
}

/// Finds names of experiments in code outside of the lab, of tests, and of the files in `BASELINE`.
pub fn check(sources: &[Source], families: &[String]) -> Vec<Violation> {
    check_with(sources, families, BASELINE)
}

fn check_with(sources: &[Source], families: &[String], baseline: &[&str]) -> Vec<Violation> {
    let tests = test_files(sources);
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| !is_exempt(&source.path, &tests)) {
        let found = names_in(source, families);
        let is_listed = baseline.iter().any(|path| source.path == Path::new(path));
        if is_listed && found.is_empty() {
            let path = source.path.display();
            print_status(&format!(
                "note: {path} names no experiment now: take it off the baseline"
            ));
        }
        if !is_listed {
            violations.extend(found);
        }
    }
    violations
}

fn names_in(source: &Source, families: &[String]) -> Vec<Violation> {
    let strings = literals(&source.text).strings;
    let names = strings.into_iter().filter(|(_, text)| is_name(text, families));
    let violation = |(line, text)| Violation {
        file: source.path.clone(),
        line,
        problem: format!(
            "\"{text}\" names experiments: move the decision to a field of the experiment's row in \
             crates/lab"
        ),
    };
    names.map(violation).collect()
}

/// Returns whether a string is `family/name` with a known family, or a prefix or pattern of such
/// names.
fn is_name(text: &str, families: &[String]) -> bool {
    let Some((family, name)) = text.split_once('/') else { return false };
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-+*".contains(&byte);
    name.bytes().all(is_of_name) && families.iter().any(|known| known == family)
}

fn is_exempt(path: &Path, tests: &[PathBuf]) -> bool {
    path.starts_with("crates/lab") || is_of_tests(path, tests)
}

/// Returns whether a file belongs to tests. `tests` is the result of [`test_files`].
pub fn is_of_tests(path: &Path, tests: &[PathBuf]) -> bool {
    let in_tests = path.iter().any(|part| part == "tests" || part == "tests.rs");
    in_tests
        || tests.iter().any(|test| path.starts_with(test) || *path == test.with_extension("rs"))
}

/// Returns the paths of modules declared for tests only, without `.rs`.
pub fn test_files(sources: &[Source]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for Source { path, text } in sources {
        let stem = path.file_stem().unwrap_or_default();
        let is_root = ["mod", "lib", "main"].iter().any(|name| stem == *name);
        let base = if is_root { path.with_file_name("") } else { path.with_extension("") };
        files.extend(literals(text).test_modules.iter().map(|module| base.join(module)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: PathBuf::from(path), text: text.to_owned() }
    }

    fn violations(sources: &[Source], baseline: &[&str]) -> Vec<String> {
        let families = families("# Experiments\n## units/create\n## units/memory\n## handoff/0\n");
        assert_eq!(families, ["units", "handoff"]);
        let found = check_with(sources, &families, baseline);
        found.iter().map(|violation| violation.file.display().to_string()).collect()
    }

    #[test]
    fn a_name_or_a_prefix_in_another_crate_is_a_violation() {
        for text in ["\"units/create\"", "\"handoff/\"", "r\"units/*\"", "\"handoff/0+\""] {
            let bad = [source("crates/report/src/new.rs", &format!("fn f() {{ g({text}) }}"))];
            assert_eq!(violations(&bad, &[]), ["crates/report/src/new.rs"], "{text}");
            assert!(violations(&bad, &["crates/report/src/new.rs"]).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_lab_and_tests_may_name_experiments() {
        let name = "const A: &str = \"units/create\";";
        let sources = [
            source("crates/lab/src/plan.rs", name),
            source("crates/report/src/tests.rs", name),
            source("crates/contend/tests/it/lab.rs", name),
            source("crates/report/src/lib.rs", "#[cfg(test)]\nmod sample;"),
            source("crates/report/src/sample.rs", name),
            source(
                "crates/report/src/page.rs",
                "#[cfg(test)]\nmod t { const A: &str = \"units/x\"; }",
            ),
        ];
        assert!(violations(&sources, &[]).is_empty());
    }

    #[test]
    fn other_text_is_not_a_name() {
        for text in ["units", "a units/create", "units/create costs", "unit/create", "/units/x"] {
            let good = [source("crates/report/src/new.rs", &format!("\"{text}\""))];
            assert!(violations(&good, &[]).is_empty(), "{text}");
        }
    }
}
