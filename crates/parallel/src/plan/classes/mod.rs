//! How commands can be run over parts of their input: one file a command, one row each in
//! `TABLE`.
//!
//! A class is a proof, not a guess: what is not certain is opaque, with the reason.

mod awk;
mod cat;
mod col;
mod comm;
mod cut;
mod fold;
mod grep;
mod head;
mod iconv;
mod join;
mod jq;
mod reasons;
mod rev;
mod sed;
mod sort;
mod tr;
mod uniq;
mod wc;
mod xargs;

pub(super) use sort::surely_succeeds;
pub(super) use xargs::starts_one_each;

use std::borrow::Cow;

use crate::plan::ir::{ByteSet, Combine, Command, Cut, Guard, Operator, Records, StatusRule};
use contend_commands::options::{Options, Table};
use contend_commands::regex::{self, Plain};
use contend_commands::{Simple, Word};
use contend_shell::environment::{Encoding, Environment, Maker};

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
#[expect(clippy::large_enum_variant, reason = "a pipeline has a handful of them")]
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
    /// If its output is a terminal, it writes something else, such as colours.
    pub output_depends_on_tty: bool,
    /// It may fail because of what it reads, even if the guard holds.
    pub may_fail: bool,
    /// What it writes of a record is that record, unchanged, or nothing.
    pub selects: bool,
    /// Of nothing it makes something: it must not stand behind what may leave nothing of a part.
    pub writes_on_empty_input: bool,
    /// What its guard refuses may change what it writes of records before that: it has to be known of the whole
    /// input, or the input be read again.
    pub looks_back: bool,
    /// Of ASCII it makes the same in the C locale, and is faster there.
    pub ascii_in_c: bool,
    /// What its output is like.
    pub output: Output,
    /// What does its work inside contend, if anything does.
    pub operator: Option<Operator>,
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
    /// The order of its output is its own affair: only what ignores that order may follow.
    pub order_unknown: bool,
}

/// What a command's output is like, given that its input is what its guard says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    /// What its records are, if a record of it ends wherever one of the input does; `None` if its
    /// output cannot be cut. Where one of [`Records::Json`] or [`Records::Csv`] ends, a line does.
    pub records: Option<Records>,
    /// If the input is UTF-8, so is the output.
    pub keeps_utf8: bool,
    /// Bytes that the output may contain though the input does not.
    pub adds: ByteSet,
    /// If the input is ASCII, so is the output, whatever it adds to other input.
    pub ascii_of_ascii: bool,
    /// What becomes of each byte, where the output is that and nothing else.
    pub map: Option<[u8; 256]>,
}

impl Output {
    /// Lines that hold nothing but pieces of the input's lines, cut between characters.
    pub const LINES: Self = Self {
        records: Some(Records::Lines),
        keeps_utf8: true,
        adds: ByteSet::EMPTY,
        ascii_of_ascii: false,
        map: None,
    };

    /// Whether the output is ASCII if the input is.
    pub fn keeps_ascii(&self) -> bool {
        self.ascii_of_ascii || self.adds.iter().all(|byte| byte.is_ascii())
    }

    /// Records that hold nothing but pieces of the input's, cut between characters.
    pub fn of(records: Records) -> Self {
        // The last one may lack its separator in the input.
        let adds = ByteSet::from_iter([records.separator()]);
        Self { records: Some(records), adds, ..Self::LINES }
    }

    /// Nothing is known of it.
    pub const ANYTHING: Self =
        Self { records: None, adds: ByteSet::ALL, keeps_utf8: false, ..Self::LINES };
}

impl PerRecord {
    /// A command that takes any input and fails with none.
    pub fn new(records: Records) -> Self {
        Self {
            cut: Cut::between(records),
            guard: Guard::NONE,
            arguments: None,
            status: StatusRule::Zero,
            output_depends_on_tty: false,
            may_fail: false,
            selects: false,
            writes_on_empty_input: false,
            looks_back: false,
            ascii_in_c: false,
            output: Output::of(records),
            operator: None,
        }
    }
}

impl Combinable {
    /// A command whose outputs over parts, each of which it is to be run over in the input's
    /// order, become the output like this.
    fn ordered(each: PerRecord, combine: Combine) -> Self {
        Self { each, combine, any_order: false, ignores_order: false, order_unknown: false }
    }

    /// The same where the order of the input does not matter.
    fn unordered(each: PerRecord, combine: Combine) -> Self {
        Self { each, combine, any_order: true, ignores_order: true, order_unknown: false }
    }
}

/// A reason for people.
type Why = Cow<'static, str>;

/// A class, or the reason why there is none.
type Finding = Result<Class, Why>;

