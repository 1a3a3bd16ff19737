//! Turns a profile into candidates: one for each change that applies, with its prediction, and
//! combinations of the changes that help.

use std::collections::BTreeSet;
use std::ops::Range;

use contend_record::advice::{Basis, Candidate, Measurement, RewriteId, Safety, Verdict};
use contend_record::pipe::PipeRecord;
use contend_shell::environment::Environment;
use contend_shell::runner::RunError;

use super::calibration::Calibration;
use super::model::{Forecast, Model, StageCost, was_disturbed};
use super::pilot::{Pilot, PilotRun, StageTime, is_long_enough};
use crate::rewrite::draft::{Draft, Stage};
use crate::rewrite::{Change, ChangeId, Situation, changes};

/// Relative error of a prediction from a pilot whose measurements do not vary.
const PILOT_ERROR: f64 = 0.35;
/// Relative error of a prediction from the original's service times alone.
const COSTS_ERROR: f64 = 0.40;
/// Ratio of CPU time to service time above which a stage counts as multithreaded.
const MIN_CPU_RATIO_OF_THREADS: f64 = 1.2;
/// Predicted saving, as a share of wall or CPU time, that a change must exceed to be combined with
/// other changes. To be worth trying, a candidate must exceed it in wall time, or three times as
/// much in CPU time.
const MIN_SAVING: f64 = 0.02;
/// Predicted increase in CPU time, as a share of the original's, from which a candidate is not
/// worth trying if the profile was disturbed.
const MAX_DOUBTFUL_LOSS: f64 = 0.1;
/// Maximum number of changes in a predicted combination.
const MAX_COMBINED: usize = 8;

/// A candidate with its pipeline.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The candidate, as it appears in the record.
    pub candidate: Candidate,
    /// The changed pipeline.
    pub draft: Draft,
    /// The changes to the original that the candidate makes.
    pub changes: Vec<ChangeId>,
    /// Predicted wall and CPU time, each as a ratio to the prediction for the original, or `None`
    /// if they cannot be predicted.
    pub expected_ratios: Option<(f64, f64)>,
    /// Whether the profile was disturbed, so that the expected ratios are less reliable, that of
    /// wall time in particular.
    pub is_doubtful: bool,
}

impl Prepared {
    /// Returns the predicted ratio of wall time or, if the profile was disturbed, that of CPU time;
    /// infinite without a prediction.
    fn expected_ratio(&self) -> f64 {
        let ratio = |(wall, cpu)| if self.is_doubtful { cpu } else { wall };
        self.expected_ratios.map_or(f64::INFINITY, ratio)
    }

    /// Returns whether this candidate is predicted to take less wall time than `other` or, if the
    /// profile was disturbed, less CPU time.
    pub fn is_expected_before(&self, other: &Self) -> bool {
        self.expected_ratio() < other.expected_ratio()
    }

    /// Returns whether the candidate should be tried. It must have no verdict yet and, if its
    /// prediction comes from the pilot, must be predicted to save enough time. A saving of CPU time
    /// alone counts if the candidate is not slower or, with `under_load`, in any case. If the
    /// profile was disturbed, it is enough that CPU time does not increase by `MAX_DOUBTFUL_LOSS`.
    pub fn is_worth_trying(&self, under_load: bool) -> bool {
        let (verdict, basis) = (self.candidate.measured.verdict, self.candidate.basis);
        let saves = self.expected_ratios.is_none_or(|(wall, cpu)| {
            if self.is_doubtful {
                return cpu < 1.0 + MAX_DOUBTFUL_LOSS;
            }
            let not_slower = under_load || wall < 1.0 + MIN_SAVING;
            wall < 1.0 - MIN_SAVING || not_slower && cpu < 1.0 - 3.0 * MIN_SAVING
        });
        verdict == Verdict::NotTried && (saves || basis == Some(Basis::Costs))
    }
}

/// A pipeline with its prediction.
#[derive(Debug, Clone)]
struct Plan {
    draft: Draft,
    costs: Option<Vec<StageCost>>,
    basis: Basis,
    /// Relative error of the prediction. The interval around a prediction `p` is from
    /// `p / (1 + error)` to `p * (1 + error)`.
    error: f64,
    /// Whether the pilot compared the output of the last stage with that of the original.
    compared: bool,
    /// How the output differs on the sample, or `None` if no difference was found.
    difference: Option<String>,
    safety: Safety,
    made: Vec<ChangeId>,
    reasons: Vec<String>,
}

