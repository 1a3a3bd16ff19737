//! The stages on the terminal while they run: a table redrawn in place.
//!
//! The pipeline may write to the same terminal at any moment. So the table is drawn below
//! the cursor and the cursor is put back above it: what the pipeline writes lands over
//! the table, never under it, and nothing of it is ever erased. Each drawing begins by
//! clearing from the cursor down.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use contend_profile::observe::{State, Wait};
use contend_profile::pipeline::parse::Parsed;
use contend_profile::pipeline::run::{Progress, ProgressStage};
use contend_report::render::units::bytes;

use crate::output;

/// Shorter pipelines are over before anyone could read.
const DELAY: Duration = Duration::from_secs(1);

/// Clears from the cursor to the end of the screen.
const CLEAR: &str = "\r\x1b[J";

/// The table on the terminal.
#[derive(Debug)]
pub struct Live {
    commands: Vec<String>,
    shown: bool,
    before: Option<(Duration, Vec<Option<u64>>)>,
}

impl Live {
    /// Gets ready to show the stages of a pipeline.
    pub fn new(parsed: &Parsed) -> Self {
        let commands = (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect();
        Self { commands, shown: false, before: None }
    }

    /// Draws what the stages do now.
    pub fn show(&mut self, progress: &Progress<'_>) {
        if progress.elapsed < DELAY {
            return;
        }
        let width = output::width();
        let height = terminal_height();
        let mut text = String::from(CLEAR);
        // An empty line first: a short line of the pipeline's own output lands there.
        let mut lines = vec![String::new(), self.heading(progress)];
        lines.extend(self.rows(progress, width));
        lines.truncate(height.saturating_sub(1).max(1));
        text.push_str(&lines.join("\n"));
        let _ = write!(text, "\r\x1b[{}A", lines.len() - 1);
        draw(&text);
        self.shown = true;
        let written = progress.stages.iter().map(|stage| stage.bytes_out).collect();
        self.before = Some((progress.elapsed, written));
    }

    /// Takes the table away.
    pub fn clear(self) {
        if self.shown {
            draw(CLEAR);
        }
    }

    fn heading(&self, progress: &Progress<'_>) -> String {
        let running = progress.stages.iter().filter(|stage| stage.state.is_some()).count();
        format!(
            "{:.0} s, {running} of {} stages running",
            progress.elapsed.as_secs_f64(),
            self.commands.len()
        )
    }

    fn rows(&self, progress: &Progress<'_>, width: usize) -> Vec<String> {
        progress
            .stages
            .iter()
            .enumerate()
            .map(|(index, stage)| {
                let rate = self.rate(index, stage, progress.elapsed);
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

/// Writes to the terminal; a terminal that has gone is no reason to stop.
fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
