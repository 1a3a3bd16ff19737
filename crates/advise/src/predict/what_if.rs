//! Parses hypothetical questions (`--what-if`), and answers them from the model alone.

use contend_commands::behaviour::sorts;
use contend_record::advice::WhatIf;
use contend_record::pipe::PipeRecord;

use super::calibration::Calibration;
use super::model::{Barrier, Limit, Model, StageCost};

/// A hypothetical change.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    /// A stage, by its index from 0, runs `times` times as fast.
    Faster { stage: usize, times: f64 },
    /// Two neighbouring stages are merged into one process; `first` is the index of the first one,
    /// from 0.
    Fuse { first: usize },
    /// A stage, by its index from 0, is removed.
    Drop { stage: usize },
    /// The pipeline can use this number of CPUs.
    Cpus(f64),
    /// This number of copies runs at the same time.
    Copies(f64),
    /// The size of the input is multiplied by this factor.
    Input(f64),
}

/// A parsed question: changes to apply in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    text: String,
    changes: Vec<Change>,
}

/// An error in a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// A part of the question has none of the known forms, or the question is empty.
    #[error(
        "'{0}': expected 'stage 3 x2', 'fuse 2,3', 'drop 1', 'cpus 8', 'copies 10' or 'input x100' (numbers \
         from 0.000001 to 1000000), or several separated by `;`"
    )]
    Unknown(String),
    /// A part of the question names a stage that does not exist.
    #[error("'{text}': there is no stage {stage}; the last one is stage {stages}")]
    NoSuchStage {
        /// The part of the question, as written.
        text: String,
        /// The named stage, from 1.
        stage: usize,
        /// Number of stages after the preceding changes.
        stages: usize,
    },
    /// A part of the question would remove the only stage that is left.
    #[error("'{0}': no stage would be left")]
    NoneLeft(String),
    /// A part of the question fuses stages that are not neighbours.
    #[error("'{0}': only adjacent stages can be fused, as in 'fuse 2,3'")]
    NoNeighbours(String),
}

impl Question {
    /// Parses a question about a pipeline of `stages` stages.
    ///
    /// # Errors
    /// Returns an error if `text` has one of these problems:
    /// - it is empty or has a syntax error;
    /// - it names a stage that does not exist;
    /// - it fuses stages that are not neighbours;
    /// - it leaves no stage.
    pub fn read(text: &str, stages: usize) -> Result<Self, QuestionError> {
        let mut changes = Vec::new();
        let mut left = stages;
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        for part in parts {
            let change = change(part).ok_or_else(|| QuestionError::Unknown(part.to_owned()))?;
            let fuses = part.strip_prefix("fuse");
            if fuses.is_some_and(|pair| !are_neighbours(pair)) {
                return Err(QuestionError::NoNeighbours(part.to_owned()));
            }
            let named = match change {
                Change::Faster { stage, .. } | Change::Drop { stage } => Some(stage),
                Change::Fuse { first } => Some(first + 1),
                _ => None,
            };
            if let Some(stage) = named.filter(|&stage| stage >= left) {
                let text = part.to_owned();
                return Err(QuestionError::NoSuchStage { text, stage: stage + 1, stages: left });
            }
            if matches!(change, Change::Fuse { .. } | Change::Drop { .. }) {
                left -= 1;
                if left == 0 {
                    return Err(QuestionError::NoneLeft(part.to_owned()));
                }
            }
            changes.push(change);
        }
        if changes.is_empty() {
            return Err(QuestionError::Unknown(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), changes })
    }

