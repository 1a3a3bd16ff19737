//! Chapter of the suite `shared-memory`: compares the measurements of its source article with those
//! of the run, and explains where shared memory saves system calls, where page faults replace them,
//! and when a mapping is slower.

mod conclusions;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;

use super::super::layout::{columns_left_out, paragraph};
use super::super::units::{bytes, count, nanoseconds, ratio, seconds};
use super::chapter::Content;
use super::copy;
use super::messages::by_name;
use super::table::{figure, grid, row};
use super::{Reported, find};

/// The article's output of `time -lph` for its program with a pipe, on FreeBSD.
struct Article {
    real: &'static str,
    user: &'static str,
    system: &'static str,
    waits: &'static str,
    switched: &'static str,
    faults: &'static str,
    peak: &'static str,
}

const ARTICLE: Article = Article {
    real: "0.73s",
    user: "0.11s",
    system: "0.52s",
    waits: "178,208",
    switched: "492",
    faults: "80",
    peak: "736KB",
};

/// Names and numbers of system calls of the article's parent process, counted by `truss -c`,
/// without those of its start-up.
const ARTICLES_CALLS: [(&str, &str); 4] =
    [("write", "1,000,000"), ("read", "2"), ("fork", "1"), ("pipe", "1")];

/// Returns the chapter, or `None` if the run has measured nothing that it compares.
pub fn chapter(record: &RunRecord, width: usize) -> Option<Content> {
    let render = |tables: &[fn(&RunRecord, usize) -> Option<String>]| -> Vec<String> {
        tables.iter().filter_map(|table| table(record, width)).collect()
    };
    let (mut tables, mut details) =
        (render(&[one_byte, copies]), render(&[system_calls, bare_operations]));
    let conclusions = if tables.is_empty() { &[][..] } else { &conclusions::CONCLUSIONS };
    if tables.is_empty() {
        tables = std::mem::take(&mut details);
    }
    if tables.is_empty() {
        return None;
    }
    let meaning = [saved, replaced, slower, placement];
    let meaning = meaning.into_iter().filter_map(|sentence| sentence(record)).collect();
    Some(Content { conclusions, meaning, tables, details, ..Content::default() })
}

fn legend(record: &RunRecord, has_peak: bool) -> String {
    let messages = form(record, "pipe").and_then(|case| case.parameters.number(names::MESSAGES));
    let here = match messages {
        Some(1_000_000) | None => String::new(),
        Some(messages) => format!(", {messages} here"),
    };
    format!(
        "1,000,000 messages of one byte in the article{here}. Figures are of both processes here, of the \
         parent alone in the article{}.",
        if has_peak { "; peak is the larger of the two" } else { "" }
    )
}

/// Returns the measured case that sends single bytes in the form `name`, or `None` if there is
/// none.
fn form<'a>(record: &'a RunRecord, name: &str) -> Option<&'a Case> {
    find(record, View::OneByte, &[(names::FORM, name)]).filter(|case| case.median.is_some())
}

/// Returns the sum of the metric `name` over both processes, or `None` if it was not measured for
/// both.
fn both(case: &Case, name: &str) -> Option<f64> {
    let of = |who: &str| case.metric(&format!("{name}_{who}"));
    Some(of("main")? + of("sub")?)
}

/// Returns the article's time of the program that a case reproduces; `None` for other programs.
pub(super) fn reported(case: &Case) -> Option<Reported> {
    let is_original = case.parameters.text(names::FORM) == Some("pipe")
        && case.parameters.number(names::MESSAGES) == Some(1_000_000);
    let seconds: f64 = ARTICLE.real.strip_suffix('s')?.parse().ok()?;
    is_original.then_some(Reported { value: 1e9 * seconds, source: "the article" })
}

/// Forms of the program: the article's, which uses a pipe, and those with shared memory.
const FORMS: [&str; 5] = ["pipe", "ring", "ring-batches", "cell", "cell-unguarded"];

