//! `units/startup`: what starting a command costs.

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
    Demands, Experiment, Facts, Fit, Sampling, Scope, Subject, SubjectError, never_hands_over,
};
use crate::engine::timing::Timed;
use crate::support::programs::{self, find};

/// The row of the table.
pub const EXPERIMENT: Experiment = Experiment {
    name: "units/startup",
    summary: "starting a command and waiting for its end, and starting 1,000 in a loop",
    about: "Starts a command that has nothing to do, by posix_spawn, and waits for its end: a \
            static program of some hundred bytes, `true` (linked dynamically on most systems), shells \
            and interpreters as far as they are installed. `fork` is a process that ends without \
            executing anything. `bash-subshell`, `bash-loop-true` and `bash-loop-awk` are a loop \
            in bash around a subshell, `true` as a program, or an awk that does nothing; the time \
            is that of one turn, the loop itself included (some microseconds).",
    view: View::Startup,
    unit: Unit::Nanoseconds,
    sampling: Sampling::Adaptive,
    fit: Fit::None,
    settings: &[],
    cases,
    unavailable,
    hands_over: never_hands_over,
    demands: Demands::NONE.lasting(50, 100).and_ns_per(&[("turns", 4_000_000)]),
    subject,
};

/// A command that is started.
struct What {
    name: &'static str,
    /// The program that must be there, if it is not made here.
    program: Option<&'static str>,
    arguments: &'static [&'static str],
    /// What bash repeats, if it is a loop.
    repeated: Option<&'static str>,
    /// What it answers to when it is asked for its version.
    version: &'static [&'static str],
}

const fn direct(name: &'static str, arguments: &'static [&'static str]) -> What {
    What { name, program: Some(name), arguments, repeated: None, version: &["--version"] }
}

const fn named(
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
) -> What {
    What { name, ..direct(program, arguments) }
}

const fn looped(name: &'static str, repeated: &'static str) -> What {
    let program = Some("bash");
    What { name, program, arguments: &[], repeated: Some(repeated), version: &["--version"] }
}

const COMMANDS: &[What] = &[
    What { name: "fork", program: None, arguments: &[], repeated: None, version: &[] },
    What { name: "static", program: None, arguments: &[], repeated: None, version: &[] },
    direct("true", &[]),
    What { version: &[], ..direct("sh", &["-c", ":"]) },
    direct("bash", &["-c", ":"]),
    What { version: &["-W", "version"], ..direct("mawk", &["BEGIN {}"]) },
    direct("gawk", &["BEGIN {}"]),
    What { version: &["--help"], ..named("busybox-awk", "busybox", &["awk", "BEGIN {}"]) },
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
        .map(|what| {
            let parameters = Parameters::new().with(names::COMMAND, what.name);
            if what.repeated.is_some() { parameters.with(names::TURNS, turns) } else { parameters }
        })
        .collect()
}

fn what(parameters: &Parameters) -> Option<&'static What> {
    COMMANDS.iter().find(|what| Some(what.name) == parameters.text(names::COMMAND))
}

pub(in crate::experiments) fn unavailable(parameters: &Parameters) -> Option<String> {
    let what = what(parameters)?;
    if what.name == "static" {
        return tiny::unavailable();
    }
    let repeated = what.repeated.and_then(repeated_program);
    programs::missing(what.program.into_iter().chain(repeated))
}

fn repeated_program(repeated: &'static str) -> Option<&'static str> {
    repeated.strip_prefix("PROGRAM:")?.split(' ').next()
}

pub(in crate::experiments) fn subject(
    parameters: &Parameters,
) -> Result<Box<dyn Subject>, SubjectError> {
    let wrong = |name: &str| SubjectError::Wrong(format!("{name} is not there"));
    let what = what(parameters).ok_or_else(|| wrong("the command"))?;
    let mut facts = Parent::new(&Parameters::new())?.facts();
    match (what.name, what.program) {
        ("fork", _) => Ok(Box::new(Timed::new(|| ended(fork(|| 0)?)).with_facts(facts))),
        (_, None) => {
            let tiny = TinyProgram::new()?;
            let start = move || ended(posix_spawn(tiny.path(), &[c"tiny"])?);
            Ok(Box::new(Timed::new(start).with_facts(facts)))
        }
        (name, Some(program)) => {
            let program = find(program).ok_or_else(|| wrong(program))?;
            facts.extend(describe(&program, what));
            let turns = parameters.number(names::TURNS).unwrap_or(1);
            let mut arguments = vec![what.program.unwrap_or(name).to_owned()];
            match what.repeated {
                None => arguments.extend(what.arguments.iter().map(|&argument| argument.into())),
                Some(repeated) => arguments.extend(["-c".to_owned(), text(repeated, turns)?]),
            }
            let command = Prepared::new(&program, arguments)?;
            Ok(Box::new(Timed::new(move || command.run()).of_units(turns).with_facts(facts)))
        }
    }
}

/// The loop. A program is given by its path, for `true` is also a command of bash itself.
fn text(repeated: &'static str, turns: u64) -> Result<String, SubjectError> {
    let body = match repeated_program(repeated) {
        None => repeated.to_owned(),
        Some(name) => {
            let path = find(name)
                .ok_or_else(|| SubjectError::Wrong(format!("{name} is not installed")))?;
            let rest = repeated.trim_start_matches("PROGRAM:").trim_start_matches(name);
            format!("'{}'{rest}", path.display().to_string().replace('\'', r"'\''"))
        }
    };
    Ok(format!("i=0; while [ $i -lt {turns} ]; do {body}; i=$((i+1)); done"))
}

/// A command that can be started again and again.
struct Prepared {
    program: CString,
    arguments: Vec<CString>,
}

impl Prepared {
    fn new(program: &std::path::Path, arguments: Vec<String>) -> Result<Self, SubjectError> {
        let c_string = |text: String| {
            CString::new(text).map_err(|error| SubjectError::Wrong(error.to_string()))
        };
        Ok(Self {
            program: c_string(program.display().to_string())?,
            arguments: arguments.into_iter().map(c_string).collect::<Result<_, _>>()?,
        })
    }

    fn run(&self) -> io::Result<()> {
        let arguments: Vec<_> = self.arguments.iter().map(CString::as_c_str).collect();
        ended(posix_spawn(&self.program, &arguments)?)
    }
}

fn ended(pid: Pid) -> io::Result<()> {
    match reap(pid)?.status {
        ExitStatus::Exited(0) => Ok(()),
        other => Err(io::Error::other(format!("the command ended with {other:?}"))),
    }
}

fn describe(program: &std::path::Path, what: &What) -> Facts {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let mut facts = Facts::from([("program".to_owned(), real.display().to_string().into())]);
    if what.version.is_empty() {
        return facts;
    }
    let mut command = Command::new(program);
    let output = command.args(what.version).stdin(Stdio::null()).stderr(Stdio::null()).output();
    if let Some(line) = output
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned()))
    {
        facts.insert("version".to_owned(), line.into());
    }
    facts
}
