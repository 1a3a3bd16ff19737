//! Classifies `sed`: scripts without state between records are per record.

use contend_commands::options::Options;
use contend_commands::sed::script::{Delimiters, Function, Regex, Script};
use contend_commands::sed::state::{self, Rejection};
use contend_commands::sed::{TABLE, given};
use contend_shell::environment::{Encoding, Maker};

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::plan::ir::{ByteSet, Records};

/// Maximum length of a script file in bytes; a longer one is not read.
const MAX_SCRIPT_BYTES: u64 = 1 << 20;

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let multibyte = subject.encoding()? == Encoding::Utf8;
    let proof = state::of_command(subject.simple, multibyte, contents);
    let proof = proof.map_err(|Rejection(why)| why)?;
    let options = Options::read(&subject.simple.arguments, &TABLE).unwrap_or_default();
    let names_files = "it reads files named in its arguments";
    let (script, files) = given(subject.simple, &options, contents).ok_or(names_files)?;
    if files.iter().any(|file| file.text != "-") || files.len() > 1 {
        return Err(names_files.into());
    }
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let adds = if proof.writes_at_most_its_line {
        ByteSet::from_iter([records.separator()])
    } else {
        ByteSet::of(|byte| byte != 0 || proof.may_write_nul || records == Records::Nul)
    };
    let ascii_in_c = options.has_only("nErefsu") && is_same_in_c(subject, &script, &options);
    let output = Output {
        records: Some(records),
        keeps_utf8: !proof.may_split_characters,
        adds,
        ascii_of_ascii: ascii_in_c,
        map: None,
    };
    Ok(Class::PerRecord(PerRecord {
        output,
        selects: proof.writes_at_most_its_line,
        ascii_in_c,
        // sed fails on start-up if it rejects the script.
        may_fail: true,
        ..PerRecord::new(records)
    }))
}

/// Returns whether the script certainly treats ASCII in the C locale as it does in the command's
/// locale.
fn is_same_in_c(subject: &Subject<'_>, script: &str, options: &Options) -> bool {
    let Ok(script) = Script::read(script, Delimiters::Certain) else { return false };
    let are_known = script.commands.iter().all(|command| match &command.function {
        Function::Substitute(it) => is_plain(&it.replacement) && !it.execute && it.file.is_none(),
        Function::Transliterate(from, to) => is_plain(from) && is_plain(to),
        Function::Open | Function::Close | Function::Label(_) | Function::Branch(..) => true,
        Function::Plain(letter) => ['d', 'p'].contains(letter),
        _ => false,
    });
    let is_certain = |it: &Regex| {
        !it.ignores_case
            && !it.multiline
            && !it.has_odd_brackets
            && it.delimiter.is_ascii_punctuation()
            && (it.delimiter == '/' || !it.text.contains(['\\', it.delimiter]))
    };
    are_known
        && script.expressions().all(is_certain)
        && subject
            .same_in_c(
                script.expressions().map(|it| it.text.as_str()),
                options.has('E') || options.has('r'),
            )
            .is_some()
}

/// Returns whether a string is ASCII without escaped letters other than `\n` and `\t`.
fn is_plain(text: &str) -> bool {
    let mut signs = text.bytes();
    while let Some(sign) = signs.next() {
        let quoted = if sign == b'\\' { signs.next() } else { None };
        let means_more =
            quoted.is_some_and(|sign| sign.is_ascii_alphabetic() && !b"nt".contains(&sign));
        if !sign.is_ascii() || means_more {
            return false;
        }
    }
    true
}

fn contents(name: &str) -> Option<String> {
    let data = std::fs::metadata(name).ok()?;
    let small = data.is_file() && data.len() <= MAX_SCRIPT_BYTES;
    small.then(|| std::fs::read_to_string(name).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::super::tests::{all_opaque, all_per_record, class_in};

    fn treats_ascii_in_c(text: &str, locale: &str) -> bool {
        let Class::PerRecord(class) = class_in(text, locale) else { panic!("{text}") };
        assert_eq!(class.ascii_in_c, class.output.keeps_ascii(), "{text}");
        class.ascii_in_c
    }

    #[test]
    fn ascii_is_the_same_in_c_where_that_is_certain() {
        for text in [
            "sed 's/a.*b/c/'",
            "sed -E 's/^([a-z]+) x/\\1\\n&/g;/^$/d'",
            "sed -n 'y/abc/xyz/;/[[:digit:]]/p'",
            "sed 's|a[^ ]*|/|'",
        ] {
            assert!(treats_ascii_in_c(text, "C.UTF-8"), "{text}");
        }
        assert!(treats_ascii_in_c("sed 's/[^\"]*//'", "en_GB.UTF-8"));
        for (text, locale) in [
            ("sed s/a/b/", "C"),
            ("sed s/a/b/", "tr_TR.UTF-8"),
            ("sed s/a/\u{e9}/", "C.UTF-8"),
            ("sed 's/a/\\xe9/'", "C.UTF-8"),
            ("sed 's/a/\\U&/'", "C.UTF-8"),
            ("sed 's/a/b/I'", "C.UTF-8"),
            ("sed 's/[A-z]/b/'", "C.UTF-8"),
            ("sed 's/\\w//'", "C.UTF-8"),
            ("sed 's|a\\|b|c|'", "C.UTF-8"),
            ("sed -z s/a/b/", "C.UTF-8"),
            ("sed l", "C.UTF-8"),
            ("sed 's/[a-z]//'", "en_GB.UTF-8"),
        ] {
            let Class::PerRecord(class) = class_in(text, locale) else { panic!("{text}") };
            assert!(!class.ascii_in_c, "{text} in {locale}");
        }
    }

    #[test]
    fn stateless_scripts_are_per_record() {
        all_per_record(&[
            "sed s/a/b/g",
            "sed -n /x/p",
            "sed -E 's/(a|b)/&&/;/c/d'",
            "sed -z s/a/b/",
            "sed ':a;s/^(\\([^)]*\\))/\\1/;ta'",
            "sed '/x/{s/a/b/;p}'",
        ]);
        all_opaque(&[
            ("sed -n 2p", "counts lines"),
            ("sed =", "line numbers"),
            ("sed N", "next line"),
            ("sed '$d'", "last"),
            ("sed s/a/b/ f", "it reads files named in its arguments"),
        ]);
    }
}
