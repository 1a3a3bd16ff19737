//! Renders the documentation page on the best mechanism for each purpose, from nothing but a
//! record.

use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::{Value, names};

use super::page::measured_on;
use super::units::{bytes, nanoseconds, ratio};

/// A purpose for which a reader wants the best mechanism.
struct Purpose {
    what: &'static str,
    /// Returns whether a mechanism qualifies, given its fact `waits`: how a partner waits.
    admits: fn(&str) -> bool,
    figure: Figure,
}

/// The measurement by which mechanisms are ranked; less is better.
#[derive(Clone, Copy)]
enum Figure {
    /// Time of a round trip of one byte, with the given placement of the partners.
    RoundTrip(&'static str),
    /// Time of a one-way message of the given length in bytes.
    OneWay(u64),
    /// CPU time of both partners for a one-way message of the given length in bytes.
    Cpu(u64),
}

const PURPOSES: [Purpose; 9] = [
    Purpose {
        what: "lowest latency; each partner has its own CPU",
        admits: |_| true,
        figure: Figure::RoundTrip("two-cpus"),
    },
    Purpose {
        what: "low latency without spinning for long",
        admits: |waits| waits != "spinning" && waits != "yielding",
        figure: Figure::RoundTrip("two-cpus"),
    },
    Purpose {
        what: "low latency, waiting partners sleep",
        admits: |waits| waits == "asleep",
        figure: Figure::RoundTrip("two-cpus"),
    },
    Purpose {
        what: "low latency, both partners on one CPU",
        admits: |_| true,
        figure: Figure::RoundTrip("same-cpu"),
    },
    Purpose {
        what: "throughput of 64-byte messages",
        admits: |_| true,
        figure: Figure::OneWay(64),
    },
    Purpose {
        what: "throughput of 64-byte messages, waiting partners sleep",
        admits: |waits| waits == "asleep",
        figure: Figure::OneWay(64),
    },
    Purpose {
        what: "throughput of 4 KiB messages",
        admits: |_| true,
        figure: Figure::OneWay(4096),
    },
    Purpose {
        what: "throughput of 1 MiB messages",
        admits: |_| true,
        figure: Figure::OneWay(1 << 20),
    },
    Purpose {
        what: "least CPU time for 4 KiB messages",
        admits: |_| true,
        figure: Figure::Cpu(4096),
    },
];

/// Returns the page as Markdown, or `None` if the record has no measured messages between
/// processes.
pub fn page(record: &RunRecord) -> Option<String> {
    let names = mechanisms(record);
    if names.is_empty() {
        return None;
    }
    let mut out = String::from(
        "# Choosing a mechanism\n\n`contend generate mechanisms FILE` generates this page from the record of \
         `contend lab suite shared-memory --json FILE`.\n[shared-memory.md](shared-memory.md) describes how \
         the figures are measured.\n",
    );
    let partners = "Partners are two processes. In tests of one direction they run on two CPUs.";
    measured_on(&mut out, record, partners);
    out.push_str("| purpose | best here | time | runners-up |\n|---|---|---:|---|\n");
    for purpose in &PURPOSES {
        out.push_str(&purpose_row(record, &names, purpose).unwrap_or_default());
    }
    out.push_str("\n## All mechanisms\n\n");
    out.push_str(
        "Round trips of one byte are measured on one CPU, between two CPUs, and between two CPUs that are \
         kept awake. One-way\nmessages go between two CPUs. Calls: system calls of a round trip.\n\n\
         | mechanism | waits by | one CPU | two CPUs | two awake | 64 B | 4 KiB | 1 MiB | calls |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for name in &names {
        out.push_str(&row(record, name));
    }
    out.push_str("\n## Descriptions\n\n");
    for name in &names {
        if let Some(summary) = fact(record, name, "mechanism_is") {
            let _ = writeln!(out, "- `{name}`: {summary}.");
        }
    }
    Some(out)
}

/// Returns the measured cases of messages between processes, each with its mechanism.
fn cases(record: &RunRecord) -> impl Iterator<Item = (&str, &Case)> {
    record.cases.iter().filter_map(|case| {
        let is_meant = [View::OneWay, View::RoundTrip].contains(&case.view)
            && case.parameters.text(names::PARTNERS) == Some("process")
            && case.median.is_some();
        Some((case.parameters.text(names::MECHANISM)?, case)).filter(|_| is_meant)
    })
}

/// Returns the names of the measured mechanisms, each once, in the order of the record.
fn mechanisms(record: &RunRecord) -> Vec<&str> {
    let mut names = Vec::new();
    for (name, _) in cases(record) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn fact<'a>(record: &'a RunRecord, mechanism: &str, name: &str) -> Option<&'a str> {
    let mut facts = cases(record).filter(|(of, _)| *of == mechanism);
    facts.find_map(|(_, case)| match case.facts.get(name)? {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    })
}

