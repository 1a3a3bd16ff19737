//! The stages on the terminal while they run: a table redrawn in place.
//!
//! The pipeline may write to the same terminal at any moment, and so may a program that asks
//! for a password. So the line of the cursor is never touched: the table is drawn below it
//! and the cursor put back where it was, in the same column. Where the pipeline's output goes
//! to the terminal, the table is taken away for good as soon as there is some. In the
//! background nothing is drawn.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::Duration;

use contend_profile::observe::{State, Wait};
use contend_profile::pipeline::run::{Progress, ProgressStage};
use contend_report::render::units::bytes;
use contend_shell::parse::Parsed;

use crate::output;

/// Shorter pipelines are over before anyone could read.
const DELAY: Duration = Duration::from_secs(1);

/// Clears what is below the line of the cursor; ESC D makes sure that there is a line.
pub const CLEAR_BELOW: &str = "\x1bD\x1b[1A\x1b7\r\n\x1b[J\x1b8";

/// The table on the terminal.
#[derive(Debug)]
pub struct Live {
    commands: Vec<String>,
    /// The pipeline's output goes to a terminal, perhaps the same.
    output_is_shown: bool,
    shown: bool,
    over: bool,
    rates: Rates,
}

/// Bytes that went into and out of a stage so far, where known.
type Counts = (Option<u64>, Option<u64>);

/// What went through the stages lately, for rates.
#[derive(Debug, Default)]
struct Rates {
    /// The counts at some moments, oldest first.
    history: VecDeque<(Duration, Vec<Counts>)>,
}

/// Rates are means over this time: programs read and write in bursts.
const WINDOW: Duration = Duration::from_secs(2);

impl Rates {
    /// Notes the counts now, and forgets what is older than the window needs.
    fn note(&mut self, elapsed: Duration, counts: Vec<Counts>) {
        self.history.push_back((elapsed, counts));
        while self.history.get(1).is_some_and(|(then, _)| elapsed.saturating_sub(*then) >= WINDOW) {
            self.history.pop_front();
        }
    }

    /// Bytes a second, by what `side` takes of a stage's counts.
    fn of(&self, index: usize, side: fn(&Counts) -> Option<u64>) -> Option<f64> {
        let ((then, old), (now, new)) = (self.history.front()?, self.history.back()?);
        let more = side(new.get(index)?)?.saturating_sub(side(old.get(index)?)?);
        let time = now.saturating_sub(*then).as_secs_f64();
        (time > 0.0).then(|| more as f64 / time)
    }
}

