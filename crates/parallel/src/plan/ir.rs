//! The plan: the intermediate representation between the planner, which makes it, and an executor,
//! which carries it out.
//!
//! A [`Plan`] defines where the input may be cut, which commands run over each chunk, and how the
//! outputs are combined. It does not define who runs it, nor on how many CPUs of which machine. It
//! is plain data that serializes, so that an executor may ship it to another machine.
//!
//! `contend run` publishes a plan as JSON in another type, `contend_record::run::PlanRecord`, which
//! keeps the promises of a schema. The types here may change with the executor. The conversion
//! between them, in `record.rs`, is the only code that knows both.
//!
//! The types that describe a plan's structure exist twice for that reason: [`Plan`], [`Source`],
//! [`Step`], [`Group`], [`Command`], [`Cut`], [`Guard`], [`Combine`] and [`Merge`]. Types that only
//! name properties of commands and records, such as an order of lines, a set of bytes or a rule for
//! exit codes, have no reason to differ. They are re-exported here from the record, so that planner
//! and executor take all types of a plan from one module.

mod record;

pub use contend_record::run::{
    ByteSet, Class, Column, FieldPlace, Key, LineOrder, Numbers, Records, SortKey, Stage,
    StatusRule,
};
use serde::{Deserialize, Serialize};

pub use crate::operators::Operator;

/// A pipeline's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The stages of the pipeline and how each was classified, first to last.
    pub stages: Vec<Stage>,
    /// The input of the first step.
    pub source: Source,
    /// The steps, each reading the output of the one before it.
    pub steps: Vec<Step>,
}

/// The input of the first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Standard input.
    Standard,
    /// These files, concatenated.
    Files(Vec<String>),
    /// No input, or files that the commands of the step open themselves.
    Own,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of them")]
pub enum Step {
    /// Commands that run as a pipeline, once.
    Serial(Vec<Command>),
    /// Commands that run over chunks of the input concurrently.
    Parallel(Group),
}

/// A command that is started without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The stage that this command carries out, from 0.
    pub stage: usize,
    /// Environment variables that are set for this command only.
    pub variables: Vec<(String, String)>,
    /// The program, by the name that the pipeline calls it.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The exit codes that are not failures.
    pub status: StatusRule,
    /// The file to open as standard input, instead of the output of the command before.
    pub input: Option<String>,
    /// It is GNU sort, whose memory, threads and temporary directory the executor chooses.
    pub sorts: bool,
    /// If the group's input is ASCII without NUL, its output in the C locale is the same, and it is
    /// faster there.
    pub ascii_in_c: bool,
    /// The operator that can replace the process, if the neighbouring commands have one as well.
    pub operator: Option<Operator>,
}

/// Neighbouring stages that run over chunks of their input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The stages as written, for the fallback: one pipeline over the whole input.
    pub serial: Vec<Command>,
    /// The first of these in the form that opens the plan's source files itself, if it named them.
    pub opening: Option<Command>,
    /// Where the input may be cut.
    pub cut: Cut,
    /// The precondition on every chunk under which `each` and `combine` produce the right output.
    pub guard: Guard,
    /// The commands that run over every chunk, as a pipeline.
    pub each: Vec<Command>,
    /// How the outputs of the chunks are combined.
    pub combine: Combine,
    /// The chunks may be concatenated in any order before the same commands process them.
    pub any_order: bool,
    /// The commands may fail because of their input although the guard holds.
    pub may_fail: bool,
}

impl Group {
    /// Returns whether the executor runs commands of the group in the C locale over ASCII, as far as
    /// they are marked with [`Command::ascii_in_c`].
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

/// Where an input may be cut: between two records that satisfy all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The format of the records.
    pub records: Records,
    /// Bytes allowed before the separator. An empty first record counts as preceded by a separator.
    pub before: ByteSet,
    /// Bytes that a chunk may begin with.
    pub after: ByteSet,
    /// The records before and after the cut must differ in this key.
    pub differ: Option<Key>,
    /// The records must also be in ascending order of that key's bytes.
    pub ascending: bool,
}

/// A precondition on a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Bytes that the chunk must not contain.
    pub without: ByteSet,
    /// The chunk must be valid UTF-8.
    pub utf8: bool,
    /// The last record of the chunk must be terminated.
    pub terminated: bool,
}

/// How the outputs of chunks are combined into the output of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Combine {
    /// Concatenated in input order.
    Concatenate,
    /// Concatenated in input order, with equal lines at chunk boundaries collapsed.
    Adjoin {
        /// Lines begin with a count, as `uniq -c` writes it; counts of collapsed lines are added.
        counted: bool,
    },
    /// Sorted outputs, merged.
    Merge(Merge),
    /// Sorted lines with counts as `uniq -c` writes them, merged, with counts of equal lines added.
    Counts {
        /// The order is reversed.
        reverse: bool,
        /// The directory for temporary files, if the pipeline names one.
        folder: Option<String>,
    },
    /// Columns of numbers, added up or otherwise reduced.
    Numbers(Numbers),
    /// Concatenated in input order and piped through this command.
    Through(Command),
    /// Totals piped through this command. The first line of each output has `exact` and an amount
    /// unless a value was rounded. The group falls back if a value was rounded or if the amounts
    /// add up to too much.
    Totals(Command),
}

/// How sorted outputs are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The command that merges files, which are appended to its arguments in input order.
    pub command: Command,
    /// The order, if contend can merge by it without the command.
    pub lines: Option<LineOrder>,
    /// The number of records to write from the beginning, if not all.
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
    /// Allows cuts between any two records.
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

    /// Returns the guard that holds where both hold.
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
