//! Settings of `contend run`: checks the arguments, and turns them into a request to
//! `contend_parallel`.

mod file;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Parser as _, ValueEnum as _};
use contend_parallel::cluster::{Capacity, Cluster, EngineKind, Job, Place, Work};
use contend_parallel::plan::planner::Annotation;
use contend_parallel::run::{Request, Settings, Target};
use contend_record::run::Records;
use contend_record::shell::quote;
use contend_shell::parse::parse;
use contend_shell::side_effects::check_repeatable;

use self::file::Configured;
use super::script::{check_is_command, script_arguments, tip_on_permission};
use super::{RecordFiles, RecordPaths, TraceFile, publish, shell, shows_progress};
use crate::cli::ColorArg;
use crate::cli::history::SaveArgs;
use crate::cli::run::{
    ClusterArgs, EngineArg, EngineArgs, ExecutionArgs, RecordsArg, RunArgs, StageOptions, option_in,
};
use crate::exit::UsageError;
use crate::output::{self, ReportFile};
use crate::version;

/// Name of standard input and standard output on the command line.
const STANDARD_NAME: &str = "-";

/// Settings of `contend run`.
#[derive(Debug)]
pub struct Run {
    /// The pipeline or script to run, with the settings of the execution.
    pub request: Request,
    /// Whether progress is shown on the terminal.
    pub progress: bool,
    /// The files for the record.
    pub files: RecordFiles,
    /// Where the trace goes; `None` if none is written.
    pub trace: Option<TraceFile>,
    /// The command line that runs the pipelines of a script in parallel, if `--explain` or
    /// `--stats` reports on a pipeline that only starts a shell script.
    pub script_command: Option<String>,
    /// A tip to print before the run, which will fail as in the shell.
    pub tip: Option<String>,
    /// Directory in which the run publishes its progress; `None` if it does not.
    pub publish: Option<PathBuf>,
    /// Options for saving the run. They are evaluated after the run, so that they do not delay it.
    pub save: SaveArgs,
}

/// Settings of `contend run --probe`.
#[derive(Debug)]
pub struct Probe {
    /// Name of the engine.
    pub name: &'static str,
    /// The engine, as words of a command line.
    pub engine: Vec<String>,
    /// Where the work directories of the jobs are created.
    pub place: Place,
    /// The path of this contend.
    pub program: PathBuf,
    /// The path of the file for settings of the engine; `None` if it has none.
    pub file: Option<PathBuf>,
}

/// Returns the settings of `contend run --probe`. `jobs` is the value of `--jobs`.
///
/// # Errors
/// Returns a [`UsageError`] for the first mistake found.
pub fn probe(args: ClusterArgs, jobs: Option<u16>) -> Result<Probe> {
    if args.engine.on == Some(EngineArg::Auto) {
        return Err(UsageError("--probe measures one engine: name it with --on".to_owned()).into());
    }
    let cluster = cluster(args, None)?.context("there is no engine")?;
    let mut engine = engine_options(&cluster)?;
    engine.extend(jobs.map(|jobs| format!("--jobs={jobs}")));
    let name = cluster.engine.name();
    let file = file::path().filter(|_| cluster.engine != EngineKind::Local);
    Ok(Probe { name, engine, place: cluster.work, program: cluster.program, file })
}