impl Live {
    /// Gets ready to show the stages of a pipeline, whose output is perhaps thrown away.
    pub fn new(parsed: &Parsed, discard: bool) -> Self {
        let commands = (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect();
        let output_is_shown = !discard && std::io::stdout().is_terminal();
        Self { commands, output_is_shown, shown: false, over: false, rates: Rates::default() }
    }

    /// Draws what the stages do now.
    pub fn show(&mut self, progress: &Progress<'_>) {
        let &Progress::Running { elapsed, stages } = progress else {
            return self.take_away();
        };
        let counts = stages.iter().map(|stage| (stage.bytes_in, stage.bytes_out)).collect();
        self.rates.note(elapsed, counts);
        let written = stages.last().and_then(|stage| stage.bytes_out);
        if self.output_is_shown && written != Some(0) && written.is_some() {
            self.over = true;
        }
        if self.over {
            self.take_away();
        } else if elapsed >= DELAY && in_foreground() && !terminal_is_taken() {
            self.draw(elapsed, stages);
        }
    }

    /// Takes the table away.
    pub fn clear(mut self) {
        self.take_away();
    }

    fn take_away(&mut self) {
        if std::mem::take(&mut self.shown) && in_foreground() && !terminal_is_taken() {
            output::terminal(CLEAR_BELOW);
        }
    }

    fn draw(&mut self, elapsed: Duration, stages: &[ProgressStage]) {
        let mut lines = vec![self.heading(elapsed, stages)];
        lines.extend(self.rows(stages, output::width()));
        // One line is the cursor's own.
        lines.truncate(terminal_height().saturating_sub(1));
        let count = lines.len();
        let room = format!("{}\x1b[{count}A", "\x1bD".repeat(count));
        output::terminal(&format!("{room}\x1b7\r\n\x1b[J{}\x1b8", lines.join("\r\n")));
        self.shown = true;
    }

    fn heading(&self, elapsed: Duration, stages: &[ProgressStage]) -> String {
        let running = stages.iter().filter(|stage| stage.state.is_some()).count();
        format!(
            "{:.0} s, {running} of {} stages running",
            elapsed.as_secs_f64(),
            self.commands.len()
        )
    }

    /// A line of headings, and one for each stage.
    fn rows(&self, stages: &[ProgressStage], width: usize) -> Vec<String> {
        let row = |cells: [&str; 7]| {
            let [number, doing, read, read_rate, written, write_rate, command] = cells;
            let line = format!(
                "{number:>2} {doing:<8} {read:>7} {read_rate:>8} {written:>7} {write_rate:>8}  \
                 {command}"
            );
            line.chars().filter(|c| !c.is_control()).take(width.saturating_sub(1)).collect()
        };
        let mut rows = vec![row(["#", "", "in", "in/s", "out", "out/s", "stage"])];
        for (index, stage) in stages.iter().enumerate() {
            let count = |count: Option<u64>| count.map_or_else(|| "?".into(), |n| bytes(n as f64));
            let rate = |side| self.rates.of(index, side).map_or_else(String::new, bytes);
            rows.push(row([
                &(index + 1).to_string(),
                doing(stage.state),
                &count(stage.bytes_in),
                &rate(|counts| counts.0),
                &count(stage.bytes_out),
                &rate(|counts| counts.1),
                &self.commands[index],
            ]));
        }
        rows
    }
}

fn doing(state: Option<State>) -> &'static str {
    match state {
        None => "ended",
        Some(State::Active) => "active",
        Some(State::Waiting(wait)) => match wait {
            Wait::Starved => "starved",
            Wait::Blocked => "blocked",
            Wait::Sleep => "sleep",
            Wait::Lock => "lock",
            Wait::Disk => "disk",
            Wait::Child => "child",
            Wait::Poll => "poll",
            Wait::Network => "network",
            Wait::Pipe => "pipe",
            Wait::Terminal => "terminal",
            Wait::Stopped => "stopped",
            Wait::Other | Wait::Unknown => "waiting",
        },
    }
}

fn terminal_height() -> usize {
    rustix::termios::tcgetwinsize(std::io::stderr())
        .map_or(24, |size| usize::from(size.ws_row).max(2))
}

/// Whether a program reads key by key or hides what is typed, as pagers, editors and those
/// do who ask for a password: the screen is theirs.
pub fn terminal_is_taken() -> bool {
    use rustix::termios::{LocalModes, tcgetattr};
    tcgetattr(std::io::stderr())
        .is_ok_and(|modes| !modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO))
}

/// A process in the background must not draw over what the user does.
pub fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stderr())
        .is_ok_and(|group| group == rustix::process::getpgrp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_means_over_two_seconds() {
        let mut rates = Rates::default();
        // A megabyte at once every second, and none in between; ten looks a second.
        for tenth in 0..=50_u64 {
            let written = tenth / 10 * 1_000_000;
            rates.note(Duration::from_millis(100 * tenth), vec![(Some(5 * tenth), Some(written))]);
            if tenth >= 20 {
                let rate = rates.of(0, |counts| counts.1).expect("two looks");
                assert!((400_000.0..=1_100_000.0).contains(&rate), "{rate} after {tenth}");
                let read = rates.of(0, |counts| counts.0).expect("two looks");
                assert!((read - 50.0).abs() < 1e-6, "{read}");
            }
        }
        assert!(rates.history.len() <= 22, "what is older is forgotten");
        assert_eq!(rates.of(1, |counts| counts.0), None);
    }
}
