//! `units/limit`: how many units can exist at the same time, and which limit prevents more.
//!
//! Three kinds of processes take part:
//!
//! ```text
//!  watchdog (process of the case)  predicts the limit, forks the creator, watches it and memory
//!     └─ creator                   creates units up to the cap or a limit, which it identifies
//!          └─ units                wait
//! ```
//!
//! When one of these processes dies, the kernel kills those below it. When contend itself dies, the
//! watchdog stops the search and reaps all processes.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::time::Duration;

use contend_record::lab::{LimitReport, Step, StoppedBy, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::child::{self, Which};
use contend_sys::process::fork;
use contend_sys::procfs::{MemInfo, Rollup};
use contend_sys::{Pid, Signal};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::PipeFlags;
use rustix::process::{Resource, Rlimit, getpid, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use super::parked::{ParkedUnits, empty_set};
use crate::engine::experiment::{
    Cap, Demands, ErrorContext, Experiment, Fit, Sample, Sampling, Scope, Size, Subject,
    SubjectError, always_available, never_alternates_cpus,
};
use crate::support::limits::{self, Exhaustion, Limit, UnitKind, UnitResources, WatchedLimit};

/// The definition of `units/limit`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/limit",
    summary: "how many processes or threads can exist at once, and which limit prevents more",
    about: "Predicts, then tries. The prediction is the number of further units that each limit \
        allows (RLIMIT_NPROC, the cgroup's pids.max, kernel.threads-max, kernel.pid_max, memory; \
        for threads also vm.max_map_count, RLIMIT_AS, RLIMIT_DATA and strict overcommit); the \
        memory of a unit is measured with 64 of them. Then it creates units that wait, until the \
        kernel refuses or `cap` is reached, and identifies the limit: by the kernel's counter of \
        refusals where there is one, by the usage of each limit, and for RLIMIT_NPROC by \
        raising it and retrying. Nearly all of these limits give the same error, EAGAIN. The \
        search stops when less than a twentieth of the memory, or 64 MiB, is left; a watchdog \
        process ends it at half of that. At the limit, no program on this machine (with RLIMIT_NPROC: of this user) can \
        start a process for a second or two.",
    view: View::UnitLimit,
    unit: Unit::Units,
    sampling: Sampling::Fixed(1),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: always_available,
    alternates_cpus: never_alternates_cpus,
    demands: Demands {
        exhausts: nearly_exhausted_limit,
        ..Demands::NONE.with_cost_ms(50, 50).with_ns_per(&[("cap", 200_000)])
    },
    subject: |parameters| {
        Ok(Box::new(LimitSearch { kind: kind(parameters), cap: parameters.number("cap") }))
    },
};

/// Returns the default cap on the number of units for the given size.
fn default_cap(size: Size) -> u64 {
    match size {
        Size::Full => 10_000,
        Size::Quick => 1000,
        Size::Smallest => 20,
    }
}

/// Returns the default cap, but at most half of the units that the tightest limit shared with other
/// programs allows, and at least one.
fn considerate_cap(size: Size) -> u64 {
    let limits =
        [UnitKind::Process, UnitKind::Thread].into_iter().filter_map(limits::tightest_shared);
    lower_cap(default_cap(size), limits.map(|limit| limit.allows / 2).min())
}

/// Returns the lower of `default` and `safe`, but at least one. Returns `default` if `safe` is
/// `None`.
fn lower_cap(default: u64, safe: Option<u64>) -> u64 {
    safe.map_or(default, |safe| default.min(safe.max(1)))
}

/// Returns the tightest limit shared with other programs if the case may reach it: if the case has
/// no cap, or its cap is at least the number of units usable within the limit. Returns `None`
/// otherwise, or if there is no such limit.
fn nearly_exhausted_limit(parameters: &Parameters) -> Option<Limit> {
    let limit = limits::tightest_shared(kind(parameters))?;
    let cap = parameters.number("cap");
    cap.is_none_or(|cap| cap >= limits::usable(&limit)).then_some(limit)
}

fn kind(parameters: &Parameters) -> UnitKind {
    if parameters.text(names::KIND) == Some("thread") {
        UnitKind::Thread
    } else {
        UnitKind::Process
    }
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let cap = match scope.cap {
        Cap::Default => Some(default_cap(scope.size)),
        Cap::Considerate => Some(considerate_cap(scope.size)),
        Cap::At(cap) => Some(cap),
        Cap::None => None,
    };
    ["process", "thread"]
        .into_iter()
        .map(|kind| {
            let parameters = Parameters::new().with(names::KIND, kind);
            match cap {
                Some(cap) => parameters.with("cap", cap),
                None => parameters.with("cap", "none"),
            }
        })
        .collect()
}

struct LimitSearch {
    kind: UnitKind,
    cap: Option<u64>,
}

/// A message from the creator to the watchdog.
#[derive(Debug, Serialize, Deserialize)]
enum CreatorMessage {
    /// Number of units created so far.
    Created(u64),
    /// The search has ended with the given outcome.
    Finished(SearchOutcome),
}

#[derive(Debug, Serialize, Deserialize)]
struct SearchOutcome {
    created: u64,
    errno: Option<String>,
    stopped_by: StoppedBy,
    evidence: Vec<String>,
}

/// Number of units whose memory is measured before the search.
const SAMPLE_UNITS: u64 = 64;
/// Number of units that the creator adds between two progress messages and memory checks.
const REPORT_INTERVAL_UNITS: u64 = 64;

impl Subject for LimitSearch {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let unit = estimate_unit(self.kind);
        let watched = limits::limits_on(self.kind, unit);
        let predicted: Vec<Limit> =
            watched.iter().map(|watched| with_creator_process(watched.limit.clone())).collect();
        let outcome = self.search(&watched)?;
        let is_right = is_prediction_right(predicted.first(), &outcome);
        let created = outcome.created;
        let report = LimitReport {
            limits: predicted,
            cap: self.cap,
            created,
            errno: outcome.errno,
            stopped_by: outcome.stopped_by,
            evidence: outcome.evidence,
            prediction_held: is_right,
        };
        Ok(Sample { limit: Some(report), ..Sample::of(created as f64) }.with(
            "memory_of_unit",
            Unit::Bytes,
            unit.memory,
        ))
    }
}

