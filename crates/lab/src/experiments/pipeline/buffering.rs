//! `pipeline/hold`: shows which stages hold back output, by the arrival time of every line.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use contend_record::lab::{Step, Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::child::{ExitStatus, reap};
use contend_sys::{Pid, spawn};

use crate::engine::experiment::{
    Demands, ErrorContext, Experiment, Fit, Sample, Sampling, Scope, Subject, SubjectError,
    never_alternates_cpus,
};
use crate::support::programs;

/// The definition of `pipeline/hold`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pipeline/hold",
    summary: "delay of each line through cat, sort and xargs, which may hold output back",
    about: "The process of the case writes five lines to a stage, with a pause after each, and \
        reads its output. The stage is `cat`, which passes each line on; `sort` or `xargs \
        echo`, which need all input first; or `xargs -n 1 echo`, which starts a command for each \
        line. The value is the median time from the production of a line to its arrival. The times \
        of every line are in the record.",
    view: View::PipelineHold,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Fixed(1),
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable: |parameters| programs::missing([words(parameters)[0]]),
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(100, 50).with_ns_per(&[("pause_ms", 3_500_000)]),
    subject: |parameters| Ok(Box::new(BufferingStage(parameters.clone()))),
};

const LINE_COUNT: u64 = 5;
const STAGES: [&str; 4] = ["cat", "sort", "xargs echo", "xargs -n 1 echo"];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let pause = scope.choose(&[200], &[100], &[100])[0];
    let case = |stage| Parameters::new().with(names::STAGE, stage).with("pause_ms", pause);
    STAGES.map(case).to_vec()
}

fn words(parameters: &Parameters) -> Vec<&str> {
    parameters.text(names::STAGE).unwrap_or("cat").split(' ').collect()
}

struct BufferingStage(Parameters);

impl Subject for BufferingStage {
    fn sample(&mut self, _: u64, on_step: &mut dyn FnMut(Step)) -> Result<Sample, SubjectError> {
        let pause = Duration::from_millis(self.0.number("pause_ms").unwrap_or(0));
        let begun = Instant::now();
        let words = words(&self.0);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn::spawn_bound(&mut command).context("start the stage")?;
        let pid = Pid::from_child(&child);
        let ends = child.stdin.take().zip(child.stdout.take());
        let times = ends
            .ok_or_else(|| io::ErrorKind::BrokenPipe.into())
            .and_then(|(input, output)| time_lines(input, output, pause, begun));
        let ended = reap(pid).context("wait for the stage")?.status;
        let (produced, arrived) = times.context("move lines through the stage")?;
        if ended != ExitStatus::Exited(0) || arrived.len() != produced.len() {
            return Err(SubjectError::Unexpected(format!(
                "{} ended with {ended:?}",
                words.join(" ")
            )));
        }
        steps(&words.join(" "), &produced, &arrived).into_iter().for_each(on_step);
        let delays = |(produced, arrived): (&Duration, &Duration)| {
            arrived.saturating_sub(*produced).as_nanos() as f64
        };
        let delays: Vec<f64> = produced.iter().zip(&arrived).map(delays).collect();
        let median = contend_record::stats::median(&delays).unwrap_or(0.0);
        Ok(Sample::of(median).with("first_line", Unit::Nanoseconds, delays[0]))
    }
}

/// Returns a step for the production and for the arrival of each line, in chronological order.
fn steps(stage: &str, produced: &[Duration], arrived: &[Duration]) -> Vec<Step> {
    let step = |what: &str, number: usize, at: &Duration| Step {
        at_seconds: at.as_secs_f64(),
        who: stage.to_owned(),
        what: format!("line {} {what}", number + 1),
        address: None,
        value: None,
        tasks: Vec::new(),
    };
    let produced = produced.iter().enumerate().map(|(i, at)| step("is produced", i, at));
    let arrived = arrived.iter().enumerate().map(|(i, at)| step("arrives", i, at));
    let mut steps: Vec<_> = produced.chain(arrived).collect();
    steps.sort_by(|one, other| one.at_seconds.total_cmp(&other.at_seconds));
    steps
}

/// Production times and arrival times of all lines, as durations since the start of the sample.
type LineTimes = (Vec<Duration>, Vec<Duration>);

/// Writes [`LINE_COUNT`] lines to `input` in a thread, with a pause after each, while reading
/// `output` to its end. Returns the times at which lines were produced and at which they arrived,
/// counted from `begun`. Each word of the output counts as a line, because `xargs` joins lines.
fn time_lines(
    mut input: ChildStdin,
    output: ChildStdout,
    pause: Duration,
    begun: Instant,
) -> io::Result<LineTimes> {
    std::thread::scope(|scope| {
        let producer = scope.spawn(move || -> io::Result<Vec<Duration>> {
            let mut produced = Vec::new();
            for line in 1..=LINE_COUNT {
                produced.push(begun.elapsed());
                writeln!(input, "{line}")?;
                std::thread::sleep(pause);
            }
            Ok(produced)
        });
        let mut arrived = Vec::new();
        for line in BufReader::new(output).lines() {
            let at = begun.elapsed();
            arrived.extend(line?.split_whitespace().map(|_| at));
        }
        let produced = producer.join().map_err(|_| io::Error::other("the producer panicked"))??;
        Ok((produced, arrived))
    })
}