fn one_byte(record: &RunRecord, width: usize) -> Option<String> {
    let measured: Vec<_> =
        FORMS.into_iter().filter_map(|name| Some((name, form(record, name)?))).collect();
    if measured.is_empty() {
        return None;
    }
    let is_wide = width >= 90;
    let mut lines = vec![row(["", "real", "user", "sys", "waits", "switched", "faults"])];
    let mut article = row([
        "pipe, article",
        ARTICLE.real,
        ARTICLE.user,
        ARTICLE.system,
        ARTICLE.waits,
        ARTICLE.switched,
        ARTICLE.faults,
    ]);
    if is_wide {
        lines[0].extend(row(["peak", "lost"]));
        article.extend(row([ARTICLE.peak, ""]));
    }
    lines.push(article);
    for (name, case) in measured {
        let number = |name: &str| both(case, name).map_or_else(String::new, count);
        let mut line = vec![
            format!("{name}, here"),
            figure(case.median),
            figure(both(case, "user")),
            figure(both(case, "system")),
            number("voluntary_switches"),
            number("involuntary_switches"),
            number("minor_faults"),
        ];
        if is_wide {
            let peaks = ["peak_rss_main", "peak_rss_sub"].map(|peak| case.metric(peak));
            let peak = peaks.into_iter().flatten().fold(0.0, f64::max);
            line.extend([bytes(peak), case.metric("lost").map_or_else(String::new, count)]);
        }
        lines.push(line);
    }
    let mut out = grid(&lines, 1, width);
    if !is_wide {
        columns_left_out(&mut out, &["peak", "lost"], width);
    }
    paragraph(&mut out, "", &legend(record, is_wide), width);
    Some(out)
}

/// Renders a table of system calls by name, for the article's parent process and for both processes
/// of the run. Returns `None` if the program with a pipe was not measured.
fn system_calls(record: &RunRecord, width: usize) -> Option<String> {
    form(record, "pipe")?;
    let mut lines = vec![row(["system calls", "parent", "child"])];
    let article: Vec<_> =
        ARTICLES_CALLS.iter().map(|(name, count)| format!("{count} {name}")).collect();
    lines.push(vec!["pipe, article".to_owned(), article.join(", "), "not counted".to_owned()]);
    for name in FORMS {
        if let Some(case) = form(record, name) {
            let of = |who| by_name(case, who);
            lines.push(vec![format!("{name}, here"), of("main"), of("sub")]);
        }
    }
    Some(grid(&lines, 3, width))
}

/// Formats the median time of a case; empty if it was not measured.
fn time(case: &Case) -> String {
    case.median.map_or_else(String::new, |value| seconds(value / 1e9))
}

fn saved(record: &RunRecord) -> Option<String> {
    let (pipe, ring) = (form(record, "pipe")?, form(record, "ring")?);
    let messages = pipe.parameters.number(names::MESSAGES)? as f64;
    Some(format!(
        "A ring in shared memory replaces {} system calls by {}: {} messages take {} instead of {}, and {} \
         of CPU time each instead of {}.",
        count(both(pipe, "calls")?),
        count(both(ring, "calls")?),
        count(messages),
        time(ring),
        time(pipe),
        nanoseconds(both_cpu(ring)? / messages),
        nanoseconds(both_cpu(pipe)? / messages),
    ))
}

fn both_cpu(case: &Case) -> Option<f64> {
    Some(both(case, "user")? + both(case, "system")?)
}

/// Returns the first measured case that copies a cached file on a tmpfs by the method `way`, with
/// the given block size in bytes if any. Returns `None` if there is none, or if the first one gives
/// advice to the kernel.
fn copied<'a>(record: &'a RunRecord, way: &str, block: Option<&str>) -> Option<&'a Case> {
    let mut parameters =
        vec![(names::METHOD, way), (names::CACHE, "warm"), (names::FILE_SYSTEM, "tmpfs")];
    parameters.extend(block.map(|block| ("block", block)));
    let is_plain =
        |case: &&Case| case.parameters.text(names::ADVICE).is_none_or(|advice| advice == "none");
    find(record, View::FileCopy, &parameters).filter(is_plain)
}

/// Copying methods that are compared with the article's: title, method, and block size in bytes, if
/// the method has one.
const COPIES: [(&str, &str, Option<&str>); 6] = [
    ("fgetc and fputc", "fgetc-fputc", None),
    ("read and write, 512 B", "read-write", Some("512")),
    ("read and write, 4 KiB", "read-write", Some("4096")),
    ("read and write, 64 KiB", "read-write", Some("65536")),
    ("mmap, byte by byte", "mmap-bytes", None),
    ("mmap and memcpy", "mmap-memcpy", None),
];

fn copies(record: &RunRecord, width: usize) -> Option<String> {
    let mapped = copied(record, "mmap-bytes", None)?;
    let mut rows = vec![row(["copying a file", "time", "relative", "calls", "page faults"])];
    for (title, way, block) in COPIES {
        let Some(case) = copied(record, way, block) else { continue };
        let number = |name| case.metric(name).map_or_else(String::new, count);
        let relative = case.median.zip(mapped.median).map(|(time, mapped)| ratio(time / mapped));
        rows.push(vec![
            title.to_owned(),
            figure(case.median),
            relative.unwrap_or_default(),
            number("calls"),
            number("minor_faults"),
        ]);
    }
    let mut out = grid(&rows, 1, width);
    let note = "Relative to the article's program (mmap, byte by byte), which it found 4 to 5 times as fast \
                as read and write.";
    paragraph(&mut out, "", note, width);
    Some(out)
}

