//! The engine: plans cases, runs each in a process of its own, takes samples and summarises them.
//!
//! It names no experiment and imports none: whatever it can run is in the
//! [`Registry`](registry::Registry) that it is given.

pub mod cost;
pub mod experiment;
pub mod isolate;
pub mod noise;
pub mod pattern;
pub mod plan;
pub mod protocol;
pub mod registry;
pub mod runner;
pub mod sampling;
pub mod serve;
pub mod setting;
pub mod suite;
pub mod timing;
mod trim;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("the sources are there");
        let paths = entries.map(|entry| entry.expect("a file").path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// Tests included: what the engine does shows with experiments of the tests' own.
    #[test]
    fn the_engine_imports_no_experiment() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/engine"));
        let forbidden = ["experiments", "support"].map(|module| format!("crate::{module}"));
        let sources = sources(folder);
        assert!(sources.len() > 10, "{sources:?}");
        for path in sources {
            let text = fs::read_to_string(&path).expect("a source file");
            let found = forbidden.iter().find(|module| text.contains(module.as_str()));
            assert_eq!(found, None, "{}", path.display());
        }
    }
}