    /// Answers the question for a profiled pipeline.
    ///
    /// # Panics
    /// May panic if `record` has fewer stages than were given to [`Self::read`].
    pub fn answer(&self, record: &PipeRecord, calibration: &Calibration) -> WhatIf {
        let mut model = Model::of(record, calibration.start_up);
        let mut commands: Vec<String> =
            record.stages.iter().map(|stage| stage.command.clone()).collect();
        let mut pipes: Vec<f64> = record
            .boundaries
            .iter()
            .map(|boundary| {
                let bytes = boundary.bytes.unwrap_or(0) as f64;
                let calls = record.stages[boundary.from - 1].writes.unwrap_or(0) as f64;
                calibration.pipe(bytes, calls)
            })
            .collect();
        let mut copies = 1.0;
        for change in &self.changes {
            match *change {
                Change::Faster { stage, times } => {
                    model.stages[stage].service /= times;
                    model.stages[stage].cpu /= times;
                }
                Change::Fuse { first } => {
                    let second = model.stages.remove(first + 1);
                    let saved = pipes.remove(first);
                    model.stages[first] = fused(&model.stages[first], &second, saved);
                    let text = commands.remove(first + 1);
                    commands[first] = format!("{} + {text}", commands[first]);
                }
                Change::Drop { stage } => {
                    model.stages.remove(stage);
                    commands.remove(stage);
                    pipes.remove(stage.min(pipes.len().saturating_sub(1)));
                }
                Change::Cpus(cpus) => model.cpus = cpus,
                Change::Copies(count) => copies *= count,
                Change::Input(times) => {
                    for (stage, command) in model.stages.iter_mut().zip(&commands) {
                        *stage = grown(stage, times, sorts(command));
                    }
                    model.floor *= times;
                }
            }
        }
        let forecast = model.forecast(copies);
        WhatIf {
            question: self.text.clone(),
            wall_seconds: forecast.wall,
            cpu_seconds: forecast.cpu,
            bottleneck: described(forecast.limit, &model, &commands),
        }
    }
}

/// The words with which changes in a question begin.
pub const CHANGE_WORDS: [&str; 6] = ["stage", "fuse", "drop", "cpus", "copies", "input"];

/// Largest factor or count in a question; the smallest is its reciprocal.
const MAX_NUMBER: f64 = 1e6;

fn change(part: &str) -> Option<Change> {
    let (word, rest) = part.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    // The model predicts nothing useful outside this range.
    let range = (1.0 / MAX_NUMBER)..=MAX_NUMBER;
    let positive = |text: &str| text.parse::<f64>().ok().filter(|n| range.contains(n));
    let times = |text: &str| positive(text.trim().strip_prefix(['x', '×'])?);
    let stage = |text: &str| text.trim().parse::<usize>().ok()?.checked_sub(1);
    match word {
        "stage" => {
            let (number, factor) = rest.split_once(char::is_whitespace)?;
            Some(Change::Faster { stage: stage(number)?, times: times(factor)? })
        }
        "fuse" => Some(Change::Fuse { first: stage(rest.split_once(',')?.0)? }),
        "drop" => Some(Change::Drop { stage: stage(rest)? }),
        "cpus" => positive(rest).map(Change::Cpus),
        "copies" => positive(rest).filter(|count| count.fract() == 0.0).map(Change::Copies),
        "input" => times(rest).map(Change::Input),
        _ => None,
    }
}

fn are_neighbours(pair: &str) -> bool {
    let numbers: Vec<usize> = pair.split(',').filter_map(|n| n.trim().parse().ok()).collect();
    matches!(numbers.as_slice(), [a, b] if a + 1 == *b)
}

/// Returns the cost of both stages in one process: their work without the start of the second
/// program and without the pipe between them, which costs `pipe` seconds. The result is never less
/// than the cost of the more expensive stage.
fn fused(first: &StageCost, second: &StageCost, pipe: f64) -> StageCost {
    let least = first.service.max(second.service);
    let work = |a: f64, b: f64| (a + b - pipe - second.start_up).max(a.max(b));
    // If the second stage is a barrier, the work of the first one precedes the end of its input.
    let barrier = second.barrier.map(|barrier| {
        let share = (second.service / least.max(f64::MIN_POSITIVE)).min(1.0);
        Barrier { alone: barrier.alone * share, after: barrier.after * share }
    });
    StageCost {
        service: work(first.service, second.service),
        cpu: work(first.cpu, second.cpu),
        barrier: barrier.or(first.barrier),
        start_up: first.start_up,
    }
}