/// Returns `limit`. If it limits the number of processes or tasks, counts the creator as a further
/// unit in use.
fn with_creator_process(mut limit: Limit) -> Limit {
    if limit.name.contains("pid")
        || [limits::NPROC, "kernel.threads-max"].contains(&limit.name.as_str())
    {
        limit.in_use += 1;
        limit.allows = limit.allows.saturating_sub(1);
    }
    limit
}

/// Tolerated difference between the number of units and its prediction, as a share of the
/// prediction. Other programs start and end tasks.
const TOLERANCE_RATIO: f64 = 0.02;
/// Lower bound on the tolerance given by [`TOLERANCE_RATIO`], in units, for small predictions.
const TOLERANCE_UNITS: f64 = 4.0;
/// Tolerated difference if memory ended the search, as a share of the prediction. The memory of a
/// unit is an estimate from a few units.
const MEMORY_TOLERANCE_RATIO: f64 = 0.3;

/// Returns whether the search ended as predicted: the predicted limit stopped it at about the
/// predicted number of units, or the cap did at no more than that number. Returns `None` if there
/// is no prediction, or no unit was created.
fn is_prediction_right(predicted: Option<&Limit>, outcome: &SearchOutcome) -> Option<bool> {
    let predicted = predicted?;
    let about = (predicted.allows as f64 * TOLERANCE_RATIO).max(TOLERANCE_UNITS);
    let apart = (outcome.created as f64 / predicted.allows.max(1) as f64 - 1.0).abs();
    let near = (outcome.created as f64 - predicted.allows as f64).abs() <= about;
    if outcome.created == 0 {
        return None; // no unit was created
    }
    Some(match &outcome.stopped_by {
        StoppedBy::Cap => predicted.allows >= outcome.created,
        StoppedBy::MemoryFloor => predicted.name == "memory" && apart <= MEMORY_TOLERANCE_RATIO,
        StoppedBy::Limit(name) => *name == predicted.name && near,
        StoppedBy::Unknown => false,
    })
}

