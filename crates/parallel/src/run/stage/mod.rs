//! Runs one stage of shell source, in the process that the shell has started for it.
//!
//! The shell has expanded the stage's words and performed its redirections. The process takes the
//! place of the stage's command. It connects to the processes of neighbouring stages (see
//! `rendezvous.rs`), and the last of them decides for all:
//!
//! ```text
//! sort -r <in │ uniq -c │ head >out      the shell's text
//!   contend   →  contend  →  contend     words, environment and standard input go to the last
//!      ↑──────────↑───────── verdict
//!    sort        uniq        head        each becomes its command, or …
//!    exits       exits       contend     … the last one runs all of them over chunks
//! ```

mod rendezvous;
mod words;

use std::ffi::OsString;
use std::time::Duration;

use crate::plan::script::Position;
use contend_commands::Simple;
use contend_sys::{inherited, spawn};

use self::rendezvous::{Neighbours, Verdict};
use self::words::Words;
use super::direct::{self, Direct, Originals};
use super::end::End;
use super::error::RunError;
use super::observer::Observer;
use super::settings::Settings;
use super::shell_command;

/// Separator of the options that a prefix passes as one word.
pub(super) const SEPARATOR: char = '\x1f';

/// The option that announces the value of `SHELLOPTS` as the first word after the options.
pub(super) const SHELL_OPTIONS: &str = "--shell-options";

/// The option that makes a pipeline fail if any of its stages fails.
const PIPEFAIL: &str = "--pipefail";

/// Time that a stage waits for its neighbours. A neighbour whose redirection blocks on opening a
/// fifo may never arrive; the stage then runs alone.
const RENDEZVOUS_TIMEOUT: Duration = Duration::from_millis(50);
/// Time that a stage waits for its neighbours if an option rules out the fast path.
const FORCED_RENDEZVOUS_TIMEOUT: Duration = Duration::from_secs(2);

/// Beginnings of options that rule out the fast path.
const FORCING: [&str; 4] = ["--part-size", "--parts", "--stats", "--records-to"];

/// Beginning of the option for an engine, with which stages may read objects.
const ENGINE: &str = "--on";

/// A stage of shell source, as the arguments of its process describe it.
#[derive(Debug)]
struct Stage {
    position: Position,
    /// Options of `contend run`, joined by [`SEPARATOR`].
    options: String,
    /// Whether `pipefail` is set in the shell, so that a pipeline fails if any of its stages fails.
    has_pipefail: bool,
}

/// The state of a stage before its settings are read.
#[derive(Debug)]
pub enum Begun {
    /// The process of the stage has nothing left to do.
    Over(End),
    /// The stage needs its settings to continue. Most stages do not, which saves the time of
    /// reading them.
    Undecided(Box<Undecided>),
}

/// A stage whose process knows its neighbours, and needs its settings next.
#[derive(Debug)]
pub struct Undecided {
    stage: Stage,
    next: Next,
}

/// The next step of a stage's process.
#[derive(Debug)]
enum Next {
    /// Start a shell for the command, because the command could not replace this process.
    UseShell(Words),
    /// Run the collected stages together in this process, which is that of the last one, if that is
    /// better than each process executing its own command.
    RunTogether(Together),
}

/// Begins a stage. `words` are the words after the hidden subcommand on the command line: the
/// stage's position and options, followed by the words of the stage.
///
/// Does not return if the stage's command replaces this process.
///
/// # Errors
/// Returns an error if the words are not those of a stage.
pub fn begin(words: &[OsString]) -> Result<Begun, RunError> {
    let [position, options, command @ ..] = words else {
        return Err(RunError::Stage("missing command of the stage"));
    };
    let position = position.to_str().and_then(Position::from_letter);
    let position = position.ok_or(RunError::Stage("unknown position of the stage"))?;
    let options =
        options.to_str().ok_or(RunError::Stage("the options of a stage are not UTF-8"))?;
    let mut stage = Stage { position, options: options.to_owned(), has_pipefail: false };
    let mut command = command;
    if options.split(SEPARATOR).any(|option| option == SHELL_OPTIONS) {
        let (of_shell, rest) =
            command.split_first().ok_or(RunError::Stage("missing command of the stage"))?;
        stage.has_pipefail =
            of_shell.to_string_lossy().split(':').any(|option| option == "pipefail");
        command = rest;
    }
    Ok(stage.connect_and_decide(Words::of_this_process(command)))
}

impl Stage {
    /// Connects to the neighbours, and leaves the decision to the next stage. If there is none,
    /// decides for all stages, or returns `Begun::Undecided` if that needs the settings.
    fn connect_and_decide(self, own: Words) -> Begun {
        let timeout = if self.is_forced() { FORCED_RENDEZVOUS_TIMEOUT } else { RENDEZVOUS_TIMEOUT };
        let mut neighbours = Neighbours::connect(self.position, timeout);
        if own.names_descriptors() || (0..3).any(|fd| !inherited::was_open(fd)) {
            // The neighbours notice that the connections are closed, and stop waiting.
            drop(neighbours);
            return self.become_command(own);
        }
        let mut stages = neighbours.stages_before();
        stages.push(own);
        if let Some(verdict) = neighbours.ask_next(&stages) {
            neighbours.answer(verdict);
            return match (verdict, stages.pop()) {
                (Verdict::AsWritten, Some(own)) => self.become_command(own),
                _ => Begun::Over(End::TakenOver),
            };
        }
        let mut together = Together { stages, neighbours };
        let may_read_object = self.options().any(|option| option.starts_with(ENGINE))
            && together.stages.iter().any(Words::may_name_object);
        if self.is_forced() || may_read_object || !together.takes_fast_path() {
            return Begun::Undecided(
                Undecided { stage: self, next: Next::RunTogether(together) }.into(),
            );
        }
        match together.leave_as_written() {
            Some(own) => self.become_command(own),
            None => Begun::Over(End::TakenOver),
        }
    }

