//! `sharing/process`: a variable of a parent and its child after a fork.

use std::sync::atomic::Ordering;

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::Parameters;
use contend_sys::child::reap;
use contend_sys::pages::{Pages, increment};
use contend_sys::process::fork;
use contend_sys::{Pid, Signal};
use rustix::pipe::PipeFlags;
use std::os::fd::OwnedFd;

use super::{
    Observation, StepReporter, experiment, find_task, own_pid, read_tasks, wait_until_asleep,
};
use crate::engine::experiment::{ErrorContext, Experiment, Facts, Sample, Subject, SubjectError};

/// The definition of `sharing/process`.
pub const EXPERIMENT: Experiment = experiment(
    "sharing/process",
    "a variable after a fork: same address, copied at the first write",
    "A process sets n to 1 and forks. Parent and child print the address and the value of n; the \
     child adds 1; the parent reads n again, waits for the child, and adds 1. Each step shows the \
     kernel's view: processes, parents, states, resident memory, and how much of it is shared or \
     private. n has a page to itself, so the copy that the kernel makes at the child's first write \
     shows as one page fault and 4 KiB of private memory. This growth is the value. The page fault \
     is the kernel's count for the child.",
    View::ProcessSharing,
    |parameters| Ok(Box::new(ProcessSharing(parameters.clone()))),
);

struct ProcessSharing(Parameters);

/// A child process that receives commands of one byte and answers each with the value of the
/// variable: `+` adds 1 to it first, any other byte only reads it.
struct Child {
    pid: Pid,
    commands: OwnedFd,
    answers: OwnedFd,
}

impl Child {
    fn create(variable: &Pages) -> Result<Self, SubjectError> {
        let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC).context("make a pipe");
        let ((command_reader, commands), (answers, answer_writer)) = (pipe()?, pipe()?);
        let mut commands = Some(commands);
        let pid = fork(|| {
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            commands = None;
            let mut command = [0];
            while matches!(rustix::io::read(&command_reader, &mut command), Ok(1)) {
                let value = match command {
                    [b'+'] => increment(variable.number()),
                    _ => variable.number().load(Ordering::SeqCst),
                };
                let _ = rustix::io::write(&answer_writer, &value.to_ne_bytes());
            }
            0
        })
        .context("fork")?;
        let commands = commands.ok_or_else(|| SubjectError::Unexpected("no pipe".to_owned()))?;
        Ok(Self { pid, commands, answers })
    }

    fn request(&self, command: u8) -> Result<i64, SubjectError> {
        rustix::io::write(&self.commands, &[command]).context("send a command to the child")?;
        let mut value = [0; 8];
        let read =
            rustix::io::read(&self.answers, &mut value).context("read the child's answer")?;
        match read {
            8 => Ok(i64::from_ne_bytes(value)),
            _ => Err(SubjectError::Unexpected("the child has exited".to_owned())),
        }
    }

    fn end(self) -> Result<(), SubjectError> {
        drop(self.commands);
        reap(self.pid).context("wait for the child")?;
        Ok(())
    }
}

impl Subject for ProcessSharing {
    fn sample(&mut self, _: u64, on_step: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let mut reporter = StepReporter::new(&self.0, on_step);
        let variable = Pages::map(4096).context("map a page")?;
        let address = variable.address();
        let at = |value| Some(Observation { address, value });
        let own = || variable.number().load(Ordering::SeqCst);
        let parent = own_pid();

        variable.number().store(1, Ordering::SeqCst);
        reporter.step("parent", "sets n to 1", at(own()), read_tasks(&[parent]));

        let child = Child::create(&variable)?;
        let pid = child.pid.as_raw_nonzero().get();
        let both = [parent, pid];
        let inherited = child.request(b'?')?;
        wait_until_asleep(pid);
        reporter.step("child", "reads n after the fork", at(inherited), read_tasks(&both));

        let before = find_task(&read_tasks(&both), pid);
        let written = child.request(b'+')?;
        wait_until_asleep(pid);
        let after = read_tasks(&both);
        let copied = find_task(&after, pid).private_bytes as f64 - before.private_bytes as f64;
        let faults = find_task(&after, pid).minor_faults.saturating_sub(before.minor_faults);
        reporter.step("child", "adds 1 to n: its first write", at(written), after);

        let unchanged = own();
        reporter.step(
            "parent",
            "reads its own n, which is unchanged",
            at(unchanged),
            read_tasks(&both),
        );

        child.end()?;
        let last = increment(variable.number());
        reporter.step("parent", "reaps the child and adds 1 to n", at(last), read_tasks(&[parent]));

        let count = |value: i64| u64::try_from(value).unwrap_or(0).into();
        let facts = Facts::from([
            ("child_inherited".to_owned(), count(inherited)),
            ("child_wrote".to_owned(), count(written)),
            ("parent_still_saw".to_owned(), count(unchanged)),
            ("parent_wrote".to_owned(), count(last)),
        ]);
        Ok(Sample { facts, ..Sample::of(copied) }.with("page_faults", Unit::Count, faults as f64))
    }
}
