//! A diagnosis of a running program: schema `contend.doctor/1`.
//!
//! Times are in seconds (`CLOCK_MONOTONIC`). Two sums hold, up to rounding:
//!
//! ```text
//! observed_seconds = Σ moments[].seconds           each moment has one cause
//! thread_seconds   = Σ state_seconds               each thread is in one state
//! ```
//!
//! `thread_seconds` is the sum of the times for which each thread was observed.

mod time_series;

pub use time_series::{ThreadSeries, TimeSeries};

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::remedy::{Library, RemedyTrial};
use crate::{Host, Warning, Writer};

/// Name and version of the schema.
pub const SCHEMA: &str = "contend.doctor/1";

/// A diagnosis of a program: what its threads did, why it did not use the CPUs, and what would help.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DoctorRecord {
    /// Name and version of this schema: `contend.doctor/1`.
    pub schema: String,
    /// The version of contend that wrote the record.
    pub contend: Option<Writer>,
    /// The command line that contend started, or that of the first observed process.
    pub command: String,
    /// Start of the observation: UTC, RFC 3339.
    pub started_at: String,
    /// Whether contend started the program.
    pub started: bool,
    /// Exit status of the program, if contend started it and it ended: 128 + the signal's number if a
    /// signal killed it; null otherwise.
    pub exit_code: Option<i32>,
    /// Length of the observation, in seconds.
    pub observed_seconds: f64,
    /// The diagnosis in a paragraph.
    pub diagnosis: String,
    /// The largest part of the observation by cause, with the next ones; longest first.
    pub moments: Vec<Moments>,
    /// What the program did over time; null if it was observed too briefly, and in records of older
    /// versions.
    #[serde(default)]
    pub time_series: Option<TimeSeries>,
    /// Sum over all threads of the time for which each was observed, in seconds.
    pub thread_seconds: f64,
    /// Time of all threads by their state, in seconds. States without any time are left out.
    pub state_seconds: BTreeMap<ThreadState, f64>,
    /// CPU time of the observed threads and of children that ended during the observation, in
    /// seconds.
    pub cpu_seconds: f64,
    /// Part of `cpu_seconds` that was spent in the kernel, in seconds. The kernel divides user and
    /// system time approximately.
    pub system_seconds: f64,
    /// Number of CPUs that the program may use at the same time: by its affinity or, if that is
    /// smaller, its cgroups' quota.
    pub cpus: f64,
    /// What could be better, largest gain first. Empty if nothing was found.
    pub findings: Vec<Finding>,
    /// What remedies that need no change of code brought (`--try`); null if none were tried.
    #[serde(default)]
    pub trials: Option<RemedyTrial>,
    /// The observed processes with the most CPU time, those with the most first. At most 100.
    pub processes: Vec<Process>,
    /// The observed threads with the most CPU time, and those that findings name. At most 100.
    pub threads: Vec<Thread>,
    /// The machine on which the program ran.
    pub host: Host,
    /// Circumstances that make the figures less reliable.
    pub warnings: Vec<Warning>,
    /// How the program was observed.
    pub observation: Observation,
}

/// What a thread does at a moment.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadState {
    /// On a CPU.
    Running,
    /// Queued for a CPU.
    Runnable,
    /// Waiting for a lock that another thread holds: a mutex, a file lock, a System V semaphore.
    Lock,
    /// Waiting for another thread's signal: a condition variable, a semaphore, a barrier, or an idle
    /// thread of a pool.
    Condition,
    /// Sleeping until a point in time.
    Sleep,
    /// Reading from an empty pipe, or writing to a full one.
    Pipe,
    /// Waiting for a peer on a socket, or for a connection.
    Socket,
    /// Waiting for one of several descriptors (poll, select, epoll).
    Poll,
    /// Waiting for input from a terminal, or output to one.
    Terminal,
    /// Waiting for a disk or a file system.
    Disk,
    /// Waiting for the end of a child process.
    Child,
    /// Waiting for a page of memory, outside of system calls.
    PageFault,
    /// Stopped by job control or a debugger.
    Stopped,
    /// Waiting for anything else, such as a signal or a device.
    Other,
    /// Waiting, but for what is unknown.
    Unknown,
}

impl ThreadState {
    /// All states, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Running,
        Self::Runnable,
        Self::Lock,
        Self::Condition,
        Self::Sleep,
        Self::Pipe,
        Self::Socket,
        Self::Poll,
        Self::Terminal,
        Self::Disk,
        Self::Child,
        Self::PageFault,
        Self::Stopped,
        Self::Other,
        Self::Unknown,
    ];
}

