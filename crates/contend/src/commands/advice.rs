//! What `contend pipe` makes of a profile: answers, suggestions and their trial.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use contend_profile::commands::Simple;
use contend_profile::commands::purity::{Source, is_pure, source};
use contend_profile::pipeline::gate::proc_path;
use contend_profile::pipeline::known::sorts;
use contend_profile::pipeline::parse::Parsed;
use contend_profile::predict::advise::{Adviser, Prepared};
use contend_profile::predict::calibration::{Calibration, KnownStartUp};
use contend_profile::predict::pilot::Pilot;
use contend_profile::predict::what_if::Question;
use contend_profile::rewrite::draft::Draft;
use contend_profile::rewrite::environment::Environment;
use contend_profile::sample::Sample;
use contend_profile::timed::{RunError, Runner};
use contend_profile::trial::{self, Input, Manner, TrialError};
use contend_record::Host;
use contend_record::advice::TrialInput;
use contend_record::lab::{self, RunRecord};
use contend_record::pipe::{PipeRecord, Stage};
use contend_record::warning::{Warning, WarningId};
use contend_report::store::Store;
use contend_sys::interrupt::Signals;
use rustix::fs::FileType;

use crate::cli::pipe::SampleSize;
use crate::output;
use crate::settings::{How, PipeRun, STANDARD_INPUT, TrialSettings};

/// Shorter pipelines are start-up for the most part.
const SHORTEST: f64 = 0.1;
/// What is kept of an input that can be read only once.
const KEPT: u64 = 64 << 20;
/// Looking for changes takes no longer than this.
const PILOT: Duration = Duration::from_secs(2);
/// How long one pass of the pilot should take, in seconds.
const PASS: f64 = 0.15;
/// The same where something is sorted: that takes other ways with more data.
const SORTING_PASS: f64 = 0.4;
/// A smaller part of the input tells little, a larger one takes long.
const PILOT_BYTES: [u64; 2] = [256 << 10, 32 << 20];
/// Runs of every pipeline that the budget of a trial should suffice for.
const RUNS: f64 = 14.0;
/// A smaller sample is mostly start-up.
const SMALLEST_SAMPLE: f64 = 1e6;

/// Runs of the lab that are looked through for what starting costs.
const LAB_RUNS: usize = 20;

const CLEAR_LINE: &str = "\r\x1b[K";

/// What came through a pipe and was kept, so that it can be read again.
#[derive(Debug)]
pub struct KeptInput {
    /// Its bytes.
    file: File,
    /// How much it is.
    what: TrialInput,
}

/// Keeps what comes through standard input, where a trial needs it and it can be read only once;
/// the pipeline then reads what was kept.
///
/// # Errors
/// When it cannot be read or kept.
pub fn keep_input(settings: &mut PipeRun) -> Result<Option<KeptInput>> {
    if settings.advice.trial.is_none() || !may_read_standard_input(&settings.parsed) {
        return Ok(None);
    }
    let is_pipe = |kind| matches!(kind, FileType::Fifo | FileType::Socket);
    let from: Box<dyn io::Read> = match settings.how.open_stdin()? {
        Some(file) if is_pipe(kind_of(&file)) => Box::new(file),
        None if is_pipe(kind_of(&io::stdin())) => Box::new(io::stdin().lock()),
        _ => return Ok(None),
    };
    let sample = Sample::beginning(from, KEPT).context("cannot keep what standard input brings")?;
    settings.how.stdin = Some(proc_path(&sample.file).into());
    Ok(Some(KeptInput { file: sample.file, what: sample.what }))
}

/// Whether the first stage reads standard input, for all that is known. One that does not must not
/// make us wait for an input that nobody means to end.
fn may_read_standard_input(parsed: &Parsed) -> bool {
    let first = Simple::read(&parsed.stage_text(0));
    first.is_none_or(|simple| match source(&simple) {
        Source::Standard => true,
        Source::File(_) => false,
        Source::Other => !is_pure(&simple),
    })
}

