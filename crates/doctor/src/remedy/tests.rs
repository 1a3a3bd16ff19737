//! Tests of the table: which remedies apply to which programs.

use std::collections::BTreeMap;

use contend_record::doctor::Evidence;

use super::*;

/// A program on a machine with two CPUs.
struct Program {
    record: DoctorRecord,
    words: Vec<OsString>,
    variables: BTreeMap<&'static str, &'static str>,
    tools: Tools,
}

impl Program {
    /// Returns a program that uses one of its CPUs, in a process with `threads` threads.
    fn new(words: &str, threads: usize, libraries: &[Library]) -> Self {
        let process = Process {
            pid: 1,
            command: words.to_owned(),
            threads,
            cpu_seconds: 10.0,
            libraries: Some(libraries.to_vec()),
            ..Process::default()
        };
        let record = DoctorRecord {
            observed_seconds: 10.0,
            cpu_seconds: 10.0,
            cpus: 2.0,
            processes: vec![process],
            ..DoctorRecord::default()
        };
        let tools = Tools {
            allocators: vec![(Library::Jemalloc, "/lib/libjemalloc.so.2".into())],
            has_stdbuf: true,
            cpu: Some(1),
        };
        let words = words.split(' ').map(OsString::from).collect();
        Self { record, words, variables: BTreeMap::new(), tools }
    }

    fn of(mut self, runtime: Runtime) -> Self {
        self.record.processes[0].runtime = Some(runtime);
        self
    }

    fn with(mut self, symptom: Symptom) -> Self {
        self.record.findings.push(Finding {
            symptom,
            message: String::new(),
            gain_share: Some(0.5),
            argument: String::new(),
            evidence: Vec::new(),
            threads: Vec::new(),
            remedy: String::new(),
            command: None,
            unless: String::new(),
        });
        self
    }

    fn set(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.insert(name, value);
        self
    }

    fn choose(&self, selection: &Selection) -> Vec<Proposal> {
        let variable = |name: &str| self.variables.get(name).map(|value| (*value).to_owned());
        let (record, words, tools) = (&self.record, self.words.as_slice(), &self.tools);
        super::choose(&Situation { record, words, variable: &variable, tools }, selection)
    }

    /// Returns the labels of the remedies for the findings.
    fn labels(&self) -> Vec<String> {
        let chosen = self.choose(&Selection::Findings);
        chosen.into_iter().map(|proposal| proposal.change.label).collect()
    }
}

const C: &[Library] = &[Library::Glibc];

#[test]
fn without_a_finding_nothing_is_proposed() {
    let openmp = Program::new("./a", 2, &[Library::Glibc, Library::Openmp]);
    assert_eq!(openmp.labels(), Vec::<String>::new());
    let all: Vec<RemedyId> =
        openmp.choose(&Selection::All).iter().map(|proposal| proposal.id).collect();
    let expected = [
        RemedyId::OpenmpThreads,
        RemedyId::OpenmpWaitPolicy,
        RemedyId::Allocator,
        RemedyId::MallocKeep,
        RemedyId::MallocArenas,
        RemedyId::OneCpu,
        RemedyId::StreamBuffers,
        RemedyId::MallocArenas,
    ];
    assert_eq!(all, expected);
}

#[test]
fn variables_of_a_library_are_set_only_if_it_is_there() {
    let crowded = |libraries: &[Library]| {
        Program::new("./a", 2, libraries).with(Symptom::Oversubscription).labels()
    };
    let openmp = ["OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=passive"];
    assert_eq!(crowded(&[Library::Openmp]), openmp);
    assert_eq!(crowded(&[Library::Openblas]), ["OPENBLAS_NUM_THREADS=1"]);
    assert_eq!(crowded(&[Library::Mkl]), ["MKL_NUM_THREADS=1"]);
    assert_eq!(crowded(&[Library::Rayon]), ["RAYON_NUM_THREADS=1"]);
    assert_eq!(crowded(&[Library::Tokio]), ["TOKIO_WORKER_THREADS=1"]);
    assert_eq!(crowded(&[]), Vec::<String>::new());
}

