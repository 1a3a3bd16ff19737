//! Tools that run the cases: the shell, contend and others, with the reason if one is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use super::cases::Case;
use super::forms::FORMS;

/// How a tool runs a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `bash`, with which the others are compared.
    Bash,
    /// `contend run`.
    Contend,
    /// `PaSh -w CPUS`.
    Pash,
    /// A source in the case, by its index in [`FORMS`].
    Form(usize),
}

/// Paths of programs that may not be in `PATH`.
#[derive(Debug, Clone)]
pub struct Paths {
    /// Path of contend.
    pub contend: PathBuf,
    /// Command that starts `PaSh`.
    pub pash: PathBuf,
    /// Bash file that defines forkrun's function `frun`; `None` if it was not given.
    pub frun: Option<PathBuf>,
}

/// A tool, and whether it is available.
#[derive(Debug)]
pub struct Tool {
    /// Name of the tool in tables.
    pub name: &'static str,
    /// How the tool runs a case.
    pub kind: Kind,
    /// Version of the tool, or the reason why it is missing.
    pub state: Result<String, String>,
}

/// Returns all tools; those in `without` are marked as left out.
pub fn all(paths: &Paths, without: &[String]) -> Vec<Tool> {
    let forms = FORMS.iter().enumerate().map(|(place, &(name, _))| (name, Kind::Form(place)));
    let kinds = [("bash", Kind::Bash), ("contend", Kind::Contend), ("pash", Kind::Pash)];
    kinds
        .into_iter()
        .chain(forms)
        .map(|(name, kind)| {
            let out = without.iter().any(|other| other == name);
            let state = if out { Err("left out".to_owned()) } else { found(name, paths) };
            Tool { name, kind, state }
        })
        .collect()
}

/// Returns the version of the tool `name`, or the reason why it does not work here.
fn found(name: &str, paths: &Paths) -> Result<String, String> {
    let mut version = Command::new(name);
    version.arg("--version");
    match name {
        "contend" => {
            works(Command::new(&paths.contend).args(["run", "echo works"]), "works")?;
            version = Command::new(&paths.contend);
            version.arg("--version");
        }
        "pash" => {
            works(Command::new(&paths.pash).args(["-w", "2", "-c", "echo works"]), "works")?;
            return Ok(first_line(Command::new(&paths.pash).arg("--version"))
                .unwrap_or_else(|_| "unknown version".to_owned()));
        }
        "forkrun" => {
            let frun = paths.frun.as_ref().ok_or("no --forkrun FILE was given")?;
            works(&mut sourced(frun, "echo works | frun -k -s -j 2 cat"), "works")?;
            version = sourced(frun, "frun --version");
        }
        "parallel" => works(
            crate::bash_command("echo works | parallel --will-cite --pipe -k cat")
                .stdin(Stdio::null()),
            "works",
        )?,
        _ => {}
    }
    first_line(&mut version)
}

fn sourced(frun: &Path, text: &str) -> Command {
    let mut command = crate::bash_command(&format!(". \"$FRUN\"; {text}"));
    command.env("FRUN", frun);
    command
}

fn works(command: &mut Command, expected: &str) -> Result<(), String> {
    let line = first_line(command)?;
    if line == expected { Ok(()) } else { Err(format!("printed `{line}` in a trial")) }
}

/// Runs a command, and returns the first line of its output that is not blank. If the command fails
/// or prints no such line, returns the reason.
fn first_line(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines().find(|line| !line.trim().is_empty()).map(str::to_owned)
    };
    match line(&output.stdout) {
        Some(line) if output.status.success() => Ok(line),
        _ => Err(line(&output.stderr).unwrap_or_else(|| output.status.to_string())),
    }
}

impl Tool {
    /// Returns the command that runs a case, without folder, locale and input, or `None` if the
    /// tool cannot run the case.
    pub fn command(&self, case: &Case, paths: &Paths, context: &RunContext<'_>) -> Option<Command> {
        let mut command = match self.kind {
            Kind::Bash if case.script => Command::new("bash"),
            Kind::Bash => return Some(crate::bash_command(&case.text)),
            Kind::Contend => {
                let mut command = Command::new(&paths.contend);
                command.args(["run", "--no-store"]);
                if let Some(stats) = context.stats {
                    command.arg("--json").arg(stats);
                }
                if !case.script {
                    command.arg(&case.text);
                    return Some(command);
                }
                command.arg("-f");
                command
            }
            Kind::Pash => {
                let mut command = Command::new(&paths.pash);
                command.arg("-w").arg(context.cpus.to_string());
                if !case.script {
                    command.arg("-c").arg(&case.text);
                    return Some(command);
                }
                command
            }
            Kind::Form(place) => {
                let mut command = crate::bash_command(case.forms[place].as_ref()?);
                command.env("SCRATCH", context.scratch).env("PARALLEL", "--will-cite");
                command.env("PARALLEL_SHELL", "bash");
                command.envs(paths.frun.as_ref().map(|frun| ("FRUN", frun)));
                return Some(command);
            }
        };
        command.arg(context.script);
        Some(command)
    }
}

/// What a run needs in addition to the case: files, a folder and a number of CPUs.
#[derive(Debug, Clone, Copy)]
pub struct RunContext<'a> {
    /// File with the source of the case.
    pub script: &'a Path,
    /// File for contend's statistics; `None` if they are not requested.
    pub stats: Option<&'a Path>,
    /// Folder for temporary files of the tools in [`FORMS`].
    pub scratch: &'a Path,
    /// Number of CPUs that may be used.
    pub cpus: usize,
}