/// The quantity that a combination of changes minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aim {
    /// Wall time, on an idle machine.
    Wall,
    /// CPU time, which limits throughput on a busy machine.
    Cpu,
}

/// A generator of candidates for a profiled pipeline, with the data from which it predicts their
/// gain.
pub struct Adviser<'a> {
    /// The profile of the original.
    pub record: &'a PipeRecord,
    /// Programs, locale, memory and CPUs of the machine.
    pub environment: &'a Environment,
    /// The costs of pipes and of starting programs.
    pub calibration: &'a Calibration,
    /// The pilot that times changed stages, or `None` if their input cannot be read again.
    pub pilot: Option<Pilot<'a>>,
}

impl Adviser<'_> {
    /// Returns the candidates for a profiled pipeline, in ascending order of predicted wall time
    /// or, if the profile was disturbed, of predicted CPU time. Candidates without a prediction are
    /// last.
    ///
    /// # Errors
    /// Returns an error if the pilot was interrupted, or a system call failed.
    pub fn candidates(&mut self, draft: &Draft) -> Result<Vec<Prepared>, RunError> {
        let original = self.original(draft)?;
        let plans = self.plans(&original, &original)?;
        let mut prepared: Vec<Prepared> = Vec::new();
        for plan in plans.iter().cloned() {
            prepared.push(self.prepare(plan));
        }
        for aim in [Aim::Wall, Aim::Cpu] {
            if let Some(together) = self.combine_predicted(&original, &plans, aim)? {
                let text = together.draft.text();
                if !prepared.iter().any(|one| one.candidate.command == text) {
                    prepared.push(self.prepare(together));
                }
            }
        }
        prepared.sort_by(|a, b| a.expected_ratio().total_cmp(&b.expected_ratio()));
        Ok(prepared)
    }

    /// Combines the changes that a trial has recommended, including those without a prediction.
    /// Returns `None` if fewer than two of them can be combined, if their combination is among the
    /// `tried` candidates, or if a recommended combination already includes all of them.
    ///
    /// # Errors
    /// Returns an error if the pilot was interrupted, or a system call failed.
    pub fn combine_proved(
        &mut self,
        draft: &Draft,
        tried: &[Prepared],
    ) -> Result<Option<Prepared>, RunError> {
        let recommended = || tried.iter().filter(|one| one.candidate.measured.verdict.recommends());
        let ratio = |one: &Prepared| {
            one.candidate.measured.wall_ratio.as_ref().map_or(1.0, |ratio| ratio.median)
        };
        let mut singles: Vec<&Prepared> =
            recommended().filter(|one| one.changes.len() == 1).collect();
        singles.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let proved: Vec<&ChangeId> = singles.iter().flat_map(|one| &one.changes).collect();
        let has_all = |one: &Prepared| {
            let makes = |single: &&ChangeId| one.changes.iter().any(|made| made.includes(single));
            one.changes.len() > 1 && proved.iter().all(makes)
        };
        if recommended().any(has_all) {
            return Ok(None);
        }
        let original = self.original(draft)?;
        let mut best = original.clone();
        let mut made: Vec<&ChangeId> = Vec::new();
        for wanted in proved {
            let same =
                |one: &&ChangeId| one.rewrite == wanted.rewrite && one.stages == wanted.stages;
            if made.iter().any(same) {
                continue; // such as another awk for a stage that already has a faster one
            }
            let situation = Situation {
                draft: &best.draft,
                environment: self.environment,
                profile: Some(self.record),
            };
            let is_it = |change: &&Change| ChangeId::of(&best.draft, change).includes(wanted);
            if let Some(change) = changes(&situation).iter().find(is_it) {
                best = self.planned(&best, change);
                made.push(wanted);
            }
        }
        let text = best.draft.text();
        let is_new = tried.iter().all(|one| one.candidate.command != text);
        if best.made.len() < 2 || !is_new {
            return Ok(None);
        }
        self.run_pilot(&original, std::slice::from_mut(&mut best), &original)?;
        Ok(Some(self.prepare(best)))
    }

    fn original(&mut self, draft: &Draft) -> Result<Plan, RunError> {
        if let Some(pilot) = &mut self.pilot {
            pilot.run_stages(draft)?;
        }
        Ok(Plan {
            draft: draft.clone(),
            costs: Some(self.model().stages),
            basis: Basis::Costs,
            error: 0.0,
            compared: false,
            difference: None,
            safety: Safety::Always,
            made: Vec::new(),
            reasons: Vec::new(),
        })
    }

    fn model(&self) -> Model {
        Model::of(self.record, self.calibration.start_up)
    }

    /// Returns a plan for each change that applies to `base`, with the results of the pilot, if
    /// there is one.
    fn plans(&mut self, base: &Plan, original: &Plan) -> Result<Vec<Plan>, RunError> {
        let situation = Situation {
            draft: &base.draft,
            environment: self.environment,
            profile: Some(self.record),
        };
        let mut plans: Vec<Plan> =
            changes(&situation).iter().map(|change| self.planned(base, change)).collect();
        self.run_pilot(base, &mut plans, original)?;
        Ok(plans)
    }

    /// Returns a plan for a change to `base`, with costs from the rewrite's own estimate, or
    /// without costs if the rewrite has none.
    fn planned(&self, base: &Plan, change: &Change) -> Plan {
        let draft = base.draft.changed(change, self.environment);
        let mut made = base.made.clone();
        made.push(ChangeId::of(&base.draft, change));
        let mut reasons = base.reasons.clone();
        let is_new = |reason: &&String| !base.reasons.contains(reason);
        reasons.extend(change.reasons.iter().filter(is_new).cloned());
        let costs = base.costs.as_ref().and_then(|costs| self.costs_after(costs, change));
        Plan {
            draft,
            costs,
            basis: Basis::Costs,
            error: COSTS_ERROR,
            compared: false,
            difference: None,
            safety: base.safety.max(change.safety),
            made,
            reasons,
        }
    }

    fn costs_after(&self, costs: &[StageCost], change: &Change) -> Option<Vec<StageCost>> {
        let new: Vec<StageCost> = change
            .stages
            .iter()
            .map(|replacement| {
                let (first, _) = replacement.work.first()?;
                let sum = |value: fn(&StageCost) -> f64| {
                    replacement.work.iter().map(|&(i, share)| share * value(&costs[i])).sum::<f64>()
                };
                let saved = self.pipe_between(change.at.clone(), replacement.work.len());
                let less = |work: f64| (work - saved).max(0.5 * work);
                Some(StageCost {
                    service: less(sum(|cost| cost.service)),
                    cpu: less(sum(|cost| cost.cpu)),
                    barrier: replacement.work.iter().find_map(|&(index, _)| costs[index].barrier),
                    start_up: costs[*first].start_up,
                })
            })
            .collect::<Option<_>>()?;
        let mut after = costs.to_vec();
        after.splice(change.at.clone(), new);
        Some(after)
    }

    /// Returns the CPU time in seconds that is saved by merging the two stages `at`: the cost of
    /// the pipe between them and of starting one program. Returns 0 unless `at` has two stages and
    /// the new stage does the work of at least two (`merged`).
    fn pipe_between(&self, at: Range<usize>, merged: usize) -> f64 {
        if merged < 2 || at.len() != 2 {
            return 0.0;
        }
        let bytes = self.record.boundaries.get(at.start).and_then(|boundary| boundary.bytes);
        let calls = self.record.stages.get(at.start).and_then(|stage| stage.writes);
        self.calibration.pipe(bytes.unwrap_or(0) as f64, calls.unwrap_or(0) as f64)
            + self.calibration.start_up
    }

    /// Runs the pilot for `plans`, if there is one. For each plan, records how its output differs
    /// from the original's, and replaces its costs by those of the pilot as far as `adopt` can.
    fn run_pilot(
        &mut self,
        base: &Plan,
        plans: &mut [Plan],
        original: &Plan,
    ) -> Result<(), RunError> {
        let Some(pilot) = &mut self.pilot else { return Ok(()) };
        for plan in plans.iter() {
            pilot.run_stages(&plan.draft)?;
        }
        let drafts: Vec<&Draft> = [&original.draft, &base.draft]
            .into_iter()
            .chain(plans.iter().map(|plan| &plan.draft))
            .collect();
        pilot.repeat(&drafts)?;
        let reference = pilot.run_stages(&original.draft)?;
        let runs: Vec<PilotRun> =
            plans.iter().map(|plan| pilot.run_stages(&plan.draft)).collect::<Result<_, _>>()?;
        let model = Model::of(self.record, self.calibration.start_up);
        for (plan, run) in plans.iter_mut().zip(runs) {
            plan.compared = run.end.is_some() && reference.end.is_some();
            plan.difference = pilot.difference(&reference, &run)?;
            adopt(plan, &run, &reference, &model.stages, &original.draft);
        }
        Ok(())
    }

    /// Returns the model's prediction for a plan, or `None` if the plan has no costs.
    fn forecast(&self, plan: &Plan) -> Option<Forecast> {
        let mut model = self.model();
        model.stages = plan.costs.clone()?;
        Some(model.forecast(1.0))
    }

    /// Combines changes by adding, one at a time, the change that is expected to reduce the time in
    /// `aim` most. `singles` are the plans with one change each. Returns `None` if fewer than two
    /// changes help.
    fn combine_predicted(
        &mut self,
        original: &Plan,
        singles: &[Plan],
        aim: Aim,
    ) -> Result<Option<Plan>, RunError> {
        let mut best = original.clone();
        let mut plans = singles.to_vec();
        let refuted: Vec<RewriteId> = singles
            .iter()
            .filter(|plan| plan.difference.is_some())
            .flat_map(|plan| plan.made.iter().map(|change| change.rewrite))
            .collect();
        while best.made.len() < MAX_COMBINED {
            let Some(now) = self.forecast(&best) else { break };
            let gain = |plan: &Plan| {
                let then = self.forecast(plan)?;
                let wall = 1.0 - then.wall / now.wall.max(f64::MIN_POSITIVE);
                let cpu = 1.0 - then.cpu / now.cpu.max(f64::MIN_POSITIVE);
                let (helps, gain) = match aim {
                    Aim::Wall => (
                        wall > MIN_SAVING || wall > -MIN_SAVING / 2.0 && cpu > MIN_SAVING,
                        wall + 0.1 * cpu,
                    ),
                    Aim::Cpu => (cpu > MIN_SAVING, cpu),
                };
                // Leave out changes whose output differs, and other changes by the same rewrite
                // that the pilot had no time to compare.
                let doubtful = plan.made.last().is_some_and(|last| refuted.contains(&last.rewrite));
                let sound = plan.difference.is_none() && (plan.compared || !doubtful);
                (helps && sound).then_some(gain)
            };
            let next = plans
                .iter()
                .filter_map(|plan| Some((gain(plan)?, plan)))
                .max_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, next)) = next else { break };
            best = next.clone();
            let base = best.clone();
            plans = self.plans(&base, original)?;
        }
        Ok((best.made.len() > 1).then_some(best))
    }

    fn prepare(&self, plan: Plan) -> Prepared {
        let forecast = self.forecast(&plan);
        let wall = forecast.filter(|_| !was_disturbed(self.record)).map(|forecast| forecast.wall);
        let interval = |value: f64| [value / (1.0 + plan.error), value * (1.0 + plan.error)];
        let differs = plan.difference.is_some();
        let (rewrite, variant) = match plan.made.as_slice() {
            [one] => (one.rewrite, one.variant.name().map(str::to_owned)),
            _ => (RewriteId::Combined, None),
        };
        let mut rewrites: Vec<RewriteId> = match rewrite {
            RewriteId::Combined => plan.made.iter().map(|change| change.rewrite).collect(),
            _ => Vec::new(),
        };
        rewrites.dedup();
        let stages: BTreeSet<usize> =
            plan.made.iter().flat_map(|change| change.stages.iter().copied()).collect();
        let candidate = Candidate {
            rewrite,
            rewrites,
            variant,
            stages: stages.into_iter().collect(),
            command: plan.draft.text(),
            safety: plan.safety,
            reason: plan.reasons.join("; "),
            predicted_wall_seconds: wall,
            predicted_interval: wall.map(interval),
            predicted_cpu_seconds: forecast.map(|forecast| forecast.cpu),
            predicted_cpu_interval: forecast.map(|forecast| interval(forecast.cpu)),
            basis: forecast.map(|_| plan.basis),
            measured: Measurement {
                output_equal: differs.then_some(false),
                difference: plan
                    .difference
                    .map(|found| format!("on a small part of the input already, {found}")),
                verdict: if differs { Verdict::Wrong } else { Verdict::NotTried },
                ..Measurement::default()
            },
        };
        let now = self.model().forecast(1.0);
        let expected_ratios = forecast.map(|forecast| {
            let by = |new: f64, old: f64| new / old.max(f64::MIN_POSITIVE);
            (by(forecast.wall, now.wall), by(forecast.cpu, now.cpu))
        });
        Prepared {
            candidate,
            draft: plan.draft,
            changes: plan.made,
            expected_ratios,
            is_doubtful: was_disturbed(self.record),
        }
    }
}

