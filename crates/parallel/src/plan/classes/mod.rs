//! Classifies commands by how they can run over chunks of their input. Each command has a row in
//! `TABLE`, and its proof is in the module that the row names.
//!
//! A class is a proof, not a guess: a command whose behaviour is uncertain in any respect is
//! opaque, with the reason.
//!
//! | class | how the command runs | example |
//! |---|---|---|
//! | [`Class::PerRecord`] | over chunks; outputs are concatenated | `grep`, `cut` |
//! | [`Class::Combinable`] | over chunks; outputs are combined in another way | `sort`, `wc` |
//! | [`Class::Nothing`] | not at all, since it only forwards its input | `cat` |
//! | [`Class::Opaque`] | alone, over the whole input | `tac` |

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

/// A command to classify, with the environment that it runs in.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The command. Input files that the plan opens have been removed from its arguments.
    pub simple: &'a Simple,
    /// The programs on the machine, and the locale.
    pub environment: &'a Environment,
}

/// How a command can run over chunks of its input.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a pipeline has a handful of them")]
pub enum Class {
    /// A command that handles each record independently.
    PerRecord(PerRecord),
    /// A command whose outputs over chunks can be combined.
    Combinable(Combinable),
    /// A command that only forwards its input.
    Nothing,
    /// A command that runs alone. The reason completes the sentence "it runs alone, since …".
    Opaque(Cow<'static, str>),
}

/// A command that handles each record independently.
#[derive(Debug, Clone, PartialEq)]
pub struct PerRecord {
    /// Where the input may be cut.
    pub cut: Cut,
    /// The precondition on every chunk.
    pub guard: Guard,
    /// The arguments for a run over a chunk; `None` if they are the original ones.
    pub arguments: Option<Vec<Word>>,
    /// The exit codes that are not failures.
    pub status: StatusRule,
    /// Whether output to a terminal differs from output to a pipe, for example in colours.
    pub output_depends_on_tty: bool,
    /// Whether the command may fail because of its input even if the guard holds.
    pub may_fail: bool,
    /// Whether the output for a record is either the unchanged record or nothing.
    pub selects: bool,
    /// Whether the command produces output for empty input. If so, it must not follow a stage that
    /// can empty a chunk.
    pub writes_on_empty_input: bool,
    /// Whether input that the guard rejects may change the output for earlier records. If so, the
    /// whole input must be checked first, or must be readable again.
    pub looks_back: bool,
    /// Whether the output for ASCII input is the same in the C locale, where the command is faster.
    pub ascii_in_c: bool,
    /// Properties of the output.
    pub output: Output,
    /// The operator that can replace the process, if there is one.
    pub operator: Option<Operator>,
}

/// A command whose outputs over chunks can be combined.
#[derive(Debug, Clone, PartialEq)]
pub struct Combinable {
    /// The command as it runs over one chunk.
    pub each: PerRecord,
    /// How the outputs of the chunks are combined.
    pub combine: Combine,
    /// Whether chunks may be concatenated in any order before the command processes them.
    pub any_order: bool,
    /// Whether the output is independent of the order of the records in the input.
    pub ignores_order: bool,
    /// Whether the order of the output is unspecified. If so, only a command that ignores order may
    /// follow.
    pub order_unknown: bool,
}

/// Properties of a command's output for input that satisfies its guard.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Output {
    /// The format of the output's records, if each record of the input ends where a record of the
    /// output ends; `None` if the output cannot be cut. A record of [`Records::Json`] or
    /// [`Records::Csv`] ends at the end of a line.
    pub records: Option<Records>,
    /// Whether the output is UTF-8 if the input is.
    pub keeps_utf8: bool,
    /// Bytes that the output may contain although the input does not.
    pub adds: ByteSet,
    /// Whether the output is ASCII if the input is, whatever `adds` contains.
    pub ascii_of_ascii: bool,
    /// The image of each byte, if the output consists of exactly the images of the input's bytes.
    pub map: Option<[u8; 256]>,
}

impl Output {
    /// The properties of output whose lines consist of whole characters of the input's lines. Such
    /// output adds no bytes, not even a newline that the input's last line lacks; compare
    /// [`Self::of`].
    pub const LINES: Self = Self {
        records: Some(Records::Lines),
        keeps_utf8: true,
        adds: ByteSet::EMPTY,
        ascii_of_ascii: false,
        map: None,
    };