/// Returns the settings of `contend run`.
///
/// # Errors
/// Returns a [`UsageError`] for the first mistake found.
pub fn run(mut args: RunArgs, color: ColorArg) -> Result<Run> {
    args.explain |= args.cluster.dry_run;
    let (what, json) = match &args.cluster.resume {
        Some(work) => (Target::Job(Box::new(job_in(work)?)), args.json),
        None => what(args.file, args.pipeline, args.json)?,
    };
    if let (true, Target::Script(path, arguments)) = (args.check, &what) {
        return Err(not_checked(path, arguments).into());
    }
    let script_command = match &what {
        Target::Pipeline(text) if args.explain || args.stats => script_arguments(text),
        _ => None,
    };
    let tip = match &what {
        Target::Pipeline(text) if script_command.is_none() => tip_on_permission(text),
        _ => None,
    };
    if let Target::Pipeline(text) = &what {
        check_pipeline(text, args.check)?;
    }
    let json = json.as_deref().map(Path::new);
    let html = args.html.as_deref();
    let files = RecordFiles::prepare(RecordPaths { json, html, exports: &args.exports })?
        .with_label(args.save.label.as_deref());
    let to_stdout = files.named().find(|(_, file)| file.is_stdout() && !args.explain);
    if let Some((option, _)) = to_stdout {
        return Err(UsageError(format!(
            "{option} needs a file, except with --explain: the pipeline's output goes to standard output"
        ))
        .into());
    }
    let trace = args.trace.map(|path| TraceFile::prepare(&path, files.named())).transpose()?;
    let progress = shows_progress(args.execution.no_progress);
    let publish = publish(args.publish)?;
    let save = args.save;
    let mut stage_options = options(&args.execution, color);
    let lists_parts = args.cluster.dry_run;
    let resumed = if let Target::Job(job) = &what { Some(&**job) } else { None };
    let cluster = cluster(args.cluster, resumed)?;
    stage_options.extend(cluster.as_ref().map(engine_options).transpose()?.into_iter().flatten());
    if let Some(Place { directory, store: Some(_) }) = cluster.as_ref().map(|it| &it.work) {
        stage_options.push(format!("--directory={}", absolute(directory)?));
    }
    let settings = Settings {
        lists_parts,
        reads_objects: cluster.is_some(),
        cluster,
        stage_options,
        explain: args.explain,
        check: args.check,
        stats: args.stats,
        record: args.stats
            || !files.is_empty()
            || trace.is_some()
            || save.label.is_some()
            || save.store.is_some(),
        trace: trace.is_some(),
        ..execution(args.execution)?
    };
    let script_command = script_command.map(|arguments| format!("contend run {arguments}"));
    let request = Request { what, settings };
    Ok(Run { request, progress, files, trace, script_command, tip, publish, save })
}

/// Checks the text of a pipeline. `is_compared` is whether `--check` also runs the original.
fn check_pipeline(text: &str, is_compared: bool) -> Result<()> {
    super::pipe::check_text("the pipeline", text)?;
    check_is_command(text)?;
    if text.trim() == STANDARD_NAME {
        let message = "'-' is not a pipeline: to run a script from standard input, use \
                       `contend run --file -`";
        return Err(UsageError(message.to_owned()).into());
    }
    // Other pipelines are not parsed here: that would delay their start.
    if is_blank(text) || is_compared {
        let parsed = parse(text).map_err(|error| UsageError(error.to_string()))?;
        if is_compared {
            check_repeatable(&parsed, None).map_err(|why| UsageError(format!("--check {why}")))?;
        }
    }
    Ok(())
}

/// Returns what runs parts, if an engine is given. The job that is continued, if there is one, has one.
fn cluster(args: ClusterArgs, resumed: Option<&Job>) -> Result<Option<Cluster>> {
    let ClusterArgs { engine: args, resume, emit, .. } = args;
    if args.master.is_some() && args.on != Some(EngineArg::Spark) {
        return Err(UsageError("--master is for --on spark".to_owned()).into());
    }
    if !args.engine_option.is_empty() && matches!(args.on, None | Some(EngineArg::Local)) {
        return Err(UsageError(
            "--engine-option is for an engine of a cluster: see --on".to_owned(),
        )
        .into());
    }
    let Configured { kind: engine, work, capacity } = match (args.on, resumed) {
        (Some(engine), _) => file::engine(engine, args.master, args.engine_option)?,
        (None, Some(job)) => Configured { kind: job.engine.clone(), work: None, capacity: None },
        (None, None) => return Ok(None),
    };
    let is_given = args.work.is_some();
    let work = place(args.work.or(work))?;
    if emit.is_some() && engine == EngineKind::Local {
        return Err(UsageError("--emit is for an engine of a cluster: see --on".to_owned()).into());
    }
    if emit.is_some() && is_given && work.store.is_none() {
        let why =
            "--work: the work directory is that of --emit, unless --work is a place in a store";
        return Err(UsageError(why.to_owned()).into());
    }
    let store = if resume.is_some() {
        resumed.and_then(|job| job.store.as_ref())
    } else {
        work.store.as_ref()
    };
    if let (Some(store), EngineKind::Slurm { .. }) = (store, &engine) {
        let why = format!("{store}: tasks of Slurm need a work directory that all machines share");
        return Err(UsageError(why).into());
    }
    let resume = resume.map(|work| work.canonicalize()).transpose();
    let resume = resume
        .context("cannot find the work directory")?
        .map(|path| Work::at(&path).in_store(resumed.and_then(|job| job.store.as_deref())));
    let (parts, fan_in) = (args.parts, args.fan_in);
    let cluster = new_cluster(engine, parts, fan_in, capacity, work)?;
    Ok(Some(Cluster { emit, resume, ..cluster }))
}

