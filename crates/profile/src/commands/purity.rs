//! Which commands do nothing but read their input and write their output, so that they may be run
//! once more on part of it without being asked for.

use super::awk::Awk;
use super::options::{Options, Table};
use super::sed::Sed;
use super::{Simple, Word, cut, grep, head, sort};

/// Programs none of whose options writes anywhere else or starts another program, and which give
/// the same output each time.
const PURE: &[&str] = &[
    "base64",
    "cat",
    "cksum",
    "col",
    "column",
    "cut",
    "expand",
    "fmt",
    "fold",
    "head",
    "jq",
    "md5sum",
    "nl",
    "numfmt",
    "od",
    "paste",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "strings",
    "tac",
    "tr",
    "unexpand",
    "wc",
    "xzcat",
    "zcat",
];

const TAIL: Table = Table { short: "n:c:qvz", long: &[("lines", 'n'), ("bytes", 'c')] };
const SORT: Table =
    Table { short: "bdfgiMhnrVmst:uzk:S:", long: &[("parallel", 's'), ("merge", 'm')] };
const SED: Table = Table { short: "ne:Ersuzb", long: &[] };

/// Whether the command only reads and writes its input and output.
pub fn is_pure(simple: &Simple) -> bool {
    let takes = |table: &Table| Options::read(&simple.arguments, table);
    match simple.name() {
        "awk" | "mawk" | "gawk" | "nawk" | "original-awk" | "busybox" => {
            Awk::read(simple).is_some()
        }
        "grep" | "egrep" | "fgrep" => grep::Grep::read(simple)
            .is_some_and(|grep| !grep.options.has('r') && !grep.options.has('R')),
        "sed" => {
            Sed::read(simple).is_some() || takes(&SED).is_some_and(|o| plain_script(simple, &o))
        }
        "sort" => {
            let starts_none = |sort: sort::Sort| !sort.options.has(sort::COMPRESS);
            sort::Sort::read(simple).is_some_and(starts_none) || takes(&SORT).is_some()
        }
        "tail" => takes(&TAIL).is_some(),
        "uniq" => super::uniq::read(simple).is_some(),
        name => PURE.contains(&name),
    }
}

/// A script of nothing but addresses and commands that move lines about: no file and no command
/// can be named in it.
fn plain_script(simple: &Simple, options: &Options) -> bool {
    let first = options.operands.first().map(|&index| simple.arguments[index].text.as_str());
    let scripts: Vec<&str> =
        if options.has('e') { options.values('e').collect() } else { first.into_iter().collect() };
    let plain = |c: char| c.is_ascii_digit() || " ,;$!{}+~pdqnNPDhHgGx=".contains(c);
    !scripts.is_empty() && scripts.iter().all(|script| script.chars().all(plain))
}

/// Where a pipeline's first stage takes its input from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Its standard input.
    Standard,
    /// This file; the command has to be given it as its standard input or as an operand.
    File(Word),
    /// Several files, or it makes its output out of nothing, or that is not known.
    Other,
}

/// Where a command takes its input from.
pub fn source(simple: &Simple) -> Source {
    if let Some(file) = &simple.input {
        return Source::File(file.clone());
    }
    match input_files(simple).as_deref() {
        Some([]) => Source::Standard,
        Some([file]) if file.text == "-" => Source::Standard,
        Some([file]) => Source::File(file.clone()),
        _ => Source::Other,
    }
}

/// The files among the operands; `None` where the grammar is not known.
fn input_files(simple: &Simple) -> Option<Vec<Word>> {
    if let Some(sed) = Sed::read(simple) {
        return Some(sed.files);
    }
    if let Some(awk) = Awk::read(simple) {
        // An assignment may stand among them.
        let assigns = awk.operands.iter().any(|word| word.text.contains('='));
        return (!assigns).then_some(awk.operands);
    }
    match simple.name() {
        "grep" | "egrep" | "fgrep" => grep::Grep::read(simple).map(|grep| grep.files),
        "sort" => sort::Sort::read(simple).map(|sort| sort.files),
        "cut" => cut::Cut::read(simple).map(|cut| cut.files),
        "head" => head::head(simple).map(|lines| lines.files),
        "tail" => head::tail(simple).map(|lines| lines.files),
        "tr" => Some(Vec::new()),
        "uniq" => super::uniq::read(simple).map(|_| Vec::new()),
        "cat" | "rev" | "nl" | "tac" | "wc" => {
            let flags = simple.arguments.iter().all(|word| {
                !word.text.starts_with('-') || word.text.len() == 2 || word.text == "-"
            });
            let operands = simple
                .arguments
                .iter()
                .filter(|word| !word.text.starts_with('-') || word.text == "-");
            // An option's argument could pass for a file.
            let plain = simple.name() != "nl" || simple.arguments.len() <= 1;
            (flags && plain).then(|| operands.cloned().collect())
        }
        "sed" => {
            let options = Options::read(&simple.arguments, &SED)?;
            let skip = usize::from(!options.has('e'));
            let files = options.operands.iter().skip(skip);
            Some(files.map(|&index| simple.arguments[index].clone()).collect())
        }
        _ => None,
    }
}

/// The command as it reads its standard input instead of the file that it names. `None` where its
/// input is not one that can be named.
pub fn from_standard_input(simple: &Simple) -> Option<Simple> {
    let files: Vec<Word> = match source(simple) {
        Source::Standard => Vec::new(),
        Source::File(file) => Some(file).filter(|_| simple.input.is_none()).into_iter().collect(),
        Source::Other => return None,
    };
    let mut changed = simple.clone();
    changed.arguments.retain(|word| word.text != "-");
    Some(changed.without_input(&files)?.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::simple;
    use super::*;

    #[test]
    fn filters_are_pure_and_what_writes_or_starts_is_not() {
        for text in [
            "cat f",
            "sort -k2 f",
            "sort -m a b",
            "grep -c x f",
            "sed 5q",
            "sed -n '$p'",
            "sed p",
            "awk '{ n += $1 } END { print n }' f",
            "jq -c .a",
            "tr -s a",
            "uniq -c",
            "tail -n +3",
        ] {
            assert!(is_pure(&simple(text)), "{text}");
        }
        for text in [
            "tee f",
            "xargs rm",
            "sort -o f f",
            "sed -i p f",
            "sed 'w f'",
            "sed s/x/y/e",
            "uniq a b",
            "awk '{ print > \"f\" }'",
            "awk -f p",
            "tail -f f",
            "sort -R f",
            "python3 x",
            "rm f",
            "sort --compress-program=x",
            "grep -r x .",
            "shuf f",
            "sed -n '/x/w f'",
        ] {
            assert!(!is_pure(&simple(text)), "{text}");
        }
    }

    #[test]
    fn the_input_is_found_and_can_be_another() {
        let read = |text: &str| from_standard_input(&simple(text)).map(|simple| simple.text());
        for (text, changed) in [
            ("cat f", "cat"),
            ("cat -n f", "cat -n"),
            ("cat", "cat"),
            ("sort - ", "sort"),
            ("grep -v x f", "grep -v x"),
            ("anything -a b <f", "anything -a b"),
            ("sed -n 5p f", "sed -n 5p"),
            ("awk -F: '{ print $1 }' f", "awk -F: '{ print $1 }'"),
            ("wc -l f", "wc -l"),
        ] {
            assert_eq!(read(text).as_deref(), Some(changed), "{text}");
        }
        for text in ["cat a b", "seq 5", "zcat f", "python3 x f", "awk 1 x=2 f", "nl -b a f"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
