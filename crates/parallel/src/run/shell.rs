//! Runs source that only a shell can run. The shell starts contend for the stages that contend can
//! take over.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

use contend_commands::{Simple, Word, quote};
use contend_record::run::{Decision, Stage};
use contend_shell::environment::{Environment, Paths, in_path};
use contend_shell::parse::{SyntaxError, find_syntax_error};
use contend_sys::spawn;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::stdio::dup2_stdin;

use super::check::Check;
use super::end::{End, Report};
use super::error::{Context as _, RunError};
use super::interpreter::{Interpreter, interpreter, is_harmless};
use super::not_divided;
use super::observer::Observer;
use super::prepared::{Given, Prepared, unnamed_file};
use super::records::Records;
use super::settings::Settings;
use super::shell_command::{with_options, with_text};
use super::supervise::{Task, run_plan};
use crate::plan::ir::Source;
use crate::plan::planner::{self, Situation};
use crate::plan::script::{Explanation, Rewritten};

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Runs a pipeline with the shell, which may replace this process, or, if the settings ask for
/// that, only explains how it would run. `why` is the reason why contend cannot run it itself.
///
/// # Errors
/// Returns an error if the shell cannot be started or supervised, or if the run cannot be compared
/// with the original.
pub(super) fn pipeline(
    text: &str,
    why: &str,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<End, RunError> {
    let shell = settings.shell();
    let records = records(settings)?;
    let mut prepared = Prepared::new(text, &shell, None, settings);
    let is_emitted = settings.cluster.as_ref().is_some_and(|cluster| cluster.emit.is_some());
    if prepared.rewritten.taken.is_empty() || is_emitted {
        not_divided(why, settings, observer)?;
    }
    if settings.explain {
        return Ok(End::Explained(explained(text, prepared, Some(why), settings)));
    }
    let mut command = with_text(&shell, settings, &prepared.argument(records.as_ref())?);
    if !settings.check && records.is_none() {
        return Err(become_command(&shell, &mut command));
    }
    let report = report(text, &prepared.rewritten, Some(why), settings);
    let original = || with_text(&shell, settings, text);
    let check = settings.check.then(|| Check::begin(&Source::Own, original())).transpose()?;
    run_plan(task(&command, records)?, report, settings, check, observer)
}

/// Runs a script with the shell, which may replace this process, or, if the settings ask for
/// that, only explains how it would run. The path `-` is standard input. Commands of a script from
/// standard input find no other data there.
///
/// # Errors
/// Returns an error if the script cannot be read or names another interpreter, or if the shell
/// cannot be started or supervised.
pub(super) fn script(
    path: &Path,
    arguments: &[OsString],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<End, RunError> {
    let (bytes, origin) =
        read_script(path).map_err(|source| RunError::Script { path: path.to_owned(), source })?;
    let text = String::from_utf8_lossy(&bytes);
    let (shell, options) = match &settings.shell {
        Some(shell) => (shell.clone(), Vec::new()),
        None => match interpreter(&text) {
            None => (settings.shell(), Vec::new()),
            Some(Interpreter::Shell { program, options }) => (program, options),
            Some(Interpreter::Other(program)) => {
                return Err(RunError::Interpreter { path: path.to_owned(), program });
            }
        },
    };
    let source = call_of(path, arguments);
    let records = records(settings)?;
    let name = (origin != Origin::StandardInput).then_some(path);
    let mut prepared = Prepared::new(&text, &shell, name, settings);
    if !options.iter().all(|option| is_harmless(option)) {
        let options = options.join(" ");
        let why = format!("its first line passes the options `{options}` to the shell");
        prepared.refuse(&why);
    }
    if text.as_bytes() != bytes {
        prepared.refuse("it is not UTF-8");
    }
    if settings.explain {
        let mut report = explained(&text, prepared, None, settings);
        report.record.command = source;
        return Ok(End::Explained(report));
    }
    let mut command = with_options(&shell, settings);
    command.args(&options);
    let _file = match prepared.give_script(&mut command, name, records.as_ref())? {
        Given::Rewritten(file) => file,
        Given::NotRewritten => give_original(&mut command, path, origin, &bytes)?,
    };
    command.args(arguments);
    if records.is_none() {
        return Err(become_command(&shell, &mut command));
    }
    let mut report = report(&text, &prepared.rewritten, None, settings);
    report.record.command = source;
    run_plan(task(&command, records)?, report, settings, None, observer)
}

/// Where a script comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A regular file, which the shell can read again.
    File,
    /// A stream with a path, such as `/dev/fd/63`, which has been read to its end.
    Stream,
    /// Standard input, which has been read to its end.
    StandardInput,
}

/// Reads a script, where the path `-` is standard input.
fn read_script(path: &Path) -> io::Result<(Vec<u8>, Origin)> {
    let mut bytes = Vec::new();
    if path == Path::new(STANDARD_INPUT) {
        io::stdin().read_to_end(&mut bytes)?;
        return Ok((bytes, Origin::StandardInput));
    }
    let mut file = File::open(path)?;
    let is_file = file.metadata()?.is_file();
    file.read_to_end(&mut bytes)?;
    Ok((bytes, if is_file { Origin::File } else { Origin::Stream }))
}

/// Adds the unchanged script to the shell's arguments. The shell reads a script that came from a
/// stream from a file without a name: in place of standard input, as with `sh -s`, or at a path of
/// its own. Returns that file if the caller must keep it open until the shell has started.
fn give_original(
    shell: &mut Command,
    path: &Path,
    origin: Origin,
    bytes: &[u8],
) -> Result<Option<File>, RunError> {
    if origin == Origin::File {
        shell.arg(path);
        return Ok(None);
    }
    let mut file = unnamed_file(bytes)?;
    if origin == Origin::Stream {
        fcntl_setfd(&file, FdFlags::empty()).context("cannot pass the script to the shell")?;
        shell.arg(format!("/dev/fd/{}", file.as_raw_fd()));
        return Ok(Some(file));
    }
    file.rewind().context("cannot read the script again")?;
    dup2_stdin(&file).context("cannot redirect standard input")?;
    shell.args(["-s", "--"]);
    Ok(None)
}

/// Returns a script as its name and its arguments, quoted for a shell.
fn call_of(path: &Path, arguments: &[OsString]) -> String {
    let words = std::iter::once(path.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
    words.map(|word| quote(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// Creates the file for the records of pipelines, if they are requested.
fn records(settings: &Settings) -> Result<Option<Records>, RunError> {
    (settings.record && !settings.explain).then(Records::new).transpose()
}

/// Returns a task that runs the shell as a child process, which a report on the run requires.
fn task(command: &Command, records: Option<Records>) -> Result<Task, RunError> {
    let word = |text: &OsStr| text.to_str().map(Word::new).ok_or(RunError::NotText("an argument"));
    let simple = Simple {
        variables: Vec::new(),
        program: word(command.get_program())?,
        arguments: command.get_args().map(word).collect::<Result<_, _>>()?,
        input: None,
    };
    let (paths, prefix) = (Paths::new(), Vec::new());
    let plan = planner::plain(&[simple], &paths, false);
    Ok(Task { plan, paths, prefix, inverted: false, records, cluster: None })
}

/// Creates a report with the stages that contend takes over and, for a pipeline, the reason why it
/// needs a shell.
fn report(
    text: &str,
    rewritten: &Rewritten,
    why: Option<&str>,
    settings: &Settings,
) -> Box<Report> {
    let parallel = !rewritten.taken.is_empty();
    let takes = "contend runs the listed stages on chunks where that pays off";
    let parts: Vec<String> = match (parallel, why) {
        (true, Some(why)) => {
            vec![takes.to_owned(), format!("a shell runs the rest, because {why}")]
        }
        (true, None) => vec![takes.to_owned(), "the shell runs the rest".to_owned()],
        (false, Some(why)) => vec![format!("a shell runs the text, because {why}")],
        (false, None) => Vec::new(),
    };
    let left = rewritten.refused.iter();
    let left = left.map(|why| format!("all of it is left to the shell: {why}"));
    let sentences: Vec<String> = parts.into_iter().chain(left).collect();
    let why = with_syntax_error(text, parallel).unwrap_or_else(|| sentences.join("; "));
    let mut report = Report::new(text, settings);
    report.by_shell = true;
    report.record.taken.clone_from(&rewritten.taken);
    report.record.decision = Decision { parallel, why, ..Decision::default() };
    report
}

/// Returns a sentence about the syntax error of a text, or `None` if there is no error. A text of
/// which contend takes over stages has none.
fn with_syntax_error(text: &str, parallel: bool) -> Option<String> {
    let SyntaxError { line, detail } = find_syntax_error(text).filter(|_| !parallel)?;
    let detail = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
    Some(format!(
        "contend finds a syntax error in line {line}{detail}; the shell runs the text unchanged, \
         because it may accept syntax that contend does not know"
    ))
}

/// Creates a report with the stages that contend takes over, and the reason for every stage unless
/// all are left to the shell.
fn explained(
    text: &str,
    prepared: Prepared<'_>,
    why: Option<&str>,
    settings: &Settings,
) -> Box<Report> {
    let mut report = report(text, &prepared.rewritten, why, settings);
    let record = &mut report.record;
    if prepared.rewritten.refused.is_none() {
        let Explanation { taken, left, others } = prepared.explanation;
        for (taken, simples) in record.taken.iter_mut().zip(taken) {
            taken.stages = simples.map(|simples| judged(&simples, settings)).unwrap_or_default();
        }
        (record.left, record.left_others) = (left, Some(others));
    }
    report
}

/// Plans stages whose words are known, and returns them with their classes.
fn judged(stages: &[Simple], settings: &Settings) -> Vec<Stage> {
    let names = stages.iter().map(|stage| &stage.program.text);
    let paths: Paths = names.filter_map(|name| Some((name.clone(), in_path(name)?))).collect();
    let situation = Situation {
        environment: &Environment::of_programs(&paths),
        annotations: &settings.annotations,
        input_bytes: None,
        output_is_terminal: false,
        reads_objects: settings.reads_objects,
    };
    planner::plan(stages, &situation).stages
}

/// Replaces this process with the shell. Returns only if that fails.
fn become_command(shell: &str, command: &mut Command) -> RunError {
    let source = spawn::become_command(command);
    RunError::Shell { shell: shell.to_owned(), source }
}
