//! A pipeline of plain commands, which needs no shell.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use contend_commands::{Simple, purity};
use contend_parallel::execute::{Beginning, read_beginning};
use contend_parallel::plan::estimate;
use contend_parallel::plan::flow::Amount;
use contend_parallel::plan::glance::glance;
use contend_parallel::plan::planner::{self, Situation};
use contend_record::run::{Decision, Plan, RunRecord, Source, Step};
use contend_shell::environment::{Environment, Paths, in_path};
use contend_sys::{inherited, spawn};
use rustix::fs::{Access, FileType, OFlags, SeekFrom, Stat, access, fcntl_getfl, major, minor};
use rustix::stdio::dup2_stdin;

use super::carry::{Task, carry_out};
use super::check::Check;
use super::{limits, peek};
use crate::exit::Exit;
use crate::output;
use crate::settings::{Run, RunHow};

/// No more of a stream than this is read before it is decided how it runs, in bytes.
const FIRST: usize = 1 << 20;
/// What files of scripts begin with that the kernel can start.
const SCRIPT: &[u8] = b"#!";
/// What of the beginning of other programs says for what kind of machine they are, in bytes.
const KIND: [Range<usize>; 2] = [0..6, 18..20];
/// The numbers of /dev/null.
const NULL: (u32, u32) = (1, 3);

/// A pipeline that contend can run itself.
pub(in super::super) struct Direct<'a> {
    stages: &'a [Simple],
    paths: Paths,
    input: Kind,
    originals: Option<&'a mut dyn Originals>,
}

/// Processes of a shell that stand for the stages of a pipeline and wait for a decision.
pub(super) trait Originals {
    /// Has every process become its command. Only returns if this one could not.
    ///
    /// # Errors
    /// When this process cannot become its command.
    fn run_as_written(&mut self) -> Result<Exit>;

    /// Tells the others that they are not needed. From then on standard input may be read.
    fn take_over(&mut self);
}

/// Whether it is clear at once that these stages are to run as they are written.
pub(super) fn is_plain_at_a_glance(stages: &[Simple]) -> bool {
    let input = Kind::of_standard_input();
    ends_at_first_match(stages)
        || glance(stages, &[], input.amount()).is_some()
        || (reads_standard_input(stages)
            && (peek::delays_output(input, stages) || peek::is_little(input)))
}

/// What standard input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A regular file of this size in bytes.
    File(u64),
    /// /dev/null.
    Nothing,
    /// Anything else.
    Stream,
}

impl Kind {
    fn of_standard_input() -> Self {
        let Ok(stat) = rustix::fs::fstat(io::stdin()) else { return Self::Stream };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File(u64::try_from(stat.st_size).unwrap_or(0)),
            _ if is_null(&stat) => Self::Nothing,
            _ => Self::Stream,
        }
    }

    /// How much it is, if that is known.
    fn amount(self) -> Option<Amount> {
        match self {
            Self::File(bytes) => Some(Amount::of_rest(io::stdin(), bytes)),
            Self::Nothing => Some(Amount::of_bytes(&[])),
            Self::Stream => None,
        }
    }
}

/// Whether standard input is a file, a stream or a device that this process may read. What is wrong
/// with any other one its reader says.
fn can_be_read() -> bool {
    let stdin = io::stdin();
    let is_folder = |stat: Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let may_read = |flags: OFlags| flags & OFlags::ACCMODE != OFlags::WRONLY;
    rustix::fs::fstat(&stdin).is_ok_and(|stat| !is_folder(stat))
        && fcntl_getfl(&stdin).is_ok_and(may_read)
}

/// Whether it is /dev/null.
fn is_null(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice
        && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL
}

/// Whether the last stage is a `grep` that ends at the first match, as nobody sees what it writes.
fn ends_at_first_match(stages: &[Simple]) -> bool {
    let is_grep = |stage: &Simple| ["grep", "egrep", "fgrep"].contains(&stage.name());
    stages.last().is_some_and(is_grep)
        && rustix::fs::fstat(io::stdout()).is_ok_and(|it| is_null(&it))
}

