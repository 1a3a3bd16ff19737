//! Shell features that random scripts use: one file for each family, one row for each feature.
//!
//! A fragment is one or more complete commands, except in features with syntax errors. A name in
//! guillemets is a rule of [`super::grammar`], which is replaced by one of its alternatives,
//! recursively.

mod background;
mod compound;
mod descriptors;
mod documents;
mod environment;
mod expansions;
mod options;
mod pipelines;
mod redirections;
mod streams;
mod targets;
mod traps;
mod variables;

/// A feature and the script fragments that use it.
#[derive(Debug)]
pub struct Feature {
    /// Name in the summary: `family/name`.
    pub name: &'static str,
    /// Weight in random draws, relative to those of the other features.
    pub weight: u32,
    /// Files of [`super::files::FILES`] that the fragments need in addition to the basic ones.
    pub files: &'static [&'static str],
    /// Templates of script fragments, one of which is drawn.
    pub fragments: &'static [&'static str],
    /// Whether `bash -n` accepts the fragments.
    pub syntax: Syntax,
}

/// Whether a fragment is syntactically valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `bash -n` accepts the fragment.
    Valid,
    /// `bash -n` reports a syntax error.
    Invalid,
}

/// Creates a feature with valid fragments that need no further files.
const fn feature(name: &'static str, weight: u32, fragments: &'static [&'static str]) -> Feature {
    Feature { name, weight, files: &[], fragments, syntax: Syntax::Valid }
}

impl Feature {
    const fn with_files(mut self, files: &'static [&'static str]) -> Self {
        self.files = files;
        self
    }

    const fn with_errors(mut self) -> Self {
        self.syntax = Syntax::Invalid;
        self
    }
}

/// The features, family by family.
const FAMILIES: &[&[Feature]] = &[
    pipelines::FEATURES,
    redirections::FEATURES,
    targets::FEATURES,
    descriptors::FEATURES,
    documents::FEATURES,
    background::FEATURES,
    compound::FEATURES,
    options::FEATURES,
    traps::FEATURES,
    variables::FEATURES,
    expansions::FEATURES,
    environment::FEATURES,
    streams::FEATURES,
];

/// Returns every feature, family by family.
pub fn all() -> impl Iterator<Item = &'static Feature> {
    FAMILIES.iter().copied().flatten()
}
