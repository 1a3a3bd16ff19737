//! Settings of `contend run`.

mod file;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser as _, ValueEnum as _};
use contend_parallel::plan::planner::Annotation;
use contend_record::run::Records;
use contend_shell::parse::parse;
use contend_shell::side_effects::check_repeatable;
use contend_sys::cpu;
use contend_sys::procfs::MemInfo;

use super::{shell, shows_progress};
use crate::cli::run::{HowArgs, RecordsArg, RunArgs, StageOptions};
use crate::exit::UsageError;
use crate::output::ReportFile;

/// The name of standard output.
const STANDARD: &str = "-";
/// The part of the machine's memory that is used.
const SHARE: u64 = 4;
/// Less is not enough for anything, in bytes.
const LEAST_MEMORY: u64 = 16 << 20;

/// What `contend run` is to do.
#[derive(Debug)]
pub struct Run {
    /// What is run.
    pub what: What,
    /// How.
    pub how: How,
    /// Only the plan is wanted.
    pub explain: bool,
    /// The original runs too, and the outputs are compared.
    pub check: bool,
    /// Figures are printed at the end.
    pub stats: bool,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
}

impl Run {
    /// Whether more is wanted than what the pipeline writes.
    pub fn says_something(&self) -> bool {
        self.check || self.stats || self.json.is_some()
    }
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A pipeline's text.
    Pipeline(String),
    /// A script and its arguments.
    Script(PathBuf, Vec<OsString>),
}

/// How pipelines are run.
#[derive(Debug, Clone)]
pub struct How {
    /// How many parts are worked on at the same time, where it is given.
    jobs: Option<usize>,
    /// Memory for data, in bytes, where it is given.
    memory: Option<u64>,
    /// Commands that treat every record for itself.
    pub annotations: Vec<Annotation>,
    /// The shell; none if it was not given.
    pub shell: Option<String>,
    /// A pipeline fails if any stage does.
    pub pipefail: bool,
    /// How far it is is shown on the terminal.
    pub progress: bool,
    /// The size of parts in bytes, where it is given.
    pub part_bytes: Option<usize>,
    options: Vec<String>,
}

impl How {
    /// The shell for what is not parallel.
    ///
    /// # Errors
    /// When the one that was asked for cannot be used.
    pub fn shell(&self) -> Result<String, UsageError> {
        shell(self.shell.clone())
    }

    /// Options with which another contend works as this one, but for shell and progress.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// How many parts are worked on at the same time.
    pub fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(usable_cpus)
    }

    /// Memory for data, in bytes.
    pub fn memory(&self) -> u64 {
        self.memory.unwrap_or_else(usable_memory).max(LEAST_MEMORY)
    }
}

