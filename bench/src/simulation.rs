//! Simulates a job on a cluster that is too large to measure: when parts and combinations end, how often attempts are lost, and
//! what the driver reads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

/// A cluster.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// Number of tasks that run at the same time.
    pub slots: u64,
    /// Time in seconds until the first task of a batch runs.
    pub start: f64,
    /// Time in seconds that each task takes besides its data.
    pub task: f64,
    /// Bytes of input that a task processes in a second.
    pub rate: f64,
    /// Bytes of sorted output that a task makes in a second, besides processing its input.
    pub output_rate: f64,
    /// Bytes that a combination merges in a second.
    pub merge_rate: f64,
    /// Bytes that the storage delivers to all tasks together in a second.
    pub storage: f64,
    /// Share of the attempts that are lost.
    pub lost: f64,
    /// Largest ratio of the time of a task to that of the fastest one of the same size.
    pub spread: f64,
}

/// A job.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Bytes of input.
    pub bytes: f64,
    /// Number of parts.
    pub parts: u64,
    /// Size of the output of a part in bytes. The output of a combination has the same size, as if all parts had the same keys.
    pub output: f64,
    /// Largest number of outputs that are combined at once.
    pub fan_in: u64,
}

/// What becomes of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Number of parts and combinations at each level.
    pub levels: Vec<u64>,
    /// Number of batches.
    pub batches: u64,
    /// Time in seconds until all tasks are complete.
    pub seconds: f64,
    /// Time of the parts alone in seconds.
    pub of_parts: f64,
    /// Number of attempts that were lost.
    pub lost: u64,
    /// Bytes that the driver reads and combines.
    pub driver_bytes: f64,
    /// Number of files in the work directory: an output and a report for each attempt.
    pub files: u64,
}

/// Simulates a job. Attempts that are lost run again in the next batch.
pub fn simulate(cluster: &Cluster, job: &Job, random: &mut Rng) -> Outcome {
    let mut outcome = Outcome::default();
    let mut count = job.parts.max(1);
    let mut size = job.bytes / count as f64;
    let (mut rate, mut output_rate) = (cluster.rate, cluster.output_rate);
    loop {
        outcome.levels.push(count);
        let at_once = count.min(cluster.slots).max(1) as f64;
        let input = (size / rate).max(size * at_once / cluster.storage);
        let seconds = cluster.task + input + job.output / output_rate;
        level(cluster, count, seconds, random, &mut outcome);
        if outcome.levels.len() == 1 {
            outcome.of_parts = outcome.seconds;
        }
        if count <= job.fan_in {
            break;
        }
        let combined = count.div_ceil(job.fan_in);
        size = job.output * count as f64 / combined as f64;
        // Merging makes the output, too.
        (count, rate, output_rate) = (combined, cluster.merge_rate, f64::INFINITY);
    }
    outcome.driver_bytes = job.output * count as f64;
    outcome
}

/// Simulates the tasks of one level, in as many batches as it takes.
fn level(cluster: &Cluster, count: u64, seconds: f64, random: &mut Rng, outcome: &mut Outcome) {
    let mut left = count;
    while left > 0 {
        let mut missing = 0;
        // When each slot is free again, in microseconds, so that times are ordered.
        let mut free: BinaryHeap<Reverse<u64>> =
            (0..cluster.slots.min(left)).map(|_| Reverse(0)).collect();
        let mut end = 0;
        for _ in 0..left {
            let Reverse(begun) = free.pop().unwrap_or(Reverse(0));
            let factor = 1.0 + random.f64() * (cluster.spread - 1.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
            let ended = begun + (seconds * factor * 1e6) as u64;
            end = end.max(ended);
            free.push(Reverse(ended));
            let is_lost = random.f64() < cluster.lost;
            missing += u64::from(is_lost);
            outcome.files += if is_lost { 1 } else { 2 };
        }
        outcome.batches += 1;
        outcome.lost += missing;
        outcome.seconds += cluster.start + end as f64 * 1e-6;
        left = missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: Cluster = Cluster {
        slots: 4,
        start: 1.0,
        task: 0.0,
        rate: 10.0,
        output_rate: f64::INFINITY,
        merge_rate: 10.0,
        storage: 1e9,
        lost: 0.0,
        spread: 1.0,
    };
    const JOB: Job = Job { bytes: 800.0, parts: 8, output: 1.0, fan_in: 8 };

    fn simulated(cluster: Cluster, job: Job) -> Outcome {
        simulate(&cluster, &job, &mut Rng::with_seed(1))
    }

    #[test]
    fn equal_parts_take_equal_time() {
        let outcome = simulated(CLUSTER, JOB);
        assert_eq!(outcome.levels, [8]);
        assert!((outcome.seconds - 21.0).abs() < 1e-3, "two waves of 10 s, and the start");
        assert!((outcome.driver_bytes - 8.0).abs() < 1e-9);
        assert_eq!((outcome.files, outcome.batches, outcome.lost), (16, 1, 0));
        let slow = simulated(Cluster { output_rate: 0.1, ..CLUSTER }, JOB);
        assert!((slow.seconds - 41.0).abs() < 1e-3, "{slow:?}");
        // The storage delivers only what one task needs.
        let slow = simulated(Cluster { storage: 10.0, ..CLUSTER }, JOB);
        assert!((slow.seconds - 81.0).abs() < 1e-3, "{slow:?}");
    }

    #[test]
    fn combinations_reduce_what_the_driver_reads() {
        let outcome = simulated(CLUSTER, Job { fan_in: 2, ..JOB });
        assert_eq!(outcome.levels, [8, 4, 2]);
        assert!((outcome.driver_bytes - 2.0).abs() < 1e-9);
        assert_eq!(outcome.batches, 3);
    }

    #[test]
    fn what_is_lost_runs_again() {
        let outcome =
            simulated(Cluster { lost: 0.5, ..CLUSTER }, Job { parts: 100, fan_in: 100, ..JOB });
        assert!(outcome.lost > 50 && outcome.batches > 3, "{outcome:?}");
        assert_eq!(outcome.files, 200 + outcome.lost);
    }
}
