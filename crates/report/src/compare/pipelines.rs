//! Compares saved runs of pipelines.

use std::collections::BTreeMap;

use contend_record::Warning;
use contend_record::pipe::{Bottleneck, PipeRecord, Stage, Total};
use contend_record::run::{Outcome, RunRecord};
use contend_record::stats::{Estimate, Ratio};
use contend_record::versus::{self, Ratios, Variant, VersusRecord};
use contend_record::warning::WarningId;

/// Seed of the intervals.
const SEED: u64 = 0x00c0_17e4_d000;

/// Returns the record of a parallel run as that of a profile, with the figures that both have: the
/// wall time and CPU time of the whole, the CPU time of each stage, and peak memory, which is that
/// of the whole for every stage. Returns `None` if the pipeline was not run.
pub fn of_parallel_run(record: &RunRecord) -> Option<PipeRecord> {
    let outcome = record.outcome.as_ref()?;
    let texts: Vec<&str> =
        record.plan.iter().flat_map(|plan| &plan.stages).map(|stage| stage.text.as_str()).collect();
    let stage = |stage: &contend_record::run::StageOutcome| Stage {
        index: stage.index,
        command: texts.get(stage.index.saturating_sub(1)).copied().unwrap_or_default().to_owned(),
        exit_code: stage.exit_code,
        user_seconds: stage.cpu_seconds,
        max_rss_bytes: memory(outcome),
        ..Stage::default()
    };
    // The work of stages that contend does itself is also part of its own CPU time.
    let started = |one: &&contend_record::run::StageOutcome| one.starts > 0;
    let of_commands: f64 =
        outcome.stages.iter().filter(started).map(|stage| stage.cpu_seconds).sum();
    Some(PipeRecord {
        schema: contend_record::pipe::SCHEMA.to_owned(),
        command: record.command.clone(),
        started_at: record.started_at.clone(),
        exit_code: outcome.exit_code,
        wall_seconds: outcome.wall_seconds,
        stages: outcome.stages.iter().map(stage).collect(),
        total: Total { user_seconds: outcome.own_cpu_seconds + of_commands, ..Total::default() },
        bottleneck: Bottleneck::default(),
        host: record.host.clone(),
        ..PipeRecord::default()
    })
}

fn memory(outcome: &Outcome) -> u64 {
    let largest = outcome.own_max_rss_bytes.max(outcome.command_max_rss_bytes);
    outcome.peak_memory_bytes.unwrap_or(largest)
}

/// Saved runs of a pipeline.
#[derive(Debug, Clone)]
pub struct SavedRuns {
    /// The profile of one of the runs.
    profile: PipeRecord,
    /// Where the runs come from, in words.
    origin: String,
    exit_code: i32,
    /// Wall time of each run, in seconds.
    wall_seconds: Vec<f64>,
    /// CPU time of each run, in seconds.
    cpu_seconds: Vec<f64>,
    /// Peak memory of each run, in bytes; of only one run if the others are unknown.
    max_rss_bytes: Vec<f64>,
}

impl SavedRuns {
    /// Returns the runs in a profile: one, or those of `--runs`. `origin` says in words where it
    /// comes from.
    pub fn of_profile(profile: PipeRecord, origin: String) -> Self {
        let cpu = profile.total.user_seconds + profile.total.system_seconds;
        let memory = profile.stages.iter().map(|stage| stage.max_rss_bytes).max();
        let (wall_seconds, cpu_seconds) = match &profile.runs {
            Some(runs) => (runs.wall_seconds.samples.clone(), runs.cpu_seconds.samples.clone()),
            None => (vec![profile.wall_seconds], vec![cpu]),
        };
        Self {
            origin,
            exit_code: profile.exit_code,
            wall_seconds,
            cpu_seconds,
            max_rss_bytes: vec![memory.unwrap_or(0) as f64],
            profile,
        }
    }

    /// Returns the runs of each pipeline in a comparison, in order. `origin` says in words where the
    /// comparison comes from.
    pub fn of_comparison(record: VersusRecord, origin: &str) -> Vec<Self> {
        let runs = |variant: Variant| Self {
            origin: format!("{} of {origin}", variant.name),
            exit_code: variant.exit_code,
            wall_seconds: variant.wall_seconds.samples,
            cpu_seconds: variant.cpu_seconds.samples,
            max_rss_bytes: variant.max_rss_bytes.samples,
            profile: variant.profile,
        };
        record.variants.into_iter().map(runs).collect()
    }
}