/// Replaces a plan's costs by those of the pilot. Does nothing unless the pilot has measured all
/// changed stages and the stages that they replace, and the replaced ones took at least 2 ms. A new
/// stage is expected to take the time of the stages that it replaces, scaled by the ratio that the
/// pilot measured.
fn adopt(
    plan: &mut Plan,
    run: &PilotRun,
    reference: &PilotRun,
    costs: &[StageCost],
    original: &Draft,
) {
    let mut adopted = Vec::new();
    let mut spread: f64 = 0.0;
    for (place, stage) in plan.draft.stages.iter().enumerate() {
        let is_unchanged = stage.origin.len() == 1
            && original.stages[stage.origin[0]].text == stage.text
            && plan.draft.stages.iter().filter(|s| s.origin == stage.origin).count() == 1;
        let barrier = stage.origin.iter().find_map(|&index| costs[index].barrier);
        if is_unchanged && reads_the_same(place, stage.origin[0], run, reference) {
            adopted.push(costs[stage.origin[0]].clone());
            continue;
        }
        let times: Option<Vec<StageTime>> =
            stage.origin.iter().map(|&index| reference.stages.get(index).copied()).collect();
        let (Some(new), Some(old)) = (run.stages.get(place), times) else { return };
        let sum = |value: fn(&StageTime) -> f64| old.iter().map(value).sum::<f64>();
        let whole = |value: fn(&StageCost) -> f64| {
            stage.origin.iter().map(|&index| value(&costs[index])).sum::<f64>()
        };
        if !is_long_enough(sum(|time| time.service)) {
            return;
        }
        spread = spread.max(new.spread).max(old.iter().map(|time| time.spread).fold(0.0, f64::max));
        let service = whole(|c| c.service) * new.service / sum(|time| time.service);
        let cpu = whole(|c| c.cpu) * new.cpu / sum(|time| time.cpu).max(1e-9);
        // sort uses threads only for more data than the pilot's sample; a replacement program uses
        // none.
        let had_threads = whole(|c| c.cpu) > MIN_CPU_RATIO_OF_THREADS * whole(|c| c.service);
        let other_program = stage.origin.iter().all(|&index| {
            let name = |stage: &Stage| stage.simple.as_ref().map(|s| s.name().to_owned());
            name(&original.stages[index]) != name(stage)
        });
        adopted.push(StageCost {
            service: if had_threads && other_program { service.max(cpu) } else { service },
            cpu,
            barrier,
            start_up: new.start_up,
        });
    }
    plan.costs = Some(adopted);
    plan.basis = Basis::Pilot;
    plan.error = pilot_error(spread);
}

