//! Finds the stages of a pipeline that contend can take over, and groups them into runs.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind as Kind,
    IoFileRedirectTarget as Target, IoRedirect, Pipeline, SimpleCommand,
};
use contend_commands::Simple;

use super::{Rewriter, constants, substitutions};
use crate::plan::classes;
use crate::plan::fast_path::fast_path;
use crate::plan::planner::Annotation;
use crate::plan::text::is_built_in;

/// Returns whether commands of the given name may run over chunks of their input.
pub(super) fn is_known(name: &str, annotations: &[Annotation]) -> bool {
    classes::may_gain(name)
        || annotations.iter().any(|one| one.words.first().is_some_and(|word| word == name))
}

/// The properties of a stage that decide how it can be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fit {
    /// Whether the stage cannot be taken over together with the one before it.
    is_first: bool,
    /// Whether the stage cannot be taken over together with the one after it.
    is_last: bool,
    /// Whether the stage may run over chunks of its input.
    is_known: bool,
}

/// The reason why a stage cannot be taken over, whatever its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Compound,
    OnlyVariables,
    NameNotPlain,
    BuiltIn,
    Function,
    NoProgram,
    ProcessSubstitution,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Compound => "it is a compound command",
            Self::OnlyVariables => "it only sets variables; contend does not look into `$(…)`",
            Self::NameNotPlain => "its name is not a plain word",
            Self::BuiltIn => "it is a shell builtin",
            Self::Function => "it is a function defined in the text",
            Self::NoProgram => "it is not an executable program",
            Self::ProcessSubstitution => {
                "it has a process substitution, which only the shell can give it"
            }
        })
    }
}

/// A finder of the runs of stages to take over in one script.
#[derive(Clone, Copy)]
pub(super) struct Runs<'a> {
    pub(super) rewriter: Rewriter<'a>,
    /// Names of the functions that the script defines.
    pub(super) functions: &'a BTreeSet<&'a str>,
    pub(super) text: &'a str,
}

impl Runs<'_> {
    /// Returns the longest runs of stages that can be taken over, as ranges of their indices. Omits
    /// runs without a stage that may run over chunks, and runs with too little input.
    pub(super) fn of(self, pipeline: &Pipeline) -> Vec<Range<usize>> {
        let fits: Vec<_> = pipeline.seq.iter().map(|command| self.fit(command)).collect();
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut is_open = false;
        for (index, fit) in fits.iter().enumerate() {
            let Some(fit) = fit else {
                is_open = false;
                continue;
            };
            match runs.last_mut() {
                Some(run) if is_open && !fit.is_first => run.end += 1,
                _ => runs.push(index..index + 1),
            }
            is_open = !fit.is_last;
        }
        runs.retain(|run| {
            fits[run.clone()].iter().flatten().any(|fit| fit.is_known)
                && !self.has_little_input(pipeline, run)
        });
        runs
    }

    fn fit(self, command: &Command) -> Option<Fit> {
        self.judge(command).ok()
    }

    /// Returns how a stage can be taken over, or why it cannot.
    fn judge(self, command: &Command) -> Result<Fit, Obstacle> {
        let Command::Simple(simple) = command else { return Err(Obstacle::Compound) };
        let name = simple.word_or_name.as_ref().ok_or(Obstacle::OnlyVariables)?.value.as_str();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        if !name.chars().all(is_plain) {
            return Err(Obstacle::NameNotPlain);
        }
        if is_built_in(name) {
            return Err(Obstacle::BuiltIn);
        }
        if self.functions.contains(name) {
            return Err(Obstacle::Function);
        }
        if !(self.rewriter.is_program)(name) {
            return Err(Obstacle::NoProgram);
        }
        let is_known = is_known(name, self.rewriter.annotations);
        let is_first = substitutions::read_input(simple);
        let mut fit = Fit { is_first, is_last: false, is_known };
        for item in items(simple) {
            match item {
                Item::Word(_) | Item::AssignmentWord(..) => {}
                // The descriptor is open in this stage only.
                Item::ProcessSubstitution(..) => return Err(Obstacle::ProcessSubstitution),
                Item::IoRedirect(redirect) => match stream(redirect) {
                    Some(Stream::Input) => fit.is_first = true,
                    Some(Stream::Output) => fit.is_last = true,
                    // The neighbouring stages do not have the redirected descriptor.
                    None => (fit.is_first, fit.is_last) = (true, true),
                },
            }
        }
        Ok(fit)
    }

    /// Returns whether a stage can be taken over and may run over chunks of its input.
    pub(super) fn is_known(self, command: &Command) -> bool {
        self.judge(command).is_ok_and(|fit| fit.is_known)
    }

    /// Returns the reason, worded for users, why the stage at the given index is left to the shell.
    /// The index must be that of a stage that is not taken over.
    pub(super) fn why_left(self, pipeline: &Pipeline, index: usize) -> String {
        match self.judge(&pipeline.seq[index]) {
            Err(obstacle) => obstacle.to_string(),
            Ok(Fit { is_known: false, .. }) => {
                "neither it nor a neighbouring stage is known to run on chunks of its input".to_owned()
            }
            Ok(_) if self.has_little_input(pipeline, &(index..index + 1)) => {
                "it reads too little to gain from chunks, or cannot run on them".to_owned()
            }
            Ok(_) => {
                "the stages that it could run with read too little, or the script uses their exit codes"
                    .to_owned()
            }
        }
    }

    /// Returns stages as plain words, without redirections of output. Returns `None` if some words
    /// are known only at run time.
    pub(super) fn simples(self, stages: &[Command]) -> Option<Vec<Simple>> {
        let read = |stage: &Command| {
            Simple::read(&constants::insert(&without_output(stage).to_string(), self.text))
        };
        stages.iter().map(read).collect()
    }

    /// Returns whether the script shows that a run of stages gets too little input, or reads too
    /// little of it, to gain from chunks.
    fn has_little_input(self, pipeline: &Pipeline, run: &Range<usize>) -> bool {
        let stages = &pipeline.seq[run.clone()];
        if let Some(before) = run.start.checked_sub(1) {
            return writes_little(&pipeline.seq[before]);
        }
        let Some(Command::Simple(first)) = stages.first() else { return false };
        let is_text = |item: &Item| {
            matches!(
                item,
                Item::IoRedirect(IoRedirect::HereDocument(..) | IoRedirect::HereString(..))
            )
        };
        if items(first).any(is_text) {
            return true;
        }
        let read =
            |stage: &Command| Simple::read(&constants::insert(&stage.to_string(), self.text));
        let simples: Option<Vec<Simple>> = stages.iter().map(read).collect();
        simples.is_some_and(|simples| {
            !self.may_write_files_of(&simples)
                && fast_path(&simples, self.rewriter.annotations, None).is_some()
        })
    }

    /// Returns whether the script may change a file that the given stages name. This is assumed if
    /// the file's name, without its directory, occurs in the script more than once.
    fn may_write_files_of(self, stages: &[Simple]) -> bool {
        let words = stages.iter().flat_map(|stage| stage.arguments.iter().chain(&stage.input));
        { words }.filter(|word| !word.text.starts_with('-') && word.text.len() > 1).any(|word| {
            let name = word.text.rsplit('/').next().unwrap_or(&word.text);
            self.text.matches(name).nth(1).is_some()
        })
    }
}

