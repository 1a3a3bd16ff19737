//! A stage of shell text, as the process that the shell has started for it.
//!
//! The shell has expanded the stage's words and performed its redirections; this process stands
//! where the stage's command would. It meets the processes of neighbouring stages (see
//! [`rendezvous`]), and the last of them decides for all:
//!
//! ```text
//! sort -r <in │ uniq -c │ head >out      the shell's text
//!   contend   →  contend  →  contend     words, environment and standard input go to the last
//!      ↑──────────↑───────── verdict
//!    sort        uniq        head        each becomes its command, or …
//!    exits       exits       contend     … the last one runs all of them over parts
//! ```

mod rendezvous;
mod words;

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use contend_commands::Simple;
use contend_parallel::plan::script::{Position, STAGE_VERB};
use contend_sys::{inherited, spawn};

use self::rendezvous::{Neighbours, Verdict};
use self::words::Words;
use super::direct::{self, Direct, Originals};
use super::shell;
use crate::exit::Exit;
use crate::{output, settings};

/// Separates the options that the prefix of a stage hands on as one word.
pub(super) const SEPARATOR: char = '\x1f';

/// The option that says that the first word is the value of `SHELLOPTS`.
pub(super) const SHELL_OPTIONS: &str = "--shell-options";

/// The option that says that a pipeline fails if any stage does.
const PIPEFAIL: &str = "--pipefail";

/// How long a stage waits for its neighbours to come. One whose redirection waits for the other end
/// of a fifo may never come: then this stage does its part alone.
const USUAL_PATIENCE: Duration = Duration::from_millis(50);
/// How long it waits if parts are asked for whatever they cost.
const LONG_PATIENCE: Duration = Duration::from_secs(2);

/// Options with which a quick decision must not be made.
const FORCING: [&str; 3] = ["--part-size", "--stats", "--records-to"];

/// Runs the stage that the words of this process are about, if they are about one.
pub fn from_command_line() -> Option<Result<Exit>> {
    let mut words = std::env::args_os().skip(1);
    (words.next().as_deref() == Some(OsStr::new(STAGE_VERB)))
        .then(|| run(&words.collect::<Vec<_>>()))
}

/// What stands before the words of a stage.
struct Request {
    position: Position,
    /// Options of `contend run`, put together by [`SEPARATOR`].
    options: String,
    /// The shell fails if any stage does.
    has_pipefail: bool,
}

fn run(words: &[OsString]) -> Result<Exit> {
    let [position, options, command @ ..] = words else { bail!("there is no stage") };
    let mut command = command;
    let position = position.to_str().and_then(Position::from_letter);
    let position = position.context("there is no such position of a stage")?;
    let options = options.to_str().context("the options of a stage are not UTF-8")?.to_owned();
    let mut has_pipefail = false;
    if options.split(SEPARATOR).any(|option| option == SHELL_OPTIONS) {
        let (of_shell, rest) = command.split_first().context("there is no stage")?;
        has_pipefail = of_shell.to_string_lossy().split(':').any(|option| option == "pipefail");
        command = rest;
    }
    Request { position, options, has_pipefail }.run(Words::of_this_process(command))
}

impl Request {
    fn run(&self, own: Words) -> Result<Exit> {
        let patience = if self.is_forced() { LONG_PATIENCE } else { USUAL_PATIENCE };
        let mut neighbours = Neighbours::meet(self.position, patience);
        if own.names_descriptors() || (0..3).any(|fd| !inherited::was_open(fd)) {
            // The neighbours notice, and wait no longer.
            drop(neighbours);
            return self.become_command(&own);
        }
        let mut stages = neighbours.stages_before();
        stages.push(own);
        if let Some(verdict) = neighbours.ask_next(&stages) {
            neighbours.answer(verdict);
            return match (verdict, stages.last()) {
                (Verdict::AsWritten, Some(own)) => self.become_command(own),
                _ => Ok(Exit::Success),
            };
        }
        let mut all = All { request: self, stages, neighbours };
        if self.is_forced() || !all.is_plain_at_a_glance() {
            self.run_together(&mut all)
        } else {
            all.run_as_written()
        }
    }

    fn is_forced(&self) -> bool {
        self.options().any(|option| FORCING.iter().any(|it| option.starts_with(it)))
    }

    /// Runs all the stages, of which this process is the last, if that can be done better than
    /// as they are written.
    fn run_together(&self, all: &mut All<'_>) -> Result<Exit> {
        let settings = settings::stage(self.options())?;
        let common = words::common_environment(&all.stages);
        let simples: Option<Vec<_>> =
            all.stages.iter().map(|stage| stage.simple(&common)).collect();
        let Some(simples) = simples else { return all.run_as_written() };
        if !all.neighbours.use_first_input() || words::adopt(&common).is_err() {
            return all.run_as_written();
        }
        let texts: Vec<String> = simples.iter().map(Simple::text).collect();
        let text = texts.join(" | ");
        match Direct::new(&simples) {
            Ok(direct) => direct.instead_of(all).run(&text, false, settings.of_pipeline(&text)),
            Err(_) => all.run_as_written(),
        }
    }

    /// Becomes the command that this process stands for, as the shell would have started it. Does
    /// not return unless that fails.
    fn become_command(&self, words: &Words) -> Result<Exit> {
        if let Some(mut command) = words.command() {
            spawn::become_command(&mut command);
        }
        // A shell knows how to say what is wrong, and runs files that the kernel does not know.
        let settings = settings::stage(self.options())?;
        let mut shell = shell::without_text(&settings.shell()?);
        words.give_to(&mut shell, settings.name());
        let error = spawn::become_command(&mut shell);
        output::error(&format!("cannot start a shell: {error}"));
        Ok(Exit::Shell(126))
    }

    fn options(&self) -> impl Iterator<Item = &str> {
        let options = self.options.split(SEPARATOR);
        let options = options.filter(|option| !["", SHELL_OPTIONS].contains(option));
        let is_given = options.clone().any(|option| option == PIPEFAIL);
        options.chain((self.has_pipefail && !is_given).then_some(PIPEFAIL))
    }
}

/// All the stages that can be taken over together, seen from the process of the last one.
struct All<'a> {
    request: &'a Request,
    stages: Vec<Words>,
    neighbours: Neighbours,
}

impl All<'_> {
    fn is_plain_at_a_glance(&mut self) -> bool {
        let simples: Option<Vec<_>> =
            self.stages.iter().map(|stage| stage.simple(&stage.environment)).collect();
        simples.is_some_and(|simples| {
            self.neighbours.use_first_input() && direct::is_plain_at_a_glance(&simples)
        })
    }
}

impl Originals for All<'_> {
    fn run_as_written(&mut self) -> Result<Exit> {
        self.neighbours.put_own_input_back();
        self.neighbours.answer(Verdict::AsWritten);
        match self.stages.last() {
            Some(own) => self.request.become_command(own),
            None => Ok(Exit::Success),
        }
    }

    fn take_over(&mut self) {
        self.neighbours.answer(Verdict::TakenOver);
    }
}
