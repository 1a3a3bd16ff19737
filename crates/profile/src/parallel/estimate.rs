//! Whether working on parts is worth what starting it costs.
//!
//! The rates are those of common commands on text, in nanoseconds of CPU time a byte, measured on
//! a server's CPU. They only decide about inputs so small that being wrong costs little: large ones
//! are judged by what a sample of them takes.

use contend_record::run::{Command, Decision, Plan, Step};

/// A command of which nothing is known, in nanoseconds a byte.
const UNKNOWN: f64 = 5.0;

/// Rates of commands: of those with options that change much, the most usual form.
const RATES: &[(&str, f64)] = &[
    ("awk", 2.0),
    ("busybox", 10.0),
    ("cat", 0.25),
    ("col", 65.0),
    ("comm", 20.0),
    ("cut", 1.2),
    ("egrep", 0.8),
    ("expand", 2.0),
    ("fgrep", 0.5),
    ("fold", 2.2),
    ("gawk", 2.8),
    ("grep", 0.5),
    ("head", 0.1),
    ("iconv", 2.0),
    ("join", 20.0),
    ("jq", 20.0),
    ("mawk", 2.0),
    ("nawk", 5.0),
    ("original-awk", 5.0),
    ("rev", 38.0),
    ("sed", 2.3),
    ("sort", 12.0),
    ("tail", 0.1),
    ("tr", 2.0),
    ("unexpand", 2.0),
    ("uniq", 2.0),
    ("wc", 1.0),
    ("xargs", 10_000.0),
];

/// What a sort needs for a byte and for a line among a million, in nanoseconds.
const SORT_BYTE: f64 = 2.0;
const SORT_LINE: f64 = 600.0;
/// Starting one command and waiting for its end, in seconds.
const START: f64 = 0.0015;
/// Commands that do much before they read anything, and what that takes, in seconds.
const SLOW_STARTS: &[(&str, f64)] = &[("jq", 0.02)];
/// What planning and threads cost, in seconds.
const OVERHEAD: f64 = 0.004;

/// A program's name, without its folder.
fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether it is the program that sorts lines.
pub(super) fn is_sort(program: &str) -> bool {
    name_of(program) == "sort"
}

/// The rate of a command in nanoseconds a byte, with what its arguments tell.
pub(super) fn rate(program: &str, arguments: &[String]) -> f64 {
    rate_of(program, arguments).unwrap_or(UNKNOWN)
}

/// The same; `None` if nothing is known of the command.
pub(super) fn rate_of(program: &str, arguments: &[String]) -> Option<f64> {
    let name = name_of(program);
    let (_, rate) = RATES.iter().find(|(known, _)| *known == name)?;
    // A group that is matched again cannot be looked for by an automaton.
    let refers_back = |argument: &String| ["\\1", "\\2"].iter().any(|it| argument.contains(it));
    let is_slow = name.ends_with("grep") && arguments.iter().any(refers_back);
    Some(if is_slow { 500.0 } else { *rate })
}

/// What is decided if no stage can work on parts.
pub(super) fn nothing_is_parallel() -> Decision {
    let why = "no stage can work on parts of its input".to_owned();
    Decision { why, ..Decision::default() }
}

/// What is decided if little of the input will be read.
pub(super) fn ends_early() -> Decision {
    let why = "a stage has enough after a few lines, which ends those before it".to_owned();
    Decision { why, ..Decision::default() }
}

/// The rate of a sort for lines of so many bytes: it is lines that it compares.
pub(super) fn rate_of_sort(line: f64) -> f64 {
    SORT_BYTE + SORT_LINE / line.max(1.0)
}

/// What starting a command takes, in seconds.
pub(super) fn start_of(program: &str) -> f64 {
    let name = name_of(program);
    SLOW_STARTS.iter().find(|(known, _)| *known == name).map_or(START, |(_, start)| *start)
}

