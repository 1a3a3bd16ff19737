//! `units/limit`: how many units can exist at once, and what stops more.
//!
//! Three processes take part. The case's own process is the guard: it predicts, starts the
//! breeder, and watches the memory of the machine. The breeder creates units until it cannot,
//! and finds out why while all of them are there. The units wait. Whichever of them dies, the
//! kernel kills those below it. When contend dies, the guard ends the trial and reaps everything.

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

use super::park::{Park, of_kind};
use crate::engine::experiment::{
    Attempt, Cap, Demands, Experiment, Fit, Sample, Sampling, Scope, Size, Subject, SubjectError,
    always_available, never_hands_over,
};
use crate::support::limits::{self, Kind, Limit, OfUnit, Spent, Watched};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/limit",
    summary: "how many processes or threads can exist at once, and which limit stops more",
    about: "First it predicts: for every limit that applies (RLIMIT_NPROC, the cgroup's pids.max, \
            kernel.threads-max, kernel.pid_max, memory; for threads also vm.max_map_count, \
            RLIMIT_AS, RLIMIT_DATA and strict overcommit) how many more units it allows; the \
            memory of a unit is measured on a few. Then it creates units that wait, until the \
            kernel refuses or `cap` is reached, and finds out which limit it was: by the kernel's \
            own count of refusals where there is one, by what is in use at that moment, and for \
            RLIMIT_NPROC by raising it and trying again. Nearly all of these limits give the same \
            error, EAGAIN. A guard process watches and stops it before a twentieth of the \
            memory, or 256 MiB, is all that is left. At the end of the way nobody on this \
            machine (or, with RLIMIT_NPROC, nobody of this user) can start a process for a \
            second or two.",
    view: View::UnitLimit,
    unit: Unit::Units,
    sampling: Sampling::Fixed(1),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: always_available,
    hands_over: never_hands_over,
    demands: Demands { exhausts, ..Demands::NONE.lasting(50, 50).and_ns_per(&[("cap", 200_000)]) },
    subject: |parameters| {
        Ok(Box::new(Trial { kind: kind(parameters), cap: parameters.number("cap") }))
    },
};

/// Where a trial of this size stops unless something else is asked for.
fn usual_cap(size: Size) -> u64 {
    match size {
        Size::Full => 10_000,
        Size::Quick => 1000,
        Size::Smallest => 20,
    }
}

/// The same, but at half of the tightest limit that other programs share where that is less.
fn considerate_cap(size: Size) -> u64 {
    let limits = [Kind::Process, Kind::Thread].into_iter().filter_map(limits::tightest_shared);
    lowered(usual_cap(size), limits.map(|limit| limit.allows / 2).min())
}

/// The usual cap, or what is safe if that is less; one unit at least.
fn lowered(usual: u64, safe: Option<u64>) -> u64 {
    safe.map_or(usual, |safe| usual.min(safe.max(1)))
}

/// The limit of which this case would leave next to nothing, of those that other programs share.
fn exhausts(parameters: &Parameters) -> Option<Limit> {
    let limit = limits::tightest_shared(kind(parameters))?;
    let cap = parameters.number("cap");
    cap.is_none_or(|cap| cap >= limits::usable(&limit)).then_some(limit)
}

fn kind(parameters: &Parameters) -> Kind {
    if parameters.text(names::KIND) == Some("thread") { Kind::Thread } else { Kind::Process }
}

