//! Divides a run into intervals of equal length, and accounts for the stages and pipes in each.

use std::time::Duration;

use contend_record::pipe::{PipeSeries, Stage, StageSeries, TimeSeries};

use super::phases::StagePeriods;
use crate::pipeline::raw::RawRun;

/// Largest number of intervals, which are as many as can be told apart on a page.
const MAX_INTERVALS: usize = 100;
/// Samples of an interval, at least: fewer say little about the shares of waits.
const MIN_SAMPLES: usize = 4;

/// Returns the activities of the stages and the fill of the pipes over time; `None` if the run had too
/// few samples for two intervals.
pub fn time_series(run: &RawRun) -> Option<TimeSeries> {
    let intervals = (run.timeline.times().len() / MIN_SAMPLES).min(MAX_INTERVALS);
    if intervals < 2 || run.wall.is_zero() {
        return None;
    }
    let parts = u32::try_from(intervals).ok()?;
    let borders: Vec<Duration> = (0..=parts).map(|number| run.wall * number / parts).collect();
    let length = run.wall.as_secs_f64() / f64::from(parts);
    let stages = (0..run.stages.len()).map(|index| {
        let periods = StagePeriods::of(run, index);
        let accounts: Vec<Stage> =
            borders.windows(2).map(|pair| periods.account(pair[0], pair[1])).collect();
        let shares = |seconds: fn(&Stage) -> f64| {
            accounts.iter().map(|account| rounded(seconds(account) / length)).collect()
        };
        StageSeries {
            running: shares(|stage| stage.on_cpu_seconds),
            queued: shares(|stage| stage.run_queue_seconds),
            starved: shares(|stage| stage.starved_seconds),
            blocked: shares(|stage| stage.blocked_seconds),
            other: shares(|stage| stage.other_wait_seconds),
        }
    });
    let pipes = (0..run.fills.len()).map(|index| {
        let fills = borders.windows(2).map(|pair| {
            let mean = run.timeline.mean_fill_between(index, pair[0], pair[1]);
            mean.map(whole)
        });
        PipeSeries { mean_fill_bytes: fills.collect() }
    });
    Some(TimeSeries { interval_seconds: length, stages: stages.collect(), pipes: pipes.collect() })
}

/// Rounds a number of bytes to a whole one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a pipe has few bytes")]
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// Rounds a share to three decimal places: more are not measured, and take room in every record.
fn rounded(share: f64) -> f64 {
    (share.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::account::tests::two_halves;
    use crate::pipeline::raw::tests::raw_run;

    #[test]
    fn intervals_show_when_a_stage_worked() {
        let run = two_halves();
        let series = time_series(&run).expect("a thousand samples are enough");
        let count = series.stages[0].running.len();
        assert!((50..=MAX_INTERVALS).contains(&count), "{count}");
        assert!((series.interval_seconds * count as f64 - 1.0).abs() < 1e-9);
        // The first stage runs for 400 ms and ends; the second one runs after that.
        for (number, (first, second)) in
            series.stages[0].running.iter().zip(&series.stages[1].running).enumerate()
        {
            let middle = (number as f64 + 0.5) * series.interval_seconds;
            let border = (middle - 0.4).abs() < series.interval_seconds;
            assert!(border || (*first > 0.9) == (middle < 0.4), "{middle}: {first}");
            assert!(border || (*second > 0.9) == (middle > 0.4), "{middle}: {second}");
        }
    }

    #[test]
    fn the_fill_of_a_pipe_is_that_of_the_interval() {
        let series = time_series(&two_halves()).expect("a thousand samples are enough");
        let fills = &series.pipes[0].mean_fill_bytes;
        // The pipe has 1,000 bytes in the first half and 3,000 in the second.
        assert_eq!(fills[2], Some(1000));
        assert_eq!(fills[fills.len() - 3], Some(3000));
    }

    #[test]
    fn a_run_with_few_samples_has_no_series() {
        assert_eq!(time_series(&raw_run(Vec::new())), None);
    }
}
