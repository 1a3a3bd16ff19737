//! Advice after a profile: answers to `--what-if`, suggested changes, and their trial.
//!
//! ```text
//! profile ─▶ calibration ─▶ answers
//!                 │
//!                 ▼
//!   shell ─▶ environment, draft ─▶ pilot ─▶ candidates ─▶ trial (--try)
//! ```

pub mod input;
mod machine;

use std::fs::{File, Metadata};
use std::time::Duration;

use anyhow::{Context as _, Result};
use contend_advise::parallelism::{is_worth_suggesting, predict_by_pilot};
use contend_advise::predict::advise::{Adviser, Prepared};
use contend_advise::predict::calibration::Calibration;
use contend_advise::predict::pilot::Pilot;
use contend_advise::rewrite::did_its_work;
use contend_advise::rewrite::draft::Draft;
use contend_advise::sample::Sample;
use contend_advise::trial::{self, Expected, Input, TrialConfig, TrialError};
use contend_commands::Simple;
use contend_commands::behaviour::sorts;
use contend_parallel::plan::planner::Situation;
use contend_record::advice::{Trial, TrialInput};
use contend_record::pipe::{Figure, Outcome, PipeRecord, Stage};
use contend_record::shell::quote;
use contend_record::warning::{Warning, WarningId};
use contend_shell::environment::{Environment, default_shell};
use contend_shell::runner::{RunError, Runner};
use contend_shell::side_effects::{check_repeatable, check_setup};
use contend_sys::interrupt::Signals;

use crate::cli::pipe::SampleSize;
use crate::output;
use crate::settings::{PipeRun, TrialSettings};
use crate::terminal::{StatusLine, bar};
use input::{Rereadable, SavedInput};

pub use machine::answer;

/// Minimum wall time of a pipeline for advice, in seconds. A shorter run consists mostly of
/// start-up.
const MIN_WALL_SECONDS: f64 = 0.1;
/// Maximum duration of a pilot.
const MAX_PILOT_TIME: Duration = Duration::from_secs(2);
/// Target duration of one pass of the pilot, in seconds.
const PASS_SECONDS: f64 = 0.15;
/// Target duration of one pass if a stage sorts, in seconds. It is longer because `sort` changes
/// its method as the data grows.
const SORTING_PASS_SECONDS: f64 = 0.4;
/// Number of passes that should fit into the pilot of a pipeline that takes less than a second.
const MIN_PASSES: f64 = 8.0;
/// Minimum and maximum size of the sample for the pilot, in bytes.
const PILOT_SIZE_RANGE_BYTES: [u64; 2] = [256 << 10, 32 << 20];
/// Number of runs of the original and of each candidate for which the budget of a trial should
/// suffice.
const RUNS_PER_CANDIDATE: f64 = 14.0;
/// Minimum size of the sample that a trial derives from its budget, in bytes. With a smaller one, a
/// run consists mostly of start-up.
const MIN_SAMPLE_BYTES: f64 = 1e6;

/// Adds answers, suggested changes and their trial to the record, as far as the settings ask for
/// them, and a warning if only a part of standard input was saved. Without `--try`, a run of less
/// than `MIN_WALL_SECONDS` gets no suggestions.
///
/// # Errors
/// Returns an error if the cost of a pipe cannot be measured, or `--try` fails.
pub fn add(
    record: &mut PipeRecord,
    settings: &PipeRun,
    saved: Option<&SavedInput>,
    signals: &Signals,
) -> Result<()> {
    if let Some(SavedInput { what: TrialInput::Beginning { bytes, complete: false }, .. }) = saved {
        let message = format!(
            "only the first {} of standard input were read, because --try reads them several times: \
             use --stdin FILE to read all of it",
            contend_report::render::units::bytes(*bytes as f64)
        );
        record.warnings.push(Warning::new(WarningId::PartOfInput, message));
    }
    let advice = &settings.advice;
    let looks_for_changes =
        advice.trial.is_some() || advice.wanted && record.wall_seconds >= MIN_WALL_SECONDS;
    if !looks_for_changes && advice.questions.is_empty() {
        return Ok(());
    }
    let calibration = answer(record, &advice.questions, advice.store.as_deref())?;
    if !looks_for_changes {
        return Ok(());
    }
    match find_changes(record, settings, saved, &calibration, signals) {
        Err(error) if advice.trial.is_none() => {
            // The user did not ask for advice, so the profile succeeds without it.
            match error.downcast_ref::<RunError>() {
                Some(RunError::Interrupted(_)) => {}
                _ => warn(record, format!("no changes were looked for: {error:#}")),
            }
            Ok(())
        }
        result => result,
    }
}

