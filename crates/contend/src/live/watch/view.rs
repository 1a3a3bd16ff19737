//! What the screen of `contend doctor --watch` shows: a function of a record and of what the user has
//! chosen.
//!
//! ```text
//! heading ──── command, elapsed time, CPUs in use, number of threads
//! diagnosis ── in words, with a warning
//! moments ──── a bar for each cause  │  time of threads: a bar for each state
//! findings ─── one of them with its evidence and remedy
//! threads ──── those with the most CPU time
//! footer ───── keys
//! ```
//!
//! Of findings and threads, the list that the user has chosen comes first and takes the lines that it
//! needs; the other one takes the remainder. On a narrow terminal, the bars of states stand below
//! those of causes.

mod bars;
mod lists;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use contend_record::doctor::{DoctorRecord, Relation, Symptom};
use contend_report::render::text::printable;
use contend_report::render::units::{counted, cpus};
use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use text::{BOLD, DIM, WARN, between, cut, wrapped};

pub use lists::selected_index;

/// Minimum width for two tables of bars side by side, in columns.
const MIN_COLUMNS_FOR_TWO: usize = 56;
/// Minimum number of lines for the second list, with a blank line and its title.
const MIN_LIST_LINES: usize = 4;
/// Number of lines from which the parts of the screen are set apart by blank lines.
const MIN_LINES_FOR_BLANKS: usize = 16;

/// What the user has chosen, and what the record does not contain.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The list that comes first.
    pub list: List,
    /// The time that the record is about.
    pub scope: Scope,
    /// The finding that is shown with its evidence; `None` for the first one.
    pub selected: Option<Symptom>,
    /// Whether the display is paused; the observation is not.
    pub is_paused: bool,
    /// Time since the observation began.
    pub elapsed: Duration,
    /// The last lines that the command has written.
    pub output: Vec<String>,
    /// Whether the screen has colours and other styles.
    pub has_styles: bool,
}

/// A list of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum List {
    /// The findings.
    #[default]
    Findings,
    /// The threads with the most CPU time.
    Threads,
}

/// The time that the figures are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The observation since its start.
    #[default]
    Whole,
    /// The last ten seconds.
    Recent,
}

impl List {
    /// Returns the other list.
    pub fn other(self) -> Self {
        match self {
            Self::Findings => Self::Threads,
            Self::Threads => Self::Findings,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Findings => "findings",
            Self::Threads => "threads",
        }
    }
}

impl Scope {
    /// Returns the other time.
    pub fn other(self) -> Self {
        match self {
            Self::Whole => Self::Recent,
            Self::Recent => Self::Whole,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Whole => "since the start",
            Self::Recent => "last 10 s",
        }
    }
}

/// Draws the screen. Without a record, says that the observation has begun.
pub fn draw(frame: &mut Frame<'_>, record: Option<&DoctorRecord>, view: &View) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = match record {
        Some(record) => lines(record, view, width, height),
        None => vec![Line::from("Observing…")],
    };
    if !view.has_styles {
        for line in &mut lines {
            line.style = Style::new();
            line.spans.iter_mut().for_each(|span| span.style = Style::new());
        }
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Returns the lines of a screen with `height` lines of `width` columns.
fn lines(record: &DoctorRecord, view: &View, width: usize, height: usize) -> Vec<Line<'static>> {
    let room = height.saturating_sub(1); // without the footer
    let blank = usize::from(room >= MIN_LINES_FOR_BLANKS);
    let mut out = heading(record, view, width);
    out.extend(vec![Line::default(); blank]);
    out.extend(diagnosis(record, width, room));
    out.extend(vec![Line::default(); blank]);
    // The lists get at least half of the remainder.
    let rest = room.saturating_sub(out.len() + blank);
    out.extend(tables(record, width, rest.div_ceil(2)));
    out.extend(vec![Line::default(); blank]);
    out.extend(both_lists(record, view, width, room.saturating_sub(out.len())));
    let rest = room.saturating_sub(out.len());
    out.extend(output(&view.output, width, rest));
    out.resize(room, Line::default());
    out.push(footer(record, view, width));
    out.truncate(height.max(1));
    out
}

/// Returns two lines: what is observed and for how long, and how many CPUs it uses.
fn heading(record: &DoctorRecord, view: &View, width: usize) -> Vec<Line<'static>> {
    let command = printable(&record.command);
    let subject = if record.started { command } else { format!("{}: {command}", pids(record)) };
    let mut status = format!("{}, {}", duration(view.elapsed), view.scope.name());
    if view.is_paused {
        status += ", paused";
    }
    let room = width.saturating_sub(status.width() + 2).max(width / 3);
    let subject = Span::styled(cut(&subject, room), BOLD);
    let style = if view.is_paused { WARN } else { Style::new() };
    let first = between(vec![subject], Span::styled(status, style), width);

    let used = record.cpu_seconds / record.observed_seconds.max(f64::MIN_POSITIVE);
    let columns = (width / 4).min(20);
    let bar = bars::bar(used / record.cpus.max(f64::MIN_POSITIVE), columns);
    let left = vec![
        Span::raw("CPUs ["),
        Span::styled(format!("{bar:<columns$}"), bars::RUNNING),
        Span::raw(format!("] {used:.1} of {} used", cpus(record.cpus))),
    ];
    let threads: usize = record.processes.iter().map(|process| process.threads).sum();
    let processes = counted(record.processes.len() as u64, "process");
    let counts = format!("{processes}, {}", counted(threads as u64, "thread"));
    vec![first, between(left, Span::styled(counts, DIM), width)]
}

