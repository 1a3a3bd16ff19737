//! Statistics of the stages over the last two seconds. Programs read, write and compute in bursts,
//! so single samples and rates between two of them say little.

use std::collections::VecDeque;
use std::time::Duration;

use contend_profile::observe::Wait;
use contend_profile::pipeline::progress::ProgressStage;

use super::MAX_BOTTLENECK_WAIT;

/// Time span that the window covers.
const WINDOW: Duration = Duration::from_secs(2);
/// Number of cells in a stage's bar.
pub(super) const CELLS: usize = 10;
/// Symbols of a bar: running, waiting for a CPU, for input, for the next stage, for something else.
const SYMBOLS: [&str; 5] = ["#", "=", ".", ":", "o"];
/// Indexes in [`Shares`] of the waits for the previous and the next stage.
const NEIGHBOURS: [usize; 2] = [2, 3];

/// Shares of a stage's time, in the order of [`SYMBOLS`]. The remainder is unknown.
type Shares = [f64; 5];

/// Snapshots of the cumulative counters of all stages, oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    moments: VecDeque<(Duration, Vec<ProgressStage>)>,
}

impl Window {
    /// Adds the counters at the time `elapsed` since the start, and drops snapshots older than the
    /// window, except the latest of them.
    pub(super) fn add(&mut self, elapsed: Duration, stages: &[ProgressStage]) {
        self.moments.push_back((elapsed, stages.to_vec()));
        let is_old = |then: Duration| elapsed.saturating_sub(then) >= WINDOW;
        while self.moments.get(1).is_some_and(|(then, _)| is_old(*then)) {
            self.moments.pop_front();
        }
    }

    /// Returns the counters of a stage at the start and at the end of the window, or `None` if the
    /// window is empty or has no such stage.
    fn ends(&self, index: usize) -> Option<[&ProgressStage; 2]> {
        let ((_, old), (_, new)) = (self.moments.front()?, self.moments.back()?);
        Some([old.get(index)?, new.get(index)?])
    }

    /// Returns the number of bytes per second that a stage read in the window, or wrote if it read
    /// none or an unknown number. Returns `None` if the count to use is unknown, or the window has
    /// fewer than two snapshots.
    pub(super) fn rate(&self, index: usize) -> Option<f64> {
        let ((then, _), (now, _)) = (self.moments.front()?, self.moments.back()?);
        let time = now.saturating_sub(*then).as_secs_f64();
        let [old, new] = self.ends(index)?;
        let change = |old: Option<u64>, new: Option<u64>| Some(new?.saturating_sub(old?));
        let read = change(old.bytes_in, new.bytes_in);
        let bytes = read.filter(|&read| read > 0).or(change(old.bytes_out, new.bytes_out))?;
        (time > 0.0).then(|| bytes as f64 / time)
    }

    /// Returns the shares of a stage's time by state, or `None` if the window covers no time of the
    /// stage.
    fn shares(&self, index: usize) -> Option<Shares> {
        let [old, new] = self.ends(index)?;
        let since = |new: Duration, old: Duration| new.saturating_sub(old).as_secs_f64();
        let waited = |wait: Wait| since(new.time.waited(wait), old.time.waited(wait));
        let active = since(new.time.active, old.time.active);
        // The counter is a sum over all tasks of the stage.
        let queued = since(new.run_queue, old.run_queue).min(active);
        let all: f64 =
            new.time.waiting.iter().zip(&old.time.waiting).map(|(n, o)| since(*n, *o)).sum();
        let (starved, blocked) = (waited(Wait::Starved), waited(Wait::Blocked));
        let other = all - starved - blocked - waited(Wait::Unknown);
        let total = active + all;
        let times = [active - queued, queued, starved, blocked, other];
        (total > 0.0).then(|| times.map(|time| time / total))
    }

    /// Returns the bar of a stage. The bar may have fewer than `CELLS` cells if a part of the time
    /// is unknown, and has none if the window covers no time of the stage.
    pub(super) fn bar(&self, index: usize) -> String {
        let Some(shares) = self.shares(index) else { return String::new() };
        let mut bar = String::new();
        let (mut sum, mut drawn) = (0.0, 0);
        for (share, symbol) in shares.into_iter().zip(SYMBOLS) {
            sum += share;
            // Rounding the sums rather than the shares makes the cells add up.
            let until = (1..=CELLS).filter(|&cell| sum * CELLS as f64 + 0.5 >= cell as f64).count();
            bar += &symbol.repeat(until.saturating_sub(drawn));
            drawn = drawn.max(until);
        }
        bar
    }