fn cases(scope: &Scope) -> Vec<Parameters> {
    let cap = match scope.cap {
        Cap::Usual => Some(usual_cap(scope.size)),
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

struct Trial {
    kind: Kind,
    cap: Option<u64>,
}

/// What the breeder tells.
#[derive(Debug, Serialize, Deserialize)]
enum News {
    /// So many are there.
    Created(u64),
    /// It is over.
    Over(Outcome),
}

#[derive(Debug, Serialize, Deserialize)]
struct Outcome {
    created: u64,
    errno: Option<String>,
    stopped_by: StoppedBy,
    evidence: Vec<String>,
}

/// Units whose memory is measured before the trial.
const FEW: u64 = 64;
/// How often the breeder tells how far it is and looks at the memory.
const EVERY: u64 = 64;

impl Subject for Trial {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let unit = measure_few(self.kind);
        let watched = limits::applying(self.kind, unit);
        let predicted: Vec<Limit> =
            watched.iter().map(|watched| beside_breeder(watched.limit.clone())).collect();
        let outcome = self.try_out(&watched)?;
        let held = prediction_held(predicted.first(), &outcome);
        let created = outcome.created;
        let report = LimitReport {
            limits: predicted,
            cap: self.cap,
            created,
            errno: outcome.errno,
            stopped_by: outcome.stopped_by,
            evidence: outcome.evidence,
            prediction_held: held,
        };
        Ok(Sample { limit: Some(report), ..Sample::of(created as f64) }.with(
            "memory_of_unit",
            Unit::Bytes,
            unit.memory,
        ))
    }
}

/// The limit when the breeder, a process more, is there.
fn beside_breeder(mut limit: Limit) -> Limit {
    if limit.name.contains("pid")
        || [limits::NPROC, "kernel.threads-max"].contains(&limit.name.as_str())
    {
        limit.in_use += 1;
        limit.allows = limit.allows.saturating_sub(1);
    }
    limit
}

/// How far a number may be from the prediction: others come and go.
const TOLERANCE: f64 = 0.02;
const FEW_UNITS: f64 = 4.0;
/// The same for memory, which is estimated by a few units.
const ROUGHLY: f64 = 0.3;

/// Whether what was predicted came to pass, as far as the trial went.
fn prediction_held(predicted: Option<&Limit>, outcome: &Outcome) -> Option<bool> {
    let predicted = predicted?;
    let about = (predicted.allows as f64 * TOLERANCE).max(FEW_UNITS);
    let apart = (outcome.created as f64 / predicted.allows.max(1) as f64 - 1.0).abs();
    let near = (outcome.created as f64 - predicted.allows as f64).abs() <= about;
    if outcome.created == 0 {
        return None; // nothing was tried
    }
    Some(match &outcome.stopped_by {
        StoppedBy::Cap => predicted.allows >= outcome.created,
        StoppedBy::MemoryFloor => predicted.name == "memory" && apart <= ROUGHLY,
        StoppedBy::Limit(name) => *name == predicted.name && near,
        StoppedBy::Unknown => false,
    })
}

/// The memory of a unit, the kernel's included, by a few of them. Where even these cannot be
/// created, the trial will tell.
fn measure_few(kind: Kind) -> OfUnit {
    let usual = limits::usual_unit(kind);
    let own_memory = || Rollup::of(getpid()).unwrap_or_default().pss;
    let memory = || MemInfo::read().of_tasks() + own_memory();
    let (before, mappings) = (memory(), limits::own_mappings());
    let Ok(mut units) = of_kind(kind) else { return usual };
    let stack = units.stack_bytes();
    let complete = units.add(FEW).is_ok() && units.await_all().is_ok();
    // Of a process its own pages are counted, not those that it shares with its creator.
    let own = if kind == Kind::Process { 36e3 } else { 0.0 };
    let each = memory().saturating_sub(before) as f64 / FEW as f64 + own;
    let mappings = limits::own_mappings().saturating_sub(mappings) as f64 / FEW as f64;
    let released = units.release();
    if !complete || released.is_err() {
        return OfUnit { stack, ..usual };
    }
    // A few units are a coarse measure; others use memory too.
    OfUnit { memory: each.clamp(0.3 * usual.memory, 3.0 * usual.memory), stack, mappings }
}

impl Trial {
    /// Starts the breeder and guards it.
    fn try_out(&self, watched: &[Watched]) -> Result<Outcome, SubjectError> {
        child::become_subreaper().attempt("become the parent of orphans")?;
        let (news, tell) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).attempt("make a pipe")?;
        let breeder = fork(|| {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            let outcome = self.breed(watched, &tell);
            i32::from(outcome.is_err())
        })
        .attempt("create a process")?;
        drop(tell);
        let outcome = guard(breeder, news);
        let _ = rustix::process::kill_process(breeder, Signal::KILL);
        let _ = child::reap(breeder);
        reap_orphans();
        outcome
    }

    /// Creates units until it cannot, and finds out why.
    fn breed(&self, watched: &[Watched], tell: &OwnedFd) -> Result<(), SubjectError> {
        let mut units = of_kind(self.kind)?;
        let mut created = 0;
        let (error, stopped_by) = loop {
            if self.cap.is_some_and(|cap| created >= cap) {
                break (None, StoppedBy::Cap);
            }
            if created.is_multiple_of(EVERY) {
                units.await_all()?;
                send(tell, &News::Created(created))?;
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
        let mut outcome = Outcome {
            created,
            errno: error.as_ref().map(errno_name),
            stopped_by,
            evidence: Vec::new(),
        };
        if error.is_some() {
            find_culprit(&mut outcome, watched, units.as_mut());
        }
        send(tell, &News::Over(outcome))?;
        units.release()
    }
}

/// Which limit it was, with all units there.
fn find_culprit(outcome: &mut Outcome, watched: &[Watched], units: &mut dyn Park) {
    let mut full = Vec::new();
    for watched in watched {
        let name = watched.limit.name.as_str();
        match watched.spent() {
            // The counter may be that of a group whose child was at its limit.
            Spent::Refused { evidence, is_full } => {
                outcome.evidence.push(evidence);
                if is_full || full.is_empty() {
                    full.insert(0, (name, None));
                }
            }
            Spent::Full(evidence) => full.push((name, Some(evidence))),
            Spent::No => {}
        }
    }
    // Raising this limit and trying again is the best evidence there is, either way: what others
    // of this user have elsewhere cannot be counted.
    let counts = watched.iter().any(|watched| watched.limit.name == limits::NPROC);
    match if counts { raise_and_try_again(units) } else { None } {
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

/// Whether one more can be created with the soft limit on processes raised, where that is
/// allowed, and how this is told.
fn raise_and_try_again(units: &mut dyn Park) -> Option<(bool, String)> {
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
                "with {name} raised from the soft limit to the hard one, one more could be created"
            ),
        ),
        Err(error) => {
            (false, format!("it was not {name}: raised, it is {} again", errno_name(&error)))
        }
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

fn send(tell: &OwnedFd, news: &News) -> Result<(), SubjectError> {
    let line = serde_json::to_string(news).map_err(|e| SubjectError::Wrong(e.to_string()))? + "\n";
    let mut left = line.as_bytes();
    while !left.is_empty() {
        let written = rustix::io::write(tell, left).attempt("tell the guard")?;
        left = &left[written..];
    }
    Ok(())
}

/// How often the guard looks at the memory.
const LOOK: Duration = Duration::from_millis(20);

/// Follows the breeder, and ends it when memory runs out.
fn guard(breeder: Pid, news: OwnedFd) -> Result<Outcome, SubjectError> {
    let mut news = BufReader::new(File::from(news));
    let mut created = 0;
    let contend = rustix::process::getppid();
    loop {
        if rustix::process::getppid() != contend {
            return Err(SubjectError::Wrong("whoever asked for it has died".to_owned()));
        }
        if news.buffer().is_empty() && !is_ready(news.get_ref()) {
            if limits::memory_available() < limits::memory_floor() / 2 {
                let _ = rustix::process::kill_process(breeder, Signal::KILL);
                let evidence = vec!["the guard stopped it: hardly any memory was left".to_owned()];
                let stopped_by = StoppedBy::MemoryFloor;
                return Ok(Outcome { created, errno: None, stopped_by, evidence });
            }
            continue;
        }
        let mut line = String::new();
        if news.read_line(&mut line).attempt("hear from the breeder")? == 0 {
            let message = format!("the process that created units ended after {created} of them");
            return Err(SubjectError::Wrong(message));
        }
        let heard = serde_json::from_str(&line);
        match heard.map_err(|error| SubjectError::Wrong(error.to_string()))? {
            News::Created(count) => created = count,
            News::Over(outcome) => {
                await_end(breeder);
                return Ok(outcome);
            }
        }
    }
}

fn is_ready(file: &File) -> bool {
    let mut fds = [PollFd::new(file, PollFlags::IN)];
    let wait = rustix::time::Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    poll(&mut fds, Some(&wait)).is_ok_and(|ready| ready > 0)
}

/// The breeder lets its units go and reaps them; it is not hurried.
fn await_end(breeder: Pid) {
    while matches!(child::peek(Which::One(breeder)), Ok(None)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Units whose breeder was killed are handed to us.
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

    fn outcome(created: u64, stopped_by: StoppedBy) -> Outcome {
        Outcome { created, errno: None, stopped_by, evidence: Vec::new() }
    }

    #[test]
    fn a_considerate_cap_stays_below_what_others_need() {
        assert_eq!([lowered(10_000, None), lowered(10_000, Some(40_000))], [10_000; 2]);
        assert_eq!([lowered(10_000, Some(300)), lowered(10_000, Some(0))], [300, 1]);
        let cap = |case: &Parameters| case.number("cap");
        let considerate = Scope { cap: Cap::Considerate, ..Scope::of(Size::Quick) };
        let (usual, considerate) = (cases(&Scope::of(Size::Quick)), cases(&considerate));
        assert!(considerate.iter().zip(&usual).all(|(one, other)| cap(one) <= cap(other)));
    }

    #[test]
    fn a_prediction_holds_if_the_limit_and_the_number_are_right() {
        let predicted = limit("kernel.pid_max", 32_000);
        let held = |created, by| prediction_held(Some(&predicted), &outcome(created, by));
        let by = |name: &str| StoppedBy::Limit(name.to_owned());
        assert_eq!(held(31_900, by("kernel.pid_max")), Some(true));
        assert_eq!(held(0, by("kernel.pid_max")), None);
        assert_eq!(held(20_000, by("kernel.pid_max")), Some(false));
        assert_eq!(held(31_900, by("cgroup pids.max")), Some(false));
        assert_eq!(held(10_000, StoppedBy::Cap), Some(true));
        assert_eq!(held(40_000, StoppedBy::Cap), Some(false));
        assert_eq!(held(31_000, StoppedBy::Unknown), Some(false));
    }
}
