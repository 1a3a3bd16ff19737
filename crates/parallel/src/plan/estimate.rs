//! Estimates whether running a pipeline over chunks is worth the cost.

use contend_record::run::Decision;

use super::classes;
use super::flow::{Amount, Flow, Stream, USUAL_LINE_BYTES};
use super::rates::{START_SECONDS, start_of};
use crate::plan::ir::{Combine, Command, Group, Plan, Step};

/// Time for planning and for starting threads, in seconds.
const OVERHEAD_SECONDS: f64 = 0.004;
/// Ratio of the time that chunks save to their cost, above which they are worth it.
const MIN_BENEFIT_FACTOR: f64 = 2.0;

/// Returns the decision for a pipeline in which no stage can run over chunks.
pub(crate) fn nothing_is_parallel() -> Decision {
    let why = "no stage can run on chunks of its input".to_owned();
    Decision { why, ..Decision::default() }
}

/// Returns the decision for a pipeline that reads only a small part of its input.
pub(crate) fn ends_early() -> Decision {
    let why = "a stage stops after a few lines, which ends the stages before it".to_owned();
    Decision { why, ..Decision::default() }
}

/// Decides whether a plan runs over chunks on `jobs` CPUs. `input` must be `None` only if the input
/// is known to be longer than the first chunk.
pub fn decide(plan: &Plan, input: Option<Amount>, jobs: usize) -> Decision {
    let input_bytes = input.map(|input| input.bytes);
    let plain = |why: &str| Decision { why: why.to_owned(), input_bytes, ..Decision::default() };
    if !plan.is_parallel() {
        return Decision { input_bytes, ..nothing_is_parallel() };
    }
    if jobs < 2 {
        return plain("only one CPU is available");
    }
    let Some(input) = input else {
        let why = "its input does not end within the first chunk".to_owned();
        return Decision { parallel: true, why, ..Decision::default() };
    };
    expect(&plan.steps, input, jobs).decision(input.bytes)
}

/// Expected CPU time of the commands, and expected gain and cost of running them over chunks, all
/// in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    cpu: f64,
    gain: f64,
    cost: f64,
}

impl Expectation {
    /// Returns the expected wall time over chunks, in seconds.
    pub(crate) fn wall(&self) -> f64 {
        self.cpu - self.gain + self.cost
    }

    /// Returns whether the gain is more than `MIN_BENEFIT_FACTOR` times the cost.
    pub fn is_worth_it(&self) -> bool {
        self.gain > MIN_BENEFIT_FACTOR * self.cost
    }

    /// Returns the decision for an input of the given size, with the reason.
    pub(crate) fn decision(&self, bytes: u64) -> Decision {
        let parallel = self.is_worth_it();
        let (gain, cost) = (time(self.gain), time(self.cost));
        let rule = if parallel || self.gain < self.cost {
            ""
        } else {
            "; contend uses chunks only if they save twice their cost"
        };
        let why = format!("chunks would save an estimated {gain} and cost {cost}{rule}");
        let expected_cpu_seconds = Some(self.cpu);
        Decision { parallel, why, input_bytes: Some(bytes), expected_cpu_seconds }
    }
}

/// CPU time for handing out chunks of files, in nanoseconds per byte of input.
const HAND_OUT_NS_PER_BYTE: f64 = 0.2;
/// CPU time for handing out chunks of streams, in nanoseconds per byte of input.
const HAND_OUT_STREAM_NS_PER_BYTE: f64 = 0.6;
/// CPU time for collecting the outputs of chunks, in nanoseconds per byte of output.
const COLLECT_NS_PER_BYTE: f64 = 0.4;
/// Additional CPU time of commands that write to a file instead of a pipe, in nanoseconds per byte.
const TO_FILE_NS_PER_BYTE: f64 = 0.3;
/// Wall time of workers with uneven shares of the work, relative to workers with equal shares that
/// never wait.
const IMBALANCE_FACTOR: f64 = 1.08;
/// Time that each pipe adds because its commands wait for each other, as a fraction of the CPU time
/// of the concurrent commands divided by the number of CPUs.
const STALL_SHARE: f64 = 0.05;
/// Maximum number of pipes that add time.
const MAX_STALLING_PIPES: usize = 4;
/// CPU time of contend's own sort, relative to that of the `sort` program.
const OWN_SORT_FACTOR: f64 = 0.4;

/// Lower bound on the output of the steps before a group, in bytes per byte of their input.
const MIN_OUTPUT_SHARE: f64 = 0.01;
/// Ratio of the usual CPU time of a command in another step to the least CPU time that it may need.
const UNCERTAINTY_FACTOR: f64 = 2.0;

