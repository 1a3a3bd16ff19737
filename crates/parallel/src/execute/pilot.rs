//! Trying a group's commands on a sample of their input: what each needs, and how much comes out.

use std::ops::ControlFlow::Continue;

use super::Context;
use super::chunk_input::ChunkInput;
use super::error::GroupError;
use super::input::ChunkSource;
use super::instance::Instance;
use super::size::Sizes;
use super::threads::Patience;
use crate::plan::estimate::{self, Handling};
use crate::plan::flow::{Flow, Stream};
use crate::plan::ir::{Combine, Command, Group, Step};
use crate::plan::rates;

/// The largest sample in bytes: commands need more time for it than for starting.
const MAX_SAMPLE_BYTES: usize = 1 << 20;
/// A sample of a small input is so small.
const MIN_LONG_SAMPLE_BYTES: usize = 256 << 10;
/// The part of an input that a sample may be.
const SAMPLE_DIVISOR: u64 = 100;
/// Of the time that starting a command takes, its own CPU time.
const START_CPU_SHARE: f64 = 0.6;
/// Where a command takes less than so many starts do, its own is measured.
const MIN_STARTS: f64 = 6.0;
/// A trial is to take no more CPU time than this, in seconds, but for the smallest of samples.
const MAX_TRIAL_SECONDS: f64 = 0.01;
/// No sample is smaller, in bytes.
const MIN_SAMPLE_BYTES: usize = 1 << 10;
/// What takes more CPU time than this for a byte is slow, in seconds.
const SLOW_SECONDS_PER_BYTE: f64 = 1.9e-9;
/// So many times as much memory a sort takes for what it reads.
const SORT_MEMORY_FACTOR: u64 = 4;
/// A gain of less than this is lost to what does not depend on how much there is, in seconds.
const MIN_GAIN_SECONDS: f64 = 0.01;
/// What is expected to take less CPU time than this is not worth a trial, in seconds.
const MIN_CPU_SECONDS: f64 = 0.1;

/// What is to be expected of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    /// Working on parts is worth it.
    pub is_worth_it: bool,
    /// CPU time that its commands need before they sort, if that is known, in nanoseconds a byte.
    pub rate: Option<f64>,
}

/// Judges by what the commands of a group do with a sample whether working on parts is worth it,
/// if their output goes into a pipe or `to_file`.
///
/// # Errors
/// When the sample cannot be read or a command not be started.
pub(super) fn judge(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    to_file: bool,
) -> Result<Trial, GroupError> {
    let sorts = group.serial.iter().position(|command| rates::is_sort(&command.program));
    let (first, last) = group.serial.split_at(sorts.unwrap_or(group.serial.len()));
    let mut stream = Stream::of_lines(chunks.line()?);
    let mut flows: Vec<Flow> = first.iter().map(|command| stream.usual(command)).collect();
    let mut output = Output { bytes: 0, lines: 0 };
    let cpu = flows.iter().map(Flow::cpu).sum::<f64>() * 1e-9;
    let is_short = chunks.size().is_some_and(|bytes| cpu * (bytes as f64) < MIN_CPU_SECONDS);
    // One command at whose side no other works, and which is slow enough, gains for sure.
    let is_alone = group.serial.len() == 1 && context.steps.len() == 1;
    let is_sure = chunks.can_be_read_again() && is_alone && cpu > SLOW_SECONDS_PER_BYTE;
    // What xargs starts is not known, and does not do what it does for nobody to see it.
    let runs_others = first.iter().any(|command| rates::name_of(&command.program) == "xargs");
    let is_tried = !(first.is_empty() || is_short || is_sure || runs_others);
    if is_tried {
        let sample = chunks.sample(sample_size(chunks.size(), cpu))?;
        if let Some(rates) = tried(first, &sample, context, &mut output)? {
            for (flow, rate) in flows.iter_mut().zip(rates) {
                *flow = Flow { rate, volume: 1.0, ..*flow };
            }
            let volume = output.bytes as f64 / sample.len() as f64;
            stream = Stream { volume, line: output.line().unwrap_or(stream.line) };
        }
    }
    let Stream { volume, line } = stream;
    flows.extend(last.iter().map(|command| stream.usual(command)));
    let rate = flows.iter().filter(|flow| !flow.sorts).map(Flow::cpu).sum();
    let starts = starts(group, first, &Context { rate: Some(rate), ..*context }, chunks);
    let is_stream = !chunks.can_be_read_again();
    let to_file = to_file && is_tried; // else it is not known how much comes out
    let handling = Handling { is_stream, output: volume, to_file, starts };
    let beside = beside(group, context, volume, line);
    let sorts_here = estimate::sorts_here(group);
    let gain = estimate::gain(&flows, &beside, handling, context.jobs, sorts_here);
    let seconds = chunks.size().map(|bytes| gain * bytes as f64 * 1e-9);
    // Left alone a sort takes as much memory as it likes.
    let has_room = |bytes: u64| bytes.saturating_mul(SORT_MEMORY_FACTOR) < context.memory;
    let must_be_bounded = sorts.is_some() && !chunks.size().is_some_and(has_room);
    let is_worth_it = is_sure
        || must_be_bounded
        || gain > 0.0 && seconds.is_none_or(|seconds| seconds > MIN_GAIN_SECONDS);
    Ok(Trial { is_worth_it, rate: Some(rate) })
}

