//! `units/memory`: the memory of n waiting units.

use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::Pid;
use contend_sys::procfs::{MemInfo, Rollup, Status};
use rustix::process::getpid;

use super::parent::{self, Parent};
use super::parked::{self, ParkedUnits};
use crate::engine::experiment::never_alternates_cpus;
use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::support::limits::{self, UnitKind};

/// The definition of `units/memory`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/memory",
    summary: "memory of n idle processes or threads, and of each one by a linear fit",
    about: "Creates n units that announce themselves and wait, then reads their memory: the \
        proportional set size of the processes (PSS: a page shared by k processes counts as 1/k in \
        each), the growth of the creator's, and the kernel's memory for them: stacks and objects \
        (KernelStack and SUnreclaim of /proc/meminfo, which cover the whole machine) and page \
        tables (VmPTE of each process). The value is the sum, without mapped files, whose pages \
        unrelated processes may share. Also recorded: `rss_sum`, the sum that a process list shows, \
        in which a shared page counts once for each process; `pss_sum`; and `uss_sum`, pages that belong to one process only. A line fitted over n gives the bytes \
        of one unit. Address randomisation changes where the program and its libraries are for \
        every creator, and so the number of page tables that a fork copies: a few kB of each \
        process vary between runs.",
    view: View::UnitMemory,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::N),
    settings: &[],
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE
        .with_cost_ms(50, 150)
        .with_ns_per(&[("n", 500_000), ("parent_mib", 15_000_000)]),
    subject: |parameters| Ok(Box::new(UnitMemory::new(parameters)?)),
};

/// Size of the parent in the workshop on processes and threads, in MiB. A server may have loaded as
/// much before it forks.
const LARGE_PARENT_MIB: u64 = 100;

fn cases(scope: &Scope) -> Vec<Parameters> {
    let counts = scope.choose(&[100, 1000, 2000, 5000, 10_000], &[100, 500, 1000], &[2, 4]);
    // Each fork copies the parent's page tables, which takes 200 KiB and a few milliseconds.
    let fewer = scope.choose(&[100, 200, 500], &[50, 100], &[2, 4]);
    let of =
        |kind: &'static str, n: &u64| Parameters::new().with(names::KIND, kind).with(names::N, *n);
    let kinds = ["process", "thread"].into_iter();
    let large = |n| of("process", n).with(parent::PARENT_MIB, LARGE_PARENT_MIB);
    kinds
        .flat_map(|kind| counts.iter().map(move |n| of(kind, n)))
        .chain(fewer.iter().map(large))
        .collect()
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    if let Some(reason) = parent::memory_unreadable() {
        return Some(reason);
    }
    let n = parameters.number(names::N).unwrap_or(0);
    limits::shortage(kind(parameters), n).or_else(|| parent::unavailable(parameters))
}

fn kind(parameters: &Parameters) -> UnitKind {
    if parameters.text(names::KIND) == Some("thread") {
        UnitKind::Thread
    } else {
        UnitKind::Process
    }
}

struct UnitMemory {
    n: u64,
    parent: Parent,
    parked: Box<dyn ParkedUnits>,
}

/// Memory of this process, of its children and of the kernel at one time, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct MemorySnapshot {
    machine: MemInfo,
    own: Rollup,
    page_tables: u64,
    /// Number of tasks on the whole machine, or 0 if it is not known.
    tasks: u64,
    children: Rollup,
    children_page_tables: u64,
}

impl MemorySnapshot {
    /// Reads a snapshot of this process, its `children` and the kernel. Kernel memory comes first,
    /// because reading `/proc` of a process allocates kernel memory. Fails if a child cannot be
    /// read.
    fn read(children: &[Pid]) -> Result<Self, SubjectError> {
        let own = getpid();
        let mut snapshot = Self {
            machine: MemInfo::read(),
            tasks: limits::tasks().unwrap_or(0),
            own: Rollup::of(own).unwrap_or_default(),
            page_tables: Status::of(own).unwrap_or_default().page_tables,
            ..Self::default()
        };
        for &child in children {
            let rollup = Rollup::of(child).context("read the memory of a process")?;
            snapshot.children.rss += rollup.rss;
            snapshot.children.pss += rollup.pss;
            snapshot.children.pss_file += rollup.pss_file;
            snapshot.children.private += rollup.private;
            let status = Status::of(child).context("read the page tables of a process")?;
            snapshot.children_page_tables += status.page_tables;
        }
        Ok(snapshot)
    }
}