fn replaced(record: &RunRecord) -> Option<String> {
    let (blocks, mapped) =
        (copied(record, "read-write", Some("4096"))?, copied(record, "mmap-memcpy", None)?);
    let faults = mapped.metric("minor_faults")?;
    Some(format!(
        "When a mapped file is copied, page faults replace system calls: {} faults ({:.2} a page) instead of \
         {} calls of 4 KiB, and mapping takes {} times as long.",
        count(faults),
        faults / (mapped.parameters.number(names::BYTES)? as f64 / 4096.0),
        count(blocks.metric("calls")?),
        ratio(mapped.median? / blocks.median?),
    ))
}

fn slower(record: &RunRecord) -> Option<String> {
    let mapped = copied(record, "mmap-memcpy", None)?;
    let others = record.cases_of(View::FileCopy).filter(|case| {
        case.parameters.text(names::FILE_SYSTEM) == Some("tmpfs")
            && case.parameters.number(names::BYTES) == mapped.parameters.number(names::BYTES)
            && !case.parameters.text(names::METHOD).is_some_and(|way| way.starts_with("mmap"))
            && case.median.is_some_and(|median| Some(median) < mapped.median)
    });
    let mut faster: Vec<_> = others.collect();
    faster.sort_by(|a, b| a.median.partial_cmp(&b.median).unwrap_or(std::cmp::Ordering::Equal));
    let Some(best) = faster.first() else {
        return Some("No other method copies a file faster here than mmap and memcpy.".to_owned());
    };
    Some(format!(
        "{} other methods copy faster than mmap and memcpy; the fastest, {}, is {} times as fast.",
        faster.len(),
        copy::way(best),
        ratio(mapped.median? / best.median?),
    ))
}

/// Returns the measured case of a round trip of one byte between processes, with the given
/// mechanism and placement, or `None` if there is none.
fn round_trip<'a>(record: &'a RunRecord, mechanism: &str, placement: &str) -> Option<&'a Case> {
    let parameters = [
        (names::MECHANISM, mechanism),
        (names::BYTES, "1"),
        (names::PARTNERS, "process"),
        (names::PLACEMENT, placement),
    ];
    find(record, View::RoundTrip, &parameters).filter(|case| case.median.is_some())
}

/// Compares the round trip through a pipe on one CPU with that between two CPUs. Returns `None` if
/// either was not measured.
fn placement(record: &RunRecord) -> Option<String> {
    let [same, two, awake] =
        ["same-cpu", "two-cpus", "two-awake"].map(|place| round_trip(record, "pipe", place));
    let (same, two) = (same?, two?);
    let awake = awake.map_or_else(String::new, |case| {
        format!(" ({} if both are kept awake)", figure(case.median))
    });
    Some(format!(
        "Placement alone changes the cost of a pipe: a byte and its answer take {} on one CPU, and {} between \
         two CPUs, of which one must be woken up{awake}.",
        figure(same.median),
        figure(two.median),
    ))
}

/// Renders a table of the times of messages through rings next to those of the underlying
/// operations. Returns `None` if no pair was measured.
fn bare_operations(record: &RunRecord, width: usize) -> Option<String> {
    let bare = |view| find(record, view, &[])?.median;
    let trip = |mechanism| round_trip(record, mechanism, "two-cpus")?.median;
    let message = || {
        let parameters = [
            (names::MECHANISM, "ring-spin"),
            (names::BYTES, "64"),
            (names::PARTNERS, "process"),
            (names::PLACEMENT, "two-cpus"),
        ];
        find(record, View::OneWay, &parameters)?.median
    };
    let known = [
        (
            "round trip, ring-spin",
            "cache line, round trip",
            trip("ring-spin"),
            bare(View::CacheLine),
        ),
        ("round trip, ring-futex", "futex, round trip", trip("ring-futex"), bare(View::Futex)),
        ("64 bytes one way, ring-spin", "memcpy in and out", message(), bare(View::HandedCopy)),
    ];
    let rows = known.into_iter().filter_map(|(title, operation, ring, bare)| {
        let (ring, bare) = (ring?, bare?);
        let figures = [nanoseconds(ring), nanoseconds(bare), ratio(ring / bare)];
        Some([title.to_owned(), operation.to_owned()].into_iter().chain(figures).collect())
    });
    let mut lines = vec![row(["message", "bare operation", "ring", "bare", "ratio"])];
    lines.extend(rows);
    (lines.len() > 1).then(|| grid(&lines, 2, width))
}
