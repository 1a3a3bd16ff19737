//! The list of findings, of which one has its evidence and remedy, and the list of threads.

use contend_record::doctor::{DoctorRecord, Evidence, Finding, Symptom, Thread, ThreadState};
use contend_report::render::doctor::{state_name, symptom_name};
use contend_report::render::text::printable;
use contend_report::render::units::{percent, ratio, seconds};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::bars::{RUNNING, bar};
use super::text::{BOLD, DIM, cut, padded, wrapped};

/// Indentation of the details of a finding.
const INDENT: &str = "     ";
/// Widths of the columns of a thread's ID, and of its shares running and queued.
const ID_COLUMNS: usize = 8;
const SHARE_COLUMNS: usize = 8;
/// Smallest and largest width of the column of a thread's name.
const NAME_COLUMNS: [usize; 2] = [10, 20];
/// Width of the column with a thread's longest wait: a gap, a percentage and a state.
const WAIT_COLUMNS: usize = 3 + 5 + 17;

/// Returns the findings in at most `room` lines. The selected one, or else the first one, has its
/// details, and is visible.
pub fn findings(
    record: &DoctorRecord,
    selected: Option<Symptom>,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    if room == 0 {
        return Vec::new();
    }
    let title = match record.findings.len() {
        0 | 1 => "findings".to_owned(),
        count => format!("findings ({count})"),
    };
    let mut lines = vec![Line::styled(title, DIM)];
    if record.findings.is_empty() {
        let text = "none: nothing that contend knows explains a loss";
        lines.extend(wrapped(text, "  ", width, room - 1, Style::new()));
        return lines;
    }
    let selected = selected_index(record, selected);
    let (mut rows, mut start) = (Vec::new(), 0);
    for (index, finding) in record.findings.iter().enumerate() {
        let is_selected = index == selected;
        if is_selected {
            start = rows.len();
        }
        rows.push(headline(index, finding, is_selected, width));
        if is_selected {
            // The diagnosis contains the message of the first one.
            rows.extend(details(finding, index > 0, width));
        }
    }
    // As many of the findings before the selected one as there is room for.
    let first = start.min(rows.len().saturating_sub(room - 1));
    lines.extend(rows.into_iter().skip(first).take(room - 1));
    lines
}

/// Returns the index of the selected finding: that of the symptom, or else the first one.
pub fn selected_index(record: &DoctorRecord, selected: Option<Symptom>) -> usize {
    let is_selected = |finding: &Finding| Some(finding.symptom) == selected;
    record.findings.iter().position(is_selected).unwrap_or(0)
}

fn headline(index: usize, finding: &Finding, is_selected: bool, width: usize) -> Line<'static> {
    let gain = finding.gain_share.map_or_else(
        || "gain unknown".to_owned(),
        |gain| format!("would save about {} of the time", percent(gain, 1.0)),
    );
    let mark = if is_selected { ">" } else { " " };
    let text = format!("{mark} {}. {}: {gain}", index + 1, symptom_name(finding.symptom));
    Line::styled(cut(&text, width), if is_selected { BOLD } else { Style::new() })
}

/// Returns the remedy and the evidence of a finding, most important first.
fn details(finding: &Finding, has_message: bool, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let mut add = |text: &str| {
        lines.extend(wrapped(&printable(text), INDENT, width, usize::MAX, Style::new()));
    };
    if has_message {
        add(&finding.message);
    }
    add(&format!("Remedy: {}", finding.remedy));
    if let Some(command) = &finding.command {
        add(&format!("Try: {command}"));
    }
    let evidence: Vec<String> = finding.evidence.iter().map(figure).collect();
    if !evidence.is_empty() {
        add(&format!("Evidence: {}", evidence.join(", ")));
    }
    add(&format!("Does not apply if {}.", finding.unless));
    lines
}

/// Returns a figure with its name, such as `sleeps per second 120`.
fn figure(evidence: &Evidence) -> String {
    let (name, value) = (evidence.name.as_str(), evidence.value);
    let (name, value) = if let Some(name) = name.strip_suffix("_seconds") {
        (name, seconds(value))
    } else if let Some(name) = name.strip_suffix("_share") {
        (name, format!("{:.0}%", 100.0 * value))
    } else if value.fract() == 0.0 && value.abs() < 1e6 {
        (name, format!("{value:.0}"))
    } else {
        (name, ratio(value))
    };
    format!("{} {value}", name.replace('_', " "))
}

