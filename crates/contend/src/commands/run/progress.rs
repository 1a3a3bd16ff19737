//! Progress of `contend run`: one line below the cursor, with a bar if the size of the input is
//! known.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contend_parallel::execute::Tally;
use contend_parallel::plan::ir::{Plan, Step};
use contend_record::run::{DividedOutcome, Division};
use contend_report::render::units::bytes;

use crate::output;
use crate::terminal::{LinesBelow, bar, fit, time_left};

/// Minimum time from the start of a run to its first progress line.
const START_DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two updates of the line.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The progress line of a run.
#[derive(Debug)]
pub(super) struct Progress {
    /// The line on the terminal; `None` if nothing is drawn. If standard output is a terminal, the
    /// thread that writes the first output removes the line.
    line: Option<Arc<Mutex<Line>>>,
    started: Instant,
    drawn: Option<Instant>,
}

#[derive(Debug, Default)]
struct Line {
    lines: LinesBelow,
    /// Whether the line has been removed for good.
    is_over: bool,
}

impl Line {
    fn draw(&mut self, text: String) {
        if !self.is_over {
            self.lines.draw(&[text]);
        }
    }

    fn remove(&mut self) {
        self.is_over = true;
        self.lines.clear();
    }
}

impl Progress {
    /// Creates the progress line of a run that starts now. Nothing is drawn if `wanted` is false,
    /// if the plan has no parallel steps, or if the last commands write to a terminal themselves.
    pub(super) fn new(wanted: bool, plan: &Plan, tally: &Tally) -> Self {
        let contend_writes = matches!(plan.steps.last(), Some(Step::Parallel(_)));
        let shares_terminal = std::io::stdout().is_terminal();
        let draws = wanted && plan.is_parallel() && (contend_writes || !shares_terminal);
        let line = draws.then(Arc::<Mutex<Line>>::default);
        if let Some(line) = line.clone().filter(|_| shares_terminal) {
            tally.before_output(move || with(&line, Line::remove));
        }
        Self { line, started: Instant::now(), drawn: None }
    }

    /// Updates the line with the amount of input read, if the line is drawn and an update is due.
    pub(super) fn show(&mut self, tally: &Tally) {
        let Some(line) = &self.line else { return };
        let elapsed = self.started.elapsed();
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL);
        if elapsed < START_DELAY || !is_due {
            return;
        }
        self.drawn = Some(Instant::now());
        let columns = output::width();
        let read = text(tally.bytes(), tally.size(), elapsed, columns);
        let parts = tally.division().map(|(division, divided)| parts(&division, &divided));
        let text = fit(&(read + &parts.unwrap_or_default()), columns);
        with(line, |line| line.draw(text.clone()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            with(line, Line::remove);
        }
    }
}

fn with(line: &Mutex<Line>, action: impl Fn(&mut Line)) {
    action(&mut line.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Returns the line for a run that has read `read` bytes of input in the time `elapsed`. Without
/// the `size` of the input, the line has neither a bar nor the time left.
fn text(read: u64, size: Option<u64>, elapsed: Duration, columns: usize) -> String {
    let rate = read as f64 / elapsed.as_secs_f64().max(1e-3);
    let amount = bytes(read as f64);
    match size {
        Some(size) if read >= size => format!("{}  {amount} read, finishing", bar(1.0, columns)),
        Some(size) => {
            let left = (size - read) as f64 / rate.max(1.0);
            let bar = bar(read as f64 / size as f64, columns);
            let (size, rate) = (bytes(size as f64), bytes(rate));
            format!("{bar}  {amount} of {size} read, {rate}/s, {}", time_left(left))
        }
        None => format!("{amount} read, {}/s", bytes(rate)),
    }
}

/// Returns what the line says about the parts of a divided input.
fn parts(division: &Division, divided: &DividedOutcome) -> String {
    let complete: u64 = divided.hosts.iter().map(|host| host.parts).sum();
    let combined: u64 = divided.hosts.iter().map(|host| host.combinations).sum();
    let failed = match divided.attempts.saturating_sub(complete + combined) {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let combined = match combined {
        0 => String::new(),
        combined => format!(", {combined} of {} combinations", division.combinations),
    };
    format!(", {complete} of {} parts{combined}{failed}", division.parts)
}

#[cfg(test)]
mod tests {
    use contend_record::run::HostParts;

    use super::*;

    #[test]
    fn parts_and_failures_are_counted() {
        let division = Division { parts: 6, ..Division::default() };
        let host = |parts| HostParts { parts, ..HostParts::default() };
        let hosts = vec![host(2), host(1)];
        let divided = DividedOutcome { attempts: 3, hosts, ..DividedOutcome::default() };
        assert_eq!(parts(&division, &divided), ", 3 of 6 parts");
        let divided = DividedOutcome { attempts: 4, ..divided };
        assert_eq!(parts(&division, &divided), ", 3 of 6 parts, 1 failed");
        let division = Division { combinations: 2, ..division };
        let hosts = vec![HostParts { parts: 6, combinations: 1, ..HostParts::default() }];
        let divided = DividedOutcome { attempts: 7, hosts, ..divided };
        assert_eq!(parts(&division, &divided), ", 6 of 6 parts, 1 of 2 combinations");
    }

    #[test]
    fn the_bar_and_the_time_left_need_the_size_of_the_input() {
        let two = Duration::from_secs(2);
        let some = text(40_000_000, Some(100_000_000), two, 80);
        assert_eq!(some, "[########............] 40 %  40.0MB of 100MB read, 20.0MB/s, 3 s left");
        assert_eq!(
            text(100, Some(100), two, 80),
            "[####################] 100 %  100B read, finishing"
        );
        assert_eq!(text(40_000_000, None, two, 80), "40.0MB read, 20.0MB/s");
    }
}
