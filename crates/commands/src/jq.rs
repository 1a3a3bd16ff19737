//! Parses `jq` commands, and checks whether a filter depends on more than its current input value.

use super::{Simple, Word};

/// A parsed `jq` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jq {
    /// The letters of the options in the order given; `T` is `--tab`, `I` is `--indent`. `--arg`
    /// and `--argjson` are missing.
    pub letters: String,
    /// The filter, as jq source.
    pub filter: String,
    /// The input files; empty for standard input.
    pub files: Vec<Word>,
}

/// Functions and keywords with which a filter may have side effects or depend on more than the
/// current value: they read further values or modules, return the position in the input, the
/// input's name or the search path, depend on the time, write to standard error, or stop the
/// program.
const IMPURE_WORDS: &[&str] = &[
    "debug",
    "get_search_list",
    "halt",
    "halt_error",
    "import",
    "include",
    "input",
    "input_filename",
    "input_line_number",
    "inputs",
    "modulemeta",
    "now",
    "stderr",
];

/// Those of [`IMPURE_WORDS`] with which the output is still the same for the same input, and which
/// have no side effects.
const INPUT_WORDS: &[&str] = &["halt", "input", "input_line_number", "inputs"];

impl Jq {
    /// Parses the command. Returns `None` if it is not a `jq`, has an unknown option, lacks a
    /// filter or an option argument, or has an argument of `--indent` that is not 0 to 7.
    pub fn read(simple: &Simple) -> Option<Self> {
        if simple.name() != "jq" {
            return None;
        }
        let mut jq = Self { letters: String::new(), filter: String::new(), files: Vec::new() };
        let mut arguments = simple.arguments.iter();
        let mut operands = Vec::new();
        while let Some(word) = arguments.next() {
            let text = word.text.as_str();
            let is_option = text.strip_prefix('-').is_some_and(|rest| {
                rest.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric())
            });
            match text {
                _ if !is_option => operands.push(word.clone()),
                "--arg" | "--argjson" => drop((arguments.next()?, arguments.next()?)),
                "--indent" => {
                    let width = arguments.next()?.text.as_str();
                    jq.letters.push('I');
                    (width.len() == 1 && ("0"..="7").contains(&width)).then_some(())?;
                }
                long if long.starts_with("--") => jq.letters.push(letter(long)?),
                cluster => {
                    let letters = &cluster[1..];
                    let known = |c: char| "acCejMnrRsS".contains(c);
                    letters.chars().all(known).then_some(())?;
                    jq.letters.push_str(letters);
                }
            }
        }
        let mut operands = operands.into_iter();
        jq.filter = operands.next()?.text;
        jq.files = operands.collect();
        Some(jq)
    }

    /// Returns whether the option `letter` was given; see [`Self::letters`].
    pub fn has(&self, letter: char) -> bool {
        self.letters.contains(letter)
    }

    /// Returns the filter's first function or keyword by which it may depend on more than the
    /// current input value, or have side effects. Returns `None` if there is none.
    pub fn reaches_out(&self) -> Option<&'static str> {
        self.impure_words().first().copied()
    }

    /// Returns whether the command can be repeated: the filter certainly has no side effects, and
    /// the output depends only on the arguments, the input and the environment variables.
    pub fn is_repeatable(&self) -> bool {
        self.impure_words().iter().all(|word| INPUT_WORDS.contains(word))
    }

    /// Returns the functions and keywords in the filter that are in [`IMPURE_WORDS`], in the order
    /// of their occurrences.
    fn impure_words(&self) -> Vec<&'static str> {
        // Strings may contain code (`\(…)`), and comments may contain quotes. In both cases, the
        // whole filter counts as code.
        let has_code = self.filter.contains("\\(") || self.filter.contains('#');
        let text = if has_code { self.filter.clone() } else { without_strings(&self.filter) };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut impure = Vec::new();
        let mut rest = text.as_str();
        while let Some(start) = rest.find(is_word) {
            let before = rest[..start].chars().next_back();
            let word = &rest[start..];
            let end = word.find(|c| !is_word(c)).unwrap_or(word.len());
            // `.now` is a field and `$now` a variable.
            if !matches!(before, Some('.' | '$')) {
                impure.extend(IMPURE_WORDS.iter().filter(|known| **known == &word[..end]));
            }
            rest = &word[end..];
            if rest.is_empty() {
                break;
            }
        }
        impure
    }
}

fn letter(long: &str) -> Option<char> {
    Some(match long {
        "--ascii-output" => 'a',
        "--compact-output" => 'c',
        "--color-output" => 'C',
        "--exit-status" => 'e',
        "--join-output" => 'j',
        "--monochrome-output" => 'M',
        "--null-input" => 'n',
        "--raw-output" => 'r',
        "--raw-input" => 'R',
        "--slurp" => 's',
        "--sort-keys" => 'S',
        "--tab" => 'T',
        _ => return None,
    })
}

/// Returns the filter without the contents of its string literals.
fn without_strings(filter: &str) -> String {
    let mut text = String::new();
    let mut characters = filter.chars();
    let mut is_within = false;
    while let Some(c) = characters.next() {
        match c {
            '\\' if is_within => drop(characters.next()),
            '"' => {
                is_within = !is_within;
                text.push('"');
            }
            c if !is_within => text.push(c),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    fn jq(text: &str) -> Option<Jq> {
        Jq::read(&simple(text))
    }

    #[test]
    fn options_take_their_arguments() {
        let read = jq("jq -rc --arg a b --argjson c 1 --indent 3 .x --tab f").expect("known");
        assert_eq!((read.letters.as_str(), read.filter.as_str()), ("rcIT", ".x"));
        assert_eq!(read.files.len(), 1);
        for text in ["jq", "jq --stream .", "jq -f p", "jq --indent 9 .", "jq --arg a", "jq -1 ."] {
            assert_eq!(jq(text), None, "{text}");
        }
    }

    #[test]
    fn words_that_depend_on_more_than_the_value_are_found() {
        let found = |filter: &str| {
            let arguments = vec![Word::new(filter)];
            Jq::read(&Simple { arguments, ..simple("jq") }).expect("known").reaches_out()
        };
        for filter in [
            ".input",
            ".a.now",
            "$now",
            "\"input\"",
            "select(.type == \"debug\")",
            "inputs_of",
            ".[] | {a, b: .c}",
            "limit(3; .[])",
            "$__loc__",
            "",
        ] {
            assert_eq!(found(filter), None, "{filter}");
        }
        for (filter, word) in [
            ("input", "input"),
            ("[inputs]", "inputs"),
            ("., input_line_number", "input_line_number"),
            ("\"\\(input)\"", "input"),
            ("now|todate", "now"),
            ("{input}", "input"),
            (". # \"\ninput # \"", "input"),
            ("halt_error", "halt_error"),
            ("import \"a\" as a; .", "import"),
        ] {
            assert_eq!(found(filter), Some(word), "{filter}");
        }
    }

    #[test]
    fn filters_that_depend_on_the_input_alone_are_repeatable() {
        let is_repeatable =
            |filter: &str| jq(&format!("jq '{filter}'")).expect("known").is_repeatable();
        for filter in [".a", "[inputs] | length", "., input", "input_line_number", "$ENV.A", "halt"]
        {
            assert!(is_repeatable(filter), "{filter}");
        }
        for filter in
            ["now", "input_filename", "input, now", "halt_error", "debug", "include \"a\"; ."]
        {
            assert!(!is_repeatable(filter), "{filter}");
        }
    }
}