    /// Replaces this process with its stage's command, as the shell would have started it. Returns
    /// only if that fails.
    fn become_command(self, words: Words) -> Begun {
        if let Some(mut command) = words.command() {
            spawn::become_command(&mut command);
        }
        Begun::Undecided(Undecided { stage: self, next: Next::UseShell(words) }.into())
    }

    fn is_forced(&self) -> bool {
        self.options().any(|option| FORCING.iter().any(|it| option.starts_with(it)))
    }

    fn options(&self) -> impl Iterator<Item = &str> {
        let options = self.options.split(SEPARATOR);
        let options = options.filter(|option| !["", SHELL_OPTIONS].contains(option));
        let is_given = options.clone().any(|option| option == PIPEFAIL);
        options.chain((self.has_pipefail && !is_given).then_some(PIPEFAIL))
    }
}

impl Undecided {
    /// Returns the options of `contend run` for the stage, which the caller parses.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        self.stage.options()
    }

    /// Continues with the given settings. `name` is the shell's name in messages.
    ///
    /// Does not return if the stage's command, or a shell that starts it, replaces this process.
    ///
    /// # Errors
    /// Returns an error if the pipeline of the stages cannot be started or supervised.
    pub fn run(
        self,
        settings: &Settings,
        name: &str,
        observer: &mut dyn Observer,
    ) -> Result<End, RunError> {
        match self.next {
            Next::UseShell(words) => Ok(use_shell(&words, settings, name)),
            Next::RunTogether(together) => ConfiguredRun { together, settings, name }.run(observer),
        }
    }
}

/// Replaces this process with a shell for a command that could not replace it. The shell reports
/// the error, and runs files that the kernel cannot execute. Returns only if the shell cannot be
/// started.
fn use_shell(words: &Words, settings: &Settings, name: &str) -> End {
    let mut shell = shell_command::without_text(&settings.shell());
    words.give_to(&mut shell, name);
    let source = spawn::become_command(&mut shell);
    End::NotExecuted { program: "a shell".to_owned(), source, exit_code: 126 }
}

/// All stages that can be taken over together, in the process of the last one.
#[derive(Debug)]
struct Together {
    stages: Vec<Words>,
    neighbours: Neighbours,
}

impl Together {
    fn takes_fast_path(&mut self) -> bool {
        let simples: Option<Vec<_>> =
            self.stages.iter().map(|stage| stage.simple(&stage.environment)).collect();
        simples.is_some_and(|simples| {
            self.neighbours.use_first_input() && direct::takes_fast_path(&simples)
        })
    }

    /// Restores this process's own standard input, and makes the processes of the stages before
    /// this one execute their commands. Removes and returns the words of this process's own
    /// command, so it must be called only once.
    fn leave_as_written(&mut self) -> Option<Words> {
        self.neighbours.put_own_input_back();
        self.neighbours.answer(Verdict::AsWritten);
        self.stages.pop()
    }
}

/// All stages that can be taken over together, with the settings to run them.
struct ConfiguredRun<'a> {
    together: Together,
    settings: &'a Settings,
    name: &'a str,
}

impl ConfiguredRun<'_> {
    /// Runs all the stages together if that is better, or else makes each process execute its own
    /// command.
    fn run(&mut self, observer: &mut dyn Observer) -> Result<End, RunError> {
        let common = words::common_environment(&self.together.stages);
        let simples: Option<Vec<_>> =
            self.together.stages.iter().map(|stage| stage.simple(&common)).collect();
        let Some(simples) = simples else { return self.run_as_written() };
        if !self.together.neighbours.use_first_input() || words::adopt(&common).is_err() {
            return self.run_as_written();
        }
        let texts: Vec<String> = simples.iter().map(Simple::text).collect();
        let settings = self.settings;
        match Direct::new(&simples) {
            Ok(direct) => {
                direct.instead_of(self).run(&texts.join(" | "), false, settings, observer)
            }
            Err(why) => {
                direct::check_as_written(&simples, settings, &why)?;
                self.run_as_written()
            }
        }
    }
}

impl Originals for ConfiguredRun<'_> {
    fn run_as_written(&mut self) -> Result<End, RunError> {
        let Some(own) = self.together.leave_as_written() else { return Ok(End::TakenOver) };
        if let Some(mut command) = own.command() {
            spawn::become_command(&mut command);
        }
        Ok(use_shell(&own, self.settings, self.name))
    }

    fn take_over(&mut self) {
        self.together.neighbours.answer(Verdict::TakenOver);
    }
}