/// Decides for an input of this size, if it is known.
pub fn decide(plan: &Plan, input_bytes: Option<u64>, jobs: usize) -> Decision {
    let plain = |why: &str| Decision { why: why.to_owned(), input_bytes, ..Decision::default() };
    if !plan.is_parallel() {
        return Decision { input_bytes, ..nothing_is_parallel() };
    }
    if jobs < 2 {
        return plain("there is one CPU to use");
    }
    let Some(bytes) = input_bytes else {
        let why = "its input is not over after the first part".to_owned();
        return Decision { parallel: true, why, ..Decision::default() };
    };
    let groups = plan.steps.iter().filter_map(|step| match step {
        Step::Serial(_) => None,
        Step::Parallel(group) => Some(group.serial.as_slice()),
    });
    expect(&groups.collect::<Vec<_>>().concat(), bytes, jobs).decision(bytes)
}

/// What working on parts is expected to bring and to cost, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectation {
    cpu: f64,
    gain: f64,
    cost: f64,
}

impl Expectation {
    /// Whether it brings clearly more than it costs.
    pub fn is_worth_it(&self) -> bool {
        self.gain > 2.0 * self.cost
    }

    /// What is decided for an input of this size, and why.
    pub(super) fn decision(&self, bytes: u64) -> Decision {
        let parallel = self.is_worth_it();
        let verdict = if parallel { "" } else { "not " };
        let why = format!(
            "{} of CPU time are expected, which is {verdict}worth the {} that it costs to work on \
             parts",
            time(self.cpu),
            time(self.cost)
        );
        let expected_cpu_seconds = Some(self.cpu);
        Decision { parallel, why, input_bytes: Some(bytes), expected_cpu_seconds }
    }
}

/// What goes through a command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Flow {
    /// CPU time that it needs, in nanoseconds a byte.
    pub rate: f64,
    /// How much of the input comes to it.
    pub volume: f64,
    /// It is a sort.
    pub sorts: bool,
}

/// What it costs to hand out parts of files, and of what has to be read here, and to collect their
/// outputs, in nanoseconds of CPU time a byte.
const HANDING_OUT: f64 = 0.2;
const HANDING_OUT_STREAM: f64 = 0.6;
const COLLECTING: f64 = 0.4;
/// What commands need more to write to a file than to a pipe.
const TO_FILE: f64 = 0.3;
/// How much longer work takes than if it were the same for all workers and they never waited.
const UNEVEN: f64 = 1.12;
/// What sorting here costs of what it costs elsewhere.
const SORTING_HERE: f64 = 0.4;
/// Parts have to be faster by this, for what is not known.
const MARGIN: f64 = 0.95;

/// What working on parts brings with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handling {
    /// What is read is no file.
    pub is_stream: bool,
    /// How much comes out for a byte of input, and whether to a file.
    pub output: f64,
    pub to_file: bool,
    /// CPU time that starting the commands for a part takes, in nanoseconds for a byte of it.
    pub starts: f64,
}

impl Handling {
    /// Its CPU time in nanoseconds for a byte of input.
    fn cpu(&self) -> f64 {
        let handing_out = if self.is_stream { HANDING_OUT_STREAM } else { HANDING_OUT };
        handing_out + COLLECTING * self.output + self.starts
    }
}

/// Whether these commands are faster over parts, with what that brings with it, than in a
/// pipeline, whose stages work at the same time, too.
pub(super) fn is_faster(flows: &[Flow], parts: Handling, jobs: usize, sorts_here: bool) -> bool {
    let cpu = |flow: &Flow| flow.rate * flow.volume;
    let jobs = jobs as f64;
    let writing = if parts.to_file { TO_FILE * parts.output } else { 0.0 };
    let all: f64 = flows.iter().map(cpu).sum::<f64>() + writing;
    let last = flows.last().map_or(0.0, |last| cpu(last) + writing);
    let slowest = flows.iter().map(cpu).fold(last, f64::max);
    let plain = slowest.max(all / jobs);
    let here = |flow: &Flow| if flow.sorts && sorts_here { SORTING_HERE } else { 1.0 };
    let work: f64 = flows.iter().map(|flow| cpu(flow) * here(flow)).sum();
    let parts = UNEVEN * (work + parts.cpu()) / jobs;
    parts < MARGIN * plain
}