/// Returns the directory for work directories of Slurm: the given one, or that of the user's settings.
///
/// # Errors
/// Returns a [`UsageError`] if the configuration is wrong, or there is no such directory.
pub(super) fn work_for_slurm(given: Option<PathBuf>) -> Result<PathBuf, UsageError> {
    let configured = file::engine(EngineArg::Slurm, None, Vec::new())?;
    work_directory(given.or(configured.work))
}

/// Returns where work directories are created: in the given directory or place in a store, or else in the current directory.
fn place(given: Option<PathBuf>) -> Result<Place, UsageError> {
    let place = Place::named(given.unwrap_or_else(|| ".".into()), None);
    if let (Some(store), Some(why)) = (&place.store, place.trouble()) {
        return Err(UsageError(format!("--work {store}: {why}")));
    }
    let directory = work_directory(Some(place.directory))?;
    Ok(Place { directory, ..place })
}

/// Checks the directory for work directories; the current directory if none is given.
fn work_directory(given: Option<PathBuf>) -> Result<PathBuf, UsageError> {
    let work = given.unwrap_or_else(|| ".".into());
    if work.is_dir() {
        return Ok(work);
    }
    Err(UsageError(format!("--work: {} is not a directory", work.display())))
}

/// Returns what runs parts of the pipelines in shell text, from the options that [`engine_options`] returns.
fn cluster_of_stage(
    args: EngineArgs,
    capacity: Option<Capacity>,
    directory: Option<PathBuf>,
) -> Result<Option<Cluster>> {
    let options = args.engine_option;
    let engine = match args.on {
        None => return Ok(None),
        Some(EngineArg::Local | EngineArg::Auto) => EngineKind::Local,
        Some(EngineArg::Spark) => EngineKind::Spark { master: args.master, options },
        Some(EngineArg::Slurm) => EngineKind::Slurm { options },
    };
    let work = Place::named(args.work.unwrap_or_else(|| ".".into()), directory);
    let cluster = new_cluster(engine, args.parts, args.fan_in, capacity, work)?;
    // The script would go on without the output of the pipeline.
    Ok(Some(Cluster { falls_back: true, ..cluster }))
}

fn new_cluster(
    engine: EngineKind,
    parts: Option<u64>,
    fan_in: Option<u64>,
    capacity: Option<Capacity>,
    work: Place,
) -> Result<Cluster> {
    let program = std::env::current_exe().context("cannot find the program contend")?;
    let fan_in = fan_in.and_then(|fan_in| usize::try_from(fan_in).ok());
    let (contend, emit, resume, falls_back) = (version::writer(), None, None, false);
    Ok(Cluster {
        engine,
        parts,
        fan_in,
        falls_back,
        capacity,
        work,
        contend,
        program,
        emit,
        resume,
    })
}

