//! Bars that show how stages spent their time. Each activity has its own symbol. The number of
//! cells with the symbol shows the activity's share of the run, but not when it happened.

use anstyle::{AnsiColor, Style};
use contend_record::pipe::Stage;

use super::super::layout::DIM;

/// Activity of a stage. The variants are in the order of the parts of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// The stage runs on a CPU.
    Running,
    /// The stage is runnable, but queued for a CPU.
    Queued,
    /// The stage waits for input.
    Starved,
    /// The stage waits for room in its output.
    Blocked,
    /// The stage waits for something else, such as a disk or a child process.
    Other,
    /// No sample explains what the stage did.
    Unknown,
}

impl Activity {
    /// All activities, in the order of the parts of a bar.
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Queued, Self::Starved, Self::Blocked, Self::Other, Self::Unknown];

    /// Returns the symbol of the activity in a bar, which is one column wide.
    pub fn symbol(self) -> char {
        match self {
            Self::Running => '#',
            Self::Queued => '=',
            Self::Starved => '.',
            Self::Blocked => ':',
            Self::Other => 'o',
            Self::Unknown => '?',
        }
    }

    /// Returns the name of the activity, as in the glossary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Starved => "starved",
            Self::Blocked => "blocked",
            Self::Other => "other",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the style of the activity's cells in a bar. Running, queued and other waits are
    /// coloured; waits for neighbours and unknown time are dimmed.
    pub fn style(self) -> Style {
        match self {
            Self::Running => AnsiColor::Green.on_default(),
            Self::Queued => AnsiColor::Red.on_default(),
            Self::Other => AnsiColor::Magenta.on_default(),
            Self::Starved | Self::Blocked | Self::Unknown => DIM,
        }
    }

    /// Returns the time that a stage spent on the activity, in seconds.
    pub fn seconds(self, stage: &Stage) -> f64 {
        match self {
            Self::Running => stage.on_cpu_seconds,
            Self::Queued => stage.run_queue_seconds,
            Self::Starved => stage.starved_seconds,
            Self::Blocked => stage.blocked_seconds,
            Self::Other => stage.other_wait_seconds,
            Self::Unknown => stage.unexplained_seconds,
        }
    }

    fn of_symbol(symbol: char) -> Option<Self> {
        Self::ALL.into_iter().find(|activity| activity.symbol() == symbol)
    }
}

/// Returns a bar of at most `cells` columns, without styles. A share of 1 corresponds to `cells`
/// columns; if the shares add up to more than 1, their sum does. Cells are distributed by the
/// largest remainder method, so the length of the bar is correctly rounded, and each part is off by
/// less than one cell. Negative shares count as 0.
pub fn bar(shares: &[(Activity, f64)], cells: usize) -> String {
    let sum: f64 = shares.iter().map(|(_, share)| share.max(0.0)).sum();
    let scale = cells as f64 / sum.max(1.0);
    let exact: Vec<f64> = shares.iter().map(|(_, share)| share.max(0.0) * scale).collect();
    let total = whole(exact.iter().sum::<f64>().round());
    let mut counts: Vec<usize> = exact.iter().map(|&share| whole(share.floor())).collect();
    let mut by_remainder: Vec<usize> = (0..exact.len()).collect();
    by_remainder.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = total.saturating_sub(counts.iter().sum());
    for &place in by_remainder.iter().take(missing) {
        counts[place] += 1;
    }
    let cells = shares.iter().zip(counts);
    cells.flat_map(|((activity, _), count)| vec![activity.symbol(); count]).collect()
}

/// Converts a float, which must be integral and not negative, to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integral, not negative"
)]
fn whole(value: f64) -> usize {
    value as usize
}

/// Returns `bar`, which must be without styles, with each cell in the style of its activity.
pub fn styled(bar: &str) -> String {
    let mut out = String::new();
    let symbols: Vec<char> = bar.chars().collect();
    for cells in symbols.chunk_by(|a, b| a == b) {
        let style = Activity::of_symbol(cells[0]).map_or_else(Style::new, Activity::style);
        let text: String = cells.iter().collect();
        out.push_str(&format!("{style}{text}{style:#}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_distributed_by_largest_remainder() {
        use Activity::{Blocked, Running, Starved};
        assert_eq!(bar(&[(Running, 0.5), (Starved, 0.25), (Blocked, 0.25)], 8), "####..::");
        assert_eq!(bar(&[(Running, 0.04), (Blocked, 0.96)], 20), "#:::::::::::::::::::");
        assert_eq!(bar(&[(Running, 0.24), (Starved, 0.25), (Blocked, 0.51)], 10), "##...:::::");
        // A stage that ended before the pipeline has a shorter bar.
        assert_eq!(bar(&[(Running, 0.1), (Blocked, 0.3)], 10), "#:::");
        assert_eq!(bar(&[(Running, 0.0)], 10), "");
        // Shares are sampled, so their sum may exceed the whole.
        assert_eq!(bar(&[(Running, 0.8), (Blocked, 0.4)], 10).len(), 10);
    }

    #[test]
    fn styles_do_not_change_the_text() {
        let text = anstream::adapter::strip_str(&styled("##==..::oo??  ")).to_string();
        assert_eq!(text, "##==..::oo??  ");
    }
}