/// Returns a comparison of saved runs of pipelines, the first of which are the baseline. Returns
/// `None` without runs.
pub fn compare_pipelines(runs: Vec<SavedRuns>) -> Option<VersusRecord> {
    let estimate = |samples: Vec<f64>| Estimate::from_samples(samples, SEED);
    let first = runs.first()?.clone();
    let variant = |(place, runs): (usize, SavedRuns)| {
        let ratio = |of: fn(&SavedRuns) -> &Vec<f64>| {
            let (own, base) = (of(&runs), of(&first));
            // A figure may be 0 in both runs, such as the CPU time of a short one.
            let by = |base: &f64| base.max(f64::MIN_POSITIVE);
            // Runs at different times are not pairs, and all combinations would be too many. One quotient for each
            // run of the smaller side keeps the number of samples right.
            let quotients = own.iter().zip(base).map(|(own, base)| own / by(base));
            let mut ratios = estimate(quotients.collect())?;
            if let Some(ratio) = Ratio::of(own, base, SEED) {
                ratios.median = ratio.ratio;
                ratios.ci95 = ratio.ci95.or(ratio.range).unwrap_or(ratios.ci95);
            }
            Some(ratios)
        };
        let ratios = match place {
            0 => None,
            _ => Some(Ratios {
                wall: ratio(|runs| &runs.wall_seconds)?,
                cpu: ratio(|runs| &runs.cpu_seconds)?,
                memory: ratio(|runs| &runs.max_rss_bytes)?,
            }),
        };
        Some(Variant {
            name: super::name(place),
            command: runs.profile.command.clone(),
            origin: Some(runs.origin),
            parameters: BTreeMap::new(),
            exit_code: runs.exit_code,
            wall_seconds: estimate(runs.wall_seconds)?,
            cpu_seconds: estimate(runs.cpu_seconds)?,
            max_rss_bytes: estimate(runs.max_rss_bytes)?,
            ratios,
            output_equal: None,
            difference: None,
            profile: runs.profile,
        })
    };
    let variants: Vec<_> = runs.into_iter().enumerate().map(variant).collect::<Option<_>>()?;
    let counts = variants.iter().map(|variant| variant.wall_seconds.samples.len());
    Some(VersusRecord {
        schema: versus::SCHEMA.to_owned(),
        shell: first.profile.shell,
        started_at: first.profile.started_at,
        rounds: counts.min().unwrap_or(0),
        seed: SEED,
        host: first.profile.host,
        warnings: machines_differ(&variants)
            .into_iter()
            .chain(variants.iter().filter_map(part_of_run))
            .chain(disturbances(&variants))
            .collect(),
        variants,
        ..VersusRecord::default()
    })
}

/// Returns the warnings about disturbances, each with the name of the run.
fn disturbances(variants: &[Variant]) -> Vec<Warning> {
    let of_variant = |variant: &Variant| {
        let disturbing = variant.profile.warnings.iter().filter(|one| one.is_disturbance());
        let named =
            |one: &Warning| Warning::new(one.id, format!("{}: {}", variant.name, one.message));
        disturbing.map(named).collect::<Vec<_>>()
    };
    variants.iter().flat_map(of_variant).collect()
}

/// Returns a warning if the record may cover only a part of a run, because contend was attached to
/// the running pipeline.
fn part_of_run(variant: &Variant) -> Option<Warning> {
    variant.profile.attached.as_ref()?;
    let message = format!(
        "{} is an observation of a pipeline that was already running: its times and counts are those \
         of the observation, and their ratios to those of a run mean little",
        variant.name
    );
    Some(Warning::new(WarningId::PartOfRun, message))
}

