//! `contend doctor --try`: runs the command unchanged and with remedies that need no change of code, and
//! adds what they brought to the diagnosis.
//!
//! ```text
//! DoctorRecord ─▶ remedy::choose ─▶ Rounds (the command, changed) ─▶ RemedyTrial
//! ```

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::process::Command;
use std::time::Duration;

use anyhow::{Error, Result};
use contend_advise::sample::temporary;
use contend_advise::trial::rounds::{Effort, Rounds, RoundsError, Rules, Unstable};
use contend_advise::trial::{CandidateRun, ranking};
use contend_doctor::remedy::change::command_line;
use contend_doctor::remedy::{
    self, Change, Proposal, Selection, Situation, TABLE, Tools, installed,
};
use contend_record::advice::{Measurement, Trial, TrialInput};
use contend_record::doctor::{DoctorRecord, Finding};
use contend_record::remedy::{RemedyTrial, TriedRemedy};
use contend_record::stats::Estimate;
use contend_record::warning::{Warning, WarningId};
use contend_report::render::units;
use contend_shell::environment::in_path;
use contend_shell::runner::{RunError, Runner, Timed, run_command};
use contend_sys::interrupt::Signals;
use contend_sys::{Pid, cpu, spawn};

use super::advice::input::{CommandInput, SavedInput};
use crate::output;
use crate::settings::{MIN_ROUNDS, Remedies};
use crate::terminal::{StatusLine, bar};

/// Expected size of an output in bytes, before the first one is known.
const OUTPUT_BYTES: u64 = 64 << 20;
/// Time limit of the text of `--prepare`.
const PREPARATION_LIMIT: Duration = Duration::from_hours(24);
/// Shares of the first run's wall time and CPU time below which the other runs seem not to do the same
/// work. The first run may take longer because it is observed, and because of other load.
const MIN_SAME_WORK: [f64; 2] = [0.2, 0.5];
/// Wall time of the first run from which that is judged, in seconds.
const MIN_JUDGED_SECONDS: f64 = 0.2;

/// The command of a trial.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// What it reads.
    pub input: &'a CommandInput,
    /// Wall time of its first run.
    pub first_run: Duration,
}

/// Tries remedies for the command that was observed, and adds the results to its record. A signal ends
/// the trial without an error; what was measured so far is added.
///
/// # Errors
/// Returns an error if a run cannot be started, `--prepare` fails, or there is no space for the outputs.
pub fn add(
    record: &mut DoctorRecord,
    subject: Subject<'_>,
    settings: &Remedies,
    signals: &Signals,
) -> Result<()> {
    warn_of_input(record, subject.input);
    if record.exit_code.is_some_and(|code| code != 0) {
        let message = "the command failed: the results of --try may not apply when it succeeds";
        record.warnings.push(Warning::new(WarningId::FailedStage, message));
    }
    let tools = tools();
    let variable = |name: &str| std::env::var(name).ok();
    let situation = Situation { record, words: subject.words, variable: &variable, tools: &tools };
    let proposals = remedy::choose(&situation, &settings.selection);
    let trial = RemedyTrial {
        trial: Trial::without_candidates(subject.input.what(), budget_seconds(settings)),
        output_compared: true,
        remedies: proposals.iter().map(|proposal| untried(proposal, subject.words)).collect(),
    };
    let trial = record.trials.insert(trial);
    if proposals.is_empty() {
        return Ok(());
    }
    let line = StatusLine { draws: settings.progress };
    let ended = run(trial, &proposals, subject, settings, line, signals);
    line.clear();
    trial.trial.interrupted = signals.interrupted().is_some();
    match ended {
        Err(RoundsError::Run(RunError::Interrupted(_))) => {}
        Err(error) => return Err(Error::new(error).context("--try failed")),
        Ok(status) => warn_of_other_work(record, subject.first_run, status),
    }
    Ok(())
}

fn budget_seconds(settings: &Remedies) -> f64 {
    match settings.effort {
        Effort::Budget { time, .. } => time.as_secs_f64(),
        Effort::Rounds(_) => 0.0,
    }
}