/// Returns whether the shell could not execute the stage's command.
fn never_ran(stage: &Stage) -> bool {
    matches!(stage.outcome, Outcome::NotFound | Outcome::NotExecutable)
}

/// Adds a warning about failed stages, if any, to the record: a pipeline that fails early says
/// little about one that succeeds.
fn warn_of_failed(record: &mut PipeRecord) {
    let failed = record.stages.iter().filter(|stage| !did_its_work(stage));
    let names: Vec<_> =
        failed.map(|stage| format!("{} `{}`", stage.index, stage.command)).collect();
    if !names.is_empty() {
        let message = format!(
            "stage {} failed: the results of --try may not apply to the pipeline when it succeeds",
            names.join(", stage ")
        );
        record.warnings.push(Warning::new(WarningId::FailedStage, message));
    }
}

fn warn(record: &mut PipeRecord, message: String) {
    record.warnings.push(Warning::new(WarningId::NoAdvice, message));
}

/// Looks for changes and, with `--try`, measures them in a trial.
fn find_changes(
    record: &mut PipeRecord,
    settings: &PipeRun,
    saved: Option<&SavedInput>,
    calibration: &Calibration,
    signals: &Signals,
) -> Result<()> {
    if let Some(stage) = record.stages.iter().find(|stage| never_ran(stage)) {
        let (index, command) = (stage.index, &stage.command);
        let outcome = match stage.outcome {
            Outcome::NotFound => "was not found",
            _ => "cannot be executed",
        };
        warn(record, format!("no changes were looked for: stage {index} `{command}` {outcome}"));
        return Ok(());
    }
    if settings.advice.trial.is_some() {
        warn_of_failed(record);
    }
    let Some((environment, draft)) = read_environment(record, settings, signals)? else {
        return Ok(());
    };
    let pipeline = &settings.pipeline;
    let parallel = parallel_run(record, settings, &draft, &environment);
    let own = parallel.as_ref().and_then(|_| own_function());
    let runner = Runner {
        shell: &pipeline.shell,
        setup: pipeline.setup.as_deref().or(own.as_deref()),
        pipefail: pipeline.pipefail,
        signals,
    };
    let line = StatusLine { draws: pipeline.live };
    line.show("looking for faster versions …");
    let rereadable = Rereadable::of(&draft, pipeline, saved);
    let pilot = match &rereadable.file {
        Some(file) => pilot(record, file, runner).inspect_err(|_| line.clear())?,
        None => None,
    };
    let mut adviser = Adviser { record, environment: &environment, calibration, pilot };
    let prepared = adviser.candidates(&draft);
    let pilot = adviser.pilot.as_mut().zip(rereadable.file.as_ref());
    let parallel = with_pilot(parallel, record, pilot);
    line.clear();
    let (mut prepared, parallel) = (prepared?, parallel?);
    let is_tried = settings.advice.trial.is_some();
    if let Some(parallel) = parallel.filter(|one| is_tried || is_worth_suggesting(one)) {
        let place = prepared.iter().position(|one| parallel.is_expected_before(one));
        prepared.insert(place.unwrap_or(prepared.len()), parallel);
    }
    let tried =
        settings.advice.trial.as_ref().map(|trial| {
            try_out(trial, runner, &draft, &mut prepared, rereadable, line, &mut adviser)
        });
    record.candidates = prepared.into_iter().map(|one| one.candidate).collect();
    if let Some(tried) = tried {
        return add_trial(record, tried, signals);
    }
    // Do not suggest a trial that would be refused.
    if !record.candidates.is_empty()
        && let Err(why) = check_repeatable(&settings.parsed, pipeline.setup.as_deref())
    {
        record.warnings.push(Warning::new(
            WarningId::NotRepeatable,
            format!("the suggestions cannot be tried: --try {why}"),
        ));
    }
    Ok(())
}

