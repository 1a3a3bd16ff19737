//! Times stages alone on a sample of their own input. The ratio between two stages' times on the
//! sample predicts the ratio on the whole input. Times whole pipelines, too.

use std::collections::HashMap;
use std::fs::File;
use std::time::{Duration, Instant};

use contend_commands::purity::{from_standard_input, is_pure};
use contend_commands::{Simple, quote};
use contend_record::stats::median;
use contend_shell::parse::parse;
use contend_shell::runner::{RunError, Runner, Timed};

use crate::rewrite::draft::{Draft, Stage};
use crate::sample::{difference, temporary};

/// Maximum number of times that a stage is measured.
const ROUNDS: usize = 5;
/// Maximum number of times that a whole pipeline is measured.
const WHOLE_ROUNDS: usize = 3;
/// Number of times that a command's start is measured.
const STARTS: usize = 3;
/// Duration below which the clock and the scheduler dominate a measurement.
const MIN_DURATION: Duration = Duration::from_millis(2);

/// A pilot, with its measurements for one pipeline and all of its candidates.
#[derive(Debug)]
pub struct Pilot<'a> {
    runner: Runner<'a>,
    /// Inputs and outputs of stages. The first element is the sample.
    data: Vec<Data>,
    /// Measurements by command and input.
    runs: HashMap<Key, Measured>,
    /// Start-up costs by command.
    start_ups: HashMap<String, StartUp>,
    deadline: Instant,
}

/// A command's text, the index of its input in `Pilot::data`, and whether it reads from a pipe and
/// whether it writes to one.
type Key = (String, usize, (bool, bool));

#[derive(Debug)]
struct Data {
    file: File,
    bytes: u64,
}

/// Start-up cost of a command, in seconds.
#[derive(Debug, Clone, Copy)]
struct StartUp {
    wall: f64,
    cpu: f64,
}

#[derive(Debug, Clone)]
struct Measured {
    /// Index of the command's output in `Pilot::data`.
    output: usize,
    walls: Vec<f64>,
    cpus: Vec<f64>,
}

/// Costs of one stage on the sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTime {
    /// Wall time of the stage alone, in seconds, without its start.
    pub service: f64,
    /// User and system time in seconds, without the start.
    pub cpu: f64,
    /// Half the range of the measured wall times, relative to their median; 0 for a single
    /// measurement.
    pub spread: f64,
    /// User and system time of the command's start, in seconds.
    pub start_up: f64,
}

/// Result of running a whole pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WholeRun {
    /// A stage must not be repeated, or the first stage's input cannot be replaced.
    NotRepeatable,
    /// No run ended in time.
    TooLong,
    /// At least one run ended in time.
    Timed(WholeTime),
}

/// Costs of a whole pipeline on some input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WholeTime {
    /// Wall time in seconds, with the start.
    pub wall: f64,
    /// User and system time in seconds, with the start.
    pub cpu: f64,
    /// Half the range of the measured wall times, relative to their median; 0 for a single
    /// measurement.
    pub spread: f64,
}

/// Costs of a pipeline's stages on the sample.
#[derive(Debug, Clone, PartialEq)]
pub struct PilotRun {
    /// Costs of the stages before the first one that must not be repeated or for which time ran
    /// out; of all stages if there is no such stage.
    pub stages: Vec<StageTime>,
    /// Index of the last stage's output in `Pilot::data`, for comparison, or `None` if the run
    /// stopped before that output was complete. Exit statuses are not compared: a command may find
    /// a match in the whole input but not in a sample.
    pub end: Option<usize>,
}

impl<'a> Pilot<'a> {
    /// Creates a pilot that runs stages on `sample`, and stops about `budget` after this call.
    pub fn new(runner: Runner<'a>, sample: File, budget: Duration) -> Self {
        let bytes = sample.metadata().map_or(0, |data| data.len());
        Self {
            runner,
            data: vec![Data { file: sample, bytes }],
            runs: HashMap::new(),
            start_ups: HashMap::new(),
            deadline: Instant::now() + budget,
        }
    }

    /// Returns whether some of the budget is left.
    pub fn has_time(&self) -> bool {
        Instant::now() < self.deadline
    }

