//! From the command line to what is to be done: everything that can be wrong with it is
//! found here, before anything runs.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use contend_profile::pipeline::parse::{Parsed, parse};
use rustix::fs::FileType;

use crate::cli::demo::DemoArgs;
use crate::cli::pipe::PipeArgs;
use crate::exit::UsageError;
use crate::output::ReportFile;

/// A pipeline to profile and where its report goes.
#[derive(Debug)]
pub struct Pipe {
    /// The pipeline.
    pub parsed: Parsed,
    /// How it is run.
    pub how: How,
    /// How often.
    pub runs: u32,
    /// Where the report goes; standard error if nowhere else.
    pub output: Option<ReportFile>,
    /// Where the record goes as JSON.
    pub json: Option<ReportFile>,
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
    /// Output goes to /dev/null.
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
        let file = File::open(path).map_err(|source| {
            UsageError(format!("cannot read --stdin {}: {source}", path.display()))
        })?;
        if file.metadata().is_ok_and(|data| data.is_dir()) {
            let message = format!("cannot read --stdin {}: it is a folder", path.display());
            return Err(UsageError(message).into());
        }
        Ok(Some(file))
    }
}

/// Settings of `contend pipe`.
///
/// # Errors
/// A [`UsageError`] that says what is wrong and where.
pub fn pipe(args: PipeArgs) -> Result<Pipe> {
    let parsed = parse(&args.pipeline).map_err(|error| UsageError(error.to_string()))?;
    check_text("the pipeline", &args.pipeline)?;
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
    if args.runs > 1 {
        make_repeatable(&mut how)?;
    }
    let output = args.output.as_deref().map(ReportFile::prepare).transpose()?;
    let json = args.json.as_deref().map(ReportFile::prepare).transpose()?;
    if let (Some(output), Some(json)) = (&output, &json)
        && output.is_same_as(json)
    {
        let message = "--output and --json name the same file: one would be lost";
        return Err(UsageError(message.to_owned()).into());
    }
    Ok(Pipe { parsed, how, runs: args.runs, output, json })
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
        // Opened anew through this link, the file is read from its beginning.
        FileType::RegularFile => how.stdin = Some("/proc/self/fd/0".into()),
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