/// Returns the candidate `parallel`, if there is one, with a prediction by the pilot on the input, if
/// there are such.
fn with_pilot(
    mut parallel: Option<Prepared>,
    record: &PipeRecord,
    pilot: Option<(&mut Pilot<'_>, &File)>,
) -> Result<Option<Prepared>, RunError> {
    if let (Some(parallel), Some((pilot, input))) = (&mut parallel, pilot) {
        predict_by_pilot(parallel, record, input, pilot)?;
    }
    Ok(parallel)
}

/// Returns a candidate that runs the pipeline with `contend run`, if it may be faster. Returns `None` if there is a setup, because `contend run` has no such option.
fn parallel_run(
    record: &PipeRecord,
    settings: &PipeRun,
    draft: &Draft,
    environment: &Environment,
) -> Option<Prepared> {
    let (parsed, pipeline) = (&settings.parsed, &settings.pipeline);
    let stages: Option<Vec<Simple>> =
        parsed.stages.iter().map(|stage| Simple::read(&parsed.text[stage.span.clone()])).collect();
    let stages = stages.filter(|_| pipeline.setup.is_none())?;
    // Reading the metadata does not open the path, which may be a FIFO and block.
    let input = pipeline.stdin.as_ref().and_then(|path| path.metadata().ok());
    let situation = Situation {
        environment,
        annotations: &[],
        input_bytes: input.filter(Metadata::is_file).map(|input| input.len()),
        output_is_terminal: false,
        reads_objects: false,
    };
    let mut command = "contend run".to_owned();
    if pipeline.pipefail {
        command += " --pipefail";
    }
    if pipeline.shell != default_shell() {
        command += &format!(" --shell {}", quote(&pipeline.shell));
    }
    contend_advise::parallelism::candidate(record, draft, &command, &stages, &situation)
}

/// Returns the definition of a shell function with which `contend run` in a trial starts this
/// program, wherever it is, and saves nothing. Returns `None` if the path of this program is unknown
/// or not UTF-8.
fn own_function() -> Option<String> {
    let own = std::env::current_exe().ok()?;
    let own = quote(own.to_str()?);
    // The pipeline itself may start contend with another verb.
    Some(format!(
        "contend() {{ if [ \"$1\" = run ]; then shift; {own} run --no-store --no-progress \"$@\"; else \
         command contend \"$@\"; fi; }}"
    ))
}

/// Returns the environment of the commands, and the pipeline as a draft that rewrites can change.
/// Returns `None` if either cannot be determined, or if the setup may have side effects and must
/// not run again. A warning then gives the reason; for the draft, only with `--try`.
fn read_environment(
    record: &mut PipeRecord,
    settings: &PipeRun,
    signals: &Signals,
) -> Result<Option<(Environment, Draft)>> {
    let pipeline = &settings.pipeline;
    if let Some(setup) = &pipeline.setup
        && settings.advice.trial.is_none()
        && check_setup(setup).is_err()
    {
        let message = "no changes were looked for: that reruns the --setup, which may have side \
                       effects";
        warn(record, message.to_owned());
        return Ok(None);
    }
    let asked = Environment::query_shell(
        &pipeline.shell,
        pipeline.setup.as_deref(),
        &settings.parsed,
        signals,
    )
    .context("cannot ask the shell what its commands are")?;
    let Some(mut environment) = asked else {
        warn(
            record,
            "no changes were looked for: the shell did not report what its commands are".to_owned(),
        );
        return Ok(None);
    };
    environment.pipefail |= pipeline.pipefail;
    environment.cpus = record.host.cpus_allowed.max(1);
    environment.memory_bytes = record
        .host
        .memory_limit_bytes
        .map_or(record.host.memory_bytes, |limit| limit.min(record.host.memory_bytes));
    let Some(draft) = Draft::read(&settings.parsed, &environment) else {
        if settings.advice.trial.is_some() {
            let message = "no changes were looked for: the pipeline has comments, here-documents or |& \
                           between stages";
            warn(record, message.to_owned());
        }
        return Ok(None);
    };
    Ok(Some((environment, draft)))
}

/// Adds the result of the trial to the record. An interruption is not an error.
fn add_trial(
    record: &mut PipeRecord,
    tried: Result<(Trial, Option<TrialError>), TrialError>,
    signals: &Signals,
) -> Result<()> {
    let interrupted =
        |error: &TrialError| matches!(error, TrialError::Run(RunError::Interrupted(_)));
    match tried {
        Ok((mut trial, problem)) => {
            trial.interrupted |= signals.interrupted().is_some();
            record.trial = Some(trial);
            if let Some(problem) = problem.filter(|problem| !interrupted(problem)) {
                let problem = anyhow::Error::new(problem);
                warn(record, format!("copies could not run at the same time: {problem:#}"));
            }
            Ok(())
        }
        Err(error) if interrupted(&error) => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("--try failed")),
    }
}

fn pilot<'a>(record: &PipeRecord, file: &File, runner: Runner<'a>) -> Result<Option<Pilot<'a>>> {
    let whole = file.metadata()?.len();
    let work: f64 = record.stages.iter().map(Stage::service_seconds).sum();
    if whole == 0 || work <= 0.0 {
        return Ok(None);
    }
    let sorting = record.stages.iter().any(|stage| sorts(&stage.command));
    let pass = if sorting { SORTING_PASS_SECONDS } else { PASS_SECONDS };
    // A short pipeline gets a short pilot, which still needs time for several passes.
    let budget = match record.wall_seconds {
        wall if wall < 1.0 => Duration::from_secs_f64((2.0 * wall).clamp(0.5, 1.0)),
        wall => MAX_PILOT_TIME.min(Duration::from_secs_f64(wall)),
    };
    let pass =
        if record.wall_seconds < 1.0 { pass.min(budget.as_secs_f64() / MIN_PASSES) } else { pass };
    // The value is clamped below.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let bytes = (whole as f64 * pass / work) as u64;
    let bytes = bytes.clamp(PILOT_SIZE_RANGE_BYTES[0], PILOT_SIZE_RANGE_BYTES[1]);
    let sample = Sample::of(file.try_clone()?, bytes).context("cannot sample the input")?;
    Ok(Some(Pilot::new(runner, sample.file, budget)))
}