/// Estimates the resources of a unit, including kernel memory, from a few units. Returns typical
/// resources if these units cannot be created or released; the search then finds the reason.
fn estimate_unit(kind: UnitKind) -> UnitResources {
    let default = limits::typical_resources(kind);
    let own_memory = || Rollup::of(getpid()).unwrap_or_default().pss_without_files();
    let memory = || MemInfo::read().of_tasks() + own_memory();
    let (before, mappings) = (memory(), limits::own_mappings());
    let Ok(mut units) = empty_set(kind) else { return default };
    let stack = units.stack_bytes();
    let complete = units.add(SAMPLE_UNITS).is_ok() && units.await_all().is_ok();
    // Processes also have private pages. Pages shared with the creator do not count.
    let own = if kind == UnitKind::Process { 36e3 } else { 0.0 };
    let each = memory().saturating_sub(before) as f64 / SAMPLE_UNITS as f64 + own;
    let mappings = limits::own_mappings().saturating_sub(mappings) as f64 / SAMPLE_UNITS as f64;
    let released = units.release();
    if !complete || released.is_err() {
        return UnitResources { stack, ..default };
    }
    // The measurement is coarse, and other programs use memory too.
    UnitResources {
        memory: each.clamp(0.3 * default.memory, 3.0 * default.memory),
        stack,
        mappings,
    }
}

impl LimitSearch {
    /// Forks the creator, watches it, ends all of its processes, and returns the outcome of its
    /// search.
    fn search(&self, watched: &[WatchedLimit]) -> Result<SearchOutcome, SubjectError> {
        child::become_subreaper().context("become a subreaper")?;
        let (reader, messages) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).context("make a pipe")?;
        let creator = fork(|| {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let outcome = self.create_until_refused(watched, &messages);
            i32::from(outcome.is_err())
        })
        .context("create a process")?;
        drop(messages);
        let outcome = watch_creator(creator, reader);
        let _ = rustix::process::kill_process(creator, Signal::KILL);
        let _ = child::reap(creator);
        reap_orphans();
        outcome
    }

    /// Creates units until creation fails, the cap is reached or little memory is left. Identifies
    /// the limit in the first case, sends the outcome to the watchdog, and releases the units.
    fn create_until_refused(
        &self,
        watched: &[WatchedLimit],
        messages: &OwnedFd,
    ) -> Result<(), SubjectError> {
        let mut units = empty_set(self.kind)?;
        let mut created = 0;
        let (error, stopped_by) = loop {
            if self.cap.is_some_and(|cap| created >= cap) {
                break (None, StoppedBy::Cap);
            }
            if created.is_multiple_of(REPORT_INTERVAL_UNITS) {
                units.await_all()?;
                send_message(messages, &CreatorMessage::Created(created))?;
                if limits::memory_available() < limits::memory_floor() {
                    break (None, StoppedBy::MemoryFloor);
                }
            }
            match units.add(1) {
                Ok(()) => created += 1,
                Err(error) => break (Some(error), StoppedBy::Unknown),
            }
        };
        units.await_all()?;
        let mut outcome = SearchOutcome {
            created,
            errno: error.as_ref().map(errno_name),
            stopped_by,
            evidence: Vec::new(),
        };
        if error.is_some() {
            identify_limit(&mut outcome, watched, units.as_mut());
        }
        send_message(messages, &CreatorMessage::Finished(outcome))?;
        units.release()
    }
}

