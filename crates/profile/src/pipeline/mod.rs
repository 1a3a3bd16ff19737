//! Profiles a shell pipeline, from its source text to a verdict.
//!
//! ```text
//! text ── parse ──▶ Parsed ── script, launch ──▶ Launched: stages wait at the gate
//!                                                    │
//!                                                    │ run: opens the gate, samples the stages
//!                                                    ▼
//!                   Stage, Boundary, Total ◀── account ── RawRun
//!                             │
//!                             │ verdict, findings
//!                             ▼
//!                         PipeRecord ── repeat: several runs as one ──▶ PipeRecord
//! ```
//!
//! [`contend_shell::parse`] finds the stages. The user's shell starts them, directed by [`script`]
//! and [`launch`]; [`run`] observes them, [`account`] divides their time, and [`verdict`] and
//! [`findings`] interpret the result.

pub mod account;
pub mod attach;
pub mod critical;
pub mod findings;
pub mod gate;
pub mod launch;
pub mod progress;
pub mod raw;
pub mod repeat;
pub mod run;
pub mod script;
pub mod stage;
pub mod timeline;
mod trace;
pub mod tracing;
pub mod verdict;

use contend_record::Host;
use contend_record::pipe::{Boundary, Observation, PipeRecord, SCHEMA};
use contend_record::trace::Trace;
use contend_record::warning::{Warning, WarningId};
use contend_sys::interrupt::Signals;
use contend_sys::load::Load;

use findings::Facts;
use launch::{LaunchError, LaunchSpec};
use progress::Progress;
use raw::RawRun;
use stage::RawStage;
use verdict::{Situation, Verdict};

