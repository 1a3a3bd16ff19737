//! `cargo xtask generate`: writes the files that are generated from the sources.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::process::{cargo, output, print_status, run as run_command, target_dir};

/// Arguments of `contend generate`, and the committed files with their output. Tests compare these
/// files with the sources.
const COMMITTED: [(&str, &str); 12] = [
    ("schema pipe", "schemas/contend.pipe-1.json"),
    ("schema lab", "schemas/contend.lab-1.json"),
    ("schema run", "schemas/contend.run-1.json"),
    ("schema compare", "schemas/contend.compare-1.json"),
    ("schema versus", "schemas/contend.versus-1.json"),
    ("schema doctor", "schemas/contend.doctor-1.json"),
    ("experiments", "docs/reference/experiments.md"),
    ("reference options", "docs/reference/options.md"),
    ("reference records", "docs/reference/records.md"),
    ("reference exit-codes", "docs/reference/exit-codes.md"),
    ("mechanisms docs/data/messages.json", "docs/measurements/mechanisms.md"),
    ("unit-costs docs/data/units.json", "docs/measurements/unit-costs.md"),
];

/// Arguments of `contend generate`, and the files with their output in `target/generated/`, for
/// packagers.
const COMPLETIONS: [(&str, &str); 3] = [
    ("completions bash", "contend.bash"),
    ("completions zsh", "_contend"),
    ("completions fish", "contend.fish"),
];

/// Rewrites the committed files, and puts completions and man pages into `target/generated/`.
///
/// # Errors
/// Returns an error if contend cannot be built, one of its commands fails, or a file cannot be
/// written.
pub fn run() -> Result<()> {
    for (arguments, path) in COMMITTED {
        write(Path::new(path), &contend(arguments)?)?;
    }
    let folder = target_dir().join("generated");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (arguments, name) in COMPLETIONS {
        write(&folder.join(name), &contend(arguments)?)?;
    }
    let words = "run --quiet --package contend -- generate man --dir";
    run_command(cargo().args(words.split(' ')).arg(folder.join("man")))
}

fn contend(arguments: &str) -> Result<Vec<u8>> {
    let words = "run --quiet --package contend -- generate";
    output(cargo().args(words.split(' ')).args(arguments.split(' ')))
}

/// Writes a file and prints its path, unless the content is unchanged.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|current| current == content) {
        return Ok(());
    }
    print_status(&format!("writing {}", path.display()));
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_up_to_date_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("page.md");
        write(&path, b"one").expect("it can be written");
        let mut permissions = fs::metadata(&path).expect("it is there").permissions();
        let modified = fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).expect("it is ours");
        write(&path, b"one").expect("nothing is written");
        let again = fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        assert_eq!(modified, again);
    }
}
