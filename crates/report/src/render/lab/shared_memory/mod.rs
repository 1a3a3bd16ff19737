//! Suite `shared-memory`: the tables of the article that it follows with this machine beside them, and
//! what comes of them: where a system call is saved, where a page fault takes its place, when a mapping
//! loses.

mod findings;
#[cfg(test)]
mod tests;

use contend_record::lab::{Case, RunRecord, View};
use contend_record::parameters::names;

use super::super::layout::{BOLD, paragraph, paragraph_after};
use super::super::units::{bytes, count, nanoseconds, seconds};
use super::copy;
use super::find;
use super::messages::{by_name, calls, cpu};
use super::table::{figure, grid, row};
use super::verdict;

/// What the article prints of its program with a pipe, on FreeBSD, as `time -lph` shows it.
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

/// System calls of the article's parent, by `truss -c`, as far as they are its program's own.
const ARTICLES_CALLS: [(&str, &str); 4] =
    [("write", "1,000,000"), ("read", "2"), ("fork", "1"), ("pipe", "1")];

/// The tables, the findings, and what they come to.
pub fn chapter(record: &RunRecord, width: usize) -> String {
    let mut out = String::new();
    if let Some(table) = beside(record, width) {
        let heading = "Beside the article";
        out = format!("\n{BOLD}{heading}{BOLD:#}");
        let rest =
            " (system calls that save system calls: mmap(2), part 5; its program with a pipe)";
        paragraph_after(&mut out, heading.len(), rest, width);
        out.push('\n');
        out.push_str(&table);
        paragraph(&mut out, "", &legend(record), width);
        out.push('\n');
        out.push_str(&system_calls(record, width));
    }
    let sentences: Vec<_> =
        [saved(record), replaced(record), loses(record)].into_iter().flatten().collect();
    if !sentences.is_empty() {
        out.push_str(&format!("\n{BOLD}What comes of it{BOLD:#}\n"));
        paragraph(&mut out, "", &sentences.join(" "), width);
    }
    if let Some(text) = placement(record) {
        out.push_str(&format!("\n{BOLD}The same pipe, three times{BOLD:#}\n"));
        paragraph(&mut out, "", &text, width);
    }
    let bare = [bare_line(record), bare_futex(record), bare_copy(record)];
    let bare: Vec<_> = bare.into_iter().flatten().collect();
    if !bare.is_empty() {
        out.push_str(&format!("\n{BOLD}Beside the bare operations{BOLD:#}\n"));
        for sentence in bare {
            paragraph(&mut out, "- ", &sentence, width);
        }
    }
    if !out.is_empty() {
        out.push('\n');
        out.push_str(&verdict::paragraphs(&findings::FINDINGS, record, width));
    }
    out
}

fn legend(record: &RunRecord) -> String {
    let messages = form(record, "pipe").and_then(|case| case.parameters.number(names::MESSAGES));
    let here = match messages {
        Some(1_000_000) | None => String::new(),
        Some(messages) => {
            format!(" Here they are {messages}: the times are not those of the article's number.")
        }
    };
    format!(
        "1,000,000 messages of one byte.{here} The article's figures are its parent's alone, which does not \
         wait for the child; here they are those of both, from the first byte sent to the last one read. \
         The peak is the larger one of both."
    )
}

/// The document's case by this form.
fn form<'a>(record: &'a RunRecord, name: &str) -> Option<&'a Case> {
    find(record, View::OneByte, &[(names::FORM, name)]).filter(|case| case.median.is_some())
}

/// What both sides have of a metric.
fn both(case: &Case, name: &str) -> Option<f64> {
    let of = |who: &str| case.metric(&format!("{name}_{who}"));
    Some(of("main")? + of("sub")?)
}

fn beside(record: &RunRecord, width: usize) -> Option<String> {
    let forms = ["pipe", "ring", "ring-batches", "cell", "cell-unguarded"];
    let measured: Vec<_> =
        forms.into_iter().filter_map(|name| Some((name, form(record, name)?))).collect();
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
        article.extend(row([ARTICLE.peak, "not looked"]));
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
    Some(grid(&lines, 1, width))
}