impl<'a> Direct<'a> {
    /// Looks whether it is one.
    ///
    /// # Errors
    /// The reason why a shell is needed.
    pub(in super::super) fn new(stages: &'a [Simple]) -> Result<Self, String> {
        let functions =
            |name: &str| name == "BASH_ENV" || name == "ENV" || name.starts_with("BASH_FUNC_");
        if let Some((name, _)) =
            std::env::vars_os().find(|(name, _)| name.to_str().is_some_and(functions))
        {
            let name = name.to_string_lossy().into_owned();
            return Err(format!("`{name}` is set, so that names may be functions of the shell"));
        }
        if let Some(fd) = (0..3).find(|&fd| !inherited::was_open(fd)) {
            return Err(format!("file descriptor {fd} is closed"));
        }
        if stages.len() > 1 && limits::leaves_files_only_to_a_shell() {
            return Err("no more files may be open than a shell needs".to_owned());
        }
        let mut paths = Paths::new();
        for stage in stages {
            let name = &stage.program.text;
            if stage.variable("PATH").is_some() {
                return Err(format!("`{name}` is looked for in a `PATH` of its own"));
            }
            if !paths.contains_key(name) {
                let path = in_path(name).ok_or_else(|| format!("`{name}` is not found"))?;
                if !can_start(&path) {
                    return Err(format!("`{name}` may be nothing that the kernel can start"));
                }
                paths.insert(name.clone(), path);
            }
            if let Some(file) = &stage.input {
                let is_file = Path::new(&file.text).metadata().is_ok_and(|data| data.is_file());
                if !is_file || access(&file.text, Access::READ_OK).is_err() {
                    return Err(format!("`{}` is no regular file that can be read", file.text));
                }
            }
        }
        if !can_be_read() {
            return Err("its standard input cannot be read as a stream or a file".to_owned());
        }
        let input = Kind::of_standard_input();
        if matches!(input, Kind::File(_)) && has_holes() {
            return Err("its standard input has holes, which some commands look for".to_owned());
        }
        Ok(Self { stages, paths, input, originals: None })
    }

    /// Lets other processes run the stages if they are to run as they are written.
    pub(super) fn instead_of(self, originals: &'a mut dyn Originals) -> Self {
        Self { originals: Some(originals), ..self }
    }

    fn take_over(&mut self) {
        if let Some(originals) = self.originals.take() {
            originals.take_over();
        }
    }

    /// Runs it as is best, or says how.
    pub(in super::super) fn run(
        mut self,
        text: &str,
        inverted: bool,
        settings: Run,
    ) -> Result<Exit> {
        let how = &settings.how;
        let nothing_is_said = !settings.explain && !settings.says_something();
        if nothing_is_said && how.part_bytes.is_none() {
            let decision = if ends_at_first_match(self.stages) {
                Some(at_first_match())
            } else {
                glance(self.stages, &how.annotations, self.input.amount())
            };
            let reads = reads_standard_input(self.stages);
            let waits = || reads && peek::delays_output(self.input, self.stages);
            let is_over = || reads && peek::is_little(self.input);
            let decision = decision.or_else(|| waits().then(writes_first));
            let decision = decision.or_else(|| is_over().then(is_little));
            if let Some(decision) = decision {
                return self.run_plain(decision, inverted, settings);
            }
        }
        let plan = self.plan(how);
        let check = settings.check.then(|| Check::begin(&plan.source)).transpose()?;
        let (decision, prefix) = self.decide(&plan, &settings)?;
        if !decision.parallel && prefix.is_empty() && nothing_is_said {
            return self.run_plain(decision, inverted, settings);
        }
        let parallel = decision.parallel;
        let record =
            RunRecord { plan: Some(plan.clone()), decision, ..super::super::empty(text, how) };
        if settings.explain {
            return super::super::explain(&record, settings);
        }
        self.take_over();
        let plan =
            if parallel { plan } else { planner::plain(self.stages, &self.paths, how.pipefail) };
        carry_out(
            Task { plan, paths: self.paths, prefix, inverted, records: None },
            record,
            settings,
            check,
        )
    }

    fn plan(&self, how: &RunHow) -> Plan {
        let environment = Environment::of_programs(&self.paths);
        let situation = Situation {
            environment: &environment,
            annotations: &how.annotations,
            input_bytes: match self.input {
                Kind::File(bytes) => Some(bytes),
                Kind::Nothing | Kind::Stream => None,
            },
            output_is_terminal: io::stdout().is_terminal(),
        };
        planner::plan(self.stages, &situation)
    }

    /// Decides; and what of standard input was read for it.
    fn decide(&mut self, plan: &Plan, settings: &Run) -> Result<(Decision, Vec<u8>)> {
        let how = &settings.how;
        if (how.pipefail || inherited::sigpipe_ignored()) && !reads_all(plan) {
            return Ok((cut_off(), Vec::new()));
        }
        if let Some(why) = limits::obstacle(plan, how) {
            return Ok((Decision { why, ..Decision::default() }, Vec::new()));
        }
        let reads_stream = plan.source == Source::Standard && self.input == Kind::Stream;
        if reads_stream && !settings.explain && peek::delays_output(self.input, self.stages) {
            return Ok((writes_first(), Vec::new()));
        }
        if how.part_bytes.is_some() && plan.is_parallel() {
            let why = "the size of parts is given".to_owned();
            return Ok((Decision { parallel: true, why, ..Decision::default() }, Vec::new()));
        }
        if ends_at_first_match(self.stages) {
            return Ok((at_first_match(), Vec::new()));
        }
        let input = match &plan.source {
            // What has gone meanwhile cannot be opened, as in a shell.
            Source::Files(names) => Amount::of_files(names.iter().map(String::as_str))
                .or_else(|| Some(Amount::of_bytes(&[]))),
            Source::Standard => self.input.amount(),
            Source::Own => None,
        };
        let decision = estimate::decide(plan, input, how.jobs());
        if settings.explain && input.is_none() && decision.parallel {
            let why = "unless its input is over too soon for that".to_owned();
            return Ok((Decision { why, ..decision }, Vec::new()));
        }
        if !decision.parallel || !reads_stream || settings.explain {
            return Ok((decision, Vec::new()));
        }
        self.take_over();
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (prefix, beginning) =
            read_beginning(&stdin, FIRST).context("cannot read standard input")?;
        if beginning == Beginning::Slow && estimate::answers_early(&plan.steps) {
            return Ok((comes_slowly(), prefix));
        }
        let is_over = beginning == Beginning::Over;
        if is_over && prefix.is_empty() && io::stdin().is_terminal() {
            // A terminal would be asked again.
            dup2_stdin(File::open("/dev/null").context("cannot open /dev/null")?)
                .context("cannot end standard input")?;
        }
        let all = is_over.then(|| Amount::of_bytes(&prefix));
        Ok((estimate::decide(plan, all, how.jobs()), prefix))
    }

