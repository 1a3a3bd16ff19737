//! Parses `awk` commands and programs, and analyzes what the programs do.
//!
//! ```text
//! text ──lexer──> tokens ──grammar, expressions──> ast::Program ──> names  declarations
//!                                                    │
//!                   reach  side effects           <──┤
//!                   state  independent records    <──┤
//!                   sums   totals by chunk        <──┴──> derived  programs
//! ```
//!
//! `state` and `sums` share `checks` (forbidden constructs), the definite assignment analysis in
//! `flow`, `values` and `additions`, `traits` (properties of the output) and `rejection` (reasons
//! for errors). `parser` holds the parser's state, and `walk` traverses the tree.
//!
//! - [`grammar`] parses a program into a tree ([`ast`]), or says why it cannot.
//! - [`reach`] detects effects other than reading input and printing.
//! - [`state`] proves that each record is processed independently.
//! - [`sums`] recognizes programs that compute totals, and writes programs that compute them chunk
//!   by chunk.

mod additions;
pub mod ast;
mod checks;
mod derived;
#[cfg(test)]
mod differential;
mod expressions;
mod flow;
pub mod grammar;
mod lexer;
mod names;
mod parser;
pub mod reach;
mod rejection;
pub mod state;
pub mod sums;
mod traits;
mod values;
mod walk;

pub use ast::Program;
pub use rejection::Rejection;

use super::options::{Options, Table};
use super::{Simple, Word};

/// The options that all implementations share.
const TABLE: Table = Table { short: "F:v:f:", long: &[] };

/// Names of awk implementations, besides `busybox awk`.
const IMPLEMENTATIONS: &[&str] = &["awk", "mawk", "gawk", "nawk", "original-awk"];

/// An `awk` whose program is in its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awk {
    /// The program source.
    pub program: String,
    /// The argument of `-F`, if it is given.
    pub separator: Option<String>,
    /// The arguments of `-v`: names and values as written, in order.
    pub assignments: Vec<(String, String)>,
    /// The operands after the program: input files and assignments.
    pub operands: Vec<Word>,
    /// The command's arguments, without the `awk` of `busybox awk`.
    pub arguments: Vec<Word>,
}

impl Awk {
    /// Parses the command as [`Self::given`] does. Also returns `None` if the program cannot be
    /// parsed, or may do more than read its input and print what depends on that alone: start
    /// programs, redirect output, use `getline` or the environment, or print values that differ
    /// from run to run.
    pub fn read(simple: &Simple) -> Option<Self> {
        Self::given(simple).filter(|awk| !reach::does_more(&awk.program))
    }

    /// Parses the command, regardless of what its program does. Returns `None` if it is not an awk,
    /// has an unknown option, has no program among its arguments, or has a `-v` without an
    /// assignment.
    pub fn given(simple: &Simple) -> Option<Self> {
        let arguments = own_arguments(simple)?;
        // Options end at the program. Later arguments that look like options are operands.
        let program_at = program_place(&arguments)?;
        let options = Options::read(&arguments[..program_at], &TABLE)?;
        if options.has('f') || !options.operands.is_empty() {
            return None;
        }
        let assignments = options.values('v').map(assignment).collect::<Option<_>>()?;
        Some(Self {
            program: arguments[program_at].text.clone(),
            separator: options.value('F').map(str::to_owned),
            assignments,
            operands: arguments[program_at + 1..].to_vec(),
            arguments,
        })
    }

    /// Parses the program source.
    ///
    /// # Errors
    /// Fails with [`Rejection::Unread`] if the program has a syntax error or a construct that is
    /// unknown or ambiguous, or is nested too deeply.
    pub fn parsed(&self) -> Result<Program, Rejection> {
        Program::read(&self.program)
    }

    /// Returns whether the program certainly writes nothing and waits for nothing before it reads
    /// its input.
    pub fn reads_first(&self) -> bool {
        self.parsed().is_ok_and(|program| checks::begins(&program).is_ok())
    }

    /// Returns the names of the variables that the arguments assign: by `-v`, and by operands such
    /// as `n=3`.
    pub fn assigned(&self) -> Vec<&str> {
        let operands = self.operands.iter().filter_map(|word| {
            let (name, _) = word.text.split_once('=')?;
            is_name(name).then_some(name)
        });
        self.assignments.iter().map(|(name, _)| name.as_str()).chain(operands).collect()
    }
}