    /// Returns whether the output is certainly ASCII if the input is.
    pub fn keeps_ascii(&self) -> bool {
        self.ascii_of_ascii || self.adds.iter().all(|byte| byte.is_ascii())
    }

    /// Returns the properties of records that consist of whole characters of the input's records. If
    /// the input's last record lacks its separator, the output adds it.
    pub fn of(records: Records) -> Self {
        // The last record of the input may lack its separator, which the output then adds.
        let adds = ByteSet::from_iter([records.separator()]);
        Self { records: Some(records), adds, ..Self::LINES }
    }

    /// The properties of output of which nothing is known.
    pub const ANYTHING: Self =
        Self { records: None, adds: ByteSet::ALL, keeps_utf8: false, ..Self::LINES };
}

impl PerRecord {
    /// Returns the class of a command that accepts any input, never fails because of it, and writes
    /// only parts of the input's records.
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
    /// Returns the class of a command that runs over the chunks in order. `combine` defines how its
    /// outputs are combined.
    fn ordered(each: PerRecord, combine: Combine) -> Self {
        Self { each, combine, any_order: false, ignores_order: false, order_unknown: false }
    }

    /// Returns the class of a command that ignores the order of its input, and so of the chunks.
    /// `combine` defines how its outputs are combined.
    fn unordered(each: PerRecord, combine: Combine) -> Self {
        Self { each, combine, any_order: true, ignores_order: true, order_unknown: false }
    }
}

/// The reason why a command runs alone, worded for users.
type Reason = Cow<'static, str>;

/// A class, or the reason why the command cannot be classified.
type Finding = Result<Class, Reason>;