/// Returns the relative error of a prediction from a pilot whose measurements have this relative
/// spread.
pub(crate) fn pilot_error(spread: f64) -> f64 {
    PILOT_ERROR.hypot(spread)
}

/// Returns whether an unchanged stage, now at `place` and originally at `origin`, reads the same
/// data as in the original, so that its profile still applies. Returns `true` if the pilot did not
/// run the stage.
fn reads_the_same(place: usize, origin: usize, run: &PilotRun, reference: &PilotRun) -> bool {
    match (run.stages.get(place), reference.stages.get(origin)) {
        // The same text on the same data has the same measurement.
        (Some(new), Some(old)) => new == old,
        // The pilot did not run it; assume the same data.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::tests::{draft, profile_of};
    use contend_record::stats::Estimate;

    /// Calls `then` with an adviser that has no pilot, the draft of the pipeline `text`, which has
    /// `stages` stages, and its candidates.
    fn with_adviser<T>(
        text: &str,
        stages: usize,
        then: impl FnOnce(&mut Adviser<'_>, &Draft, Vec<Prepared>) -> T,
    ) -> T {
        let environment = Environment::for_tests("en_US.UTF-8");
        let record = profile_of(stages, 1_000_000);
        let calibration = Calibration::measure(None).expect("a pipe and a process");
        let mut adviser = Adviser {
            record: &record,
            environment: &environment,
            calibration: &calibration,
            pilot: None,
        };
        let draft = draft(text, &environment);
        let prepared = adviser.candidates(&draft).expect("nothing is run");
        then(&mut adviser, &draft, prepared)
    }

    #[test]
    fn on_a_busy_machine_only_cpu_time_is_predicted() {
        let environment = Environment::for_tests("en_US.UTF-8");
        let mut record = profile_of(4, 1_000_000);
        record.observation.others_cpu_share = Some(0.7);
        let calibration = Calibration::measure(None).expect("a pipe and a process");
        let (record, environment, calibration) = (&record, &environment, &calibration);
        let mut adviser = Adviser { record, environment, calibration, pilot: None };
        let draft = draft("cat f | sort | uniq | wc -l", environment);
        let prepared = adviser.candidates(&draft).expect("nothing is run");
        let predicted: Vec<_> =
            prepared.iter().filter_map(|one| one.candidate.predicted_cpu_seconds).collect();
        assert!(!predicted.is_empty());
        assert!(predicted.is_sorted_by(|a, b| a <= b), "least CPU time first: {predicted:?}");
        for one in &prepared {
            assert_eq!(one.candidate.predicted_wall_seconds, None);
            assert_eq!(one.candidate.predicted_interval, None);
        }
    }

    fn prove(prepared: &mut [Prepared], rewrite: RewriteId, ratio: f64) {
        let one = prepared.iter_mut().find(|one| one.candidate.rewrite == rewrite);
        let one = &mut one.unwrap_or_else(|| panic!("{rewrite:?}")).candidate;
        one.measured.verdict = Verdict::Faster;
        one.measured.wall_ratio = Estimate::from_samples(vec![ratio], 1);
    }

    #[test]
    fn proved_rewrites_are_combined() {
        with_adviser("cat f | sort | uniq | wc -l", 4, |adviser, draft, mut prepared| {
            let mut together = |prepared: &[Prepared]| {
                let made = adviser.combine_proved(draft, prepared).expect("nothing is run");
                made.map(|one| one.candidate.command)
            };
            // As if no combination had been predicted.
            prepared.retain(|one| one.candidate.rewrite != RewriteId::Combined);
            assert_eq!(together(&prepared), None);
            prove(&mut prepared, RewriteId::DropCat, 0.9);
            assert_eq!(together(&prepared), None, "one alone is no combination");
            prove(&mut prepared, RewriteId::ByteLocale, 0.4);
            let expected = "LC_ALL=C sort <f | uniq | wc -l";
            assert_eq!(together(&prepared).as_deref(), Some(expected));
            prove(&mut prepared, RewriteId::SortUnique, 0.8);
            let expected = "LC_ALL=C sort -u <f | wc -l";
            assert_eq!(together(&prepared).as_deref(), Some(expected));
        });
    }

    #[test]
    fn tried_combinations_are_not_combined_again() {
        with_adviser("cat f | sort | uniq | wc -l", 4, |adviser, draft, mut prepared| {
            prove(&mut prepared, RewriteId::DropCat, 0.9);
            prove(&mut prepared, RewriteId::SortUnique, 0.8);
            prove(&mut prepared, RewriteId::Combined, 0.7);
            let made = adviser.combine_proved(draft, &prepared).expect("nothing is run");
            assert!(made.is_none(), "{:?}", made.map(|one| one.candidate.command));
        });
    }

    #[test]
    fn each_reason_is_given_once() {
        with_adviser("cat f | cat | cat | sort", 4, |_, _, prepared| {
            let together =
                prepared.iter().find(|one| one.changes.len() > 1).expect("two cats less");
            let reason = &together.candidate.reason;
            assert_eq!(reason.matches("saves one copy and one process").count(), 1, "{reason}");
        });
    }

    /// Checks that decisions do not depend on the wording of a reason.
    #[test]
    fn reworded_reasons_change_nothing() {
        with_adviser("cat f | sort | uniq | wc -l", 4, |adviser, draft, mut prepared| {
            prove(&mut prepared, RewriteId::DropCat, 0.9);
            prove(&mut prepared, RewriteId::SortUnique, 0.8);
            for one in &mut prepared {
                "in other words".clone_into(&mut one.candidate.reason);
            }
            let singles: Vec<Prepared> =
                prepared.iter().filter(|one| one.changes.len() == 1).cloned().collect();
            let made = adviser.combine_proved(draft, &singles).expect("nothing is run");
            let text = made.map(|one| one.candidate.command);
            assert_eq!(text.as_deref(), Some("sort -u <f | wc -l"));
            prove(&mut prepared, RewriteId::Combined, 0.7);
            assert!(adviser.combine_proved(draft, &prepared).expect("nothing is run").is_none());
        });
    }
}
