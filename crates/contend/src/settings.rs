//! From the command line to what is to be done: everything that can be wrong with it is
//! found here, before anything runs.

mod json;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use contend_lab::experiment::{Cap, Experiment, Scope, Size};
use contend_lab::experiments;
use contend_lab::plan::{Only, Plan};
use contend_lab::suites::{self, Suite};
use contend_profile::pipeline::parse::{Parsed, parse};
use contend_profile::predict::what_if::Question;
use contend_profile::trial::repeatable::check_repeatable;
use contend_record::pipe::PipeRecord;
use rustix::fs::FileType;

use crate::cli::demo::DemoArgs;
use crate::cli::history::{HistoryArgs, HistoryVerb};
use crate::cli::lab::{HowArgs, LabArgs, LabVerb, StoreArgs};
use crate::cli::pipe::{AdviceArgs, PipeArgs, SampleSize};
use crate::exit::UsageError;
use crate::output::ReportFile;

pub use json::{Json, JsonInput, json};

/// What `contend pipe` is to do.
#[derive(Debug)]
pub enum Pipe {
    /// Profile a pipeline.
    Run(Box<PipeRun>),
    /// Answer questions from a record.
    Answer {
        /// The record.
        record: Box<PipeRecord>,
        /// The questions.
        questions: Vec<Question>,
        /// Where the report goes; standard error if nowhere else.
        output: Option<ReportFile>,
        /// Where the record with the answers goes as JSON.
        json: Option<ReportFile>,
    },
}

/// A pipeline to profile and where its report goes.
#[derive(Debug)]
pub struct PipeRun {
    /// The pipeline.
    pub parsed: Parsed,
    /// How it is run.
    pub how: How,
    /// How often.
    pub runs: u32,
    /// What is made of the profile.
    pub advice: Advice,
    /// Where the report goes; standard error if nowhere else.
    pub output: Option<ReportFile>,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
}

/// What is made of a profile.
#[derive(Debug)]
pub struct Advice {
    /// Changes are looked for.
    pub wanted: bool,
    /// They are tried.
    pub trial: Option<TrialSettings>,
    /// Questions to answer.
    pub questions: Vec<Question>,
}

/// How changes are tried.
#[derive(Debug, Clone)]
pub struct TrialSettings {
    /// How long that may take.
    pub budget: Duration,
    /// How much of the input is used; none for as much as suits.
    pub sample: Option<SampleSize>,
    /// Numbers of copies that are run at the same time afterwards.
    pub copies: Vec<usize>,
    /// Seed of the order of runs.
    pub seed: u64,
}

/// How a pipeline is run.
#[derive(Debug, Clone)]
pub struct How {
    /// The shell.
    pub shell: String,
    /// What the shell executes first.
    pub setup: Option<String>,
    /// The pipeline fails if any stage does.
    pub pipefail: bool,
    /// A file for standard input.
    pub stdin: Option<PathBuf>,
    /// Output is thrown away.
    pub discard: bool,
    /// The stages are shown while they run.
    pub live: bool,
}

impl How {
    /// Opens the file for standard input anew, so that each run reads it from the start.
    ///
    /// # Errors
    /// When it cannot be opened (any more).
    pub fn open_stdin(&self) -> Result<Option<File>> {
        let Some(path) = &self.stdin else {
            return Ok(None);
        };
        let name = format!("--stdin {}", path.display());
        Ok(Some(readable(&name, File::open(path))?))
    }
}

/// A file that was opened to be read: folders can be opened too.
fn readable(name: &str, opened: io::Result<File>) -> Result<File, UsageError> {
    let file = opened.map_err(|source| UsageError(format!("cannot read {name}: {source}")))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(UsageError(format!("cannot read {name}: it is a folder")));
    }
    Ok(file)
}

