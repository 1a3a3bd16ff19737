//! Identifies the bottleneck of a run: for each phase, and as a whole.
//!
//! ```text
//! PhaseAccount ── bottleneck ──▶ Bottleneck ── bound ──▶ the time that it explains, and the rest
//!      │                                                          │
//!      └────────── saving ──▶ time saved if a stage were faster   ▼
//!                                          └──────────────▶ Verdict
//! ```
//!
//! The law of pipelines (see `bottleneck.rs`) holds within a phase, and phases add up. The verdict
//! on the whole run is the bottleneck of a phase whose improvement would shorten the run most.

mod bottleneck;
mod bound;
mod saving;

pub(crate) use bottleneck::short;
pub use bottleneck::slowest;

use contend_record::pipe::{
    Bottleneck, BottleneckKind, Overall, Phase, PhaseStage, Stage, is_disturbing,
};
use contend_record::units::time;

use super::account::PhaseAccount;
use bottleneck::{Evidence, bottleneck};
use saving::{Improvement, saving};

/// Explained share of the run below which the verdict lists the causes of the rest.
const MIN_EXPLAINED_SHARE: f64 = 0.8;
/// Share of the run above which a cause of unexplained time is mentioned.
const MIN_CAUSE_SHARE: f64 = 0.05;
/// Share of a phase by which the improvement of a stage must save more than that of the busiest
/// one, to make it the bottleneck.
const MIN_BETTER_SHARE: f64 = 0.02;
/// Share of the run above which a saving is mentioned.
const MIN_SAVING_SHARE: f64 = 0.02;

/// What is known about a run, besides the accounts of its phases.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The stages in the whole run, first to last.
    pub stages: &'a [Stage],
    /// The pipeline's wall time in seconds.
    pub wall_seconds: f64,
    /// Whether contend was attached to the running pipeline, and may have seen only a part of the
    /// run.
    pub is_attached: bool,
    /// Number of CPUs that the pipeline can use at once.
    pub cpus: f64,
    /// Whether the first stage reads from a pipe, a socket or a terminal.
    pub fed_from_outside: bool,
    /// Mean fill of the pipe that feeds the first stage, from 0 to 1; `None` if there is no such
    /// pipe, or no sample of it.
    pub input_fill: Option<f64>,
    /// Share of the machine's CPU time that other programs used, from 0 to 1; 0 if it is unknown.
    pub others_share: f64,
    /// Share of the machine's CPU time that the hypervisor took (steal), from 0 to 1; 0 if it is
    /// unknown.
    pub steal_share: f64,
    /// Time since the gate opened at which each stage read its first input, in seconds; `None` if
    /// it is unknown.
    pub first_inputs: &'a [Option<f64>],
}

/// The verdict on a run.
#[derive(Debug)]
pub struct Verdict {
    /// The bottleneck of the whole run.
    pub bottleneck: Bottleneck,
    /// The phases with their bottlenecks.
    pub phases: Vec<Phase>,
    /// Share of the run that the bottlenecks explain, from 0 to 1; `None` if the run is too short
    /// to analyse.
    pub explained_share: Option<f64>,
    /// The improvement that would shorten the run most; `None` if no bottleneck was found.
    pub overall: Option<Overall>,
}

/// Returns the verdict on a run with the given phases. Its bottleneck is of kind
/// [`BottleneckKind::None`] if the run is too short or no stage was busy for long enough.
pub fn verdict(situation: &Situation<'_>, accounts: &[PhaseAccount]) -> Verdict {
    if let Some(bottleneck) = bottleneck::too_short(situation) {
        return Verdict { bottleneck, phases: Vec::new(), explained_share: None, overall: None };
    }
    if let Some(bottleneck) = bottleneck::stopped(situation) {
        return Verdict { bottleneck, phases: Vec::new(), explained_share: None, overall: None };
    }
    let (accounts, phases) = join_alike(situation, accounts);
    let bound: f64 = phases.iter().map(|phase| phase.bound_seconds).sum();
    let explained_share =
        (situation.wall_seconds > 0.0).then(|| (bound / situation.wall_seconds).clamp(0.0, 1.0));
    let best = phases
        .iter()
        .filter_map(Improvement::of)
        .map(|improvement| {
            let saved = accounts.iter().zip(&phases).map(|(account, phase)| {
                let is_machine = phase.bottleneck.kind == BottleneckKind::Machine;
                saving(situation, account, is_machine, improvement)
            });
            (improvement, saved.sum::<f64>())
        })
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((improvement, saving_seconds)) = best else {
        let evidence = evidence(situation, situation.stages, situation.wall_seconds, true);
        let bottleneck = bottleneck(&evidence);
        return Verdict { bottleneck, phases, explained_share, overall: None };
    };
    let (kind, stage) = improvement.parts();
    let is_disturbed = is_disturbing(situation.others_share, situation.steal_share);
    let saving_seconds = (!is_disturbed).then_some(saving_seconds);
    let overall = Overall { kind, stage, saving_seconds };
    let mut bottleneck = of_run(&phases, improvement);
    bottleneck.evidence += &consequence(situation, &overall);
    bottleneck.evidence += &explanation(situation, &phases, explained_share);
    Verdict { bottleneck, phases, explained_share, overall: Some(overall) }
}

