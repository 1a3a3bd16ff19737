//! Runs a group's commands over a sample of their input, to measure their CPU time and output.

use std::ops::ControlFlow::Continue;

use super::Context;
use super::chunk_input::ChunkInput;
use super::error::GroupError;
use super::input::ChunkSource;
use super::instance::Instance;
use super::size::Sizes;
use super::threads::RetryLimit;
use crate::plan::estimate::{self, Handling};
use crate::plan::flow::{Flow, Stream};
use crate::plan::ir::{Combine, Command, Group, Step};
use crate::plan::rates;

/// Maximum size of a sample in bytes. Commands take longer to process that much than to start.
const MAX_SAMPLE_BYTES: usize = 1 << 20;
/// Minimum size in bytes of a sample for commands that are not slow.
const MIN_LONG_SAMPLE_BYTES: usize = 256 << 10;
/// Ratio of the input's size to the intended size of a sample.
const SAMPLE_DIVISOR: u64 = 100;
/// Share of CPU time in the wall time that a command needs to start.
const START_CPU_SHARE: f64 = 0.6;
/// Minimum CPU time of a command over the sample, as a multiple of the usual CPU time of its start.
/// If a command needs less, the actual starts of the commands are measured.
const MIN_STARTS: f64 = 6.0;
/// Upper bound on the expected CPU time of a trial in seconds, unless the sample has its minimum
/// size.
const MAX_TRIAL_SECONDS: f64 = 0.01;
/// Minimum size of any sample in bytes.
const MIN_SAMPLE_BYTES: usize = 1 << 10;
/// CPU time in seconds per byte above which commands are slow.
const SLOW_CPU_SECONDS_PER_BYTE: f64 = 1.9e-9;
/// The memory that sort needs, as a multiple of its input.
const SORT_MEMORY_FACTOR: u64 = 4;
/// Gain in seconds below which costs that do not depend on the input's size outweigh it.
const MIN_GAIN_SECONDS: f64 = 0.01;
/// Expected CPU time for the whole input, in seconds, below which commands are not tried.
const MIN_CPU_SECONDS: f64 = 0.1;

/// The result of a trial of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    /// Whether chunks pay off.
    pub is_worth_it: bool,
    /// CPU time of the commands other than sorts, in nanoseconds per byte of the input, or `None`
    /// if it has not been estimated.
    pub rate: Option<f64>,
}

/// Decides whether chunks pay off for a group whose output goes into a pipe, or into a file if
/// `to_file` is true. Runs the commands, or those before a sort, over a sample of the input, unless
/// their usual rates suffice or they start other programs. Chunks always pay off for a sort that
/// might otherwise use too much memory.
///
/// # Errors
/// Returns an error if the sample cannot be read or a command cannot be started.
pub(super) fn judge(
    group: &Group,
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
    to_file: bool,
) -> Result<Trial, GroupError> {
    let sorts = group.serial.iter().position(|command| rates::is_sort(&command.program));
    let (first, last) = group.serial.split_at(sorts.unwrap_or(group.serial.len()));
    let mut stream = Stream::of_lines(chunks.line()?);
    let mut flows: Vec<Flow> = first.iter().map(|command| stream.flow_through(command)).collect();
    let mut output = Output { bytes: 0, lines: 0 };
    let cpu = flows.iter().map(Flow::cpu).sum::<f64>() * 1e-9;
    let is_short = chunks.size().is_some_and(|bytes| cpu * (bytes as f64) < MIN_CPU_SECONDS);
    // A single slow command that shares the machine with no other stage certainly gains.
    let is_alone = group.serial.len() == 1 && context.steps.len() == 1;
    let is_sure = chunks.can_be_read_again() && is_alone && cpu > SLOW_CPU_SECONDS_PER_BYTE;
    // The commands that xargs starts are unknown and may have side effects, so they are not tried.
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
    flows.extend(last.iter().map(|command| stream.flow_through(command)));
    let rate = flows.iter().filter(|flow| !flow.sorts).map(Flow::cpu).sum();
    let starts = starts(group, first, &Context { rate: Some(rate), ..*context }, chunks);
    let is_stream = !chunks.can_be_read_again();
    let to_file = to_file && is_tried; // otherwise the size of the output is unknown
    let handling = Handling { is_stream, output: volume, to_file, starts };
    let concurrent = concurrent(group, context, volume, line);
    let sorts_here = estimate::sorts_here(group);
    let gain = estimate::gain(&flows, &concurrent, handling, context.jobs, sorts_here);
    let seconds = chunks.size().map(|bytes| gain * bytes as f64 * 1e-9);
    // Without a limit, sort uses all available memory.
    let has_room = |bytes: u64| bytes.saturating_mul(SORT_MEMORY_FACTOR) < context.memory;
    let must_be_bounded = sorts.is_some() && !chunks.size().is_some_and(has_room);
    let is_worth_it = is_sure
        || must_be_bounded
        || gain > 0.0 && seconds.is_none_or(|seconds| seconds > MIN_GAIN_SECONDS);
    Ok(Trial { is_worth_it, rate: Some(rate) })
}

