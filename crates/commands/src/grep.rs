//! Parses GNU `grep` commands.

use super::options::{Options, Table};
use super::{Simple, Word};

/// The supported options of GNU `grep`.
pub const TABLE: Table = Table {
    short: "EFGPe:f:iyvwxcLlqsoHhnbTuUzZaA:B:C:m:rRId:D:\u{1}:\u{2}::\u{3}:\u{4}:\u{5}:\u{6}\u{7}",
    long: &[
        ("extended-regexp", 'E'),
        ("fixed-strings", 'F'),
        ("basic-regexp", 'G'),
        ("perl-regexp", 'P'),
        ("regexp", 'e'),
        ("file", 'f'),
        ("ignore-case", 'i'),
        ("invert-match", 'v'),
        ("word-regexp", 'w'),
        ("line-regexp", 'x'),
        ("count", 'c'),
        ("files-without-match", 'L'),
        ("files-with-matches", 'l'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("no-messages", 's'),
        ("only-matching", 'o'),
        ("with-filename", 'H'),
        ("no-filename", 'h'),
        ("line-number", 'n'),
        ("byte-offset", 'b'),
        ("initial-tab", 'T'),
        ("null-data", 'z'),
        ("null", 'Z'),
        ("text", 'a'),
        ("after-context", 'A'),
        ("before-context", 'B'),
        ("context", 'C'),
        ("max-count", 'm'),
        ("recursive", 'r'),
        ("include", '\u{1}'),
        ("color", '\u{2}'),
        ("colour", '\u{2}'),
        ("exclude", '\u{3}'),
        ("exclude-dir", '\u{4}'),
        ("label", '\u{5}'),
        ("line-buffered", '\u{6}'),
        ("no-ignore-case", '\u{7}'),
    ],
};

/// Options that affect which lines match, how lines end, or which input counts as text.
const MATCHING: &str = "EFGiywxaz";

/// The syntax of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// Basic regular expressions, the default.
    Basic,
    /// Extended regular expressions (`-E`).
    Extended,
    /// Fixed strings (`-F`).
    Fixed,
    /// Perl-compatible regular expressions (`-P`).
    Perl,
}

/// A parsed `grep` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grep {
    /// The syntax of the patterns.
    pub syntax: Syntax,
    /// The arguments of `-e` or, without `-e` and `-f`, the first operand. Patterns in files (`-f`)
    /// are missing.
    pub patterns: Vec<Word>,
    /// The input files. Without files, `grep` reads standard input or, with `-r` or `-R`, the
    /// working directory.
    pub files: Vec<Word>,
    /// All options, in the order given.
    pub options: Options,
}

impl Grep {
    /// Parses the command. Returns `None` if it is not a `grep`, `egrep` or `fgrep`, has an unknown
    /// option, lacks a pattern, selects more than one syntax, or reads patterns from a file (`-f`).
    pub fn read(simple: &Simple) -> Option<Self> {
        Self::read_with_files(simple).filter(|grep| !grep.options.has('f'))
    }

    /// Parses the command as [`Self::read`] does, but accepts `-f`. The patterns in files are then
    /// missing.
    pub fn read_with_files(simple: &Simple) -> Option<Self> {
        let implied = match simple.name() {
            "grep" => None,
            "egrep" => Some(Syntax::Extended),
            "fgrep" => Some(Syntax::Fixed),
            _ => return None,
        };
        // GREP_COLORS changes nothing here. GNU grep no longer reads GREP_OPTIONS.
        let options = Options::read(&simple.arguments, &TABLE)?;
        let mut operands = options.operands.iter().map(|&index| simple.arguments[index].clone());
        let patterns: Vec<Word> = if options.has('e') || options.has('f') {
            options.values('e').map(Word::new).collect()
        } else {
            vec![operands.next()?]
        };
        let files = operands.collect();
        let mut syntaxes = options.given.iter().filter_map(|(letter, _)| match letter {
            'G' => Some(Syntax::Basic),
            'E' => Some(Syntax::Extended),
            'F' => Some(Syntax::Fixed),
            'P' => Some(Syntax::Perl),
            _ => None,
        });
        let syntax = syntaxes.next().or(implied).unwrap_or(Syntax::Basic);
        if syntaxes.any(|other| other != syntax) || implied.is_some_and(|own| own != syntax) {
            return None; // grep itself rejects some of these
        }
        Some(Self { syntax, patterns, files, options })
    }

