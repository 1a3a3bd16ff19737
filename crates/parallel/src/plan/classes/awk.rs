//! Classifies `awk`: programs without state between lines are per record, and programs that only
//! add up numbers are combinable.

use contend_commands::Word;
use contend_commands::awk::{Awk, state, sums};

use super::{Class, Combinable, Finding, Output, PerRecord, Reason, Subject};
use crate::plan::ir::{ByteSet, Combine, Records};

/// File names of the awk implementations that the proofs cover.
const KNOWN: &[&str] = &["mawk", "gawk", "busybox", "original-awk"];
/// Variables that set the record separators of the input and the output.
const LINES: &[&str] = &["RS", "ORS"];

pub(super) fn class(subject: &Subject<'_>) -> Finding {
    let program = &subject.simple.program.text;
    let file = subject.environment.files.get(program).map(|program| program.file_name.as_str());
    let file =
        file.filter(|file| KNOWN.contains(file)).ok_or("this implementation of awk is unknown")?;
    subject.encoding()?;
    let awk = Awk::given(subject.simple).ok_or("its program is not in its arguments")?;
    if awk.operands.iter().any(|word| word.text != "-") || awk.operands.len() > 1 {
        return Err("its arguments name files or set variables".into());
    }
    let given = awk.assigned();
    if let Some(name) = given.iter().find(|name| LINES.contains(name)) {
        return Err(format!("`{name}` changes the record separator").into());
    }
    let program = awk.parsed().map_err(|why| why.to_string())?;
    let why = match state::per_record(&program, &given) {
        Ok(proof) => {
            known_fields(file, proof.compares_fields)?;
            return Ok(Class::PerRecord(PerRecord {
                may_fail: true,
                selects: proof.prints_at_most_its_line,
                output: output(&awk, proof),
                ..PerRecord::new(Records::Lines)
            }));
        }
        Err(why) => why,
    };
    let totals = sums::totals(&program, &given).map_err(|_| why.to_string())?;
    known_fields(file, totals.compares_fields)?;
    let combine = subject
        .command(&subject.simple.program.text, texts(with_program(subject, &awk, &totals.combine)));
    let each = PerRecord {
        arguments: Some(with_program(subject, &awk, &totals.part)),
        may_fail: true,
        output: Output::ANYTHING,
        ..PerRecord::new(Records::Lines)
    };
    let class = Combinable::unordered(each, Combine::Totals(combine));
    let order_unknown = totals.depends_on_array_order;
    Ok(Class::Combinable(Combinable { order_unknown, ..class }))
}

/// Rejects comparisons of fields in busybox awk, where the value of a missing field depends on
/// earlier lines.
fn known_fields(file: &str, compares: bool) -> Result<(), Reason> {
    match (file, compares) {
        ("busybox", true) => Err("busybox awk compares missing fields by earlier lines".into()),
        _ => Ok(()),
    }
}

fn output(awk: &Awk, proof: state::PerRecord) -> Output {
    let adds = if proof.prints_at_most_its_line {
        ByteSet::from_iter([b'\n'])
    } else if proof.writes_nul || !awk.assignments.is_empty() {
        ByteSet::ALL
    } else {
        ByteSet::of(|byte| byte != 0)
    };
    Output {
        records: proof.ends_lines.then_some(Records::Lines),
        keeps_utf8: !proof.may_split_characters && awk.assignments.is_empty(),
        adds,
        ascii_of_ascii: false,
        map: None,
    }
}

/// Returns the command's arguments with `program` in place of its own program.
fn with_program(subject: &Subject<'_>, awk: &Awk, program: &str) -> Vec<Word> {
    let mut arguments = subject.simple.arguments.clone();
    let place = arguments.len().checked_sub(awk.operands.len() + 1);
    if let Some(word) = place.and_then(|place| arguments.get_mut(place)) {
        *word = Word::new(program);
    }
    arguments
}

fn texts(words: Vec<Word>) -> Vec<String> {
    words.into_iter().map(|word| word.text).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, all_per_record, combinable};
    use super::*;

    #[test]
    fn nothing_is_kept_from_line_to_line() {
        all_per_record(&[
            "awk '{ print $2 }'",
            "awk -F: '$3 > 5 { print $1, $NF }'",
            "awk 'length($0) > 10'",
            "awk '{ n = split($0, a, \",\"); print n, a[1] }'",
            "gawk '{ print toupper($0) }'",
        ]);
        all_opaque(&[
            ("awk 'NR % 2'", "NR"),
            ("awk '!seen[$0]++'", "seen"),
            ("awk '{ print NR, $0 }'", "NR"),
            ("awk '/a/,/b/'", "range"),
            ("awk '{ x = x $0 } END { print x }'", "END action"),
            ("awk -v RS= '{ print $1 }'", "RS"),
            ("awk '{ print $1 > \"f\" }'", "f"),
            ("awk -f prog.awk", "not in its arguments"),
            ("awk '{ print }' f", "its arguments name files or set variables"),
        ]);
    }

    #[test]
    fn totals_of_parts_are_added() {
        for text in ["awk '{ s += $1 } END { print s }'", "awk '/x/ { n++ } END { print n, NR }'"] {
            let class = combinable(text);
            assert!(matches!(class.combine, Combine::Totals(_)) && !class.order_unknown, "{text}");
        }
        let class = combinable("awk '{ n[$1]++ } END { for (k in n) print n[k], k }'");
        assert!(class.order_unknown);
    }
}
