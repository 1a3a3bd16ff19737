//! The live view of `contend pipe`: a table of the stages, redrawn about ten times a second. That of
//! `contend doctor` is [`watch`].
//!
//! ```text
//! 12 s, 3 of 3 stages running   [######..............] 31 %, 27 s left
//!    stage           last 2 s    state         in     out      rate
//! 1  cat access.log  ##::::::::  blocked   19.0MB  19.0MB  1.60MB/s
//! 2> sort            ########==  active    19.0MB      0B  1.60MB/s
//! 3  uniq -c         ..........  starved       0B      0B      0B/s
//!    # running  = queued  . starved  : blocked  o other
//! ```
//!
//! `>` marks the bottleneck of the last two seconds. The progress bar appears if the size of the
//! input is known. Narrow terminals get fewer columns. See [`crate::terminal`] for how the table is
//! drawn. If the pipeline's output goes to a terminal, its first byte removes the table for good.

pub mod watch;
mod window;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use contend_profile::observe::{State, Wait};
use contend_profile::pipeline::progress::{Progress, ProgressStage};
use contend_report::render::units::bytes;

use crate::output;
use crate::publish::PublishedStages;
use crate::terminal::{self, LinesBelow, bar, fit, time_left};
use window::{CELLS, Window};

/// Minimum time from the creation of the view, just before the first run, to the first drawing.
/// Runs that end before that have no live view.
const START_DELAY: Duration = Duration::from_secs(1);
/// Minimum time between two drawings that [`Live::begin_run`] makes in a series of short runs.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum share of its time, from 0 to 1, that a stage may wait for its neighbours and still be
/// marked as the bottleneck.
const MAX_BOTTLENECK_WAIT: f64 = 0.4;
/// Minimum and maximum width of the column with the commands, in characters.
const STAGE_COLUMNS: [usize; 2] = [12, 40];

/// Legends of the bars: one in plain words and, for narrow terminals, a shorter one with the terms
/// of the report.
const LEGENDS: [&str; 2] = [
    "   # running  = waiting for a CPU  . waiting for input  : waiting for the next stage  o other",
    "   # running  = queued  . starved  : blocked  o other",
];

/// The live view of one or several runs of a pipeline.
#[derive(Debug)]
pub struct Live {
    commands: Vec<String>,
    /// Whether the pipeline's output goes to a terminal, which may be the one that shows the view.
    output_is_terminal: bool,
    /// Whether the view has been removed for good.
    is_over: bool,
    runs: Runs,
    started: Instant,
    drawn: Option<Instant>,
    lines: LinesBelow,
    window: Window,
    /// Share of the input read, from 0 to 1, as last reported in this run; `None` if it is unknown.
    input_share: Option<f64>,
    /// Publishes the stages for `contend serve`; `None` if they are not published.
    published: Option<PublishedStages>,
}

/// The position in a series of runs. `current` counts from 1, and is 0 before the first run.
#[derive(Debug, Clone, Copy)]
struct Runs {
    current: u32,
    total: u32,
}

impl Live {
    /// Creates the view of a pipeline that will run `runs` times, and whose output is discarded if
    /// `discard` is true. `commands` are the texts of its stages, first to last.
    pub fn new(commands: Vec<String>, discard: bool, runs: u32) -> Self {
        Self {
            commands,
            output_is_terminal: !discard && std::io::stdout().is_terminal(),
            is_over: false,
            runs: Runs { current: 0, total: runs },
            started: Instant::now(),
            drawn: None,
            lines: LinesBelow::default(),
            window: Window::default(),
            input_share: None,
            published: None,
        }
    }

    /// Creates a view that draws nothing, of a pipeline with the given stages, for publishing.
    pub fn hidden(commands: Vec<String>) -> Self {
        Self { is_over: true, ..Self::new(commands, true, 1) }
    }

    /// Also publishes the stages.
    pub fn with_published(self, published: PublishedStages) -> Self {
        Self { published: Some(published), ..self }
    }

