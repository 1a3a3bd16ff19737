//! Classifies `xargs`, which can run over chunks if it starts one command for each item or line.

use contend_commands::options::{Options, Table};
use contend_commands::purity::is_pure;
use contend_commands::{Simple, Word};
use contend_shell::environment::Maker;

use super::{Class, Finding, Output, PerRecord, Subject, refuse};
use crate::plan::ir::{ByteSet, Cut, Guard, Records};

const TABLE: Table = Table {
    short: "0a:d:E:e::I:i::L:l::n:P:prs:tx",
    long: &[
        ("null", '0'),
        ("arg-file", 'a'),
        ("delimiter", 'd'),
        ("eof", 'e'),
        ("replace", 'i'),
        ("max-lines", 'l'),
        ("max-args", 'n'),
        ("max-procs", 'P'),
        ("interactive", 'p'),
        ("no-run-if-empty", 'r'),
        ("max-chars", 's'),
        ("verbose", 't'),
        ("exit", 'x'),
    ],
};

const MARKS: &str = "it stops at a word in its input";
const REFUSED: &[(char, &str)] = &[
    ('a', "`-a` reads a file"),
    ('E', MARKS),
    ('e', MARKS),
    ('p', "`-p` asks before each command"),
    ('t', "`-t` writes each command to standard error"),
    ('s', "how it groups items depends on the whole input"),
];

/// Commands that may run twice, whatever their arguments, in addition to those that [`is_pure`]
/// accepts. None has side effects, except `file -C`, which writes the same file again.
const HARMLESS: &[&str] =
    &["basename", "dirname", "echo", "file", "ls", "printf", "readlink", "realpath", "stat"];
/// Commands whose output to a terminal differs from that to a pipe.
const TTY_DEPENDENT: &[&str] = &["egrep", "fgrep", "grep", "jq", "ls"];
/// Commands that have side effects only with certain arguments. An item may be such an argument.
const CONDITIONALLY_PURE: &[&str] =
    &["awk", "busybox", "gawk", "mawk", "nawk", "original-awk", "sed", "sort"];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let arguments = &subject.simple.arguments;
    let (options, place) =
        Options::read_leading(arguments, &TABLE).ok_or("one of its options is not supported")?;
    refuse(&options, REFUSED)?;
    if options.values('P').any(|count| count != "1") {
        return Err("with `-P` its output has no defined order".into());
    }
    let command = &arguments[place..];
    if !is_harmless(command) {
        return Err("the command that it starts is unknown".into());
    }
    let (cut, guard) = items(&options)?;
    let output = Output::ANYTHING;
    let writes_on_empty_input = !may_get_nothing(&options);
    let output_depends_on_tty =
        command.first().is_some_and(|it| TTY_DEPENDENT.contains(&it.text.as_str()));
    let class = PerRecord { guard, writes_on_empty_input, output, ..PerRecord::new(cut.records) };
    Ok(Class::PerRecord(PerRecord { cut, may_fail: true, output_depends_on_tty, ..class }))
}

/// Returns whether `xargs` starts no command if there is no item.
fn may_get_nothing(options: &Options) -> bool {
    replaces(options) || options.has('r')
}

/// Returns whether `xargs` with the given arguments starts a command for every item, or for every
/// line.
pub(crate) fn starts_one_each(arguments: &[String]) -> bool {
    let words: Vec<Word> = arguments.iter().map(Word::new).collect();
    Options::read_leading(&words, &TABLE)
        .is_some_and(|(options, _)| replaces(&options) || is_one_each(&options))
}

fn is_one_each(options: &Options) -> bool {
    options.value('n') == Some("1") || options.value('L') == Some("1")
}

fn replaces(options: &Options) -> bool {
    options.has('I') || options.has('i')
}

