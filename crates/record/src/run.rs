//! The plan and the outcome of a pipeline that runs in parallel: schema `contend.run/1`.
//!
//! A [`PlanRecord`] defines where the input may be cut into chunks, which commands run over every
//! chunk, and how the outputs of the chunks are combined. It does not define who runs the plan, nor
//! on how many CPUs of which machine. The types nest like this:
//!
//! ```text
//! RunRecord                 contend run --json
//!  ├─ plan: PlanRecord
//!  │   ├─ stages            how each stage was classified, and why
//!  │   ├─ source            what the first step reads
//!  │   └─ steps
//!  │       ├─ Serial        commands that run once, as a pipeline
//!  │       └─ Parallel      GroupRecord: cut ─ guard ─ each ─ combine
//!  ├─ decision              whether the plan runs in parallel
//!  └─ outcome               exit status, times, memory, fallbacks
//! ```
//!
//! Wall times are in seconds (`CLOCK_MONOTONIC`); CPU times are seconds that the kernel charges.
//!
//! The executor has separate types for plans (`contend_parallel::plan::ir`), so that the executor
//! can change without changing this schema. It uses the types of this module that only name
//! properties of commands and records, such as [`StatusRule`], [`Records`], [`ByteSet`] and
//! [`LineOrder`]. The schema has names without the suffix `Record`, such as `Plan` and `Step`,
//! because they are older than the suffix.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod bytes;
mod outcome;
mod work;
pub use bytes::ByteSet;
pub use outcome::{
    Check, Decision, DividedOutcome, Division, HostParts, Left, Outcome, Part, RunRecord, SCHEMA,
    StageOutcome, TakenOver,
};
pub use work::{WorkKind, WorkSpan};

/// The plan for running a pipeline over chunks of its input, as far as its stages allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct PlanRecord {
    /// The stages of the pipeline and how each was classified, first to last.
    pub stages: Vec<Stage>,
    /// The input of the first step.
    pub source: SourceRecord,
    /// The steps. The first reads the source, and each other one the output of the step before it.
    pub steps: Vec<StepRecord>,
}

/// A stage of the pipeline and its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Text of the stage.
    pub text: String,
    /// How the stage can run over chunks of its input.
    pub class: Class,
    /// The reason for the class, in a sentence.
    pub why: String,
}

/// How a stage can run over chunks of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Each record is processed independently: the concatenated outputs of chunks are the output.
    PerRecord,
    /// The outputs of chunks can be combined into the output.
    Combinable,
    /// The stage can run only once, over its whole input.
    Opaque,
    /// The stage is left out, because it changes nothing in this pipeline.
    LeftOut,
}

/// The input of the first step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Source")]
#[serde(rename_all = "kebab-case")]
pub enum SourceRecord {
    /// Standard input.
    Standard,
    /// The given files, concatenated.
    Files(Vec<String>),
    /// Nothing that contend opens: the commands of the step open files themselves, inherit standard
    /// input, or read nothing.
    Own,
}

/// A step of a plan, which reads the plan's source or the output of the step before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Step")]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of them")]
pub enum StepRecord {
    /// Commands that run once, as a pipeline.
    Serial(Vec<CommandRecord>),
    /// Commands that run over chunks of the input at the same time.
    Parallel(GroupRecord),
}

/// A command that is started without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Command")]
pub struct CommandRecord {
    /// Index of the stage that the command comes from, from 0.
    pub stage: usize,
    /// Names and values of environment variables that are set only for the command.
    pub variables: Vec<(String, String)>,
    /// The program, as named in the pipeline.
    pub program: String,
    /// Arguments of the program, without its name.
    pub arguments: Vec<String>,
    /// Which exit statuses of the command are not failures.
    pub status: StatusRule,
    /// Path of the file that is the command's standard input, regardless of the command before it;
    /// null if the command reads the output of the command before it, or the input of the step if
    /// it is the first.
    pub input: Option<String>,
    /// Whether the command is GNU `sort`, whose memory, threads and temporary directory the
    /// executor chooses.
    pub sorts: bool,
    /// Whether the command writes the same output in the C locale, and is faster there, if the
    /// group's input is ASCII without NUL.
    pub ascii_in_c: bool,
}

/// Exit statuses of a command that are not failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusRule {
    /// Only 0 is not a failure.
    Zero,
    /// 0 and 1 are not failures: as with `grep`, 0 means that anything matched, and 1 that nothing
    /// did. The smallest status of all chunks counts.
    Matches,
}

/// Neighbouring stages that run over chunks of their input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupRecord {
    /// The stages as written, for the fallback: one run over the whole input.
    pub serial: Vec<CommandRecord>,
    /// The first command of `serial`, in the form that opens the files of the plan's source itself;
    /// null if the pipeline does not name files there, and in records of older versions.
    #[serde(default)]
    pub opening: Option<CommandRecord>,
    /// Where the input may be cut.
    pub cut: CutRecord,
    /// The precondition on every chunk under which `each` and `combine` produce the right output.
    pub guard: GuardRecord,
    /// The commands that run over every chunk, as a pipeline.
    pub each: Vec<CommandRecord>,
    /// How the outputs of the chunks are combined.
    pub combine: CombineRecord,
    /// Whether the chunks may be concatenated in any order before the commands process them.
    pub any_order: bool,
    /// Whether the commands may fail because of their input even if the guard holds.
    pub may_fail: bool,
}