    /// Returns the index of the running stage that waited least for its neighbours. Returns `None`
    /// if no stage with a known time is running, or if even that stage waited for a larger share of
    /// its time than `MAX_BOTTLENECK_WAIT`.
    pub(super) fn bottleneck(&self, stages: &[ProgressStage]) -> Option<usize> {
        let running = (0..stages.len()).filter(|&index| stages[index].state.is_some());
        let waits = running.filter_map(|index| {
            let shares = self.shares(index)?;
            Some((NEIGHBOURS.map(|neighbour| shares[neighbour]).iter().sum::<f64>(), index))
        });
        let (wait, index) = waits.min_by(|one, other| one.0.total_cmp(&other.0))?;
        (wait <= MAX_BOTTLENECK_WAIT).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use contend_profile::observe::State;
    use contend_profile::observe::tree::SampledTime;

    use super::*;

    fn stage(active: u64, queued: u64, starved: u64, blocked: u64) -> ProgressStage {
        let milliseconds = Duration::from_millis;
        let mut time = SampledTime { active: milliseconds(active), ..SampledTime::default() };
        time.waiting[Wait::Starved as usize] = milliseconds(starved);
        time.waiting[Wait::Blocked as usize] = milliseconds(blocked);
        ProgressStage {
            state: Some(State::Active),
            bytes_in: None,
            bytes_out: None,
            time,
            run_queue: milliseconds(queued),
            input: None,
            may_write_to_terminal: false,
        }
    }

    #[test]
    fn rates_are_means_over_two_seconds() {
        let mut window = Window::default();
        // A megabyte at once every second, and none in between; ten reports a second.
        for tenth in 0..=50_u64 {
            let written = tenth / 10 * 1_000_000;
            let written = ProgressStage { bytes_out: Some(written), ..stage(0, 0, 0, 0) };
            let read = ProgressStage { bytes_in: Some(5 * tenth), ..stage(0, 0, 0, 0) };
            window.add(Duration::from_millis(100 * tenth), &[written, read]);
            if tenth >= 20 {
                let rate = window.rate(0).expect("two reports");
                assert!((400_000.0..=1_100_000.0).contains(&rate), "{rate} after {tenth}");
                let rate = window.rate(1).expect("two reports");
                assert!((rate - 50.0).abs() < 1e-6, "{rate}");
            }
        }
        assert!(window.moments.len() <= 22, "older reports are dropped");
        assert_eq!(window.rate(2), None);
    }

    #[test]
    fn a_bar_shows_the_window_alone() {
        let mut window = Window::default();
        window.add(Duration::from_secs(1), &[stage(1000, 0, 0, 0)]);
        assert_eq!(window.bar(0), "", "there is one report only");
        window.add(Duration::from_secs(3), &[stage(2000, 400, 500, 500)]);
        assert_eq!(window.bar(0), "###==...::");
        window.add(Duration::from_secs(5), &[stage(2000, 400, 2500, 500)]);
        assert_eq!(window.bar(0), "..........");
    }

    #[test]
    fn shares_of_one_fill_the_bar() {
        for thirds in [[667, 0, 667, 666], [1, 0, 1, 1998], [95, 0, 955, 950]] {
            let mut window = Window::default();
            let [active, queued, starved, blocked] = [thirds[0], thirds[1], thirds[2], thirds[3]];
            window.add(Duration::ZERO, &[stage(0, 0, 0, 0)]);
            window.add(WINDOW, &[stage(active, queued, starved, blocked)]);
            assert_eq!(window.bar(0).len(), CELLS, "{thirds:?}");
        }
    }

    #[test]
    fn the_bottleneck_waits_least_for_its_neighbours() {
        let bottleneck = |stages: &[ProgressStage]| {
            let mut window = Window::default();
            window.add(Duration::ZERO, &vec![stage(0, 0, 0, 0); stages.len()]);
            window.add(WINDOW, stages);
            window.bottleneck(stages)
        };
        let slow = stage(1900, 100, 100, 0);
        let blocked = stage(200, 0, 0, 1800);
        let starved = stage(200, 0, 1800, 0);
        assert_eq!(bottleneck(&[blocked, slow, starved]), Some(1));
        assert_eq!(bottleneck(&[blocked, starved]), None, "the output is");
        let ended = ProgressStage { state: None, ..slow };
        assert_eq!(bottleneck(&[ended, starved]), None);
    }
}
