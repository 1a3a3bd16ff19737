//! How commands can be run over parts of their input: one file a command, one row each in
//! [`TABLE`].
//!
//! A class is a proof, not a guess: what is not certain is opaque, with the reason.

mod grep;
mod tr;

use std::borrow::Cow;

use contend_record::run::{ByteSet, Combine, Cut, Guard, Records, StatusRule};

use crate::commands::{Simple, Word};
use crate::rewrite::environment::Environment;

/// A command as it stands in the pipeline.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The command. Its input is what comes through its standard input: a file that it names has
    /// been taken away, where that could be done.
    pub simple: &'a Simple,
    /// Programs and locale.
    pub environment: &'a Environment,
}

/// How a command can be run.
#[derive(Debug, Clone, PartialEq)]
pub enum Class {
    /// Every record for itself.
    PerRecord(PerRecord),
    /// Outputs of parts can be put together.
    Combinable(Combinable),
    /// It only hands on what it reads.
    Nothing,
    /// Only as it is; the reason follows "it runs alone, since …".
    Opaque(Cow<'static, str>),
}

/// A command that treats every record for itself.
#[derive(Debug, Clone, PartialEq)]
pub struct PerRecord {
    /// Where its input may be cut.
    pub cut: Cut,
    /// What its input must be like for that.
    pub guard: Guard,
    /// Its arguments where it is run over a part, if they are others.
    pub arguments: Option<Vec<Word>>,
    /// Its statuses.
    pub status: StatusRule,
    /// It may fail because of what it reads, even if the guard holds.
    pub may_fail: bool,
    /// What its output is like.
    pub output: Output,
}

/// A command whose outputs over parts can be put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Combinable {
    /// What is to be known of the command over each part.
    pub each: PerRecord,
    /// How the outputs become one.
    pub combine: Combine,
    /// Parts may be put together in any order and run through the same command.
    pub any_order: bool,
    /// Its output is the same whatever the order of the records in its input.
    pub ignores_order: bool,
}

/// What a command's output is like, given that its input is what its guard says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    /// What its records are, if each ends where a record of the input ends; `None` if its output
    /// cannot be cut.
    pub records: Option<Records>,
    /// If the input is UTF-8, so is the output.
    pub keeps_utf8: bool,
    /// Bytes that the output may contain though the input does not.
    pub adds: ByteSet,
    /// What becomes of each byte, where the output is that and nothing else.
    pub map: Option<[u8; 256]>,
}

impl Output {
    /// Lines that hold nothing but pieces of the input's lines, cut between characters.
    pub const LINES: Self =
        Self { records: Some(Records::Lines), keeps_utf8: true, adds: ByteSet::EMPTY, map: None };
}

impl PerRecord {
    /// A command that takes any input and fails with none.
    pub fn new(records: Records) -> Self {
        Self {
            cut: Cut::between(records),
            guard: Guard::NONE,
            arguments: None,
            status: StatusRule::Zero,
            may_fail: false,
            output: Output { records: Some(records), ..Output::LINES },
        }
    }
}

/// Reads one command.
type Read = fn(&Subject<'_>) -> Class;

/// What is known of commands, by name.
const TABLE: &[(&[&str], Read)] =
    &[(&["grep", "egrep", "fgrep"], grep::class), (&["tr"], tr::class)];

/// How a command can be run.
pub fn classify(subject: &Subject<'_>) -> Class {
    let name = subject.simple.name();
    let read = TABLE.iter().find(|(names, _)| names.contains(&name)).map(|(_, read)| read);
    read.map_or_else(
        || Class::Opaque(format!("nothing is known of `{name}`").into()),
        |read| read(subject),
    )
}

/// A command of which the user says that it treats every record for itself.
pub fn annotated(records: Records) -> Class {
    let mut class = PerRecord::new(records);
    class.may_fail = true;
    class.output.keeps_utf8 = false;
    class.output.adds = ByteSet::ALL;
    Class::PerRecord(class)
}

/// An opaque command, with the reason.
fn opaque(why: impl Into<Cow<'static, str>>) -> Class {
    Class::Opaque(why.into())
}