/// System calls by name: the article's parent, and both sides here.
fn system_calls(record: &RunRecord, width: usize) -> String {
    let mut lines = vec![row(["system calls", "parent", "child"])];
    let article: Vec<_> =
        ARTICLES_CALLS.iter().map(|(name, count)| format!("{count} {name}")).collect();
    lines.push(vec!["pipe, article".to_owned(), article.join(", "), "not counted".to_owned()]);
    for name in ["pipe", "ring", "ring-batches", "cell", "cell-unguarded"] {
        if let Some(case) = form(record, name) {
            let of = |who| by_name(case, who);
            lines.push(vec![format!("{name}, here"), of("main"), of("sub")]);
        }
    }
    grid(&lines, 3, width)
}

/// A time for all messages, in words.
fn time(case: &Case) -> String {
    case.median.map_or_else(String::new, |value| seconds(value / 1e9))
}

/// Where a system call is saved.
fn saved(record: &RunRecord) -> Option<String> {
    let (pipe, ring) = (form(record, "pipe")?, form(record, "ring")?);
    let number = pipe.parameters.number(names::MESSAGES)?;
    let messages = number as f64;
    let all = if number == 1_000_000 { "a million".to_owned() } else { count(messages) };
    let (with, without) = (both(pipe, "calls")?, both(ring, "calls")?);
    let times = pipe.median? / ring.median?;
    let costs = both_cpu(pipe)? / messages;
    let costs_without = both_cpu(ring)? / messages;
    let batches = form(record, "ring-batches").and_then(|case| {
        Some(format!(
            " ({:.0} times where messages go many at a time)",
            pipe.median? / case.median?
        ))
    });
    Some(format!(
        "A system call is saved wherever the partner looks by itself: {} calls become {}, and {all} \
         messages take {} instead of {}, {times:.1} times as fast{}. A message costs {} of CPU time instead of {}, \
         both sides together.",
        count(with),
        count(without),
        time(ring),
        time(pipe),
        batches.unwrap_or_default(),
        nanoseconds(costs_without),
        nanoseconds(costs),
    ))
}

fn both_cpu(case: &Case) -> Option<f64> {
    Some(both(case, "user")? + both(case, "system")?)
}

/// A copy in memory by this way, of the whole file.
fn copied<'a>(record: &'a RunRecord, way: &str, block: Option<&str>) -> Option<&'a Case> {
    let mut parameters = vec![(names::WAY, way), (names::CACHE, "warm"), (names::PLACE, "tmpfs")];
    parameters.extend(block.map(|block| ("block", block)));
    let is_plain =
        |case: &&Case| case.parameters.text(names::ADVICE).is_none_or(|advice| advice == "none");
    find(record, View::FileCopy, &parameters).filter(is_plain)
}

/// Where a page fault takes its place.
fn replaced(record: &RunRecord) -> Option<String> {
    let (blocks, mapped) =
        (copied(record, "read-write", Some("4096"))?, copied(record, "mmap-memcpy", None)?);
    let faults = mapped.metric("minor_faults")?;
    Some(format!(
        "In copying a file, a page fault takes the place of a system call: reading and writing 4 KiB at a \
         time makes {} calls, mapping both files makes {} calls and {} faults, {:.2} for each page. They \
         take {} and {}: mapping takes {:.2} times as long.",
        count(blocks.metric("calls")?),
        count(mapped.metric("calls")?),
        count(faults),
        faults / (mapped.parameters.number(names::BYTES)? as f64 / 4096.0),
        nanoseconds(blocks.median?),
        nanoseconds(mapped.median?),
        mapped.median? / blocks.median?,
    ))
}

