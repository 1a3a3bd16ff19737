//! Runs a pipeline of plain commands, which needs no shell.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use contend_commands::{Simple, purity};
use contend_record::run::{Decision, PlanRecord};
use contend_shell::environment::{Environment, Paths, in_path};
use contend_sys::signal::SignalFd;
use contend_sys::{inherited, spawn};
use rustix::fs::{Access, access};
use rustix::stdio::dup2_stdin;

use super::check::Check;
use super::end::{End, Report};
use super::error::{Context as _, RunError};
use super::observer::Observer;
use super::program::{can_start, shadowed_by_environment};
use super::settings::Settings;
use super::standard_input::{Kind, can_be_read, has_holes, is_null};
use super::supervise::{Task, run_plan};
use super::{limits, not_divided, peek, shell_command};
use crate::cluster::{Cluster, Job, Written};
use crate::execute::{Beginning, Launcher, read_beginning};
use crate::objects;
use crate::plan::estimate;
use crate::plan::fast_path::fast_path;
use crate::plan::flow::Amount;
use crate::plan::ir::{Plan, Source, Step};
use crate::plan::planner::{self, Situation};

/// Maximum number of bytes of a stream that are read to decide how the pipeline runs.
const MAX_PEEK_BYTES: usize = 1 << 20;

/// A pipeline that contend can run without a shell.
pub(super) struct Direct<'a> {
    stages: &'a [Simple],
    paths: Paths,
    input: Kind,
    originals: Option<&'a mut dyn Originals>,
}

/// The waiting processes that a shell has started for the stages of a pipeline.
pub(super) trait Originals {
    /// Makes every process execute its command. Returns only if this process fails to do so, with
    /// an end such as [`End::NotExecuted`].
    ///
    /// # Errors
    /// Returns an error if this process fails in a way that no [`End`] describes.
    fn run_as_written(&mut self) -> Result<End, RunError>;

    /// Tells the other processes to exit. Standard input must not be read before this call.
    fn take_over(&mut self);
}

/// Returns whether names, sizes and the state of the standard streams are enough to decide that the
/// given stages run as written. Reads nothing from standard input, but may wait until it has data.
pub(super) fn takes_fast_path(stages: &[Simple]) -> bool {
    let input = Kind::of_standard_input();
    ends_at_first_match(stages)
        || fast_path(stages, &[], input.amount()).is_some()
        || (reads_standard_input(stages)
            && (peek::delays_output(input, stages) || peek::is_little(input)))
}

/// Returns whether the last stage is a `grep` whose output is /dev/null, so that it exits at the
/// first match.
fn ends_at_first_match(stages: &[Simple]) -> bool {
    let is_grep = |stage: &Simple| ["grep", "egrep", "fgrep"].contains(&stage.name());
    stages.last().is_some_and(is_grep)
        && rustix::fs::fstat(io::stdout()).is_ok_and(|it| is_null(&it))
}

/// Returns the name of an object that a stage reads as a file; `None` if there is none.
fn object_of(stage: &Simple) -> Option<String> {
    let mut files: Vec<_> = match purity::named_files(stage) {
        Some(files) => files,
        None if stage.name() == "cat" => stage.arguments.iter().collect(),
        None => Vec::new(),
    };
    files.extend(&stage.input);
    let object = files.into_iter().find(|file| objects::is_object(&file.text))?;
    Some(object.text.clone())
}

/// Checks that stages which run as written, for the given reason, name no object.
///
/// # Errors
/// Returns an error if one does.
pub(super) fn check_as_written(
    stages: &[Simple],
    settings: &Settings,
    why: &str,
) -> Result<(), RunError> {
    match stages.iter().find_map(object_of).filter(|_| settings.reads_objects) {
        Some(name) => Err(RunError::Object { name, why: why.to_owned() }),
        None => Ok(()),
    }
}

/// Adds to a report how a plan is divided, or why it is not.
fn explain_division(cluster: &Cluster, plan: &Plan, settings: &Settings, report: &mut Report) {
    match cluster.division(plan, settings.jobs()) {
        Ok(mut division) => {
            if !settings.lists_parts {
                division.list.clear();
            }
            report.record.division = Some(division);
        }
        Err(error) => {
            report.record.decision.why = format!("runs on this machine only: {error}");
        }
    }
}

