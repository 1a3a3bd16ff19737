//! The plan: the intermediate representation between the planner, which makes it, and an executor,
//! which runs it.
//!
//! A [`Plan`] defines where the input may be cut, which commands run over each chunk, and how the
//! outputs are combined. It does not define which executor runs it, nor on how many CPUs of which
//! machine. It is plain data that serializes, so that an executor may ship it to another machine.
//!
//! `contend run` publishes a plan as JSON in another type, `contend_record::run::PlanRecord`, which
//! follows a published schema. The types here may change with the executor. Only the conversion, in
//! `record.rs`, depends on both.
//!
//! For that reason, the types that describe a plan's structure exist twice: [`Plan`], [`Source`],
//! [`Step`], [`Group`], [`Command`], [`Cut`], [`Guard`], [`Combine`] and [`Merge`]. Types that only
//! name properties of commands and records, such as an order of lines, a set of bytes or a rule for
//! exit codes, exist once. They are re-exported here from the record, so that planner and executor
//! import all types of a plan from one module.

mod record;

pub use contend_record::run::{
    ByteSet, Class, Column, FieldPlace, Key, LineOrder, Numbers, Records, SortKey, Stage,
    StatusRule,
};
use serde::{Deserialize, Serialize};

use crate::objects;
pub use crate::operators::Operator;

/// The steps that execute a pipeline, and the stages that they come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The stages of the pipeline and how each was classified, first to last.
    pub stages: Vec<Stage>,
    /// The input of the first step.
    pub source: Source,
    /// The steps. The first reads the source, and each other one the output of the step before it.
    pub steps: Vec<Step>,
}

/// The origin of the input of a plan's first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Standard input.
    Standard,
    /// The named files, concatenated in order.
    Files(Vec<String>),
    /// Nothing that the executor opens: the commands of the step open files themselves, inherit
    /// standard input, or read nothing.
    Own,
}

impl Source {
    /// Returns whether one of the files is an object in a store, which no command can open.
    pub(crate) fn has_object(&self) -> bool {
        matches!(self, Self::Files(names) if names.iter().any(|name| objects::is_object(name)))
    }
}

/// A part of a plan that reads the plan's source or the output of the step before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of them")]
pub enum Step {
    /// Commands that run once, as a pipeline over the whole input.
    Serial(Vec<Command>),
    /// Commands that run over chunks of the input concurrently.
    Parallel(Group),
}

/// A command to start without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Index of the stage that the command belongs to, counted from 0.
    pub stage: usize,
    /// Names and values of environment variables that are set for this command only.
    pub variables: Vec<(String, String)>,
    /// The program, as named in the pipeline.
    pub program: String,
    /// The arguments, without the program's name.
    pub arguments: Vec<String>,
    /// The exit codes that are not failures.
    pub status: StatusRule,
    /// The file to open as standard input; `None` if the command reads the output of the command
    /// before it, or is the first and reads the input of the step.
    pub input: Option<String>,
    /// Whether the command is a GNU sort for which the executor chooses memory, threads and
    /// temporary directory.
    pub sorts: bool,
    /// Whether the command may run in the C locale if the group's input is ASCII without NUL: its
    /// output is the same there, and it is faster.
    pub ascii_in_c: bool,
    /// The operator that can replace the process, provided that all commands that run over the same
    /// chunk have operators as well.
    pub operator: Option<Operator>,
}

/// Neighbouring stages that run over chunks of their input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The stages as written, for the fallback: one pipeline over the whole input.
    pub serial: Vec<Command>,
    /// The first command of `serial` in the form that opens the plan's source files itself; `None`
    /// unless that command, as written in the pipeline, names the files.
    pub opening: Option<Command>,
    /// Where the input may be cut.
    pub cut: Cut,
    /// The precondition on every chunk under which `each` and `combine` produce the right output.
    pub guard: Guard,
    /// The commands that run over every chunk, as a pipeline.
    pub each: Vec<Command>,
    /// How the outputs of the chunks are combined.
    pub combine: Combine,
    /// Whether the chunks may be concatenated in any order before the commands process them.
    pub any_order: bool,
    /// Whether the commands may fail because of their input although the guard holds.
    pub may_fail: bool,
}

