//! The table of remedies. In each row, the functions before the table that it names do what several rows
//! have in common.

use std::ffi::OsString;

use contend_record::doctor::{Runtime, Symptom};
use contend_record::remedy::{Library, RemedyId};

use super::jobs::{self, MAKE, PARALLEL, XARGS};
use super::{Change, Count, Row, Situation};

/// Symptoms that another number of threads may relieve.
const BY_THREADS: &[Symptom] = &[
    Symptom::Oversubscription,
    Symptom::CpuLimit,
    Symptom::Spinning,
    Symptom::LockContention,
    Symptom::SerialSection,
    Symptom::UnevenWork,
    Symptom::LockStep,
];
/// Symptoms that another number of processes may relieve.
const BY_JOBS: &[Symptom] = &[
    Symptom::Oversubscription,
    Symptom::CpuLimit,
    Symptom::SerialSection,
    Symptom::UnevenWork,
    Symptom::ForkStorm,
];
/// Symptoms that another pool for blocking calls may relieve.
const BY_POOL: &[Symptom] = &[
    Symptom::Oversubscription,
    Symptom::CpuLimit,
    Symptom::LockContention,
    Symptom::SerialSection,
    Symptom::UnevenWork,
];

/// Number of threads in the pool of Node.js without a setting.
const NODE_POOL_THREADS: usize = 4;
/// Largest value of the variable that sets the size from which glibc maps memory for a request, in bytes.
const LARGEST_MMAP_THRESHOLD: &str = "33554432";
/// Size of free memory above which glibc returns it to the kernel, in bytes: more than programs have.
const LARGE_TRIM_THRESHOLD: &str = "1099511627776";

/// Returns the numbers of threads to try instead of the present one: as many as CPUs, one for each core
/// with two CPUs, and a single one.
fn counts(situation: &Situation<'_>, present: Count) -> Vec<usize> {
    let cpus = situation.cpus();
    let mut counts = vec![cpus];
    if cpus >= 4 {
        counts.push(cpus / 2);
    }
    if cpus > 1 {
        counts.push(1);
    }
    counts.retain(
        |&count| !matches!(present, Count::Given(now) | Count::Default(now) if now == count),
    );
    counts
}

/// Returns the number of threads that a variable gives; without it, a program has one for each CPU.
fn by_cpus(situation: &Situation<'_>, variable: &str) -> Count {
    situation.number(variable, Count::Default(situation.cpus_by_affinity()))
}

/// Returns changes of a variable with a number of threads.
fn numbers(situation: &Situation<'_>, variable: &'static str) -> Vec<Change> {
    let counts = counts(situation, by_cpus(situation, variable)).into_iter();
    counts.map(|count| Change::set(variable, count.to_string())).collect()
}

/// Returns changes of the number of `OpenMP` threads. A program that starts more threads than the
/// variable gives has chosen the number itself, which only a limit affects.
fn openmp(situation: &Situation<'_>) -> Vec<Change> {
    let mut changes = numbers(situation, "OMP_NUM_THREADS");
    let present = match by_cpus(situation, "OMP_NUM_THREADS") {
        Count::Given(count) | Count::Default(count) => count,
        Count::Unknown => return changes,
    };
    let limit = situation.cpus().to_string();
    if situation.threads() > present.max(situation.cpus())
        && situation.value("OMP_THREAD_LIMIT").is_none()
    {
        changes.insert(0, Change::set("OMP_THREAD_LIMIT", limit));
    }
    changes
}

fn pool_of_node(situation: &Situation<'_>) -> Vec<Change> {
    let cpus = situation.cpus();
    let present = situation.number("UV_THREADPOOL_SIZE", Count::Default(NODE_POOL_THREADS));
    let is_other = |count: &usize| !matches!(present, Count::Given(now) | Count::Default(now) if now == *count);
    let counts = [cpus, 2 * cpus].into_iter().filter(is_other);
    counts.map(|count| Change::set("UV_THREADPOOL_SIZE", count.to_string())).collect()
}

const JAVA_OPTION: &str = "-XX:ActiveProcessorCount=";

/// Returns the number of CPUs for which a Java virtual machine sizes its pools. Options on its command
/// line take precedence over the variable.
fn cpus_of_java(situation: &Situation<'_>) -> Count {
    let options = situation.value("JAVA_TOOL_OPTIONS").unwrap_or_default();
    let words = situation.words.iter().filter_map(|word| word.to_str());
    let mut given =
        options.split_whitespace().chain(words).filter_map(|w| w.strip_prefix(JAVA_OPTION));
    match given.next_back() {
        Some(count) => count.parse().map_or(Count::Unknown, Count::Given),
        None => Count::Default(situation.cpus()),
    }
}