fn evidence<'a>(
    situation: &'a Situation<'a>,
    stages: &'a [Stage],
    wall_seconds: f64,
    with_neighbours: bool,
) -> Evidence<'a> {
    Evidence {
        stages,
        wall_seconds,
        cpus: situation.cpus,
        others_share: situation.others_share,
        with_neighbours,
        fed_from_outside: situation.fed_from_outside,
        input_fill: situation.input_fill,
        read_from_outside: true, // a file or /dev/null never blocks its writer
    }
}

/// Returns a phase with its bottleneck. If the run has several phases, a report shows them in a
/// table, so `is_only` decides whether the evidence describes the neighbours, too.
fn phase(situation: &Situation<'_>, account: &PhaseAccount, is_only: bool) -> Phase {
    let seconds = account.seconds();
    let evidence = evidence(situation, &account.stages, seconds, is_only);
    let mut bottleneck = bottleneck(&evidence);
    if let Some(better) = better_stage(situation, account, &bottleneck) {
        bottleneck = bottleneck::of_stage(&evidence, better);
    }
    let explained = bound::explain(situation, account, &bottleneck);
    Phase {
        begin_seconds: account.begin.as_secs_f64(),
        end_seconds: account.end.as_secs_f64(),
        alternates_with: explained.alternates_with,
        bound_seconds: explained.bound_seconds,
        explained_share: if seconds > 0.0 { explained.bound_seconds / seconds } else { 1.0 },
        rest: explained.rest,
        stages: account.stages.iter().map(phase_stage).collect(),
        bottleneck,
    }
}

/// Computes the phases, and joins neighbouring ones that have the same bottleneck and alternate with
/// the same stage (or with none). Returns the resulting phases with their accounts. If there is only
/// one, its evidence also describes the neighbours of its bottleneck.
fn join_alike(
    situation: &Situation<'_>,
    accounts: &[PhaseAccount],
) -> (Vec<PhaseAccount>, Vec<Phase>) {
    let mut joined: Vec<(PhaseAccount, Phase)> = Vec::new();
    for account in accounts {
        let phase = phase(situation, account, false);
        match joined.last_mut() {
            Some((last, before)) if is_alike(before, &phase) => {
                *last = last.joined(account);
                *before = self::phase(situation, last, false);
            }
            _ => joined.push((account.clone(), phase)),
        }
    }
    if let [(account, phase)] = joined.as_mut_slice() {
        *phase = self::phase(situation, account, true);
    }
    joined.into_iter().unzip()
}

fn is_alike(one: &Phase, other: &Phase) -> bool {
    let of = |phase: &Phase| (phase.bottleneck.kind, phase.bottleneck.stage, phase.alternates_with);
    of(one) == of(other)
}

