//! Rule: packages of the workspace depend on each other only as the tables allow.

use super::Violation;
use crate::manifest::Package;

/// All packages, each with the packages of the workspace on which it may depend.
const LAYERS: &[(&str, &[&str])] = &[
    ("contend-sys", &[]),
    ("contend-record", &[]),
    ("contend-json", &[]),
    ("contend-callback", &["contend-sys"]),
    ("contend-commands", &["contend-record"]),
    ("contend-shell", &["contend-sys", "contend-commands"]),
    ("contend-profile", &["contend-sys", "contend-record", "contend-commands", "contend-shell"]),
    ("contend-parallel", &["contend-sys", "contend-record", "contend-commands", "contend-shell"]),
    (
        "contend-advise",
        &["contend-sys", "contend-record", "contend-commands", "contend-shell", "contend-parallel"],
    ),
    ("contend-doctor", &["contend-sys", "contend-record"]),
    ("contend-lab", &["contend-sys", "contend-record", "contend-callback"]),
    ("contend-report", &["contend-record"]),
    ("contend-serve", &["contend-record", "contend-report"]),
    (
        "contend",
        &[
            "contend-sys",
            "contend-record",
            "contend-json",
            "contend-callback",
            "contend-commands",
            "contend-shell",
            "contend-profile",
            "contend-parallel",
            "contend-advise",
            "contend-lab",
            "contend-doctor",
            "contend-report",
            "contend-serve",
        ],
    ),
    ("contend-bench", &["contend-sys", "contend-record"]),
    ("xtask", &[]),
];

/// Packages that are programs rather than libraries.
const PROGRAMS: &[&str] = &["contend", "contend-bench", "xtask"];
/// Dependencies that only programs may have: a library defines its own error types and has no
/// command line.
const PROGRAM_DEPENDENCIES: &[&str] = &["anyhow", "clap"];

/// Finds dependencies that the tables do not allow, including build and development dependencies. A
/// package without a row is also a violation.
pub fn check(packages: &[Package]) -> Vec<Violation> {
    packages.iter().flat_map(violations_of_package).collect()
}

fn violations_of_package(package: &Package) -> Vec<Violation> {
    let violation =
        |problem| Violation { file: package.folder.join("Cargo.toml"), line: 0, problem };
    let name = &package.name;
    let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| known == name) else {
        return vec![violation(format!("{name} has no row in xtask/src/check/layers.rs"))];
    };
    let is_forbidden = |dependency: &&String| {
        let dependency = dependency.as_str();
        let is_ours = LAYERS.iter().any(|(known, _)| *known == dependency);
        let is_library = !PROGRAMS.contains(&name.as_str());
        (is_ours && !allowed.contains(&dependency))
            || (is_library && PROGRAM_DEPENDENCIES.contains(&dependency))
    };
    let forbidden = package.dependencies.iter().filter(is_forbidden);
    forbidden
        .map(|dependency| violation(format!("{name} must not depend on {dependency}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn problems(name: &str, dependencies: &[&str]) -> Vec<String> {
        let package = Package {
            folder: PathBuf::from("crates/x"),
            name: name.to_owned(),
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        };
        check(&[package]).into_iter().map(|violation| violation.problem).collect()
    }

    #[test]
    fn a_dependency_against_the_layers_is_a_violation() {
        let found = problems("contend-report", &["serde", "contend-record", "contend-sys"]);
        assert_eq!(found, ["contend-report must not depend on contend-sys"]);
    }

    #[test]
    fn an_allowed_dependency_is_not_a_violation() {
        assert!(problems("contend-lab", &["tokio", "contend-sys", "contend-callback"]).is_empty());
    }

    #[test]
    fn libraries_do_not_depend_on_clap_or_anyhow() {
        let found = problems("contend-parallel", &["clap", "thiserror", "anyhow"]);
        let expected =
            ["clap", "anyhow"].map(|name| format!("contend-parallel must not depend on {name}"));
        assert_eq!(found, expected);
        assert!(problems("contend", &["clap", "anyhow"]).is_empty());
    }

    #[test]
    fn a_new_package_needs_a_row() {
        assert_eq!(
            problems("contend-new", &[]),
            ["contend-new has no row in xtask/src/check/layers.rs"]
        );
    }

    #[test]
    fn the_table_has_no_cycle() {
        for (index, (name, allowed)) in LAYERS.iter().enumerate() {
            let before: Vec<_> = LAYERS[..index].iter().map(|(name, _)| *name).collect();
            assert!(allowed.iter().all(|other| before.contains(other)), "{name}");
        }
    }
}