/// Settings of `contend pipe`.
///
/// # Errors
/// A [`UsageError`] that says what is wrong and where.
pub fn pipe(args: PipeArgs) -> Result<Pipe> {
    let output = args.output.as_deref().map(ReportFile::prepare).transpose()?;
    let json = args.json.as_deref().map(ReportFile::prepare).transpose()?;
    if let (Some(output), Some(json)) = (&output, &json)
        && output.is_same_as(json)
    {
        let message = "--output and --json name the same file: one would be lost";
        return Err(UsageError(message.to_owned()).into());
    }
    if let Some(path) = &args.advice.from {
        let record = Box::new(saved_record(path)?);
        let questions = questions(&args.advice.what_if, record.stages.len())?;
        return Ok(Pipe::Answer { record, questions, output, json });
    }
    let text = args.pipeline.unwrap_or_default();
    let parsed = parse(&text).map_err(|error| UsageError(error.to_string()))?;
    check_text("the pipeline", &text)?;
    check_text("--setup", args.setup.as_deref().unwrap_or(""))?;
    let mut how = How {
        shell: shell(args.shell)?,
        setup: args.setup,
        pipefail: args.pipefail,
        stdin: args.stdin,
        discard: args.discard,
        live: shows_progress(args.no_progress),
    };
    // A FIFO can be opened only once: its writer would find its reader gone.
    if !how.stdin.as_ref().is_some_and(|path| is_kind(path, FileType::Fifo)) {
        how.open_stdin()?;
    }
    let advice = advice(args.advice, &parsed)?;
    if args.runs > 1 {
        make_repeatable(&mut how)?;
    }
    Ok(Pipe::Run(Box::new(PipeRun { parsed, how, runs: args.runs, advice, output, json })))
}

fn advice(args: AdviceArgs, parsed: &Parsed) -> Result<Advice, UsageError> {
    let questions = questions(&args.what_if, parsed.stages.len())?;
    if args.try_changes {
        check_repeatable(parsed).map_err(|error| UsageError(error.to_string()))?;
    }
    let copies = match args.copies {
        // One alone beside them, so that it can be seen whether the ranking turns round.
        Some(copies) if copies > 1 => vec![1, usize::from(copies)],
        Some(copies) => vec![usize::from(copies)],
        None => args.sweep_copies.into_iter().map(usize::from).collect(),
    };
    let trial = args.try_changes.then(|| TrialSettings {
        budget: Duration::from_secs_f64(args.budget),
        sample: args.sample,
        copies,
        seed: args.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000)),
    });
    Ok(Advice { wanted: !args.no_advice, trial, questions })
}

fn questions(texts: &[String], stages: usize) -> Result<Vec<Question>, UsageError> {
    let read = |text: &String| {
        Question::read(text, stages).map_err(|error| UsageError(format!("--what-if {error}")))
    };
    texts.iter().map(read).collect()
}