fn untried(proposal: &Proposal, words: &[OsString]) -> TriedRemedy {
    TriedRemedy {
        remedy: proposal.id,
        change: proposal.change.label.clone(),
        command: proposal.change.command_line(words),
        effect: proposal.effect.to_owned(),
        symptoms: proposal.symptoms.clone(),
        measured: Measurement::default(),
    }
}

/// Returns the number of remedies for which the rest of the budget suffices, at least one: the command
/// and each remedy run once in every round. There is no limit for remedies that the user has named, and
/// none for a number of rounds. `run` is the wall time of the command, and `spent` what is used of the
/// budget.
fn affordable(settings: &Remedies, run: Duration, spent: Duration) -> usize {
    let Effort::Budget { time, .. } = settings.effort else { return usize::MAX };
    if settings.selection != Selection::Findings {
        return usize::MAX;
    }
    let runs = time.saturating_sub(spent).as_secs_f64() / run.as_secs_f64().max(1e-3);
    let per_round = runs / MIN_ROUNDS as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let count = (per_round - 1.0).clamp(1.0, 1e6) as usize;
    count
}

/// Runs the rounds, and writes the results into the record of the trial. Returns the exit code of the
/// unchanged command.
fn run(
    record: &mut RemedyTrial,
    proposals: &[Proposal],
    subject: Subject<'_>,
    settings: &Remedies,
    line: StatusLine,
    signals: &Signals,
) -> Result<i32, RoundsError> {
    line.show("trying remedies …");
    let run = |change: &Change, output: &File, limit: Duration| {
        prepare(settings, signals)?;
        run_changed(subject, change, output, limit, signals)
    };
    let rules = Rules {
        effort: settings.effort,
        unstable: Unstable::CompareStatus,
        output_bytes: OUTPUT_BYTES,
        seed: settings.seed,
    };
    let unchanged = Change::default();
    let mut rounds = Rounds::begin(&unchanged, &run, rules, (0.0, 0.0))?;
    rounds.repeat()?;
    let count = affordable(settings, rounds.longest_run(), rounds.elapsed());
    let mut runs: Vec<CandidateRun<Change>> = proposals
        .iter()
        .enumerate()
        .take(count)
        .map(|(place, proposal)| CandidateRun::new(place, proposal.change.clone()))
        .collect();
    let ended = rounds.run_all(&mut runs, &mut |_| Ok(None), &mut |rounds, share| {
        let bar = bar(share, output::width());
        line.show(&format!("trying remedies: round {rounds} {bar}"));
    })?;
    for run in &runs {
        record.remedies[run.place].measured = rounds.measurement(run);
    }
    let (walls, cpus) = rounds.original_times();
    let [wall, cpu] =
        [walls, cpus].map(|samples| Estimate::from_samples(samples.to_vec(), settings.seed));
    let winner = ranking::best(&record.remedies, |one| &one.measured);
    record.output_compared = rounds.compares_output();
    record.trial = Trial {
        rounds: ended.rounds,
        seconds: rounds.elapsed().as_secs_f64(),
        settled: ended.settled,
        original_wall_seconds: wall,
        original_cpu_seconds: cpu,
        winner: ranking::sort(&mut record.remedies, winner, |one| &one.measured),
        ..record.trial.clone()
    };
    Ok(rounds.reference().1)
}

/// Runs the text of `--prepare`, if there is one.
fn prepare(settings: &Remedies, signals: &Signals) -> Result<(), RunError> {
    let Some(text) = &settings.prepare else { return Ok(()) };
    let runner = Runner { shell: &settings.shell, setup: None, pipefail: false, signals };
    let nowhere = temporary(0).map_err(RunError::io("create a temporary file"))?;
    let run = runner.run(text, None, &nowhere, PREPARATION_LIMIT)?;
    match run.status.shell_code() {
        0 => Ok(()),
        status => {
            let source = io::Error::other(format!("--prepare ended with status {status}"));
            Err(RunError::Io { what: "prepare a run", source })
        }
    }
}

fn run_changed(
    subject: Subject<'_>,
    change: &Change,
    output: &File,
    limit: Duration,
    signals: &Signals,
) -> Result<Timed, RunError> {
    let words = change.words.as_deref().unwrap_or(subject.words);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    for name in &change.unset {
        command.env_remove(name);
    }
    command.envs(change.set.iter().map(|(name, value)| (name, value)));
    if let Some(cpu) = change.cpu {
        spawn::restrict_to_cpu(&mut command, cpu);
    }
    run_command(command, subject.input.file(), output, limit, signals)
}