/// Returns the job in a work directory, after checking that this process can continue it. If its environment is another one,
/// starts this program again in that of the job.
fn job_in(work: &Path) -> Result<Job> {
    let refused = |why: String| Err(UsageError(format!("--resume: {why}")).into());
    let work = Work::at(work);
    if let Some(why) = work.doubt() {
        return refused(why);
    }
    let job = Job::read(&work.job_file())?;
    let own = version::writer();
    if job.contend != own {
        return refused(format!("the job was planned by {}, and this is {own}", job.contend));
    }
    let here = std::env::current_dir().context("cannot find the current directory")?;
    if here != job.directory {
        return refused(format!("the job runs in {}: change to it first", job.directory.display()));
    }
    // The directory of a new job is removed at its end.
    let output = std::fs::read_link("/proc/self/fd/1").unwrap_or_default();
    if work.path().canonicalize().is_ok_and(|work| output.starts_with(work)) {
        let output = output.display();
        return refused(format!("standard output is {output}, a file of the job: use another one"));
    }
    if !job.environment.are_set() {
        let error = job.environment.start_again();
        return Err(anyhow::Error::from(error).context("cannot start contend"));
    }
    Ok(job)
}

/// Returns the error for `--check` with a script. It names a command that compares the output of
/// the script, unless standard input is the script, which can be read only once.
fn not_checked(path: &Path, arguments: &[OsString]) -> UsageError {
    let refused = "--check compares a pipeline, not a script";
    if path == Path::new(STANDARD_NAME) {
        return UsageError(refused.to_owned());
    }
    let path = quote(&path.to_string_lossy());
    let words: Vec<_> =
        arguments.iter().map(|word| format!(" {}", quote(&word.to_string_lossy()))).collect();
    let words = words.concat();
    let separator = if words.is_empty() { "" } else { " --" };
    UsageError(format!(
        "{refused}: to compare standard output, use \
         `cmp <(bash {path}{words}) <(contend run --file {path}{separator}{words})`"
    ))
}

/// Returns whether the text consists of white space and comments only.
fn is_blank(text: &str) -> bool {
    let joined = text.replace("\\\n", "");
    joined.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
}

/// Returns the pipeline or script to run, and the name of the file for the record, if requested. If
/// the pipeline follows `--json`, clap takes it for the name of the file. This function corrects
/// that, and the record goes to standard output.
fn what(
    script: Option<Vec<OsString>>,
    pipeline: Option<String>,
    json: Option<OsString>,
) -> Result<(Target, Option<OsString>), UsageError> {
    if let Some(words) = script {
        return Ok((script_with_arguments(words)?, json));
    }
    match (pipeline, json) {
        (Some(text), json) => Ok((Target::Pipeline(text), json)),
        (None, Some(word)) if word != STANDARD_NAME => {
            let text = word.into_string();
            let text = text.map_err(|_| {
                UsageError(
                    "the pipeline is not UTF-8: put other bytes into a script, and use --file"
                        .to_owned(),
                )
            })?;
            Ok((Target::Pipeline(text), Some(STANDARD_NAME.into())))
        }
        (None, _) => {
            let message = "missing pipeline or script: give a pipeline as one quoted argument, or \
                           a script with `--file SCRIPT`";
            Err(UsageError(message.to_owned()))
        }
    }
}

/// Returns the script, with the words after it as arguments. Refuses an option of `contend run` in
/// place of the script or among the arguments: it is more likely meant for contend. If the first
/// word after the script is `--`, the script gets all words after the `--`.
fn script_with_arguments(words: Vec<OsString>) -> Result<Target, UsageError> {
    let mut words = words.into_iter();
    let path = words.next().unwrap_or_default();
    let mut arguments: Vec<OsString> = words.collect();
    if let Some(option) = path.to_str().and_then(option_in) {
        return Err(UsageError(format!(
            "'{option}' is in place of the script: write options before `--file SCRIPT`"
        )));
    }
    if arguments.first().is_some_and(|word| word == "--") {
        arguments.remove(0);
        return Ok(Target::Script(path.into(), arguments));
    }
    let own = arguments.iter().find_map(|word| option_in(word.to_str()?));
    if let Some(option) = own {
        let script = path.display();
        return Err(UsageError(format!(
            "'{option}' comes after the script: write options of contend before \
             `--file {script}`, and those of the script after `--file {script} --`"
        )));
    }
    Ok(Target::Script(path.into(), arguments))
}