fn java(situation: &Situation<'_>) -> Vec<Change> {
    let is_in_words = |word: &OsString| word.to_str().is_some_and(|w| w.starts_with(JAVA_OPTION));
    if situation.words.iter().any(is_in_words) {
        return Vec::new();
    }
    let others = situation.value("JAVA_TOOL_OPTIONS").unwrap_or_default();
    let others: Vec<&str> =
        others.split_whitespace().filter(|word| !word.starts_with(JAVA_OPTION)).collect();
    let change = |count: usize| {
        let option = format!("{JAVA_OPTION}{count}");
        let options = others.iter().copied().chain([option.as_str()]).collect::<Vec<_>>().join(" ");
        Change::set("JAVA_TOOL_OPTIONS", options)
    };
    counts(situation, cpus_of_java(situation)).into_iter().map(change).collect()
}

/// Returns whether a process of the program is `make`.
fn has_make(situation: &Situation<'_>) -> bool {
    let is_make = |command: &str| {
        let program = command.split(' ').next().unwrap_or("");
        MAKE.programs.contains(&program.rsplit('/').next().unwrap_or(program))
    };
    MAKE.is_of(situation.words) || situation.record.processes.iter().any(|p| is_make(&p.command))
}

fn jobs_of_make(situation: &Situation<'_>) -> Count {
    let flags = situation.value("MAKEFLAGS").unwrap_or_default();
    let in_flags = jobs::in_makeflags(&flags, Count::Default(1));
    if MAKE.is_of(situation.words) { MAKE.count(situation.words, in_flags) } else { in_flags }
}

/// Returns changes of the number of jobs of `make`: in its words or, if something else starts it, in
/// its variable.
fn make(situation: &Situation<'_>) -> Vec<Change> {
    let flags = situation.value("MAKEFLAGS").unwrap_or_default();
    let change = |count: usize| {
        if MAKE.is_of(situation.words) {
            Change::words(MAKE.with_jobs(situation.words, count), format!("-j{count}"))
        } else {
            Change::set("MAKEFLAGS", jobs::makeflags_with_jobs(&flags, count))
        }
    };
    counts(situation, jobs_of_make(situation)).into_iter().map(change).collect()
}

/// Returns changes of the number of jobs in the words of the command; none for another command.
fn jobs_in_words(
    situation: &Situation<'_>,
    syntax: jobs::Syntax,
    option: char,
    without: Count,
) -> Vec<Change> {
    if !syntax.is_of(situation.words) {
        return Vec::new();
    }
    let counts = counts(situation, syntax.count(situation.words, without)).into_iter();
    let change = |count: usize| {
        let words = syntax.with_jobs(situation.words, count);
        Change::words(words, format!("-{option}{count}"))
    };
    counts.map(change).collect()
}

/// Returns changes of the number of arenas. Each thread has an arena of its own until there are eight for
/// each CPU.
fn arenas(situation: &Situation<'_>) -> Vec<Change> {
    const VARIABLE: &str = "MALLOC_ARENA_MAX";
    let is_set = situation.value(VARIABLE).is_some();
    let present = situation.number(VARIABLE, Count::Unknown);
    let counts = counts(situation, present).into_iter();
    let numbers = counts.map(|count| Change::set(VARIABLE, count.to_string()));
    is_set.then(|| Change::unset(VARIABLE)).into_iter().chain(numbers).collect()
}

fn keep_memory(situation: &Situation<'_>) -> Vec<Change> {
    const VARIABLES: [(&str, &str); 2] = [
        ("MALLOC_MMAP_THRESHOLD_", LARGEST_MMAP_THRESHOLD),
        ("MALLOC_TRIM_THRESHOLD_", LARGE_TRIM_THRESHOLD),
    ];
    if VARIABLES.iter().any(|(name, _)| situation.value(name).is_some()) {
        return Vec::new();
    }
    let [mmap, trim] = VARIABLES.map(|(name, value)| Change::set(name, value));
    vec![mmap.and(trim)]
}

/// Returns a change for each installed allocator that the program does not have.
fn preload(situation: &Situation<'_>) -> Vec<Change> {
    let others = situation.value("LD_PRELOAD");
    let change = |file: &std::path::Path| {
        let file = file.to_str()?;
        let files = others.as_ref().map_or(file.to_owned(), |others| format!("{others}:{file}"));
        Some(Change::set("LD_PRELOAD", files))
    };
    let installed = situation.tools.allocators.iter();
    let others = installed.filter(|(library, _)| !situation.has(*library));
    others.filter_map(|(_, file)| change(file)).collect()
}