/// Why the program did not use all its CPUs at a moment, or that it did.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The program's own threads kept all its CPUs busy.
    Busy,
    /// Some of its threads ran, but fewer than it has CPUs; no other thread was ready.
    Serial,
    /// Threads were ready, but other programs used the CPUs.
    OtherLoad,
    /// Threads were ready and CPUs idle: by a quota, by affinity, or the scheduler's delay.
    Limited,
    /// No thread ran; at least one waited for a lock.
    Lock,
    /// No thread ran; at least one slept for a short time, at most 100 ms.
    Sleep,
    /// No thread ran; at least one waited for a disk, a file system or a page.
    Disk,
    /// No thread ran, and the program waited for a process that is not observed.
    Child,
    /// No thread ran, and all waited for input: no work had arrived.
    Idle,
    /// All threads were stopped.
    Stopped,
    /// No thread ran, and it is unknown why.
    Unknown,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Busy,
        Self::Serial,
        Self::OtherLoad,
        Self::Limited,
        Self::Lock,
        Self::Sleep,
        Self::Disk,
        Self::Child,
        Self::Idle,
        Self::Stopped,
        Self::Unknown,
    ];
}

/// All moments with one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moments {
    /// The cause.
    pub cause: Cause,
    /// Wall time with this cause, in seconds.
    pub seconds: f64,
    /// The same as a share of the observation, from 0 to 1.
    pub share: f64,
}

/// A symptom: a way in which a program loses time through its concurrency.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// Threads sleep for a fixed time and then look whether something has happened.
    SleepPolling,
    /// Threads or processes work in turn, never at the same time.
    LockStep,
    /// Threads wait for a lock while about one runs.
    LockContention,
    /// Threads wait for the lock of an interpreter (Python, Ruby).
    InterpreterLock,
    /// One thread works while the others wait for it.
    SerialSection,
    /// Some threads end or idle long before others, or there are fewer workers than CPUs.
    UnevenWork,
    /// The program has more runnable threads than CPUs, and loses time through that.
    Oversubscription,
    /// A quota or an affinity mask stops threads that are ready.
    CpuLimit,
    /// System calls move few bytes each, and the kernel takes much of the CPU time.
    TinyIo,
    /// Many short-lived processes or threads are started.
    ForkStorm,
    /// A lock or a descriptor is asked again and again, with short waits between.
    LockPolling,
    /// Threads use CPU time to wait.
    Spinning,
    /// Page faults, swapping, a disk, a network peer or a child dominate; concurrency is not the
    /// reason.
    NotConcurrency,
    /// The program is a pipeline, or contains one, with a bottleneck.
    Pipeline,
}

/// Something that could be better, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The symptom.
    pub symptom: Symptom,
    /// What happens, in a sentence or two with figures.
    pub message: String,
    /// Estimated share of the wall time that a remedy would save, from 0 to 1; null if it cannot be
    /// estimated.
    pub gain_share: Option<f64>,
    /// How the gain was estimated, in a clause.
    pub argument: String,
    /// The figures on which the finding rests.
    pub evidence: Vec<Evidence>,
    /// The threads concerned, most important first.
    pub threads: Vec<ThreadName>,
    /// What to change, in a sentence.
    pub remedy: String,
    /// A command that tries or proves the remedy; null if it needs a change of code.
    pub command: Option<String>,
    /// What would refute the finding, in a sentence.
    pub unless: String,
}

/// A figure on which a finding rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Name of the figure, such as `sleeps_per_second`.
    pub name: String,
    /// Its value, in the unit that the name ends with; without one, a number or a share.
    pub value: f64,
}

/// Name of a thread.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ThreadName {
    /// PID of its process.
    pub pid: i32,
    /// ID of the thread.
    pub tid: i32,
    /// Its name, as it calls itself (`comm`).
    pub name: String,
    /// The function of the program in which it executes most, by stacks sampled while it was busy; null
    /// if no function stands out, or the program has no symbols.
    #[serde(default)]
    pub function: Option<String>,
}