/// Parses `name=value`. Returns `None` if there is no `=`, or if the text before it is not a name
/// in awk's syntax.
fn assignment(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    is_name(name).then(|| (name.to_owned(), value.to_owned()))
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the arguments of an awk, without the `awk` of `busybox awk`. Returns `None` for any
/// other command.
fn own_arguments(simple: &Simple) -> Option<Vec<Word>> {
    match (simple.name(), simple.arguments.split_first()) {
        ("busybox", Some((first, rest))) if first.text == "awk" => Some(rest.to_vec()),
        (name, _) if IMPLEMENTATIONS.contains(&name) => Some(simple.arguments.clone()),
        _ => None,
    }
}

/// Returns the arguments of an awk whose program is in files, without the `awk` of `busybox awk`.
/// Returns `None` unless all of these hold:
/// - the program files exist and are regular files;
/// - all implementations have the options, and no option follows an operand;
/// - the program certainly neither writes files nor starts other programs, except commands whose
///   output `getline` reads.
pub fn with_program_files(simple: &Simple) -> Option<Vec<Word>> {
    let arguments = own_arguments(simple)?;
    let options = Options::read(&arguments, &TABLE)?;
    let first = arguments.len() - options.operands.len();
    let last = options.operands.iter().copied().eq(first..arguments.len());
    let readable =
        options.values('f').all(|file| std::fs::metadata(file).is_ok_and(|d| d.is_file()));
    let named = options.has('f') && readable && last;
    (named && !super::writing::writes_by_itself(simple)).then_some(arguments)
}

/// Returns the index of the program, which is the first argument that is neither an option nor an
/// option's argument, or `None` if there is no such argument.
fn program_place(arguments: &[Word]) -> Option<usize> {
    let mut index = 0;
    loop {
        let text = arguments.get(index)?.text.as_str();
        match text {
            "--" => return (index + 1 < arguments.len()).then_some(index + 1),
            "-F" | "-v" | "-f" => index += 2,
            text if text.starts_with('-') && text.len() > 1 => index += 1,
            _ => return Some(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn program_options_and_operands_are_parsed() {
        let awk = Awk::read(&simple("awk -F: -v n=3 '$3 > n { print $1 }' /etc/passwd x=1"));
        let awk = awk.expect("understood");
        assert_eq!(awk.program, "$3 > n { print $1 }");
        assert_eq!((awk.separator.as_deref(), awk.operands.len()), (Some(":"), 2));
        assert_eq!(awk.assignments, [("n".to_owned(), "3".to_owned())]);
        assert_eq!(awk.assigned(), ["n", "x"]);
        assert!(awk.parsed().is_ok());
        let reaches = Awk::given(&simple("awk '{ system($1) }'")).expect("whatever it does");
        assert_eq!(
            state::per_record(&reaches.parsed().expect("read"), &[]),
            Err(Rejection::ReachesOut("system".to_owned()))
        );
        assert_eq!(Awk::given(&simple("awk -v 1=x 1")), None);
        let busybox = Awk::read(&simple("busybox awk '{ print $2 }'")).expect("understood");
        assert_eq!(busybox.arguments.len(), 1);
        assert!(Awk::read(&simple("/usr/bin/mawk 'a || b { s += $1 } END { print s }'")).is_some());
    }

    #[test]
    fn writing_to_standard_error_is_no_side_effect() {
        let more = |text: &str| crate::writing::writes_by_itself(&simple(text));
        for text in [
            "awk '{ print \"x\" > \"/dev/stderr\" }'",
            "awk '{ if ($1 > 3) print >>\"/dev/stdout\"; n++ }'",
        ] {
            assert!(!more(text), "{text}");
        }
        for text in [
            "awk '{ print > \"/dev/stderr\" $1 }'",
            "awk '{ print > \"/dev/stderr\"; print > \"f\" }'",
            "awk '{ print > \"/dev/sda\" }'",
        ] {
            assert!(more(text), "{text}");
        }
    }

    #[test]
    fn programs_that_do_more_are_not_read() {
        for text in [
            "awk -f prog.awk",
            "awk '{ system($1) }'",
            "awk '{ print > $1 }'",
            "awk '{ print $1 | \"sort\" }'",
            "awk '{ getline x; print x }'",
            "awk '{ print rand() }'",
            "awk",
            "awk -W x y",
            "busybox sed p",
            "awk --lint x",
            "awk '{ printf(\"a\") >> \"f\" }'",
            "awk '{ print \"a;\" $0 > \"f\" }'",
            "awk '{ print \"\\\\\" >> \"f\" }'",
            "awk '{ print /\\(/ >> \"f\" }'",
            "awk '{ print 1,\n2 >> \"f\" }'",
            "awk '{ print 1 \\\n> \"f\" }'",
            "awk '{ print a[1] > \"f\" }'",
            "awk '{ \"date\" | getline x }'",
            "awk '{ print | \"sort\" }'",
            "awk '{ print \"a' f",
            "awk '/[/]/ { print }'",
            "awk '{ print 1 &&\n2 >> \"f\" }'",
            "awk '{ print 1,\n\n2 >> \"f\" }'",
            "awk '{ m = n++ / 2; print NR >> \"f\"; k = n / 2; print }'",
            "awk '{ if (x) /\"/; print 1 > \"f\"; y = \"\" }'",
            "awk '{ exit /\"/; print 1 > \"f\" }'",
            "awk -i inplace '{ print }' f",
        ] {
            assert_eq!(Awk::read(&simple(text)), None, "{text}");
        }
        for text in [
            "awk '{ print ($1 > 2) \">\" }'",
            "awk '$1 > 2 { print $2 / 3 \"|\" } # > system'",
            "awk '/a>b/ { n++ } n > 3 || m; END { print n }'",
            "awk '{ gsub(/[a-z]+>/, \"x\"); print; if ($1 > 2) print }'",
            "awk -F '[= ]' '{ s += $10; n++ } END { print s / n }'",
            "awk '{ print a[$1 > 2] }'",
            "awk '{ s += ($1 + $2) / 2; t = (s) / 4 } END { print s / (t + 1) }'",
            "awk '{ print $1\n if ($2 > 3) n++\n}'",
            "awk '{ if (/a\"b/) n++ } END { print n / 2 \"/\" }'",
        ] {
            assert!(Awk::read(&simple(text)).is_some(), "{text}");
        }
    }
}