    /// Runs the stages of a pipeline in order, each on the output of the one before it, while there
    /// is time. Does not run stages again that have been measured already. Returns the costs of the
    /// stages before the first one that was not measured.
    ///
    /// # Errors
    /// Returns an error if the pilot was interrupted, or a system call failed.
    pub fn run_stages(&mut self, draft: &Draft) -> Result<PilotRun, RunError> {
        let mut input = 0;
        let mut run = PilotRun { stages: Vec::new(), end: None };
        for (index, text) in texts(draft).into_iter().enumerate() {
            let Some(text) = text else { return Ok(run) };
            let key = (text, input, between(draft, index));
            let known = self.runs.contains_key(&key);
            if !known && !self.has_time() || !self.measure(&key)? {
                return Ok(run);
            }
            run.stages.push(self.time(&key));
            input = self.runs[&key].output;
            if index + 1 == draft.stages.len() {
                run.end = Some(input);
            }
        }
        Ok(run)
    }

    /// Runs a whole pipeline on `input`, in place of the file that its first stage names or standard
    /// input, up to `WHOLE_ROUNDS` times and for about `budget`.
    ///
    /// # Errors
    /// Returns an error if the pilot was interrupted, or a system call failed.
    pub fn run_whole(
        &mut self,
        draft: &Draft,
        input: &File,
        budget: Duration,
    ) -> Result<WholeRun, RunError> {
        let Some(text) = from_input(draft) else { return Ok(WholeRun::NotRepeatable) };
        let bytes = input.metadata().map_or(0, |data| data.len());
        let output = temporary(bytes).map_err(RunError::io("make a file"))?;
        self.deadline = Instant::now() + budget;
        let (mut walls, mut cpus) = (Vec::new(), Vec::new());
        while walls.len() < WHOLE_ROUNDS && self.has_time() {
            let Some(timed) = self.run(&text, input, &output, (false, false))? else { break };
            walls.push(timed.wall.as_secs_f64());
            cpus.push(timed.cpu().as_secs_f64());
        }
        Ok(median(&walls).zip(median(&cpus)).map_or(WholeRun::TooLong, |(wall, cpu)| {
            WholeRun::Timed(WholeTime { wall, cpu, spread: relative_spread(&walls) })
        }))
    }

    /// Returns a description of how the final output of `theirs` differs from that of `ours`, or
    /// `None` if the outputs are equal or a run is incomplete.
    ///
    /// # Errors
    /// Returns an error if an output cannot be read.
    pub fn difference(
        &self,
        ours: &PilotRun,
        theirs: &PilotRun,
    ) -> Result<Option<String>, RunError> {
        let (Some(ours), Some(theirs)) = (ours.end, theirs.end) else { return Ok(None) };
        let (ours, theirs) = (&self.data[ours].file, &self.data[theirs].file);
        let found = difference(ours, theirs).map_err(RunError::io("compare files"))?;
        Ok(found.map(|found| found.to_string()))
    }

    /// Repeats the measurements of all stages of `drafts` that have been measured before. Measures
    /// these stages one round after another, until each has been measured `ROUNDS` times or there
    /// is no more time.
    ///
    /// # Errors
    /// Returns an error if the pilot was interrupted, or a system call failed.
    pub fn repeat(&mut self, drafts: &[&Draft]) -> Result<(), RunError> {
        let mut wanted: Vec<Key> = Vec::new();
        for draft in drafts {
            let mut input = 0;
            for (index, text) in texts(draft).into_iter().map_while(|text| text).enumerate() {
                let key = (text, input, between(draft, index));
                let Some(run) = self.runs.get(&key) else { break };
                input = run.output;
                if !wanted.contains(&key) {
                    wanted.push(key);
                }
            }
        }
        for _ in 1..ROUNDS {
            for key in &wanted {
                let taken = self.runs.get(key).map_or(0, |run| run.walls.len());
                if taken < ROUNDS && self.has_time() {
                    self.run_again(key)?;
                }
            }
        }
        Ok(())
    }

