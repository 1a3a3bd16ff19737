//! Classifies `grep`, which handles each line independently, unless an option makes the output
//! depend on other lines.

use contend_commands::grep::{Grep, Syntax};
use contend_shell::environment::{Encoding, Maker};

use super::{
    Class, Combinable, Finding, Output, PerRecord, Reason, Subject, is_number, is_regular_file,
    refuse,
};
use crate::plan::ir::{ByteSet, Column, Combine, Cut, Guard, Numbers, Records, StatusRule};

const CONTEXT: &str = "it also writes lines around matches";
const REFUSED: &[(char, &str)] = &[
    ('n', "`-n` numbers lines"),
    ('b', "`-b` counts the bytes before each line"),
    ('A', CONTEXT),
    ('B', CONTEXT),
    ('C', CONTEXT),
    ('q', "`-q` ends at the first match"),
    ('l', "`-l` ends at the first match"),
    ('L', "`-L` ends at the first match"),
    ('r', "it searches for files to read"),
    ('R', "it searches for files to read"),
];

/// Options that keep lines independent, such as those that affect which lines match, or which part
/// of a line is written.
const PER_LINE: &str = "EFGPefiyvwxsahoUz\u{2}\u{6}\u{7}";

const COLOUR: char = '\u{2}';

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let grep =
        Grep::read_with_files(subject.simple).ok_or("one of its options is not supported")?;
    let options = &grep.options;
    refuse(options, REFUSED)?;
    if grep.files.iter().any(|file| file.text != "-") || grep.files.len() > 1 {
        return Err("it reads files named in its arguments".into());
    }
    if !options.values('f').all(is_regular_file) {
        return Err("the file of `-f` cannot be re-read".into());
    }
    if !options.has_only(&format!("{PER_LINE}cm")) {
        return Err("one of its options is not supported".into());
    }
    let each = per_record(subject, &grep)?;
    match (options.has('c'), options.value('m')) {
        (false, None) => Ok(Class::PerRecord(each)),
        (true, None) => {
            let columns = Numbers { columns: vec![Column::Sum], width: 1 };
            let adds = ByteSet::from_iter(*b"0123456789\n");
            let output = Output { adds, ..Output::of(Records::Lines) };
            let each = PerRecord { output, ..each };
            let class = Combinable::unordered(each, Combine::Numbers(columns));
            Ok(Class::Combinable(class))
        }
        (false, Some(count)) => first_matches(subject, &grep, each, count),
        (true, Some(_)) => Err("`-m` stops counting early".into()),
    }
}

fn per_record(subject: &Subject<'_>, grep: &Grep) -> Result<PerRecord, Reason> {
    let options = &grep.options;
    let encoding = subject.encoding()?;
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let as_text = grep.reads_anything_as_text();
    if records == Records::Nul && !as_text {
        return Err(
            "with `-z`, whether its input is text depends on all of it (`-a` avoids that)".into()
        );
    }
    let colours = options.value(COLOUR).or(options.has(COLOUR).then_some("auto"));
    if colours.is_some_and(|when| !["auto", "tty", "if-tty", "never", "no", "none"].contains(&when))
    {
        return Err("its output with colours is unknown".into());
    }
    // After a line that is not text, grep only reports that there is a match.
    let without = if as_text { ByteSet::EMPTY } else { ByteSet::from_iter([0]) };
    // The Perl matcher checks the encoding beyond the current line.
    let utf8 = encoding == Encoding::Utf8 && (!as_text || grep.syntax == Syntax::Perl);
    // Only a matcher of bytes can write a part of a character.
    let keeps_utf8 = !options.has('o') || encoding == Encoding::Utf8 && grep.syntax != Syntax::Perl;
    Ok(PerRecord {
        cut: Cut::between(records),
        guard: Guard { without, utf8, ..Guard::NONE },
        status: StatusRule::Matches,
        output_depends_on_tty: colours
            .is_some_and(|when| when.ends_with("to") || when.ends_with("tty")),
        may_fail: grep.syntax == Syntax::Perl || refers_back(grep),
        selects: grep.is_plain_filter(),
        ascii_in_c: is_faster_in_c(subject, grep),
        output: Output { keeps_utf8, ..Output::of(records) },
        ..PerRecord::new(records)
    })
}