impl Group {
    /// Returns whether the executor uses the C locale for ASCII input in those commands of the
    /// group that allow it ([`Command::ascii_in_c`]).
    pub fn can_use_c(&self) -> bool {
        match &self.combine {
            Combine::Concatenate | Combine::Adjoin { .. } | Combine::Numbers(_) => true,
            Combine::Counts { .. } => self.any_order,
            Combine::Merge(merge) => self.any_order && merge.lines.is_some(),
            Combine::Through(_) => !self.any_order,
            Combine::Totals(_) => false,
        }
    }
}

/// The positions where an input may be cut: between two records that satisfy all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The format of the records.
    pub records: Records,
    /// Bytes allowed directly before the separator at the cut. An empty first record counts as
    /// preceded by a separator.
    pub before: ByteSet,
    /// Bytes that a chunk may begin with.
    pub after: ByteSet,
    /// The key in which the records before and after the cut must differ, if any.
    pub differ: Option<Key>,
    /// Whether the bytes of the `differ` key must also be greater after the cut than before it.
    pub ascending: bool,
}

/// A precondition on a chunk, checked while the chunk is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Bytes that the chunk must not contain.
    pub without: ByteSet,
    /// Whether the chunk must be valid UTF-8.
    pub utf8: bool,
    /// Whether the last record of the chunk must be terminated.
    pub terminated: bool,
}

/// The method of combining the outputs of chunks into the output of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Concatenates the outputs in input order.
    Concatenate,
    /// Concatenates the outputs in input order, and collapses equal lines at chunk boundaries.
    Adjoin {
        /// Whether each line begins with a count, as `uniq -c` writes it. Counts of collapsed lines
        /// are added.
        counted: bool,
    },
    /// Merges sorted outputs.
    Merge(Merge),
    /// Merges sorted lines with counts, as `uniq -c` writes them, and adds the counts of equal
    /// lines.
    Counts {
        /// Whether the lines are in descending order of their bytes, instead of ascending order.
        reverse: bool,
        /// The directory for temporary files, if the pipeline names one.
        folder: Option<String>,
    },
    /// Combines numbers column by column, into their sum or their maximum.
    Numbers(Numbers),
    /// Concatenates the outputs in input order, and pipes them through a command.
    Through(Command),
    /// Pipes totals through a command. The first line of each output is `exact` and an amount,
    /// unless a value was rounded. The group falls back if a value was rounded, if an output is
    /// incomplete, or if the amounts add up to too much for an exact sum.
    Totals(Command),
}

/// A merge of sorted outputs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The command that merges sorted outputs. The executor appends to the arguments the names of
    /// the files from which the command reads the outputs, in input order.
    pub command: Command,
    /// The order of the lines if contend can merge them itself; `None` if only the command can.
    pub lines: Option<LineOrder>,
    /// Maximum number of records to write; `None` for all.
    pub first: Option<u64>,
    /// The directory for temporary files, if the pipeline names one.
    pub folder: Option<String>,
}

impl Plan {
    /// Returns whether any step runs over chunks of its input.
    pub fn is_parallel(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Parallel(_)))
    }
}

impl Cut {
    /// Returns a cut that is allowed between any two records.
    pub fn between(records: Records) -> Self {
        Self { records, before: ByteSet::ALL, after: ByteSet::ALL, differ: None, ascending: false }
    }

    /// Returns whether a cut can be found from the bytes around it, without reading from the
    /// beginning.
    pub fn is_local(&self) -> bool {
        self.differ.is_none() && matches!(self.records, Records::Lines | Records::Nul)
    }
}

impl Guard {
    /// The guard that every chunk satisfies.
    pub const NONE: Self = Self { without: ByteSet::EMPTY, utf8: false, terminated: false };

    /// Returns the guard that requires what both guards require.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            without: self.without.union(other.without),
            utf8: self.utf8 || other.utf8,
            terminated: self.terminated || other.terminated,
        }
    }

    /// Returns whether every chunk satisfies the guard.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }
}
