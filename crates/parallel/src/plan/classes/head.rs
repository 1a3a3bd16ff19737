//! Classifies `head` and `tail`, which run over each chunk, and once more over the concatenated
//! outputs.

use contend_commands::head::{self, Lines, TABLE};
use contend_commands::options::Options;
use contend_shell::environment::Maker;

use super::{Class, Combinable, Finding, Output, PerRecord, Subject, is_number};
use crate::plan::ir::{Combine, Cut, Records};

pub(super) fn head(subject: &Subject<'_>) -> Finding {
    lines(subject, head::head(subject.simple), "first")
}

pub(super) fn tail(subject: &Subject<'_>) -> Finding {
    lines(subject, head::tail(subject.simple), "last")
}

fn lines(subject: &Subject<'_>, lines: Option<Lines>, which: &str) -> Finding {
    subject.is_by(Maker::Gnu)?;
    let Some(lines) = lines else { return Err(reason(subject, which).into()) };
    if lines.files.iter().any(|file| file.text != "-") {
        return Err("it reads files named in its arguments".into());
    }
    let count = lines.count.to_string();
    let command = subject.command(&subject.simple.program.text, ["-n", &count]);
    let each = PerRecord {
        cut: Cut::between(Records::Lines),
        // head adds no newline.
        output: Output::LINES,
        ..PerRecord::new(Records::Lines)
    };
    Ok(Class::Combinable(Combinable::ordered(each, Combine::Through(command))))
}

/// Returns why the command is not a plain selection of lines. `which` is "first" or "last".
fn reason(subject: &Subject<'_>, which: &str) -> String {
    let arguments = &subject.simple.arguments;
    let Some(options) = Options::read(arguments, &TABLE) else {
        return if arguments.iter().any(|word| ["-f", "-F", "--follow"].contains(&&*word.text)) {
            "it waits for more input".to_owned()
        } else {
            "one of its options is not supported".to_owned()
        };
    };
    let count = options.value('n').or(options.value('c')).unwrap_or_default();
    let number = count.trim_start_matches(['-', '+']);
    let unit = if options.has('c') { "bytes" } else { "lines" };
    match (which, count.as_bytes().first()) {
        _ if options.has('q') || options.has('v') || options.has('z') => {
            "one of its options is not supported".to_owned()
        }
        _ if head::is_counted_from_start(subject.simple) || !is_number(number) => {
            "its count cannot be parsed".to_owned()
        }
        ("first", Some(b'-')) => format!("it leaves out the last {number} {unit} of all its input"),
        ("last", Some(b'+')) => {
            format!("it takes all its input from number {number} of the {unit} on")
        }
        _ => format!("it takes the {which} {number} {unit} of all its input"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all_opaque, combinable};
    use super::*;

    #[test]
    fn the_first_of_the_first() {
        let through = |text: &str| match combinable(text).combine {
            Combine::Through(command) => {
                format!("{} {}", command.program, command.arguments.join(" "))
            }
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(through("head"), "head -n 10");
        assert_eq!(through("head -5"), "head -n 5");
        assert_eq!(through("tail -n 3 -"), "tail -n 3");
        assert!(!combinable("tail -n 3").ignores_order);
    }

    #[test]
    fn unsupported_forms_are_opaque() {
        all_opaque(&[
            ("head -c 5", "the first 5 bytes of all its input"),
            ("tail -c 5", "the last 5 bytes of all its input"),
            ("head -n -5", "leaves out the last 5 lines"),
            ("head -c -5", "leaves out the last 5 bytes"),
            ("tail -n +5", "from number 5 of the lines on"),
            ("tail -f", "waits"),
            ("tail +5", "count"),
            ("head -n 1K", "count"),
            ("head -v -n 1", "options"),
            ("head -z -n 1", "options"),
            ("head f", "it reads files named in its arguments"),
        ]);
    }
}
