//! Remedies that need no change of code: another number of threads, another allocator, another
//! placement. Each is one row of [`TABLE`], which states on which programs it has an effect, which
//! symptoms it may relieve, and how it is applied.
//!
//! ```text
//! DoctorRecord, command, environment, installed files → Situation → TABLE → Proposal (a Change)
//! ```
//!
//! A proposal is plausible, no more: a trial runs the command with and without it. Larger pipes are not
//! in the table, because a program under observation makes its pipes itself; `contend pipe --try` has
//! them.

pub mod change;
pub mod installed;
mod jobs;
mod table;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use contend_record::doctor::{
    DoctorRecord, Finding, Process, Relation, Runtime, Symptom, ThreadState,
};
use contend_record::remedy::{Library, RemedyId};

pub use change::Change;
pub use table::TABLE;

/// Largest number of remedies that are chosen by the findings.
pub const MAX_PROPOSALS: usize = 6;
/// Share of the observed CPU time from which a process is one that works.
const MIN_WORK: f64 = 0.1;

/// The facts about a program and a machine on which the choice of remedies depends.
#[derive(Clone, Copy)]
pub struct Situation<'a> {
    /// The diagnosis.
    pub record: &'a DoctorRecord,
    /// The command: the program and its arguments.
    pub words: &'a [OsString],
    /// Returns the value of a variable of the environment in which the command runs; `None` if it is
    /// not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Installed files that remedies use.
    pub tools: &'a Tools,
}

/// What remedies use of the machine.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// Allocators that can be loaded before a program, with their files.
    pub allocators: Vec<(Library, PathBuf)>,
    /// Whether `stdbuf` is installed.
    pub has_stdbuf: bool,
    /// Number of a CPU on which the command may run; `None` if there is only one, or none is known.
    pub cpu: Option<usize>,
}

/// The number of threads or jobs that a setting gives to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// The user has given it, in the environment or in an argument.
    Given(usize),
    /// The program's own choice, without such a setting.
    Default(usize),
    /// It is not known, or the remedy is not a number.
    Unknown,
}

/// A remedy: a row of [`TABLE`].
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The remedy.
    pub id: RemedyId,
    /// Its name, as in JSON and on the command line.
    pub name: &'static str,
    /// Its effect, in a clause, such as "sets the number of threads".
    pub effect: &'static str,
    /// Returns whether it can have an effect on the program.
    pub suits: fn(&Situation<'_>) -> bool,
    /// The symptoms that it may relieve.
    pub relieves: &'static [Symptom],
    /// Returns the present number of threads or jobs.
    pub count: fn(&Situation<'_>) -> Count,
    /// Returns the changes to try, most plausible first. Changes that would change nothing are left out.
    pub changes: fn(&Situation<'_>) -> Vec<Change>,
}

/// Which remedies are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Those that may relieve a symptom that was found, or that replace a setting that does not fit the
    /// number of CPUs; at most [`MAX_PROPOSALS`].
    Findings,
    /// All that can have an effect on the program.
    All,
    /// These, whether they seem to have an effect or not.
    Named(Vec<RemedyId>),
}

/// A remedy to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// The remedy.
    pub id: RemedyId,
    /// Its effect, in a clause, such as "sets the number of threads".
    pub effect: &'static str,
    /// The symptoms that were found and that it may relieve; empty if it is tried for another reason.
    pub symptoms: Vec<Symptom>,
    /// How the command is started with it.
    pub change: Change,
}

