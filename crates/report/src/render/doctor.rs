//! Renders a diagnosis as text for a terminal of at least 60 columns.
//!
//! ```text
//! DoctorRecord ─┬─ headline ──── what was observed
//!               ├─ diagnosis ─── in a paragraph
//!               ├─ states ────── where the time of all threads went
//!               ├─ findings ──── evidence, gain, remedy, threads
//!               ├─ remedies ──── what remedies brought, if they were tried
//!               ├─ warnings
//!               └─ method ────── which sources were used, and what others would need
//! ```

use std::fmt::Write as _;

use contend_record::doctor::{
    Cause, DoctorRecord, Finding, Layer, LayerId, Relation, Runtime, Symptom, Thread, ThreadName,
    ThreadState,
};

use super::layout::{
    BOLD, MIN_REPORT_COLUMNS, aligned_left, dimmed, paragraph, plain_table, styled_lines, warn,
};
use super::pipe::Detail;
use super::text::printable;
use super::units::{counted, cpus, percent, seconds};

/// Largest number of findings in a summary.
const MAX_FINDINGS: usize = 3;
/// Largest number of threads in the table of threads of a summary.
const MAX_THREADS: usize = 8;
/// Largest number of threads that a finding names.
const MAX_NAMED_THREADS: usize = 4;
/// Width of a bar, in columns.
const BAR_COLUMNS: usize = 20;

/// Returns the report of a diagnosis, for a terminal with `width` columns, or with 60 if `width` is
/// smaller.
pub fn report(record: &DoctorRecord, detail: Detail, width: usize) -> String {
    let width = width.max(MIN_REPORT_COLUMNS);
    let mut out = String::new();
    headline(&mut out, record, width);
    out.push('\n');
    let _ = write!(out, "{BOLD}Diagnosis:{BOLD:#} ");
    super::layout::paragraph_after(
        &mut out,
        "Diagnosis: ".len(),
        &printable(&record.diagnosis),
        width,
    );
    out.push('\n');
    states(&mut out, record, width);
    findings(&mut out, record, detail, width);
    super::remedies::section(&mut out, record, detail, width);
    if detail == Detail::Full {
        threads(&mut out, record, width);
    }
    for warning in &record.warnings {
        warn(&mut out, &warning.message, width);
    }
    method(&mut out, record, detail, width);
    out
}

/// How much was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Observed {
    /// Number of processes.
    pub processes: u64,
    /// Number of threads.
    pub threads: u64,
}

/// Returns how many processes and threads were observed.
pub(super) fn observed(record: &DoctorRecord) -> Observed {
    let named: usize = record.processes.iter().map(|process| process.threads).sum();
    // The list of processes may be shorter. Earlier records only have the list.
    Observed {
        processes: record.observation.processes.max(record.processes.len() as u64),
        threads: record.observation.threads.max(named as u64),
    }
}

fn headline(out: &mut String, record: &DoctorRecord, width: usize) {
    let Observed { processes, threads } = observed(record);
    let status = match record.exit_code {
        Some(code) => format!(" | exit {code}"),
        None => String::new(),
    };
    let text = format!(
        "{} observed | {} CPU ({:.1} of {} CPUs busy) | {}, {}{status}",
        seconds(record.observed_seconds),
        seconds(record.cpu_seconds),
        record.cpu_seconds / record.observed_seconds.max(f64::MIN_POSITIVE),
        cpus(record.cpus),
        counted(processes, "process"),
        counted(threads, "thread"),
    );
    paragraph(out, "", &text, width);
    // The command is that of the first process.
    let named = record.processes.iter().filter(|process| process.relation == Relation::Named);
    let others = named.count().saturating_sub(1) as u64;
    let others = match others {
        0 => String::new(),
        _ if (record.processes.len() as u64) < processes => " and others".to_owned(),
        n => format!(" and {}", counted(n, "more process")),
    };
    let columns = width.saturating_sub(others.len());
    let command = super::layout::cut(&printable(&record.command), columns);
    paragraph(out, "", &format!("{command}{others}"), width);
}

