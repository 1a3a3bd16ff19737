//! Predicts the wall time of a pipeline from the costs of its stages.
//!
//! Let D be a stage's service time and C its CPU time. Stages that run concurrently take as long as
//! the slowest of them, and at least as long as the CPUs need for all of them: max(max D, ΣC /
//! CPUs). Gordon, Thies and Amarasinghe (2006) give this bound for pipelines. A stage that holds
//! its output until its input ends is a barrier: its work up to that point runs concurrently with
//! the stages before it, the remainder with those after it, and the times of both phases add up.
//! The original's wall time may exceed this bound. The ratio of the two is attributed to hand-over
//! between stages, and scaled to a candidate's number of pipes.

use contend_record::advice::Prediction;
use contend_record::pipe::{BottleneckKind, PipeRecord, Stage, is_disturbing};
use contend_record::warning::WarningId;

/// The costs of a stage for the whole input.
#[derive(Debug, Clone, PartialEq)]
pub struct StageCost {
    /// Service time in seconds: time on a CPU, and in waits that no neighbouring stage causes.
    pub service: f64,
    /// User and system time in seconds.
    pub cpu: f64,
    /// Share of the work, from 0 to 1, that follows the end of the input, or `None` if the stage
    /// does not hold its output.
    pub held: Option<f64>,
    /// CPU time in seconds to start the program. It does not grow with the input.
    pub start_up: f64,
}

/// The parameters of a pipeline's prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Costs of the stages, in order.
    pub stages: Vec<StageCost>,
    /// Number of CPUs that the pipeline can use, which need not be an integer.
    pub cpus: f64,
    /// Ratio of the original's wall time to the time that its stages explain, clamped to the range
    /// from 0.8 to 3; 1 if the profile was disturbed or the stages explain no time.
    pub fit: f64,
    /// Number of pipes in the original, for scaling `fit`.
    pub fitted_pipes: usize,
    /// Lower bound of the wall time in seconds, set by the pipeline's producer or consumer; 0 if
    /// neither was the bottleneck.
    pub floor: f64,
}

/// The predicted times of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Wall time in seconds.
    pub wall: f64,
    /// User and system time of all stages of all copies, in seconds.
    pub cpu: f64,
    /// Limit of the phase that takes longest, or `Limit::Outside` if the model's `floor` applies.
    pub limit: Limit,
}

/// What limits a pipeline's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The stage with the given index, from 0.
    Stage(usize),
    /// The CPUs of the machine.
    Machine,
    /// The pipeline's producer or consumer.
    Outside,
}

impl Model {
    /// Builds the model of a profiled pipeline. `start_up` is the CPU time of starting a program,
    /// in seconds.
    pub fn of(record: &PipeRecord, start_up: f64) -> Self {
        let stages = record.stages.iter().map(|stage| cost(stage, start_up)).collect();
        let outside =
            matches!(record.bottleneck.kind, BottleneckKind::Input | BottleneckKind::Output);
        let mut model = Self {
            stages,
            cpus: record.host.usable_cpus(),
            fit: 1.0,
            fitted_pipes: record.boundaries.len(),
            floor: if outside { record.wall_seconds } else { 0.0 },
        };
        let explained = model.explained(1.0).0;
        // Time that other programs took is not a cost of hand-over.
        if explained > 0.0 && !was_disturbed(record) {
            model.fit = (record.wall_seconds / explained).clamp(0.8, 3.0);
        }
        model
    }

    /// Predicts the times of `copies` concurrent copies of the pipeline: the wall time until the
    /// last one ends, and the CPU time of all of them.
    pub fn forecast(&self, copies: f64) -> Forecast {
        let (explained, limit) = self.explained(copies);
        let pipes = self.stages.len().saturating_sub(1) as f64;
        let fit = match self.fitted_pipes {
            0 => self.fit,
            fitted => self.fit.powf(pipes / fitted as f64),
        };
        let wall = explained * fit;
        let cpu = copies * self.stages.iter().map(|stage| stage.cpu).sum::<f64>();
        if wall < self.floor {
            return Forecast { wall: self.floor, cpu, limit: Limit::Outside };
        }
        Forecast { wall, cpu, limit }
    }