/// Reads one command.
type Read = fn(&Subject<'_>) -> Finding;

/// What is known of commands, by name.
const TABLE: &[(&[&str], Read)] = &[
    (&["grep", "egrep", "fgrep"], grep::class),
    (&["tr"], tr::class),
    (&["cut"], cut::class),
    (&["sort"], sort::class),
    (&["uniq"], uniq::class),
    (&["wc"], wc::class),
    (&["head"], head::head),
    (&["tail"], head::tail),
    (&["cat"], cat::class),
    (&["rev"], rev::class),
    (&["col"], col::class),
    (&["fold", "expand", "unexpand"], fold::class),
    (&["iconv"], iconv::class),
    (&["jq"], jq::class),
    (&["comm"], comm::class),
    (&["join"], join::class),
    (&["xargs"], xargs::class),
    (&["sed"], sed::class),
    (&["awk", "mawk", "gawk", "nawk", "original-awk", "busybox"], awk::class),
];

/// Variables that may be set for a command: those of the locale, and where temporary files are.
const VARIABLES: &[&str] = &[
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LANG",
    "TMPDIR",
    "TZ",
];

/// Whether something is known of commands of this name that could make them faster.
pub fn is_worth_a_try(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let trifles = ["cat", "head", "tail"];
    !trifles.contains(&name) && TABLE.iter().any(|(names, _)| names.contains(&name))
}

/// Whether something is known of commands of this name.
pub fn is_known(name: &str) -> bool {
    TABLE.iter().any(|(names, _)| names.contains(&name))
}

/// How a command can be run.
pub fn classify(subject: &Subject<'_>) -> Class {
    let name = subject.simple.name();
    let read = TABLE.iter().find(|(names, _)| names.contains(&name)).map(|(_, read)| read);
    let Some(read) = read else { return Class::Opaque(reasons::of(name)) };
    let class = subject.is_plain().and_then(|()| read(subject));
    let mut class = class.unwrap_or_else(Class::Opaque);
    if let Class::PerRecord(each) | Class::Combinable(Combinable { each, .. }) = &mut class
        && each.arguments.is_none()
    {
        each.operator = Operator::read(subject.simple, subject.environment);
    }
    class
}

/// A command of the user's own, of which they say that it treats each of these records for
/// itself. Nothing else is taken for granted of it.
pub fn annotated(records: Records) -> Class {
    let output = Output { records: Some(records), ..Output::ANYTHING };
    Class::PerRecord(PerRecord { may_fail: true, output, ..PerRecord::new(records) })
}

impl Subject<'_> {
    /// Whether its variables and those of the environment leave its arguments what they are.
    fn is_plain(&self) -> Result<(), Why> {
        if self.environment.reads_arguments_otherwise {
            return Err("a variable such as `POSIXLY_CORRECT` is set".into());
        }
        let other = self.simple.variables.iter().find(|(name, _)| !VARIABLES.contains(&&**name));
        other.map_or(Ok(()), |(name, _)| Err(format!("it is not known what `{name}=` does").into()))
    }

    /// Whether the program is the one that the proof is about.
    fn is_by(&self, maker: Maker) -> Result<(), Why> {
        if self.environment.maker(&self.simple.program.text) == maker {
            return Ok(());
        }
        let whose = match maker {
            Maker::UtilLinux => "the one of util-linux",
            Maker::Glibc => "the one of the GNU C library",
            Maker::Jq => "jq 1.6 or later",
            _ => "GNU's",
        };
        Err(format!("`{}` is not {whose} here", self.simple.program.text).into())
    }

    fn encoding(&self) -> Result<Encoding, Why> {
        self.environment.encoding(self.simple).ok_or_else(|| {
            let locale = self.environment.ctype(self.simple);
            format!("it is not known how text is encoded in the locale `{locale}`").into()
        })
    }

    /// Whether text that it reads has to be UTF-8 so that all of it consists of characters.
    fn needs_utf8(&self) -> Result<bool, Why> {
        Ok(self.encoding()? == Encoding::Utf8)
    }

    /// Whether it reads numbers as they are written in C.
    fn has_plain_numbers(&self) -> bool {
        self.environment.has_plain_numbers(self.simple)
    }

    /// Whether lines are in order, and equal, to it if their bytes are.
    fn orders_by_bytes(&self) -> Result<(), Why> {
        if self.environment.orders_by_bytes(self.simple) {
            return Ok(());
        }
        Err("in the order of a language, lines may be equal that differ".into())
    }

    /// Whether a character of several bytes may be a blank or have a capital to it.
    fn knows_characters(&self) -> bool {
        let environment = self.environment;
        environment.is_multibyte(self.simple)
            && environment.knows_characters(&self.simple.program.text)
    }

    /// What these expressions have in them, if they match the same ASCII in the C locale and that is
    /// another one.
    fn same_in_c<'e>(
        &self,
        mut expressions: impl Iterator<Item = &'e str>,
        extended: bool,
    ) -> Option<Plain> {
        let is_other = self.encoding() == Ok(Encoding::Utf8);
        let all = expressions.try_fold(Plain::default(), |all, text| {
            let Plain { sets, ranges } = regex::plain(text, extended)?;
            Some(Plain { sets: all.sets || sets, ranges: all.ranges || ranges })
        });
        let has_plain_letters = self.environment.has_plain_letters(self.simple);
        all.filter(|all| {
            is_other && has_plain_letters && (!all.ranges || self.orders_by_bytes().is_ok())
        })
    }

    /// Reads its options; those of the list are refused for its reasons.
    fn options(&self, table: &Table, refused: &[(char, &'static str)]) -> Result<Options, Why> {
        let unknown = "not all of its options are known";
        let options = Options::read(&self.simple.arguments, table).ok_or(unknown)?;
        refuse(&options, refused)?;
        Ok(options)
    }

    /// Whether it reads its standard input and nothing else.
    fn reads_standard_input(&self, operands: &[usize]) -> Result<(), Why> {
        match operands {
            [] => Ok(()),
            &[place] if self.simple.arguments[place].text == "-" => Ok(()),
            _ => Err("it reads files that it names itself".into()),
        }
    }

    /// A command that runs as this one does, with other arguments. Its stage is for the plan to
    /// say.
    fn command(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Command {
        let variables = self.simple.variables.iter();
        Command {
            stage: 0,
            variables: variables.map(|(name, value)| (name.clone(), value.text.clone())).collect(),
            program: program.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            status: StatusRule::Zero,
            input: None,
            sorts: false,
            ascii_in_c: false,
            operator: None,
        }
    }
}

/// The reason of the first option that is in the list.
fn refuse(options: &Options, refused: &[(char, &'static str)]) -> Result<(), Why> {
    let reason = |(letter, _): &(char, Option<String>)| {
        refused.iter().find(|(other, _)| other == letter).map(|(_, reason)| *reason)
    };
    options.given.iter().find_map(reason).map_or(Ok(()), |reason| Err(reason.into()))
}

/// Whether a file is there and can be read again and again.
fn is_regular_file(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|data| data.is_file())
}

/// Whether it is a number without a sign.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The letters, digits and signs of ASCII, and the space.
fn printable() -> ByteSet {
    ByteSet::of(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod differential;

#[cfg(test)]
mod tests {
    use super::*;
    use contend_commands::testing::simple;

    /// The class of a command on a machine with everything.
    pub(super) fn class_in(text: &str, locale: &str) -> Class {
        let environment = Environment::for_tests(locale);
        classify(&Subject { simple: &simple(text), environment: &environment })
    }

    pub(super) fn class(text: &str) -> Class {
        class_in(text, "C.UTF-8")
    }

    /// Each of them treats every record for itself.
    pub(super) fn all_per_record(texts: &[&str]) {
        for text in texts {
            let class = class(text);
            assert!(matches!(class, Class::PerRecord(_)), "{text}: {class:?}");
        }
    }

    /// The class of a command that treats every record for itself.
    pub(super) fn per_record(text: &str) -> PerRecord {
        match class(text) {
            Class::PerRecord(class) => class,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// The class of a command whose outputs can be put together.
    pub(super) fn combinable(text: &str) -> Combinable {
        match class(text) {
            Class::Combinable(class) => class,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Each of them is refused with a reason that holds this.
    pub(super) fn all_opaque(pairs: &[(&str, &str)]) {
        for (text, part) in pairs {
            match class(text) {
                Class::Opaque(why) => assert!(why.contains(part), "{text}: {why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_name_has_one_row() {
        let mut names: Vec<_> = TABLE.iter().flat_map(|(names, _)| names.iter()).collect();
        names.extend(reasons::names());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_is_not_the_program_that_is_known_is_opaque() {
        all_opaque(&[
            ("X=1 sort", "`X=`"),
            ("POSIXLY_CORRECT=1 sort", "`POSIXLY_CORRECT=`"),
            ("./sort", "nothing is known of `./sort`"),
            ("/bin/sort", "is not GNU's"),
            ("my-filter", "nothing is known"),
        ]);
        let otherwise =
            Environment { reads_arguments_otherwise: true, ..Environment::for_tests("C") };
        let subject = Subject { simple: &simple("sort"), environment: &otherwise };
        assert!(matches!(classify(&subject), Class::Opaque(_)));
    }

    #[test]
    fn of_annotated_commands_only_the_records_are_known() {
        let Class::PerRecord(class) = annotated(Records::Nul) else { panic!("per record") };
        assert_eq!((class.cut, class.may_fail), (Cut::between(Records::Nul), true));
        assert_eq!(class.output.adds, ByteSet::ALL);
    }
}
