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
        let arguments = own_arguments(simple)?;
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

/// The arguments of any awk, without `busybox`'s `awk`.
fn own_arguments(simple: &Simple) -> Option<Vec<Word>> {
    match (simple.name(), simple.arguments.split_first()) {
        ("busybox", Some((first, rest))) if first.text == "awk" => Some(rest.to_vec()),
        (name, _) if NAMES.contains(&name) => Some(simple.arguments.clone()),
        _ => None,
    }
}

/// The arguments of an awk whose programs are in files that can be read, with options that all
/// implementations have; `None` if one of them is seen to write to files.
pub fn with_program_files(simple: &Simple) -> Option<Vec<Word>> {
    let arguments = own_arguments(simple)?;
    let options = Options::read(&arguments, &TABLE)?;
    let first = arguments.len() - options.operands.len();
    let last = options.operands.iter().copied().eq(first..arguments.len());
    let readable =
        options.values('f').all(|file| std::fs::metadata(file).is_ok_and(|d| d.is_file()));
    let named = options.has('f') && readable && last;
    (named && !super::writing::writes_by_itself(simple)).then_some(arguments)
}

/// Whether an awk command does more than read and print, for all that can be told of it.
pub(super) fn does_more_than_read(simple: &Simple) -> bool {
    let place = program_place(&simple.arguments);
    let options = &simple.arguments[..place.unwrap_or(simple.arguments.len())];
    // gawk can load a library that edits in place, and write out what it knows.
    if Options::read(options, &TABLE).is_none_or(|options| !options.operands.is_empty()) {
        return true;
    }
    let program = place.map(|place| &simple.arguments[place].text);
    program.is_some_and(|program| {
        tokens(&without_remarks(program)).is_none_or(|tokens| {
            let starts = |token: &Token| *token == Token::Word("system".to_owned());
            tokens.iter().any(starts) || has_single_bar(&tokens) || redirects(&tokens)
        })
    })
}

/// The program without redirections to its own output and standard error, which change nothing.
fn without_remarks(program: &str) -> String {
    let mut kept = String::new();
    let mut rest = program;
    while let Some(place) = rest.find('>') {
        let (before, from) = rest.split_at(place);
        kept.push_str(before);
        let target = from.trim_start_matches('>').trim_start_matches([' ', '\t']);
        let own = ["\"/dev/stderr\"", "\"/dev/stdout\""];
        let behind = own.iter().find_map(|name| target.strip_prefix(name));
        // More behind the name would be a part of it.
        let ends = |behind: &&str| {
            let next = behind.trim_start_matches([' ', '\t']).chars().next();
            next.is_none_or(|c| ";}\n#".contains(c))
        };
        rest = behind.filter(ends).unwrap_or_else(|| {
            kept.push('>');
            &from[1..]
        });
    }
    kept + rest
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

/// A piece of a program, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name or a word of the language.
    Word(String),
    /// A string, a number or a regular expression.
    Value,
    /// Any other character.
    Sign(char),
}

/// Words with which a program starts others, reads others, or gives something that differs from
/// run to run.
const FAR_REACHING: &[&str] = &[
    "system",
    "getline",
    "close",
    "fflush",
    "rand",
    "srand",
    "systime",
    "strftime",
    "mktime",
    "ENVIRON",
    "PROCINFO",
    "extension",
    "load",
];

/// Whether a program starts others, writes to files, reads others, or gives something that
/// differs from run to run. What cannot be read counts as if it did.
fn does_more(program: &str) -> bool {
    tokens(program).is_none_or(|tokens| {
        let far = tokens.iter().any(|token| match token {
            Token::Word(word) => FAR_REACHING.contains(&word.as_str()),
            Token::Sign(sign) => ['@', '`'].contains(sign),
            Token::Value => false,
        });
        far || has_single_bar(&tokens) || redirects(&tokens)
    })
}

fn has_single_bar(tokens: &[Token]) -> bool {
    let bars = tokens.chunk_by(|a, b| *a == Token::Sign('|') && a == b);
    bars.into_iter().any(|run| run[0] == Token::Sign('|') && run.len() != 2)
}

/// Whether there is a `>` after a `print` or `printf` of the same statement, outside of all
/// parentheses. A statement goes on after line breaks behind a comma, and with some awks behind
/// operators that want another value.
fn redirects(tokens: &[Token]) -> bool {
    let (mut printing, mut depth) = (false, 0_i32);
    let mut previous = &Token::Sign(';');
    for token in tokens {
        match token {
            Token::Word(word) if word == "print" || word == "printf" => {
                printing = true;
                depth = 0;
            }
            Token::Sign('(' | '[') => depth += 1,
            Token::Sign(')' | ']') => depth -= 1,
            Token::Sign('\n') if matches!(previous, Token::Sign(',' | '&' | '|' | '?' | ':')) => {}
            Token::Sign('\n' | ';' | '}') => printing = false,
            Token::Sign('>') if printing && depth <= 0 => return true,
            _ => {}
        }
        if *token != Token::Sign('\n') {
            previous = token;
        }
    }
    false
}

