//! `sed`: scripts that treat each line for itself.

use contend_record::run::Records;

use super::{Class, Finding, Output, PerRecord, Subject};
use crate::commands::sed::Sed;
use crate::rewrite::environment::Maker;

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    subject.is_by(Maker::Gnu)?;
    subject.encoding()?;
    let sed = Sed::read(subject.simple).ok_or("its script may look beyond a line")?;
    if sed.files.iter().any(|file| file.text != "-") || sed.files.len() > 1 {
        return Err("it reads files that it names itself".into());
    }
    let records = if sed.null_data { Records::Nul } else { Records::Lines };
    let output = Output { records: Some(records), ..Output::ANYTHING };
    Ok(Class::PerRecord(PerRecord { output, may_fail: true, ..PerRecord::new(records) }))
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
        ]);
        all_opaque(&[
            ("sed -n 2p", "beyond a line"),
            ("sed =", "beyond a line"),
            ("sed N", "beyond a line"),
            ("sed s/a/b/ f", "names itself"),
        ]);
    }
}
