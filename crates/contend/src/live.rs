//! The stages on the terminal while they run: a table redrawn in place.
//!
//! The pipeline may write to the same terminal at any moment, and so may a program that asks
//! for a password. So the line of the cursor is never touched: the table is drawn below it
//! and the cursor put back where it was, in the same column. Where the pipeline's output goes
//! to the terminal, the table is taken away for good as soon as there is some. In the
//! background nothing is drawn.

use std::io::IsTerminal;
use std::time::Duration;

use contend_profile::observe::{State, Wait};
use contend_profile::pipeline::parse::Parsed;
use contend_profile::pipeline::run::{Progress, ProgressStage};
use contend_report::render::units::bytes;

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
    before: Option<(Duration, Vec<Option<u64>>)>,
}

impl Live {
    /// Gets ready to show the stages of a pipeline, whose output is perhaps thrown away.
    pub fn new(parsed: &Parsed, discard: bool) -> Self {
        let commands = (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect();
        let output_is_shown = !discard && std::io::stdout().is_terminal();
        Self { commands, output_is_shown, shown: false, over: false, before: None }
    }

    /// Draws what the stages do now.
    pub fn show(&mut self, progress: &Progress<'_>) {
        let &Progress::Running { elapsed, stages } = progress else {
            return self.take_away();
        };
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
        lines.extend(self.rows(elapsed, stages, output::width()));
        // One line is the cursor's own.
        lines.truncate(terminal_height().saturating_sub(1));
        let count = lines.len();
        let room = format!("{}\x1b[{count}A", "\x1bD".repeat(count));
        output::terminal(&format!("{room}\x1b7\r\n\x1b[J{}\x1b8", lines.join("\r\n")));
        self.shown = true;
        let written = stages.iter().map(|stage| stage.bytes_out).collect();
        self.before = Some((elapsed, written));
    }

    fn heading(&self, elapsed: Duration, stages: &[ProgressStage]) -> String {
        let running = stages.iter().filter(|stage| stage.state.is_some()).count();
        format!(
            "{:.0} s, {running} of {} stages running",
            elapsed.as_secs_f64(),
            self.commands.len()
        )
    }

    fn rows(&self, elapsed: Duration, stages: &[ProgressStage], width: usize) -> Vec<String> {
        stages
            .iter()
            .enumerate()
            .map(|(index, stage)| {
                let rate = self.rate(index, stage, elapsed);
                let row = format!(
                    "{:>2} {:<8} {:>8} {:>10}  {}",
                    index + 1,
                    doing(stage.state),
                    stage.bytes_out.map_or_else(|| "?".into(), |count| bytes(count as f64)),
                    rate.map_or_else(String::new, |rate| format!("{}/s", bytes(rate))),
                    self.commands[index]
                );
                row.chars().filter(|c| !c.is_control()).take(width.saturating_sub(1)).collect()
            })
            .collect()
    }

    /// Bytes a second that the stage has written since the last drawing.
    fn rate(&self, index: usize, stage: &ProgressStage, elapsed: Duration) -> Option<f64> {
        let (then, written) = self.before.as_ref()?;
        let more = stage.bytes_out?.saturating_sub((*written.get(index)?)?);
        let time = elapsed.checked_sub(*then)?.as_secs_f64();
        (time > 0.0).then(|| more as f64 / time)
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