/// Writes two tables: the time of all threads by state, and the causes of moments.
fn states(out: &mut String, record: &DoctorRecord, width: usize) {
    let total = record.thread_seconds.max(f64::MIN_POSITIVE);
    let mut states: Vec<(ThreadState, f64)> =
        record.state_seconds.iter().map(|(state, seconds)| (*state, *seconds)).collect();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut table = plain_table();
    let heading = ["time of threads", "", "", ""];
    table.add_row(heading.iter().enumerate().map(|(n, text)| aligned_left(n, 1, (*text).into())));
    let shown = states.iter().filter(|(_, time)| *time >= 0.005 * total);
    for (state, time) in shown {
        let cells = [
            state_name(*state).to_owned(),
            seconds(*time),
            percent(*time, total),
            bar(*time / total),
        ];
        let cells = cells.into_iter().enumerate();
        table.add_row(cells.map(|(n, text)| aligned_left(if n == 3 { 0 } else { n }, 1, text)));
    }
    out.push_str(&styled_lines(table, None, width));
    out.push('\n');
    let mut table = plain_table();
    let heading = ["moments", "", "", ""];
    table.add_row(heading.iter().enumerate().map(|(n, text)| aligned_left(n, 1, (*text).into())));
    for moments in record.moments.iter().filter(|moments| moments.share >= 0.005) {
        let cells = [
            cause_name(moments.cause).to_owned(),
            seconds(moments.seconds),
            percent(moments.share, 1.0),
            bar(moments.share),
        ];
        let cells = cells.into_iter().enumerate();
        table.add_row(cells.map(|(n, text)| aligned_left(if n == 3 { 0 } else { n }, 1, text)));
    }
    out.push_str(&styled_lines(table, None, width));
}

fn bar(share: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1")]
    let length = (share.clamp(0.0, 1.0) * BAR_COLUMNS as f64).round() as usize;
    "#".repeat(length)
}

fn findings(out: &mut String, record: &DoctorRecord, detail: Detail, width: usize) {
    let shown = match detail {
        Detail::Summary => record.findings.len().min(MAX_FINDINGS),
        Detail::Full => record.findings.len(),
    };
    for (number, finding) in record.findings.iter().take(shown).enumerate() {
        out.push('\n');
        self::finding(out, number + 1, finding, width);
    }
    if shown < record.findings.len() {
        let more = counted((record.findings.len() - shown) as u64, "more finding");
        dimmed(out, &format!("{more}: --verbose"), width);
    }
}

fn finding(out: &mut String, number: usize, finding: &Finding, width: usize) {
    let gain = finding.gain_share.map_or_else(
        || "gain unknown".to_owned(),
        |gain| format!("would save about {} of the time", percent(gain, 1.0)),
    );
    let symptom = symptom_name(finding.symptom);
    let _ = writeln!(out, "{BOLD}{number}. {symptom}{BOLD:#}: {gain}");
    paragraph(out, "   ", &printable(&finding.message), width);
    paragraph(out, "   Remedy: ", &printable(&finding.remedy), width);
    if let Some(command) = &finding.command {
        paragraph(out, "   Try: ", &printable(command), width);
    }
    let estimate =
        format!("Estimated from {}. Does not apply if {}.", finding.argument, finding.unless);
    paragraph(out, "   ", &printable(&estimate), width);
    if !finding.threads.is_empty() {
        paragraph(out, "   Threads: ", &thread_names(&finding.threads), width);
    }
}

