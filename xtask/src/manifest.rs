//! Reads the name and dependencies of packages from their `Cargo.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A package of the workspace, as described by its `Cargo.toml`.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// The folder of the package, relative to the workspace's root.
    pub folder: PathBuf,
    /// The name in `Cargo.toml`.
    pub name: String,
    /// The names of all dependencies, including build and development dependencies.
    pub dependencies: Vec<String>,
}

impl Package {
    fn parse(folder: &Path, text: &str) -> Self {
        let mut package =
            Self { folder: folder.to_owned(), name: String::new(), dependencies: Vec::new() };
        let mut section = "";
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = header;
                // `[dependencies.NAME]` declares one dependency.
                if let Some((_, name)) = section.rsplit_once("dependencies.") {
                    package.dependencies.push(name.to_owned());
                }
            } else if section.ends_with("dependencies") {
                let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
                if !name.is_empty() && !name.starts_with('#') {
                    package.dependencies.push(name.trim_matches('"').to_owned());
                }
            } else if section == "package"
                && let Some((key, value)) = line.split_once('=')
                && key.trim() == "name"
            {
                value.trim().trim_matches('"').clone_into(&mut package.name);
            }
        }
        package
    }
}

/// Returns all packages of the workspace, ordered by folder.
///
/// # Errors
/// Returns an error if `crates` or a manifest cannot be read.
pub fn packages() -> Result<Vec<Package>> {
    let mut folders = vec![PathBuf::from("bench"), PathBuf::from("xtask")];
    for entry in std::fs::read_dir("crates").context("cannot read crates")? {
        folders.push(entry.context("cannot read crates")?.path());
    }
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders.sort();
    folders.iter().map(|folder| read(folder)).collect()
}

fn read(folder: &Path) -> Result<Package> {
    let path = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Package::parse(folder, &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_dependency_is_found() {
        let text = r#"
            [package]
            name = "contend-x"
            [features]
            uring = ["dep:io-uring"]
            [dependencies]
            # contend-no = "1"
            contend-a.workspace = true
            contend-b = { path = "../b" }
            [dependencies.contend-c]
            path = "../c"
            name = "not-the-package"
            [dev-dependencies]
            "contend-d" = "1"
            [target.'cfg(loom)'.dependencies]
            loom = "0.7"
            [lints]
            workspace = true
        "#;
        let package = Package::parse(Path::new("crates/x"), text);
        assert_eq!(package.name, "contend-x");
        let all = ["contend-a", "contend-b", "contend-c", "contend-d", "loom"];
        assert_eq!(package.dependencies, all);
    }
}
