//! Predicts the wall time of a pipeline from the costs of its stages.
//!
//! Let D be a stage's service time and C its CPU time. Stages that run concurrently take as long as
//! the slowest of them, and at least as long as the CPUs need for all of them: max(max D, ΣC /
//! CPUs). Gordon, Thies and Amarasinghe (2006) give this bound for pipelines. A stage that holds
//! its output until its input ends is a barrier, which divides the run into phases, whose times add
//! up:
//!
//! ```text
//! grep ───────┐
//! sort ─ read ┤ sort alone ├ write ──┐
//! uniq ───────┘            └─────────┘
//!        phase 1   phase 2    phase 3
//! ```
//!
//! A phase of the original may take longer than this bound. The ratio of the two is attributed to
//! hand-over between the stages of the phase, and scaled to a candidate's number of pipes in it.

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
    /// How the work is divided, or `None` if the stage does not hold its output.
    pub barrier: Option<Barrier>,
    /// CPU time in seconds to start the program. It does not grow with the input.
    pub start_up: f64,
}

/// How the work of a stage that holds its output is divided. The rest of the work precedes the end
/// of its input.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Barrier {
    /// Share of the work, from 0 to 1, between the end of the input and the first output.
    pub alone: f64,
    /// Share of the work, from 0 to 1, after the first output.
    pub after: f64,
}

/// The parameters of a pipeline's prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Costs of the stages, in order.
    pub stages: Vec<StageCost>,
    /// Number of CPUs that the pipeline can use, which need not be an integer.
    pub cpus: f64,
    /// Ratio of the original's wall time to the time that its stages explain.
    pub fit: Fit,
    /// The same ratio for each phase of the original, in order.
    pub phase_fits: Vec<Fit>,
    /// Lower bound of the wall time in seconds, set by the pipeline's producer or consumer; 0 if
    /// neither was the bottleneck.
    pub floor: f64,
}

/// The ratio of a measured time to the time that the stages explain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The ratio, clamped to the range from 0.8 to 3; 1 if the profile was disturbed or the stages
    /// explain no time.
    pub ratio: f64,
    /// Number of pipes between the stages, for scaling the ratio.
    pub pipes: usize,
}

impl Fit {
    fn of(measured: f64, explained: f64, pipes: usize) -> Self {
        let ratio = if explained > 0.0 { (measured / explained).clamp(0.8, 3.0) } else { 1.0 };
        Self { ratio, pipes }
    }

    /// Returns the ratio for another number of pipes. Each pipe contributes an equal factor.
    fn with_pipes(self, pipes: usize) -> f64 {
        match self.pipes {
            0 => self.ratio,
            fitted => self.ratio.powf(pipes as f64 / fitted as f64),
        }
    }
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
        let costs = record.stages.iter().enumerate();
        let costs = costs.map(|(index, stage)| cost(record, index, stage, start_up));
        let stages = costs.collect();
        let outside =
            matches!(record.bottleneck.kind, BottleneckKind::Input | BottleneckKind::Output);
        let mut model = Self {
            stages,
            cpus: record.host.usable_cpus(),
            fit: Fit::of(0.0, 0.0, record.boundaries.len()),
            phase_fits: Vec::new(),
            floor: if outside { record.wall_seconds } else { 0.0 },
        };
        // Time that other programs took is not a cost of hand-over.
        if !was_disturbed(record) {
            model.calibrate(record);
        }
        model
    }

    /// Sets the fits to those of a profile.
    fn calibrate(&mut self, record: &PipeRecord) {
        let phases = self.phases();
        let explained: Vec<f64> = phases.iter().map(|phase| self.explained(phase, 1.0).0).collect();
        self.fit = Fit::of(record.wall_seconds, explained.iter().sum(), record.boundaries.len());
        let ends = phase_ends(record);
        let begins = std::iter::once(0.0).chain(ends.iter().copied());
        let lengths = begins.zip(&ends).map(|(begin, end)| end - begin);
        self.phase_fits = lengths
            .zip(explained)
            .zip(&phases)
            .map(|((measured, explained), phase)| {
                // In a short phase, starting and ending stages dominates.
                let pipes = phase.len() - 1;
                if measured < MIN_FITTED_SHARE * record.wall_seconds {
                    return Fit { pipes, ..self.fit };
                }
                Fit::of(measured, explained, pipes)
            })
            .collect();
    }

    /// Predicts the times of `copies` concurrent copies of the pipeline: the wall time until the
    /// last one ends, and the CPU time of all of them.
    pub fn forecast(&self, copies: f64) -> Forecast {
        let phases = self.phases();
        // If a change has added or removed a barrier, its phases are not those of the original.
        let fits = Some(&self.phase_fits).filter(|fits| fits.len() == phases.len());
        let mut wall = 0.0;
        let mut longest = (0.0, Limit::Machine);
        for (place, phase) in phases.iter().enumerate() {
            let (explained, limit) = self.explained(phase, copies);
            let fit = match fits {
                Some(fits) => fits[place].with_pipes(phase.len() - 1),
                None => self.fit.with_pipes(self.stages.len().saturating_sub(1)),
            };
            wall += explained * fit;
            if explained > longest.0 {
                longest = (explained, limit);
            }
        }
        let cpu = copies * self.stages.iter().map(|stage| stage.cpu).sum::<f64>();
        if wall < self.floor {
            return Forecast { wall: self.floor, cpu, limit: Limit::Outside };
        }
        Forecast { wall, cpu, limit: longest.1 }
    }

    /// Returns the wall time in seconds that the stages of a phase alone explain, for `copies`
    /// concurrent copies of the pipeline, and what limits it.
    fn explained(&self, phase: &[(usize, f64)], copies: f64) -> (f64, Limit) {
        let slowest = phase
            .iter()
            .map(|&(index, share)| (share * self.stages[index].service, Limit::Stage(index)))
            .fold((0.0, Limit::Machine), |a, b| if b.0 > a.0 { b } else { a });
        let work: f64 = phase.iter().map(|&(i, share)| share * self.stages[i].cpu).sum();
        let machine = copies * work / self.cpus.max(f64::MIN_POSITIVE);
        if machine > slowest.0 { (machine, Limit::Machine) } else { slowest }
    }

    /// Returns the phases between barriers, at least one. A phase lists its concurrent stages by
    /// index, each with the share of its work that falls into the phase.
    fn phases(&self) -> Vec<Vec<(usize, f64)>> {
        let mut phases = vec![Vec::new()];
        for (index, stage) in self.stages.iter().enumerate() {
            let now = phases.len() - 1;
            match stage.barrier {
                None => phases[now].push((index, 1.0)),
                Some(Barrier { alone, after }) => {
                    phases[now].push((index, 1.0 - alone - after));
                    phases.push(vec![(index, alone)]);
                    phases.push(vec![(index, after)]);
                }
            }
        }
        phases
    }
}