fn case<'a>(
    record: &'a RunRecord,
    mechanism: &str,
    view: View,
    length: u64,
    placement: &str,
) -> Option<&'a Case> {
    let mut found = cases(record).filter(|(of, case)| {
        *of == mechanism
            && case.view == view
            && case.parameters.number(names::BYTES) == Some(length)
            && case.parameters.text(names::PLACEMENT) == Some(placement)
    });
    found.next().map(|(_, case)| case)
}

impl Figure {
    fn of(self, record: &RunRecord, mechanism: &str) -> Option<f64> {
        let one_way = |length| case(record, mechanism, View::OneWay, length, "two-cpus");
        match self {
            Self::RoundTrip(place) => case(record, mechanism, View::RoundTrip, 1, place)?.median,
            Self::OneWay(length) => one_way(length)?.median,
            Self::Cpu(length) => super::lab::messages::cpu(one_way(length)?),
        }
    }

    fn shown(self, value: f64) -> String {
        match self {
            Self::OneWay(length) if length >= 4096 => {
                format!("{} ({}/s)", nanoseconds(value), bytes(length as f64 / value * 1e9))
            }
            _ => nanoseconds(value),
        }
    }
}

/// Returns the table row of a purpose: the best mechanism, and up to three runners-up. Returns
/// `None` if no mechanism that qualifies was measured.
fn purpose_row(record: &RunRecord, names: &[&str], purpose: &Purpose) -> Option<String> {
    const MAX_RUNNERS_UP: usize = 3;
    let admitted =
        names.iter().filter(|name| fact(record, name, "waits").is_some_and(purpose.admits));
    let mut by_figure: Vec<(&str, f64)> =
        admitted.filter_map(|name| Some((*name, purpose.figure.of(record, name)?))).collect();
    by_figure.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((best, figure), others) = by_figure.split_first()?;
    let after = |(name, other): &(&str, f64)| format!("`{name}` ({} times)", ratio(other / figure));
    let others: Vec<_> = others.iter().take(MAX_RUNNERS_UP).map(after).collect();
    let (what, shown) = (purpose.what, purpose.figure.shown(*figure));
    Some(format!("| {what} | `{best}` | {shown} | {} |\n", others.join(", ")))
}

fn row(record: &RunRecord, name: &str) -> String {
    let cell = |figure: Figure| figure.of(record, name).map_or_else(String::new, nanoseconds);
    let calls = case(record, name, View::RoundTrip, 1, "two-cpus");
    let calls = calls.and_then(super::lab::messages::calls);
    let places = ["same-cpu", "two-cpus", "two-awake"].map(|place| cell(Figure::RoundTrip(place)));
    let lengths = [64, 4096, 1 << 20].map(|length| cell(Figure::OneWay(length)));
    format!(
        "| `{name}` | {} | {} | {} | {} |\n",
        fact(record, name, "waits").unwrap_or_default(),
        places.join(" | "),
        lengths.join(" | "),
        calls.map_or_else(String::new, |calls| format!("{calls:.2}")),
    )
}
