//! The engine plans cases, runs each in its own processes, takes samples and summarises them.
//!
//! ```text
//!  Registry ──► Plan ──────────► runner::run ──────────────────────► RunRecord
//!  experiments  cases, costs,    rounds of samples, budget,          samples, medians,
//!  and suites   time limit       deadline, disturbances              reasons, warnings
//!                                   │  ▲
//!                      Request      │  │  Reply
//!                  (protocol, JSON) ▼  │
//!                                 process of a case (isolate starts it, serve answers)
//!                                   └── Subject: the operation that is measured
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`experiment`], [`registry`], [`setting`] | experiments, their table, their parameters |
//! | [`suite`], [`pattern`] | suites, and the patterns that select their experiments |
//! | [`plan`], [`cost`], `trim` | the cases of a run, and those for which it has no time |
//! | [`runner`], [`sampling`], [`noise`] | rounds, stop rules, disturbances by other programs |
//! | [`isolate`], [`serve`], [`protocol`] | the process of a case, and the engine's side of it |
//! | [`timing`] | the timed loop, and the cost of the clock and the loop |
//!
//! The engine imports no experiment: it runs those of the [`Registry`](registry::Registry) that its
//! caller passes.

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
        let entries = fs::read_dir(folder).expect("the folder of the sources");
        let paths = entries.map(|entry| entry.expect("a file").path());
        paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// Checks that no source file of the engine, tests included, refers to the modules of the
    /// experiments or of their support code.
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