/// The tokens of a program; `None` where it cannot be told where a string or a regular expression
/// begins or ends.
fn tokens(program: &str) -> Option<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut rest = program.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\r' => {}
            '#' => while rest.next_if(|&c| c != '\n').is_some() {},
            '\\' => drop(rest.next_if_eq(&'\n')?), // a line that goes on
            '"' => {
                skip_to(&mut rest, '"')?;
                tokens.push(Token::Value);
            }
            '/' if !ends_value(&tokens)? => {
                skip_to(&mut rest, '/')?;
                tokens.push(Token::Value);
            }
            c if c.is_ascii_digit() || c == '.' => {
                while rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '.').is_some() {}
                tokens.push(Token::Value);
            }
            c if c.is_alphabetic() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                tokens.push(Token::Word(word));
            }
            c => tokens.push(Token::Sign(c)),
        }
    }
    Some(tokens)
}

/// Skips to behind the end of a string or an expression. A line break in it, or brackets around
/// its end, are read differently by different awks.
fn skip_to(rest: &mut impl Iterator<Item = char>, end: char) -> Option<()> {
    let mut bracket = false;
    loop {
        match rest.next()? {
            c if c == end => return (!bracket).then_some(()),
            '\\' => drop(rest.next()?),
            '\n' => return None,
            '[' if end == '/' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
    }
}

/// Whether a value ends here, so that `/` after it divides; `None` where that takes more than a
/// look.
fn ends_value(tokens: &[Token]) -> Option<bool> {
    /// After these a value begins.
    const BEFORE_VALUES: &[&str] =
        &["print", "printf", "return", "exit", "in", "case", "else", "do"];
    match tokens {
        [.., Token::Sign(')')] => after_parenthesis(tokens),
        // As in `n++ / 2`, which is no `n + +/ 2/`.
        [.., Token::Sign('$')]
        | [.., Token::Sign('+'), Token::Sign('+')]
        | [.., Token::Sign('-'), Token::Sign('-')] => None,
        [.., Token::Value | Token::Sign(']')] => Some(true),
        [.., Token::Word(word)] => Some(!BEFORE_VALUES.contains(&word.as_str())),
        _ => Some(false),
    }
}

/// Whether the parentheses that end here hold a value: after a condition a statement begins.
fn after_parenthesis(tokens: &[Token]) -> Option<bool> {
    let mut depth = 0;
    let opening = tokens.iter().rposition(|token| {
        match token {
            Token::Sign(')') => depth += 1,
            Token::Sign('(') => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    Some(match &tokens[..opening] {
        [.., Token::Word(word)] => !["if", "while", "for", "switch"].contains(&word.as_str()),
        _ => true,
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
    fn remarks_on_standard_error_change_nothing() {
        let more = |text: &str| does_more_than_read(&simple(text));
        for text in [
            "awk '{ print \"x\" > \"/dev/stderr\" }'",
            "awk '{ if ($1 > 3) print >>\"/dev/stdout\"; n++ }'",
        ] {
            assert!(!more(text), "{text}");
        }
        for text in [
            "awk '{ print > \"/dev/stderr\" $1 }'",
            "awk '{ print > \"/dev/stderr\"; print > \"f\" }'",
            "awk '{ print > \"/dev/sda\" }'",
        ] {
            assert!(more(text), "{text}");
        }
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
            "awk '{ print \"a;\" $0 > \"f\" }'",
            "awk '{ print \"\\\\\" >> \"f\" }'",
            "awk '{ print /\\(/ >> \"f\" }'",
            "awk '{ print 1,\n2 >> \"f\" }'",
            "awk '{ print 1 \\\n> \"f\" }'",
            "awk '{ print a[1] > \"f\" }'",
            "awk '{ \"date\" | getline x }'",
            "awk '{ print | \"sort\" }'",
            "awk '{ print \"a' f",
            "awk '/[/]/ { print }'",
            "awk '{ print 1 &&\n2 >> \"f\" }'",
            "awk '{ print 1,\n\n2 >> \"f\" }'",
            "awk '{ m = n++ / 2; print NR >> \"f\"; k = n / 2; print }'",
            "awk '{ if (x) /\"/; print 1 > \"f\"; y = \"\" }'",
            "awk '{ exit /\"/; print 1 > \"f\" }'",
            "awk -i inplace '{ print }' f",
        ] {
            assert_eq!(Awk::read(&simple(text)), None, "{text}");
        }
        for text in [
            "awk '{ print ($1 > 2) \">\" }'",
            "awk '$1 > 2 { print $2 / 3 \"|\" } # > system'",
            "awk '/a>b/ { n++ } n > 3 || m; END { print n }'",
            "awk '{ gsub(/[a-z]+>/, \"x\"); print; if ($1 > 2) print }'",
            "awk -F '[= ]' '{ s += $10; n++ } END { print s / n }'",
            "awk '{ print a[$1 > 2] }'",
            "awk '{ s += ($1 + $2) / 2; t = (s) / 4 } END { print s / (t + 1) }'",
            "awk '{ print $1\n if ($2 > 3) n++\n}'",
            "awk '{ if (/a\"b/) n++ } END { print n / 2 \"/\" }'",
        ] {
            assert!(Awk::read(&simple(text)).is_some(), "{text}");
        }
    }
}
