//! Saves the records of pipelines in the history.
//!
//! Command lines may contain secrets. Before a record is saved, what looks like one is replaced by
//! `[redacted]` in all of its strings.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use contend_report::store::{Store, StoredRun};
use regex::{Captures, Regex};
use serde::Serialize;
use serde_json::Value;

/// Text that takes the place of a secret.
const REDACTED: &str = "[redacted]";

/// Patterns of secrets that are always redacted. The group `secret` is the part to redact.
const SECRETS: &[&str] = &[
    // --password=x, --token x
    r#"(?i)--?[a-z-]*(?:password|passwd|token|secret|api-?key)[a-z-]*(?:=|\s+)(?P<secret>[^\s'"]+)"#,
    // PASSWORD=x, api_key=x in a query
    r#"(?i)[a-z0-9_]*(?:password|passwd|token|secret|api_?key)[a-z0-9_]*=(?P<secret>[^\s'"&|;]+)"#,
    // Authorization: Bearer x
    r#"(?i)(?:authorization|x-api-key)\s*:\s*(?:bearer\s+|basic\s+)?(?P<secret>[^\s'"]+)"#,
    // scheme://user:x@host
    r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]+:(?P<secret>[^\s/@]+)@",
];

/// Where and how the records of pipelines are saved.
#[derive(Debug)]
pub struct Saving {
    /// Path of the store.
    pub store: PathBuf,
    /// Whether the user asked for this run to be saved, by a label or a store.
    pub is_requested: bool,
    /// Label of the run; empty if none.
    pub label: String,
    /// What to redact.
    pub redaction: Redaction,
    /// Maximum number of runs without a label to keep, for each kind of record.
    pub max_runs: usize,
}

/// Patterns of secrets.
#[derive(Debug)]
pub struct Redaction {
    patterns: Vec<Regex>,
}

impl Redaction {
    /// Returns the built-in patterns and the given ones. In a match, the group `secret` is
    /// redacted, or the whole match if the pattern has no such group.
    ///
    /// # Errors
    /// Returns an error if a pattern is not a regular expression.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, regex::Error> {
        let all = SECRETS.iter().copied().chain(patterns);
        Ok(Self { patterns: all.map(Regex::new).collect::<Result<_, _>>()? })
    }

    /// Returns the text with secrets replaced.
    pub fn apply(&self, text: &str) -> String {
        self.patterns.iter().fold(text.to_owned(), |text, pattern| {
            let replace = |found: &Captures<'_>| {
                let whole = found.get_match();
                let secret = found.name("secret").unwrap_or(whole);
                let (before, after) =
                    (secret.start() - whole.start(), secret.end() - whole.start());
                let whole = whole.as_str();
                format!("{}{REDACTED}{}", &whole[..before], &whole[after..])
            };
            pattern.replace_all(&text, replace).into_owned()
        })
    }

    fn apply_to_all(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.apply(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.apply_to_all(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.apply_to_all(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Saving {
    /// Saves a record that has the fields `started_at` and `host`, with the given title and ending,
    /// after it has redacted the record and the title. Then removes the oldest runs of the schema
    /// without a label, so that at most `max_runs` of them stay. Returns the number of the run.
    ///
    /// # Errors
    /// Returns an error if the store cannot be opened or written.
    pub fn save(
        &self,
        schema: &str,
        title: &str,
        ending: &str,
        record: &impl Serialize,
    ) -> Result<i64> {
        let mut value = serde_json::to_value(record).context("cannot write the record as JSON")?;
        self.redaction.apply_to_all(&mut value);
        let text = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let store = Store::open(&self.store)?;
        let id = store.add(&StoredRun {
            started_at: &text("/started_at"),
            schema,
            title: &self.redaction.apply(title),
            ending,
            label: &self.label,
            host: &text("/host/name"),
            record: &value.to_string(),
        })?;
        store.prune(schema, self.max_runs)?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted() {
        let redaction = Redaction::new(["(?i)internal-[a-z]+", "key (?P<secret>[0-9]+)"]);
        let redaction = redaction.expect("regular expressions");
        let cases = [
            ("mysql --password=hunter2 -e x", "mysql --password=[redacted] -e x"),
            ("tool --api-key abc | wc", "tool --api-key [redacted] | wc"),
            ("PGPASSWORD=abc psql -c x", "PGPASSWORD=[redacted] psql -c x"),
            (
                "curl 'https://x/?access_token=t1&n=2'",
                "curl 'https://x/?access_token=[redacted]&n=2'",
            ),
            (
                "curl -H 'Authorization: Bearer abc.def'",
                "curl -H 'Authorization: Bearer [redacted]'",
            ),
            ("curl ftp://me:abc@host/file", "curl ftp://me:[redacted]@host/file"),
            ("grep Internal-project x", "grep [redacted] x"),
            ("open key 123 now", "open key [redacted] now"),
            ("grep -c password access.log", "grep -c password access.log"),
            ("sort -t: -k2 passwd | tr a b", "sort -t: -k2 passwd | tr a b"),
        ];
        for (text, redacted) in cases {
            assert_eq!(redaction.apply(text), redacted);
        }
        assert!(Redaction::new(["("]).is_err());
    }

    #[test]
    fn all_strings_of_a_record_are_redacted() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("runs.db");
        let saving = Saving {
            store: store.clone(),
            is_requested: true,
            label: "before".to_owned(),
            redaction: Redaction::new([]).expect("built-in patterns"),
            max_runs: 10,
        };
        let record = serde_json::json!({
            "started_at": "2026-01-02T03:04:05Z", "host": {"name": "h"}, "n": 1,
            "stages": [{"command": "x --token=abc"}],
        });
        let id = saving.save("contend.pipe/1", "x --token=abc", "exit 0", &record).expect("room");
        let store = Store::open_to_read(&store).expect("it is there");
        let (entry, record) = store.entry(id).expect("readable").expect("there");
        assert!(!record.contains("abc") && record.contains("--token=[redacted]"), "{record}");
        assert_eq!((entry.title.as_str(), entry.host.as_str()), ("x --token=[redacted]", "h"));
        assert_eq!(
            (entry.label.as_str(), entry.started_at.as_str()),
            ("before", "2026-01-02T03:04:05Z")
        );
    }
}