    /// Measures a command on an input once, unless it has been measured. Returns `false` if it took
    /// too long, so that there is no measurement.
    fn measure(&mut self, key: &Key) -> Result<bool, RunError> {
        if self.runs.contains_key(key) {
            return Ok(true);
        }
        if !self.start_ups.contains_key(&key.0) {
            let Some(start_up) = self.start_up(&key.0)? else { return Ok(false) };
            self.start_ups.insert(key.0.clone(), start_up);
        }
        let output = self.output_for(key.1)?;
        let Some(timed) = self.run(&key.0, &self.data[key.1].file, &output, key.2)? else {
            return Ok(false);
        };
        let output = self.keep(output)?;
        let measured = Measured {
            output,
            walls: vec![timed.wall.as_secs_f64()],
            cpus: vec![timed.cpu().as_secs_f64()],
        };
        self.runs.insert(key.clone(), measured);
        Ok(true)
    }

    /// Measures the cost of a command on empty input. It is the minimum of several runs, because
    /// the first one also loads the program. Returns `None` if a run took too long.
    fn start_up(&self, text: &str) -> Result<Option<StartUp>, RunError> {
        let nothing = temporary(0).map_err(RunError::io("make a file"))?;
        let output = temporary(0).map_err(RunError::io("make a file"))?;
        let mut least: Option<StartUp> = None;
        for _ in 0..STARTS {
            let Some(timed) = self.run(text, &nothing, &output, (false, false))? else {
                return Ok(None);
            };
            let (wall, cpu) = (timed.wall.as_secs_f64(), timed.cpu().as_secs_f64());
            let before = least.unwrap_or(StartUp { wall, cpu });
            least = Some(StartUp { wall: wall.min(before.wall), cpu: cpu.min(before.cpu) });
        }
        Ok(least)
    }

    fn output_for(&self, input: usize) -> Result<File, RunError> {
        temporary(self.data[input].bytes * 4).map_err(RunError::io("make a file"))
    }

    fn run_again(&mut self, key: &Key) -> Result<(), RunError> {
        let output = self.output_for(key.1)?;
        if let Some(timed) = self.run(&key.0, &self.data[key.1].file, &output, key.2)?
            && let Some(run) = self.runs.get_mut(key)
        {
            run.walls.push(timed.wall.as_secs_f64());
            run.cpus.push(timed.cpu().as_secs_f64());
        }
        Ok(())
    }