impl<'a> Direct<'a> {
    /// Creates a pipeline of the given stages, after checking that contend can run them without a
    /// shell.
    ///
    /// # Errors
    /// Returns the reason why a shell is needed.
    pub(super) fn new(stages: &'a [Simple]) -> Result<Self, String> {
        if let Some(why) = shadowed_by_environment() {
            return Err(why);
        }
        if let Some(fd) = (0..3).find(|&fd| !inherited::was_open(fd)) {
            return Err(format!("file descriptor {fd} is closed"));
        }
        if stages.len() > 1 && limits::leaves_files_only_to_a_shell() {
            return Err("the limit of open files leaves none for contend".to_owned());
        }
        let paths = paths_of(stages)?;
        if !can_be_read() {
            return Err("its standard input cannot be read as a stream or a file".to_owned());
        }
        let input = Kind::of_standard_input();
        if matches!(input, Kind::File(_)) && has_holes() {
            return Err(
                "its standard input is a sparse file, which some commands detect".to_owned()
            );
        }
        Ok(Self { stages, paths, input, originals: None })
    }

    /// Sets the waiting processes that run the stages if the pipeline runs as written.
    pub(super) fn instead_of(self, originals: &'a mut dyn Originals) -> Self {
        Self { originals: Some(originals), ..self }
    }

    fn take_over(&mut self) {
        if let Some(originals) = self.originals.take() {
            originals.take_over();
        }
    }