/// Runs the pipeline once and returns its record, which includes copies of `host` and `started_at`.
/// Calls `progress` about ten times a second, and before contend is stopped.
///
/// # Errors
/// Returns an error if the pipeline cannot be started; see [`LaunchError`].
pub fn profile(
    spec: LaunchSpec<'_>,
    host: &Host,
    started_at: String,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<PipeRecord, LaunchError> {
    let (record, _) = profile_with_trace(spec, host, started_at, signals, progress)?;
    Ok(record)
}

/// Does the same, and also returns what each stage did over time, if `spec` asks for that.
///
/// # Errors
/// Fails as [`profile`] does.
pub fn profile_with_trace(
    spec: LaunchSpec<'_>,
    host: &Host,
    started_at: String,
    signals: &Signals,
    progress: &mut dyn FnMut(&Progress<'_>),
) -> Result<(PipeRecord, Option<Trace>), LaunchError> {
    let (parsed, shell) = (spec.parsed, spec.shell.to_owned());
    let load_before = Load::read();
    let run = run::run(spec, signals, progress)?;
    let load = Load::read().since(load_before);
    let stages: Vec<String> =
        (0..parsed.stages.len()).map(|index| parsed.stage_text(index)).collect();
    let trace = trace_of(&run, &stages, host);
    let source = Source { text: parsed.text.clone(), stages, inverted: parsed.inverted };
    Ok((record(&run, source, shell, started_at, host, load), trace))
}

/// Returns what each stage did over time, if that was collected. `texts` has the source text of each stage's
/// command.
fn trace_of(run: &RawRun, texts: &[String], host: &Host) -> Option<Trace> {
    let stages = texts.iter().zip(&run.stages);
    let stages = stages.map(|(text, raw)| (raw.pid, text.clone(), raw.ended));
    let stages: Vec<_> = stages.collect();
    Some(run.states.as_ref()?.trace(run.wall, &stages, host.usable_cpus()))
}

/// The text of a pipeline and of its stages.
struct Source {
    text: String,
    /// The text of each stage, first to last.
    stages: Vec<String>,
    /// Whether `!` inverts the exit status.
    inverted: bool,
}

fn record(
    run: &RawRun,
    source: Source,
    shell: String,
    started_at: String,
    host: &Host,
    load: Load,
) -> PipeRecord {
    let stages = account::stages(run, &source.stages);
    let boundaries = account::boundaries(&stages, &run.fills, run.wall);
    let total = account::total(&stages, run);
    let wall_seconds = run.wall.as_secs_f64();
    let cpus = host.usable_cpus();
    let input_fill = run.input_fill.mean().map(|mean| mean / run.input_fill.capacity.max(1) as f64);
    let disturbance = Disturbance::of(run, host, load);
    let first_input = |raw: &RawStage| raw.first_read.map(|time| time.as_secs_f64());
    let first_inputs: Vec<_> = run.stages.iter().map(first_input).collect();
    let situation = Situation {
        stages: &stages,
        wall_seconds,
        is_attached: run.is_attached(),
        cpus,
        fed_from_outside: run.stages.first().is_some_and(|stage| stage.input_is_stream),
        input_fill,
        others_share: disturbance.others.unwrap_or(0.0),
        steal_share: disturbance.steal.unwrap_or(0.0),
        first_inputs: &first_inputs,
    };
    let Verdict { bottleneck, phases, explained_share, overall } =
        verdict::verdict(&situation, &account::phases(run, &stages));
    let warnings = warnings(run, &boundaries, host, load, disturbance);
    let findings = findings::findings(&Facts {
        stages: &stages,
        boundaries: &boundaries,
        total: &total,
        bottleneck: &bottleneck,
        wall_seconds,
        is_attached: run.is_attached(),
        cpus,
        forks: load.forks,
        other_load: warnings.iter().any(|warning| warning.id == WarningId::OtherLoad),
    });
    PipeRecord {
        schema: SCHEMA.to_owned(),
        contend: None,
        command: source.text,
        shell,
        started_at,
        exit_code: run.exit_code(source.inverted),
        wall_seconds,
        warnings,
        observation: observation(run, disturbance),
        stages,
        boundaries,
        total,
        bottleneck,
        phases,
        time_series: account::time_series(run),
        explained_share,
        overall,
        attached: None,
        findings,
        host: host.clone(),
        runs: None,
        candidates: Vec::new(),
        trial: None,
        what_if: Vec::new(),
        calibration: None,
        predicted_unchanged: None,
    }
}

fn observation(run: &RawRun, disturbance: Disturbance) -> Observation {
    let exact = run.stages.iter().filter(|stage| stage.io_exact).count();
    let counters = if run.is_attached() {
        "attached to running stages".to_owned()
    } else {
        format!("exact exit counters for {exact} of {} stages", run.stages.len())
    };
    let method = format!("/proc (schedstat, syscall, io), unprivileged; {counters}");
    Observation {
        method,
        ticks: run.ticks,
        mean_interval_seconds: run.wall.as_secs_f64() / run.ticks.max(1) as f64,
        own_cpu_seconds: run.own_cpu.as_secs_f64(),
        own_max_rss_bytes: run.own_peak_rss,
        others_cpu_share: disturbance.others,
        steal_share: disturbance.steal,
    }
}

/// Disturbance of the run by other programs and the hypervisor, as shares of the machine's CPU time
/// from 0 to 1. A share is `None` if the run is too short to tell.
#[derive(Debug, Clone, Copy)]
struct Disturbance {
    others: Option<f64>,
    steal: Option<f64>,
}

impl Disturbance {
    fn of(run: &RawRun, host: &Host, load: Load) -> Self {
        let wall = run.wall.as_secs_f64();
        let machine = wall * host.cpus_online.max(1) as f64;
        let stages_cpu: f64 = run.stages.iter().map(|stage| stage.usage.cpu().as_secs_f64()).sum();
        let own = (run.own_cpu + run.orphans_cpu).as_secs_f64();
        // `/proc/stat` counts ticks of 10 ms, so it is too coarse for short runs.
        let share = |time: f64| (wall > 0.2).then(|| (time / machine).clamp(0.0, 1.0));
        Self {
            others: share(load.busy.as_secs_f64() - stages_cpu - own),
            steal: share(load.steal.as_secs_f64()),
        }
    }
}

fn warnings(
    run: &RawRun,
    boundaries: &[Boundary],
    host: &Host,
    load: Load,
    disturbance: Disturbance,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |id, message: String| warnings.push(Warning::new(id, message));
    if let Some(others) = disturbance.others.filter(|&others| others > 0.05) {
        warn(
            WarningId::OtherLoad,
            format!(
                "other programs used {:.0} % of the {} CPU{}: repeat on a quieter machine",
                100.0 * others,
                host.cpus_online,
                if host.cpus_online == 1 { "" } else { "s" },
            ),
        );
    }
    if let Some(steal) = disturbance.steal.filter(|&steal| steal > 0.02) {
        warn(
            WarningId::Steal,
            format!(
                "the hypervisor stole {:.1} % of the CPU time: repeat on a quieter machine",
                100.0 * steal
            ),
        );
    }
    if !load.throttled.is_zero() {
        warn(
            WarningId::Throttled,
            format!("the cgroup's CPU quota throttled processes for {:?}", load.throttled),
        );
    }
    for (index, stage) in run.stages.iter().enumerate().filter(|(_, s)| s.unreadable) {
        warn(
            WarningId::Unreadable,
            format!(
                "no permission to read what stage {} waits for: its waits are inferred from its \
                 pipes or left unexplained{}",
                index + 1,
                if stage.io.is_none() { ", and its byte counts are unknown" } else { "" }
            ),
        );
    }
    let approximate: Vec<_> = run
        .stages
        .iter()
        .enumerate()
        .filter(|(_, stage)| !stage.io_exact && stage.io.is_some() && !stage.is_attached)
        .map(|(index, _)| (index + 1).to_string())
        .collect();
    if !approximate.is_empty() && !boundaries.is_empty() {
        warn(
            WarningId::Approximate,
            format!(
                "bytes and calls of stage {} are from the last sample and its neighbours' counts \
                 (run as root for exact counts)",
                approximate.join(", ")
            ),
        );
    }
    warnings
}
