//! Generates the JSON Schemas of the records from their types.

use contend_record::compare::CompareRecord;
use contend_record::doctor::DoctorRecord;
use contend_record::lab::RunRecord;
use contend_record::pipe::PipeRecord;
use contend_record::run;
use contend_record::versus::VersusRecord;
use schemars::Schema;

/// Returns the schema of `contend.pipe/1`, as committed in `schemas/`.
///
/// # Errors
/// Returns an error only if the record's type has a bug that prevents the serialization of its
/// schema.
pub fn pipe() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(PipeRecord))
}

/// Returns the schema of `contend.lab/1`, as committed in `schemas/`.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn lab() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(RunRecord))
}

/// Returns the schema of `contend.run/1`, as committed in `schemas/`.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn run() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(run::RunRecord))
}

/// Returns the schema of `contend.compare/1`, as committed in `schemas/`.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn compare() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(CompareRecord))
}

/// Returns the schema of `contend.versus/1`, as committed in `schemas/`.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn versus() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(VersusRecord))
}

/// Returns the schema of `contend.doctor/1`, as committed in `schemas/`.
///
/// # Errors
/// Fails as [`pipe`] does.
pub fn doctor() -> serde_json::Result<String> {
    indented(&schemars::schema_for!(DoctorRecord))
}

fn indented(schema: &Schema) -> serde_json::Result<String> {
    serde_json::to_string_pretty(schema).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schemas_are_those_of_the_types() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas");
        let schemas = [
            ("pipe", super::pipe()),
            ("lab", super::lab()),
            ("run", super::run()),
            ("compare", super::compare()),
            ("versus", super::versus()),
            ("doctor", super::doctor()),
        ];
        for (name, current) in schemas {
            let path = format!("{folder}/contend.{name}-1.json");
            let committed = std::fs::read_to_string(path).unwrap_or_default();
            assert!(
                committed == current.expect("a schema"),
                "the record's type and schemas/contend.{name}-1.json differ: if the change is \
                 compatible, run `contend generate schema {name} >schemas/contend.{name}-1.json`"
            );
        }
    }
}