/// Returns the PIDs of the named processes.
fn pids(record: &DoctorRecord) -> String {
    let named = record.processes.iter().filter(|process| process.relation == Relation::Named);
    let mut pids: Vec<i32> = named.map(|process| process.pid).collect();
    pids.sort_unstable();
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    format!("{} {}", if pids.len() == 1 { "PID" } else { "PIDs" }, pids.join(", "))
}

/// Formats a time in whole seconds.
fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Returns the diagnosis and the first warning.
fn diagnosis(record: &DoctorRecord, width: usize, room: usize) -> Vec<Line<'static>> {
    let most = match room {
        0..12 => 2,
        12..21 => 3,
        21..40 => 4,
        _ => 10,
    };
    let mut lines = wrapped(&printable(&record.diagnosis), "", width, most, Style::new());
    if let Some(warning) = record.warnings.first() {
        let text = format!("Warning: {}", printable(&warning.message));
        lines.extend(wrapped(&text, "", width, if room < 40 { 1 } else { 3 }, WARN));
    }
    lines
}

/// Returns the tables of causes and of states, in at most `room` lines.
fn tables(record: &DoctorRecord, width: usize, room: usize) -> Vec<Line<'static>> {
    if width >= MIN_COLUMNS_FOR_TWO {
        let column = (width - 2) / 2;
        let causes = bars::of_causes(record, column, room);
        let states = bars::of_states(record, column, room);
        return side_by_side(causes, states, column + 2);
    }
    let mut lines = bars::of_causes(record, width, room.div_ceil(2));
    lines.extend(bars::of_states(record, width, room.saturating_sub(lines.len())));
    lines
}

/// Joins lines, so that those of the second list begin at column `start`.
fn side_by_side(
    left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    start: usize,
) -> Vec<Line<'static>> {
    let count = left.len().max(right.len());
    let rows =
        |lines: Vec<Line<'static>>| lines.into_iter().chain(std::iter::repeat(Line::default()));
    let joined = rows(left).zip(rows(right)).map(|(mut left, right)| {
        left.push_span(Span::raw(" ".repeat(start.saturating_sub(left.width()))));
        left.spans.extend(right.spans);
        left
    });
    joined.take(count).collect()
}

/// Returns the list that the user has chosen, and as much of the other one as there is room for.
fn both_lists(record: &DoctorRecord, view: &View, width: usize, room: usize) -> Vec<Line<'static>> {
    let list = |list: List, room: usize| match list {
        List::Findings => lists::findings(record, view.selected, width, room),
        List::Threads => lists::threads(record, width, room),
    };
    let mut lines = list(view.list, room);
    let rest = room.saturating_sub(lines.len());
    if rest >= MIN_LIST_LINES {
        lines.push(Line::default());
        lines.extend(list(view.list.other(), rest - 1));
    }
    lines
}

/// Returns the last lines of the command's output, if there is room for at least one.
fn output(output: &[String], width: usize, room: usize) -> Vec<Line<'static>> {
    if output.is_empty() || room < 3 {
        return Vec::new();
    }
    let shown = output.len().saturating_sub(room - 2);
    let mut lines = vec![Line::default(), Line::styled("output of the command", DIM)];
    lines.extend(output[shown..].iter().map(|line| Line::raw(cut(&printable(line), width))));
    lines
}

/// Returns the keys and what they do. The last ones are left out if they do not fit.
fn footer(record: &DoctorRecord, view: &View, width: usize) -> Line<'static> {
    let mut keys = vec![("q", "quit")];
    if record.findings.len() > 1 {
        keys.push(("↑↓", "finding"));
    }
    keys.push(("t", view.list.other().name()));
    keys.push(("w", view.scope.other().name()));
    keys.push(("space", if view.is_paused { "continue" } else { "pause" }));
    let mut line = Line::default();
    for (key, action) in keys {
        let gap = if line.spans.is_empty() { "" } else { "  " };
        let key = format!("{gap}{key} ");
        if line.width() + key.width() + action.width() > width {
            break;
        }
        line.push_span(Span::styled(key, Style::new().add_modifier(Modifier::BOLD)));
        line.push_span(Span::styled(action, DIM));
    }
    line
}