/// Returns whether a program has several threads or processes that may share one CPU.
fn has_several(situation: &Situation<'_>) -> bool {
    situation.cpus() > 1 && (situation.threads() > 1 || situation.workers().len() > 1)
}

fn stream_buffers(situation: &Situation<'_>) -> Vec<Change> {
    const SIZE: &str = "64K";
    if !situation.tools.has_stdbuf {
        return Vec::new();
    }
    let options = [format!("-i{SIZE}"), format!("-o{SIZE}")];
    let label = format!("stdbuf {}", options.join(" "));
    let words = std::iter::once(OsString::from("stdbuf")).chain(options.map(OsString::from));
    vec![Change::words(words.chain(situation.words.iter().cloned()).collect(), label)]
}

/// Returns changes that remove what makes Python write each line or piece at once.
fn python_buffers(situation: &Situation<'_>) -> Vec<Change> {
    let by_variable =
        situation.value("PYTHONUNBUFFERED").map(|_| Change::unset("PYTHONUNBUFFERED"));
    let is_python = situation.words.first().is_some_and(|word| {
        word.to_str().is_some_and(|w| w.rsplit('/').next().unwrap_or(w).starts_with("python"))
    });
    // The options of Python end at its script, which has options of its own.
    let options = situation.words.iter().skip(1).take_while(|word| {
        word.to_str().is_some_and(|w| w.starts_with('-') && !["-c", "-m", "-"].contains(&w))
    });
    let place = options.clone().position(|word| word.to_str() == Some("-u"));
    let by_option = place.filter(|_| is_python).map(|place| {
        let mut words = situation.words.to_vec();
        words.remove(place + 1);
        Change::words(words, "without -u")
    });
    by_variable.into_iter().chain(by_option).collect()
}

