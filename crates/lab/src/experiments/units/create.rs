//! `units/create`: creating short-lived units and waiting for all of them.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::child::{ExitStatus, reap};
use contend_sys::process::{
    ChildStack, ParentMode, SharingChild, execute, fork, pointers, posix_spawn,
};
use contend_sys::thread::{Attributes, Job, start};
use contend_sys::{Pid, cpu};

use super::null_write::{null_device, write_one_byte};
use super::parent::{self, Parent};
use super::pool::{ProcessPool, ThreadPool};
use super::tiny::{self, TinyProgram};
use crate::engine::cost::Cost;
use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Fit, Sampling, Scope, Subject, SubjectError,
};
use crate::engine::timing::Timed;

/// The definition of `units/create`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/create",
    summary: "time to create n processes or threads and wait for all of them, per unit",
    about: "Creates n units, each of which writes one byte to /dev/null and ends, and waits for \
        all of them. The wall time and the CPU time of the creator (`cpu_self`) and of the \
        children (`cpu_children`) are divided by n; the CPU time of threads counts as the \
        creator's. Kinds: `fork`; `vfork` and `clone-vm` (the child shares the creator's memory, \
        and the creator is suspended until the child exits, or is not); `posix_spawn` and \
        `fork+exec` of a static program of a few hundred bytes, which exits at once; `thread` with \
        the default stack, `thread-64k` with a stack of 64 KiB, `thread-detached` without joins \
        (the last thread notifies the creator); `thread-pool` and `process-pool`, where n jobs go \
        to as many existing workers as there are CPUs. A fork copies the page tables of its \
        creator, so its cost grows with the memory that the creator has touched (`parent_mib`), \
        unless that is in huge pages; the facts of each case state the creator's size.",
    view: View::Creation,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable,
    alternates_cpus: |parameters| {
        parameters.text(names::KIND).is_some_and(|kind| kind.ends_with("pool"))
    },
    demands: Demands::NONE.with_cost(cost),
    subject,
};

/// Returns the default cost, with the time to touch the parent's memory and to copy its page tables.
fn cost(parameters: &Parameters) -> Cost {
    const TOUCH_PER_MIB: Duration = Duration::from_micros(500);
    const FORK_PER_MIB: Duration = Duration::from_micros(100);
    let mib = parameters.number(parent::PARENT_MIB).unwrap_or(0);
    let mib = u32::try_from(mib).unwrap_or(u32::MAX);
    let Cost { setup, sample, shared } = Cost::DEFAULT;
    Cost {
        setup: setup + TOUCH_PER_MIB.saturating_mul(mib),
        sample: sample + FORK_PER_MIB.saturating_mul(mib),
        shared,
    }
}

const KINDS: [&str; 10] = [
    "fork",
    "vfork",
    "clone-vm",
    "posix_spawn",
    "fork+exec",
    "thread",
    "thread-64k",
    "thread-detached",
    "thread-pool",
    "process-pool",
];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let counts = scope.choose(&[1, 10, 100, 1000], &[1, 100], &[2]);
    let small = KINDS.iter().flat_map(|&kind| {
        counts
            .iter()
            .map(move |&n: &u64| Parameters::new().with(names::KIND, kind).with(names::N, n))
    });
    let sizes = scope.choose(&[64, 1024], &[64], &[1]);
    let large = ["fork", "posix_spawn"].into_iter().flat_map(|kind| {
        sizes.iter().flat_map(move |&mib: &u64| {
            [false, true].map(|huge| {
                let parameters = Parameters::new().with(names::KIND, kind).with(names::N, 1);
                parameters.with(parent::PARENT_MIB, mib).with(parent::HUGE_PAGES, huge)
            })
        })
    });
    let large =
        large.filter(|p| p.text(names::KIND) == Some("fork") || !p.flag(parent::HUGE_PAGES));
    small.chain(large).collect()
}

fn unavailable(parameters: &Parameters) -> Option<String> {
    let needs_program = ["posix_spawn", "fork+exec"];
    parameters
        .text(names::KIND)
        .filter(|kind| needs_program.contains(kind))
        .and_then(|_| tiny::unavailable())
        .or_else(|| parent::unavailable(parameters))
}