    /// Returns the wall time in seconds that the stages alone explain, for `copies` concurrent
    /// copies of the pipeline, and the limit of the phase that takes longest.
    fn explained(&self, copies: f64) -> (f64, Limit) {
        let mut total = 0.0;
        let mut longest = (0.0, Limit::Machine);
        for phase in self.phases() {
            let slowest = phase
                .iter()
                .map(|&(index, share)| (share * self.stages[index].service, Limit::Stage(index)))
                .fold((0.0, Limit::Machine), |a, b| if b.0 > a.0 { b } else { a });
            let work: f64 = phase.iter().map(|&(i, share)| share * self.stages[i].cpu).sum();
            let machine = copies * work / self.cpus.max(f64::MIN_POSITIVE);
            let time = if machine > slowest.0 { (machine, Limit::Machine) } else { slowest };
            total += time.0;
            if time.0 > longest.0 {
                longest = time;
            }
        }
        (total, longest.1)
    }

    /// Returns the phases between barriers. A phase lists its concurrent stages by index, each with
    /// the share of its work that falls into the phase.
    fn phases(&self) -> Vec<Vec<(usize, f64)>> {
        let mut phases = vec![Vec::new()];
        for (index, stage) in self.stages.iter().enumerate() {
            let now = phases.len() - 1;
            phases[now].push((index, 1.0 - stage.held.unwrap_or(0.0)));
            phases.extend(stage.held.map(|held| vec![(index, held)]));
        }
        phases
    }
}

/// Returns whether other programs or the hypervisor are known to have affected the profile's wall
/// time. The model assumes that the pipeline has the CPUs to itself.
pub fn was_disturbed(record: &PipeRecord) -> bool {
    let observed = &record.observation;
    match (observed.others_cpu_share, observed.steal_share) {
        // An older record has only a warning about a disturbance.
        (None, None) => {
            let tells = |id| matches!(id, WarningId::OtherLoad | WarningId::Steal);
            record.warnings.iter().any(|warning| tells(warning.id))
        }
        (others, steal) => is_disturbing(others.unwrap_or(0.0), steal.unwrap_or(0.0)),
    }
}

/// Returns the model's prediction for the unchanged pipeline, without a wall time if the profile
/// was disturbed.
pub fn unchanged(record: &PipeRecord, start_up: f64) -> Prediction {
    let forecast = Model::of(record, start_up).forecast(1.0);
    Prediction {
        wall_seconds: (!was_disturbed(record)).then_some(forecast.wall),
        cpu_seconds: forecast.cpu,
    }
}

fn cost(stage: &Stage, start_up: f64) -> StageCost {
    let service = stage.service_seconds();
    StageCost {
        service,
        cpu: stage.cpu_seconds(),
        held: stage.holds_output.then(|| held(stage, service)),
        start_up: start_up.min(service),
    }
}