/// Identifies the limit that refused a unit, and stores it in `outcome` with the evidence. All
/// units must still exist. If no limit is found, the cause stays unknown.
fn identify_limit(
    outcome: &mut SearchOutcome,
    watched: &[WatchedLimit],
    units: &mut dyn ParkedUnits,
) {
    let mut full = Vec::new();
    for watched in watched {
        let name = watched.limit.name.as_str();
        match watched.read_exhaustion() {
            // The counter may be that of a cgroup whose child has reached its limit.
            Exhaustion::Refused { evidence, is_full } => {
                outcome.evidence.push(evidence);
                if is_full || full.is_empty() {
                    full.insert(0, (name, None));
                }
            }
            Exhaustion::Full(evidence) => full.push((name, Some(evidence))),
            Exhaustion::No => {}
        }
    }
    // Retrying with the limit raised is the best evidence either way, because the user's processes
    // outside of this container cannot be counted.
    let counts = watched.iter().any(|watched| watched.limit.name == limits::NPROC);
    match if counts { retry_with_raised_nproc(units) } else { None } {
        Some((true, evidence)) => {
            outcome.evidence.push(evidence);
            full.sort_by_key(|(name, _)| *name != limits::NPROC);
            if full.first().is_none_or(|(name, _)| *name != limits::NPROC) {
                full.insert(0, (limits::NPROC, None));
            }
        }
        Some((false, evidence)) if full.iter().any(|(name, _)| *name == limits::NPROC) => {
            outcome.evidence.push(evidence);
            full.retain(|(name, _)| *name != limits::NPROC);
        }
        _ => {}
    }
    if let Some((name, evidence)) = full.into_iter().next() {
        outcome.stopped_by = StoppedBy::Limit(name.to_owned());
        outcome.evidence.splice(0..0, evidence);
    }
}

/// Tries to create another unit while the soft limit on processes is raised to the hard limit.
/// Returns whether that worked, and the evidence, or `None` if the limit cannot be raised.
fn retry_with_raised_nproc(units: &mut dyn ParkedUnits) -> Option<(bool, String)> {
    let before = getrlimit(Resource::Nproc);
    if before.current == before.maximum {
        return None;
    }
    setrlimit(Resource::Nproc, Rlimit { current: before.maximum, ..before }).ok()?;
    let again = units.add(1);
    let _ = setrlimit(Resource::Nproc, before);
    let name = limits::NPROC;
    Some(match again {
        Ok(()) => (
            true,
            format!(
                "with the soft limit {name} raised to the hard limit, another unit could be \
                 created"
            ),
        ),
        Err(error) => (
            false,
            format!(
                "{name} was not the limit: after raising it, creation still failed \
                with {}",
                errno_name(&error)
            ),
        ),
    })
}

fn errno_name(error: &io::Error) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => "EAGAIN".to_owned(),
        Some(Errno::NOMEM) => "ENOMEM".to_owned(),
        Some(Errno::NOSPC) => "ENOSPC".to_owned(),
        Some(errno) => format!("errno {}", errno.raw_os_error()),
        None => error.to_string(),
    }
}

fn send_message(messages: &OwnedFd, message: &CreatorMessage) -> Result<(), SubjectError> {
    let line =
        serde_json::to_string(message).map_err(|e| SubjectError::Unexpected(e.to_string()))? + "\n";
    let mut left = line.as_bytes();
    while !left.is_empty() {
        let written = rustix::io::write(messages, left).context("write to the watchdog")?;
        left = &left[written..];
    }
    Ok(())
}