/// A function that classifies a command.
type Classifier = fn(&Subject<'_>) -> Finding;

/// The functions that classify commands, by the commands' names.
const TABLE: &[(&[&str], Classifier)] = &[
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

/// Environment variables that select a locale.
const LOCALE_VARIABLES: &[&str] = &[
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LANG",
];
/// Other environment variables that may be set for a command: the directory for temporary files, and the time zone.
const OTHER_VARIABLES: &[&str] = &["TMPDIR", "TZ"];

/// Returns whether a command of the given name, which may be a path, may run faster over chunks.
pub fn may_gain(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let trifles = ["cat", "head", "tail"];
    !trifles.contains(&name) && TABLE.iter().any(|(names, _)| names.contains(&name))
}

/// Returns whether a command of the given name, which has no directory, can be classified.
pub fn is_known(name: &str) -> bool {
    TABLE.iter().any(|(names, _)| names.contains(&name))
}

/// Classifies a command. A command without a proof is opaque.
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

/// Returns the class of a command that the user has declared to handle each record independently.
/// No other property is assumed.
pub fn annotated(records: Records) -> Class {
    let output = Output { records: Some(records), ..Output::ANYTHING };
    Class::PerRecord(PerRecord { may_fail: true, output, ..PerRecord::new(records) })
}

impl Subject<'_> {
    /// Checks that the environment does not change how arguments are parsed, and that the effects
    /// of all variables set for the command are known.
    fn is_plain(&self) -> Result<(), Reason> {
        if self.environment.changes_argument_parsing {
            return Err("a variable such as `POSIXLY_CORRECT` is set".into());
        }
        let is_known =
            |name: &str| LOCALE_VARIABLES.contains(&name) || OTHER_VARIABLES.contains(&name);
        let other = self.simple.variables.iter().find(|(name, _)| !is_known(name));
        other.map_or(Ok(()), |(name, _)| Err(format!("the effect of `{name}=` is unknown").into()))
    }

    /// Checks that the program is the implementation that the proof covers.
    fn is_by(&self, maker: Maker) -> Result<(), Reason> {
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

    fn encoding(&self) -> Result<Encoding, Reason> {
        self.environment.encoding(self.simple).ok_or_else(|| {
            let locale = self.environment.ctype(self.simple);
            format!("the encoding of the locale `{locale}` is unknown").into()
        })
    }

    /// Returns whether the command decodes its input as UTF-8. Fails if the encoding is unknown.
    fn needs_utf8(&self) -> Result<bool, Reason> {
        Ok(self.encoding()? == Encoding::Utf8)
    }

    /// Returns whether the command reads numbers as in the C locale.
    fn has_plain_numbers(&self) -> bool {
        self.environment.has_plain_numbers(self.simple)
    }

    /// Checks that the command orders and compares lines by their bytes.
    fn orders_by_bytes(&self) -> Result<(), Reason> {
        if self.environment.orders_by_bytes(self.simple) {
            return Ok(());
        }
        Err("in this locale, different lines may compare as equal".into())
    }

    /// Returns whether the command may treat multibyte characters as blanks, or change their case.
    fn knows_characters(&self) -> bool {
        let environment = self.environment;
        environment.is_multibyte(self.simple)
            && environment.knows_characters(&self.simple.program.text)
    }

    /// Returns which constructs the regular expressions contain. Returns `None` unless the encoding
    /// is UTF-8 and the expressions certainly match the same ASCII text in the C locale.
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

    /// Parses the command's options. Fails if one is not in `table`, or is in `refused` with a
    /// reason.
    fn options(&self, table: &Table, refused: &[(char, &'static str)]) -> Result<Options, Reason> {
        let unknown = "one of its options is not supported";
        let options = Options::read(&self.simple.arguments, table).ok_or(unknown)?;
        refuse(&options, refused)?;
        Ok(options)
    }

    /// Checks that the operands, given as indices of arguments, make the command read standard
    /// input and nothing else.
    fn reads_standard_input(&self, operands: &[usize]) -> Result<(), Reason> {
        match operands {
            [] => Ok(()),
            &[place] if self.simple.arguments[place].text == "-" => Ok(()),
            _ => Err("it reads files named in its arguments".into()),
        }
    }

    /// Returns a command with the same variables and the given program and arguments. The planner
    /// sets its stage.
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

/// Checks that no given option is in `refused`. The error is the reason that `refused` gives for
/// the first such option.
fn refuse(options: &Options, refused: &[(char, &'static str)]) -> Result<(), Reason> {
    let reason = |(letter, _): &(char, Option<String>)| {
        refused.iter().find(|(other, _)| other == letter).map(|(_, reason)| *reason)
    };
    options.given.iter().find_map(reason).map_or(Ok(()), |reason| Err(reason.into()))
}

/// Returns whether a file is regular, and so can be read repeatedly.
fn is_regular_file(name: &str) -> bool {
    std::fs::metadata(name).is_ok_and(|data| data.is_file())
}

/// Returns whether a string is not empty and consists of decimal digits.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the printable ASCII characters.
fn printable() -> ByteSet {
    ByteSet::of(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod differential;

#[cfg(test)]
mod tests {
    use super::*;
    use contend_commands::testing::simple;

    /// Returns the class of a command in the given locale, on a machine that has all programs.
    pub(super) fn class_in(text: &str, locale: &str) -> Class {
        let environment = Environment::for_tests(locale);
        classify(&Subject { simple: &simple(text), environment: &environment })
    }

    pub(super) fn class(text: &str) -> Class {
        class_in(text, "C.UTF-8")
    }

    /// Asserts that each command handles each record independently.
    pub(super) fn all_per_record(texts: &[&str]) {
        for text in texts {
            let class = class(text);
            assert!(matches!(class, Class::PerRecord(_)), "{text}: {class:?}");
        }
    }

    /// Returns the class of a command, and panics unless it handles each record independently.
    pub(super) fn per_record(text: &str) -> PerRecord {
        match class(text) {
            Class::PerRecord(class) => class,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Returns the class of a command, and panics unless its outputs can be combined.
    pub(super) fn combinable(text: &str) -> Combinable {
        match class(text) {
            Class::Combinable(class) => class,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Asserts that each command is opaque, for a reason that contains the given string.
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
    fn other_programs_of_a_known_name_are_opaque() {
        all_opaque(&[
            ("X=1 sort", "`X=`"),
            ("POSIXLY_CORRECT=1 sort", "`POSIXLY_CORRECT=`"),
            ("./sort", "`./sort` is unknown"),
            ("/bin/sort", "is not GNU's"),
            ("my-filter", "is unknown"),
        ]);
        let otherwise =
            Environment { changes_argument_parsing: true, ..Environment::for_tests("C") };
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