/// Settings of one stage of shell text.
#[derive(Debug)]
pub struct Stage {
    /// Settings of the execution.
    pub settings: Settings,
    /// The name of the shell that has started the stage, for messages.
    pub name: String,
    /// Whether progress is shown on the terminal.
    pub progress: bool,
    /// The file to append the record to as JSON, unless none is requested, or it cannot be opened.
    pub files: RecordFiles,
}

/// Returns the settings of one stage of shell text, from the options that precede the stage in the
/// text.
///
/// # Errors
/// Returns an error for the first mistake found.
pub fn stage<'a>(options: impl Iterator<Item = &'a str>) -> Result<Stage> {
    let StageOptions { args, color } = StageOptions::try_parse_from(options)?;
    output::set_color(color);
    // The run continues if the record cannot be appended.
    let json = args.records_to.as_deref().and_then(|path| ReportFile::append_to(path).ok());
    let progress = shows_progress(args.execution.no_progress);
    let cluster = cluster_of_stage(args.engine, args.capacity, args.directory)?;
    let settings = Settings {
        reads_objects: cluster.is_some(),
        cluster,
        stats: args.stats,
        record: json.is_some(),
        ..execution(args.execution)?
    };
    let files = RecordFiles { json, ..RecordFiles::default() };
    Ok(Stage { settings, name: args.name, progress, files })
}

/// Returns the given options as words of a command line, for the stages in shell text. Leaves out
/// the shell and `--no-progress`.
fn options(args: &ExecutionArgs, color: ColorArg) -> Vec<String> {
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

/// Returns a cluster as words of a command line, for the stages in shell text. They may run in another directory and with other
/// variables, so that the words leave nothing to look up.
fn engine_options(cluster: &Cluster) -> Result<Vec<String>, UsageError> {
    let Place { directory, store } = &cluster.work;
    let work = store.clone().map_or_else(|| absolute(directory), Ok)?;
    let (master, options) = match &cluster.engine {
        EngineKind::Local => (None, &[][..]),
        EngineKind::Spark { master, options } => (master.as_ref(), options.as_slice()),
        EngineKind::Slurm { options } => (None, options.as_slice()),
    };
    let capacity = cluster.capacity.and_then(|known| serde_json::to_string(&known).ok());
    let given = [
        Some(format!("--on={}", cluster.engine.name())),
        master.map(|master| format!("--master={master}")),
        cluster.parts.map(|parts| format!("--parts={parts}")),
        cluster.fan_in.map(|fan_in| format!("--fan-in={fan_in}")),
        capacity.map(|capacity| format!("--capacity={capacity}")),
        Some(format!("--work={work}")),
    ];
    let more = options.iter().map(|option| format!("--engine-option={option}"));
    Ok(given.into_iter().flatten().chain(more).collect())
}

/// Returns the absolute path of a directory for work directories.
fn absolute(directory: &Path) -> Result<String, UsageError> {
    let path = std::path::absolute(directory).ok();
    let path = path.and_then(|path| path.into_os_string().into_string().ok());
    path.ok_or_else(|| UsageError("--work: the directory is not UTF-8".to_owned()))
}

fn execution(args: ExecutionArgs) -> Result<Settings, UsageError> {
    let given = args.shell.filter(|shell| !shell.is_empty());
    Ok(Settings {
        jobs: args.jobs.map(usize::from),
        memory: args.memory,
        annotations: annotations(&args.map, args.records)?,
        // Only a given shell is checked: searching for the default one would delay the start.
        shell: given.map(|name| shell(Some(name))).transpose()?,
        pipefail: args.pipefail,
        chunk_bytes: args.part_size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
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
    // The command line takes precedence over the configuration file.
    Ok(given.into_iter().chain(file::annotations()?).collect())
}