    fn run(
        &self,
        text: &str,
        input: &File,
        output: &File,
        ends: (bool, bool),
    ) -> Result<Option<Timed>, RunError> {
        // A run may slightly exceed the remaining budget; otherwise, a slow command might never be
        // measured.
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let limit = rest + Duration::from_millis(200);
        match self.runner.run_between(text, input, output, ends, limit) {
            Ok(timed) => Ok(Some(timed)),
            Err(RunError::TooLong(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores an output, and returns its index. Equal data is stored once.
    fn keep(&mut self, file: File) -> Result<usize, RunError> {
        let bytes = file.metadata().map_err(RunError::io("stat a file"))?.len();
        for (place, known) in self.data.iter().enumerate() {
            let compared = || difference(&known.file, &file).map_err(RunError::io("compare files"));
            if known.bytes == bytes && compared()?.is_none() {
                return Ok(place);
            }
        }
        self.data.push(Data { file, bytes });
        Ok(self.data.len() - 1)
    }

    fn time(&self, key: &Key) -> StageTime {
        let run = &self.runs[key];
        let start = &self.start_ups[&key.0];
        let wall = median(&run.walls).unwrap_or(0.0);
        let work = |whole: f64, start: f64| (whole - start).max(0.0);
        StageTime {
            service: work(wall, start.wall),
            cpu: work(median(&run.cpus).unwrap_or(0.0), start.cpu),
            spread: relative_spread(&run.walls),
            start_up: start.cpu,
        }
    }
}

/// Returns half the range of `times`, relative to their median; 0 if there are none or that is 0.
fn relative_spread(times: &[f64]) -> f64 {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    match median(times) {
        Some(median) if median > 0.0 => (most - least) / 2.0 / median,
        _ => 0.0,
    }
}

/// Returns the shell text of a whole pipeline whose first stage reads standard input. Returns `None`
/// if a stage must not be repeated, or the first stage's input cannot be replaced.
fn from_input(draft: &Draft) -> Option<String> {
    let mut texts = texts(draft).into_iter().collect::<Option<Vec<_>>>()?.into_iter();
    let mut changed = draft.clone();
    changed.stages.first_mut()?.text = texts.next()?;
    Some(changed.text_with_output())
}

/// Returns whether the stage at `index` reads from a pipe, and whether it writes to one.
fn between(draft: &Draft, index: usize) -> (bool, bool) {
    (index > 0, index + 1 < draft.stages.len())
}

/// Returns the shell text that runs each stage on its own. The first stage's text does not name its
/// input file, so that it reads the sample from standard input. Later stages are unchanged, and run on the
/// output of the stage before them. The text is `None` for a stage that must not be repeated or is
/// not a simple command, and for a first stage whose input cannot be replaced.
fn texts(draft: &Draft) -> Vec<Option<String>> {
    let alone = |(index, stage): (usize, &Stage)| {
        let simple = stage.simple.as_ref()?;
        let reads = if index == 0 { from_standard_input(simple)? } else { simple.clone() };
        (is_pure(&reads) || is_helper(simple)).then(|| reads.text())
    };
    draft.stages.iter().enumerate().map(alone).collect()
}

/// Returns whether a command is certainly one of those by which rewrites run pure commands: `perl`,
/// which enlarges a pipe, or `split`, which runs them over chunks.
fn is_helper(simple: &Simple) -> bool {
    let words: Vec<&str> = simple.arguments.iter().map(|word| word.text.as_str()).collect();
    let pure = |text: &str| Simple::read(text).is_some_and(|simple| is_pure(&simple));
    match (simple.name(), words.as_slice()) {
        ("perl", ["-e", script, command @ ..]) => {
            let command: Vec<_> = command.iter().map(|word| quote(word)).collect();
            script.starts_with("fcntl(STDOUT,1031,") && pure(&command.join(" "))
        }
        ("split", ["-l", _, filter]) => {
            let text = filter.strip_prefix("--filter=").unwrap_or_default();
            parse(text).is_ok_and(|parsed| {
                (0..parsed.stages.len()).all(|index| pure(&parsed.stage_text(index)))
            })
        }
        _ => false,
    }
}

/// Returns whether a service time in seconds is long enough to be compared with others.
pub fn is_long_enough(seconds: f64) -> bool {
    seconds >= MIN_DURATION.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    use contend_shell::environment::Environment;
    use contend_shell::runner::with_runner;

    #[test]
    fn whole_pipelines_are_timed_unless_they_must_not_be_repeated() {
        with_runner(None, |runner| {
            let mut input = tempfile::tempfile().expect("a file");
            input.write_all("line\n".repeat(1000).as_bytes()).expect("room");
            let sample = input.try_clone().expect("a descriptor");
            check_whole_pipelines(&mut Pilot::new(runner, sample, Duration::ZERO), &input);
        });
    }

    fn check_whole_pipelines(pilot: &mut Pilot<'_>, input: &File) {
        let environment = Environment::for_tests("C");
        let mut time = |text: &str, runner: Option<&str>, budget: Duration| {
            let draft = Draft::read(&parse(text).expect("a pipeline"), &environment);
            let mut draft = draft.expect("plain stages");
            if let Some(runner) = runner {
                draft = draft.run_by(runner);
            }
            pilot.run_whole(&draft, input, budget).expect("nothing fails")
        };
        let minute = Duration::from_mins(1);
        // It fails with the file that the first stage names, and ends after a second without input.
        let needs_input = "read line && [ \"$line\" = line ] || exec sleep 1000; sh -c";
        let run = time("cat no-such-file | wc -l", Some(needs_input), minute);
        let is_timed = |time: WholeTime| time.wall > 0.0 && time.wall < 60.0 && time.spread >= 0.0;
        assert!(matches!(run, WholeRun::Timed(time) if is_timed(time)), "{run:?}");
        assert_eq!(time("cat no-such-file | tee copy", None, minute), WholeRun::NotRepeatable);
        assert_eq!(time("cat no-such-file", None, Duration::ZERO), WholeRun::TooLong);
    }
}
