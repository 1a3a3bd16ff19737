//! What is published of a pipeline that was made data-parallel: its plan, and what came of it.
//!
//! Schema `contend.run/1`. A [`PlanRecord`] says where the input may be cut, what is run over every
//! part and how the outputs become one again. It does not say who runs it, nor on how many CPUs of
//! which machine. Times are seconds of `CLOCK_MONOTONIC`, CPU times those that the kernel charges.
//!
//! The executor has types of its own for plans (`contend_parallel::plan::ir`), so that these need
//! not change with it. It uses the vocabulary of this module that names what commands and records
//! are, such as [`StatusRule`], [`Records`], [`ByteSet`] and [`LineOrder`]. The names of types in
//! the schema are older than the suffix `Record`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod bytes;
mod outcome;
pub use bytes::ByteSet;
pub use outcome::{Check, Decision, Left, Outcome, RunRecord, SCHEMA, StageOutcome, TakenOver};

/// What is decided for a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct PlanRecord {
    /// What was looked at of each stage, and what was found, first to last.
    pub stages: Vec<Stage>,
    /// What the first step reads.
    pub source: SourceRecord,
    /// What is run, each step reading what the one before it writes.
    pub steps: Vec<StepRecord>,
}

/// A stage of the pipeline, as it was understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its text.
    pub text: String,
    /// How it can be run.
    pub class: Class,
    /// Why, in a sentence for people.
    pub why: String,
}

/// How a stage can be run over parts of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Every record for itself: outputs of parts, one after the other, are the output.
    PerRecord,
    /// The outputs of parts can be made into the output.
    Combinable,
    /// Only as it is, over all its input.
    Opaque,
    /// It is left out: what it does changes nothing here.
    LeftOut,
}

/// What the first step reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Source")]
#[serde(rename_all = "kebab-case")]
pub enum SourceRecord {
    /// Its standard input.
    Standard,
    /// These files, one after the other.
    Files(Vec<String>),
    /// Nothing, or what its commands open themselves.
    Own,
}

/// A piece of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Step")]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a plan has a handful of them")]
pub enum StepRecord {
    /// Commands that run as they are, in a pipeline.
    Serial(Vec<CommandRecord>),
    /// Commands that run over parts of the input at the same time.
    Parallel(GroupRecord),
}

/// A command that is started as it is, without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Command")]
pub struct CommandRecord {
    /// The stage whose work it does, from 0.
    pub stage: usize,
    /// Variables that are set for it alone.
    pub variables: Vec<(String, String)>,
    /// The program, as it was called.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// What its status can be though all went well.
    pub status: StatusRule,
    /// A file that its standard input is, whatever comes before it.
    pub input: Option<String>,
    /// It is GNU's `sort`, whose memory, threads and folder are for whoever runs it to choose.
    pub sorts: bool,
    /// If the group's input is ASCII without NUL it writes the same in the C locale, and is faster
    /// there.
    pub ascii_in_c: bool,
}

/// Which statuses of a command are no failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusRule {
    /// 0 alone.
    Zero,
    /// 0 if there was a match, 1 if there was none: of several parts the smallest counts.
    Matches,
}

/// Commands over parts of the input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Group")]
pub struct GroupRecord {
    /// The stages as they are, for running all of the input through them.
    pub serial: Vec<CommandRecord>,
    /// The first of these, opening the files of the plan's source itself, if it named them.
    #[serde(default)]
    pub opening: Option<CommandRecord>,
    /// Where the input may be cut.
    pub cut: CutRecord,
    /// What a part must be like, so that its output is what the whole's would be.
    pub guard: GuardRecord,
    /// What is run over every part, in a pipeline.
    pub each: Vec<CommandRecord>,
    /// How the outputs become one.
    pub combine: CombineRecord,
    /// Parts may be put together in any order and run through the same commands.
    pub any_order: bool,
    /// The commands may fail because of what they read, though the guard holds.
    pub may_fail: bool,
}

/// Where an input may be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Cut")]
pub struct CutRecord {
    /// What records are.
    pub records: Records,
    /// Bytes that may stand before the separator; before that of an empty first record, a separator
    /// is taken to stand.
    pub before: ByteSet,
    /// Bytes that a part may begin with.
    pub after: ByteSet,
    /// The records on both sides have to differ in this.
    pub differ: Option<Key>,
    /// They also have to be in order: the later one's is the greater, by its bytes.
    #[serde(default)]
    pub ascending: bool,
}