/// The work that chunks add to that of the commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Handling {
    /// Whether the input is a stream, and not in files.
    pub is_stream: bool,
    /// Size of the output, in bytes per byte of input.
    pub output: f64,
    /// Whether the commands, run without chunks, would write to a file instead of a pipe.
    pub to_file: bool,
    /// CPU time for starting the commands of each chunk, in nanoseconds per byte of input.
    pub starts: f64,
}

impl Handling {
    /// Returns the CPU time for handling chunks, in nanoseconds per byte of input.
    fn cpu(&self) -> f64 {
        let handing_out =
            if self.is_stream { HAND_OUT_STREAM_NS_PER_BYTE } else { HAND_OUT_NS_PER_BYTE };
        handing_out + COLLECT_NS_PER_BYTE * self.output + self.starts
    }
}

/// Returns the wall time that chunks save, compared with a pipeline whose stages run concurrently,
/// in nanoseconds per byte of the commands' input. The result is negative if chunks cost time.
/// `concurrent` has the CPU time of each command of other steps that runs at the same time, in
/// nanoseconds per byte of the same input. `sorts_here` tells whether contend sorts in place of
/// `sort`.
pub(crate) fn gain(
    flows: &[Flow],
    concurrent: &[f64],
    handling: Handling,
    jobs: usize,
    sorts_here: bool,
) -> f64 {
    let cpu = |flows: &[Flow]| flows.iter().map(Flow::cpu).sum::<f64>();
    let others: f64 = concurrent.iter().sum();
    let slowest_other = concurrent.iter().copied().fold(0.0, f64::max);
    let pipes = (flows.len() + concurrent.len()).saturating_sub(1).min(MAX_STALLING_PIPES);
    let jobs = jobs as f64;
    let writing = if handling.to_file { TO_FILE_NS_PER_BYTE * handling.output } else { 0.0 };
    // A sort starts working once all commands before it have ended, and has threads of its own.
    let (first, sorting) =
        flows.split_at(flows.iter().position(|it| it.sorts).unwrap_or(flows.len()));
    let (mut at_once, mut slowest) = (cpu(first) + others, slowest_other);
    slowest = first.iter().map(Flow::cpu).fold(slowest, f64::max);
    if sorting.is_empty() {
        at_once += writing;
        slowest = first.last().map_or(slowest, |last| slowest.max(last.cpu() + writing));
    }
    let plain = slowest.max((1.0 + STALL_SHARE * pipes as f64) * at_once / jobs)
        + if sorting.is_empty() { 0.0 } else { (cpu(sorting) + writing) / jobs };
    let here = |flow: &Flow| if flow.sorts && sorts_here { OWN_SORT_FACTOR } else { 1.0 };
    let work: f64 = flows.iter().map(|flow| flow.cpu() * here(flow)).sum();
    let parallel = IMBALANCE_FACTOR * (work + handling.cpu() + others) / jobs;
    plain - parallel.max(slowest_other)
}

/// Returns whether the group, which is the step at index `at`, may be faster over chunks, according
/// to the usual rates of commands. Also returns `true` if the rate of a command is unknown, or if
/// contend can sort in place of `sort`.
pub(crate) fn may_be_faster(group: &Group, steps: &[Step], at: usize, jobs: usize) -> bool {
    let (usual, mut stream) = before(&steps[..at]);
    let least: Vec<f64> = usual.iter().map(|rate| rate / UNCERTAINTY_FACTOR).collect();
    let known = |command: &Command| stream.flow_through_known(&command.program, &command.arguments);
    let flows: Option<Vec<Flow>> = group.serial.iter().map(known).collect();
    // Contend's own sort always needs less CPU time.
    let (Some(flows), false) = (flows, sorts_here(group)) else {
        return true;
    };
    let handling = Handling { is_stream: true, output: 0.0, to_file: false, starts: 0.0 };
    gain(&flows, &least, handling, jobs, false) > 0.0
}

/// Returns the CPU times of those commands that still run while the output of the given steps is
/// read, in nanoseconds per byte of that output. Also returns the output, as a stream of volume 1.
pub(crate) fn before(steps: &[Step]) -> (Vec<f64>, Stream) {
    let mut stream = Stream::of_lines(USUAL_LINE_BYTES);
    let mut rates = Vec::new();
    for command in steps.iter().flat_map(commands) {
        let flow = stream.flow_through(command);
        if flow.sorts {
            rates.clear(); // all earlier commands have ended
        } else {
            rates.push(flow.cpu());
        }
    }
    let made = stream.volume.max(MIN_OUTPUT_SHARE);
    let rates = rates.iter().map(|rate| rate / made).collect();
    (rates, Stream { volume: 1.0, ..stream })
}