/// Returns whether grep certainly has the same result for ASCII in the C locale, and is faster
/// there.
fn is_faster_in_c(subject: &Subject<'_>, grep: &Grep) -> bool {
    let extended = match grep.syntax {
        Syntax::Basic => false,
        Syntax::Extended => true,
        Syntax::Fixed | Syntax::Perl => return false,
    };
    let options = &grep.options;
    let patterns = grep.patterns.iter().map(|pattern| pattern.text.as_str());
    options.has_only("EGevhaocm")
        && subject.same_in_c(patterns, extended).is_some_and(|it| options.has('o') || it.sets)
}

/// Returns whether a pattern may contain back-references, which may need unbounded memory or time.
fn refers_back(grep: &Grep) -> bool {
    let digit = |pair: &[u8]| pair[0] == b'\\' && pair[1].is_ascii_digit();
    grep.options.has('f')
        || grep.patterns.iter().any(|pattern| pattern.text.as_bytes().windows(2).any(digit))
}

/// Classifies `grep -m`: the first matches of the input are among the first matches of its chunks.
fn first_matches(subject: &Subject<'_>, grep: &Grep, each: PerRecord, count: &str) -> Finding {
    if grep.options.has('o') {
        return Err("`-m` with `-o` stops in the middle of its output".into());
    }
    if !is_number(count) {
        return Err("the meaning of `-m` is unknown here".into());
    }
    let zero = grep.options.has('z').then_some("-z");
    let head = subject.command("head", zero.into_iter().chain(["-n", count]));
    Ok(Class::Combinable(Combinable::ordered(each, Combine::Through(head))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, class_in, combinable, per_record};
    use super::*;

    #[test]
    fn plain_searches_are_per_record() {
        all_per_record(&[
            "grep x",
            "grep -v x -",
            "egrep -iw 'a|b'",
            "fgrep -x -e a -e b",
            "grep -o '[a-z]*'",
            "grep -P '(?<=a)b'",
            "grep '\\(a\\)\\1'",
            "grep -az x",
            "grep --color=auto x",
            "grep -f /etc/passwd",
        ]);
        let class = per_record("grep x");
        assert_eq!((class.status, class.may_fail), (StatusRule::Matches, false));
        assert!(class.guard.utf8 && class.guard.without.contains(0));
        assert!(per_record("grep -a x").guard.is_none());
        assert!(per_record("grep '\\(a\\)\\1'").may_fail && per_record("grep -P x").may_fail);
        assert!(per_record("grep --color x").output_depends_on_tty);
        assert!(!per_record("grep --color=never x").output_depends_on_tty);
        assert_eq!(per_record("grep -az x").cut.records, Records::Nul);
    }

    #[test]
    fn single_bytes_need_no_encoding_but_may_be_cut_out() {
        let Class::PerRecord(class) = class_in("grep -o .", "C") else { panic!("per record") };
        assert!(!class.guard.utf8 && !class.output.keeps_utf8);
        assert!(per_record("grep -o .").output.keeps_utf8);
        assert!(matches!(class_in("grep x", "ja_JP.eucJP"), Class::Opaque(_)));
        assert!(matches!(class_in("grep x", "de_DE.UTF-8"), Class::PerRecord(_)));
    }

    #[test]
    fn counts_and_first_matches_are_put_together() {
        let counted = combinable("grep -c x");
        assert!(counted.any_order && counted.ignores_order);
        let first = combinable("LC_ALL=C grep -m 3 x");
        let Combine::Through(head) = &first.combine else { panic!("{first:?}") };
        assert_eq!((head.program.as_str(), head.arguments.join(" ")), ("head", "-n 3".into()));
        assert_eq!(head.variables, [("LC_ALL".into(), "C".into())]);
        assert!(!first.any_order && !first.ignores_order);
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("grep -n x", "`-n` numbers"),
            ("grep -b x", "`-b`"),
            ("grep -A1 x", "around"),
            ("grep -C 1 x", "around"),
            ("grep -q x", "`-q`"),
            ("grep -l x", "`-l`"),
            ("grep -r x", "it searches for files to read"),
            ("grep -cm1 x", "`-m`"),
            ("grep -om1 x", "`-o`"),
            ("grep -m -1 x", "`-m`"),
            ("grep -z x", "`-z`"),
            ("grep --color=always x", "colours"),
            ("grep -f -", "`-f`"),
            ("grep -f /nonexistent", "`-f`"),
            ("grep x f", "it reads files named in its arguments"),
            ("grep -H x", "options"),
            ("grep --newfangled x", "options"),
        ]);
    }
}