#[test]
fn a_number_of_threads_that_does_not_fit_is_replaced_without_a_finding() {
    let go = |value| Program::new("./a", 8, &[]).of(Runtime::Go).set("GOMAXPROCS", value).labels();
    assert_eq!(go("8"), ["GOMAXPROCS=2", "GOMAXPROCS=1"]);
    assert_eq!(go("1"), ["GOMAXPROCS=2"], "one CPU is idle");
    assert_eq!(go("2"), Vec::<String>::new());
    let mut busy = Program::new("./a", 8, &[]).of(Runtime::Go).set("GOMAXPROCS", "1");
    busy.record.cpu_seconds = 1.0;
    assert_eq!(busy.labels(), Vec::<String>::new(), "it waits for something else");
    busy.record.state_seconds.insert(ThreadState::Runnable, 5.0);
    assert_eq!(busy.labels(), ["GOMAXPROCS=2"], "it waits for a CPU");
}

#[test]
fn threads_that_the_program_has_chosen_are_limited() {
    let openmp = |threads| {
        let program = Program::new("./a", threads, &[Library::Openmp]);
        program.with(Symptom::Oversubscription).labels()[0].clone()
    };
    assert_eq!(openmp(16), "OMP_THREAD_LIMIT=2");
    assert_eq!(openmp(2), "OMP_NUM_THREADS=1");
    let given = Program::new("./a", 16, &[Library::Openmp]).set("OMP_NUM_THREADS", "16,2");
    assert_eq!(given.with(Symptom::Oversubscription).labels()[0], "OMP_NUM_THREADS=2");
}

#[test]
fn java_keeps_its_other_options() {
    let java = |words| Program::new(words, 20, C).of(Runtime::Java).with(Symptom::LockContention);
    let one = "-XX:ActiveProcessorCount=1";
    let plain = java("java A").labels();
    assert!(plain.contains(&format!("JAVA_TOOL_OPTIONS={one}")), "{plain:?}");
    let options = "-Xmx1g -XX:ActiveProcessorCount=2 -ea";
    let with_options = java("java A").set("JAVA_TOOL_OPTIONS", options).labels();
    assert!(with_options.contains(&format!("JAVA_TOOL_OPTIONS='-Xmx1g -ea {one}'")));
    let given = java("java -XX:ActiveProcessorCount=4 A").labels();
    assert!(!given.iter().any(|label| label.starts_with("JAVA")), "{given:?}");
}

#[test]
fn node_gets_a_pool_for_each_cpu() {
    let mut node = Program::new("node a.js", 11, C).of(Runtime::Node);
    assert_eq!(node.labels(), Vec::<String>::new(), "a pool of 4 fits 2 CPUs");
    (node.record.cpus, node.record.cpu_seconds) = (16.0, 39.0);
    assert_eq!(node.labels(), ["UV_THREADPOOL_SIZE=16", "UV_THREADPOOL_SIZE=32"]);
    let uneven = Program::new("node a.js", 11, C).of(Runtime::Node).with(Symptom::UnevenWork);
    assert_eq!(uneven.labels(), ["UV_THREADPOOL_SIZE=2"]);
}

#[test]
fn jobs_fit_the_cpus() {
    assert_eq!(Program::new("make all", 1, C).labels(), ["-j2"]);
    assert_eq!(Program::new("make -j8", 1, C).labels(), ["-j2", "-j1"]);
    assert_eq!(Program::new("xargs gzip", 1, C).labels(), ["-P2"]);
    let mut indirect = Program::new("sh build.sh", 1, C);
    assert_eq!(indirect.labels(), Vec::<String>::new());
    indirect.record.processes.push(Process { command: "make all".into(), ..Process::default() });
    assert_eq!(indirect.labels(), ["MAKEFLAGS=-j2"]);
    let waits = Program::new("parallel echo ::: 1", 1, C).with(Symptom::ForkStorm);
    assert_eq!(waits.labels(), ["-j1"]);
}