/// Returns the commands of a step as written in the pipeline.
pub(crate) fn commands(step: &Step) -> &[Command] {
    match step {
        Step::Serial(commands) => commands,
        Step::Parallel(group) => &group.serial,
    }
}

/// Returns whether the given steps may write output before their input ends.
pub fn answers_early(steps: &[Step]) -> bool {
    for step in steps {
        match step {
            Step::Serial(_) => return true,
            Step::Parallel(group) if runs_others(group) => return true,
            Step::Parallel(group) => match &group.combine {
                Combine::Merge(_)
                | Combine::Counts { .. }
                | Combine::Numbers(_)
                | Combine::Totals(_) => return false,
                Combine::Concatenate | Combine::Adjoin { .. } | Combine::Through(_) => {}
            },
        }
    }
    true
}

/// Returns whether a command of the group is unknown or starts other commands.
pub(crate) fn runs_others(group: &Group) -> bool {
    let name = |command: &Command| {
        let name = command.program.rsplit('/').next().unwrap_or(&command.program);
        name == "xargs" || !classes::is_known(name)
    };
    group.serial.iter().any(name)
}

/// Returns whether contend can sort in place of the group's `sort`.
pub(crate) fn sorts_here(group: &Group) -> bool {
    let by_bytes = match &group.combine {
        Combine::Merge(merge) => merge.lines.is_some(),
        Combine::Counts { .. } => true,
        _ => false,
    };
    by_bytes && group.any_order
}

/// Returns the expected CPU time of the groups among the given steps, and the expected gain and
/// cost of running them over chunks on `jobs` CPUs. `input` is the input of the first step.
pub(crate) fn expect(steps: &[Step], input: Amount, jobs: usize) -> Expectation {
    let mut stream = Stream::of_lines(input.line);
    let (mut cpu, mut gain, mut starts) = (0.0, 0.0, 0.0);
    for step in steps {
        let commands = commands(step);
        let flows = commands.iter().map(|command| stream.flow_through(command)).collect::<Vec<_>>();
        let Step::Parallel(group) = step else { continue };
        for flow in flows {
            let here = if flow.sorts && sorts_here(group) { OWN_SORT_FACTOR } else { 1.0 };
            cpu += flow.cpu();
            gain += flow.cpu() * (1.0 - here / jobs as f64);
        }
        starts += commands.iter().map(|command| start_of(&command.program)).sum::<f64>();
    }
    let seconds = input.bytes as f64 * 1e-9;
    Expectation { cpu: cpu * seconds, gain: gain * seconds, cost: cost(starts, jobs) }
}

/// Returns the input size in bytes above which chunks are worth their cost for the given step, or
/// `u64::MAX` if they never are. `line` is the mean length of a line in bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub(crate) fn break_even_bytes(step: &Step, line: f64, jobs: usize) -> u64 {
    let for_a_byte = expect(std::slice::from_ref(step), Amount { bytes: 1, line }, jobs);
    (MIN_BENEFIT_FACTOR * for_a_byte.cost / for_a_byte.gain) as u64
}

/// Returns an upper bound on the gain, and the cost on two CPUs. `commands` is the number of
/// commands, which together need `cpu` nanoseconds per byte of an input of `bytes` bytes.
pub(crate) fn upper_bound(cpu: f64, commands: usize, bytes: u64) -> Expectation {
    let cpu = cpu * bytes as f64 * 1e-9;
    Expectation { cpu, gain: cpu, cost: cost(START_SECONDS * commands as f64, 2) }
}

/// Returns the cost of running over chunks on `jobs` CPUs, in seconds. `starts` is the time for
/// starting each command once, in seconds.
fn cost(starts: f64, jobs: usize) -> f64 {
    OVERHEAD_SECONDS + starts * jobs as f64
}

