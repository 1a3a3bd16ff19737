//! Recognizes pure commands, which only read their input and write their output, and finds their
//! input files. contend may run a pure command again on part of its input without asking.

use super::awk::Awk;
use super::jq::Jq;
use super::options::{Options, Table};
use super::sed::Sed;
use super::sed::script::{Command, Delimiters, Function, Script};
use super::{Simple, Word, cut, grep, head, sed, sort, wc};

/// Deterministic programs without an option that writes a file or starts another program.
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

/// Returns whether the command certainly has no side effects, and its output depends only on its
/// arguments, its input and its environment variables.
pub fn is_pure(simple: &Simple) -> bool {
    let takes = |table: &Table| Options::read(&simple.arguments, table);
    match simple.name() {
        "awk" | "mawk" | "gawk" | "nawk" | "original-awk" | "busybox" => {
            Awk::read(simple).is_some()
        }
        "grep" | "egrep" | "fgrep" => grep::Grep::read(simple)
            .is_some_and(|grep| !grep.options.has('r') && !grep.options.has('R')),
        "jq" => Jq::read(simple).is_some_and(|jq| jq.is_repeatable()),
        "sed" => {
            let plain = |options: Options| !options.has('f') && plain_script(simple, &options);
            Sed::read(simple).is_some() || takes(&sed::TABLE).is_some_and(plain)
        }
        "sort" => {
            let writes = ['o', 'R', sort::COMPRESS];
            takes(&sort::TABLE).is_some_and(|options| {
                let at_random = options.values('k').any(|key| key.contains('R'));
                let old = |place: &usize| simple.arguments[*place].text.starts_with('+');
                !at_random
                    && !writes.iter().any(|&letter| options.has(letter))
                    && !options.operands.iter().any(old)
            })
        }
        "tail" => {
            let read = head::tail(simple).is_some() || takes(&head::TABLE).is_some();
            read && !head::is_counted_from_start(simple)
        }
        "uniq" => super::uniq::read(simple).is_some(),
        name => PURE.contains(&name),
    }
}

/// Returns whether the script of a `sed` certainly neither names a file, nor prints the input
/// file's name, nor executes a command, nor branches, nor has a label or a `v` command. Returns
/// `false` if there is no script, or if it cannot be parsed.
fn plain_script(simple: &Simple, options: &Options) -> bool {
    let is_plain = |command: &Command| match &command.function {
        Function::Substitute(s) => !s.execute && s.file.is_none(),
        // `F` prints the file's name, which changes if the input comes from elsewhere.
        Function::Plain(letter) => *letter != 'F',
        Function::Open
        | Function::Close
        | Function::Transliterate(..)
        | Function::Text(..)
        | Function::Quit(..)
        | Function::List(_) => true,
        _ => false,
    };
    sed::given(simple, options, |_| None)
        .and_then(|(text, _)| Script::read(&text, Delimiters::Certain).ok())
        .is_some_and(|script| script.commands.iter().all(is_plain))
}

/// The source of a command's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Standard input.
    Standard,
    /// One file, given by `<` or as an operand.
    File(Word),
    /// Several files, no input, or an unknown source.
    Other,
}

/// Returns the source of the command's input. Operands take precedence over a file after `<`, which
/// is then not read.
pub fn source(simple: &Simple) -> Source {
    let standard = || simple.input.clone().map_or(Source::Standard, Source::File);
    match input_operands(simple).as_deref() {
        Some([]) => standard(),
        Some(&[place]) if simple.arguments[place].text == "-" => standard(),
        Some(&[place]) => Source::File(simple.arguments[place].clone()),
        // Whether the command reads standard input is unknown.
        None => simple.input.clone().map_or(Source::Other, Source::File),
        Some(_) => Source::Other,
    }
}

/// Returns the command's input files, given as operands or, without operands, by `<`. Returns
/// `None` if they are unknown, if there are none, or if one of them is `-`.
pub fn named_files(simple: &Simple) -> Option<Vec<&Word>> {
    let operands = input_operands(simple)?;
    let files: Vec<_> = match (operands.is_empty(), &simple.input) {
        (true, input) => input.iter().collect(),
        (false, _) => operands.into_iter().map(|place| &simple.arguments[place]).collect(),
    };
    let all_named = !files.is_empty() && files.iter().all(|file| file.text != "-");
    all_named.then_some(files)
}