/// Returns what remedies use of this machine.
fn tools() -> Tools {
    let cpus = cpu::allowed_list();
    Tools {
        allocators: installed::allocators(),
        has_stdbuf: in_path("stdbuf").is_some(),
        // The first CPU often handles most interrupts.
        cpu: cpus.last().copied().filter(|_| cpus.len() > 1),
    }
}

fn warn_of_input(record: &mut DoctorRecord, input: &CommandInput) {
    let message = match input {
        CommandInput::Terminal => {
            "the runs of --try read an empty input instead of the terminal".to_owned()
        }
        CommandInput::Saved(SavedInput {
            what: TrialInput::Beginning { bytes, complete: false },
            ..
        }) => format!(
            "only the first {} of standard input were read, because --try reads them several times: use \
             a file",
            units::bytes(*bytes as f64)
        ),
        _ => return,
    };
    record.warnings.push(Warning::new(WarningId::PartOfInput, message));
}

/// Warns if the unchanged command did other work in the trial than in its first run, as an incremental
/// build does. `status` is its exit code in the trial.
fn warn_of_other_work(record: &mut DoctorRecord, first_run: Duration, status: i32) {
    let Some(trial) = &record.trials else { return };
    let first = first_run.as_secs_f64();
    let median = |times: &Option<Estimate>| times.as_ref().map(|times| times.median);
    let later = median(&trial.trial.original_wall_seconds);
    let cpu = median(&trial.trial.original_cpu_seconds);
    let is_shorter = first >= MIN_JUDGED_SECONDS
        && later.is_some_and(|later| later < MIN_SAME_WORK[0] * first)
        && cpu.is_some_and(|cpu| cpu <= MIN_SAME_WORK[1] * record.cpu_seconds);
    let message = if record.exit_code.is_some_and(|code| code != status) {
        let code = record.exit_code.unwrap_or_default();
        format!(
            "the command ended with status {status} in the trial, and with {code} in its first run"
        )
    } else if is_shorter {
        format!(
            "the command took {} when it ran again, and {} in its first run: it may not repeat its work",
            units::seconds(later.unwrap_or_default()),
            units::seconds(first),
        )
    } else {
        return;
    };
    let message = format!("{message}. Reset its side effects with --prepare");
    record.warnings.push(Warning::new(WarningId::RunsDiffer, message));
}

/// Adds commands to the findings for which there is a remedy without a change of code: after a trial, the
/// best one that was found; before it, one that tries remedies if contend has started the command, and
/// the command with a remedy if `running` was running already.
pub fn name_commands(record: &mut DoctorRecord, words: &[OsString], running: Option<Pid>) {
    if record.findings.is_empty() || words.is_empty() {
        return;
    }
    let tools = tools();
    let environment = running.map(environment);
    let variable = |name: &str| match &environment {
        Some(variables) => variables.get(name).cloned(),
        None => std::env::var(name).ok(),
    };
    let situation = Situation { record, words, variable: &variable, tools: &tools };
    let command = |finding: &Finding| {
        if let Some(trial) = &record.trials {
            return proved(trial, finding);
        }
        let remedy = remedy::for_finding(&situation, finding)?;
        Some(match running {
            Some(_) => remedy.change.command_line(words),
            None => format!("contend doctor --try -- {}", command_line(words)),
        })
    };
    let commands: Vec<_> = record.findings.iter().map(command).collect();
    for (finding, command) in record.findings.iter_mut().zip(commands) {
        finding.command = command;
    }
}

/// Returns the command with the best remedy for a finding that a trial recommends.
fn proved(trial: &RemedyTrial, finding: &Finding) -> Option<String> {
    let relieves = |one: &&TriedRemedy| {
        let row = TABLE.iter().find(|row| row.id == one.remedy);
        one.measured.verdict.recommends() && row.is_some_and(|row| row.may_relieve(finding))
    };
    trial.remedies.iter().find(relieves).map(|one| one.command.clone())
}

/// Returns the environment with which a process was started; empty if it may not be read.
fn environment(pid: Pid) -> BTreeMap<String, String> {
    let text = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