    /// Removes the view, and returns the published stages, if there are any.
    pub fn into_published(self) -> Option<PublishedStages> {
        self.published
    }

    /// Resets the view for the next run, and in a series shows the number of that run if a drawing
    /// is due. Must be called before every run.
    pub fn begin_run(&mut self) {
        if let Some(published) = &mut self.published {
            published.begin_run();
        }
        self.runs.current += 1;
        self.window = Window::default();
        self.input_share = None;
        // Runs shorter than the interval of progress reports are shown only here.
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL);
        if self.runs.total > 1 && is_due && self.started.elapsed() >= START_DELAY && !self.is_over {
            self.draw(&[fit(&self.runs.text(output::width()), output::width())]);
        }
    }

    /// Updates the view with the current states of the stages. Removes it during a pause, and for
    /// good once the pipeline has written to a terminal.
    pub fn show(&mut self, progress: &Progress<'_>) {
        if let Some(published) = &mut self.published {
            published.show(progress);
        }
        let &Progress::Running { elapsed, stages } = progress else {
            return self.lines.clear();
        };
        let stages = &through_pipes(stages);
        self.window.add(elapsed, stages);
        if let Some(input) = stages.first().and_then(|stage| stage.input) {
            self.input_share = Some(input.read as f64 / input.size.max(1) as f64);
        }
        let writes = |stage: &ProgressStage| {
            stage.may_write_to_terminal && stage.bytes_out.is_some_and(|bytes| bytes > 0)
        };
        self.is_over |= self.output_is_terminal && stages.last().is_some_and(writes);
        if self.is_over {
            self.lines.clear();
        } else if self.started.elapsed() >= START_DELAY {
            let lines = self.table(elapsed, stages, output::width());
            self.draw(&lines);
        }
    }

    fn draw(&mut self, lines: &[String]) {
        self.lines.draw(lines);
        self.drawn = Some(Instant::now());
    }

    /// Returns the lines of the table for a terminal of `width` columns.
    fn table(&self, elapsed: Duration, stages: &[ProgressStage], width: usize) -> Vec<String> {
        let layout = Layout::new(&self.commands, width);
        let bottleneck = self.window.bottleneck(stages);
        let mut lines = vec![fit(&self.heading(elapsed, stages, width), width)];
        lines.push(fit(&layout.titles(), width));
        for (index, stage) in stages.iter().enumerate() {
            let is_bottleneck = bottleneck == Some(index);
            let row = layout.row(index, &self.commands[index], is_bottleneck, stage, &self.window);
            let row = fit(&row, width);
            let is_bold = is_bottleneck && terminal::has_styles();
            lines.push(if is_bold { format!("\x1b[1m{row}\x1b[0m") } else { row });
        }
        if lines.len() < terminal::room() {
            let legend = LEGENDS.iter().find(|legend| legend.len() < width);
            lines.extend(legend.map(|&legend| legend.to_owned()));
        }
        lines
    }

    fn heading(&self, elapsed: Duration, stages: &[ProgressStage], width: usize) -> String {
        let running = stages.iter().filter(|stage| stage.state.is_some()).count();
        let elapsed = elapsed.as_secs_f64();
        let mut text = String::new();
        if self.runs.total > 1 {
            text = format!("{}   ", self.runs.text(width));
        }
        text += &format!("{elapsed:.0} s, {running} of {} stages running", self.commands.len());
        // In a series, the bar shows the runs instead. A stage that has ended may have left input
        // unread.
        let reads = stages.first().is_some_and(|stage| stage.state.is_some());
        if let Some(share) = self.input_share.filter(|_| reads && self.runs.total == 1) {
            text += &format!("   {}", bar(share, width));
            if share >= 1.0 {
                text += ", input read";
            } else if share > 0.0 {
                text += &format!(", {}", time_left(elapsed * (1.0 - share) / share));
            }
        }
        text
    }
}

