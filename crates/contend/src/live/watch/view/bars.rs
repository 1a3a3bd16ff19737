//! Tables of bars: the causes of moments, and the time of threads by state.

use contend_record::doctor::{Cause, DoctorRecord, ThreadState};
use contend_report::render::doctor::{cause_name, state_name};
use contend_report::render::units::percent;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::text::{DIM, padded};

/// Style of bars of time on a CPU.
pub const RUNNING: Style = Style::new().fg(Color::Green);
/// Style of bars of time in which a CPU was missing.
const QUEUED: Style = Style::new().fg(Color::Yellow);
/// Style of bars of waits.
const WAITING: Style = Style::new().fg(Color::Red);
/// Style of bars of time without work.
const IDLE: Style = Style::new().fg(Color::Blue);

/// Shares below this one, from 0 to 1, have no row.
const MIN_SHARE: f64 = 0.005;
/// Width of a percentage with the spaces around it, in columns.
const PERCENT_COLUMNS: usize = 6;
/// Minimum width of a bar beside a long label, in columns.
const MIN_BAR_COLUMNS: usize = 12;
/// Largest width of a bar, in columns.
const MAX_BAR_COLUMNS: usize = 40;

struct Row {
    label: &'static str,
    share: f64,
    style: Style,
}

/// Returns the causes of moments, most frequent first, in at most `room` lines.
pub fn of_causes(record: &DoctorRecord, width: usize, room: usize) -> Vec<Line<'static>> {
    let shown: Vec<(Cause, f64)> = record
        .moments
        .iter()
        .filter(|moments| moments.share >= MIN_SHARE)
        .map(|moments| (moments.cause, moments.share))
        .collect();
    let longest = shown.iter().map(|(cause, _)| cause_name(*cause).width()).max().unwrap_or(0);
    let has_room = longest + PERCENT_COLUMNS + MIN_BAR_COLUMNS <= width;
    let name = if has_room { cause_name } else { short_name };
    let rows = shown.iter().map(|&(cause, share)| Row {
        label: name(cause),
        share,
        style: style_of_cause(cause),
    });
    table("moments", &rows.collect::<Vec<_>>(), width, room)
}

/// Returns the time of all threads by state, longest first, in at most `room` lines.
pub fn of_states(record: &DoctorRecord, width: usize, room: usize) -> Vec<Line<'static>> {
    let total = record.thread_seconds.max(f64::MIN_POSITIVE);
    let mut rows: Vec<Row> = record
        .state_seconds
        .iter()
        .map(|(&state, time)| Row {
            label: state_name(state),
            share: time / total,
            style: style_of_state(state),
        })
        .filter(|row| row.share >= MIN_SHARE)
        .collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    table("time of threads", &rows, width, room)
}

fn table(title: &'static str, rows: &[Row], width: usize, room: usize) -> Vec<Line<'static>> {
    let longest = rows.iter().map(|row| row.label.width()).max().unwrap_or(0);
    let label = longest.min((width * 3 / 5).max(width.saturating_sub(PERCENT_COLUMNS + 8)));
    let bar_columns = width.saturating_sub(label + PERCENT_COLUMNS).min(MAX_BAR_COLUMNS);
    let mut lines = vec![Line::styled(title, DIM)];
    lines.extend(rows.iter().map(|row| {
        Line::from(vec![
            Span::raw(padded(row.label, label)),
            Span::raw(format!(" {:>4} ", percent(row.share, 1.0))),
            Span::styled(bar(row.share, bar_columns), row.style),
        ])
    }));
    lines.truncate(room);
    lines
}

/// Returns a bar that takes `share`, from 0 to 1, of `columns` columns.
pub fn bar(share: f64, columns: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * columns as f64).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Returns the name of a cause in at most 16 columns.
fn short_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Busy => "all CPUs busy",
        Cause::Serial => "some CPUs busy",
        Cause::OtherLoad => "others used CPUs",
        Cause::Limited => "ready, no CPU",
        Cause::Lock => "none ran: lock",
        Cause::Sleep => "none ran: sleep",
        Cause::Disk => "none ran: disk",
        Cause::Child => "none ran: child",
        Cause::Idle => "idle or waiting",
        Cause::Stopped => "stopped",
        Cause::Unknown => "none ran: ?",
    }
}

fn style_of_cause(cause: Cause) -> Style {
    match cause {
        Cause::Busy => RUNNING,
        Cause::Serial | Cause::OtherLoad | Cause::Limited => QUEUED,
        Cause::Lock | Cause::Sleep | Cause::Disk | Cause::Child | Cause::Unknown => WAITING,
        Cause::Idle | Cause::Stopped => IDLE,
    }
}

/// A wait for input or another thread may be that of an idle thread.
fn style_of_state(state: ThreadState) -> Style {
    match state {
        ThreadState::Running => RUNNING,
        ThreadState::Runnable => QUEUED,
        ThreadState::Lock | ThreadState::Disk | ThreadState::PageFault | ThreadState::Unknown => {
            WAITING
        }
        _ => IDLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_eighths_of_columns() {
        assert_eq!(bar(0.0, 8), "");
        assert_eq!(bar(1.0, 8), "████████");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(0.01, 10), "▏");
        assert_eq!(bar(7.0, 2), "██");
        assert_eq!(bar(f64::NAN, 2), "");
    }

    #[test]
    fn short_names_are_short() {
        for cause in [Cause::Busy, Cause::OtherLoad, Cause::Sleep, Cause::Idle, Cause::Unknown] {
            assert!(short_name(cause).len() <= 16, "{cause:?}");
        }
    }
}