fn thread_names(threads: &[ThreadName]) -> String {
    let named: Vec<String> = threads
        .iter()
        .take(MAX_NAMED_THREADS)
        .map(|thread| {
            let name = printable(&thread.name);
            match &thread.function {
                Some(function) => format!("{name} ({}, in {})", thread.tid, printable(function)),
                None => format!("{name} ({})", thread.tid),
            }
        })
        .collect();
    let more = threads.len().saturating_sub(MAX_NAMED_THREADS);
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Writes a table of the threads with the most CPU time: the state in which each spends its time.
fn threads(out: &mut String, record: &DoctorRecord, width: usize) {
    out.push('\n');
    let mut table = plain_table();
    let heading = ["thread", "id", "CPU", "mostly"];
    table.add_row(heading.iter().enumerate().map(|(n, text)| aligned_left(n, 1, (*text).into())));
    for thread in record.threads.iter().take(MAX_THREADS) {
        let running = thread.state_seconds.get(&ThreadState::Running).copied().unwrap_or(0.0);
        let cells = [
            printable(&thread.name.name),
            thread.name.tid.to_string(),
            seconds(running),
            mostly(thread),
        ];
        let cells = cells.into_iter().enumerate();
        table.add_row(cells.map(|(n, text)| aligned_left(if n == 3 { 0 } else { n }, 1, text)));
    }
    out.push_str(&styled_lines(table, None, width));
    let shown = record.threads.len().min(MAX_THREADS) as u64;
    let in_json = record.threads.len() as u64;
    let more = record.observation.threads.max(in_json) - shown;
    if more > 0 {
        let place = match in_json {
            n if n == shown => String::new(),
            n if n < shown + more => format!(" (--json FILE has {} of them)", n - shown),
            _ => ": --json FILE".to_owned(),
        };
        dimmed(out, &format!("{}{place}", counted(more, "more thread")), width);
    }
}

fn mostly(thread: &Thread) -> String {
    let most = thread.state_seconds.iter().max_by(|a, b| a.1.total_cmp(b.1));
    most.map_or_else(String::new, |(state, time)| {
        format!("{} {}", state_name(*state), percent(*time, thread.observed_seconds))
    })
}

fn method(out: &mut String, record: &DoctorRecord, detail: Detail, width: usize) {
    let observed = &record.observation;
    let used: Vec<String> = observed
        .layers
        .iter()
        .filter(|layer| layer.used)
        .map(|layer| match observed.switches_share {
            Some(share) if layer.id == LayerId::Switches && share < 0.995 => {
                format!("{} for {} of the time", layer_name(layer.id), percent(share, 1.0))
            }
            _ => layer_name(layer.id).to_owned(),
        })
        .collect();
    out.push('\n');
    let text = format!(
        "Observed by {}; {}; contend used {} of CPU time.",
        used.join(", "),
        counted(observed.samples, "sample"),
        seconds(observed.own_cpu_seconds),
    );
    dimmed(out, &text, width);
    let is_missing = |layer: &&Layer| !layer.used && layer.id != LayerId::WaitChannels;
    for layer in observed.layers.iter().filter(is_missing) {
        let reason = layer.reason.as_deref().unwrap_or("not available");
        dimmed(out, &format!("Not seen: {} ({reason}).", layer_name(layer.id)), width);
    }
    if detail == Detail::Summary {
        dimmed(out, "More: --verbose (threads)   --json FILE", width);
    }
}

/// Returns the name of a state in reports and traces.
pub fn state_name(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "running",
        ThreadState::Runnable => "queued for a CPU",
        ThreadState::Lock => "lock",
        ThreadState::Condition => "condition or idle",
        ThreadState::Sleep => "sleep",
        ThreadState::Pipe => "pipe",
        ThreadState::Socket => "socket",
        ThreadState::Poll => "poll",
        ThreadState::Terminal => "terminal",
        ThreadState::Disk => "disk",
        ThreadState::Child => "child process",
        ThreadState::PageFault => "page fault",
        ThreadState::Stopped => "stopped",
        ThreadState::Other => "other",
        ThreadState::Unknown => "unknown",
    }
}

/// Returns the name of a cause in reports and traces.
pub fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Busy => "all its CPUs busy",
        Cause::Serial => "some CPUs busy, no other thread ready",
        Cause::OtherLoad => "ready, but others used the CPUs",
        Cause::Limited => "ready, but got no CPU",
        Cause::Lock => "none ran: lock",
        Cause::Sleep => "none ran: short sleep",
        Cause::Disk => "none ran: disk",
        Cause::Child => "none ran: child process",
        Cause::Idle => "none ran: idle or waiting",
        Cause::Stopped => "stopped",
        Cause::Unknown => "none ran: unknown",
    }
}

/// Returns the name of a symptom in reports.
pub fn symptom_name(symptom: Symptom) -> &'static str {
    match symptom {
        Symptom::SleepPolling => "Sleep polling",
        Symptom::LockStep => "Working in turn",
        Symptom::LockContention => "Contended lock",
        Symptom::InterpreterLock => "Interpreter lock",
        Symptom::SerialSection => "Serial section",
        Symptom::UnevenWork => "Uneven work",
        Symptom::Oversubscription => "Oversubscription",
        Symptom::CpuLimit => "CPU limit",
        Symptom::TinyIo => "Tiny reads or writes",
        Symptom::ForkStorm => "Short-lived processes or threads",
        Symptom::LockPolling => "Polling for a lock or a descriptor",
        Symptom::Spinning => "Spinning",
        Symptom::NotConcurrency => "Not a matter of concurrency",
        Symptom::Pipeline => "Pipeline",
    }
}

/// Returns the name of a runtime in reports.
pub(super) fn runtime_name(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Python => "CPython",
        Runtime::Ruby => "Ruby",
        Runtime::Java => "Java",
        Runtime::Node => "Node.js",
        Runtime::Go => "Go",
        Runtime::Shell => "shell",
    }
}

/// Returns why a process is observed, in a few words.
pub(super) fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Named => "named",
        Relation::Descendant => "descendant",
        Relation::SharesPipe => "shares a pipe",
    }
}

/// Returns the name of a source of information in reports.
pub(super) fn layer_name(layer: LayerId) -> &'static str {
    match layer {
        LayerId::Scheduler => "the scheduler's counters",
        LayerId::SystemCalls => "system calls",
        LayerId::WaitChannels => "wait channels",
        LayerId::Io => "counts of bytes and calls",
        LayerId::Switches => "context switches",
        LayerId::Wakes => "wake-ups",
    }
}
