//! Which commands do nothing but read their input and write their output, so that they may be run
//! once more on part of it without being asked for.

use super::awk::Awk;
use super::options::{Options, Table};
use super::sed::Sed;
use super::{Simple, Word, cut, grep, head, sed, sort, wc};

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

/// Whether a command of a known name is asked to write files or to start programs; better one
/// too many.
pub fn writes_by_itself(simple: &Simple) -> bool {
    let arguments = || simple.arguments.iter().map(|word| word.text.as_str());
    let cluster_has = |letter: char| {
        arguments().any(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letter))
    };
    let begins = |options: &[&str]| arguments().any(|a| options.iter().any(|o| a.starts_with(o)));
    match simple.name() {
        "sed" | "gsed" => sed_reaches_out(simple),
        "sort" => cluster_has('o') || begins(&["--o", "--co"]),
        "shuf" | "iconv" | "xmllint" | "pandoc" | "dot" => cluster_has('o') || begins(&["--o"]),
        "uniq" | "xxd" => super::uniq::read(simple).is_none() && has_two_operands(simple),
        "awk" | "mawk" | "gawk" | "nawk" | "original-awk" => awk_reaches_out(simple),
        "find" => begins(&["-delete", "-fls", "-exec", "-ok", "-fprint"]),
        "fd" | "fdfind" => cluster_has('x') || cluster_has('X') || begins(&["--exec"]),
        "perl" | "ruby" | "yq" => cluster_has('i') || begins(&["--in"]),
        "mlr" => begins(&["-I", "tee", "split"]),
        "date" => cluster_has('s') || begins(&["--s"]),
        "history" => cluster_has('w') || cluster_has('a'),
        "openssl" => begins(&["-out", "-writerand"]),
        // They change the files that they are given.
        "dos2unix" | "unix2dos" | "sd" => arguments().any(|a| !a.starts_with('-')),
        "gzip" | "gunzip" | "pigz" | "unpigz" | "xz" | "unxz" | "lzma" | "unlzma" | "pixz"
        | "bzip2" | "bunzip2" | "pbzip2" | "lbzip2" | "zstd" | "unzstd" | "zstdmt" | "pzstd"
        | "lz4" | "unlz4" | "lzop" | "lzip" | "plzip" | "compress" | "uncompress" | "brotli" => {
            let to_output = cluster_has('c') || begins(&["--stdout", "--to-stdout"]);
            let named = arguments().any(|a| a == "-o") || begins(&["--output"]);
            named || !to_output && arguments().any(|a| !a.starts_with('-'))
        }
        _ => false,
    }
}

/// Whether there is a second file among the arguments of `uniq` or `xxd`: that is written to.
fn has_two_operands(simple: &Simple) -> bool {
    let takes_value: &[&str] = match simple.name() {
        "uniq" => &["-f", "-s", "-w", "--skip-fields", "--skip-chars", "--check-chars"],
        _ => &["-c", "-g", "-l", "-n", "-o", "-s"],
    };
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let mut operands = 0;
    while let Some(text) = arguments.next() {
        if takes_value.contains(&text) {
            arguments.next();
        } else if text == "-" || !text.starts_with('-') {
            operands += 1;
        }
    }
    operands > 1
}

/// Whether an awk loads more than its program, has options that are not known, or a program that
/// writes or starts others. What `-f` names is not read.
fn awk_reaches_out(simple: &Simple) -> bool {
    awk_programs(simple).is_none_or(|programs| {
        programs.into_iter().any(|program| {
            let arguments = vec![Word::new("--"), Word::new(program)];
            // `@load`, `@include`, and functions whose name is in a variable.
            let calls =
                program.split('@').skip(1).any(|behind| behind.starts_with(char::is_alphabetic));
            calls || super::awk::does_more_than_read(&Simple { arguments, ..simple.clone() })
        })
    })
}