/// Where an input may be cut: between two records that satisfy all conditions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cut")]
pub struct CutRecord {
    /// The format of the records.
    pub records: Records,
    /// Bytes allowed before the separator at a cut. An empty first record counts as preceded by a
    /// separator.
    pub before: ByteSet,
    /// Bytes that a chunk may begin with.
    pub after: ByteSet,
    /// Key in which the records before and after a cut must differ; null if they may be equal.
    pub differ: Option<Key>,
    /// Whether the key (`differ`) of the record after a cut must be greater, by its bytes, than
    /// that of the record before it.
    #[serde(default)]
    pub ascending: bool,
}

/// The format of records, by what separates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Records {
    /// A line break.
    Lines,
    /// A NUL byte.
    Nul,
    /// A line break that is not within double quotes.
    Csv,
    /// A line break outside any JSON value.
    Json,
}

/// The part of a record that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// The whole record.
    Whole,
    /// The bytes before the first occurrence of the given byte, or the whole record if it does not
    /// contain the byte.
    FirstField(u8),
    /// The first word: after leading blanks, the bytes before the next blank. Blanks are spaces and
    /// tabs.
    FirstWord,
}

/// A precondition on a chunk of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Guard")]
pub struct GuardRecord {
    /// Bytes that the chunk must not contain.
    pub without: ByteSet,
    /// Whether the chunk must be valid UTF-8.
    pub utf8: bool,
    /// Whether the last record of the chunk must end with a separator, as all others do.
    #[serde(default)]
    pub terminated: bool,
}

/// How the outputs of chunks become the output of the group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Combine")]
#[serde(rename_all = "kebab-case")]
pub enum CombineRecord {
    /// Concatenated, in input order.
    Concatenate,
    /// Concatenated in input order, with equal lines at chunk boundaries collapsed into one.
    Adjoin {
        /// Whether lines begin with a count, as `uniq -c` writes it. Counts of collapsed lines are
        /// added.
        counted: bool,
    },
    /// Sorted outputs, merged.
    Merge(MergeRecord),
    /// Sorted lines with counts, as `uniq -c` writes them: merged, with counts of equal lines
    /// added.
    Counts {
        /// Whether the lines are in descending order.
        reverse: bool,
        /// Directory for temporary files; null if the pipeline does not name one.
        folder: Option<String>,
    },
    /// One line of numbers for each chunk; each column is reduced to its sum or its maximum.
    Numbers(Numbers),
    /// Concatenated in input order, then piped through the given command.
    Through(CommandRecord),
    /// Totals, piped through the given command. The first line of each output has `exact` and an
    /// amount unless a value was rounded. The group falls back if a value was rounded, if an output
    /// is incomplete, or if the amounts add up to too much for an exact sum.
    Totals(CommandRecord),
}

/// How sorted outputs are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Merge")]
pub struct MergeRecord {
    /// The command that merges files, which are appended to its arguments in input order.
    pub command: CommandRecord,
    /// The order of whole records by which contend can merge without the command; null if only the
    /// command can merge.
    pub lines: Option<LineOrder>,
    /// Maximum number of records to write, from the beginning; null for all.
    pub first: Option<u64>,
    /// Directory for temporary files; null if the pipeline does not name one.
    pub folder: Option<String>,
}

/// An order of records: by keys, then by all bytes of records whose keys are equal. Bytes compare
/// as unsigned numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineOrder {
    /// Keys in order of precedence: each decides where all earlier ones are equal.
    pub keys: Vec<SortKey>,
    /// Byte between fields; null if a field begins with its leading blanks, as in `sort` without
    /// `-t`.
    pub field_separator: Option<u8>,
    /// Whether the comparison of all bytes is descending.
    pub reverse: bool,
    /// Whether only the first of equal records is kept.
    pub unique: bool,
    /// Byte that ends a record.
    pub separator: u8,
}

/// A part of a record by which records are ordered, as `sort -k` defines it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SortKey {
    /// Start of the key: its first field, and the number of bytes of the first field to skip.
    pub from: FieldPlace,
    /// End of the key: its last field, and the number of bytes of the last field to include, where
    /// 0 means the whole field; null if the key extends to the end of the record.
    pub to: Option<FieldPlace>,
    /// Whether keys compare by the number at their beginning, as in `sort -n`.
    pub numeric: bool,
    /// Whether ASCII lower-case letters compare as upper-case ones, as in `sort -f`.
    pub fold: bool,
    /// Whether the order by the key is descending.
    pub reverse: bool,
}

/// The first or last position of a key in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldPlace {
    /// Index of the field, from 0.
    pub field: usize,
    /// Number of bytes in the field: those to skip (`from`), or those to include (`to`).
    pub bytes: usize,
    /// Whether bytes are counted after the leading blanks of the field.
    pub skips_blanks: bool,
}

/// Columns of numbers on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Numbers {
    /// How each column is reduced.
    pub columns: Vec<Column>,
    /// Minimum width of a column, in bytes; numbers are right-aligned.
    pub width: usize,
}

/// How the numbers of a column are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// The sum of the numbers.
    Sum,
    /// The maximum of the numbers.
    Greatest,
}

impl Records {
    /// Returns the byte that ends each record.
    pub fn separator(self) -> u8 {
        match self {
            Self::Nul => 0,
            Self::Lines | Self::Csv | Self::Json => b'\n',
        }
    }
}
