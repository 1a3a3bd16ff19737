//! Renders the documentation page on which mechanism suits which purpose, from a record alone.

use std::fmt::Write as _;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::{Value, names};

use super::page::measured_on;
use super::units::{bytes, nanoseconds, ratio};

/// A purpose for which a reader wants the best mechanism.
struct Want {
    what: &'static str,
    /// Whether a mechanism that waits in this way is admissible.
    admits: fn(&str) -> bool,
    figure: Figure,
}

/// A figure of which less is better.
#[derive(Clone, Copy)]
enum Figure {
    /// Time of a round trip of one byte, with partners at this placement.
    RoundTrip(&'static str),
    /// Time of a message of this many bytes, in one direction.
    OneWay(u64),
    /// CPU time of both sides for a message of this many bytes.
    Cpu(u64),
}

const WANTS: [Want; 9] = [
    Want {
        what: "an answer at once, and each partner has a CPU to itself",
        admits: |_| true,
        figure: Figure::RoundTrip("two-cpus"),
    },
    Want {
        what: "an answer soon, and nobody may keep a CPU busy with waiting for long",
        admits: |waits| waits != "spinning" && waits != "yielding",
        figure: Figure::RoundTrip("two-cpus"),
    },
    Want {
        what: "an answer soon, and whoever waits has to sleep",
        admits: |waits| waits == "asleep",
        figure: Figure::RoundTrip("two-cpus"),
    },
    Want {
        what: "an answer soon, and both partners are on one CPU",
        admits: |_| true,
        figure: Figure::RoundTrip("same-cpu"),
    },
    Want {
        what: "many messages of 64 bytes one way",
        admits: |_| true,
        figure: Figure::OneWay(64),
    },
    Want {
        what: "many messages of 64 bytes one way, and whoever waits has to sleep",
        admits: |waits| waits == "asleep",
        figure: Figure::OneWay(64),
    },
    Want { what: "messages of 4 KiB one way", admits: |_| true, figure: Figure::OneWay(4096) },
    Want { what: "messages of 1 MiB one way", admits: |_| true, figure: Figure::OneWay(1 << 20) },
    Want {
        what: "messages of 4 KiB for the least CPU time of both sides",
        admits: |_| true,
        figure: Figure::Cpu(4096),
    },
];

/// Returns the page, or `None` if the record has nothing for it.
pub fn page(record: &RunRecord) -> Option<String> {
    let names = mechanisms(record);
    if names.is_empty() {
        return None;
    }
    let mut out = String::from(
        "# Which mechanism when\n\nThis page is made by `contend generate mechanisms FILE` from a run of \
         `contend lab suite shared-memory --json\nFILE`; nothing in it was typed. How it is measured stands \
         in [shared-memory.md](shared-memory.md).\n",
    );
    let partners = "Partners are two processes; what goes one way goes between two CPUs.";
    measured_on(&mut out, record, partners);
    out.push_str("| what is wanted | best here | takes | after it |\n|---|---|---:|---|\n");
    for want in &WANTS {
        out.push_str(&wanted(record, &names, want).unwrap_or_default());
    }
    out.push_str("\n## All of them\n\n");
    out.push_str(
        "The first three columns are a byte there and back: on one CPU, on two of which one falls asleep, \
         and on two that are kept\nawake. The next three are messages one way.\n\n| mechanism | waits | \
         one CPU | two | two awake | 64 B | 4 KiB | 1 MiB | calls there and back |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for name in &names {
        out.push_str(&row(record, name));
    }
    out.push_str("\n## What they are\n\n");
    for name in &names {
        if let Some(summary) = fact(record, name, "mechanism_is") {
            let _ = writeln!(out, "- `{name}`: {summary}.");
        }
    }
    Some(out)
}

/// Returns the cases of messages between processes, with their mechanism.
fn cases(record: &RunRecord) -> impl Iterator<Item = (&str, &Case)> {
    record.cases.iter().filter_map(|case| {
        let is_meant = [View::OneWay, View::RoundTrip].contains(&case.view)
            && case.parameters.text(names::PARTNERS) == Some("process")
            && case.median.is_some();
        Some((case.parameters.text(names::MECHANISM)?, case)).filter(|_| is_meant)
    })
}

/// Returns the mechanisms, in the order of the record.
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

/// Returns the row of a purpose: the best mechanism, and the runners-up.
fn wanted(record: &RunRecord, names: &[&str], want: &Want) -> Option<String> {
    const AFTER: usize = 3;
    let admitted = names.iter().filter(|name| fact(record, name, "waits").is_some_and(want.admits));
    let mut by_figure: Vec<(&str, f64)> =
        admitted.filter_map(|name| Some((*name, want.figure.of(record, name)?))).collect();
    by_figure.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((best, figure), others) = by_figure.split_first()?;
    let after = |(name, other): &(&str, f64)| format!("`{name}` ({} times)", ratio(other / figure));
    let others: Vec<_> = others.iter().take(AFTER).map(after).collect();
    let (what, shown) = (want.what, want.figure.shown(*figure));
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