/// Formats a time in seconds for users.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        ..0.001 => "less than 1 ms".to_owned(),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::ir::{Combine, Cut, Group, Guard, Records, Source, StatusRule};

    fn plan(program: &str, argument: &str) -> Plan {
        let command = Command {
            stage: 0,
            variables: Vec::new(),
            program: program.to_owned(),
            arguments: vec![argument.to_owned()],
            status: StatusRule::Zero,
            input: None,
            sorts: false,
            ascii_in_c: false,
            operator: None,
        };
        let group = Group {
            serial: vec![command.clone()],
            opening: None,
            cut: Cut::between(Records::Lines),
            guard: Guard::NONE,
            each: vec![command],
            combine: Combine::Concatenate,
            any_order: false,
            may_fail: false,
        };
        let steps = vec![Step::Parallel(group)];
        Plan { stages: Vec::new(), source: Source::Standard, steps }
    }

    #[test]
    fn a_decision_has_what_chunks_save_and_cost() {
        let why = |gain, cost| Expectation { cpu: 9.0, gain, cost }.decision(1).why;
        let saved = "chunks would save an estimated";
        assert_eq!(why(0.007, 0.011), format!("{saved} 7 ms and cost 11 ms"));
        assert_eq!(why(1.5, 0.011), format!("{saved} 1.5 s and cost 11 ms"));
        let rule = "contend uses chunks only if they save twice their cost";
        assert_eq!(why(0.011, 0.007), format!("{saved} 11 ms and cost 7 ms; {rule}"));
    }

    #[test]
    fn stages_that_keep_up_with_each_other_gain_nothing() {
        let flow = |rate, volume| Flow { rate, volume, sorts: false };
        let is_faster = |flows: &[Flow], concurrent: &[f64], handling, jobs, here| {
            gain(flows, concurrent, handling, jobs, here) > 0.0
        };
        let little = Handling { is_stream: false, output: 0.01, to_file: false, starts: 0.0 };
        let same = Handling { output: 1.0, ..little };
        assert!(is_faster(&[flow(20.0, 1.0)], &[], same, 2, false));
        assert!(is_faster(&[flow(20.0, 1.0), flow(1.0, 1.0)], &[], same, 2, false));
        assert!(!is_faster(&[flow(20.0, 1.0), flow(20.0, 1.0)], &[], same, 2, false));
        assert!(is_faster(&[flow(20.0, 1.0), flow(20.0, 1.0)], &[], same, 8, false));
        assert!(is_faster(&[flow(12.0, 1.0), flow(0.5, 0.01)], &[], little, 2, false));
        assert!(
            !is_faster(&[flow(0.2, 1.0), flow(20.0, 0.01)], &[], little, 2, false),
            "too cheap"
        );
        assert!(is_faster(&[flow(0.7, 1.0)], &[], little, 2, false));
        let stream = Handling { is_stream: true, ..little };
        assert!(!is_faster(&[flow(0.7, 1.0)], &[], stream, 2, false));
        let small = Handling { starts: 0.4, ..little };
        assert!(!is_faster(&[flow(0.7, 1.0)], &[], small, 2, false));
        assert!(!is_faster(&[flow(0.7, 1.0)], &[], same, 2, false), "much comes out");
        assert!(is_faster(&[flow(0.7, 1.0)], &[], Handling { to_file: true, ..same }, 2, false));
        let fast = &[flow(12.0, 1.0)];
        assert!(is_faster(fast, &[1.0, 2.0], little, 2, false));
        assert!(!is_faster(fast, &[12.0], little, 2, false), "both CPUs work already");
        assert!(!is_faster(fast, &[20.0, 1.0], little, 8, false), "it waits for others");
        assert!(is_faster(fast, &[10.0], little, 8, false));
        let sort = Flow { sorts: true, ..flow(12.0, 1.0) };
        assert!(is_faster(&[flow(12.0, 1.0), sort], &[], same, 2, true), "it is sorted here");
        assert!(
            is_faster(&[flow(12.0, 1.0), sort], &[], same, 2, false),
            "that waits for the first"
        );
        assert!(!is_faster(&[sort], &[], same, 2, false), "a sort has threads");
        let many = [flow(5.0, 1.0); 6];
        assert!(is_faster(&many, &[], same, 2, false), "they wait for each other");
    }

    #[test]
    fn small_inputs_run_plain_unless_the_command_is_slow() {
        let input = |bytes| Some(Amount { bytes, line: USUAL_LINE_BYTES });
        assert!(!decide(&plan("grep", "x"), input(100_000), 2).parallel);
        assert!(decide(&plan("grep", "x"), input(100_000_000), 2).parallel);
        assert!(decide(&plan("grep", "\\(.\\)\\1"), input(1_000_000), 2).parallel);
        assert!(decide(&plan("grep", "x"), None, 2).parallel);
        assert!(!decide(&plan("grep", "x"), input(100_000_000), 1).parallel);
        let serial = Plan { steps: Vec::new(), ..plan("grep", "x") };
        assert!(!decide(&serial, input(100_000_000), 2).parallel);
    }
}