fn kind_of(file: &impl std::os::fd::AsFd) -> FileType {
    rustix::fs::fstat(file).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

/// Adds to the record what can be said from it.
///
/// # Errors
/// When the machine refuses what that needs.
pub fn add(
    record: &mut PipeRecord,
    settings: &PipeRun,
    kept: Option<&KeptInput>,
    signals: &Signals,
) -> Result<()> {
    if let Some(KeptInput { what: TrialInput::Beginning { bytes, complete: false }, .. }) = kept {
        let message = format!(
            "only the first {} of standard input were read, for they had to be kept to be read \
             again: give --stdin FILE for all of it",
            contend_report::render::units::bytes(*bytes as f64)
        );
        record.warnings.push(Warning::new(WarningId::PartOfInput, message));
    }
    let advice = &settings.advice;
    let looks = advice.trial.is_some() || advice.wanted && record.wall_seconds >= SHORTEST;
    if !looks && advice.questions.is_empty() {
        return Ok(());
    }
    let calibration = answer(record, &advice.questions, advice.store.as_deref())?;
    if !looks {
        return Ok(());
    }
    match look(record, settings, kept, &calibration, signals) {
        Err(error) if advice.trial.is_none() => {
            // Nobody has asked for it: a pipeline that was profiled is not to fail for it.
            match error.downcast_ref::<RunError>() {
                Some(RunError::Interrupted(_)) => {}
                _ => warn(record, format!("changes could not be looked for: {error:#}")),
            }
            Ok(())
        }
        result => result,
    }
}

/// Finds out what pipes and starting cost here, and answers the questions.
///
/// # Errors
/// When the machine has no pipe or process to spare.
pub fn answer(
    record: &mut PipeRecord,
    questions: &[Question],
    store: Option<&Path>,
) -> Result<Calibration> {
    let known = store.and_then(|store| known_start_up(store, &record.host));
    let calibration = Calibration::measure(known).context("cannot find out what pipes cost")?;
    record.what_if =
        questions.iter().map(|question| question.answer(record, &calibration)).collect();
    record.calibration = Some(calibration.record());
    Ok(calibration)
}

/// What the lab has last found a start to cost on this machine. A store that is not there or
/// cannot be read is no reason to stop.
fn known_start_up(store: &Path, host: &Host) -> Option<KnownStartUp> {
    if !store.is_file() {
        return None;
    }
    let store = Store::open_to_read(store).ok()?;
    let entries = store.list(LAB_RUNS).ok()?;
    entries.into_iter().filter(|entry| entry.schema == lab::SCHEMA).find_map(|entry| {
        let (_, text) = store.get(entry.id).ok()??;
        let run: RunRecord = serde_json::from_str(&text).ok()?;
        let same = run.host.cpu_model == host.cpu_model && run.host.kernel == host.kernel;
        let starts = |case: &&lab::Case| {
            case.experiment.ends_with("/startup")
                && case.parameters.text("command") == Some("true")
                && case.disturbed.is_empty()
        };
        let case = run.cases.iter().filter(|_| same).find(starts)?;
        Some(KnownStartUp { seconds: case.median? * 1e-9, run: entry.id })
    })
}

fn warn(record: &mut PipeRecord, message: String) {
    record.warnings.push(Warning::new(WarningId::NoAdvice, message));
}

fn look(
    record: &mut PipeRecord,
    settings: &PipeRun,
    kept: Option<&KeptInput>,
    calibration: &Calibration,
    signals: &Signals,
) -> Result<()> {
    let how = &settings.how;
    let asked = Environment::ask(&how.shell, how.setup.as_deref(), &settings.parsed, signals)
        .context("cannot ask the shell what the commands are")?;
    let Some(mut environment) = asked else {
        warn(record, "the shell did not say what the commands are".to_owned());
        return Ok(());
    };
    environment.cpus = record.host.cpus_allowed.max(1);
    environment.memory_bytes = record
        .host
        .memory_limit_bytes
        .map_or(record.host.memory_bytes, |limit| limit.min(record.host.memory_bytes));
    let Some(draft) = Draft::read(&settings.parsed, &environment) else {
        if settings.advice.trial.is_some() {
            let message = "comments, here-documents and |& between stages keep changes from being \
                           looked for";
            warn(record, message.to_owned());
        }
        return Ok(());
    };
    let runner =
        Runner { shell: &how.shell, setup: how.setup.as_deref(), pipefail: how.pipefail, signals };
    let line = StatusLine { draws: how.live };
    line.show("looking for changes …");
    let input = input_file(&draft, how, kept);
    let pilot = match &input {
        Some(file) => pilot(record, file, runner)?,
        None => None,
    };
    let adviser = Adviser { record, environment: &environment, calibration, pilot };
    let prepared = adviser.candidates(&draft);
    line.clear();
    let mut prepared = prepared?;
    if let Some(trial) = &settings.advice.trial {
        let tried = try_out(record, trial, runner, &draft, &mut prepared, input, kept, line);
        match tried {
            Ok(trial) => record.trial = Some(trial),
            Err(TrialError::Run(RunError::Interrupted(_))) => {}
            Err(error) => {
                record.candidates = prepared.into_iter().map(|one| one.candidate).collect();
                return Err(anyhow::Error::new(error).context("nothing could be tried"));
            }
        }
    }
    record.candidates = prepared.into_iter().map(|one| one.candidate).collect();
    Ok(())
}

/// The file that the pipeline reads, if it is one and can be read again.
fn input_file(draft: &Draft, how: &How, kept: Option<&KeptInput>) -> Option<File> {
    if let Some(kept) = kept {
        return kept.file.try_clone().ok();
    }
    let path = match draft.stages.first()?.simple.as_ref().map(source)? {
        // A set-up may have gone to another folder.
        Source::File(file) if how.setup.is_none() || file.text.starts_with('/') => {
            PathBuf::from(file.text)
        }
        Source::Standard => how.stdin.clone().unwrap_or_else(|| STANDARD_INPUT.into()),
        _ => return None,
    };
    // Opening anything else could wait for ever, or do something.
    let regular = |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file());
    Some(path).filter(regular).and_then(|path| File::open(path).ok())
}