/// Returns the indexes of the input files among the arguments, or `None` if they are not certain,
/// as for an unknown command or option.
fn input_operands(simple: &Simple) -> Option<Vec<usize>> {
    let read = |table: &Table| Options::read(&simple.arguments, table);
    let options = match simple.name() {
        "sed" => {
            let options = read(&sed::TABLE).filter(|options| !options.has('f'))?;
            let skipped = usize::from(!options.has('e'));
            return Some(options.operands.into_iter().skip(skipped).collect());
        }
        "grep" | "egrep" | "fgrep" => {
            let options =
                read(&grep::TABLE).filter(|o| !o.has('f') && !o.has('r') && !o.has('R'))?;
            let skipped = usize::from(!options.has('e'));
            return Some(options.operands.into_iter().skip(skipped).collect());
        }
        "awk" | "mawk" | "gawk" | "nawk" | "original-awk" | "busybox" => {
            let awk = Awk::read(simple)?;
            // An operand with `=` may be an assignment instead of a file.
            let assigns = awk.operands.iter().any(|word| word.text.contains('='));
            let first = simple.arguments.len() - awk.operands.len();
            return (!assigns).then(|| (first..simple.arguments.len()).collect());
        }
        "sort" => read(&sort::TABLE).filter(|options| !options.has('\u{5}')),
        "cut" => read(&cut::TABLE),
        "head" | "tail" => {
            return head::head(simple).or_else(|| head::tail(simple)).map(|lines| lines.places);
        }
        "tr" => return Some(Vec::new()),
        "uniq" => super::uniq::read(simple),
        "wc" => read(&wc::TABLE),
        "cat" => read(&Table { short: "AbeEnstTuv", long: &[] }),
        "rev" => read(&Table { short: "", long: &[] }),
        "tac" => read(&Table { short: "bs:", long: &[] }),
        "fold" => read(&Table { short: "bsw:", long: &[("width", 'w')] }),
        "nl" => read(&Table { short: "b:n:w:s:v:", long: &[] }),
        "jq" => {
            let options = read(&Table { short: "crnseSCMaj", long: &[] })?;
            let input = options.operands.into_iter().skip(1).collect();
            return (!options.given.iter().any(|(letter, _)| *letter == 'n')).then_some(input);
        }
        _ => None,
    }?;
    Some(options.operands)
}

/// Returns a copy of the command without its input file, so that it reads standard input. A command
/// without an input file is copied unchanged. If there is a file after `<`, only that file is
/// removed, and operands are not considered. Without `<`, returns `None` if the input files are
/// unknown or there is more than one.
pub fn from_standard_input(simple: &Simple) -> Option<Simple> {
    let mut changed = simple.clone();
    if changed.input.take().is_some() {
        return Some(changed);
    }
    match input_operands(simple)?.as_slice() {
        [] => {}
        &[place] => drop(changed.arguments.remove(place)),
        _ => return None,
    }
    Some(changed)
}

/// Returns a copy of the command without its input operands, or `None` if they are unknown. A file
/// after `<` stays.
pub fn without_files(simple: &Simple) -> Option<Simple> {
    let mut changed = simple.clone();
    for place in input_operands(simple)?.into_iter().rev() {
        changed.arguments.remove(place);
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    #[test]
    fn filters_are_pure_and_commands_with_side_effects_are_not() {
        for text in [
            "cat f",
            "sort -k2 f",
            "sort -m a b",
            "grep -c x f",
            "sed 5q",
            "sed -n '$p'",
            "sed p",
            "sed '/a/{s/x/y/gp;h}; $!d; y/a/b/; l 5'",
            "sed '/x/a w f'",
            "awk '{ n += $1 } END { print n }' f",
            "jq -c .a",
            "jq -n '[inputs]'",
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
            "tail +3f f",
            "sort +1 f",
            "./sort f",
            "/tmp/cat f",
            "sed -n '/x/w f'",
            "sed 's/x/y/w f'",
            "sed 'r f'",
            "sed '5e date'",
            "sed ':a;s/x/y/;ta'",
            "sed F f",
            "sed 's/[/]w f/x/'",
            "sed '{p'",
            "jq now",
            "jq input_filename f",
            "jq '., now'",
            "jq 'debug | .a'",
            "jq -f p",
            "jq --slurpfile a f .",
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
            ("tr - _ <f", "tr - _"),
            ("cut -d - -f1 f", "cut -d - -f1"),
            ("sort -t - -k2 -", "sort -t - -k2"),
            ("head -5 f", "head -5"),
            ("head f -n 5", "head -n 5"),
            ("jq -c .a f", "jq -c .a"),
            ("fold -w 80 f", "fold -w 80"),
        ] {
            assert_eq!(read(text).as_deref(), Some(changed), "{text}");
        }
        for text in
            ["cat a b", "seq 5", "zcat f", "python3 x f", "awk 1 x=2 f", "grep a - s", "cat -- -f"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