/// Returns a warning if the runs were measured on different machines.
fn machines_differ(variants: &[Variant]) -> Option<Warning> {
    let machine = |variant: &Variant| {
        let host = &variant.profile.host;
        (host.cpu_model.clone(), host.cpus_allowed, host.kernel.clone())
    };
    let first = variants.first().map(machine);
    let differ = variants.iter().any(|variant| Some(machine(variant)) != first);
    let message = "the runs were measured on different machines or kernels";
    differ.then(|| Warning::new(WarningId::MachinesDiffer, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::Host;
    use contend_record::pipe::Runs;

    fn saved(record: PipeRecord) -> SavedRuns {
        SavedRuns::of_profile(record, "a file".to_owned())
    }

    fn record(wall: f64, runs: usize) -> PipeRecord {
        let samples: Vec<f64> = (0..runs).map(|run| wall * (1.0 + 0.01 * run as f64)).collect();
        let estimate = || Estimate::from_samples(samples.clone(), 1);
        let runs = estimate().zip(estimate()).filter(|_| runs > 1).map(|(wall, cpu)| Runs {
            count: runs,
            wall_seconds: wall,
            cpu_seconds: cpu,
            same_bottleneck: runs,
            stages: Vec::new(),
        });
        PipeRecord {
            wall_seconds: wall,
            command: format!("sleep {wall}"),
            runs,
            ..PipeRecord::default()
        }
    }

    #[test]
    fn saved_runs_have_ratios_to_the_first_one() {
        let runs = vec![saved(record(1.0, 8)), saved(record(0.5, 8))];
        let compared = compare_pipelines(runs).expect("two runs");
        assert_eq!(compared.rounds, 8);
        let ratios = compared.variants[1].ratios.as_ref().expect("a baseline");
        assert!((ratios.wall.median - 0.5).abs() < 1e-9);
        assert!(ratios.wall.ci95[1] < 0.6 && ratios.wall.ci95[0] > 0.4);
        assert_eq!(compared.variants[0].output_equal, None);
        let single = vec![saved(record(1.0, 1)), saved(record(2.0, 1))];
        let compared = compare_pipelines(single).expect("two runs");
        let ratios = compared.variants[1].ratios.as_ref().expect("a baseline");
        assert!((ratios.wall.median - 2.0).abs() < 1e-9);
        assert!(compare_pipelines(Vec::new()).is_none());
        let few = vec![saved(record(1.0, 2)), saved(record(2.0, 2))];
        let compared = compare_pipelines(few).expect("two runs");
        let [low, high] = compared.variants[1].ratios.as_ref().expect("a baseline").wall.ci95;
        assert!(low < 1.99 && high > 2.01, "both sides scatter: {low} to {high}");
    }

    #[test]
    fn ratios_have_as_many_samples_as_the_smaller_side() {
        let runs = vec![saved(record(1.0, 3)), saved(record(0.5, 300))];
        let compared = compare_pipelines(runs).expect("two runs");
        let ratios = compared.variants[1].ratios.as_ref().expect("a baseline");
        assert_eq!(ratios.wall.samples.len(), 3, "three runs have no 95 % interval");
        let json = serde_json::to_string(&compared).expect("JSON");
        assert!(json.len() < 40_000, "{}", json.len());
    }

    #[test]
    fn the_pipelines_of_a_comparison_are_compared_with_other_runs() {
        let both = compare_pipelines(vec![saved(record(1.0, 8)), saved(record(0.5, 8))]);
        let mut runs = vec![saved(record(2.0, 8))];
        runs.extend(SavedRuns::of_comparison(both.expect("two runs"), "run 7"));
        let compared = compare_pipelines(runs).expect("three runs");
        let origins: Vec<_> = compared.variants.iter().map(|one| one.origin.as_deref()).collect();
        assert_eq!(origins, [Some("a file"), Some("A of run 7"), Some("B of run 7")]);
        let ratios = compared.variants[2].ratios.as_ref().expect("a baseline");
        assert!((ratios.wall.median - 0.25).abs() < 1e-9);
        assert_eq!(compared.rounds, 8);
    }

    #[test]
    fn different_machines_are_noticed() {
        let mut other = record(1.0, 1);
        other.host = Host { cpu_model: "other".to_owned(), ..Host::default() };
        let runs = vec![saved(record(1.0, 1)), saved(other)];
        let warnings = compare_pipelines(runs).expect("two runs").warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].id, WarningId::MachinesDiffer);
    }

    #[test]
    fn disturbances_of_each_run_are_repeated() {
        let mut noisy = record(1.0, 1);
        noisy.warnings = vec![
            Warning::new(WarningId::OtherLoad, "other programs used 30 %"),
            Warning::new(WarningId::FailedStage, "a stage failed"),
        ];
        let runs = vec![saved(record(1.0, 1)), saved(noisy)];
        let warnings = compare_pipelines(runs).expect("two runs").warnings;
        let messages: Vec<_> = warnings.iter().map(|warning| warning.message.as_str()).collect();
        assert_eq!(messages, ["B: other programs used 30 %"]);
    }
}
