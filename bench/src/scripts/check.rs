//! Runs all variants of a script with bash and with contend, and compares their outcomes.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::compare::{Difference, compare, repeats};
use super::generate::Script;
use super::run::{Outcome, Runner};
use super::shrink::shrink;

/// Form in which a shell gets a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `contend run TEXT`, `bash -c TEXT`.
    Text,
    /// `contend run -f FILE`, `bash FILE`.
    File,
}

/// Whether contend decides which stages run over chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// contend decides.
    Default,
    /// Every stage that can run over chunks does, with chunks of a given size.
    Forced,
}

/// All combinations of form and chunks.
pub const VARIANTS: [(Form, Parts); 4] = [
    (Form::Text, Parts::Default),
    (Form::Text, Parts::Forced),
    (Form::File, Parts::Default),
    (Form::File, Parts::Forced),
];

/// The result of one variant of a script.
#[derive(Debug)]
pub enum Verdict {
    /// contend has the same outcome as bash.
    Same,
    /// bash does not end within the limit.
    BashHangs,
    /// contend differs from bash in these ways, but bash also differs from itself.
    NotRepeatable(Vec<Difference>),
    /// contend's outcome differs from bash's.
    Differs(Box<Finding>),
}

/// A difference between contend and bash, with its reproduction.
#[derive(Debug)]
pub struct Finding {
    /// Kinds of difference that the whole script shows, the most severe first.
    pub kinds: Vec<Difference>,
    /// Number of further runs of contend, out of [`FURTHER_RUNS`], that again differ from bash in
    /// one of these kinds.
    pub again: usize,
    /// The script after shrinking; the whole script if not all further runs differ.
    pub small: Script,
    /// Outcome of [`Finding::small`] with bash.
    pub bash: Outcome,
    /// Outcome of [`Finding::small`] with contend.
    pub contend: Outcome,
    /// Command line of contend for [`Finding::small`].
    pub command: Vec<String>,
}

/// Number of further runs, first of bash and then of contend, if contend differs.
pub const FURTHER_RUNS: usize = 3;
/// Largest time limit of a run while a script is being shrunk.
const SHORT_LIMIT: Duration = Duration::from_secs(4);

/// A comparison of contend with bash, for any number of scripts.
#[derive(Debug)]
pub struct Checker<'a> {
    /// Path of contend.
    pub contend: &'a Path,
    /// Runs scripts with either shell, each within [`Runner::limit`].
    pub runner: Runner,
    /// Maximum time to shrink a script.
    pub shrink_time: Duration,
}