/// When a mapping loses.
fn loses(record: &RunRecord) -> Option<String> {
    let mapped = copied(record, "mmap-memcpy", None)?;
    let others = record.cases_of(View::FileCopy).filter(|case| {
        case.parameters.text(names::PLACE) == Some("tmpfs")
            && case.parameters.number(names::BYTES) == mapped.parameters.number(names::BYTES)
            && !case.parameters.text(names::WAY).is_some_and(|way| way.starts_with("mmap"))
            && case.median.is_some_and(|median| Some(median) < mapped.median)
    });
    let mut quicker: Vec<_> = others.collect();
    quicker.sort_by(|a, b| a.median.partial_cmp(&b.median).unwrap_or(std::cmp::Ordering::Equal));
    let Some(best) = quicker.first() else {
        return Some(format!(
            "Nothing copies faster here than mapping, with {}.",
            figure(mapped.median)
        ));
    };
    let names: Vec<_> = quicker.iter().map(|case| copy::way(case)).collect();
    Some(format!(
        "A mapping loses where what is read and written at a time is large enough: faster than mapping and \
         memcpy ({}) are {}; {} takes {}, {:.2} times as fast.",
        figure(mapped.median),
        names.join(", "),
        names[0],
        figure(best.median),
        mapped.median? / best.median?,
    ))
}

/// A round trip of a byte by this mechanism at this place.
fn round_trip<'a>(record: &'a RunRecord, mechanism: &str, placement: &str) -> Option<&'a Case> {
    let parameters = [
        (names::MECHANISM, mechanism),
        (names::BYTES, "1"),
        (names::PARTNERS, "process"),
        (names::PLACEMENT, placement),
    ];
    find(record, View::RoundTrip, &parameters).filter(|case| case.median.is_some())
}

/// What the place alone does to a pipe.
fn placement(record: &RunRecord) -> Option<String> {
    let [same, two, awake] =
        ["same-cpu", "two-cpus", "two-awake"].map(|place| round_trip(record, "pipe", place));
    let (same, two) = (same?, two?);
    let awake = awake.map_or_else(String::new, |case| {
        format!(
            " Where something that yields to everything keeps both CPUs awake it takes {}: what is left \
             is to tell the other CPU.",
            figure(case.median)
        )
    });
    Some(format!(
        "A byte through a pipe and back takes {} on one CPU and {} on two: {:.1} times as long, with the \
         same {} system calls. On one CPU the partner only has to be switched to; on two, the CPU of the \
         one who waits has nothing to do, falls asleep, and has to be woken by the other one for every \
         message.{awake} CPU time tells less: {} and {}, since a sleeping CPU costs nothing. Whoever \
         measures a pipe without saying where its ends run measures that.",
        figure(same.median),
        figure(two.median),
        two.median? / same.median?,
        calls(two).map_or_else(String::new, count),
        figure(cpu(same)),
        figure(cpu(two)),
    ))
}

/// The ring beside the cache line that it is made of.
fn bare_line(record: &RunRecord) -> Option<String> {
    let line = find(record, View::CacheLine, &[])?.median?;
    let ring = round_trip(record, "ring-spin", "two-cpus")?.median?;
    Some(format!(
        "A byte through the spinning ring and back: {}, {:.2} times a bare cache line to the other CPU and \
         back ({}).",
        nanoseconds(ring),
        ring / line,
        nanoseconds(line)
    ))
}

fn bare_futex(record: &RunRecord) -> Option<String> {
    let futex = find(record, View::Futex, &[])?.median?;
    let ring = round_trip(record, "ring-futex", "two-cpus")?.median?;
    Some(format!(
        "Through the ring that sleeps: {}, {:.2} times a bare futex ({}).",
        nanoseconds(ring),
        ring / futex,
        nanoseconds(futex)
    ))
}

fn bare_copy(record: &RunRecord) -> Option<String> {
    let copy = find(record, View::HandedCopy, &[])?.median?;
    let parameters = [
        (names::MECHANISM, "ring-spin"),
        (names::BYTES, "64"),
        (names::PARTNERS, "process"),
        (names::PLACEMENT, "two-cpus"),
    ];
    let ring = find(record, View::OneWay, &parameters)?.median?;
    Some(format!(
        "Messages of 64 bytes one way through the spinning ring: {} each, {} a second. Copied into a buffer \
         and out of it by memcpy, more than 1 KiB at a time, 64 bytes take {}.",
        nanoseconds(ring),
        count(1e9 / ring),
        nanoseconds(copy),
    ))
}
