//! `awk`: which implementation, and how its program is given.

use super::options::{Options, Table};
use super::{Simple, Word};

/// What all implementations share.
const TABLE: Table = Table { short: "F:v:f:", long: &[] };

/// Names under which implementations are found.
const NAMES: &[&str] = &["awk", "mawk", "gawk", "nawk", "original-awk"];

/// An `awk` whose program stands in the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awk {
    /// The program's text.
    pub program: String,
    /// `-F`, if given.
    pub separator: Option<String>,
    /// The operands after the program: files and assignments.
    pub operands: Vec<Word>,
    /// The arguments of the command, without `busybox`'s `awk`.
    pub arguments: Vec<Word>,
}

impl Awk {
    /// Reads the command; `None` if the program comes from a file, or does more than read
    /// standard input or files and print.
    pub fn read(simple: &Simple) -> Option<Self> {
        let arguments = match (simple.name(), simple.arguments.split_first()) {
            ("busybox", Some((first, rest))) if first.text == "awk" => rest.to_vec(),
            (name, _) if NAMES.contains(&name) => simple.arguments.clone(),
            _ => return None,
        };
        // Options end with the program: what looks like one after it is an operand.
        let program_at = program_place(&arguments)?;
        let options = Options::read(&arguments[..program_at], &TABLE)?;
        if options.has('f') || !options.operands.is_empty() {
            return None;
        }
        let program = arguments[program_at].text.clone();
        (!does_more(&program)).then(|| Self {
            program,
            separator: options.value('F').map(str::to_owned),
            operands: arguments[program_at + 1..].to_vec(),
            arguments,
        })
    }
}

/// Where the program stands: the first argument that is neither an option nor one's argument.
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

/// Whether a program starts others, writes to files, reads others, or gives something that
/// differs from run to run. Words in strings and expressions count too: better one too many.
fn does_more(program: &str) -> bool {
    ["system", "getline", "close", "fflush", "|", "rand", "systime", "ENVIRON", "@", "strftime"]
        .iter()
        .any(|word| program.replace("||", "").contains(word))
        || writes_elsewhere(program)
}

/// Whether there is a `print` with a `>` after it outside of parentheses and strings.
fn writes_elsewhere(program: &str) -> bool {
    program.split("print").skip(1).any(|after| {
        let statement = after.split([';', '}', '\n']).next().unwrap_or(after);
        let (mut depth, mut quoted, mut previous) = (0_i32, false, ' ');
        statement.chars().any(|c| {
            match c {
                '"' if previous != '\\' => quoted = !quoted,
                '(' if !quoted => depth += 1,
                ')' if !quoted => depth -= 1,
                _ => {}
            }
            previous = c;
            c == '>' && !quoted && depth <= 0
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::simple;
    use super::*;

    #[test]
    fn the_program_and_what_it_reads() {
        let awk = Awk::read(&simple("awk -F: -v n=3 '$3 > n { print $1 }' /etc/passwd x=1"));
        let awk = awk.expect("understood");
        assert_eq!(awk.program, "$3 > n { print $1 }");
        assert_eq!((awk.separator.as_deref(), awk.operands.len()), (Some(":"), 2));
        let busybox = Awk::read(&simple("busybox awk '{ print $2 }'")).expect("understood");
        assert_eq!(busybox.arguments.len(), 1);
        assert!(Awk::read(&simple("/usr/bin/mawk 'a || b { s += $1 } END { print s }'")).is_some());
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
        ] {
            assert_eq!(Awk::read(&simple(text)), None, "{text}");
        }
        assert!(Awk::read(&simple("awk '{ print ($1 > 2) \">\" }'")).is_some());
    }
}