    /// Decides how to run the pipeline, and runs it unless only the plan was requested. `text` is
    /// the pipeline's source, and `inverted` tells whether its exit code is inverted.
    pub(super) fn run(
        mut self,
        text: &str,
        inverted: bool,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<End, RunError> {
        let reports_nothing = !settings.explain && !settings.wants_report();
        if reports_nothing
            && settings.chunk_bytes.is_none()
            && settings.cluster.is_none()
            && !settings.reads_objects
            && let Some(decision) = self.decide_at_once(settings)
        {
            return self.run_plain(decision, inverted, settings, observer);
        }
        let plan = self.plan(settings);
        self.check_objects(&plan, settings)?;
        if let Some(here) = here_only(&plan, settings) {
            return self.run_here(&here, text, inverted, settings, observer);
        }
        let original = || shell_command::with_text(&settings.shell(), settings, text);
        let check = settings.check.then(|| Check::begin(&plan.source, original())).transpose()?;
        let (decision, prefix) = self.decide(&plan, settings)?;
        if !decision.parallel && self.originals.is_none() {
            not_divided(&decision.why, settings, observer)?;
        }
        if !decision.parallel && prefix.is_empty() && reports_nothing {
            return self.run_plain(decision, inverted, settings, observer);
        }
        let parallel = decision.parallel;
        let mut report = Report::new(text, settings);
        report.record.decision = decision;
        report.record.plan = Some(PlanRecord::from(&plan));
        if settings.explain {
            if let Some(cluster) = settings.cluster.as_ref().filter(|_| parallel) {
                explain_division(cluster, &plan, settings, &mut report);
            }
            return Ok(End::Explained(report));
        }
        if let Some(cluster) = settings.cluster.as_ref().filter(|_| parallel)
            && let Some(folder) = &cluster.emit
        {
            let written = Written { text: text.to_owned(), inverted, pipefail: settings.pipefail };
            let mask = SignalFd::block(&[]).context("cannot read the signal mask")?.mask_before();
            let launcher = Launcher::new(mask, self.paths.clone(), Vec::new());
            cluster.emit(folder, &written, &plan, settings.jobs(), &launcher)?;
            return Ok(End::Emitted(folder.clone()));
        }
        self.take_over();
        let plan = if parallel {
            plan
        } else {
            planner::plain(self.stages, &self.paths, settings.pipefail)
        };
        let cluster = settings.cluster.clone().filter(|_| parallel);
        let task = Task { plan, paths: self.paths, prefix, inverted, records: None, cluster };
        run_plan(task, report, settings, check, observer)
    }

    /// Checks that contend itself reads all objects that the pipeline names: a command would look for files.
    ///
    /// # Errors
    /// Returns an error if that is not the case, or if the shell would have to read them.
    fn check_objects(&self, plan: &Plan, settings: &Settings) -> Result<(), RunError> {
        if !settings.reads_objects {
            return Ok(());
        }
        let is_read = plan.source.has_object();
        for (index, stage) in self.stages.iter().enumerate().skip(usize::from(is_read)) {
            if let Some(name) = object_of(stage) {
                let stage = plan.stages.get(index).map(|stage| stage.why.clone());
                return Err(RunError::Object { name, why: stage.unwrap_or_default() });
            }
        }
        let Some(name) = self.stages.first().filter(|_| is_read).and_then(object_of) else {
            return Ok(());
        };
        let status_shows = settings.pipefail || inherited::sigpipe_ignored();
        let why = if settings.check {
            Some("--check compares with the shell".to_owned())
        } else if status_shows && !reads_all(plan) {
            Some("the exit code depends on how much of it is read".to_owned())
        } else {
            limits::obstacle(plan, settings)
        };
        why.map_or(Ok(()), |why| Err(RunError::Object { name, why }))
    }

    /// Runs the pipeline without the cluster, for the given reason.
    fn run_here(
        self,
        Here { why, is_trouble }: &Here,
        text: &str,
        inverted: bool,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<End, RunError> {
        // A script may have many pipelines that are not for a cluster.
        if self.originals.is_none() || *is_trouble {
            not_divided(why, settings, observer)?;
        }
        let here = Settings { cluster: None, ..settings.clone() };
        let mut end = self.run(text, inverted, &here, observer)?;
        if let End::Explained(report) = &mut end {
            let decision = &mut report.record.decision;
            decision.why = format!("runs on this machine only: {why}; {}", decision.why);
        }
        Ok(end)
    }

    /// Decides without a plan to run the stages as written, or returns `None` if names, sizes and
    /// the state of the standard streams are not enough for that. Reads nothing from standard
    /// input, but may wait until it has data.
    fn decide_at_once(&self, settings: &Settings) -> Option<Decision> {
        if ends_at_first_match(self.stages) {
            return Some(at_first_match());
        }
        if let Some(decision) = fast_path(self.stages, &settings.annotations, self.input.amount()) {
            return Some(decision);
        }
        if !reads_standard_input(self.stages) {
            return None;
        }
        if peek::delays_output(self.input, self.stages) {
            return Some(writes_first());
        }
        peek::is_little(self.input).then(is_little)
    }

    fn plan(&self, settings: &Settings) -> Plan {
        let environment = Environment::of_programs(&self.paths);
        let situation = Situation {
            environment: &environment,
            annotations: &settings.annotations,
            input_bytes: match self.input {
                Kind::File(bytes) => Some(bytes),
                Kind::Nothing | Kind::Stream => None,
            },
            output_is_terminal: io::stdout().is_terminal(),
            reads_objects: settings.reads_objects,
        };
        planner::plan(self.stages, &situation)
    }

    /// Decides whether to run a plan, or the stages as written. Returns the decision, and the bytes
    /// read from standard input for it.
    fn decide(
        &mut self,
        plan: &Plan,
        settings: &Settings,
    ) -> Result<(Decision, Vec<u8>), RunError> {
        if let Some(decision) = self.decide_by_circumstances(plan, settings) {
            return Ok((decision, Vec::new()));
        }
        let input = match &plan.source {
            // If a file has been removed since, the stages run as written and report it, as in a
            // shell.
            Source::Files(names) => Amount::of_input(names).or_else(|| Some(Amount::of_bytes(&[]))),
            Source::Standard => self.input.amount(),
            Source::Own => None,
        };
        let decision = estimate::decide(plan, input, settings.jobs());
        if settings.explain && input.is_none() && decision.parallel {
            let why = "if the input is long enough".to_owned();
            return Ok((Decision { why, ..decision }, Vec::new()));
        }
        if !decision.parallel || !self.reads_stream(plan) || settings.explain {
            return Ok((decision, Vec::new()));
        }
        self.take_over();
        decide_by_beginning(plan, settings)
    }

    /// Decides by circumstances other than the size of the input, or returns `None` if the size
    /// decides.
    fn decide_by_circumstances(&self, plan: &Plan, settings: &Settings) -> Option<Decision> {
        if plan.source.has_object() {
            let why = "contend has to read the object itself".to_owned();
            return Some(Decision { parallel: true, why, ..Decision::default() });
        }
        if (settings.pipefail || inherited::sigpipe_ignored()) && !reads_all(plan) {
            return Some(status_visible());
        }
        if let Some(why) = limits::obstacle(plan, settings) {
            return Some(Decision { why, ..Decision::default() });
        }
        if self.reads_stream(plan)
            && !settings.explain
            && peek::delays_output(self.input, self.stages)
        {
            return Some(writes_first());
        }
        let cluster = settings.cluster.as_ref();
        // If it runs here, `run` or the explanation finds that out.
        let cluster =
            cluster.map(|cluster| cluster.judge(plan, settings.jobs()).unwrap_or_default());
        let chunks = settings.chunk_bytes.map(|_| "the chunk size is given".to_owned());
        if let Some(why) = cluster.or(chunks).filter(|_| plan.is_parallel()) {
            return Some(Decision { parallel: true, why, ..Decision::default() });
        }
        ends_at_first_match(self.stages).then(at_first_match)
    }

    /// Returns whether the first step reads standard input, and standard input is a stream.
    fn reads_stream(&self, plan: &Plan) -> bool {
        plan.source == Source::Standard && self.input == Kind::Stream
    }

    /// Runs the stages as written, without a report. Returns only on failure if processes of a
    /// shell run the stages, or if there is only one command and its exit code is not inverted.
    fn run_plain(
        self,
        decision: Decision,
        inverted: bool,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<End, RunError> {
        if let Some(originals) = self.originals {
            return originals.run_as_written();
        }
        if let ([stage], false) = (self.stages, inverted) {
            return become_command(stage);
        }
        let mut report = Report::unwanted();
        report.record.decision = decision;
        let plan = planner::plain(self.stages, &self.paths, settings.pipefail);
        let (paths, prefix) = (self.paths, Vec::new());
        let task = Task { plan, paths, prefix, inverted, records: None, cluster: None };
        run_plan(task, report, settings, None, observer)
    }
}

/// Why a plan runs on this machine only, although a cluster is given.
struct Here {
    why: String,
    /// Whether something is wrong with the cluster.
    is_trouble: bool,
}

/// Returns why a plan runs on this machine only, although a cluster is given; `None` if it may run on the cluster. If no stage runs
/// in parallel, the decision about that says why.
fn here_only(plan: &Plan, settings: &Settings) -> Option<Here> {
    let cluster = settings.cluster.as_ref().filter(|_| plan.is_parallel())?;
    if let Err(why) = cluster.judge(plan, settings.jobs()) {
        return Some(Here { why, is_trouble: false });
    }
    let trouble = cluster.falls_back.then(|| cluster.trouble()).flatten()?;
    Some(Here { why: trouble, is_trouble: true })
}

/// Continues a job whose driver has died. The current directory must be that of the job.
pub(super) fn resume(
    job: &Job,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<End, RunError> {
    let plan = job.plan();
    let mut report = Report::new(&job.text, settings);
    let why = "a job is continued".to_owned();
    report.record.decision = Decision { parallel: true, why, ..Decision::default() };
    report.record.plan = Some(PlanRecord::from(&plan));
    let (cluster, inverted) = (settings.cluster.clone(), job.inverted);
    let (paths, prefix) = (Paths::new(), Vec::new());
    let task = Task { plan, paths, prefix, inverted, records: None, cluster };
    let settings = Settings { pipefail: job.pipefail, ..settings.clone() };
    run_plan(task, report, &settings, None, observer)
}

/// Reads the beginning of standard input, and decides whether to run the plan in parallel. Returns
/// the decision, and the bytes read, which are no longer in standard input. If standard input is a
/// terminal that has ended without any bytes, replaces it with `/dev/null`.
fn decide_by_beginning(plan: &Plan, settings: &Settings) -> Result<(Decision, Vec<u8>), RunError> {
    let cannot_read = "cannot read standard input";
    let stdin = io::stdin().as_fd().try_clone_to_owned().context(cannot_read)?;
    let (prefix, beginning) =
        read_beginning(&File::from(stdin), MAX_PEEK_BYTES).context(cannot_read)?;
    if beginning == Beginning::Slow && estimate::answers_early(&plan.steps) {
        return Ok((slow_input(), prefix));
    }
    let is_over = beginning == Beginning::Over;
    if is_over && prefix.is_empty() && io::stdin().is_terminal() {
        // Reading a terminal again would wait for a second EOF.
        let null = File::open("/dev/null").context("cannot open /dev/null")?;
        dup2_stdin(null).context("cannot close standard input")?;
    }
    let all = is_over.then(|| Amount::of_bytes(&prefix));
    Ok((estimate::decide(plan, all, settings.jobs()), prefix))
}

/// Returns the paths of the stages' programs.
///
/// # Errors
/// Returns the reason why only a shell can start one of the stages.
fn paths_of(stages: &[Simple]) -> Result<Paths, String> {
    let mut paths = Paths::new();
    for stage in stages {
        let name = &stage.program.text;
        if stage.variable("PATH").is_some() {
            return Err(format!("`{name}` has a `PATH` of its own"));
        }
        if !paths.contains_key(name) {
            let path = in_path(name).ok_or_else(|| format!("`{name}` is not found"))?;
            if !can_start(&path) {
                return Err(format!("the kernel may not be able to start `{name}`"));
            }
            paths.insert(name.clone(), path);
        }
        if let Some(file) = &stage.input {
            let is_file = Path::new(&file.text).metadata().is_ok_and(|data| data.is_file());
            if !is_file || access(&file.text, Access::READ_OK).is_err() {
                return Err(format!("`{}` is not a readable regular file", file.text));
            }
        }
    }
    Ok(paths)
}

/// Replaces this process with a pipeline's only command. Returns only if that fails: an error if
/// its input file cannot be opened, and otherwise [`End::NotExecuted`].
fn become_command(stage: &Simple) -> Result<End, RunError> {
    let name = &stage.program.text;
    let mut command = Command::new(name);
    command.args(stage.arguments.iter().map(|word| &word.text));
    command.envs(stage.variables.iter().map(|(name, value)| (name, &value.text)));
    if let Some(file) = &stage.input {
        let opened = File::open(&file.text);
        command.stdin(opened.context(format!("cannot read {}", file.text))?);
    }
    let source = spawn::become_command(&mut command);
    let exit_code = if source.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Ok(End::NotExecuted { program: name.clone(), source, exit_code })
}

/// Returns whether it is certain that no stage of a plan exits before the stages upstream of it.
/// The serial steps at the beginning are not considered, because they run as in a shell.
fn reads_all(plan: &Plan) -> bool {
    let mut steps = plan.steps.iter().skip_while(|step| matches!(step, Step::Serial(_)));
    steps.all(|step| match step {
        Step::Serial(_) => false,
        Step::Parallel(group) => !planner::ends_early(&group.combine),
    })
}

/// Returns whether the first stage certainly reads standard input.
fn reads_standard_input(stages: &[Simple]) -> bool {
    stages.first().is_some_and(|first| {
        purity::named_files(first).is_none() && purity::source(first) == purity::Source::Standard
    })
}

/// Returns the decision for standard input that is a terminal, or a stream that soon ends.
fn is_little() -> Decision {
    let why = "its input is a terminal, or short".to_owned();
    Decision { why, ..Decision::default() }
}

/// Returns the decision for a `grep` whose output is /dev/null.
fn at_first_match() -> Decision {
    let why = "grep ends at the first match, since its output is /dev/null".to_owned();
    Decision { why, ..Decision::default() }
}

/// Returns the decision for a stream that is slow or stalls.
fn slow_input() -> Decision {
    let why = "its input is slow, or waits for an answer".to_owned();
    Decision { why, ..Decision::default() }
}

/// Returns the decision for a stage that may write before there is any input.
fn writes_first() -> Decision {
    let why = "a stage may write before it reads, and no input has arrived".to_owned();
    Decision { why, ..Decision::default() }
}

/// Returns the decision for a pipeline that shows which stages write to a closed pipe: in the exit
/// code, or in error messages where SIGPIPE is ignored.
fn status_visible() -> Decision {
    let why = "with pipefail, or with SIGPIPE ignored, the exit code depends on which stages a later one cuts off";
    let why = why.to_owned();
    Decision { why, ..Decision::default() }
}

#[cfg(test)]
mod tests;