/// The programs that stand in the arguments of an awk; `None` if an option is not known.
fn awk_programs(simple: &Simple) -> Option<Vec<&str>> {
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let (mut programs, mut is_given) = (Vec::new(), false);
    let attached = ["-F", "-v", "-f", "--field-separator=", "--assign=", "--file="];
    let alone = [
        "--posix",
        "--traditional",
        "--re-interval",
        "--sandbox",
        "--csv",
        "-n",
        "-b",
        "-Winteractive",
    ];
    while let Some(text) = arguments.next() {
        match text {
            "-F" | "-v" | "--field-separator" | "--assign" => {
                arguments.next();
            }
            "-f" | "--file" => is_given = arguments.next().is_some(),
            "-e" | "--source" => {
                programs.extend(arguments.next());
                is_given = true;
            }
            "-W" => {
                arguments.next().filter(|value| *value == "interactive")?;
            }
            "--" => {
                programs.extend(arguments.next().filter(|_| !is_given));
                break;
            }
            _ if !text.starts_with('-') || text == "-" => {
                programs.extend(Some(text).filter(|_| !is_given));
                break;
            }
            _ if alone.contains(&text) => {}
            _ if attached.iter().any(|known| text.starts_with(known)) => {
                is_given |= text.starts_with("-f") || text.starts_with("--file");
            }
            _ => return None,
        }
    }
    Some(programs)
}

/// Whether a sed edits in place, has options that are not known, or a script that writes or
/// executes. What `-f` names is not read.
fn sed_reaches_out(simple: &Simple) -> bool {
    sed_script(simple).is_none_or(|script| script_reaches_out(&script))
}

/// The script in the arguments of a sed; `None` if it edits in place or an option is not known.
fn sed_script(simple: &Simple) -> Option<String> {
    let mut arguments = simple.arguments.iter().map(|word| word.text.as_str());
    let (mut scripts, mut operands, mut is_given) = (Vec::new(), Vec::new(), false);
    while let Some(text) = arguments.next() {
        if text == "--" {
            operands.extend(arguments.by_ref());
        } else if text == "-" || !text.starts_with('-') {
            operands.push(text);
        } else if let Some((letter, attached)) = sed_option(text)? {
            let value = attached.or_else(|| arguments.next());
            is_given |= letter != 'l';
            scripts.extend(value.filter(|_| letter == 'e'));
        }
    }
    if !is_given {
        scripts.extend(operands.first());
    }
    Some(scripts.join("\n"))
}

/// The option that takes a value in this argument, with the value if it is attached; `None`
/// for editing in place and for what is not known.
#[expect(clippy::option_option, reason = "known or not, with a value or without")]
fn sed_option(text: &str) -> Option<Option<(char, Option<&str>)>> {
    let Some(long) = text.strip_prefix("--") else {
        let letters = text[1..].trim_start_matches(['n', 'r', 'E', 'u', 'z', 'b', 's']);
        let Some(letter) = letters.chars().next() else { return Some(None) };
        let value = letters.get(1..).filter(|value| !value.is_empty());
        return "efl".contains(letter).then_some(Some((letter, value)));
    };
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    // Names may be shortened.
    let takes = [("in-place", 'i'), ("expression", 'e'), ("file", 'f'), ("line-length", 'l')];
    match takes.iter().find(|(long, _)| long.starts_with(name)) {
        Some((_, 'i')) => None,
        Some((_, letter)) => Some(Some((*letter, value))),
        None => Some(None),
    }
}

/// Whether a sed script writes to a file or executes something, or cannot be read. A delimiter
/// between brackets is one for some old seds only.
fn script_reaches_out(script: &str) -> bool {
    let read = |brackets| Script { rest: script, brackets }.reaches_out();
    read(true) != Some(false) || read(false) == Some(true)
}

/// A sed script that is read to see where its commands stand.
struct Script<'a> {
    rest: &'a str,
    /// Delimiters between brackets do not count.
    brackets: bool,
}