/// Time without a message from the creator after which the watchdog checks memory.
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Receives the creator's messages until its search has ended and the creator has exited. Returns
/// the outcome. If memory is nearly exhausted during the search, kills the creator and returns an
/// outcome that says so. Fails if the creator exits without an outcome, or if contend has died.
fn watch_creator(creator: Pid, reader: OwnedFd) -> Result<SearchOutcome, SubjectError> {
    let mut reader = BufReader::new(File::from(reader));
    let mut created = 0;
    let contend = rustix::process::getppid();
    loop {
        if rustix::process::getppid() != contend {
            return Err(SubjectError::Unexpected("contend has died".to_owned()));
        }
        if reader.buffer().is_empty() && !wait_readable(reader.get_ref()) {
            if limits::memory_available() < limits::memory_floor() / 2 {
                let _ = rustix::process::kill_process(creator, Signal::KILL);
                let evidence =
                    vec!["stopped by the watchdog: almost no memory was left".to_owned()];
                let stopped_by = StoppedBy::MemoryFloor;
                return Ok(SearchOutcome { created, errno: None, stopped_by, evidence });
            }
            continue;
        }
        let mut line = String::new();
        if reader.read_line(&mut line).context("read from the creator")? == 0 {
            let message = format!("the process that created units exited after {created} of them");
            return Err(SubjectError::Unexpected(message));
        }
        let message = serde_json::from_str(&line);
        match message.map_err(|error| SubjectError::Unexpected(error.to_string()))? {
            CreatorMessage::Created(count) => created = count,
            CreatorMessage::Finished(outcome) => {
                await_end(creator);
                return Ok(outcome);
            }
        }
    }
}

fn wait_readable(file: &File) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    let wait =
        rustix::time::Timespec { tv_sec: 0, tv_nsec: MEMORY_CHECK_INTERVAL.subsec_nanos().into() };
    poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}

/// Waits, without a deadline, until the creator has released and reaped its units and ended.
fn await_end(creator: Pid) {
    while matches!(child::peek(Which::One(creator)), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reaps all children of this process, and blocks until there are none. They are units whose
/// creator was killed: the kernel kills such units and makes them children of this process.
fn reap_orphans() {
    while let Ok(found) = child::peek(Which::Any) {
        match found {
            Some((pid, _)) => drop(child::reap(pid)),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, allows: u64) -> Limit {
        let (name, source) = (name.to_owned(), String::new());
        Limit { name, source, value: allows, in_use: 0, per_unit: 1.0, allows }
    }

    fn outcome(created: u64, stopped_by: StoppedBy) -> SearchOutcome {
        SearchOutcome { created, errno: None, stopped_by, evidence: Vec::new() }
    }

    #[test]
    fn a_considerate_cap_stays_below_shared_limits() {
        assert_eq!([lower_cap(10_000, None), lower_cap(10_000, Some(40_000))], [10_000; 2]);
        assert_eq!([lower_cap(10_000, Some(300)), lower_cap(10_000, Some(0))], [300, 1]);
        let cap = |case: &Parameters| case.number("cap");
        let considerate = Scope { cap: Cap::Considerate, ..Scope::of(Size::Quick) };
        let (default, considerate) = (cases(&Scope::of(Size::Quick)), cases(&considerate));
        assert!(considerate.iter().zip(&default).all(|(one, other)| cap(one) <= cap(other)));
    }

    #[test]
    fn a_prediction_is_right_if_the_limit_and_the_number_are() {
        let predicted = limit("kernel.pid_max", 32_000);
        let is_right = |created, by| is_prediction_right(Some(&predicted), &outcome(created, by));
        let by = |name: &str| StoppedBy::Limit(name.to_owned());
        assert_eq!(is_right(31_900, by("kernel.pid_max")), Some(true));
        assert_eq!(is_right(0, by("kernel.pid_max")), None);
        assert_eq!(is_right(20_000, by("kernel.pid_max")), Some(false));
        assert_eq!(is_right(31_900, by("cgroup pids.max")), Some(false));
        assert_eq!(is_right(10_000, StoppedBy::Cap), Some(true));
        assert_eq!(is_right(40_000, StoppedBy::Cap), Some(false));
        assert_eq!(is_right(31_000, StoppedBy::Unknown), Some(false));
    }
}
