//! How far a run is, on the terminal: one line below that of the cursor, drawn as the table of
//! `contend pipe` is.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contend_parallel::execute::Tally;
use contend_parallel::plan::ir::{Plan, Step};
use contend_report::render::units::bytes;

use crate::live::{CLEAR_BELOW, in_foreground, terminal_is_taken};
use crate::output;

/// Shorter runs are over before anyone could read.
const DELAY: Duration = Duration::from_secs(1);
/// The line is drawn no more often than this.
const INTERVAL: Duration = Duration::from_millis(200);

/// The line on the terminal.
#[derive(Debug)]
pub(super) struct Progress {
    /// None where nothing is drawn.
    line: Option<Arc<Mutex<Line>>>,
    begun: Instant,
    drawn: Option<Instant>,
}

/// What is on the terminal.
#[derive(Debug, Default)]
struct Line {
    shown: bool,
    /// Nothing is drawn any more.
    over: bool,
}

impl Line {
    fn draw(&mut self, text: &str) {
        if !self.over && in_foreground() && !terminal_is_taken() {
            output::terminal(&format!("\x1bD\x1b[1A\x1b7\r\n\x1b[J{text}\x1b8"));
            self.shown = true;
        }
    }

    fn take_away(&mut self) {
        self.over = true;
        if std::mem::take(&mut self.shown) && in_foreground() && !terminal_is_taken() {
            output::terminal(CLEAR_BELOW);
        }
    }
}

impl Progress {
    /// The line of a run that begins now, if it is `wanted` and there is something to say.
    pub(super) fn new(wanted: bool, plan: &Plan, tally: &Tally) -> Self {
        // Of what commands write to the terminal themselves nobody knows when it comes.
        let is_ours = matches!(plan.steps.last(), Some(Step::Parallel(_)));
        let shares = std::io::stdout().is_terminal();
        let draws = wanted && plan.is_parallel() && (is_ours || !shares);
        let line = draws.then(Arc::<Mutex<Line>>::default);
        if let Some(line) = line.clone().filter(|_| shares) {
            tally.before_output(move || lock(&line, Line::take_away));
        }
        Self { line, begun: Instant::now(), drawn: None }
    }

    /// Draws how far it is, if it is time to.
    pub(super) fn show(&mut self, tally: &Tally) {
        let Some(line) = &self.line else { return };
        let elapsed = self.begun.elapsed();
        if elapsed < DELAY || self.drawn.is_some_and(|drawn| drawn.elapsed() < INTERVAL) {
            return;
        }
        self.drawn = Some(Instant::now());
        let text = text(tally.bytes(), tally.size(), elapsed);
        // A key that is pressed, such as ^C, is shown on the line of the cursor.
        let room = output::width().saturating_sub(1);
        let text: String = text.chars().take(room).collect();
        lock(line, |line| line.draw(&text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            lock(line, Line::take_away);
        }
    }
}

fn lock(line: &Mutex<Line>, what: impl Fn(&mut Line)) {
    what(&mut line.lock().unwrap_or_else(PoisonError::into_inner));
}

/// So many bytes of so many were read in this time.
fn text(read: u64, size: Option<u64>, elapsed: Duration) -> String {
    let rate = read as f64 / elapsed.as_secs_f64().max(1e-3);
    let amount = bytes(read as f64);
    match size {
        Some(size) if read >= size => format!("{amount} read, finishing"),
        Some(size) => {
            let left = (size - read) as f64 / rate.max(1.0);
            let (size, rate) = (bytes(size as f64), bytes(rate));
            format!("{amount} of {size} read, {rate}/s, about {:.0} s left", left.ceil())
        }
        None => format!("{amount} read, {}/s", bytes(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_told_where_the_size_is_known() {
        let two = Duration::from_secs(2);
        let some = text(40_000_000, Some(100_000_000), two);
        assert_eq!(some, "40.0MB of 100MB read, 20.0MB/s, about 3 s left");
        assert_eq!(text(100, Some(100), two), "100B read, finishing");
        assert_eq!(text(40_000_000, None, two), "40.0MB read, 20.0MB/s");
    }
}
