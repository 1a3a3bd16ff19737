//! The version of contend that wrote a record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of contend that wrote a record. Figures of different versions may not be comparable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Writer {
    /// Version number of contend.
    pub version: String,
    /// Git commit that contend was built from; null if the build could not determine it, for
    /// example outside of a repository.
    pub commit: Option<String>,
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "contend {}", self.version)?;
        self.commit.as_ref().map_or(Ok(()), |commit| write!(f, " ({commit})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_without_a_commit_is_known_by_its_version_alone() {
        let writer = |commit: Option<&str>| Writer {
            version: "1.2.3".to_owned(),
            commit: commit.map(str::to_owned),
        };
        assert_eq!(writer(Some("0123456789ab")).to_string(), "contend 1.2.3 (0123456789ab)");
        assert_eq!(writer(None).to_string(), "contend 1.2.3");
    }
}
