//! `sed`: scripts that treat each record for itself.

use contend_record::run::{ByteSet, Records};

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::commands::options::Options;
use crate::commands::sed::state::{self, Why};
use crate::commands::sed::{TABLE, given};
use crate::rewrite::environment::{Encoding, Maker};

/// A script's file is read if it is no larger, in bytes.
const LARGEST_SCRIPT: u64 = 1 << 20;

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let multibyte = subject.encoding()? == Encoding::Utf8;
    let proof = state::of_command(subject.simple, multibyte, contents);
    let proof = proof.map_err(|Why(why)| why)?;
    let options = Options::read(&subject.simple.arguments, &TABLE).unwrap_or_default();
    let files = given(subject.simple, &options, contents).map(|(_, files)| files);
    if files.is_none_or(|files| files.iter().any(|file| file.text != "-") || files.len() > 1) {
        return Err("it reads files that it names itself".into());
    }
    let records = if options.has('z') { Records::Nul } else { Records::Lines };
    let adds = if proof.writes_at_most_its_line {
        ByteSet::from_iter([records.separator()])
    } else {
        ByteSet::of(|byte| byte != 0 || proof.may_write_nul || records == Records::Nul)
    };
    let output =
        Output { records: Some(records), keeps_utf8: !proof.may_split_characters, adds, map: None };
    // A script that sed itself does not accept makes it fail at its start.
    let selects = proof.writes_at_most_its_line;
    Ok(Class::PerRecord(PerRecord { output, selects, may_fail: true, ..PerRecord::new(records) }))
}

fn contents(name: &str) -> Option<String> {
    let data = std::fs::metadata(name).ok()?;
    let small = data.is_file() && data.len() <= LARGEST_SCRIPT;
    small.then(|| std::fs::read_to_string(name).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record};

    #[test]
    fn only_lines_for_themselves() {
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
            ("sed s/a/b/ f", "names itself"),
        ]);
    }
}