fn saved_record(path: &Path) -> Result<PipeRecord, UsageError> {
    let problem =
        |what: String| UsageError(format!("cannot use --from {}: {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|source| problem(source.to_string()))?;
    let record: PipeRecord = serde_json::from_str(&text)
        .map_err(|source| problem(format!("it is no record of contend pipe: {source}")))?;
    if record.schema != contend_record::pipe::SCHEMA {
        return Err(problem(format!("its schema is {}", record.schema)));
    }
    Ok(record)
}

/// Settings of `contend demo`: how its pipelines are run, and the lines of input.
///
/// # Errors
/// A [`UsageError`] when there is no shell.
pub fn demo(args: &DemoArgs) -> Result<(How, u64)> {
    let how = How {
        shell: shell(None)?,
        setup: None,
        pipefail: false,
        stdin: None,
        discard: true,
        live: shows_progress(args.no_progress),
    };
    Ok((how, args.lines))
}

/// What the lab is to do.
#[derive(Debug)]
pub enum Lab {
    /// List what there is.
    List,
    /// Print this plan.
    DryRun(Plan),
    /// Measure.
    Run(Box<LabRun>),
}

/// A run of the lab, and where its results go.
#[derive(Debug)]
pub struct LabRun {
    /// What is measured.
    pub plan: Plan,
    /// What it is called in the history.
    pub title: String,
    /// Where it is kept, if it is.
    pub store: Option<PathBuf>,
    /// The same if it was said on the command line.
    pub given_store: Option<PathBuf>,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
    /// How far it is is shown on the terminal.
    pub progress: bool,
    /// The user is to be asked first.
    pub asks: bool,
}

/// Settings of `contend lab`.
///
/// # Errors
/// A [`UsageError`] when there is no such experiment or suite, or no place for the results.
pub fn lab(args: LabArgs) -> Result<Lab> {
    let (suite, experiments, title, how) = match args.what {
        LabVerb::List => return Ok(Lab::List),
        LabVerb::Run(run) => {
            let experiments = by_name(&run.names)?;
            (None, experiments, run.names.join(" "), run.how)
        }
        LabVerb::Suite(args) => {
            let suite = suites::find(&args.name).ok_or_else(|| unknown_suite(&args.name))?;
            let title = format!("suite {}", suite.name);
            (Some(suite), suite.experiments(), title, args.how)
        }
    };
    let plan = plan(suite, &experiments, &how)?;
    if how.dry_run {
        return Ok(Lab::DryRun(plan));
    }
    let to_the_end = how.cap == Some(Cap::None)
        && plan.cases.iter().any(|case| case.experiment.name == "units/limit");
    Ok(Lab::Run(Box::new(LabRun {
        title,
        given_store: how.store.store.clone(),
        store: if how.no_store { None } else { Some(store(how.store)?) },
        json: how.json.as_deref().map(ReportFile::prepare).transpose()?,
        progress: shows_progress(how.no_progress),
        asks: to_the_end && !how.yes && can_ask(),
        plan,
    })))
}

fn by_name(names: &[String]) -> Result<Vec<&'static Experiment>, UsageError> {
    let patterns: Vec<&str> = names.iter().map(String::as_str).collect();
    experiments::matching(&patterns).map_err(|pattern| {
        let hint = if suites::find(pattern).is_some() {
            format!("it is a suite: contend lab suite {pattern}")
        } else {
            "see contend lab list".to_owned()
        };
        UsageError(format!("no experiment is called {pattern}: {hint}"))
    })
}

fn unknown_suite(name: &str) -> UsageError {
    let names: Vec<_> = suites::SUITES.iter().map(|suite| suite.name).collect();
    UsageError(format!("no suite is called {name}: there is {}", names.join(", ")))
}

fn plan(
    suite: Option<&'static Suite>,
    experiments: &[&'static Experiment],
    how: &HowArgs,
) -> Result<Plan, UsageError> {
    let size = match (how.quick, how.smallest) {
        (_, true) => Size::Smallest,
        (true, _) => Size::Quick,
        _ => Size::Full,
    };
    let pause = if suite.is_some() || size != Size::Full { 0.0 } else { 1.0 };
    let pause = how.step_seconds.unwrap_or(pause);
    let step_milliseconds =
        u64::try_from(Duration::from_secs_f64(pause).as_millis()).unwrap_or(u64::MAX);
    let scope = Scope { size, cap: how.cap.unwrap_or(Cap::Usual), step_milliseconds };
    let only: Vec<_> = how
        .only
        .iter()
        .map(|(name, value)| Only { name: name.clone(), value: value.clone() })
        .collect();
    for Only { name, .. } in &only {
        let has = |e: &&Experiment| (e.cases)(&scope).iter().any(|p| p.get(name).is_some());
        if !experiments.iter().any(has) {
            let message = format!("--only {name}: none of these experiments has this parameter");
            return Err(UsageError(message));
        }
    }
    let budget = how.budget.map(Duration::from_secs_f64);
    let seed = how.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let plan = Plan::new(suite, experiments, scope, &only, budget, seed);
    if plan.cases.is_empty() {
        let conditions: Vec<_> =
            how.only.iter().map(|(name, value)| format!("--only {name}={value}")).collect();
        return Err(UsageError(format!("no case is left by {}", conditions.join(" "))));
    }
    Ok(plan)
}

/// Whether there is someone to ask.
fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The runs to show.
#[derive(Debug)]
pub struct History {
    /// Where they are kept.
    pub store: PathBuf,
    /// What of them.
    pub shown: Shown,
}

/// What is shown of the history.
#[derive(Debug)]
pub enum Shown {
    /// A list of so many at most.
    List {
        /// How many.
        most: usize,
    },
    /// One run.
    Run {
        /// Its number.
        number: i64,
        /// Where its record goes as JSON, instead of the report.
        json: Option<ReportFile>,
    },
}

/// Settings of `contend history`.
///
/// # Errors
/// A [`UsageError`] when there is no place for a store.
pub fn history(args: HistoryArgs) -> Result<History> {
    Ok(match args.what {
        None => {
            History { store: store(args.store)?, shown: Shown::List { most: args.last as usize } }
        }
        Some(HistoryVerb::Show { number, json, store: own }) => {
            let given = if own.store.is_some() { own } else { args.store };
            let json = json.as_deref().map(ReportFile::prepare).transpose()?;
            History { store: store(given)?, shown: Shown::Run { number, json } }
        }
    })
}

/// Where runs are kept: the file that was given, or one in the XDG data directory.
fn store(given: StoreArgs) -> Result<PathBuf, UsageError> {
    if let Some(path) = given.store {
        return Ok(path);
    }
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let data = variable("XDG_DATA_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
        .ok_or_else(|| {
            let message = "there is no place to keep runs, since neither XDG_DATA_HOME nor HOME is \
                           set: give --store FILE or --no-store";
            UsageError(message.to_owned())
        })?;
    Ok(data.join("contend/contend.db"))
}

/// Progress is for terminals on which the cursor can be moved.
fn shows_progress(unwanted: bool) -> bool {
    let can_draw = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    !unwanted && can_draw && io::stderr().is_terminal()
}

fn check_text(what: &str, text: &str) -> Result<(), UsageError> {
    if text.contains('\0') {
        return Err(UsageError(format!("{what} contains a NUL character")));
    }
    Ok(())
}

/// The shell that was asked for, or bash, or sh.
fn shell(asked: Option<String>) -> Result<String, UsageError> {
    let Some(shell) = asked.filter(|shell| !shell.is_empty()) else {
        let bash = is_in_path("bash");
        return Ok(if bash { "bash" } else { "sh" }.to_owned());
    };
    let name = shell.rsplit('/').next().unwrap_or(&shell).to_owned();
    let unfit = ["zsh", "ksh", "mksh", "csh", "tcsh", "fish", "ksh93", "oksh", "rc", "nu"];
    if unfit.contains(&name.as_str()) {
        return Err(UsageError(format!(
            "--shell {shell}: {name} does not start every stage in a subshell of its own; use \
             bash, dash or busybox"
        )));
    }
    Ok(shell)
}

fn is_kind(path: &Path, kind: FileType) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Opened anew through this link, a file on standard input is read from its beginning.
pub const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// Several runs need an input that can be read several times.
fn make_repeatable(how: &mut How) -> Result<(), UsageError> {
    if let Some(path) = &how.stdin {
        if is_kind(path, FileType::Fifo) {
            let message = "--runs needs an input that can be read again, and --stdin is a FIFO";
            return Err(UsageError(message.to_owned()));
        }
        return Ok(());
    }
    let kind = rustix::fs::fstat(io::stdin())
        .map_or(FileType::CharacterDevice, |stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        FileType::RegularFile => how.stdin = Some(STANDARD_INPUT.into()),
        FileType::Fifo | FileType::Socket => {
            return Err(UsageError(
                "--runs needs an input that can be read again, and standard input is a pipe: \
                 give --stdin FILE, or --stdin /dev/null if the pipeline reads none"
                    .to_owned(),
            ));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_that_run_a_stage_themselves_are_refused() {
        assert!(shell(Some("/usr/bin/zsh".into())).is_err());
        assert_eq!(shell(Some("/bin/dash".into())).expect("fit"), "/bin/dash");
        assert!(["bash", "sh"].contains(&shell(None).expect("a default").as_str()));
    }
}
