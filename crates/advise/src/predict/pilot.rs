//! Running stages alone, one after the other, on a small part of their own input: what a stage
//! takes by what another one takes there says what it will take on all of it.

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

/// How often a stage is timed, if there is time.
const ROUNDS: usize = 5;
/// How often a start is timed.
const STARTS: usize = 3;
/// Below this the clock and the scheduler are most of what is measured.
const TOO_SHORT: Duration = Duration::from_millis(2);

/// A pilot of one pipeline and of everything that may take its place.
#[derive(Debug)]
pub struct Pilot<'a> {
    runner: Runner<'a>,
    /// Texts as they were read or written; the first one is the sample.
    data: Vec<Data>,
    /// What was run on what.
    runs: HashMap<Key, Measured>,
    /// What starting takes, by text.
    start_ups: HashMap<String, StartUp>,
    deadline: Instant,
}

/// A text, the data that it reads, and whether it stands after and before a pipe.
type Key = (String, usize, (bool, bool));

#[derive(Debug)]
struct Data {
    file: File,
    bytes: u64,
}

/// What starting takes, in seconds.
#[derive(Debug, Clone, Copy)]
struct StartUp {
    wall: f64,
    cpu: f64,
}

#[derive(Debug, Clone)]
struct Measured {
    /// What it wrote, among the data.
    output: usize,
    walls: Vec<f64>,
    cpus: Vec<f64>,
}

/// What one stage took on the sample, without its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTime {
    /// Wall time in seconds, alone.
    pub service: f64,
    /// User and system time.
    pub cpu: f64,
    /// Half of the distance between least and most, by the median.
    pub spread: f64,
    /// User and system time of starting it.
    pub start_up: f64,
}

/// A pipeline on the sample, stage by stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Walk {
    /// The stages; shorter than the pipeline where one may not be run once more.
    pub stages: Vec<StageTime>,
    /// What came out last, for comparing; none if it did not get so far. Statuses are not
    /// compared: where nothing of a part matches, something of the whole still may.
    pub end: Option<usize>,
}

impl<'a> Pilot<'a> {
    /// A pilot on this sample that takes about as long as the budget at most.
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

    /// Whether there is time for more.
    pub fn has_time(&self) -> bool {
        Instant::now() < self.deadline
    }

    /// Runs every stage of a pipeline on what the one before it wrote, unless that is known
    /// already.
    ///
    /// # Errors
    /// When it was interrupted, or the machine refused.
    pub fn walk(&mut self, draft: &Draft) -> Result<Walk, RunError> {
        let mut input = 0;
        let mut walk = Walk { stages: Vec::new(), end: None };
        for (index, text) in texts(draft).into_iter().enumerate() {
            let Some(text) = text else { return Ok(walk) };
            let key = (text, input, between(draft, index));
            let known = self.runs.contains_key(&key);
            if !known && !self.has_time() || !self.measure(&key)? {
                return Ok(walk);
            }
            walk.stages.push(self.time(&key));
            input = self.runs[&key].output;
            if index + 1 == draft.stages.len() {
                walk.end = Some(input);
            }
        }
        Ok(walk)
    }

    /// What is different about what came out at the end of two walks, in words.
    ///
    /// # Errors
    /// When it cannot be read any more.
    pub fn difference(&self, ours: &Walk, theirs: &Walk) -> Result<Option<String>, RunError> {
        let (Some(ours), Some(theirs)) = (ours.end, theirs.end) else { return Ok(None) };
        let (ours, theirs) = (&self.data[ours].file, &self.data[theirs].file);
        let found = difference(ours, theirs).map_err(RunError::io("compare files"))?;
        Ok(found.map(|found| found.to_string()))
    }

    /// Times once more whatever has been run for these pipelines, in turn, while there is time.
    ///
    /// # Errors
    /// When it was interrupted, or the machine refused.
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

    /// Runs a text on some data if that has not been done; false if it took too long.
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

    /// What a text takes for nothing: the least of a few runs, for only the first one has to
    /// fetch the program.
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
        // One run may take what is left and a little more, so that a slow one is seen at all.
        let rest = self.deadline.saturating_duration_since(Instant::now());
        let limit = rest + Duration::from_millis(200);
        match self.runner.run_between(text, input, output, ends, limit) {
            Ok(timed) => Ok(Some(timed)),
            Err(RunError::TooLong(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The place of some data; data that is there already keeps its place.
    fn keep(&mut self, file: File) -> Result<usize, RunError> {
        let bytes = file.metadata().map_err(RunError::io("look at a file"))?.len();
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
        let least = run.walls.iter().copied().fold(f64::INFINITY, f64::min);
        let most = run.walls.iter().copied().fold(0.0, f64::max);
        let wall = median(&run.walls).unwrap_or(0.0);
        let work = |whole: f64, start: f64| (whole - start).max(0.0);
        StageTime {
            service: work(wall, start.wall),
            cpu: work(median(&run.cpus).unwrap_or(0.0), start.cpu),
            spread: if wall > 0.0 { (most - least) / 2.0 / wall } else { 0.0 },
            start_up: start.cpu,
        }
    }
}

/// Whether a stage stands after and before a pipe.
fn between(draft: &Draft, index: usize) -> (bool, bool) {
    (index > 0, index + 1 < draft.stages.len())
}

/// The stages as they are run alone; the first one reads the sample. `None` from the first one on
/// that may not be run.
fn texts(draft: &Draft) -> Vec<Option<String>> {
    let alone = |(index, stage): (usize, &Stage)| {
        let simple = stage.simple.as_ref()?;
        let reads = if index == 0 { from_standard_input(simple)? } else { simple.clone() };
        (is_pure(&reads) || is_helper(simple)).then(|| reads.text())
    };
    draft.stages.iter().enumerate().map(alone).collect()
}

/// What rewrites put around a pure command: a larger pipe, or parts of the input.
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

impl StageTime {
    /// Whether it is long enough to be compared.
    pub fn is_telling(&self) -> bool {
        self.service >= TOO_SHORT.as_secs_f64()
    }
}