/// The CPU time of the commands of other steps, in nanoseconds for a byte of the group's input, of
/// which this comes out. Behind what combines outputs it is not known how much there is.
fn beside(group: &Group, context: &Context<'_>, volume: f64, line: f64) -> Vec<f64> {
    let (before, rest) = context.steps.split_at(context.at);
    let (before, _) = estimate::before(before);
    let goes_on = |step: &&Step| match step {
        Step::Serial(_) => true,
        Step::Parallel(group) => group.combine == Combine::Concatenate,
    };
    let after = if group.combine == Combine::Concatenate { &rest[1..] } else { &[] };
    let after = after.iter().take_while(goes_on).flat_map(estimate::commands);
    let mut stream = Stream { volume, line };
    let after = after.map(|command| stream.usual(command).cpu());
    before.into_iter().chain(after).collect()
}

/// The size of the sample in bytes, of so much, for commands that need about so much CPU time for
/// a byte of it, in seconds.
fn sample_size(of: Option<u64>, cpu: f64) -> usize {
    let size = of.map_or(MAX_SAMPLE_BYTES, |bytes| {
        usize::try_from(bytes / SAMPLE_DIVISOR)
            .unwrap_or(MAX_SAMPLE_BYTES)
            .clamp(MIN_LONG_SAMPLE_BYTES, MAX_SAMPLE_BYTES)
    });
    // What is slow shows that with less.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few MB")]
    let enough = (MAX_TRIAL_SECONDS / cpu) as usize;
    size.min(enough).max(MIN_SAMPLE_BYTES)
}

/// The CPU time that starting these commands for every part takes, in nanoseconds a byte.
fn starts(
    group: &Group,
    commands: &[Command],
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
) -> f64 {
    if !matches!(group.combine, Combine::Concatenate | Combine::Adjoin { .. }) {
        return 0.0; // each worker starts them once
    }
    let start: f64 = commands.iter().map(|command| rates::start_of(&command.program)).sum();
    START_CPU_SHARE * start * 1e9 / Sizes::new(context, chunks, commands).usual() as f64
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

    /// The mean length of a line in bytes, if there is one.
    fn line(&self) -> Option<f64> {
        (self.lines > 0).then(|| self.bytes as f64 / self.lines as f64)
    }
}

/// The CPU time that each command needs for a sample, without its start, in nanoseconds a byte;
/// `None` if they fail, or there is nothing.
fn tried(
    commands: &[Command],
    sample: &[u8],
    context: &Context<'_>,
    output: &mut Output,
) -> Result<Option<Vec<f64>>, GroupError> {
    if sample.is_empty() {
        return Ok(None);
    }
    let Some(cpus) = cpu_times(commands, sample, context, output)? else { return Ok(None) };
    let usual = commands.iter().map(|command| START_CPU_SHARE * rates::start_of(&command.program));
    let mut starts: Vec<f64> = usual.collect();
    // Beside what takes so little it matters what starting takes here.
    if cpus.iter().zip(&starts).any(|(&cpu, start)| cpu < MIN_STARTS * start) {
        let nothing = &mut Output { bytes: 0, lines: 0 };
        starts = cpu_times(commands, &[], context, nothing)?.unwrap_or(starts);
    }
    let rate = |(cpu, start): (&f64, &f64)| (cpu - start).max(0.0) * 1e9 / sample.len() as f64;
    Ok(Some(cpus.iter().zip(&starts).map(rate).collect()))
}

/// The CPU time in seconds that each command takes for a sample; `None` if they fail.
fn cpu_times(
    commands: &[Command],
    sample: &[u8],
    context: &Context<'_>,
    output: &mut Output,
) -> Result<Option<Vec<f64>>, GroupError> {
    let mut take = |bytes: &[u8]| {
        output.add(bytes);
        Ok(Continue(()))
    };
    let mut instance = Instance::start(context.launcher, commands, Patience::Long)?;
    let _ = instance.feed(&mut ChunkInput::Bytes(sample), &mut take)?; // all is wanted
    let _ = instance.drain(&mut take)?;
    let ended = instance.end()?;
    Ok(ended.succeeded.then(|| ended.costs.iter().map(|cost| cost.cpu.as_secs_f64()).collect()))
}
