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

/// Patterns of secrets that are always redacted. The group `secret` is the part to redact. `WORD`
/// stands for a shell word, which may contain quoted parts.
const SECRETS: &[&str] = &[
    // '--password=x y'
    r"(?i)'--?[a-z-]*(?:password|passwd|passphrase|token|secret|api-?key)[a-z-]*=(?P<secret>[^']+)'",
    // --password=x, --token x
    r"(?i)--?[a-z-]*(?:password|passwd|passphrase|token|secret|api-?key)[a-z-]*(?:=|\s+)(?P<secret>WORD)",
    // --pass x
    r"(?i)--(?:[a-z-]+-)?(?:pass|pwd)(?:=|\s+)(?P<secret>WORD)",
    // PASSWORD=x, api_key=x in a query
    r"(?i)[a-z0-9_]*(?:password|passwd|passphrase|token|secret|api_?key)[a-z0-9_]*=(?P<secret>WORD)",
    // "password": "x", also with escaped quotes
    r#"(?i)"[a-z0-9_-]*(?:password|passwd|passphrase|token|secret|api[_-]?key)\\?"\s*:\s*\\?"(?P<secret>[^"\\]+)"#,
    // Authorization: Bearer x, X-Auth-Token: x
    r#"(?i)(?:authorization|[a-z]+-(?:api-key|token|secret))\s*:\s*(?:(?:bearer|basic|token|digest)\s+)?(?P<secret>[^\s'"]+)"#,
    // scheme://user:x@host
    r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:(?P<secret>[^\s/@]+)@",
    // curl -u user:x
    r#"\s(?:-u|--user)[\s=]+['"]?[^\s:'"]+:(?P<secret>[^\s'"/][^\s'"]*)"#,
];

/// A shell word: quoted parts, escaped characters, and others without a meaning in the shell.
const WORD: &str = r#"(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\&|;])+"#;

/// Names of fields that a pattern must not change: they have a fixed set of values or describe the
/// machine, and a record with another value could not be read.
const NEVER_SECRET: &[&str] = &[
    "approximate",
    "basis",
    "class",
    "columns",
    "contend",
    "host",
    "id",
    "kind",
    "limit",
    "records",
    "rewrite",
    "rewrites",
    "safety",
    "schema",
    "started_at",
    "status",
    "verdict",
    "waiting_side",
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
        let built_in = SECRETS.iter().map(|pattern| Regex::new(&pattern.replace("WORD", WORD)));
        let all = built_in.chain(patterns.into_iter().map(Regex::new));
        Ok(Self { patterns: all.collect::<Result<_, _>>()? })
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

    /// Replaces secrets in all strings of a record.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.apply(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact(value)),
            Value::Object(fields) => {
                let may_be_secret = |name: &String| !NEVER_SECRET.contains(&name.as_str());
                let fields = fields.iter_mut().filter(|(name, _)| may_be_secret(name));
                fields.for_each(|(_, value)| self.redact(value));
            }
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
        self.redaction.redact(&mut value);
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
            ("x --password='hunter 2' | cat", "x --password=[redacted] | cat"),
            (r#"x --password "hun\"ter 2" y"#, "x --password [redacted] y"),
            ("PGPASSWORD='hunter2' psql", "PGPASSWORD=[redacted] psql"),
            (r"x --token=a\ b c", "x --token=[redacted] c"),
            ("x --token=a'b'c d", "x --token=[redacted] d"),
            ("x '--password=hunter2 with space' y", "x '--password=[redacted]' y"),
            ("x --password 'hun$ter2'", "x --password [redacted]"),
            ("curl -H 'Authorization: token x1'", "curl -H 'Authorization: token [redacted]'"),
            ("curl -H 'X-Auth-Token: x1' y", "curl -H 'X-Auth-Token: [redacted]' y"),
            ("curl -H 'PRIVATE-TOKEN: x1' y", "curl -H 'PRIVATE-TOKEN: [redacted]' y"),
            (r#"curl -d '{"password":"x1"}' y"#, r#"curl -d '{"password":"[redacted]"}' y"#),
            (r#"curl -d "{\"token\": \"x1\"}" y"#, r#"curl -d "{\"token\": \"[redacted]\"}" y"#),
            ("x --pass a --pwd=b c", "x --pass [redacted] --pwd=[redacted] c"),
            ("redis-cli -u redis://:x1@h", "redis-cli -u redis://:[redacted]@h"),
            ("curl -u me:x1 https://h", "curl -u me:[redacted] https://h"),
            ("sort -u a | tar --passive x", "sort -u a | tar --passive x"),
        ];
        for (text, redacted) in cases {
            assert_eq!(redaction.apply(text), redacted);
        }
        assert!(Redaction::new(["("]).is_err());
    }

    /// Adds the names of the fields of a schema that have a fixed set of values.
    fn add_enumerations(schema: &Value, all: &Value, names: &mut Vec<String>) {
        let is_fixed = |value: &Value| {
            let target = value.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| all.pointer(target.trim_start_matches('#')));
            let has_constants = |value: &Value| {
                let of = value.get("oneOf").and_then(Value::as_array);
                value.get("enum").is_some()
                    || of.is_some_and(|of| of.iter().all(|one| one.get("const").is_some()))
            };
            has_constants(value) || target.is_some_and(has_constants)
        };
        match schema {
            Value::Object(fields) => {
                let properties = fields.get("properties").and_then(Value::as_object);
                for (name, value) in properties.into_iter().flatten() {
                    let either = value.get("anyOf").and_then(Value::as_array);
                    let items = value.get("items").into_iter();
                    if items.chain(either.into_iter().flatten()).chain([value]).any(is_fixed) {
                        names.push(name.clone());
                    }
                }
                for value in fields.values() {
                    add_enumerations(value, all, names);
                }
            }
            Value::Array(values) => {
                for value in values {
                    add_enumerations(value, all, names);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn fields_with_a_fixed_set_of_values_are_not_redacted() {
        let schemas = [
            include_str!("../../../../schemas/contend.pipe-1.json"),
            include_str!("../../../../schemas/contend.run-1.json"),
            include_str!("../../../../schemas/contend.versus-1.json"),
        ];
        let mut names = Vec::new();
        for schema in schemas {
            let schema: Value = serde_json::from_str(schema).expect("JSON");
            add_enumerations(&schema, &schema, &mut names);
        }
        names.sort_unstable();
        names.dedup();
        assert!(names.len() > 10, "{names:?}");
        let missing: Vec<_> =
            names.iter().filter(|name| !NEVER_SECRET.contains(&name.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn all_strings_of_a_record_are_redacted() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("runs.db");
        let saving = Saving {
            store: store.clone(),
            is_requested: true,
            label: "before".to_owned(),
            redaction: Redaction::new(["[0-9]{4}"]).expect("patterns"),
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