/// Waits up to half a second until the kernel's memory for tasks no longer shrinks. The kernel
/// frees the memory of ended tasks with a delay and in batches.
fn wait_for_reclaim() {
    const POLL_INTERVAL: Duration = Duration::from_millis(15);
    const MAX_POLLS: usize = 30;
    let mut before = MemInfo::read().of_tasks();
    for _ in 0..MAX_POLLS {
        std::thread::sleep(POLL_INTERVAL);
        let now = MemInfo::read().of_tasks();
        if now + (256 << 10) >= before {
            break;
        }
        before = now;
    }
}

/// Memory of n units while they were parked, and the times to create and to end them.
pub(super) struct ParkedMeasurement {
    n: u64,
    before: MemorySnapshot,
    waiting: MemorySnapshot,
    /// Whether the number of other tasks on the machine changed by more than 2 plus 2% of the units
    /// that are tasks. If so, the kernel memory of the whole machine does not describe the units.
    disturbed: bool,
    /// Time from the creation of the first unit until all units wait.
    pub create_time: Duration,
    /// Time from the release of the units until all have ended.
    pub end_time: Duration,
}

impl ParkedMeasurement {
    /// Measures `n` units, with up to two retries if other programs disturbed the measurement. The
    /// result of the last attempt is returned even if it was disturbed.
    pub fn measure(parked: &mut dyn ParkedUnits, n: u64) -> Result<Self, SubjectError> {
        const MAX_ATTEMPTS: usize = 3;
        parked.reserve(n)?;
        for _ in 1..MAX_ATTEMPTS {
            let measured = Self::measure_once(parked, n)?;
            if !measured.disturbed {
                return Ok(measured);
            }
        }
        Self::measure_once(parked, n)
    }

    fn measure_once(parked: &mut dyn ParkedUnits, n: u64) -> Result<Self, SubjectError> {
        wait_for_reclaim();
        let before = MemorySnapshot::read(&[])?;
        let begun = Instant::now();
        parked.add(n).map_err(|source| {
            let what = format!("create more than {} units", parked.count());
            SubjectError::Syscall { what, source }
        })?;
        parked.await_all()?;
        let create_time = begun.elapsed();
        let waiting = MemorySnapshot::read(parked.pids())?;
        let begun = Instant::now();
        parked.release()?;
        let end_time = begun.elapsed();
        wait_for_reclaim();
        let tasks = if parked.are_tasks() { n } else { 0 };
        let unrelated_tasks = waiting.tasks.abs_diff(before.tasks + tasks);
        let disturbed = unrelated_tasks > 2 + tasks / 50;
        Ok(Self { n, before, waiting, disturbed, create_time, end_time })
    }

    /// Returns a sample with the memory of all units and its composition.
    pub fn sample(&self) -> Sample {
        let Self { before, waiting, .. } = self;
        let growth = |of: fn(&MemorySnapshot) -> u64| of(waiting) as f64 - of(before) as f64;
        let user = growth(|s| s.own.pss_without_files() + s.children.pss_without_files());
        let stacks = growth(|s| s.machine.kernel_stacks);
        let tables = growth(|s| s.page_tables + s.children_page_tables);
        let objects = growth(|s| s.machine.slab_unreclaimable);
        let mut facts = Facts::new();
        if self.disturbed {
            facts.insert("others_created_tasks".to_owned(), true.into());
        }
        Sample { facts, ..Sample::of(user + stacks + tables + objects) }
            .with("user", Unit::Bytes, user)
            .with("kernel_stacks", Unit::Bytes, stacks)
            .with("page_tables", Unit::Bytes, tables)
            .with("kernel_objects", Unit::Bytes, objects)
    }

    /// Returns the given time divided by the number of units, in nanoseconds.
    pub fn per_unit_ns(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.n.max(1) as f64
    }
}

impl UnitMemory {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let n = parameters.number(names::N).unwrap_or(0);
        let parent = Parent::new(parameters)?;
        Ok(Self { n, parent, parked: parked::empty_set(kind(parameters))? })
    }
}

impl Subject for UnitMemory {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let measured = ParkedMeasurement::measure(self.parked.as_mut(), self.n)?;
        let MemorySnapshot { own, children, .. } = measured.waiting;
        Ok(measured
            .sample()
            .with("rss_sum", Unit::Bytes, (own.rss + children.rss) as f64)
            .with("pss_sum", Unit::Bytes, (own.pss + children.pss) as f64)
            .with("uss_sum", Unit::Bytes, (own.private + children.private) as f64))
    }

    fn facts(&self) -> Facts {
        let mut facts = self.parent.facts();
        if self.parked.stack_bytes() > 0 {
            facts.insert("stack_bytes".to_owned(), self.parked.stack_bytes().into());
        }
        facts
    }
}