/// An observed process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// The PID.
    pub pid: i32,
    /// PID of the parent when the process was found.
    pub parent: i32,
    /// The command line, with words separated by spaces; the program's name in brackets if it has
    /// none.
    pub command: String,
    /// The runtime that the program was recognised to use; null if none was.
    pub runtime: Option<Runtime>,
    /// Libraries that determine which remedies have an effect; null if its map of memory may not be
    /// read.
    #[serde(default)]
    pub libraries: Option<Vec<Library>>,
    /// Largest number of its threads that were observed at the same time.
    pub threads: usize,
    /// CPU time of its threads during the observation, with those that have ended, in seconds.
    pub cpu_seconds: f64,
    /// Bytes that it read during the observation, by read-like calls; null if that may not be read.
    pub read_bytes: Option<u64>,
    /// Bytes that it wrote; null if that may not be read.
    pub write_bytes: Option<u64>,
    /// Number of read-like calls; null if that may not be read.
    pub reads: Option<u64>,
    /// Number of write-like calls; null if that may not be read.
    pub writes: Option<u64>,
    /// Why the process is observed.
    pub relation: Relation,
}

/// The language runtime of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// `CPython` with a global interpreter lock.
    Python,
    /// The reference implementation of Ruby.
    Ruby,
    /// A Java virtual machine.
    Java,
    /// Node.js.
    Node,
    /// A program compiled by Go.
    Go,
    /// A shell.
    Shell,
}

/// Why a process is observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The user named it.
    #[default]
    Named,
    /// A descendant of a named process.
    Descendant,
    /// It has the other end of a pipe of an observed process.
    SharesPipe,
}

/// An observed thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// Its name and IDs.
    #[serde(flatten)]
    pub name: ThreadName,
    /// Time for which it was observed, in seconds.
    pub observed_seconds: f64,
    /// Its time by state, in seconds. States without any time are left out.
    pub state_seconds: BTreeMap<ThreadState, f64>,
    /// Number of times that the scheduler gave it the CPU.
    pub slices: u64,
    /// What it waits for, longest first: at most three waits with at least a hundredth of the
    /// observation each. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<ThreadWait>,
}

/// Something for which a thread waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadWait {
    /// The state of the thread while it waits.
    pub state: ThreadState,
    /// The object, such as `lock 0x7f2c40`; null if it is unknown. Threads of a process that wait for the
    /// same object have the same text here.
    pub object: Option<String>,
    /// Time for which the thread waits for it, in seconds.
    pub seconds: f64,
    /// ID of the thread that holds the lock most of the time, as far as samples have shown; null
    /// otherwise.
    pub holder: Option<i32>,
}

/// How the program was observed, and what that cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observation {
    /// The sources of information, with those that were not available.
    pub layers: Vec<Layer>,
    /// Number of processes that were sampled; `processes` has at most 100 of them.
    #[serde(default)]
    pub processes: u64,
    /// Number of their threads: for each process, the largest number at the same time.
    #[serde(default)]
    pub threads: u64,
    /// Number of samples of all threads.
    pub samples: u64,
    /// Median time between two samples, in seconds; null for fewer than two samples.
    pub interval_seconds: Option<f64>,
    /// Number of recorded context switches; null if they were not recorded.
    pub switches: Option<u64>,
    /// Share of the time for which they were recorded: less than 1 if there were very many; null if they
    /// were not.
    #[serde(default)]
    pub switches_share: Option<f64>,
    /// CPU time that contend used for the observation, in seconds.
    pub own_cpu_seconds: f64,
    /// CPU time of other programs on the CPUs that the program may use, as a share of them; null if
    /// unknown.
    pub others_cpu_share: Option<f64>,
}

/// A source of information about a program.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LayerId {
    /// The scheduler's counters and states in `/proc`, which any user may read.
    Scheduler,
    /// The system calls in which threads wait, with their arguments.
    SystemCalls,
    /// The names of the kernel functions in which threads wait, where system calls may not be read.
    WaitChannels,
    /// Counts of bytes and of read and write calls.
    Io,
    /// A record of each context switch.
    Switches,
    /// A record of each wake-up: which thread has woken which. Without it, that is inferred from the
    /// order of context switches.
    Wakes,
}

/// Whether a source of information was available.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Layer {
    /// The source.
    pub id: LayerId,
    /// Whether it was used.
    pub used: bool,
    /// Why it was not used, and which permission would make it available; null if it was used.
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_states_and_causes_are_at_their_numbers() {
        for (number, state) in ThreadState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
        }
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
        }
        assert_eq!(ThreadState::ALL.last(), Some(&ThreadState::Unknown));
        assert_eq!(Cause::ALL.last(), Some(&Cause::Unknown));
    }
}