fn pilot<'a>(record: &PipeRecord, file: &File, runner: Runner<'a>) -> Result<Option<Pilot<'a>>> {
    let whole = file.metadata()?.len();
    let work: f64 = record.stages.iter().map(Stage::service_seconds).sum();
    if whole == 0 || work <= 0.0 {
        return Ok(None);
    }
    let sorting = record.stages.iter().any(|stage| sorts(&stage.command));
    let pass = if sorting { SORTING_PASS } else { PASS };
    // Between the bounds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let bytes = (whole as f64 * pass / work) as u64;
    let bytes = bytes.clamp(PILOT_BYTES[0], PILOT_BYTES[1]);
    let sample = Sample::of(file.try_clone()?, bytes).context("cannot take a sample")?;
    let budget = PILOT.min(Duration::from_secs_f64(record.wall_seconds.max(0.5)));
    Ok(Some(Pilot::new(runner, sample.file, budget)))
}

#[expect(clippy::too_many_arguments, reason = "what a trial needs comes from as many places")]
fn try_out(
    record: &PipeRecord,
    settings: &TrialSettings,
    runner: Runner<'_>,
    draft: &Draft,
    prepared: &mut [Prepared],
    input: Option<File>,
    kept: Option<&KeptInput>,
    line: StatusLine,
) -> Result<contend_record::advice::Trial, TrialError> {
    let io = |what| RunError::io(what);
    let reads_stdin =
        draft.stages[0].simple.as_ref().is_none_or(|simple| source(simple) == Source::Standard);
    let stdin = |file: &Option<File>| -> Result<Option<File>, RunError> {
        match file {
            Some(file) if reads_stdin => {
                file.try_clone().map(Some).map_err(io("keep the input open"))
            }
            _ => Ok(None),
        }
    };
    let whole = stdin(&input)?;
    let bytes = input.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len());
    let tried = prepared.iter().filter(|one| one.is_worth_trying()).count();
    let most = sample_bytes(settings, record, tried, bytes);
    let last = record.stages.last().and_then(|stage| stage.bytes_out).unwrap_or(64 << 20);
    let (input, whole) = match (input, kept) {
        (Some(file), Some(kept)) => (Input::Sample(Sample { file, what: kept.what.clone() }), None),
        (Some(file), None) => {
            let sample = Sample::of(file, most).map_err(io("take a sample of the input"))?;
            let whole = matches!(sample.what, TrialInput::Sample { .. }).then_some(whole);
            (Input::Sample(sample), whole)
        }
        (None, _) => (Input::Own(None), None),
    };
    let manner = Manner {
        runner,
        input,
        whole,
        budget: settings.budget,
        output_bytes: last,
        seed: settings.seed,
    };
    let mut result = trial::hold(&manner, draft, prepared, &mut |rounds, share| {
        line.show(&format!(
            "trying: round {rounds}, {:.0} % of the budget …",
            100.0 * share.min(1.0)
        ));
    });
    if let Ok(trial) = &mut result
        && !settings.copies.is_empty()
    {
        line.show("trying several copies at once …");
        trial.load = trial::load::sweep(&manner, draft, prepared, &settings.copies)?;
    }
    line.clear();
    result
}

/// How much of the input suits the budget.
fn sample_bytes(
    settings: &TrialSettings,
    record: &PipeRecord,
    candidates: usize,
    whole: u64,
) -> u64 {
    match settings.sample {
        Some(SampleSize::All) => u64::MAX,
        Some(SampleSize::Bytes(bytes)) => bytes,
        None => {
            let all = record.wall_seconds * (candidates + 1) as f64 * RUNS;
            let share = settings.budget.as_secs_f64() / all.max(1e-9);
            if share >= 1.0 {
                return u64::MAX;
            }
            // Between one million and the file's size.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "see above"
            )]
            let bytes = (whole as f64 * share).max(SMALLEST_SAMPLE) as u64;
            bytes
        }
    }
}

/// A line on the terminal that says what goes on.
#[derive(Debug, Clone, Copy)]
struct StatusLine {
    draws: bool,
}

impl StatusLine {
    fn show(self, text: &str) {
        if self.draws {
            output::terminal(&format!("{CLEAR_LINE}{text}"));
        }
    }

    fn clear(self) {
        if self.draws {
            output::terminal(CLEAR_LINE);
        }
    }
}