#[test]
fn memory_is_allocated_otherwise_only_in_programs_that_load_glibc() {
    let contended = |threads, libraries: &[Library]| {
        Program::new("./a", threads, libraries).with(Symptom::LockContention).labels()
    };
    let expected = [
        "LD_PRELOAD=/lib/libjemalloc.so.2",
        "MALLOC_ARENA_MAX=2",
        "taskset -c 1",
        "MALLOC_ARENA_MAX=1",
    ];
    assert_eq!(contended(4, C), expected);
    assert_eq!(contended(4, &[Library::Musl]), ["taskset -c 1"]);
    assert_eq!(contended(4, &[]), ["taskset -c 1"], "linked statically");
    assert_eq!(contended(4, &[Library::Glibc, Library::Jemalloc]), ["taskset -c 1"]);
    assert_eq!(contended(1, C), Vec::<String>::new(), "a lock between processes");
    let limited = Program::new("./a", 4, C).set("MALLOC_ARENA_MAX", "1");
    let limited = limited.set("LD_PRELOAD", "x.so").with(Symptom::LockContention).labels();
    assert_eq!(limited[..2], ["LD_PRELOAD=x.so:/lib/libjemalloc.so.2", "env -u MALLOC_ARENA_MAX"]);
}

#[test]
fn page_faults_are_a_matter_of_memory_but_a_disk_is_not() {
    let mut program = Program::new("./a", 1, C).with(Symptom::NotConcurrency);
    assert_eq!(program.labels(), Vec::<String>::new());
    let evidence = Evidence { name: "faults_per_second".into(), value: 1e5 };
    program.record.findings[0].evidence.push(evidence);
    let labels = program.labels();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(labels[1].starts_with("MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_="));
}

#[test]
fn tiny_writes_are_buffered_by_the_runtime_s_own_means() {
    let tiny = |program: Program| program.with(Symptom::TinyIo).labels();
    assert_eq!(tiny(Program::new("./a", 1, C)), ["stdbuf -i64K -o64K"]);
    assert_eq!(tiny(Program::new("./a", 1, &[Library::Musl])), Vec::<String>::new());
    let python = |words| Program::new(words, 1, C).of(Runtime::Python);
    assert_eq!(tiny(python("python3 a.py")), Vec::<String>::new());
    assert_eq!(tiny(python("python3 -B -u a.py")), ["without -u"]);
    assert_eq!(tiny(python("python3 a.py -u")), Vec::<String>::new(), "an option of the script");
    let by_variable = python("python3 a.py").set("PYTHONUNBUFFERED", "1");
    assert_eq!(tiny(by_variable), ["env -u PYTHONUNBUFFERED"]);
}

#[test]
fn only_builds_without_the_interpreter_lock_can_run_without_it() {
    let threads = |libraries: &[Library]| {
        let program = Program::new("python3.13t a.py", 4, libraries).of(Runtime::Python);
        program.with(Symptom::InterpreterLock).labels()
    };
    assert_eq!(threads(C), ["taskset -c 1"]);
    let free = threads(&[Library::Glibc, Library::FreeThreadedPython]);
    assert_eq!(free, ["PYTHON_GIL=0", "taskset -c 1"]);
}

#[test]
fn processes_that_hardly_work_or_only_share_a_pipe_do_not_count() {
    let mut program = Program::new("sh a.sh", 1, &[]).with(Symptom::Oversubscription);
    let other = |relation, cpu_seconds| Process {
        relation,
        cpu_seconds,
        threads: 9,
        libraries: Some(vec![Library::Openblas]),
        ..Process::default()
    };
    program.record.processes.push(other(Relation::SharesPipe, 9.0));
    program.record.processes.push(other(Relation::Descendant, 0.5));
    assert_eq!(program.labels(), Vec::<String>::new());
    program.record.processes.push(other(Relation::Descendant, 2.0));
    assert_eq!(program.labels(), ["OPENBLAS_NUM_THREADS=1"]);
}

#[test]
fn a_named_remedy_is_proposed_in_any_case() {
    let program = Program::new("./a", 1, &[]);
    let chosen = program.choose(&Selection::Named(vec![RemedyId::MklThreads]));
    assert_eq!(chosen.len(), 1);
    assert_eq!(
        (chosen[0].symptoms.len(), chosen[0].change.label.as_str()),
        (0, "MKL_NUM_THREADS=1")
    );
}

#[test]
fn names_are_those_of_the_ids() {
    for row in TABLE {
        let id: String = format!("{:?}", row.id)
            .chars()
            .flat_map(|c| {
                c.is_uppercase().then_some('-').into_iter().chain([c.to_ascii_lowercase()])
            })
            .collect();
        assert_eq!(id.trim_start_matches('-'), row.name);
        assert_eq!(TABLE.iter().filter(|other| other.id == row.id).count(), 1, "{}", row.name);
    }
}
