//! Summarises several runs of a pipeline in one record.

use contend_record::pipe::{PipeRecord, Runs, Stage, StageRuns};
use contend_record::stats::Estimate;
use contend_record::warning::{Warning, WarningId};

/// Fixed seed of the bootstrap, so that the same runs give the same interval.
const BOOTSTRAP_SEED: u64 = 0x00c0_17e4_d000;

/// Returns the run with the median wall time, or the faster of the two middle runs, and adds the
/// medians over all runs to it. Its exit code is that of the last run that failed, if any. Adds a
/// warning if the exit codes differ. Returns a single run unchanged, and `None` without runs.
///
/// # Panics
/// Panics if a run has fewer stages than the first one.
pub fn summarise(mut records: Vec<PipeRecord>) -> Option<PipeRecord> {
    if records.len() <= 1 {
        return records.pop();
    }
    let runs = runs(&records)?;
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by(|&a, &b| records[a].wall_seconds.total_cmp(&records[b].wall_seconds));
    let codes: Vec<i32> = records.iter().map(|record| record.exit_code).collect();
    let failed = codes.iter().rev().find(|&&code| code != 0).copied();
    let mut record = records.swap_remove(order[(order.len() - 1) / 2]);
    if codes.iter().any(|&code| code != codes[0]) {
        record.warnings.push(Warning::new(
            WarningId::RunsDiffer,
            format!("the runs ended with different statuses: {codes:?}"),
        ));
    }
    record.exit_code = failed.unwrap_or(record.exit_code);
    record.runs = Some(runs);
    Some(record)
}

fn runs(records: &[PipeRecord]) -> Option<Runs> {
    let over = |value: &dyn Fn(&PipeRecord) -> f64| {
        Estimate::from_samples(records.iter().map(value).collect(), BOOTSTRAP_SEED)
    };
    let stage_count = records.first()?.stages.len();
    let stages = (0..stage_count)
        .map(|index| {
            let over_stage =
                |value: fn(&Stage) -> f64| over(&|record| value(&record.stages[index]));
            Some(StageRuns {
                index: index + 1,
                wall_seconds: over_stage(|stage| stage.wall_seconds)?,
                cpu_seconds: over_stage(Stage::cpu_seconds)?,
                service_seconds: over_stage(Stage::service_seconds)?,
                run_queue_seconds: over_stage(|stage| stage.run_queue_seconds)?,
                starved_seconds: over_stage(|stage| stage.starved_seconds)?,
                blocked_seconds: over_stage(|stage| stage.blocked_seconds)?,
            })
        })
        .collect::<Option<_>>()?;
    let named = |record: &PipeRecord| (record.bottleneck.kind, record.bottleneck.stage);
    let most = records
        .iter()
        .map(|one| records.iter().filter(|other| named(other) == named(one)).count())
        .max()?;
    Some(Runs {
        count: records.len(),
        wall_seconds: over(&|record| record.wall_seconds)?,
        cpu_seconds: over(&|record| record.total.user_seconds + record.total.system_seconds)?,
        same_bottleneck: most,
        stages,
    })
}