fn subject(parameters: &Parameters) -> Result<Box<dyn Subject>, SubjectError> {
    let n = parameters.number(names::N).unwrap_or(1);
    let kind = parameters.text(names::KIND).unwrap_or("");
    let parent = Parent::new(parameters)?;
    null_device().context("open /dev/null")?;
    let mut facts = parent.facts();
    let (operation, children) = match kind {
        "fork" => (fork_operation(n), Vec::new()),
        "vfork" => (shared_memory_operation(n, ParentMode::Suspended)?, Vec::new()),
        "clone-vm" => (shared_memory_operation(n, ParentMode::Continues)?, Vec::new()),
        "posix_spawn" => (spawn_operation(n)?, Vec::new()),
        "fork+exec" => (fork_exec_operation(n)?, Vec::new()),
        "thread" => (thread_operation(n, None)?, Vec::new()),
        "thread-64k" => (thread_operation(n, Some(64 * 1024))?, Vec::new()),
        "thread-detached" => (detached_operation(n)?, Vec::new()),
        "thread-pool" | "process-pool" => {
            facts.insert("workers".to_owned(), (cpu::allowed() as u64).into());
            if kind == "thread-pool" {
                (thread_pool_operation(n)?, Vec::new())
            } else {
                process_pool_operation(n)?
            }
        }
        _ => return Err(SubjectError::Unexpected(format!("no kind '{kind}'"))),
    };
    let mut operation = operation;
    let holding = move || {
        let _parent = &parent; // its memory must outlive the measurement
        operation()
    };
    Ok(Box::new(Timed::new(holding).of_units(n).with_children(children).with_facts(facts)))
}

type Operation = Box<dyn FnMut() -> io::Result<()>>;

fn capacity(n: u64) -> usize {
    usize::try_from(n).unwrap_or(0)
}

/// Returns an operation that creates `n` processes and waits for all of them. The operation fails
/// if a process does not exit with status 0. It also fails if a process cannot be created, after it
/// has waited for those already created.
fn process_operation(n: u64, mut create: impl FnMut() -> io::Result<Pid> + 'static) -> Operation {
    let mut pids = Vec::with_capacity(capacity(n));
    Box::new(move || {
        let mut result = Ok(());
        for _ in 0..n {
            match create() {
                Ok(pid) => pids.push(pid),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        for pid in pids.drain(..) {
            if reap(pid)?.status != ExitStatus::Exited(0) {
                result = Err(io::Error::other("a process did not exit with status 0"));
            }
        }
        result
    })
}

fn fork_operation(n: u64) -> Operation {
    process_operation(n, || {
        fork(|| {
            write_one_byte();
            0
        })
    })
}

const TINY_NAME: &CStr = c"tiny";

fn spawn_operation(n: u64) -> Result<Operation, SubjectError> {
    let program = TinyProgram::new()?;
    Ok(process_operation(n, move || posix_spawn(program.path(), &[TINY_NAME])))
}

fn fork_exec_operation(n: u64) -> Result<Operation, SubjectError> {
    let program = TinyProgram::new()?;
    let arguments = pointers(&[TINY_NAME]);
    Ok(process_operation(n, move || {
        fork(|| {
            execute(program.path(), &arguments);
            127
        })
    }))
}

fn shared_memory_operation(n: u64, mode: ParentMode) -> Result<Operation, SubjectError> {
    let stacks: io::Result<Vec<_>> = (0..n).map(|_| ChildStack::new()).collect();
    let mut stacks = stacks.context("map stacks")?;
    let mut children = Vec::with_capacity(capacity(n));
    let null = null_device().context("open /dev/null")?.as_fd();
    Ok(Box::new(move || {
        for stack in stacks.drain(..) {
            children.push(SharingChild::create(stack, mode, null)?);
        }
        for child in children.drain(..) {
            stacks.push(child.reap()?);
        }
        Ok(())
    }))
}

fn thread_operation(n: u64, stack: Option<usize>) -> Result<Operation, SubjectError> {
    let attributes = Attributes::new(stack).context("set thread attributes")?;
    let job = Job::leaked(write_one_byte);
    let mut threads = Vec::with_capacity(capacity(n));
    Ok(Box::new(move || {
        let mut result = Ok(());
        for _ in 0..n {
            match start(&attributes, job) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        for thread in threads.drain(..) {
            thread.join()?;
        }
        result
    }))
}

fn detached_operation(n: u64) -> Result<Operation, SubjectError> {
    static FINISHED: AtomicU64 = AtomicU64::new(0);
    let attributes = Attributes::new(None).and_then(Attributes::detached);
    let attributes = attributes.context("set thread attributes")?;
    let creator = std::thread::current();
    let job = Job::leaked(move || {
        write_one_byte();
        if FINISHED.fetch_add(1, Ordering::AcqRel) + 1 == n {
            creator.unpark();
        }
    });
    Ok(Box::new(move || {
        FINISHED.store(0, Ordering::Release);
        for _ in 0..n {
            start(&attributes, job)?;
        }
        while FINISHED.load(Ordering::Acquire) < n {
            std::thread::park();
        }
        Ok(())
    }))
}

fn thread_pool_operation(n: u64) -> Result<Operation, SubjectError> {
    let pool = ThreadPool::new(cpu::allowed()).context("create a pool of threads")?;
    Ok(Box::new(move || {
        pool.run(n);
        Ok(())
    }))
}

fn process_pool_operation(n: u64) -> Result<(Operation, Vec<Pid>), SubjectError> {
    let pool = ProcessPool::new(cpu::allowed()).context("create a pool of processes")?;
    let workers = pool.workers().to_vec();
    Ok((Box::new(move || pool.run(n)), workers))
}
