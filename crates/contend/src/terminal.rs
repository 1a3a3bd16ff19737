//! Lines of the terminal that are redrawn in place: live views and progress.
//!
//! The pipeline may write to the same terminal at any moment, and so may a program that asks for a
//! password. [`LinesBelow`] therefore never touches the line of the cursor: its lines appear below
//! that, and the cursor returns to its place.
//!
//! ```text
//! $ contend pipe 'A | B'
//! output of the pipeline █         the line of the cursor and those above it stay
//! 12 s, 2 of 2 stages running      cleared and drawn again for every update
//! 1 A  ...
//! ```
//!
//! [`LinesBelow`] draws nothing in the background, or while another program reads single keys.
//! [`StatusLine`] replaces the line of the cursor itself, for times when no pipeline writes there.

use std::io;

use anstream::{AutoStream, ColorChoice};
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetwinsize};

use crate::output;

/// Control sequences that clear the lines below the cursor. ESC D ensures that there is a line
/// below the cursor.
const CLEAR_BELOW: &str = "\x1bD\x1b[1A\x1b7\r\n\x1b[J\x1b8";
/// Control sequences that clear the line of the cursor.
const CLEAR_LINE: &str = "\r\x1b[K";
/// Number of lines assumed for a terminal that does not report its size.
const DEFAULT_HEIGHT: usize = 24;
/// Number of cells in a progress bar, on a narrow terminal and on others.
const BAR_CELLS: [usize; 2] = [10, 20];
/// Number of columns below which a terminal is narrow.
const NARROW_COLUMNS: usize = 72;

/// The line of the cursor, with the current activity, while no pipeline writes to the terminal.
#[derive(Debug, Clone, Copy)]
pub struct StatusLine {
    /// Whether to draw at all.
    pub draws: bool,
}

impl StatusLine {
    /// Replaces the line.
    pub fn show(self, text: &str) {
        if self.draws {
            output::terminal(&format!("{CLEAR_LINE}{}", fit(text, output::width())));
        }
    }

    /// Empties the line.
    pub fn clear(self) {
        if self.draws {
            output::terminal(CLEAR_LINE);
        }
    }
}

/// Lines below the cursor, which are cleared when the value is dropped.
#[derive(Debug, Default)]
pub struct LinesBelow {
    shown: bool,
}

impl LinesBelow {
    /// Replaces the lines with as many of the given ones as the terminal has room for. Does nothing
    /// while the terminal must not be drawn on.
    pub fn draw(&mut self, lines: &[String]) {
        if !may_draw() {
            return;
        }
        let lines = &lines[..lines.len().min(room())];
        let down = "\x1bD".repeat(lines.len());
        let text = lines.join("\r\n");
        output::terminal(&format!("{down}\x1b[{}A\x1b7\r\n\x1b[J{text}\x1b8", lines.len()));
        self.shown = true;
    }

    /// Removes the lines, if any are shown. If the terminal must not be drawn on, they stay until
    /// something else is written there.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) && may_draw() {
            output::terminal(CLEAR_BELOW);
        }
    }
}

impl Drop for LinesBelow {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns the number of lines that can be drawn below the cursor: those of the terminal on
/// standard error except one, and at least one.
pub fn room() -> usize {
    let height = tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_row));
    if height == 0 { DEFAULT_HEIGHT - 1 } else { height.saturating_sub(1).max(1) }
}

/// Returns whether this process is in the foreground and no other program owns the screen.
fn may_draw() -> bool {
    in_foreground() && !reads_single_keys()
}

/// Returns whether a program reads single keys or hides the input, as pagers, editors and password
/// prompts do.
fn reads_single_keys() -> bool {
    tcgetattr(io::stderr())
        .is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO))
}

fn in_foreground() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Returns whether lines may have styles, such as bold, according to `--color` and standard error.
pub fn has_styles() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Removes control characters from a line, and cuts it before the last of `columns` columns: a
/// character there would wrap on some terminals.
pub fn fit(line: &str, columns: usize) -> String {
    line.chars().filter(|c| !c.is_control()).take(columns.saturating_sub(1)).collect()
}

/// Returns a progress bar with its percentage, such as `[#####...............] 25 %`, for a
/// terminal of `columns` columns. `share` is limited to the range from 0 to 1.
pub fn bar(share: f64, columns: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    let cells = BAR_CELLS[usize::from(columns >= NARROW_COLUMNS)];
    let full = (1..=cells).filter(|&cell| share * cells as f64 >= cell as f64).count();
    let cells = "#".repeat(full) + &".".repeat(cells - full);
    format!("[{cells}] {:.0} %", (100.0 * share).floor())
}

/// Formats the remaining time, given in seconds and rounded up, as text such as `8 s left`.
pub fn time_left(seconds: f64) -> String {
    // A number of seconds that exceeds the range of a duration saturates.
    let seconds = std::time::Duration::try_from_secs_f64(seconds.ceil().max(0.0));
    match seconds.map_or(u64::MAX, |time| time.as_secs()) {
        seconds @ 0..120 => format!("{seconds} s left"),
        seconds @ 120..7200 => format!("{} min left", seconds.div_ceil(60)),
        seconds => format!("{} h left", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_only_at_the_end() {
        assert_eq!(bar(0.0, 80), "[....................] 0 %");
        assert_eq!(bar(0.25, 80), "[#####...............] 25 %");
        assert_eq!(bar(0.999, 80), "[###################.] 99 %");
        assert_eq!(bar(1.0, 60), "[##########] 100 %");
        assert_eq!(bar(7.0, 80), bar(1.0, 80));
    }

    #[test]
    fn time_left_is_rounded_up() {
        assert_eq!(time_left(0.2), "1 s left");
        assert_eq!(time_left(119.0), "119 s left");
        assert_eq!(time_left(130.0), "3 min left");
        assert_eq!(time_left(7201.0), "3 h left");
        assert_eq!(time_left(-1.0), "0 s left");
    }

    #[test]
    fn a_line_keeps_the_last_column_free() {
        assert_eq!(fit("abc\u{7}def", 6), "abcde");
        assert_eq!(fit("ab", 6), "ab");
    }
}