/// Returns the cost of a stage for `times` times the input. Its start-up cost does not grow. The
/// remaining time grows with n log n if the stage `sorts`, and in proportion to the input
/// otherwise.
fn grown(stage: &StageCost, times: f64, sorts: bool) -> StageCost {
    /// Assumed number of lines; the logarithm hardly depends on it.
    const LINES: f64 = 1e6;
    let factor = if sorts { times * (LINES * times).ln().max(1.0) / LINES.ln() } else { times };
    let grow = |time: f64| (time - stage.start_up).max(0.0) * factor + stage.start_up.min(time);
    StageCost { service: grow(stage.service), cpu: grow(stage.cpu), ..stage.clone() }
}

fn described(limit: Limit, model: &Model, commands: &[String]) -> String {
    match limit {
        Limit::Stage(index) => format!("stage {}: {}", index + 1, commands[index]),
        Limit::Machine if model.cpus <= 1.0 => "the CPU".to_owned(),
        Limit::Machine => format!("the {} CPUs", model.cpus),
        Limit::Outside => "the pipeline's input or output".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewrite::tests::profile_of;

    const CALIBRATION: Calibration =
        Calibration { pipe_byte: 1e-9, pipe_call: 1e-6, start_up: 0.001, run: None };

    /// Answers a question about a pipeline that took 1 s on 2 CPUs, with three stages that used 0.5
    /// s of CPU time each.
    fn ask(text: &str) -> WhatIf {
        let question = Question::read(text, 3).expect("understood");
        question.answer(&profile_of(3, 1 << 20), &CALIBRATION)
    }

    #[test]
    fn questions_are_answered_from_the_model() {
        // Three stages of 0.5 s take 0.75 s on two CPUs; the profile took 1 s.
        let quick = ask("stage 2 x2");
        assert!((quick.wall_seconds - 0.625 * 4.0 / 3.0).abs() < 1e-6, "{quick:?}");
        assert_eq!(quick.bottleneck, "the 2 CPUs");
        let many = ask("cpus 8");
        assert!((many.wall_seconds - 0.5 * 4.0 / 3.0).abs() < 1e-6, "{many:?}");
        assert!(many.bottleneck.starts_with("stage 1"));
        let ten = ask("copies 10");
        assert!((ten.cpu_seconds - 15.0).abs() < 1e-6 && ten.wall_seconds > 9.9, "{ten:?}");
        let large = ask("input x100");
        assert!(large.wall_seconds > 99.0 && large.wall_seconds < 100.5, "{large:?}");
        let fused = ask("fuse 2,3; cpus 8");
        assert!(fused.bottleneck.contains("c2 + c3") && fused.cpu_seconds < 1.5, "{fused:?}");
        assert!(ask("drop 1").cpu_seconds < 1.001);
    }

    #[test]
    fn invalid_questions_are_rejected() {
        for text in [
            "",
            "stage",
            "stage x2",
            "stage 0 x2",
            "stage 1 2",
            "cpus 0",
            "cpus -1",
            "copies 1.5",
            "input x0",
            "input xnan",
            "faster",
            "fuse 1",
            "stage 1 xinf",
            "input x1e300",
            "copies 99999999999",
        ] {
            let error = Question::read(text, 3).expect_err(text);
            assert!(matches!(error, QuestionError::Unknown(_)), "{text}: {error}");
        }
        assert!(Question::read("stage 4 x2", 3).is_err());
        assert!(Question::read("fuse 3,4", 3).is_err());
        assert_eq!(
            Question::read("fuse 1,3", 3),
            Err(QuestionError::NoNeighbours("fuse 1,3".into()))
        );
        assert!(Question::read("drop 1; drop 1; drop 1", 3).is_err());
        assert!(Question::read("fuse 1,2; stage 3 x2", 3).is_err());
    }
}
