//! Remedies that need no change of code, and what was measured of them.
//!
//! Part of the schema `contend.doctor/1`. Wall times are in seconds (`CLOCK_MONOTONIC`); CPU times are
//! seconds that the kernel charges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{Measurement, Trial};
use crate::doctor::Symptom;

/// A library, or a build of a runtime, that determines which remedies have an effect on a process.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// The GNU C library, dynamically linked.
    Glibc,
    /// The C library musl, dynamically linked.
    Musl,
    /// An implementation of `OpenMP`: that of GCC, LLVM or Intel.
    Openmp,
    /// `OpenBLAS`.
    Openblas,
    /// The Intel Math Kernel Library.
    Mkl,
    /// The memory allocator jemalloc, as a library of its own.
    Jemalloc,
    /// The memory allocator mimalloc, as a library of its own.
    Mimalloc,
    /// The memory allocator of gperftools, as a library of its own.
    Tcmalloc,
    /// The thread pool Rayon for Rust, in the executable.
    Rayon,
    /// The runtime Tokio for Rust, in the executable.
    Tokio,
    /// A build of `CPython` without a global interpreter lock.
    FreeThreadedPython,
}

/// A remedy that needs no change of code.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RemedyId {
    /// Another number of `OpenMP` threads.
    OpenmpThreads,
    /// Threads of `OpenMP` that sleep while they wait.
    OpenmpWaitPolicy,
    /// Another number of threads of `OpenBLAS`.
    OpenblasThreads,
    /// Another number of threads of the Intel Math Kernel Library.
    MklThreads,
    /// Another number of threads that run Go code at the same time.
    GoThreads,
    /// Another number of threads of Rayon.
    RayonThreads,
    /// Another number of worker threads of Tokio.
    TokioThreads,
    /// Another number of threads in the pool of Node.js.
    NodeThreads,
    /// Another number of CPUs for which a Java virtual machine sizes its pools.
    JavaCpus,
    /// Another number of jobs of `make`.
    MakeJobs,
    /// Another number of processes of `xargs`.
    XargsJobs,
    /// Another number of jobs of GNU `parallel`.
    ParallelJobs,
    /// A build of `CPython` without a global interpreter lock runs without it.
    PythonGil,
    /// Another number of arenas of the memory allocator of glibc.
    MallocArenas,
    /// The memory allocator of glibc keeps freed memory.
    MallocKeep,
    /// Another memory allocator.
    Allocator,
    /// All threads run on one CPU.
    OneCpu,
    /// Larger buffers of C streams.
    StreamBuffers,
    /// Buffered output of Python.
    PythonBuffers,
}

/// The trial of remedies: the command ran unchanged and with one remedy at a time, in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyTrial {
    /// How the command ran. `original` is the command without a remedy, and `winner` an index in
    /// `remedies`.
    #[serde(flatten)]
    pub trial: Trial,
    /// Whether outputs were compared. If not, the output of the unchanged command differed from run to
    /// run, and only exit codes were compared.
    pub output_compared: bool,
    /// The remedies; empty if none applies. The winner comes first, then other recommended ones, those
    /// without a gain, those with another output, and those that were not tried.
    pub remedies: Vec<TriedRemedy>,
}

/// A remedy with what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriedRemedy {
    /// The remedy.
    pub remedy: RemedyId,
    /// What distinguishes it from other forms of the same remedy, such as `OMP_NUM_THREADS=2`.
    pub change: String,
    /// The command line with the remedy, ready to paste.
    pub command: String,
    /// What the remedy does, in a clause.
    pub effect: String,
    /// The symptoms that were found and that it may relieve; empty if it was tried for another reason.
    pub symptoms: Vec<Symptom>,
    /// What the trial has measured.
    #[serde(flatten)]
    pub measured: Measurement,
}
