//! `units/memory`: what n units take while they wait.

use std::time::Duration;

use contend_record::lab::{Step, Unit};
use contend_record::parameters::Parameters;
use contend_sys::Pid;
use contend_sys::procfs::{MemInfo, Rollup, Status};
use rustix::process::getpid;

use super::parent::{self, Parent};
use super::park::{Processes, Threads};
use crate::experiment::never_hands_over;
use crate::experiment::{
    Attempt, Experiment, Facts, Sample, Sampling, Scope, Subject, SubjectError,
};
use crate::limits::{self, Kind};

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
    unit: Unit::Bytes,
    sampling: Sampling::Fixed(2),
    fit_over: Some("n"),
    cases,
    unavailable,
    hands_over: never_hands_over,
    subject: |parameters| Ok(Box::new(Memory::new(parameters)?)),
};

/// As in the document that says 100 MiB: what a server may have loaded before it forks.
const LARGE_PARENT: u64 = 100;

fn cases(scope: &Scope) -> Vec<Parameters> {
    let counts = scope.choose(&[100, 1000, 2000, 5000, 10_000], &[100, 500, 1000], &[2, 4]);
    // Each of these costs a copy of the parent's page tables, 200 KiB and milliseconds.
    let fewer = scope.choose(&[100, 200, 500], &[50, 100], &[2, 4]);
    let of = |kind: &'static str, n: &u64| Parameters::new().with("kind", kind).with("n", *n);
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
    let n = parameters.number("n").unwrap_or(0);
    let kind = kind(parameters);
    let tightest = limits::applying(kind, limits::usual_unit(kind)).into_iter().next()?.limit;
    if tightest.allows <= n {
        let limits::Limit { name, value, allows, .. } = tightest;
        return Some(format!("{name} = {value} allows {allows} more, and {n} are needed"));
    }
    parent::unavailable(parameters)
}

fn kind(parameters: &Parameters) -> Kind {
    if parameters.text("kind") == Some("thread") { Kind::Thread } else { Kind::Process }
}

struct Memory {
    kind: Kind,
    n: u64,
    parent: Parent,
    threads: Option<Threads>,
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

impl Memory {
    fn new(parameters: &Parameters) -> Result<Self, SubjectError> {
        let kind = kind(parameters);
        let n = parameters.number("n").unwrap_or(0);
        let parent = Parent::new(parameters)?;
        let threads = if kind == Kind::Thread { Some(Threads::new()?) } else { None };
        Ok(Self { kind, n, parent, threads })
    }

    /// Measures, and again if others have created or ended many tasks meanwhile: the counts of
    /// the whole machine then say nothing of ours.
    fn measure(&mut self) -> Result<(Snapshot, Snapshot, bool), SubjectError> {
        const TRIES: usize = 3;
        let mut last = None;
        for _ in 0..TRIES {
            settle();
            let (before, after) = self.measure_once()?;
            settle();
            let strangers = after.tasks.abs_diff(before.tasks + self.n);
            let disturbed = strangers > 2 + self.n / 50;
            last = Some((before, after, disturbed));
            if !disturbed {
                break;
            }
        }
        last.ok_or_else(|| SubjectError::Wrong("nothing was measured".to_owned()))
    }

    fn measure_once(&mut self) -> Result<(Snapshot, Snapshot), SubjectError> {
        let refused = |created: u64| {
            move |source| SubjectError::Refused {
                what: format!("create more than {created} units"),
                source,
            }
        };
        if let Some(threads) = &mut self.threads {
            let before = Snapshot::take(&[])?;
            for created in 0..self.n {
                threads.add().map_err(refused(created))?;
            }
            threads.await_all();
            let after = Snapshot::take(&[])?;
            threads.release()?;
            return Ok((before, after));
        }
        let mut processes = Processes::new()?;
        let before = Snapshot::take(&[])?;
        for created in 0..self.n {
            processes.add().map_err(refused(created))?;
        }
        processes.await_all()?;
        let after = Snapshot::take(processes.pids())?;
        processes.release()?;
        Ok((before, after))
    }
}

impl Subject for Memory {
    fn sample(&mut self, _: u64, _: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let (before, after, disturbed) = self.measure()?;
        let more = |of: fn(&Snapshot) -> u64| of(&after) as f64 - of(&before) as f64;
        let user = more(|s| s.own.pss + s.children.pss);
        let stacks = more(|s| s.machine.kernel_stacks);
        let tables = more(|s| s.page_tables + s.children_page_tables);
        let objects = more(|s| s.machine.slab_unreclaimable);
        let sum = |part: u64| part as f64;
        let mut facts = Facts::new();
        if disturbed {
            facts.insert("others_created_tasks".to_owned(), true.into());
        }
        Ok(Sample { facts, ..Sample::of(user + stacks + tables + objects) }
            .with("user", Unit::Bytes, user)
            .with("kernel_stacks", Unit::Bytes, stacks)
            .with("page_tables", Unit::Bytes, tables)
            .with("kernel_objects", Unit::Bytes, objects)
            .with("rss_sum", Unit::Bytes, sum(after.own.rss + after.children.rss))
            .with("pss_sum", Unit::Bytes, sum(after.own.pss + after.children.pss))
            .with("uss_sum", Unit::Bytes, sum(after.own.private + after.children.private)))
    }

    fn facts(&self) -> Facts {
        let mut facts = self.parent.facts();
        if let (Kind::Thread, Some(threads)) = (self.kind, &self.threads) {
            facts.insert("stack_bytes".to_owned(), (threads.stack_bytes() as u64).into());
        }
        facts
    }
}