/// Share of the wall time above which a phase gets its own fit.
const MIN_FITTED_SHARE: f64 = 0.05;

/// Returns the times, in seconds since the start, at which the phases of a profile ended: for each
/// barrier, the end of its input and its first output, and at last the end of the run.
fn phase_ends(record: &PipeRecord) -> Vec<f64> {
    let mut ends = Vec::new();
    let mut latest: f64 = 0.0;
    for (index, stage) in record.stages.iter().enumerate().filter(|(_, stage)| stage.holds_output) {
        let (end_of_input, first_output) = barrier_events(record, index, stage);
        for event in [end_of_input, first_output] {
            latest = latest.max(event.min(record.wall_seconds));
            ends.push(latest);
        }
    }
    ends.push(record.wall_seconds);
    ends
}

/// Returns when the input of a barrier ended and when it first wrote, in seconds since the start.
/// The end of the input is that of the stage before it. If there is none, it is unknown, and the
/// first output takes its place.
fn barrier_events(record: &PipeRecord, index: usize, stage: &Stage) -> (f64, f64) {
    let first_output = stage.first_output_seconds.unwrap_or(stage.wall_seconds);
    let before = index.checked_sub(1).and_then(|before| record.stages.get(before));
    let end_of_input = before.map_or(first_output, |before| before.wall_seconds);
    (end_of_input.min(first_output), first_output)
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

fn cost(record: &PipeRecord, index: usize, stage: &Stage, start_up: f64) -> StageCost {
    let service = stage.service_seconds();
    StageCost {
        service,
        cpu: stage.cpu_seconds(),
        barrier: stage.holds_output.then(|| barrier(record, index, stage, service)),
        start_up: start_up.min(service),
    }
}

/// Estimates how the work of a stage that holds its output is divided. After the end of its input,
/// the stage is not starved, so all time in which it waits for neither its reader nor a CPU is work.
fn barrier(record: &PipeRecord, index: usize, stage: &Stage, service: f64) -> Barrier {
    let (end_of_input, first_output) = barrier_events(record, index, stage);
    let running = stage.on_cpu_seconds + stage.run_queue_seconds;
    let queued = if running > 0.0 { stage.run_queue_seconds / running } else { 0.0 };
    let share = |seconds: f64| {
        if service > 0.0 { (seconds * (1.0 - queued) / service).clamp(0.0, 1.0) } else { 0.0 }
    };
    let after = share(stage.wall_seconds - first_output - stage.blocked_seconds);
    let alone = share(first_output - end_of_input).min(1.0 - after);
    Barrier { alone, after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stage(service: f64) -> StageCost {
        StageCost { service, cpu: service, barrier: None, start_up: 0.0 }
    }

    fn model(stages: Vec<StageCost>, cpus: f64) -> Model {
        Model {
            stages,
            cpus,
            fit: Fit { ratio: 1.0, pipes: 1 },
            phase_fits: Vec::new(),
            floor: 0.0,
        }
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
        let sort = StageCost { barrier: Some(Barrier { alone: 0.5, after: 0.25 }), ..stage(4.0) };
        // Sorting for 1 s while the first stage reads for 1 s, for 2 s alone, and for 1 s while the
        // last stage works for 2 s.
        assert!((wall(vec![stage(1.0), sort.clone(), stage(2.0)], 4.0) - 5.0).abs() < 1e-9);
        // Nothing waits at the end, but the rest of sort's own work still follows.
        assert!((wall(vec![stage(3.5), sort], 4.0) - 6.5).abs() < 1e-9);
    }

    #[test]
    fn copies_need_the_cpus_for_all_of_them() {
        let model = model(vec![stage(1.0), stage(3.0)], 2.0);
        assert!((model.forecast(10.0).wall - 20.0).abs() < 1e-9);
        assert!((model.forecast(10.0).cpu - 40.0).abs() < 1e-9);
    }

    #[test]
    fn the_fit_belongs_to_the_pipes() {
        let fit = Fit { ratio: 1.21, pipes: 2 };
        let spread = Model { fit, ..model(vec![stage(1.0); 3], 4.0) };
        assert!((spread.forecast(1.0).wall - 1.21).abs() < 1e-9);
        let fused = Model { stages: vec![stage(1.0); 2], ..spread.clone() };
        assert!((fused.forecast(1.0).wall - 1.1).abs() < 1e-9);
        let one = Model { stages: vec![stage(1.0)], ..spread };
        assert!((one.forecast(1.0).wall - 1.0).abs() < 1e-9);
    }

    /// Returns the profile of `stage | sort | stage` on two CPUs: the first stage works for 1 s, sort
    /// works alone for 1 s, and the last stage for 2 s. Each stage that works takes `slower` times as
    /// long as its service time, because of hand-over.
    fn sorted(slower: f64) -> PipeRecord {
        let mut record = observed(Some(0.0), Some(0.0), 2.0 * slower + 2.0);
        let times = [(1.0, slower), (1.0, 2.0 * slower + 2.0), (2.0, 2.0 * slower + 2.0)];
        for (stage, (service, wall)) in record.stages.iter_mut().zip(times) {
            (stage.on_cpu_seconds, stage.user_seconds, stage.service_seconds) =
                (service, service, service);
            stage.wall_seconds = wall;
        }
        let sort = &mut record.stages[1];
        sort.holds_output = true;
        sort.first_output_seconds = Some(slower + 1.0);
        sort.starved_seconds = slower;
        sort.blocked_seconds = slower + 1.0;
        record.wall_seconds = slower + 1.0 + 2.0;
        record.stages[2].wall_seconds = record.wall_seconds;
        record.stages[1].wall_seconds = record.wall_seconds;
        record.stages[1].blocked_seconds = 2.0;
        record
    }

    #[test]
    fn each_phase_has_its_own_fit() {
        // The first phase takes 1.5 times as long as its stages explain, the others do not.
        let mut model = Model::of(&sorted(1.5), 0.0);
        assert!((model.forecast(1.0).wall - 4.5).abs() < 1e-9, "{:?}", model.forecast(1.0));
        assert_eq!(model.stages[1].barrier, Some(Barrier { alone: 1.0, after: 0.0 }));
        model.stages[2].service = 1.0;
        model.stages[2].cpu = 1.0;
        assert!((model.forecast(1.0).wall - 3.5).abs() < 1e-9, "1 s less, not 1 s times the fit");
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
            assert!((Model::of(&record, 0.0).fit.ratio - 1.0).abs() < 1e-9);
        }
        assert!(!was_disturbed(&observed(None, None, 1.0)));
        let mut old = observed(None, None, 1.0);
        old.warnings.push(contend_record::Warning::new(WarningId::OtherLoad, "30 %"));
        assert!(was_disturbed(&old));
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_the_stages_are(
            stages in prop::collection::vec((0.0..5.0_f64, 0.0..=1.0_f64, prop::option::of((0.0..=0.5_f64, 0.0..=0.5_f64))), 1..8),
            cpus in 1..16_u32,
        ) {
            let stages: Vec<_> = stages
                .into_iter()
                .map(|(service, share, barrier)| StageCost {
                    service,
                    cpu: service * share,
                    barrier: barrier.map(|(alone, after)| Barrier { alone, after }),
                    start_up: 0.0,
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
