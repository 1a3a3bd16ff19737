//! Symptoms: ways in which a program loses time through its concurrency. One file and one row of
//! [`TABLE`] for each.
//!
//! A rule examines the [`Facts`], and is silent unless the loss is large and nothing refutes it: each
//! file states the healthy programs that look alike. A rule does not know the others; if several
//! speak about the same time, the first one in the table counts, because its evidence is the most
//! specific.

mod cpu_limit;
mod fork_storm;
mod interpreter_lock;
mod lock_contention;
mod lock_polling;
mod lock_step;
mod not_concurrency;
mod oversubscription;
mod pipeline;
mod serial_section;
mod sleep_polling;
mod spinning;
#[cfg(test)]
mod tests;
mod tiny_io;
mod uneven_work;

use contend_record::doctor::{Evidence, Finding, Symptom, ThreadName};

use crate::facts::{Facts, ThreadFacts};

/// Share of the wall time that a remedy must save for a finding.
pub const MIN_GAIN: f64 = 0.1;

/// A rule that looks for one symptom.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The symptom.
    pub symptom: Symptom,
    /// Returns the evidence, or `None` without the symptom.
    pub find: fn(&Facts) -> Option<Found>,
}

/// What a rule has found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// What happens, in a sentence or two with figures.
    pub message: String,
    /// Share of the wall time that a remedy would save; `None` if it cannot be estimated.
    pub gain: Option<f64>,
    /// How the gain was estimated, in a clause.
    pub argument: &'static str,
    /// The figures on which the finding rests.
    pub evidence: Vec<(&'static str, f64)>,
    /// The threads concerned.
    pub threads: Vec<ThreadName>,
    /// What to change, in a sentence.
    pub remedy: String,
    /// A command that tries the remedy.
    pub command: Option<String>,
    /// What would refute the finding, in a sentence.
    pub unless: &'static str,
}

/// All rules; more specific ones first.
pub const TABLE: &[Rule] = &[
    Rule { symptom: Symptom::CpuLimit, find: cpu_limit::find },
    Rule { symptom: Symptom::InterpreterLock, find: interpreter_lock::find },
    Rule { symptom: Symptom::LockPolling, find: lock_polling::find },
    Rule { symptom: Symptom::SleepPolling, find: sleep_polling::find },
    Rule { symptom: Symptom::ForkStorm, find: fork_storm::find },
    Rule { symptom: Symptom::TinyIo, find: tiny_io::find },
    Rule { symptom: Symptom::Oversubscription, find: oversubscription::find },
    Rule { symptom: Symptom::LockContention, find: lock_contention::find },
    Rule { symptom: Symptom::LockStep, find: lock_step::find },
    Rule { symptom: Symptom::Spinning, find: spinning::find },
    Rule { symptom: Symptom::NotConcurrency, find: not_concurrency::find },
    Rule { symptom: Symptom::Pipeline, find: pipeline::find },
    Rule { symptom: Symptom::UnevenWork, find: uneven_work::find },
    Rule { symptom: Symptom::SerialSection, find: serial_section::find },
];

/// Applies all rules, and returns the findings, largest gain first. Findings without an estimated
/// gain are last.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let found = TABLE.iter().filter_map(|rule| Some((rule.symptom, (rule.find)(facts)?)));
    let mut findings: Vec<Finding> = found
        .map(|(symptom, found)| Finding {
            symptom,
            message: found.message,
            gain_share: found.gain,
            argument: found.argument.to_owned(),
            evidence: found
                .evidence
                .into_iter()
                .map(|(name, value)| Evidence { name: name.to_owned(), value })
                .collect(),
            threads: found.threads,
            remedy: found.remedy,
            command: found.command,
            unless: found.unless.to_owned(),
        })
        .collect();
    // One time has one reason: the first of the rules that explain the same kind of loss counts.
    for is_of_kind in [is_serial, is_crowded] {
        let mut is_explained = false;
        findings.retain(|finding| {
            let is_repeated = is_of_kind(finding.symptom) && is_explained;
            is_explained |= is_of_kind(finding.symptom);
            !is_repeated
        });
    }
    findings.sort_by(|a, b| b.gain_share.unwrap_or(0.0).total_cmp(&a.gain_share.unwrap_or(0.0)));
    findings
}

/// Returns whether a symptom explains that fewer threads run than there are CPUs, or that none runs.
fn is_serial(symptom: Symptom) -> bool {
    !matches!(
        symptom,
        Symptom::NotConcurrency | Symptom::Oversubscription | Symptom::TinyIo | Symptom::Spinning
    )
}

/// Returns whether a symptom explains CPU time that is used without progress.
fn is_crowded(symptom: Symptom) -> bool {
    matches!(symptom, Symptom::Oversubscription | Symptom::Spinning)
}

/// Returns the names of at most eight threads.
fn names<'a>(threads: impl IntoIterator<Item = &'a ThreadFacts>) -> Vec<ThreadName> {
    const MAX_NAMES: usize = 8;
    threads.into_iter().take(MAX_NAMES).map(|thread| thread.name.clone()).collect()
}

/// Returns the description of a thread in a sentence: its name and ID, and the function in which it
/// executes most, if that is known.
fn described(thread: &ThreadFacts) -> String {
    match &thread.name.function {
        Some(function) => format!("{} ({}, in {function})", thread.name.name, thread.name.tid),
        None => format!("{} ({})", thread.name.name, thread.name.tid),
    }
}

/// Returns the word or clause that fits a count.
fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// Returns a share as a whole number of percent.
fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns a length of time with a suitable unit and two significant digits.
fn length(seconds: f64) -> String {
    match seconds {
        s if s >= 0.995 => format!("{s:.1} s"),
        s if s >= 9.95e-3 => format!("{:.0} ms", 1e3 * s),
        s if s >= 0.995e-3 => format!("{:.1} ms", 1e3 * s),
        s if s >= 9.95e-6 => format!("{:.0} µs", 1e6 * s),
        s => format!("{:.1} µs", 1e6 * s),
    }
}

/// Returns a rate as a whole number.
fn rate(per_second: f64) -> String {
    format!("{per_second:.0}")
}