/// Returns where the input may be cut without splitting an item, and the precondition on chunks.
/// Fails unless there is one command for each item or line, and the separator of items is known.
fn items(options: &Options) -> Result<(Cut, Guard), &'static str> {
    let per_item = options.value('n') == Some("1");
    let ways = [replaces(options), options.has('n'), options.has('L'), options.has('l')];
    if !(is_one_each(options) || replaces(options))
        || ways.into_iter().filter(|given| *given).count() > 1
    {
        return Err("how it groups items depends on the whole input");
    }
    let nul = ByteSet::from_iter([0]);
    match (options.has('0'), options.value('d')) {
        (true, None) => Ok((Cut::between(Records::Nul), Guard::NONE)),
        (false, Some("\n" | "\\n")) => {
            Ok((Cut::between(Records::Lines), Guard { without: nul, ..Guard::NONE }))
        }
        (false, None) => {
            let quotes = ByteSet::from_iter(*b"\"'\\\0");
            // A line that ends in a blank continues in the next non-empty line.
            let blanks = ByteSet::from_iter(*b" \t\n\r\x0b\x0c");
            let torn = if per_item { ByteSet::EMPTY } else { blanks };
            let mut cut = Cut { before: torn.complement(), ..Cut::between(Records::Lines) };
            if !may_get_nothing(options) {
                // Every chunk has an item, and so has the remaining input after a rejected chunk.
                cut.before = blanks.complement();
                cut.after = blanks.union(quotes).complement();
            }
            Ok((cut, Guard { without: quotes, ..Guard::NONE }))
        }
        _ => Err("its item separator cannot be parsed"),
    }
}

/// Returns whether the command certainly has no side effects with an item added.
fn is_harmless(command: &[Word]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return true };
    let arguments = arguments.iter().cloned().chain([Word::new("x")]).collect();
    let simple = Simple { variables: Vec::new(), program: program.clone(), arguments, input: None };
    let name = simple.name();
    HARMLESS.contains(&name) || !CONDITIONALLY_PURE.contains(&name) && is_pure(&simple)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, per_record};
    use super::*;

    #[test]
    fn one_command_an_item() {
        all_per_record(&[
            "xargs -r -n 1 wc -l",
            "xargs -n1 wc",
            "xargs -rL1 file",
            "xargs -I{} basename {} .c",
            "xargs -i cat {}",
            "xargs -r0n1 md5sum",
            "xargs -r -d '\\n' -n1 -P1 dirname",
            "xargs -rn1",
        ]);
        let class = per_record("xargs -rL 1 file");
        assert!(class.guard.without.contains(b'\\') && !class.cut.before.contains(b' '));
        assert!(!class.cut.before.contains(b'\n'));
        assert!(per_record("xargs -rn1 file").cut.before.is_all());
        assert!(class.cut.after.is_all());
        assert_eq!(class.output.records, None);
        for always in ["xargs -n1 file", "xargs -L1 file"] {
            let cut = per_record(always).cut;
            assert!(!cut.before.contains(b' ') && !cut.after.contains(b'\n'), "{always}");
            assert!(!cut.after.contains(b'\\'), "nothing may be behind it");
        }
        assert!(per_record("xargs -0n1 file").cut.after.is_all(), "nothing is an item, too");
        assert_eq!(per_record("xargs -0 -I% file %").cut.records, Records::Nul);
        assert!(!per_record("xargs -d '\\n' -I% file %").guard.without.contains(b'\\'));
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("xargs", "how it groups items depends on the whole input"),
            ("xargs -r wc", "how it groups items depends on the whole input"),
            ("xargs -rn 2 wc", "how it groups items depends on the whole input"),
            ("xargs -n1 -I{} wc {}", "how it groups items depends on the whole input"),
            ("xargs -rn1 -P2 wc", "`-P`"),
            ("xargs -rn1 rm", "the command that it starts is unknown"),
            ("xargs -rn1 sh -c x", "is unknown"),
            ("xargs -rn1 sort", "is unknown"),
            ("xargs -rn1 -d, wc", "item separator"),
            ("xargs -rtn1 wc", "`-t`"),
            ("xargs -a f -rn1 wc", "`-a`"),
            ("xargs -rn1 --show-limits wc", "options"),
        ]);
    }
}