/// Settings of `contend run`.
///
/// # Errors
/// A [`UsageError`] that says what is wrong and where.
pub fn run(args: RunArgs) -> Result<Run> {
    let (what, json) = what(args.file, args.pipeline, args.json)?;
    if let What::Pipeline(text) = &what {
        super::pipe::check_text("the pipeline", text)?;
        // A plain pipeline is not parsed here: that would delay its start.
        if is_blank(text) {
            parse(text).map_err(|error| UsageError(error.to_string()))?;
        }
    }
    if let (true, What::Pipeline(text)) = (args.check, &what) {
        let parsed = parse(text).map_err(|error| UsageError(error.to_string()))?;
        check_repeatable(&parsed, None).map_err(|why| UsageError(format!("--check {why}")))?;
    }
    let json = json.as_deref().map(Path::new).map(ReportFile::prepare).transpose()?;
    if json.as_ref().is_some_and(ReportFile::is_stdout) && !args.explain {
        let message = "--json without a file is for --explain: the pipeline's output goes there";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(Run {
        what,
        how: how(args.how)?,
        explain: args.explain,
        check: args.check,
        stats: args.stats,
        json,
    })
}

/// Whether there is nothing but white space and comments.
fn is_blank(text: &str) -> bool {
    let joined = text.replace("\\\n", "");
    joined.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// What is run, and where the record goes. A pipeline right behind --json is no file of its.
fn what(
    script: Option<Vec<OsString>>,
    pipeline: Option<String>,
    json: Option<OsString>,
) -> Result<(What, Option<OsString>), UsageError> {
    if let Some(words) = script {
        let mut words = words.into_iter();
        let path = words.next().unwrap_or_default();
        return Ok((What::Script(path.into(), words.collect()), json));
    }
    match (pipeline, json) {
        (Some(text), json) => Ok((What::Pipeline(text), json)),
        (None, Some(word)) if word != STANDARD => {
            let text = word.into_string();
            let text = text.map_err(|_| UsageError("the pipeline is not UTF-8".to_owned()))?;
            Ok((What::Pipeline(text), Some(STANDARD.into())))
        }
        (None, _) => Err(UsageError("there is no pipeline: give it as one argument".to_owned())),
    }
}

/// How stages of shell text are run.
#[derive(Debug)]
pub struct Stage {
    how: How,
    name: String,
    stats: bool,
    records_to: Option<PathBuf>,
}

impl Stage {
    /// The shell that has started the stage.
    ///
    /// # Errors
    /// As [`How::shell`].
    pub fn shell(&self) -> Result<String, UsageError> {
        self.how.shell()
    }

    /// What that shell calls itself in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Settings for running this pipeline.
    pub fn of_pipeline(self, text: &str) -> Run {
        let json = self.records_to.as_deref();
        Run {
            what: What::Pipeline(text.to_owned()),
            how: self.how,
            explain: false,
            check: false,
            stats: self.stats,
            json: json.and_then(|path| ReportFile::append_to(path).ok()),
        }
    }
}

/// Settings from the options that the prefix of a stage in shell text hands on.
///
/// # Errors
/// As [`run`].
pub fn stage<'a>(options: impl Iterator<Item = &'a str>) -> Result<Stage> {
    let args = StageOptions::try_parse_from(options)?.args;
    Ok(Stage {
        how: how(args.how)?,
        name: args.name,
        stats: args.stats,
        records_to: args.records_to,
    })
}

/// Those that were given, to be handed on.
fn options(args: &HowArgs) -> Vec<String> {
    let option = |name: &str, value: Option<u64>| value.map(|value| format!("--{name}={value}"));
    // It says what the records of these commands are.
    let records = args.records.to_possible_value().filter(|_| !args.map.is_empty());
    let given = [
        option("jobs", args.jobs.map(u64::from)),
        option("memory", args.memory),
        option("part-size", args.part_size),
        args.pipefail.then(|| "--pipefail".to_owned()),
        records.map(|records| format!("--records={}", records.get_name())),
    ];
    let maps = args.map.iter().map(|command| format!("--map={command}"));
    given.into_iter().flatten().chain(maps).collect()
}

fn how(args: HowArgs) -> Result<How, UsageError> {
    let options = options(&args);
    let how = How {
        jobs: args.jobs.map(usize::from),
        memory: args.memory,
        annotations: annotations(&args.map, args.records)?,
        shell: args.shell.filter(|shell| !shell.is_empty()),
        pipefail: args.pipefail,
        progress: shows_progress(args.no_progress),
        part_bytes: args.part_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
        options,
    };
    // What was asked for may be unfit; where nothing was, a shell need not be looked for yet.
    if how.shell.is_some() {
        how.shell()?;
    }
    Ok(how)
}

/// CPUs that can work at the same time: a quota of one and a half is used up by two.
fn usable_cpus() -> usize {
    let quota = cpu::quota().map_or(usize::MAX, |quota| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let cpus = quota.ceil() as usize;
        cpus.max(1)
    });
    cpu::allowed().min(quota)
}

fn usable_memory() -> u64 {
    let total = MemInfo::read().total;
    let limit = contend_sys::cgroup::memory_limit().unwrap_or(u64::MAX);
    total.min(limit) / SHARE
}

fn annotations(commands: &[String], records: RecordsArg) -> Result<Vec<Annotation>, UsageError> {
    let records = match records {
        RecordsArg::Lines => Records::Lines,
        RecordsArg::Nul => Records::Nul,
        RecordsArg::Csv => Records::Csv,
        RecordsArg::Json => Records::Json,
    };
    let read = |command: &String| {
        Annotation::read(command, records).ok_or_else(|| {
            let message = format!("--map '{command}': give a command of plain words");
            UsageError(message)
        })
    };
    let given = commands.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // What the command line says of a command comes first.
    Ok(given.into_iter().chain(file::annotations()?).collect())
}
