//! Trying a group's commands on a sample of their input: what each needs, and how much comes out.

use std::io;
use std::time::Duration;

use contend_record::run::{Command, Group};

use super::Context;
use super::input::Parts;
use super::instance::Instance;
use crate::parallel::estimate::{self, Flow};

/// The largest sample in bytes: commands need more time for it than for starting.
const SAMPLE: usize = 1 << 20;
/// A sample of a small input is so small.
const LEAST: usize = 256 << 10;
/// The part of an input that a sample may be.
const SHARE: u64 = 100;
/// Of the time that starting a command takes, its own CPU time.
const OF_START: f64 = 0.6;
/// A trial is to take no more CPU time than this, in seconds, but for the smallest of samples.
const LONGEST: f64 = 0.02;
/// No sample is smaller, in bytes.
const FEWEST: usize = 1 << 10;
/// What is expected to take less CPU time than this is not worth a trial, in seconds.
const SHORT: f64 = 0.1;

/// Whether working on parts is worth it for this group, by what its commands do with a sample.
///
/// # Errors
/// When the sample cannot be read or a command not be started.
pub(super) fn is_worth_it(
    group: &Group,
    context: &Context<'_>,
    parts: &Parts<'_>,
) -> io::Result<bool> {
    let sorts = group.serial.iter().position(|command| estimate::is_sort(&command.program));
    let (first, last) = group.serial.split_at(sorts.unwrap_or(group.serial.len()));
    let usual = |command: &Command, volume: f64| {
        let rate = estimate::rate(&command.program, &command.arguments);
        Flow { rate, volume, sorts: false }
    };
    let mut flows: Vec<Flow> = first.iter().map(|command| usual(command, 1.0)).collect();
    let mut output = Output { bytes: 0, lines: 0 };
    let mut volume = 1.0;
    let cpu = flows.iter().map(|flow| flow.rate).sum::<f64>() * 1e-9;
    let is_short = parts.size().is_some_and(|bytes| cpu * (bytes as f64) < SHORT);
    if !first.is_empty() && !is_short {
        let size = parts.size().map_or(SAMPLE, |bytes| {
            usize::try_from(bytes / SHARE).unwrap_or(SAMPLE).clamp(LEAST, SAMPLE)
        });
        // What is slow shows that with less.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few MB")]
        let size = size.min((LONGEST / cpu) as usize).max(FEWEST);
        let sample = parts.sample(size)?;
        if let Some(cpus) = tried(first, &sample, context, &mut output)? {
            let length = sample.len() as f64;
            for (flow, cpu) in flows.iter_mut().zip(cpus) {
                flow.rate = cpu * 1e9 / length;
            }
            volume = output.bytes as f64 / length;
        }
    } else if sorts.is_some() {
        output.add(&parts.sample(LEAST)?);
    }
    flows.extend(last.iter().map(|command| {
        if estimate::is_sort(&command.program) {
            Flow { rate: estimate::rate_of_sort(output.line()), volume, sorts: true }
        } else {
            usual(command, volume)
        }
    }));
    let sorts_here = super::sorted::task(group).is_some() && group.any_order;
    // The stages before it work at the same time.
    let jobs = if context.is_first { context.jobs } else { context.jobs.saturating_sub(1).max(1) };
    Ok(estimate::is_faster(&flows, volume, jobs, sorts_here))
}

/// What comes out of commands.
struct Output {
    bytes: usize,
    lines: usize,
}

impl Output {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.lines += memchr::memchr_iter(b'\n', bytes).count();
    }

    /// The mean length of a line in bytes.
    fn line(&self) -> f64 {
        self.bytes as f64 / self.lines.max(1) as f64
    }
}

/// The CPU time in seconds that each command needs for a sample; `None` if they fail.
fn tried(
    commands: &[Command],
    sample: &[u8],
    context: &Context<'_>,
    output: &mut Output,
) -> io::Result<Option<Vec<f64>>> {
    let mut take = |bytes: &[u8]| {
        output.add(bytes);
        Ok(true)
    };
    let mut instance = Instance::start(context.launcher, commands)?;
    instance.feed(sample, &mut take)?;
    instance.drain(&mut take)?;
    let ended = instance.end()?;
    if !ended.well || sample.is_empty() {
        return Ok(None);
    }
    let without_start = |(command, cpu): (&Command, &Duration)| {
        (cpu.as_secs_f64() - OF_START * estimate::start_of(&command.program)).max(0.0)
    };
    Ok(Some(commands.iter().zip(&ended.cpu).map(without_start).collect()))
}