/// Tries the candidates on as much of the input as `--sample` names or the budget allows. Returns
/// the trial and, if the runs of several copies failed, their error.
fn try_out(
    settings: &TrialSettings,
    runner: Runner<'_>,
    draft: &Draft,
    prepared: &mut Vec<Prepared>,
    rereadable: Rereadable,
    line: StatusLine,
    adviser: &mut Adviser<'_>,
) -> Result<(Trial, Option<TrialError>), TrialError> {
    line.show("trying changes …");
    let under_load = !settings.copies.is_empty();
    let tried = prepared.iter().filter(|one| one.is_worth_trying(under_load)).count();
    let config = config(adviser.record, settings, runner, draft, tried, rereadable)?;
    let mut together = |tried: &[Prepared]| adviser.combine_proved(draft, tried);
    let mut result = trial::run(&config, draft, prepared, &mut together, &mut |rounds, share| {
        line.show(&format!(
            "trying changes: round {rounds} {} of the budget",
            bar(share, output::width())
        ));
    });
    let mut problem = None;
    if let Ok(trial) = &mut result
        && under_load
        && !prepared.is_empty()
    {
        line.show("running several copies at the same time …");
        match trial::load::sweep(&config, draft, prepared, &settings.copies) {
            Ok(load) => trial.load = load,
            // The results without copies remain valid.
            Err(error) => problem = Some(error),
        }
    }
    line.clear();
    Ok((result?, problem))
}

fn config<'a>(
    record: &PipeRecord,
    settings: &TrialSettings,
    runner: Runner<'a>,
    draft: &Draft,
    tried: usize,
    rereadable: Rereadable,
) -> Result<TrialConfig<'a>, TrialError> {
    let Rereadable { file, named, stdin, saved } = rereadable;
    let bytes = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len());
    let most = sample_bytes(settings, record, tried, bytes);
    let last = record.stages.last();
    let written = last.and_then(|stage| stage.bytes_out);
    // If the last stage sorts, its byte count may include temporary files: there is no later stage
    // to count the bytes that went through a pipe.
    let exact =
        last.is_some_and(|stage| !stage.is_approximate(Figure::BytesOut) && !sorts(&stage.command));
    let sampled = match file {
        Some(file) => {
            let sample = Sample::of(file, most).map_err(RunError::io("sample the input"))?;
            Some(sample)
        }
        None => None,
    };
    let part =
        sampled.as_ref().is_some_and(|sample| matches!(sample.what, TrialInput::Sample { .. }));
    let what = match &sampled {
        Some(sample) if part => sample.what.clone(),
        Some(sample) => saved.unwrap_or_else(|| sample.what.clone()),
        None => TrialInput::Own,
    };
    // grep stops at its first match if its output goes to /dev/null. In a trial it goes elsewhere,
    // so the profile does not predict the result.
    let expected = (!part && !draft.discards())
        .then(|| Expected { status: record.exit_code, bytes: written.filter(|_| exact) });
    let (input, whole) = match sampled {
        Some(sample) if part => {
            (Input { stdin: Some(sample.file), in_place_of_file: named }, Some(stdin))
        }
        _ => (Input { stdin, in_place_of_file: false }, None),
    };
    let output_bytes = written.unwrap_or(64 << 20);
    let (budget, seed) = (settings.budget, settings.seed);
    let under_load = !settings.copies.is_empty();
    Ok(TrialConfig { runner, input, what, whole, expected, under_load, budget, output_bytes, seed })
}

/// Returns the maximum number of input bytes to use in a trial: the size in the settings, or else
/// the part of the `whole` bytes that the budget allows for the given number of candidates, at
/// least `MIN_SAMPLE_BYTES`. `u64::MAX` stands for the whole input.
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
            let all = record.wall_seconds * (candidates + 1) as f64 * RUNS_PER_CANDIDATE;
            let share = settings.budget.as_secs_f64() / all.max(1e-9);
            // Using the whole input costs little more.
            if share >= 0.6 {
                return u64::MAX;
            }
            // The value is positive and far below 2^64.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "see above"
            )]
            let bytes = (whole as f64 * share).max(MIN_SAMPLE_BYTES) as u64;
            bytes
        }
    }
}
