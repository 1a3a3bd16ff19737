//! The JSON Schemas of the records, generated from their types.

use contend_record::pipe::PipeRecord;

/// The schema of `contend.pipe/1`, as committed in `schemas/`.
///
/// # Errors
/// When the generated schema cannot be written as JSON, which would be a defect of a type.
pub fn pipe() -> serde_json::Result<String> {
    let schema = schemars::schema_for!(PipeRecord);
    serde_json::to_string_pretty(&schema).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_that_of_the_types() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/contend.pipe-1.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        let current = super::pipe().expect("a schema");
        assert!(
            committed == current,
            "the record's type and schemas/contend.pipe-1.json differ: if the change is \
             compatible, run `contend generate schema pipe >schemas/contend.pipe-1.json`"
        );
    }
}