/// Returns the stage whose improvement would save the most, if the bottleneck is a stage whose
/// improvement would save notably less (`MIN_BETTER_SHARE`). The stage that is busy for longest is
/// not the one to improve if another one is busy for almost as long at the same time, and both wait
/// for a third.
fn better_stage<'a>(
    situation: &Situation<'_>,
    account: &'a PhaseAccount,
    bottleneck: &Bottleneck,
) -> Option<&'a Stage> {
    let named = bottleneck.stage.filter(|_| bottleneck.kind == BottleneckKind::Stage)?;
    let saved = |index: usize| saving(situation, account, false, Improvement::Stage(index));
    let best = (0..account.stages.len())
        .map(|index| (index, saved(index)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let is_better = best.1 > saved(named - 1) + MIN_BETTER_SHARE * account.seconds();
    account.stages.get(best.0).filter(|_| is_better)
}

fn phase_stage(stage: &Stage) -> PhaseStage {
    PhaseStage {
        index: stage.index,
        cpu_seconds: stage.cpu_seconds(),
        service_seconds: stage.service_seconds(),
        run_queue_seconds: stage.run_queue_seconds,
        starved_seconds: stage.starved_seconds,
        blocked_seconds: stage.blocked_seconds,
    }
}

/// Returns the bottleneck to which `improvement` applies, with the evidence from the longest phase
/// that it limits. The evidence names the phase if there are several.
fn of_run(phases: &[Phase], improvement: Improvement) -> Bottleneck {
    let limited =
        phases.iter().enumerate().filter(|(_, phase)| Improvement::of(phase) == Some(improvement));
    let longest = limited.max_by(|a, b| a.1.seconds().total_cmp(&b.1.seconds()));
    let Some((place, phase)) = longest else { return Bottleneck::default() };
    let mut bottleneck = phase.bottleneck.clone();
    if phases.len() > 1 {
        let mut letters = bottleneck.evidence.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        bottleneck.evidence = format!(
            "It limits phase {} of {} ({} of {}): {}{}",
            place + 1,
            phases.len(),
            time(phase.seconds()),
            time(phases.iter().map(Phase::seconds).sum()),
            first.map(String::from).unwrap_or_default(),
            letters.as_str(),
        );
    }
    let is_only = phases.len() == 1;
    if let (Some(other), Some(stage), true) = (phase.alternates_with, bottleneck.stage, is_only) {
        bottleneck.evidence += &format!(
            " Stages {} and {} alternate: while one works, the other waits.",
            stage.min(other),
            stage.max(other)
        );
    }
    bottleneck
}

/// Returns a sentence that says how much time the improvement would save, or an empty string if
/// that is little or not predicted.
fn consequence(situation: &Situation<'_>, overall: &Overall) -> String {
    let worth = MIN_SAVING_SHARE * situation.wall_seconds;
    let Some(saving) = overall.saving_seconds.filter(|&saving| saving >= worth) else {
        return String::new();
    };
    let change = match (overall.kind, overall.stage) {
        (BottleneckKind::Machine, _) => "Twice as many CPUs".to_owned(),
        (BottleneckKind::Input, _) => "Twice as fast, the input".to_owned(),
        (BottleneckKind::Output, _) => "Twice as fast, the reader".to_owned(),
        (_, Some(stage)) => format!("Twice as fast, stage {stage}"),
        (_, None) => "Twice as fast, it".to_owned(),
    };
    if situation.is_attached {
        let percent = 100.0 * saving / situation.wall_seconds;
        return format!(" {change} would save about {percent:.0} % of the time.");
    }
    format!(" {change} would save about {} of {}.", time(saving), time(situation.wall_seconds))
}

/// Returns a sentence with the share of the run that the bottlenecks explain and, if that is
/// little, the causes of the rest. Returns an empty string if the share is unknown, or if there are
/// several phases and it is large.
fn explanation(
    situation: &Situation<'_>,
    phases: &[Phase],
    explained_share: Option<f64>,
) -> String {
    let Some(share) = explained_share else { return String::new() };
    // The table of phases has the share of each.
    if phases.len() > 1 && share >= MIN_EXPLAINED_SHARE {
        return String::new();
    }
    let subject = match phases.len() {
        1 => "This explains",
        _ => "The bottlenecks of all phases explain",
    };
    let whole = if situation.is_attached { "the time observed" } else { "the run" };
    let sentence = format!(" {subject} {:.0} % of {whole}", 100.0 * share);
    if share >= MIN_EXPLAINED_SHARE {
        return sentence + ".";
    }
    let mut causes: Vec<(&str, f64)> = Vec::new();
    for (name, seconds) in phases.iter().flat_map(|phase| phase.rest.named()) {
        match causes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += seconds,
            None => causes.push((name, seconds)),
        }
    }
    causes.retain(|(_, seconds)| *seconds > MIN_CAUSE_SHARE * situation.wall_seconds);
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let causes: Vec<_> =
        causes.iter().map(|(name, seconds)| format!("{name} ({})", time(*seconds))).collect();
    if causes.is_empty() {
        return sentence + ".";
    }
    format!("{sentence}; the rest is {}.", causes.join(", "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use contend_record::pipe::Limit;

    use super::*;
    use crate::observe::{State, Wait};
    use crate::pipeline::critical::{CriticalTime, RecentWork};

    const SECOND: Duration = Duration::from_secs(1);
    const ACTIVE: Option<State> = Some(State::Active);
    const STARVED: Option<State> = Some(State::Waiting(Wait::Starved));
    const BLOCKED: Option<State> = Some(State::Waiting(Wait::Blocked));

    /// Returns a phase with the given states of the stages, each for a number of seconds. Active
    /// stages run on a CPU.
    fn account(begin: u32, states: &[(u32, &[Option<State>])]) -> PhaseAccount {
        let length: u32 = states.iter().map(|(seconds, _)| seconds).sum();
        let count = states.iter().map(|(_, states)| states.len()).max().unwrap_or(0);
        let mut critical = CriticalTime::new(count);
        let mut stages: Vec<_> =
            (1..=count).map(|index| Stage { index, samples: 100, ..Stage::default() }).collect();
        for (seconds, states) in states {
            critical.add(states, &RecentWork::default(), SECOND * *seconds);
            for (stage, state) in stages.iter_mut().zip(*states) {
                let seconds = f64::from(*seconds);
                match *state {
                    ACTIVE => {
                        stage.on_cpu_seconds += seconds;
                        stage.user_seconds += seconds;
                    }
                    STARVED => stage.starved_seconds += seconds,
                    BLOCKED => stage.blocked_seconds += seconds,
                    Some(State::Waiting(_)) => stage.other_wait_seconds += seconds,
                    None => continue,
                }
                stage.wall_seconds += seconds;
            }
        }
        PhaseAccount { begin: SECOND * begin, end: SECOND * (begin + length), stages, critical }
    }

    fn judge(accounts: &[PhaseAccount], cpus: f64, others_share: f64) -> Verdict {
        let mut stages = accounts[0].stages.clone();
        for account in &accounts[1..] {
            for (sum, stage) in stages.iter_mut().zip(&account.stages) {
                sum.on_cpu_seconds += stage.on_cpu_seconds;
                sum.wall_seconds += stage.wall_seconds;
            }
        }
        let first_inputs = vec![None; stages.len()];
        let situation = Situation {
            stages: &stages,
            wall_seconds: accounts.last().map_or(0.0, |last| last.end.as_secs_f64()),
            is_attached: false,
            cpus,
            fed_from_outside: true,
            input_fill: None,
            others_share,
            steal_share: 0.0,
            first_inputs: &first_inputs,
        };
        verdict(&situation, accounts)
    }

    fn named(bottleneck: &Bottleneck) -> (BottleneckKind, Option<usize>) {
        (bottleneck.kind, bottleneck.stage)
    }

    /// Returns the saving in seconds that the verdict predicts.
    fn saved(verdict: &Verdict) -> f64 {
        verdict
            .overall
            .and_then(|overall| overall.saving_seconds)
            .expect("a bottleneck, undisturbed")
    }

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn the_phase_whose_bottleneck_costs_most_decides() {
        let first =
            account(0, &[(2, &[ACTIVE, STARVED, STARVED]), (1, &[BLOCKED, ACTIVE, STARVED])]);
        let second = account(3, &[(1, &[None, ACTIVE, ACTIVE]), (4, &[None, BLOCKED, ACTIVE])]);
        let verdict = judge(&[first, second], 2.0, 0.0);
        assert_eq!(named(&verdict.phases[0].bottleneck), (BottleneckKind::Stage, Some(1)));
        assert_eq!(named(&verdict.phases[1].bottleneck), (BottleneckKind::Stage, Some(3)));
        assert_eq!(named(&verdict.bottleneck), (BottleneckKind::Stage, Some(3)));
        let evidence = &verdict.bottleneck.evidence;
        assert!(evidence.starts_with("It limits phase 2 of 2 (5.00 s of 8.00 s): stage 3 ran for"));
        assert!(
            evidence.contains("Twice as fast, stage 3 would save about 2.50 s of 8.00 s."),
            "{evidence}"
        );
        let overall = verdict.overall.expect("there is a bottleneck");
        assert_eq!((overall.kind, overall.stage), (BottleneckKind::Stage, Some(3)));
        assert!(overall.saving_seconds.is_some_and(|saving| is_close(saving, 2.5)), "{overall:?}");
        assert!(is_close(verdict.explained_share.expect("long enough"), 1.0), "{verdict:?}");
    }

    #[test]
    fn two_stages_that_alternate_explain_the_run_together() {
        let alternating = account(0, &[(3, &[ACTIVE, STARVED]), (4, &[BLOCKED, ACTIVE])]);
        let verdict = judge(&[alternating], 2.0, 0.0);
        assert_eq!(named(&verdict.bottleneck), (BottleneckKind::Stage, Some(2)));
        let phase = &verdict.phases[0];
        assert_eq!(phase.alternates_with, Some(1));
        assert!(is_close(phase.explained_share, 1.0));
        let saving = saved(&verdict);
        assert!(is_close(saving, 2.0), "the other stage still needs 3 s: {saving}");
        assert!(verdict.bottleneck.evidence.contains("Stages 1 and 2 alternate"));
    }

    #[test]
    fn a_faster_stage_saves_no_more_than_the_next_one_allows() {
        // Stage 2 works all the time, and stage 1 for nine tenths of it.
        let close = account(0, &[(9, &[ACTIVE, ACTIVE]), (1, &[BLOCKED, ACTIVE])]);
        let saving = saved(&judge(&[close], 2.0, 0.0));
        assert!(is_close(saving, 1.0), "stage 1 needs 9 s: {saving}");
    }

    #[test]
    fn the_busiest_stage_is_not_the_bottleneck_if_another_saves_more() {
        // Stages 1 and 2 work at the same time, and stage 3 alternates with both.
        let run = account(0, &[(5, &[ACTIVE, ACTIVE, STARVED]), (4, &[BLOCKED, BLOCKED, ACTIVE])]);
        let verdict = judge(&[run], 4.0, 0.0);
        assert_eq!(named(&verdict.bottleneck), (BottleneckKind::Stage, Some(3)));
        assert!(is_close(saved(&verdict), 2.0));
        let evidence = &verdict.bottleneck.evidence;
        assert!(evidence.contains("stage 2 was busy for longer (5.00 s)"), "{evidence}");
    }

    #[test]
    fn waits_on_the_other_side_of_the_bottleneck_are_bursts() {
        let bursts = account(
            0,
            &[
                (4, &[BLOCKED, ACTIVE, STARVED]),
                (3, &[ACTIVE, STARVED, STARVED]),
                (2, &[BLOCKED, BLOCKED, ACTIVE]),
            ],
        );
        let verdict = judge(&[bursts], 2.0, 0.0);
        let phase = &verdict.phases[0];
        assert_eq!((phase.bottleneck.stage, phase.alternates_with), (Some(2), Some(1)));
        assert!(is_close(phase.bound_seconds, 7.0), "{phase:?}");
        assert!(is_close(phase.rest.bursts_seconds, 2.0), "{phase:?}");
        let evidence = &verdict.bottleneck.evidence;
        assert!(
            evidence.ends_with("explains 78 % of the run; the rest is bursts (2.00 s)."),
            "{evidence}"
        );
    }

    #[test]
    fn waiting_for_the_input_is_explained_only_if_the_input_is_the_bottleneck() {
        let waiting = account(0, &[(8, &[STARVED, STARVED]), (2, &[ACTIVE, ACTIVE])]);
        let verdict = judge(&[waiting], 2.0, 0.0);
        assert_eq!(named(&verdict.bottleneck), (BottleneckKind::Input, None));
        assert!(is_close(verdict.explained_share.expect("long enough"), 1.0));
        assert!(is_close(saved(&verdict), 4.0));
        let working = account(0, &[(1, &[STARVED, STARVED]), (9, &[ACTIVE, STARVED])]);
        let verdict = judge(&[working], 2.0, 0.0);
        assert_eq!(named(&verdict.bottleneck), (BottleneckKind::Stage, Some(1)));
        assert!(is_close(verdict.phases[0].rest.input_seconds, 1.0), "{verdict:?}");
    }

    #[test]
    fn time_queued_behind_other_programs_is_not_explained() {
        let mut account = account(0, &[(6, &[ACTIVE]), (4, &[Some(State::Waiting(Wait::Sleep))])]);
        account.stages[0].other_wait_seconds = 0.0;
        account.stages[0].run_queue_seconds = 4.0;
        let verdict = judge(&[account], 2.0, 0.5);
        assert_eq!(verdict.bottleneck.limit, Some(Limit::Cpu));
        assert!(is_close(verdict.phases[0].rest.others_seconds, 4.0), "{verdict:?}");
        assert!(verdict.bottleneck.evidence.contains("other programs (4.00 s)"), "{verdict:?}");
        let saving = verdict.overall.expect("a bottleneck").saving_seconds;
        assert_eq!(saving, None, "the wall time says little");
    }

    #[test]
    fn busy_cpus_explain_time_in_their_queue() {
        // Three stages on two CPUs, each of which runs for two thirds of the time.
        let mut account = account(0, &[(6, &[ACTIVE, ACTIVE, ACTIVE])]);
        for stage in &mut account.stages {
            stage.on_cpu_seconds = 4.0;
            stage.user_seconds = 4.0;
            stage.run_queue_seconds = 2.0;
        }
        let verdict = judge(&[account], 2.0, 0.0);
        assert_eq!(verdict.bottleneck.kind, BottleneckKind::Machine);
        assert!(is_close(verdict.phases[0].bound_seconds, 6.0));
        let saving = saved(&verdict);
        assert!(is_close(saving, 2.0), "on four CPUs, each takes 4 s: {saving}");
    }
}