/// Returns the remedies to try, most plausible first: those for the findings with the largest gain, and
/// of each remedy the most plausible change.
pub fn choose(situation: &Situation<'_>, selection: &Selection) -> Vec<Proposal> {
    let mut ranked: Vec<(usize, Proposal)> = Vec::new();
    for row in TABLE {
        let (rank, symptoms) = relieved(situation, row);
        let is_wanted = match selection {
            Selection::Findings => {
                (row.suits)(situation) && (!symptoms.is_empty() || replaces_setting(situation, row))
            }
            Selection::All => (row.suits)(situation),
            Selection::Named(ids) => ids.contains(&row.id),
        };
        if !is_wanted {
            continue;
        }
        for (place, change) in (row.changes)(situation).into_iter().enumerate() {
            let symptoms = symptoms.clone();
            let proposal = Proposal { id: row.id, effect: row.effect, symptoms, change };
            ranked.push((rank + place, proposal));
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank); // stable: rows of the same rank stay in order
    if *selection == Selection::Findings {
        ranked.truncate(MAX_PROPOSALS);
    }
    ranked.into_iter().map(|(_, proposal)| proposal).collect()
}

/// Returns the most plausible remedy for a finding; `None` if a change of code is needed.
pub fn for_finding(situation: &Situation<'_>, finding: &Finding) -> Option<Proposal> {
    let rows = TABLE.iter().filter(|row| row.may_relieve(finding) && (row.suits)(situation));
    rows.flat_map(|row| {
        let changes = (row.changes)(situation).into_iter();
        let symptoms = vec![finding.symptom];
        changes.map(move |change| Proposal {
            id: row.id,
            effect: row.effect,
            symptoms: symptoms.clone(),
            change,
        })
    })
    .next()
}

/// Returns the place of the first finding that the remedy may relieve, or 0 without such a finding; and
/// the symptoms of all such findings.
fn relieved(situation: &Situation<'_>, row: &Row) -> (usize, Vec<Symptom>) {
    let findings = situation.record.findings.iter().enumerate();
    let relieved: Vec<_> = findings.filter(|(_, finding)| row.may_relieve(finding)).collect();
    let first = relieved.first().map_or(0, |(place, _)| *place);
    (first, relieved.iter().map(|(_, finding)| finding.symptom).collect())
}

impl Row {
    /// Returns whether the remedy may relieve the symptom of a finding.
    pub fn may_relieve(&self, finding: &Finding) -> bool {
        self.relieves.contains(&finding.symptom)
            && (finding.symptom != Symptom::NotConcurrency || has_page_faults(finding))
    }
}

/// Returns whether page faults are the evidence of a finding, which may be about disks as well.
fn has_page_faults(finding: &Finding) -> bool {
    finding.evidence.iter().any(|evidence| evidence.name == "faults_per_second")
}

/// Returns whether the remedy replaces a number of threads that does not fit the number of CPUs: one
/// that the user has given and that is larger, or one that keeps CPUs idle.
fn replaces_setting(situation: &Situation<'_>, row: &Row) -> bool {
    let cpus = situation.cpus();
    let (count, is_given) = match (row.count)(situation) {
        Count::Given(count) => (count, true),
        Count::Default(count) => (count, false),
        Count::Unknown => return false,
    };
    let busy = situation.busy_cpus();
    let ready = busy + situation.queued_threads();
    let is_too_small = count < cpus && ready >= 0.5 * count as f64 && busy < 0.9 * cpus as f64;
    is_given && count > cpus || is_too_small
}

impl Situation<'_> {
    /// Returns the number of CPUs that the program may use at the same time, rounded up.
    fn cpus(&self) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few CPUs")]
        let cpus = self.record.cpus.ceil().max(1.0) as usize;
        cpus
    }

    /// Returns the number of CPUs that a program counts which knows no quotas.
    fn cpus_by_affinity(&self) -> usize {
        match self.record.host.cpus_allowed {
            0 => self.cpus(),
            cpus => cpus,
        }
    }

    /// Returns the mean number of CPUs that the program used.
    fn busy_cpus(&self) -> f64 {
        self.record.cpu_seconds / self.record.observed_seconds.max(f64::MIN_POSITIVE)
    }

    /// Returns the mean number of threads that were queued for a CPU.
    fn queued_threads(&self) -> f64 {
        let queued = self.record.state_seconds.get(&ThreadState::Runnable).copied().unwrap_or(0.0);
        queued / self.record.observed_seconds.max(f64::MIN_POSITIVE)
    }

    /// Returns the processes of the program that use much of its CPU time; all of them if none does.
    fn workers(&self) -> Vec<&Process> {
        let own = self.record.processes.iter().filter(|p| p.relation != Relation::SharesPipe);
        let least = MIN_WORK * self.record.cpu_seconds;
        let is_worker =
            |process: &&Process| process.cpu_seconds > 0.0 && process.cpu_seconds >= least;
        let workers: Vec<&Process> = own.clone().filter(is_worker).collect();
        if workers.is_empty() { own.collect() } else { workers }
    }

    /// Returns whether a worker has loaded the library.
    fn has(&self, library: Library) -> bool {
        self.workers().iter().any(|process| has(process, library))
    }

    /// Returns whether a worker is a program of the runtime.
    fn runs(&self, runtime: Runtime) -> bool {
        self.workers().iter().any(|process| process.runtime == Some(runtime))
    }

    /// Returns the largest number of threads of a worker.
    fn threads(&self) -> usize {
        self.workers().iter().map(|process| process.threads).max().unwrap_or(0)
    }

    /// Returns whether a worker with at least this number of threads allocates memory with glibc.
    fn allocates_by_glibc(&self, threads: usize) -> bool {
        let others = [Library::Jemalloc, Library::Mimalloc, Library::Tcmalloc];
        self.workers().iter().any(|process| {
            process.threads >= threads
                && has(process, Library::Glibc)
                && !others.iter().any(|other| has(process, *other))
        })
    }

    /// Returns whether page faults take much of the time.
    fn has_page_faults(&self) -> bool {
        self.record.findings.iter().any(has_page_faults)
    }

    /// Returns the value of a variable that is set and not empty.
    fn value(&self, variable: &str) -> Option<String> {
        (self.variable)(variable).filter(|value| !value.is_empty())
    }

    /// Returns the number at the start of a variable, such as 4 of `4,2`, or else `without`.
    fn number(&self, variable: &str, without: Count) -> Count {
        let Some(value) = self.value(variable) else { return without };
        let digits = value.trim_start().split(|c: char| !c.is_ascii_digit()).next().unwrap_or("");
        digits.parse().map_or(Count::Unknown, Count::Given)
    }
}

fn has(process: &Process, library: Library) -> bool {
    process.libraries.as_ref().is_some_and(|found| found.contains(&library))
}
