//! `units/memory`: what n units take while they wait.

use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::Pid;
use contend_sys::procfs::{MemInfo, Rollup, Status};
use rustix::process::getpid;

use super::parent::{self, Parent};
use super::park::{self, Park};
use crate::engine::experiment::never_hands_over;
use crate::engine::experiment::{
    Attempt, Demands, Experiment, Facts, Fit, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::support::limits::{self, Kind};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/memory",
    summary: "memory of n processes or threads that wait, and of one by a line through n",
    about: "Creates n units, each of which tells that it is there and then waits, and reads what \
            they take: the processes' proportional sets (PSS: a page that k processes share \
            counts for a kth of it in each), what was added to the creator's, and what the \
            kernel keeps for them: its stacks and objects (KernelStack and SUnreclaim of \
            /proc/meminfo, which count the whole machine) and page tables (VmPTE of each). The \
            value is all of it together. Beside it stand `rss_sum`, what a process list adds up \
            to, in which a page that all share counts once for each; `pss_sum`; and `uss_sum`, \
            pages that one process alone has. The line through the values over n gives the bytes \
            of one unit, whatever is there without any. Where the program and its libraries lie \
            is drawn anew for every process that creates, and with it the number of page tables \
            that a copy needs: some kB of each process differ from run to run.",
    view: View::UnitMemory,
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit: Fit::Line(names::N),
    settings: &[],
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE
        .lasting(50, 150)
        .and_ns_per(&[("n", 500_000), ("parent_mib", 15_000_000)]),
    subject: |parameters| Ok(Box::new(Memory::new(parameters)?)),
};

/// As in the document that says 100 MiB: what a server may have loaded before it forks.
const LARGE_PARENT: u64 = 100;

fn cases(scope: &Scope) -> Vec<Parameters> {
    let counts = scope.choose(&[100, 1000, 2000, 5000, 10_000], &[100, 500, 1000], &[2, 4]);
    // Each of these costs a copy of the parent's page tables, 200 KiB and milliseconds.
    let fewer = scope.choose(&[100, 200, 500], &[50, 100], &[2, 4]);
    let of =
        |kind: &'static str, n: &u64| Parameters::new().with(names::KIND, kind).with(names::N, *n);
    let kinds = ["process", "thread"].into_iter();
    let large = |n| of("process", n).with(parent::SIZE, LARGE_PARENT);
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
    limits::not_so_many(kind(parameters), n).or_else(|| parent::unavailable(parameters))
}

fn kind(parameters: &Parameters) -> Kind {
    if parameters.text(names::KIND) == Some("thread") { Kind::Thread } else { Kind::Process }
}

struct Memory {
    n: u64,
    parent: Parent,
    park: Box<dyn Park>,
}

/// What there was at a moment.
#[derive(Debug, Clone, Copy, Default)]
struct Snapshot {
    machine: MemInfo,
    own: Rollup,
    page_tables: u64,
    /// Tasks of the whole machine.
    tasks: u64,
    children: Rollup,
    children_page_tables: u64,
}

impl Snapshot {
    /// Reads it. The machine first: to look at processes takes kernel memory itself.
    fn take(children: &[Pid]) -> Result<Self, SubjectError> {
        let own = getpid();
        let mut taken = Self {
            machine: MemInfo::read(),
            tasks: limits::tasks().unwrap_or(0),
            own: Rollup::of(own).unwrap_or_default(),
            page_tables: Status::of(own).unwrap_or_default().page_tables,
            ..Self::default()
        };
        for &child in children {
            let rollup = Rollup::of(child).attempt("read the memory of a process")?;
            taken.children.rss += rollup.rss;
            taken.children.pss += rollup.pss;
            taken.children.private += rollup.private;
            let status = Status::of(child).attempt("read the page tables of a process")?;
            taken.children_page_tables += status.page_tables;
        }
        Ok(taken)
    }
}

/// Waits until the kernel has given back what ended processes had: it does so in batches,
/// some time later.
fn settle() {
    const STEP: Duration = Duration::from_millis(15);
    const STEPS: usize = 30;
    let mut before = MemInfo::read().of_tasks();
    for _ in 0..STEPS {
        std::thread::sleep(STEP);
        let now = MemInfo::read().of_tasks();
        if now + (256 << 10) >= before {
            break;
        }
        before = now;
    }
}

/// What n units have taken while they waited, and how long it took to create and to end them.
pub(super) struct Waited {
    n: u64,
    before: Snapshot,
    waiting: Snapshot,
    /// Others have created or ended tasks meanwhile: the counts of the whole machine then say
    /// nothing of these units.
    disturbed: bool,
    /// From none to all of them waiting, and from letting them go to all having ended.
    pub created: Duration,
    pub ended: Duration,
}

impl Waited {
    /// Measures, and again if it was disturbed.
    pub fn measure(park: &mut dyn Park, n: u64) -> Result<Self, SubjectError> {
        const TRIES: usize = 3;
        park.reserve(n)?;
        for _ in 1..TRIES {
            let waited = Self::measure_once(park, n)?;
            if !waited.disturbed {
                return Ok(waited);
            }
        }
        Self::measure_once(park, n)
    }

    fn measure_once(park: &mut dyn Park, n: u64) -> Result<Self, SubjectError> {
        settle();
        let before = Snapshot::take(&[])?;
        let begun = Instant::now();
        park.add(n).map_err(|source| {
            let what = format!("create more than {} units", park.count());
            SubjectError::Refused { what, source }
        })?;
        park.await_all()?;
        let created = begun.elapsed();
        let waiting = Snapshot::take(park.pids())?;
        let begun = Instant::now();
        park.release()?;
        let ended = begun.elapsed();
        settle();
        let tasks = if park.are_tasks() { n } else { 0 };
        let strangers = waiting.tasks.abs_diff(before.tasks + tasks);
        let disturbed = strangers > 2 + tasks / 50;
        Ok(Self { n, before, waiting, disturbed, created, ended })
    }

    /// The memory of all of them, and what it is made of.
    pub fn sample(&self) -> Sample {
        let Self { before, waiting, .. } = self;
        let more = |of: fn(&Snapshot) -> u64| of(waiting) as f64 - of(before) as f64;
        let user = more(|s| s.own.pss + s.children.pss);
        let stacks = more(|s| s.machine.kernel_stacks);
        let tables = more(|s| s.page_tables + s.children_page_tables);
        let objects = more(|s| s.machine.slab_unreclaimable);
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

    /// Time of one of them.
    pub fn each(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.n.max(1) as f64
    }
}

impl Memory {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let n = parameters.number(names::N).unwrap_or(0);
        let parent = Parent::new(parameters)?;
        Ok(Self { n, parent, park: park::of_kind(kind(parameters))? })
    }
}

impl Subject for Memory {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let waited = Waited::measure(self.park.as_mut(), self.n)?;
        let Snapshot { own, children, .. } = waited.waiting;
        Ok(waited
            .sample()
            .with("rss_sum", Unit::Bytes, (own.rss + children.rss) as f64)
            .with("pss_sum", Unit::Bytes, (own.pss + children.pss) as f64)
            .with("uss_sum", Unit::Bytes, (own.private + children.private) as f64))
    }

    fn facts(&self) -> Facts {
        let mut facts = self.parent.facts();
        if self.park.stack_bytes() > 0 {
            facts.insert("stack_bytes".to_owned(), self.park.stack_bytes().into());
        }
        facts
    }
}