/// The columns of the table of threads that fit into a terminal.
#[derive(Debug, Clone, Copy)]
struct Columns {
    name: usize,
    bar: usize,
    has_id: bool,
    has_queued: bool,
}

impl Columns {
    fn new(width: usize) -> Self {
        let [least, most] = NAME_COLUMNS;
        let free = width.saturating_sub(2 + least + SHARE_COLUMNS + WAIT_COLUMNS);
        let has_queued = free >= SHARE_COLUMNS;
        let free = free.saturating_sub(if has_queued { SHARE_COLUMNS } else { 0 });
        let has_id = free >= ID_COLUMNS;
        let free = free.saturating_sub(if has_id { ID_COLUMNS } else { 0 });
        let name = (least + free / 2).min(most);
        let bar = free.saturating_sub(name - least + 1).min(20);
        Self { name, bar: if bar < 4 { 0 } else { bar }, has_id, has_queued }
    }

    fn line(self, cells: [&str; 5], bar: Span<'static>) -> Line<'static> {
        let [name, id, running, queued, wait] = cells;
        let mut line = Line::raw(format!("  {}", padded(name, self.name)));
        if self.has_id {
            line.push_span(Span::raw(format!("{id:>ID_COLUMNS$}")));
        }
        line.push_span(Span::raw(format!("{running:>SHARE_COLUMNS$}")));
        if self.bar > 0 {
            let spaces = self.bar.saturating_sub(bar.width());
            line.push_span(Span::raw(" "));
            line.push_span(bar);
            line.push_span(Span::raw(" ".repeat(spaces)));
        }
        if self.has_queued {
            line.push_span(Span::raw(format!("{queued:>SHARE_COLUMNS$}")));
        }
        line.push_span(Span::raw(format!("   {wait}")));
        line
    }
}

/// Returns the threads with the most CPU time in at most `room` lines.
pub fn threads(record: &DoctorRecord, width: usize, room: usize) -> Vec<Line<'static>> {
    let columns = Columns::new(width);
    let all = record.threads.len();
    let shown = all.min(room.saturating_sub(1));
    let mut title = format!("threads ({shown} of {all})");
    if shown == all || title.len() > columns.name {
        title.truncate("threads".len());
    }
    let heading = ["", "id", "running", "queued", " longest wait"];
    let mut heading = columns.line(heading, Span::raw("")).style(DIM);
    // The title stands where those of other lists do: two columns before the names.
    heading.spans[0] = Span::raw(padded(&title, columns.name + 2));
    let rows = record.threads.iter().map(|thread| row(thread, columns));
    std::iter::once(heading).chain(rows).take(room).collect()
}

fn row(thread: &Thread, columns: Columns) -> Line<'static> {
    let share = |state: ThreadState| {
        let time = thread.state_seconds.get(&state).copied().unwrap_or(0.0);
        time / thread.observed_seconds.max(f64::MIN_POSITIVE)
    };
    let running = share(ThreadState::Running);
    let cells = [
        &printable(&thread.name.name),
        &thread.name.tid.to_string(),
        &percent(running, 1.0),
        &percent(share(ThreadState::Runnable), 1.0),
        &longest_wait(thread),
    ];
    columns.line(cells.map(String::as_str), Span::styled(bar(running, columns.bar), RUNNING))
}

/// Returns the state in which a thread waits for longest, after its share of the time; empty for a
/// thread that does not wait.
fn longest_wait(thread: &Thread) -> String {
    let is_wait =
        |state: ThreadState| !matches!(state, ThreadState::Running | ThreadState::Runnable);
    let waits = thread.state_seconds.iter().filter(|(state, _)| is_wait(**state));
    waits.max_by(|a, b| a.1.total_cmp(b.1)).map_or_else(String::new, |(state, time)| {
        format!("{:>4} {}", percent(*time, thread.observed_seconds), state_name(*state))
    })
}