    /// Runs the stages as they are; nothing is said of it.
    fn run_plain(self, decision: Decision, inverted: bool, settings: Run) -> Result<Exit> {
        if let Some(originals) = self.originals {
            return originals.run_as_written();
        }
        if let ([stage], false) = (self.stages, inverted) {
            return become_command(stage);
        }
        let record = RunRecord { decision, ..RunRecord::default() };
        let plan = planner::plain(self.stages, &self.paths, settings.how.pipefail);
        let task = Task { plan, paths: self.paths, prefix: Vec::new(), inverted, records: None };
        carry_out(task, record, settings, None)
    }
}

/// Becomes a pipeline's only command.
fn become_command(stage: &Simple) -> Result<Exit> {
    let name = &stage.program.text;
    let mut command = Command::new(name);
    command.args(stage.arguments.iter().map(|word| &word.text));
    command.envs(stage.variables.iter().map(|(name, value)| (name, &value.text)));
    if let Some(file) = &stage.input {
        let file = File::open(&file.text).with_context(|| format!("cannot read {}", file.text))?;
        command.stdin(file);
    }
    let error = spawn::become_command(&mut command);
    output::error(&format!("cannot start {name}: {error}"));
    Ok(Exit::Shell(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }))
}

/// Whether this is a file that the kernel can surely start, as it has started this program: what
/// else may be executed the shell may run itself.
pub(super) fn can_start(path: &Path) -> bool {
    let beginning = |path: &Path| {
        let mut bytes = [0; 20];
        File::open(path).and_then(|mut file| file.read(&mut bytes)).map(|_| bytes)
    };
    let Ok(bytes) = beginning(path) else { return false };
    bytes.starts_with(SCRIPT)
        || beginning(Path::new("/proc/self/exe"))
            .is_ok_and(|own| KIND.into_iter().all(|kind| own[kind.clone()] == bytes[kind]))
}

/// Whether no stage of a plan can end before those in front of it, as far as that is known.
fn reads_all(plan: &Plan) -> bool {
    let mut steps = plan.steps.iter().skip_while(|step| matches!(step, Step::Serial(_)));
    steps.all(|step| match step {
        Step::Serial(_) => false,
        Step::Parallel(group) => !planner::ends_early(&group.combine),
    })
}

/// Whether the first stage surely reads standard input.
fn reads_standard_input(stages: &[Simple]) -> bool {
    stages.first().is_some_and(|first| {
        purity::named_files(first).is_none() && purity::source(first) == purity::Source::Standard
    })
}

/// What is decided for a terminal, or a stream that is over after a little.
fn is_little() -> Decision {
    let why = "its input is a terminal, or over after a little".to_owned();
    Decision { why, ..Decision::default() }
}

/// What is decided for a `grep` whose output is /dev/null.
fn at_first_match() -> Decision {
    let why = "grep ends at the first match, since its output is /dev/null".to_owned();
    Decision { why, ..Decision::default() }
}

/// What is decided for a stream that falls silent or is slow.
fn comes_slowly() -> Decision {
    let why = "its input comes slowly or waits for an answer".to_owned();
    Decision { why, ..Decision::default() }
}

/// What is decided if a stage may write before there is any input.
fn writes_first() -> Decision {
    let why = "a stage may write before it reads, and its input has not begun".to_owned();
    Decision { why, ..Decision::default() }
}

/// What is decided if it matters which stages write to a pipe that is closed: to the status, or to
/// what they say where SIGPIPE does not end them.
fn cut_off() -> Decision {
    let why =
        "with pipefail, or SIGPIPE ignored, it matters which stages are cut off by later ones";
    let why = why.to_owned();
    Decision { why, ..Decision::default() }
}

/// Whether standard input, a regular file, has holes behind the place where it is read.
fn has_holes() -> bool {
    let here = rustix::fs::tell(io::stdin()).unwrap_or(0);
    let hole = rustix::fs::seek(io::stdin(), SeekFrom::Hole(here));
    let end = rustix::fs::fstat(io::stdin()).map_or(0, |stat| stat.st_size.cast_unsigned());
    let _ = rustix::fs::seek(io::stdin(), SeekFrom::Start(here)); // it was there before
    hole.is_ok_and(|hole| hole < end)
}
