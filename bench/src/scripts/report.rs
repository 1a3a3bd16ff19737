//! Formats totals by feature, and findings of differences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::check::{FURTHER_RUNS, Finding, VARIANTS, Verdict};
use super::compare::normalise;
use super::generate::Script;
use super::run::{Entry, Outcome};

/// Maximum number of bytes of an output to show.
const MAX_SHOWN_BYTES: usize = 600;

/// Numbers of variants, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of variants run.
    pub cases: u64,
    /// Number of variants in which contend differs from bash, and bash does not differ from itself.
    pub differ: u64,
    /// Number of variants in which contend differs from bash, but bash also differs from itself.
    pub not_repeatable: u64,
    /// Number of variants in which bash does not end within the limit.
    pub hang: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.differ += other.differ;
        self.not_repeatable += other.not_repeatable;
        self.hang += other.hang;
    }
}

/// Counts by feature. A script counts for each feature that it uses.
#[derive(Debug, Default)]
pub struct Summary {
    /// Counts over all scripts; each variant counts once.
    pub all: Counts,
    /// Number of scripts run.
    pub scripts: u64,
    by_feature: BTreeMap<String, Counts>,
}

impl Summary {
    /// Adds the result of one script, made by [`row`].
    pub fn add(&mut self, row: &Value) {
        let count = |key: &str| row[key].as_u64().unwrap_or(0);
        let counts = Counts {
            cases: count("cases"),
            differ: count("differ"),
            not_repeatable: count("not_repeatable"),
            hang: count("hang"),
        };
        self.scripts += 1;
        self.all.add(counts);
        for name in row["features"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.by_feature.entry(name.to_owned()).or_default().add(counts);
        }
    }

    /// Formats a table with a line for each feature, and a last line for all scripts.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<28} {:>8} {:>8} {:>15} {:>10}\n",
            "feature", "cases", "differ", "not repeatable", "bash hangs"
        );
        let all = [("all".to_owned(), self.all)];
        for (name, counts) in self.by_feature.clone().into_iter().chain(all) {
            let Counts { cases, differ, not_repeatable, hang } = counts;
            let _ =
                writeln!(text, "{name:<28} {cases:>8} {differ:>8} {not_repeatable:>15} {hang:>10}");
        }
        text
    }
}

/// Returns a worker's result for a script as JSON; `verdicts` are in the order of [`VARIANTS`].
pub fn row(script: &Script, verdicts: &[Verdict]) -> Value {
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
    json!({
        "number": script.number,
        "features": script.features(),
        "cases": verdicts.len(),
        "differ": count(|verdict| matches!(verdict, Verdict::Differs(_))),
        "not_repeatable": count(|verdict| matches!(verdict, Verdict::NotRepeatable(_))),
        "hang": count(|verdict| matches!(verdict, Verdict::BashHangs)),
        "findings": findings(script, verdicts),
    })
}

fn findings(script: &Script, verdicts: &[Verdict]) -> Vec<Value> {
    let one = |((form, parts), verdict): (_, &Verdict)| match verdict {
        Verdict::Same => None,
        Verdict::BashHangs => {
            Some(json!({ "verdict": "bash hangs", "text": format!("{}\n", script.text()) }))
        }
        Verdict::NotRepeatable(kinds) => Some(json!({
            "verdict": "not repeatable",
            "kinds": kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "text": format!("{}\n", script.text()),
        })),
        Verdict::Differs(finding) => Some(json!({
            "verdict": "differs",
            "form": format!("{form:?}-{parts:?}").to_lowercase(),
            "kinds": finding.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "again": finding.again,
            "small": finding.small.text().trim(),
            "text": described(script, finding),
        })),
    };
    VARIANTS.into_iter().zip(verdicts).filter_map(one).collect()
}

/// Formats a finding with everything needed to reproduce it.
fn described(script: &Script, finding: &Finding) -> String {
    let Finding { kinds, again, small, bash, contend, command } = finding;
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "differs in: {}; again in {again} of {FURTHER_RUNS}\ncommand: {}\nsetting: {:?}\ninput: {}\n\n",
        kinds.join(", "),
        command.join(" "),
        small.setting,
        shown(&small.input),
    );
    let _ = writeln!(text, "--- small\n{}\n--- whole\n{}", small.text().trim(), script.text());
    for (name, outcome) in [("bash", bash), ("contend", contend)] {
        let _ = writeln!(text, "--- {name}: {:?} after {:?}", outcome.status, outcome.wall);
        let _ = writeln!(text, "stdout: {}", shown(&outcome.stdout));
        let _ = writeln!(text, "stderr: {}", shown(&outcome.stderr));
    }
    text + &differing_files(bash, contend) + &differing_messages(bash, contend)
}

fn differing_files(bash: &Outcome, contend: &Outcome) -> String {
    let mut text = String::new();
    let names = bash.files.keys().chain(contend.files.keys());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let [ours, theirs] = [contend.files.get(name), bash.files.get(name)];
        if ours != theirs {
            let _ = writeln!(
                text,
                "--- file {}\nbash: {}\ncontend: {}",
                name.display(),
                entry(theirs),
                entry(ours)
            );
        }
    }
    text
}

fn entry(entry: Option<&Entry>) -> String {
    match entry {
        None => "none".to_owned(),
        Some(Entry::File(mode, bytes)) => format!("{mode:o} {}", shown(bytes)),
        Some(other) => format!("{other:?}"),
    }
}

fn differing_messages(bash: &Outcome, contend: &Outcome) -> String {
    let [theirs, ours] = [normalise(&bash.stderr), normalise(&contend.stderr)];
    if ours == theirs {
        return String::new();
    }
    format!("--- messages\nbash: {theirs:?}\ncontend: {ours:?}\n")
}

fn shown(bytes: &[u8]) -> String {
    let more = if bytes.len() > MAX_SHOWN_BYTES { " and more" } else { "" };
    format!("{}{more}", bytes[..bytes.len().min(MAX_SHOWN_BYTES)].escape_ascii())
}