/// Estimates `StageCost::held` for a stage that holds its output: the share of its work, from 0 to
/// 1, that followed the end of its input. This work is assumed to begin with the first output.
/// While the stage writes, it is not starved, so all time in which it waits for neither its reader
/// nor a CPU is work.
fn held(stage: &Stage, service: f64) -> f64 {
    let first_output = stage.first_output_seconds.unwrap_or(stage.wall_seconds);
    let after = stage.wall_seconds - first_output - stage.blocked_seconds;
    let running = stage.on_cpu_seconds + stage.run_queue_seconds;
    let queued = if running > 0.0 { stage.run_queue_seconds / running } else { 0.0 };
    let worked = (after * (1.0 - queued)).clamp(0.0, service);
    if service > 0.0 { worked / service } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stage(service: f64) -> StageCost {
        StageCost { service, cpu: service, held: None, start_up: 0.0 }
    }

    fn model(stages: Vec<StageCost>, cpus: f64) -> Model {
        Model { stages, cpus, fit: 1.0, fitted_pipes: 1, floor: 0.0 }
    }

    fn wall(stages: Vec<StageCost>, cpus: f64) -> f64 {
        model(stages, cpus).forecast(1.0).wall
    }

    #[test]
    fn the_slowest_stage_or_the_cpus_decide() {
        assert!((wall(vec![stage(1.0), stage(3.0)], 2.0) - 3.0).abs() < 1e-9);
        assert!((wall(vec![stage(2.0), stage(3.0), stage(3.0)], 2.0) - 4.0).abs() < 1e-9);
        let forecast = model(vec![stage(2.0), stage(3.0), stage(3.0)], 2.0).forecast(1.0);
        assert_eq!(forecast.limit, Limit::Machine);
        assert_eq!(model(vec![stage(1.0), stage(3.0)], 2.0).forecast(1.0).limit, Limit::Stage(1));
    }

    #[test]
    fn a_stage_that_sleeps_sets_the_pace_without_a_cpu() {
        let sleeper = StageCost { cpu: 0.0, ..stage(5.0) };
        assert!((wall(vec![stage(2.0), sleeper, stage(2.0)], 1.0) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_stage_that_holds_its_output_is_a_barrier() {
        let sort = StageCost { held: Some(0.25), ..stage(4.0) };
        // 3 s of sorting concurrent with 1 s of reading, then 1 s of writing concurrent with 2 s of
        // work.
        assert!((wall(vec![stage(1.0), sort.clone(), stage(2.0)], 4.0) - 5.0).abs() < 1e-9);
        // Nothing waits at the end, but the rest of sort's own work still follows.
        assert!((wall(vec![stage(3.5), sort], 4.0) - 4.5).abs() < 1e-9);
    }

    #[test]
    fn copies_need_the_cpus_for_all_of_them() {
        let model = model(vec![stage(1.0), stage(3.0)], 2.0);
        assert!((model.forecast(10.0).wall - 20.0).abs() < 1e-9);
        assert!((model.forecast(10.0).cpu - 40.0).abs() < 1e-9);
    }

    #[test]
    fn the_fit_belongs_to_the_pipes() {
        let spread = Model { fit: 1.21, fitted_pipes: 2, ..model(vec![stage(1.0); 3], 4.0) };
        assert!((spread.forecast(1.0).wall - 1.21).abs() < 1e-9);
        let fused = Model { stages: vec![stage(1.0); 2], ..spread.clone() };
        assert!((fused.forecast(1.0).wall - 1.1).abs() < 1e-9);
        let one = Model { stages: vec![stage(1.0)], ..spread };
        assert!((one.forecast(1.0).wall - 1.0).abs() < 1e-9);
    }

    fn observed(others: Option<f64>, steal: Option<f64>, wall: f64) -> PipeRecord {
        let mut record = crate::rewrite::tests::profile_of(3, 1 << 20);
        record.wall_seconds = wall;
        record.observation.others_cpu_share = others;
        record.observation.steal_share = steal;
        record
    }

    #[test]
    fn the_unchanged_pipeline_is_predicted_by_the_same_model() {
        // Three stages of 0.5 s on two CPUs explain 0.75 s; the rest is attributed to hand-over.
        let quiet = unchanged(&observed(Some(0.02), Some(0.0), 1.0), 0.0);
        assert!((quiet.wall_seconds.expect("quiet") - 1.0).abs() < 1e-9);
        assert!((quiet.cpu_seconds - 1.5).abs() < 1e-9);
        // However long the run took, the model predicts only the time that it can explain.
        let slow = unchanged(&observed(Some(0.02), Some(0.0), 10.0), 0.0);
        assert!((slow.wall_seconds.expect("quiet") - 3.0 * 0.75).abs() < 1e-9);
    }

    #[test]
    fn no_wall_time_is_predicted_on_a_busy_machine() {
        for (others, steal) in [(Some(0.3), Some(0.0)), (Some(0.0), Some(0.1))] {
            let record = observed(others, steal, 1.5);
            assert_eq!(unchanged(&record, 0.0).wall_seconds, None);
            assert!((unchanged(&record, 0.0).cpu_seconds - 1.5).abs() < 1e-9);
            // Time that other programs took is not attributed to pipes.
            assert!((Model::of(&record, 0.0).fit - 1.0).abs() < 1e-9);
        }
        assert!(!was_disturbed(&observed(None, None, 1.0)));
        let mut old = observed(None, None, 1.0);
        old.warnings.push(contend_record::Warning::new(WarningId::OtherLoad, "30 %"));
        assert!(was_disturbed(&old));
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_the_stages_are(
            stages in prop::collection::vec((0.0..5.0_f64, 0.0..=1.0_f64, prop::option::of(0.0..=1.0_f64)), 1..8),
            cpus in 1..16_u32,
        ) {
            let stages: Vec<_> = stages
                .into_iter()
                .map(|(service, share, held)| StageCost {
                    service, cpu: service * share, held, start_up: 0.0,
                })
                .collect();
            let cpus = f64::from(cpus);
            let slowest = stages.iter().map(|s| s.service).fold(0.0, f64::max);
            let service: f64 = stages.iter().map(|s| s.service).sum();
            let cpu: f64 = stages.iter().map(|s| s.cpu).sum();
            let wall = wall(stages, cpus);
            prop_assert!(wall >= slowest - 1e-9 && wall >= cpu / cpus - 1e-9);
            prop_assert!(wall <= service + cpu + 1e-9);
        }
    }
}
