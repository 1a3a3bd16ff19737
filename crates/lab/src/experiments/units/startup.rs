//! `units/startup`: the time to start a command.

use std::ffi::CString;
use std::io;
use std::process::{Command, Stdio};

use contend_record::lab::{Unit, View};
use contend_record::parameters::{Parameters, names};
use contend_sys::Pid;
use contend_sys::child::{ExitStatus, reap};
use contend_sys::process::{fork, posix_spawn};

use super::parent::Parent;
use super::tiny::{self, TinyProgram};
use crate::engine::experiment::{
    Demands, Experiment, Facts, Fit, Sampling, Scope, Subject, SubjectError, never_alternates_cpus,
};
use crate::engine::timing::Timed;
use crate::support::programs::{self, find};

/// The definition of `units/startup`.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/startup",
    summary: "time to start and reap a command: static, shells, interpreters, loops",
    about: "Starts a command that does nothing, by posix_spawn, and waits for its exit: a static \
        program of a few hundred bytes, `true` (dynamically linked on most systems), and those \
        shells and interpreters that are installed. `fork` is a process that exits without \
        executing a program. `bash-subshell`, `bash-loop-true` and `bash-loop-awk` are loops in \
        bash around a subshell, `true` as a program, or an awk that does nothing; the value is the \
        time of one iteration, including a few microseconds for the loop itself.",
    view: View::Startup,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable,
    alternates_cpus: never_alternates_cpus,
    demands: Demands::NONE.with_cost_ms(50, 100).with_ns_per(&[("turns", 4_000_000)]),
    subject,
};

/// A command or process whose start is measured.
struct StartupCommand {
    name: &'static str,
    /// The program, which must be installed; `None` for a mere fork and for the tiny program.
    program: Option<&'static str>,
    arguments: &'static [&'static str],
    /// Body of a bash loop, or `None` for a single command. If the loop starts a program, the body
    /// begins with `PROGRAM:` and the name of the program.
    repeated: Option<&'static str>,
    /// Arguments with which the program prints its version; empty if it has no such option.
    version: &'static [&'static str],
}

