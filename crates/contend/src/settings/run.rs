//! Settings of `contend run`.

mod file;

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::{Parser as _, ValueEnum as _};
use contend_parallel::plan::planner::Annotation;
use contend_parallel::run::{Request, Settings, What};
use contend_record::run::Records;
use contend_shell::parse::parse;
use contend_shell::side_effects::check_repeatable;

use super::{shell, shows_progress};
use crate::cli::ColorArg;
use crate::cli::run::{HowArgs, RecordsArg, RunArgs, StageOptions};
use crate::exit::UsageError;
use crate::output::{self, ReportFile};

/// The name of standard output.
const STANDARD: &str = "-";

/// What `contend run` is to do.
#[derive(Debug)]
pub struct Run {
    /// What is run, and how.
    pub request: Request,
    /// Progress is shown on the terminal.
    pub progress: bool,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
}

/// Settings of `contend run`.
///
/// # Errors
/// A [`UsageError`] that says what is wrong and where.
pub fn run(args: RunArgs, color: ColorArg) -> Result<Run> {
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
        let message = "--json needs a file: the pipeline's output goes to standard output (--json without a file \
                       is for --explain)";
        return Err(UsageError(message.to_owned()).into());
    }
    let progress = shows_progress(args.how.no_progress);
    let settings = Settings {
        explain: args.explain,
        check: args.check,
        stats: args.stats,
        record: json.is_some(),
        ..how(args.how, color)?
    };
    Ok(Run { request: Request { what, settings }, progress, json })
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
            let text = text.map_err(|_| {
                UsageError(
                    "the pipeline is not UTF-8: put other bytes into a script, and use --file"
                        .to_owned(),
                )
            })?;
            Ok((What::Pipeline(text), Some(STANDARD.into())))
        }
        (None, _) => Err(UsageError("missing pipeline: give it as one quoted argument".to_owned())),
    }
}

/// How a stage of shell text is run.
#[derive(Debug)]
pub struct Stage {
    /// How.
    pub settings: Settings,
    /// What the shell that has started the stage calls itself in messages.
    pub name: String,
    /// Progress is shown on the terminal.
    pub progress: bool,
    /// The file to which the record is appended as JSON.
    pub json: Option<ReportFile>,
}

/// Settings from the options that the prefix of a stage in shell text hands on.
///
/// # Errors
/// As [`run`].
pub fn stage<'a>(options: impl Iterator<Item = &'a str>) -> Result<Stage> {
    let StageOptions { args, color } = StageOptions::try_parse_from(options)?;
    output::set_color(color);
    // Where the record cannot be appended, the run goes on without it.
    let json = args.records_to.as_deref().and_then(|path| ReportFile::append_to(path).ok());
    let progress = shows_progress(args.how.no_progress);
    let settings = Settings { stats: args.stats, record: json.is_some(), ..how(args.how, color)? };
    Ok(Stage { settings, name: args.name, progress, json })
}

/// Returns the given options as words, for the stages in shell text.
fn options(args: &HowArgs, color: ColorArg) -> Vec<String> {
    let option = |name: &str, value: Option<u64>| value.map(|value| format!("--{name}={value}"));
    // clap refuses --records without --map.
    let records = args.records.to_possible_value().filter(|_| !args.map.is_empty());
    let color = color.to_possible_value().filter(|_| color != ColorArg::Auto);
    let given = [
        option("jobs", args.jobs.map(u64::from)),
        option("memory", args.memory),
        option("part-size", args.part_size),
        args.pipefail.then(|| "--pipefail".to_owned()),
        records.map(|records| format!("--records={}", records.get_name())),
        color.map(|color| format!("--color={}", color.get_name())),
    ];
    let maps = args.map.iter().map(|command| format!("--map={command}"));
    given.into_iter().flatten().chain(maps).collect()
}

fn how(args: HowArgs, color: ColorArg) -> Result<Settings, UsageError> {
    let stage_options = options(&args, color);
    let given = args.shell.filter(|shell| !shell.is_empty());
    Ok(Settings {
        jobs: args.jobs.map(usize::from),
        memory: args.memory,
        annotations: annotations(&args.map, args.records)?,
        // What was asked for may be unfit; where nothing was, a shell need not be looked for yet.
        shell: given.map(|name| shell(Some(name))).transpose()?,
        pipefail: args.pipefail,
        part_bytes: args.part_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
        stage_options,
        ..Settings::default()
    })
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
            let message = format!("--map '{command}': expected a command without shell syntax, such as './my-filter --fast'");
            UsageError(message)
        })
    };
    let given = commands.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // What the command line says of a command comes first.
    Ok(given.into_iter().chain(file::annotations()?).collect())
}