impl Checker<'_> {
    /// Runs all variants of a script, and returns the verdict on each, in the order of `VARIANTS`.
    /// If bash hangs on the script as text, the verdict on all variants is [`Verdict::BashHangs`].
    ///
    /// # Errors
    /// Returns an error if a program cannot be run.
    pub fn check(&self, script: &Script) -> Result<[Verdict; 4]> {
        let [text, file] = [Form::Text, Form::File];
        let text = self.bash(text, script, Cpus::All)?;
        if text.status.is_none() {
            return Ok(VARIANTS.map(|_| Verdict::BashHangs));
        }
        let file = self.bash(file, script, Cpus::All)?;
        let mut known = None;
        let verdict = |(form, parts)| {
            let bash = if form == Form::Text { &text } else { &file };
            let verdict = self.verdict(form, parts, script, bash, known.as_ref())?;
            if let Verdict::Differs(finding) = &verdict {
                known = Some(finding.small.clone());
            }
            anyhow::Ok(verdict)
        };
        let [first, second, third, fourth] = VARIANTS.map(verdict);
        Ok([first?, second?, third?, fourth?])
    }

    /// Runs one variant of a script, and returns its verdict.
    ///
    /// # Errors
    /// Returns an error if a program cannot be run.
    pub fn check_variant(&self, form: Form, parts: Parts, script: &Script) -> Result<Verdict> {
        let bash = self.bash(form, script, Cpus::All)?;
        self.verdict(form, parts, script, &bash, None)
    }

    fn verdict(
        &self,
        form: Form,
        parts: Parts,
        script: &Script,
        bash: &Outcome,
        known: Option<&Script>,
    ) -> Result<Verdict> {
        if bash.status.is_none() {
            return Ok(Verdict::BashHangs);
        }
        let kinds = compare(bash, &self.contend(form, parts, script)?);
        if kinds.is_empty() {
            return Ok(Verdict::Same);
        }
        if !self.bash_repeats(form, script, bash)? {
            return Ok(Verdict::NotRepeatable(kinds));
        }
        self.finding(form, parts, script, bash, kinds, known).map(Box::new).map(Verdict::Differs)
    }

    fn finding(
        &self,
        form: Form,
        parts: Parts,
        script: &Script,
        bash: &Outcome,
        kinds: Vec<Difference>,
        known: Option<&Script>,
    ) -> Result<Finding> {
        let mut again = 0;
        for _ in 0..FURTHER_RUNS {
            let second = self.contend(form, parts, script)?;
            again += usize::from(compare(bash, &second).iter().any(|kind| kinds.contains(kind)));
        }
        let small = if again == FURTHER_RUNS {
            self.smaller(form, parts, script, &kinds, known)?
        } else {
            script.clone()
        };
        let [bash, contend] =
            [self.bash(form, &small, Cpus::All)?, self.contend(form, parts, &small)?];
        let command = self.command(form, parts, &small);
        Ok(Finding { kinds, again, small, bash, contend, command })
    }

    fn smaller(
        &self,
        form: Form,
        parts: Parts,
        script: &Script,
        kinds: &[Difference],
        known: Option<&Script>,
    ) -> Result<Script> {
        // Shrinking preserves the most severe kind.
        let worst = kinds[0];
        let mut runner = Runner::new(self.runner.limit.min(SHORT_LIMIT))?;
        runner.grace = self.runner.grace;
        let quick = Checker { contend: self.contend, runner, shrink_time: self.shrink_time };
        let fails = |candidate: &Script| {
            let bash = quick.bash(form, candidate, Cpus::All)?;
            let contend = quick.contend(form, parts, candidate)?;
            Ok(compare(&bash, &contend).contains(&worst)
                && repeats(&bash, &quick.bash(form, candidate, Cpus::One)?))
        };
        // A script shrunk for another variant usually shows the difference as well.
        if let Some(known) = known
            && fails(known)?
        {
            return Ok(known.clone());
        }
        shrink(script.clone(), self.shrink_time, fails)
    }

    /// Returns whether further runs of bash, some of them on a single CPU, have the outcome
    /// `first`.
    fn bash_repeats(&self, form: Form, script: &Script, first: &Outcome) -> Result<bool> {
        for round in 0..FURTHER_RUNS {
            let cpus = if round % 2 == 0 { Cpus::One } else { Cpus::All };
            if !repeats(first, &self.bash(form, script, cpus)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bash(&self, form: Form, script: &Script, cpus: Cpus) -> Result<Outcome> {
        let mut command = words(&["bash"]);
        if cpus == Cpus::One {
            command.splice(..0, words(&["taskset", "-c", "0"]));
        }
        match form {
            Form::Text => command.extend(["-c".to_owned(), "--".to_owned(), script.text()]),
            Form::File => {
                command.push(self.runner.script().display().to_string());
                command.extend(words(script.setting.arguments));
            }
        }
        self.runner.run(&command, script)
    }

    fn contend(&self, form: Form, parts: Parts, script: &Script) -> Result<Outcome> {
        self.runner.run(&self.command(form, parts, script), script)
    }

    fn command(&self, form: Form, parts: Parts, script: &Script) -> Vec<String> {
        let mut command = vec![self.contend.display().to_string(), "run".to_owned()];
        if parts == Parts::Forced {
            command.extend(script.setting.forced.iter().cloned());
        }
        match form {
            Form::Text => command.extend(["--".to_owned(), script.text()]),
            Form::File => {
                command.extend(["-f".to_owned(), self.runner.script().display().to_string()]);
                command.extend(words(script.setting.arguments));
            }
        }
        command
    }
}

/// The CPUs that bash may use. On one CPU, processes run in a different order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cpus {
    All,
    One,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