/// What is to be expected of these commands over so many bytes.
pub fn expect(commands: &[Command], bytes: u64, jobs: usize) -> Expectation {
    let rates = commands.iter().map(|command| rate(&command.program, &command.arguments));
    let starts = commands.iter().map(|command| start_of(&command.program)).sum();
    of_rates(rates.sum(), starts, bytes, jobs)
}

/// What more than which is not to be expected of commands with these rates, on however many CPUs.
pub(super) fn at_best(rates: &[f64], bytes: u64) -> Expectation {
    let expected = of_rates(rates.iter().sum(), START * rates.len() as f64, bytes, 2);
    Expectation { gain: expected.cpu, ..expected }
}

/// What is to be expected of commands with this rate together, which takes so long to start once.
fn of_rates(rate: f64, starts: f64, bytes: u64, jobs: usize) -> Expectation {
    let cpu = rate * bytes as f64 * 1e-9;
    let cost = OVERHEAD + starts * jobs as f64;
    Expectation { cpu, gain: cpu * (1.0 - 1.0 / jobs as f64), cost }
}

/// A time for people, of which no more is known than this.
fn time(seconds: f64) -> String {
    match seconds {
        ..0.001 => "less than 1 ms".to_owned(),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contend_record::run::{Combine, Cut, Group, Guard, Records, Source, StatusRule};

    fn plan(program: &str, argument: &str) -> Plan {
        let command = Command {
            stage: 0,
            variables: Vec::new(),
            program: program.to_owned(),
            arguments: vec![argument.to_owned()],
            status: StatusRule::Zero,
            input: None,
            sorts: false,
        };
        let group = Group {
            serial: vec![command.clone()],
            opens_files: false,
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
    fn stages_that_keep_up_with_each_other_gain_nothing() {
        let flow = |rate, volume| Flow { rate, volume, sorts: false };
        let little = Handling { is_stream: false, output: 0.01, to_file: false, starts: 0.0 };
        let same = Handling { output: 1.0, ..little };
        assert!(is_faster(&[flow(20.0, 1.0)], same, 2, false));
        assert!(is_faster(&[flow(20.0, 1.0), flow(1.0, 1.0)], same, 2, false));
        assert!(!is_faster(&[flow(20.0, 1.0), flow(20.0, 1.0)], same, 2, false));
        assert!(is_faster(&[flow(20.0, 1.0), flow(20.0, 1.0)], same, 8, false));
        assert!(is_faster(&[flow(12.0, 1.0), flow(0.5, 0.01)], little, 2, false));
        assert!(!is_faster(&[flow(0.2, 1.0), flow(20.0, 0.01)], little, 2, false), "too cheap");
        assert!(is_faster(&[flow(0.7, 1.0)], little, 2, false));
        let stream = Handling { is_stream: true, ..little };
        assert!(!is_faster(&[flow(0.7, 1.0)], stream, 2, false));
        let small = Handling { starts: 0.4, ..little };
        assert!(!is_faster(&[flow(0.7, 1.0)], small, 2, false));
        assert!(!is_faster(&[flow(0.7, 1.0)], same, 2, false), "much comes out");
        assert!(is_faster(&[flow(0.7, 1.0)], Handling { to_file: true, ..same }, 2, false));
        let sort = Flow { sorts: true, ..flow(12.0, 1.0) };
        assert!(is_faster(&[flow(12.0, 1.0), sort], same, 2, true), "it is sorted here");
    }

    #[test]
    fn small_inputs_run_plain_unless_the_command_is_slow() {
        assert!(!decide(&plan("grep", "x"), Some(100_000), 2).parallel);
        assert!(decide(&plan("grep", "x"), Some(100_000_000), 2).parallel);
        assert!(decide(&plan("grep", "\\(.\\)\\1"), Some(1_000_000), 2).parallel);
        assert!(decide(&plan("grep", "x"), None, 2).parallel);
        assert!(!decide(&plan("grep", "x"), Some(100_000_000), 1).parallel);
        let serial = Plan { steps: Vec::new(), ..plan("grep", "x") };
        assert!(!decide(&serial, Some(100_000_000), 2).parallel);
    }
}