/// Returns the CPU time of each command of other steps that runs at the same time, in nanoseconds
/// per byte of the group's input. `volume` and `line` describe the group's output. Later steps
/// count only as long as outputs are concatenated: after other combinations, the amount of data is
/// unknown.
fn concurrent(group: &Group, context: &Context<'_>, volume: f64, line: f64) -> Vec<f64> {
    let (before, rest) = context.steps.split_at(context.at);
    let (before, _) = estimate::before(before);
    let goes_on = |step: &&Step| match step {
        Step::Serial(_) => true,
        Step::Parallel(group) => group.combine == Combine::Concatenate,
    };
    let after = if group.combine == Combine::Concatenate { &rest[1..] } else { &[] };
    let after = after.iter().take_while(goes_on).flat_map(estimate::commands);
    let mut stream = Stream { volume, line };
    let after = after.map(|command| stream.flow_through(command).cpu());
    before.into_iter().chain(after).collect()
}

/// Returns the size of the sample in bytes. `of` is the size of the input in bytes, or `None` for a
/// stream. `cpu` is the expected CPU time in seconds per byte.
fn sample_size(of: Option<u64>, cpu: f64) -> usize {
    let size = of.map_or(MAX_SAMPLE_BYTES, |bytes| {
        usize::try_from(bytes / SAMPLE_DIVISOR)
            .unwrap_or(MAX_SAMPLE_BYTES)
            .clamp(MIN_LONG_SAMPLE_BYTES, MAX_SAMPLE_BYTES)
    });
    // Slow commands need less data for a reliable rate.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few MB")]
    let enough = (MAX_TRIAL_SECONDS / cpu) as usize;
    size.min(enough).max(MIN_SAMPLE_BYTES)
}

/// Returns the CPU time of starting `commands` for every chunk, in nanoseconds per byte of input.
/// Returns 0 for combiners other than [`Combine::Concatenate`] and [`Combine::Adjoin`]. The rate in
/// `context` must not be `None`.
fn starts(
    group: &Group,
    commands: &[Command],
    context: &Context<'_>,
    chunks: &ChunkSource<'_>,
) -> f64 {
    if !matches!(group.combine, Combine::Concatenate | Combine::Adjoin { .. }) {
        return 0.0; // each worker starts the commands once
    }
    let start: f64 = commands.iter().map(|command| rates::start_of(&command.program)).sum();
    START_CPU_SHARE * start * 1e9 / Sizes::new(context, chunks, commands).usual() as f64
}

/// Size of the commands' output over a sample.
struct Output {
    bytes: usize,
    lines: usize,
}

impl Output {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.lines += memchr::memchr_iter(b'\n', bytes).count();
    }

    /// Returns the mean length of a line in bytes, or `None` if there is no line.
    fn line(&self) -> Option<f64> {
        (self.lines > 0).then(|| self.bytes as f64 / self.lines as f64)
    }
}

/// Runs the commands over a sample. Returns the CPU time of each command, without the time to start
/// it, in nanoseconds per byte of the sample; `None` if a command fails or the sample is empty. Adds
/// the size of their output to `output`.
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
    // For fast commands, the usual time of a start is not accurate enough.
    if cpus.iter().zip(&starts).any(|(&cpu, start)| cpu < MIN_STARTS * start) {
        let nothing = &mut Output { bytes: 0, lines: 0 };
        starts = cpu_times(commands, &[], context, nothing)?.unwrap_or(starts);
    }
    let rate = |(cpu, start): (&f64, &f64)| (cpu - start).max(0.0) * 1e9 / sample.len() as f64;
    Ok(Some(cpus.iter().zip(&starts).map(rate).collect()))
}

/// Runs commands over a sample, and adds the size of their output to `output`. Returns the CPU time
/// of each command in seconds, or `None` if the commands fail.
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
    let mut instance = Instance::start(context.launcher, commands, RetryLimit::Long)?;
    let _ = instance.feed(&mut ChunkInput::Bytes(sample), &mut take)?; // the closure never returns `Break`
    let _ = instance.drain(&mut take)?;
    let ended = instance.end()?;
    Ok(ended.succeeded.then(|| ended.costs.iter().map(|cost| cost.cpu.as_secs_f64()).collect()))
}