/// All remedies. Those that are most specific to a program come first.
pub const TABLE: &[Row] = &[
    Row {
        id: RemedyId::PythonGil,
        name: "python-gil",
        effect: "runs without the global interpreter lock, even if an extension module asks for it",
        suits: |situation| situation.has(Library::FreeThreadedPython),
        relieves: &[Symptom::InterpreterLock],
        count: |_| Count::Unknown,
        changes: |situation| match situation.value("PYTHON_GIL").as_deref() {
            Some("0") => Vec::new(),
            _ => vec![Change::set("PYTHON_GIL", "0")],
        },
    },
    Row {
        id: RemedyId::OpenmpThreads,
        name: "openmp-threads",
        effect: "sets the number of OpenMP threads",
        suits: |situation| situation.has(Library::Openmp),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "OMP_NUM_THREADS"),
        changes: openmp,
    },
    Row {
        id: RemedyId::OpenmpWaitPolicy,
        name: "openmp-wait-policy",
        effect: "lets OpenMP threads sleep while they wait for others",
        suits: |situation| situation.has(Library::Openmp),
        relieves: &[Symptom::Spinning, Symptom::Oversubscription, Symptom::CpuLimit],
        count: |_| Count::Unknown,
        changes: |situation| match situation.value("OMP_WAIT_POLICY") {
            Some(policy) if policy.eq_ignore_ascii_case("passive") => Vec::new(),
            _ => vec![Change::set("OMP_WAIT_POLICY", "passive")],
        },
    },
    Row {
        id: RemedyId::OpenblasThreads,
        name: "openblas-threads",
        effect: "sets the number of threads of OpenBLAS",
        suits: |situation| situation.has(Library::Openblas),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "OPENBLAS_NUM_THREADS"),
        changes: |situation| numbers(situation, "OPENBLAS_NUM_THREADS"),
    },
    Row {
        id: RemedyId::MklThreads,
        name: "mkl-threads",
        effect: "sets the number of threads of the Math Kernel Library",
        suits: |situation| situation.has(Library::Mkl),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "MKL_NUM_THREADS"),
        changes: |situation| numbers(situation, "MKL_NUM_THREADS"),
    },
    Row {
        id: RemedyId::GoThreads,
        name: "go-threads",
        effect: "sets the number of threads that run Go code at the same time",
        suits: |situation| situation.runs(Runtime::Go),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "GOMAXPROCS"),
        changes: |situation| numbers(situation, "GOMAXPROCS"),
    },
    Row {
        id: RemedyId::RayonThreads,
        name: "rayon-threads",
        effect: "sets the number of threads of Rayon",
        suits: |situation| situation.has(Library::Rayon),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "RAYON_NUM_THREADS"),
        changes: |situation| numbers(situation, "RAYON_NUM_THREADS"),
    },
    Row {
        id: RemedyId::TokioThreads,
        name: "tokio-threads",
        effect: "sets the number of worker threads of Tokio",
        suits: |situation| situation.has(Library::Tokio),
        relieves: BY_THREADS,
        count: |situation| by_cpus(situation, "TOKIO_WORKER_THREADS"),
        changes: |situation| numbers(situation, "TOKIO_WORKER_THREADS"),
    },
    Row {
        id: RemedyId::NodeThreads,
        name: "node-threads",
        effect: "sets the number of threads of Node.js for files, name look-ups, crypto and zlib",
        suits: |situation| situation.runs(Runtime::Node),
        relieves: BY_POOL,
        count: |situation| {
            situation.number("UV_THREADPOOL_SIZE", Count::Default(NODE_POOL_THREADS))
        },
        changes: pool_of_node,
    },
    Row {
        id: RemedyId::JavaCpus,
        name: "java-cpus",
        effect: "sets the number of CPUs for which the Java virtual machine sizes its pools",
        suits: |situation| situation.runs(Runtime::Java),
        relieves: BY_THREADS,
        count: cpus_of_java,
        changes: java,
    },
    Row {
        id: RemedyId::MakeJobs,
        name: "make-jobs",
        effect: "sets the number of commands that make runs at the same time",
        suits: has_make,
        relieves: BY_JOBS,
        count: jobs_of_make,
        changes: make,
    },
    Row {
        id: RemedyId::XargsJobs,
        name: "xargs-jobs",
        effect: "sets the number of processes that xargs runs at the same time",
        suits: |situation| XARGS.is_of(situation.words),
        relieves: BY_JOBS,
        count: |situation| XARGS.count(situation.words, Count::Default(1)),
        changes: |situation| jobs_in_words(situation, XARGS, 'P', Count::Default(1)),
    },
    Row {
        id: RemedyId::ParallelJobs,
        name: "parallel-jobs",
        effect: "sets the number of jobs that parallel runs at the same time",
        suits: |situation| PARALLEL.is_of(situation.words),
        relieves: BY_JOBS,
        count: |situation| {
            let cpus = Count::Default(situation.cpus_by_affinity());
            PARALLEL.count(situation.words, cpus)
        },
        changes: |situation| {
            let cpus = Count::Default(situation.cpus_by_affinity());
            jobs_in_words(situation, PARALLEL, 'j', cpus)
        },
    },
    Row {
        id: RemedyId::Allocator,
        name: "allocator",
        effect: "loads another memory allocator before the program",
        suits: |situation| {
            situation.allocates_by_glibc(2)
                || situation.has_page_faults() && situation.allocates_by_glibc(1)
        },
        relieves: &[Symptom::LockContention, Symptom::NotConcurrency],
        count: |_| Count::Unknown,
        changes: preload,
    },
    Row {
        id: RemedyId::MallocKeep,
        name: "malloc-keep",
        effect: "lets the memory allocator of glibc keep freed memory",
        suits: |situation| situation.allocates_by_glibc(1),
        relieves: &[Symptom::NotConcurrency],
        count: |_| Count::Unknown,
        changes: keep_memory,
    },
    Row {
        id: RemedyId::MallocArenas,
        name: "malloc-arenas",
        effect: "sets the number of arenas of the memory allocator of glibc",
        suits: |situation| situation.allocates_by_glibc(2),
        relieves: &[Symptom::LockContention],
        count: |_| Count::Unknown,
        changes: arenas,
    },
    Row {
        id: RemedyId::OneCpu,
        name: "one-cpu",
        effect: "keeps all threads on one CPU, so that a hand-over does not wake another CPU",
        suits: has_several,
        relieves: &[Symptom::LockStep, Symptom::LockContention, Symptom::InterpreterLock],
        count: |_| Count::Unknown,
        changes: |situation| situation.tools.cpu.map(Change::one_cpu).into_iter().collect(),
    },
    Row {
        id: RemedyId::PythonBuffers,
        name: "python-buffers",
        effect: "lets Python collect its output in a buffer",
        suits: |situation| situation.runs(Runtime::Python),
        relieves: &[Symptom::TinyIo],
        count: |_| Count::Unknown,
        changes: python_buffers,
    },
    Row {
        id: RemedyId::StreamBuffers,
        name: "stream-buffers",
        effect: "gives the C streams of the program larger buffers",
        suits: |situation| {
            let is_c = |process: &&contend_record::doctor::Process| {
                process.runtime.is_none() && super::has(process, Library::Glibc)
            };
            situation.workers().iter().any(is_c)
        },
        relieves: &[Symptom::TinyIo],
        count: |_| Count::Unknown,
        changes: stream_buffers,
    },
];
