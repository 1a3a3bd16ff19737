//! Options as `getopt_long(3)` parses them, from one table for each command.

use super::Word;

/// The options that a command accepts.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// One-letter options as for `getopt(3)`: `:` after a letter requires an argument, and `::`
    /// allows one, which must be attached.
    pub short: &'static str,
    /// Long names, each with the letter of the same option. An option without a short form has a
    /// control character as its letter.
    pub long: &'static [(&'static str, char)],
}

/// Parsed options and operands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Options in the order given: the letter, and the argument if there is one.
    pub given: Vec<(char, Option<String>)>,
    /// Operands in the order given, as indexes into the arguments.
    pub operands: Vec<usize>,
}

impl Options {
    /// Parses the arguments. As in GNU commands, options may follow operands. Returns `None` for an
    /// option outside the table, an abbreviated long option, a missing or unexpected option
    /// argument, or an operand after `--` that looks like an option.
    pub fn read(arguments: &[Word], table: &Table) -> Option<Self> {
        let mut options = Self::default();
        let mut index = 0;
        while let Some(word) = arguments.get(index) {
            let text = word.text.as_str();
            if text == "--" {
                // Callers write operands without `--`, which would turn such an operand into an
                // option.
                let rest = &arguments[index + 1..];
                let looks_like_option =
                    |word: &Word| word.text.len() > 1 && word.text.starts_with('-');
                if rest.iter().any(looks_like_option) {
                    return None;
                }
                options.operands.extend(index + 1..arguments.len());
                break;
            }
            let next = arguments.get(index + 1).map(|word| word.text.as_str());
            let took_next = if let Some(long) = text.strip_prefix("--") {
                options.read_long(long, next, table)?
            } else if let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                options.read_short(letters, next, table)?
            } else {
                options.operands.push(index);
                false
            };
            index += 1 + usize::from(took_next);
        }
        Some(options)
    }

    /// Parses the options before the first operand, which begins another command. Returns the
    /// options and that operand's index, which is the number of arguments if there is no operand.
    /// Returns `None` for an option outside the table, an abbreviated long option, or a missing or
    /// unexpected option argument.
    pub fn read_leading(arguments: &[Word], table: &Table) -> Option<(Self, usize)> {
        let mut options = Self::default();
        let mut index = 0;
        while let Some(word) = arguments.get(index) {
            let text = word.text.as_str();
            let next = arguments.get(index + 1).map(|word| word.text.as_str());
            let took_next = if text == "--" {
                return Some((options, index + 1));
            } else if let Some(long) = text.strip_prefix("--") {
                options.read_long(long, next, table)?
            } else if let Some(letters) = text.strip_prefix('-').filter(|rest| !rest.is_empty()) {
                options.read_short(letters, next, table)?
            } else {
                break;
            };
            index += 1 + usize::from(took_next);
        }
        Some((options, index))
    }

    fn read_long(&mut self, text: &str, next: Option<&str>, table: &Table) -> Option<bool> {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let &(_, letter) = table.long.iter().find(|(long, _)| *long == name)?;
        let (value, took_next) = match (table.argument_of(letter)?, attached) {
            (Argument::None, None) => (None, false),
            (Argument::None, Some(_)) => return None,
            (Argument::Optional, attached) => (attached, false),
            (Argument::Required, Some(attached)) => (Some(attached), false),
            (Argument::Required, None) => (Some(next?), true),
        };
        self.given.push((letter, value.map(str::to_owned)));
        Some(took_next)
    }

    fn read_short(&mut self, letters: &str, next: Option<&str>, table: &Table) -> Option<bool> {
        let mut rest = letters.chars();
        while let Some(letter) = rest.next() {
            let attached = Some(rest.as_str()).filter(|rest| !rest.is_empty());
            let (value, took_next) = match (table.argument_of(letter)?, attached) {
                (Argument::None, _) => {
                    self.given.push((letter, None));
                    continue;
                }
                (Argument::Optional, attached) => (attached, false),
                (Argument::Required, Some(attached)) => (Some(attached), false),
                (Argument::Required, None) => (Some(next?), true),
            };
            self.given.push((letter, value.map(str::to_owned)));
            return Some(took_next);
        }
        Some(false)
    }

    /// Returns whether the option `letter` was given.
    pub fn has(&self, letter: char) -> bool {
        self.given.iter().any(|(given, _)| *given == letter)
    }

    /// Returns whether all options given are among `letters`.
    pub fn has_only(&self, letters: &str) -> bool {
        self.given.iter().all(|(given, _)| letters.contains(*given))
    }

    /// Returns the argument of each occurrence of the option `letter` that has one, in order.
    pub fn values(&self, letter: char) -> impl Iterator<Item = &str> {
        self.given
            .iter()
            .filter(move |(given, _)| *given == letter)
            .filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the last argument given to the option `letter`, or `None` if no occurrence of the
    /// option has one.
    pub fn value(&self, letter: char) -> Option<&str> {
        self.values(letter).last()
    }
}

enum Argument {
    None,
    Optional,
    Required,
}

impl Table {
    /// Returns whether the option requires, accepts or rejects an argument, or `None` if there is
    /// no such option.
    fn argument_of(&self, letter: char) -> Option<Argument> {
        if letter == ':' {
            return None;
        }
        let (_, after) = self.short.split_once(letter)?;
        Some(if after.starts_with("::") {
            Argument::Optional
        } else if after.starts_with(':') {
            Argument::Required
        } else {
            Argument::None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::simple;

    const TABLE: Table =
        Table { short: "ac:o::x", long: &[("all", 'a'), ("count", 'c'), ("opt", 'o')] };

    fn read(text: &str) -> Option<Options> {
        Options::read(&simple(text).arguments, &TABLE)
    }

    #[test]
    fn options_are_read_as_getopt_does() {
        let options = read("p -axc3 file --count=4 --all -o --opt=z -c 5 - more").expect("known");
        assert_eq!(options.values('c').collect::<Vec<_>>(), ["3", "4", "5"]);
        assert_eq!(options.value('o'), Some("z"));
        assert_eq!(options.operands, [1, 8, 9]);
        assert!(options.has('a') && options.has('x') && !options.has('q'));
        assert!(options.has_only("axco") && !options.has_only("ax"));
    }

    #[test]
    fn a_command_of_its_own_keeps_its_options() {
        let leading = |text: &str| Options::read_leading(&simple(text).arguments, &TABLE);
        let (options, place) = leading("p -a --count 4 wc -l").expect("known");
        assert_eq!((options.given.len(), place), (2, 3));
        assert_eq!(leading("p -a -- -x").expect("known").1, 2);
        assert_eq!(leading("p -q wc"), None);
    }

    #[test]
    fn after_two_dashes_everything_is_an_operand() {
        assert_eq!(read("p -a -- x - y").expect("known").operands, [2, 3, 4]);
        assert_eq!(read("p -a -- -x"), None, "without the dashes it would be an option");
    }

    #[test]
    fn options_outside_the_table_are_rejected() {
        for text in ["p -q", "p --quiet", "p -c", "p --count", "p --all=1", "p --al", "p -:"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