impl Runs {
    /// Returns the position with a progress bar, such as `run 3 of 7 [#####...............] 28 %`.
    fn text(self, width: usize) -> String {
        let completed = self.current.saturating_sub(1);
        let share = f64::from(completed) / f64::from(self.total.max(1));
        format!("run {} of {} {}", self.current, self.total, bar(share, width))
    }
}

/// The columns of the table that fit into a terminal.
#[derive(Debug, Clone, Copy)]
struct Layout {
    stage: usize,
    has_rate: bool,
    has_out: bool,
    has_in: bool,
}

impl Layout {
    /// Width of number, mark, bar and state with their spaces, in characters.
    const FIXED_COLUMNS: usize = 3 + 2 + CELLS + 2 + 8;
    /// Width of a number of bytes with its space, in characters.
    const BYTES_COLUMNS: usize = 8;
    /// Width of a rate with its space, in characters.
    const RATE_COLUMNS: usize = 10;

    fn new(commands: &[String], width: usize) -> Self {
        let [least, most] = STAGE_COLUMNS;
        let longest = commands.iter().map(|command| command.chars().count()).max().unwrap_or(0);
        // The last column stays free.
        let free = width.saturating_sub(Self::FIXED_COLUMNS + 1 + least);
        let has_in = free >= Self::BYTES_COLUMNS;
        let has_out = free >= 2 * Self::BYTES_COLUMNS;
        let has_rate = free >= 2 * Self::BYTES_COLUMNS + Self::RATE_COLUMNS;
        let used = Self::BYTES_COLUMNS * (usize::from(has_in) + usize::from(has_out))
            + Self::RATE_COLUMNS * usize::from(has_rate);
        let stage = longest.clamp(least, most).min(least + free.saturating_sub(used));
        Self { stage, has_rate, has_out, has_in }
    }

    fn titles(&self) -> String {
        self.line("", ["stage", "last 2 s", "state", "in", "out", "rate"])
    }

    fn row(
        &self,
        index: usize,
        command: &str,
        is_bottleneck: bool,
        stage: &ProgressStage,
        window: &Window,
    ) -> String {
        let count = |count: Option<u64>| count.map_or_else(|| "?".into(), |n| bytes(n as f64));
        let rate = window.rate(index).map_or_else(String::new, |rate| bytes(rate) + "/s");
        let mark = if is_bottleneck { ">" } else { "" };
        self.line(
            &format!("{}{mark}", index + 1),
            [
                &cut(command, self.stage),
                &window.bar(index),
                state_name(stage.state),
                &count(stage.bytes_in),
                &count(stage.bytes_out),
                &rate,
            ],
        )
    }

    fn line(&self, number: &str, cells: [&str; 6]) -> String {
        let [stage, bar, state, read, written, rate] = cells;
        let mut line = format!("{number:<2} {stage:<0$}  {bar:<CELLS$}  {state:<8}", self.stage);
        let bytes = [(self.has_in, read), (self.has_out, written)];
        for (_, cell) in bytes.into_iter().filter(|(is_shown, _)| *is_shown) {
            line += &format!(" {cell:>7}");
        }
        if self.has_rate {
            line += &format!(" {rate:>9}");
        }
        line.trim_end().to_owned()
    }
}