    /// Returns whether the command reads standard input or a single file, selects each line
    /// independently, and writes the selected lines unchanged: no counts, line numbers, context or
    /// early exit. Considers neither binary input nor colours on a terminal.
    pub fn is_plain_filter(&self) -> bool {
        let colours = self.options.values('\u{2}').any(|when| when != "auto" && when != "never");
        self.options.has_only("EFGPeiyvwxsahUz\u{2}\u{6}\u{7}") && !colours && self.files.len() <= 1
    }

    /// Returns whether the command selects non-matching lines (`-v`).
    pub fn inverted(&self) -> bool {
        self.options.has('v')
    }

    /// Returns whether the command processes binary input as text (`-a`).
    pub fn reads_anything_as_text(&self) -> bool {
        self.options.has('a')
    }

    /// Returns whether both commands, if given the same patterns, certainly match the same lines,
    /// without regard to `-v`.
    pub fn matches_alike(&self, other: &Self) -> bool {
        let relevant = |grep: &Self| {
            let mut letters: Vec<char> = MATCHING
                .chars()
                .filter(|&letter| !"EFG".contains(letter) && grep.options.has(letter))
                .map(|letter| if letter == 'y' { 'i' } else { letter })
                .collect();
            letters.sort_unstable();
            letters.dedup();
            letters
        };
        self.syntax == other.syntax
            && relevant(self) == relevant(other)
            && !self.options.has('\u{7}')
            && !other.options.has('\u{7}')
    }

    /// Returns the patterns if all of them are literal strings; `None` if one has a special
    /// character or is a list of several patterns.
    pub fn plain_strings(&self) -> Option<Vec<&str>> {
        let special: &[char] = match self.syntax {
            Syntax::Fixed => &['\n'],
            Syntax::Basic => &['\\', '.', '[', '*', '^', '$', '\n'],
            Syntax::Extended | Syntax::Perl => {
                &['\\', '.', '[', '*', '^', '$', '+', '?', '(', ')', '{', '}', '|', '\n']
            }
        };
        self.patterns
            .iter()
            .map(|word| Some(word.text.as_str()).filter(|text| !text.contains(special)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    fn grep(text: &str) -> Grep {
        Grep::read(&simple(text)).unwrap_or_else(|| panic!("a grep: {text}"))
    }

    #[test]
    fn patterns_files_and_syntax() {
        let read = grep("grep -Ev 'a|b' in.txt");
        assert_eq!((read.syntax, read.inverted()), (Syntax::Extended, true));
        assert_eq!(read.patterns[0].text, "a|b");
        assert_eq!(read.files[0].text, "in.txt");
        let read = grep("fgrep -e a --regexp=b -i");
        assert_eq!((read.syntax, read.patterns.len(), read.files.len()), (Syntax::Fixed, 2, 0));
        assert_eq!(Grep::read(&simple("grep -f patterns x")), None);
        assert_eq!(Grep::read(&simple("zgrep x")), None);
        assert_eq!(Grep::read(&simple("grep --newfangled x")), None);
    }

    #[test]
    fn a_plain_filter_writes_whole_lines_one_by_one() {
        for text in ["grep x", "grep -v x f", "grep -aiwE x", "grep -F -x x", "grep --color=auto x"]
        {
            assert!(grep(text).is_plain_filter(), "{text}");
        }
        for text in [
            "grep -c x",
            "grep -m 5 x",
            "grep -A1 x",
            "grep -B 1 x",
            "grep -C1 x",
            "grep -n x",
            "grep -o x",
            "grep -q x",
            "grep -l x",
            "grep -L x",
            "grep -H x",
            "grep -b x",
            "grep -r x",
            "grep --color=always x",
            "grep x a b",
        ] {
            assert!(!grep(text).is_plain_filter(), "{text}");
        }
    }

    #[test]
    fn only_literal_patterns_are_plain_strings() {
        assert_eq!(grep("grep 00").plain_strings(), Some(vec!["00"]));
        assert_eq!(grep("grep a+b").plain_strings(), Some(vec!["a+b"]));
        assert_eq!(grep("grep -E a+b").plain_strings(), None);
        assert_eq!(grep("grep -F 'a.b*'").plain_strings(), Some(vec!["a.b*"]));
        assert_eq!(grep("grep a.b").plain_strings(), None);
    }

    #[test]
    fn the_same_options_match_alike() {
        assert!(grep("grep -iv a").matches_alike(&grep("grep -v -y b")));
        assert!(!grep("grep -i a").matches_alike(&grep("grep b")));
        assert!(!grep("grep -E a").matches_alike(&grep("grep b")));
        assert!(grep("egrep a").matches_alike(&grep("grep -E b")));
    }
}