const fn direct(name: &'static str, arguments: &'static [&'static str]) -> StartupCommand {
    StartupCommand { name, program: Some(name), arguments, repeated: None, version: &["--version"] }
}

const fn named(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> StartupCommand {
    StartupCommand { name, ..direct(program, arguments) }
}

const fn looped(name: &'static str, repeated: &'static str) -> StartupCommand {
    let program = Some("bash");
    StartupCommand {
        name,
        program,
        arguments: &[],
        repeated: Some(repeated),
        version: &["--version"],
    }
}

const COMMANDS: &[StartupCommand] = &[
    StartupCommand { name: "fork", program: None, arguments: &[], repeated: None, version: &[] },
    StartupCommand { name: "static", program: None, arguments: &[], repeated: None, version: &[] },
    direct("true", &[]),
    StartupCommand { version: &[], ..direct("sh", &["-c", ":"]) },
    direct("bash", &["-c", ":"]),
    StartupCommand { version: &["-W", "version"], ..direct("mawk", &["BEGIN {}"]) },
    direct("gawk", &["BEGIN {}"]),
    StartupCommand {
        version: &["--help"],
        ..named("busybox-awk", "busybox", &["awk", "BEGIN {}"])
    },
    direct("original-awk", &["BEGIN {}"]),
    direct("perl", &["-e", "1"]),
    direct("python3", &["-c", "pass"]),
    direct("node", &["-e", "0"]),
    looped("bash-subshell", "(:)"),
    looped("bash-loop-true", "PROGRAM:true"),
    looped("bash-loop-awk", "PROGRAM:awk 'BEGIN {}'"),
];

fn cases(scope: &Scope) -> Vec<Parameters> {
    let turns = scope.choose(&[1000], &[100], &[2])[0];
    COMMANDS
        .iter()
        .map(|command| {
            let parameters = Parameters::new().with(names::COMMAND, command.name);
            if command.repeated.is_some() {
                parameters.with(names::TURNS, turns)
            } else {
                parameters
            }
        })
        .collect()
}

fn find_command(parameters: &Parameters) -> Option<&'static StartupCommand> {
    COMMANDS.iter().find(|command| Some(command.name) == parameters.text(names::COMMAND))
}

pub(in crate::experiments) fn unavailable(parameters: &Parameters) -> Option<String> {
    let command = find_command(parameters)?;
    if command.name == "static" {
        return tiny::unavailable();
    }
    let repeated = command.repeated.and_then(repeated_program);
    programs::missing(command.program.into_iter().chain(repeated))
}

fn repeated_program(repeated: &'static str) -> Option<&'static str> {
    repeated.strip_prefix("PROGRAM:")?.split(' ').next()
}

pub(in crate::experiments) fn subject(
    parameters: &Parameters,
) -> Result<Box<dyn Subject>, SubjectError> {
    let wrong = |name: &str| SubjectError::Unexpected(format!("{name} is not installed"));
    let command = find_command(parameters).ok_or_else(|| wrong("the command"))?;
    let mut facts = Parent::new(&Parameters::new())?.facts();
    match (command.name, command.program) {
        ("fork", _) => Ok(Box::new(Timed::new(|| reap_success(fork(|| 0)?)).with_facts(facts))),
        (_, None) => {
            let tiny = TinyProgram::new()?;
            let start = move || reap_success(posix_spawn(tiny.path(), &[c"tiny"])?);
            Ok(Box::new(Timed::new(start).with_facts(facts)))
        }
        (name, Some(program)) => {
            let program = find(program).ok_or_else(|| wrong(program))?;
            facts.extend(describe(&program, command));
            let turns = parameters.number(names::TURNS).unwrap_or(1);
            let mut arguments = vec![command.program.unwrap_or(name).to_owned()];
            match command.repeated {
                None => arguments.extend(command.arguments.iter().map(|&argument| argument.into())),
                Some(repeated) => {
                    arguments.extend(["-c".to_owned(), loop_script(repeated, turns)?]);
                }
            }
            let command = PreparedCommand::new(&program, arguments)?;
            Ok(Box::new(Timed::new(move || command.run()).of_units(turns).with_facts(facts)))
        }
    }
}

/// Returns a bash script that loops `turns` times over the body `repeated`. The script names a
/// program by its path, because `true` is also a builtin of bash. Fails if that program is not
/// installed.
fn loop_script(repeated: &'static str, turns: u64) -> Result<String, SubjectError> {
    let body = match repeated_program(repeated) {
        None => repeated.to_owned(),
        Some(name) => {
            let path = find(name)
                .ok_or_else(|| SubjectError::Unexpected(format!("{name} is not installed")))?;
            let rest = repeated.trim_start_matches("PROGRAM:").trim_start_matches(name);
            format!("'{}'{rest}", path.display().to_string().replace('\'', r"'\''"))
        }
    };
    Ok(format!("i=0; while [ $i -lt {turns} ]; do {body}; i=$((i+1)); done"))
}

/// A command and its arguments in the form that `exec` takes, to be started repeatedly.
struct PreparedCommand {
    program: CString,
    arguments: Vec<CString>,
}

impl PreparedCommand {
    fn new(program: &std::path::Path, arguments: Vec<String>) -> Result<Self, SubjectError> {
        let c_string = |text: String| {
            CString::new(text).map_err(|error| SubjectError::Unexpected(error.to_string()))
        };
        Ok(Self {
            program: c_string(program.display().to_string())?,
            arguments: arguments.into_iter().map(c_string).collect::<Result<_, _>>()?,
        })
    }

    fn run(&self) -> io::Result<()> {
        let arguments: Vec<_> = self.arguments.iter().map(CString::as_c_str).collect();
        reap_success(posix_spawn(&self.program, &arguments)?)
    }
}

fn reap_success(pid: Pid) -> io::Result<()> {
    match reap(pid)?.status {
        ExitStatus::Exited(0) => Ok(()),
        other => Err(io::Error::other(format!("the command ended with {other:?}"))),
    }
}

fn describe(program: &std::path::Path, command: &StartupCommand) -> Facts {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let mut facts = Facts::from([("program".to_owned(), real.display().to_string().into())]);
    if command.version.is_empty() {
        return facts;
    }
    let mut version = Command::new(program);
    let output = version.args(command.version).stdin(Stdio::null()).stderr(Stdio::null()).output();
    if let Some(line) = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned()))
    {
        facts.insert("version".to_owned(), line.into());
    }
    facts
}