/// Replaces control characters with spaces. Shortens a text of more than `columns` characters to
/// that number, and makes the last character `…`.
fn cut(text: &str, columns: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= columns {
        return text;
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept + "…"
}

fn state_name(state: Option<State>) -> &'static str {
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

/// Returns the stages with byte counts limited to the bytes that passed through the pipes between
/// them. A count stays unchanged if the count at the other end of the pipe is unknown. A stage may
/// also write temporary files and read its libraries, so a pipe has transferred at most the smaller
/// of its two counts.
fn through_pipes(stages: &[ProgressStage]) -> Vec<ProgressStage> {
    let mut stages = stages.to_vec();
    for index in 1..stages.len() {
        if let (Some(written), Some(read)) = (stages[index - 1].bytes_out, stages[index].bytes_in) {
            let transferred = written.min(read);
            stages[index - 1].bytes_out = Some(transferred);
            stages[index].bytes_in = Some(transferred);
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use contend_profile::observe::tree::SampledTime;
    use contend_profile::pipeline::progress::InputProgress;
    use contend_shell::parse::parse;

    use super::*;

    fn stage(state: Option<State>) -> ProgressStage {
        ProgressStage {
            state,
            bytes_in: Some(19_000_000),
            bytes_out: None,
            time: SampledTime::default(),
            run_queue: Duration::ZERO,
            input: None,
            may_write_to_terminal: true,
        }
    }

    fn live(runs: u32) -> Live {
        let parsed = parse("cat access.log | sort -k 2,2 --parallel=1 | uniq -c").expect("valid");
        let commands = (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect();
        let mut live = Live::new(commands, true, runs);
        live.runs.current = 1;
        live
    }

    const STATES: [Option<State>; 3] = [
        Some(State::Waiting(Wait::Blocked)),
        Some(State::Active),
        Some(State::Waiting(Wait::Starved)),
    ];

    #[test]
    fn a_table_fits_into_any_terminal() {
        let live = live(1);
        let stages = STATES.map(stage);
        for width in [20, 40, 60, 80, 200] {
            let lines = live.table(Duration::from_secs(12), &stages, width);
            assert!(lines.iter().all(|line| line.chars().count() < width), "{lines:?}");
            assert!(lines.len() >= 5, "{lines:?}");
        }
        let wide = live.table(Duration::from_secs(12), &stages, 80);
        assert_eq!(wide[0], "12 s, 3 of 3 stages running");
        assert_eq!(
            wide[1],
            "   stage                     last 2 s    state         in     out      rate"
        );
        assert_eq!(wide[2], "1  cat access.log                        blocked   19.0MB       ?");
        let narrow = live.table(Duration::from_secs(12), &stages, 60);
        assert!(!narrow[1].contains("rate") && narrow[1].contains("out"), "{narrow:?}");
        assert!(narrow[3].contains("sort -k") && narrow[3].contains("…"), "{narrow:?}");
    }

    #[test]
    fn bytes_that_do_not_go_through_a_pipe_are_not_shown() {
        let of = |bytes_in, bytes_out| ProgressStage {
            bytes_in,
            bytes_out,
            ..stage(Some(State::Active))
        };
        // The sort has written temporary files; uniq has read its libraries.
        let stages = [of(Some(900), Some(800)), of(Some(810), Some(700)), of(Some(70), None)];
        let shown =
            through_pipes(&stages).iter().map(|s| (s.bytes_in, s.bytes_out)).collect::<Vec<_>>();
        let expected = [(Some(900), Some(800)), (Some(800), Some(70)), (Some(70), None)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_heading_shows_how_much_of_the_input_is_read() {
        let mut live = live(1);
        let mut stages = STATES.map(stage);
        stages[0].input = Some(InputProgress { read: 250, size: 1000 });
        live.show(&Progress::Running { elapsed: Duration::from_secs(10), stages: &stages });
        let heading = live.heading(Duration::from_secs(10), &stages, 80);
        assert!(heading.ends_with("running   [#####...............] 25 %, 30 s left"), "{heading}");
        stages[0] = stage(None);
        let heading = live.heading(Duration::from_secs(10), &stages, 80);
        assert!(heading.ends_with("2 of 3 stages running"), "{heading}");
    }

    #[test]
    fn the_heading_shows_the_position_in_a_series_of_runs() {
        let mut live = live(4);
        live.runs.current = 3;
        let heading = live.heading(Duration::from_secs(2), &STATES.map(stage), 80);
        let expected = "run 3 of 4 [##########..........] 50 %   2 s, 3 of 3 stages running";
        assert_eq!(heading, expected);
    }
}