/// Returns the words, assignments and redirections of a stage.
pub(super) fn items(simple: &SimpleCommand) -> impl Iterator<Item = &Item> {
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    prefix.chain(simple.suffix.iter().flat_map(|suffix| &suffix.0))
}

/// Returns a stage without its output redirections, which do not change how it can run.
fn without_output(stage: &Command) -> Command {
    let mut stage = stage.clone();
    if let Command::Simple(simple) = &mut stage {
        let is_kept = |item: &Item| !matches!(item, Item::IoRedirect(redirect) if matches!(stream(redirect), Some(Stream::Output)));
        let lists = [
            simple.prefix.as_mut().map(|prefix| &mut prefix.0),
            simple.suffix.as_mut().map(|suffix| &mut suffix.0),
        ];
        lists.into_iter().flatten().for_each(|items| items.retain(is_kept));
    }
    stage
}

/// Returns whether a stage is a builtin that reads nothing and writes little, such as its
/// arguments.
fn writes_little(command: &Command) -> bool {
    let Command::Simple(simple) = command else { return false };
    let name = simple.word_or_name.as_ref().map(|word| word.value.as_str());
    name.is_some_and(|name| ["echo", "printf", "pwd", ":", "true", "false"].contains(&name))
}

/// A stream that may be connected to another stage.
enum Stream {
    Input,
    Output,
}

/// Returns which of standard input and standard output a redirection changes, or `None` if it
/// changes or may change another descriptor.
fn stream(redirect: &IoRedirect) -> Option<Stream> {
    match redirect {
        IoRedirect::HereDocument(None | Some(0), _) | IoRedirect::HereString(None | Some(0), _) => {
            Some(Stream::Input)
        }
        IoRedirect::File(fd, kind, target) => match (fd, kind) {
            (None | Some(0), Kind::Read | Kind::ReadAndWrite | Kind::DuplicateInput) => {
                Some(Stream::Input)
            }
            (None | Some(1), Kind::Write | Kind::Append | Kind::Clobber) => Some(Stream::Output),
            // `>&word` redirects standard error too, unless the word is a number.
            (None | Some(1), Kind::DuplicateOutput) if matches!(target, Target::Fd(_)) => {
                Some(Stream::Output)
            }
            _ => None,
        },
        _ => None,
    }
}