impl Script<'_> {
    fn reaches_out(&mut self) -> Option<bool> {
        while let Some(c) = self.next() {
            match c {
                // Addresses and blanks; a variable of the shell may stand for either.
                c if c.is_ascii_digit() || c.is_whitespace() || ",;$!{}+~\u{fffd}".contains(c) => {}
                '/' => self.skip_address('/')?,
                '\\' => {
                    let delimiter = self.next()?;
                    self.skip_address(delimiter)?;
                }
                '=' | 'd' | 'D' | 'F' | 'g' | 'G' | 'h' | 'H' | 'l' | 'L' | 'n' | 'N' | 'p'
                | 'P' | 'q' | 'Q' | 'x' | 'z' => {}
                ':' | 'b' | 't' | 'T' | 'v' => {
                    self.rest = self.rest.trim_start_matches([' ', '\t']);
                    let ends = |c: char| c.is_whitespace() || c == ';' || c == '}';
                    self.rest = &self.rest[self.rest.find(ends).unwrap_or(self.rest.len())..];
                }
                '#' | 'r' | 'R' => drop(self.line()),
                'a' | 'i' | 'c' => while goes_on(self.line()) && !self.rest.is_empty() {},
                'w' | 'W' if is_output(self.line()) => {}
                'y' | 's' => {
                    let delimiter = self.next()?;
                    self.skip_to(delimiter, self.brackets && c == 's')?;
                    self.skip_to(delimiter, false)?;
                    if c == 's' && self.flags_reach_out()? {
                        return Some(true);
                    }
                }
                'e' | 'w' | 'W' => return Some(true),
                _ => return None,
            }
        }
        Some(false)
    }

    /// Whether the flags behind `s` name a file or execute; `None` where they are not known.
    fn flags_reach_out(&mut self) -> Option<bool> {
        let is_flag = |c: char| c.is_ascii_digit() || "gpIiMm\u{fffd}".contains(c);
        self.rest = self.rest.trim_start_matches(is_flag);
        match self.rest.chars().next() {
            Some('w') => {
                self.next();
                Some(!is_output(self.line()))
            }
            Some('e') => Some(true),
            Some(c) if !c.is_whitespace() && !";}#".contains(c) => None,
            _ => Some(false),
        }
    }

    fn skip_address(&mut self, delimiter: char) -> Option<()> {
        self.skip_to(delimiter, self.brackets)?;
        self.rest = self.rest.trim_start_matches(['I', 'M']);
        Some(())
    }

    /// Skips to behind the delimiter.
    fn skip_to(&mut self, delimiter: char, brackets: bool) -> Option<()> {
        loop {
            match self.next()? {
                c if c == delimiter => return Some(()),
                '\\' => drop(self.next()?),
                '[' if brackets => self.skip_bracket()?,
                _ => {}
            }
        }
    }

    /// Skips to behind the `]` that ends a bracket expression.
    fn skip_bracket(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
        // A `]` that stands first is one of the characters.
        self.rest = self.rest.strip_prefix(']').unwrap_or(self.rest);
        loop {
            match (self.next()?, self.rest.chars().next()?) {
                (']', _) => return Some(()),
                ('[', kind @ (':' | '.' | '=')) => {
                    let end = self.rest[1..].find(&format!("{kind}]"))? + 3;
                    self.rest = &self.rest[end..];
                }
                _ => {}
            }
        }
    }

    /// What is left of the line.
    fn line(&mut self) -> &str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }
}

/// Whether the text of `a`, `i` or `c` goes on behind this line.
fn goes_on(line: &str) -> bool {
    (line.len() - line.trim_end_matches('\\').len()) % 2 == 1
}

fn is_output(file: &str) -> bool {
    ["/dev/stdout", "/dev/stderr"].contains(&file.trim())
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
    match input_operands(simple).as_deref() {
        Some([]) => Source::Standard,
        Some(&[place]) if simple.arguments[place].text == "-" => Source::Standard,
        Some(&[place]) => Source::File(simple.arguments[place].clone()),
        _ => Source::Other,
    }
}

/// The files that a command reads by name; `None` where that is not known, and where it reads its
/// standard input as well.
pub fn named_files(simple: &Simple) -> Option<Vec<&Word>> {
    let operands = input_operands(simple)?;
    let files: Vec<_> = match (operands.is_empty(), &simple.input) {
        (true, input) => input.iter().collect(),
        (false, _) => operands.into_iter().map(|place| &simple.arguments[place]).collect(),
    };
    let all_named = !files.is_empty() && files.iter().all(|file| file.text != "-");
    all_named.then_some(files)
}

/// The places of the files among the arguments; `None` where the grammar is not known.
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
            // An assignment may stand among them.
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

/// The command as it reads its standard input instead of the file that it names. `None` where its
/// input is not one that can be named.
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
            "tail +3f f",
            "sort +1 f",
            "./sort f",
            "/tmp/cat f",
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