/// What ends a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Records {
    /// A line break.
    Lines,
    /// A NUL byte.
    Nul,
    /// A line break that is not within double quotes.
    Csv,
    /// A line break outside of every JSON value.
    Json,
}

/// What of a record is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// All of it.
    Whole,
    /// What stands before the first of these bytes.
    FirstField(u8),
    /// The first word: what stands before the first blank, those at the beginning passed over.
    /// Blanks are spaces and tabs.
    FirstWord,
}

/// What a part must be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Guard")]
pub struct GuardRecord {
    /// Bytes that must not be in it.
    pub without: ByteSet,
    /// It has to be UTF-8.
    pub utf8: bool,
    /// The last record has to have its separator, as all others have.
    #[serde(default)]
    pub terminated: bool,
}

/// How outputs of parts become the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Combine")]
#[serde(rename_all = "kebab-case")]
pub enum CombineRecord {
    /// One after the other, in the order of the parts.
    Concatenate,
    /// One after the other; equal lines where two outputs meet become one.
    Adjoin {
        /// Lines begin with how often they were there, as `uniq -c` writes it.
        counted: bool,
    },
    /// They are sorted, and are merged.
    Merge(MergeRecord),
    /// Sorted lines with how often they were there, as `uniq -c` writes it: merged, and equal ones
    /// added up.
    Counts {
        /// The order is reversed.
        reverse: bool,
        /// Where sorting keeps what does not fit into memory, if the pipeline says.
        folder: Option<String>,
    },
    /// Numbers, which are added up, or of which the greatest counts.
    Numbers(Numbers),
    /// One after the other, in the order of the parts, through this command.
    Through(CommandRecord),
    /// Totals, each with `exact` and an amount on its first line if nothing in it was rounded:
    /// through this command, if none was and the amounts together are small enough.
    Totals(CommandRecord),
}

/// How sorted outputs are merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Merge")]
pub struct MergeRecord {
    /// The command that merges files; they are given as further arguments, in the order of the
    /// parts.
    pub command: CommandRecord,
    /// The order, if it is one of whole records that needs no command.
    pub lines: Option<LineOrder>,
    /// Only so many records of the beginning are wanted.
    pub first: Option<u64>,
    /// Where sorting keeps what does not fit into memory, if the pipeline says.
    pub folder: Option<String>,
}

/// An order of records: by parts of them, and by all their bytes where these are the same. Bytes
/// are compared as numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineOrder {
    /// The parts that are compared, each where those before it are the same.
    pub keys: Vec<SortKey>,
    /// What stands between fields; `null` if a field begins with blanks.
    pub field_separator: Option<u8>,
    /// All bytes: from the greatest to the smallest.
    pub reverse: bool,
    /// Of equal ones only the first is kept.
    pub unique: bool,
    /// What ends a record.
    pub separator: u8,
}

/// A part of records that is compared, as `sort -k` finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SortKey {
    /// The first field, and how many bytes of it are passed over.
    pub from: FieldPlace,
    /// The last field, and how many bytes of it belong to the part, the whole field if they are 0; the
    /// part goes to the end of the record if nothing is said.
    pub to: Option<FieldPlace>,
    /// By the number at its beginning, as `sort -n` reads it.
    pub numeric: bool,
    /// As if small letters of ASCII were capitals.
    pub fold: bool,
    /// From the greatest to the smallest.
    pub reverse: bool,
}

/// A place in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldPlace {
    /// The field, from 0.
    pub field: usize,
    /// Bytes of it.
    pub bytes: usize,
    /// Bytes are counted behind the blanks with which the field begins.
    pub skips_blanks: bool,
}

/// Columns of numbers on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Numbers {
    /// How each column is put together.
    pub columns: Vec<Column>,
    /// Columns are right-aligned and at least so wide.
    pub width: usize,
}

/// How the numbers of a column are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Column {
    /// They are added up.
    Sum,
    /// The greatest counts.
    Greatest,
}

impl Records {
    /// The byte at the end of each.
    pub fn separator(self) -> u8 {
        match self {
            Self::Nul => 0,
            Self::Lines | Self::Csv | Self::Json => b'\n',
        }
    }
}
