//! Proves that a GNU `sed` script processes each record independently.
//!
//! A record is a line or, with `-z`, a string that ends with NUL.
//!
//! | state that outlives a cycle | state that each cycle resets |
//! |---|---|
//! | hold space | pattern space |
//! | line number | flag of `t` |
//! | active ranges | queued text of `a` |
//! | last regular expression used | |
//! | files read or written | |
//!
//! A script that uses no state from the left column writes the same output for a chunk of the
//! input, cut between records, as it writes for that chunk within the whole input. Only the last
//! record of the input may lack a terminator, and that record is in the last chunk.

use super::super::options::Options;
use super::super::{Simple, Word};
use super::characters::{Piece, Syntax, may_split_characters, pieces};
use super::script::{
    Address, Command, Delimiters, Function, Regex, Script, Selection, Substitution,
};
use super::{TABLE, given};

/// The options and the locale with which a script runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode {
    /// Whether cycles end without printing the pattern space (`-n`).
    pub quiet: bool,
    /// Whether regular expressions are extended (`-E`).
    pub extended: bool,
    /// Whether records end with NUL (`-z`).
    pub null_data: bool,
    /// Whether an operand names an input file other than standard input.
    pub names_files: bool,
    /// Whether the locale's encoding is UTF-8. If not, every byte is a character.
    pub multibyte: bool,
}

/// Properties of a script that processes each record independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerRecord {
    /// Whether the script certainly writes exactly one record for each input record. The only
    /// exception is a last record without a terminator, for which `sed` writes nothing if it
    /// becomes empty.
    pub one_to_one: bool,
    /// Whether the script certainly writes at most one record for each input record: that record,
    /// changed or not, or the line of a `c` command.
    pub at_most_once: bool,
    /// Whether the script certainly writes each record once and unchanged, or not at all.
    pub writes_at_most_its_line: bool,
    /// Whether the output may be invalid UTF-8 although the input is valid.
    pub may_split_characters: bool,
    /// Whether the script may write NUL bytes that are not in its input, other than as terminators.
    pub may_write_nul: bool,
    /// Whether the pattern space may hold several records, which are then written together.
    pub makes_lines: bool,
}

/// The reason why a script may not process records independently, such as a construct that depends
/// on other records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejection(pub String);

/// Proves that a command processes each record independently. `contents` returns the contents of a
/// script file as the command would read it, or `None` if they are unknown.
///
/// The caller must check the input files, the locale's encoding, and that `sed` is GNU `sed` and
/// runs without `POSIXLY_CORRECT` in its environment.
///
/// # Errors
/// Names a construct that may depend on more than the current record, have side effects, or be
/// ambiguous. Also fails if the options or the script are unknown, if the script cannot be parsed,
/// or if the command sets `POSIXLY_CORRECT`.
pub fn of_command(
    simple: &Simple,
    multibyte: bool,
    contents: impl Fn(&str) -> Option<String>,
) -> Result<PerRecord, Rejection> {
    let unknown = || Rejection("its options are not known".to_owned());
    let options = Options::read(&simple.arguments, &TABLE).ok_or_else(unknown)?;
    if !options.has_only("nefErzub") || simple.variable("POSIXLY_CORRECT").is_some() {
        return Err(unknown());
    }
    let may_read = |name: &str| name != "-" && !name.starts_with("/dev/");
    let contents = |name: &str| Some(name).filter(|name| may_read(name)).and_then(&contents);
    let (text, files) = given(simple, &options, contents)
        .ok_or_else(|| Rejection("its script is not known".to_owned()))?;
    let mode = Mode {
        quiet: options.has('n'),
        extended: options.has('E') || options.has('r'),
        null_data: options.has('z'),
        names_files: files.iter().any(|file: &Word| file.text != "-"),
        multibyte,
    };
    per_record(&text, mode)
}

/// Proves that a script processes each record independently. The scripts of several `-e` and `-f`
/// options must be joined with newlines.
///
/// `sed` may still reject such a script, since neither the syntax of regular expressions nor
/// references to their groups are checked. In that case, `sed` fails before it reads any input.
///
/// # Errors
/// Names a construct that may depend on more than the current record, have side effects, or be
/// ambiguous. Also fails if the script cannot be parsed.
pub fn per_record(text: &str, mode: Mode) -> Result<PerRecord, Rejection> {
    let script =
        Script::read(text, Delimiters::Shielded).map_err(|unread| Rejection(unread.to_string()))?;
    let proof = Proof { script: &script, text, mode };
    for command in &script.commands {
        let reason = proof.addresses(command).or_else(|| proof.function(command));
        if let Some(reason) = reason {
            return Err(Rejection(format!("`{}` {reason}", proof.shown(command))));
        }
    }
    Ok(proof.traits())
}

/// Maximum number of characters that a rejection quotes from a command.
const MAX_QUOTED_CHARS: usize = 40;

struct Proof<'a> {
    script: &'a Script,
    text: &'a str,
    mode: Mode,
}

impl Proof<'_> {
    /// Returns a command as a rejection quotes it: its first line, truncated to
    /// [`MAX_QUOTED_CHARS`].
    fn shown(&self, command: &Command) -> String {
        let text = &self.text[command.place.clone()];
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(MAX_QUOTED_CHARS).collect();
        if shown.len() < text.len() { shown + "…" } else { shown }
    }

    fn addresses(&self, command: &Command) -> Option<&'static str> {
        match &command.selection {
            Selection::All => None,
            Selection::One(Address::Line(_) | Address::Step { .. }) => Some("counts lines"),
            Selection::One(Address::Last) => Some("asks whether the line is the last"),
            Selection::One(Address::Regex(regex)) => self.expression(regex, None),
            Selection::Range(..) => Some("is a range of lines"),
        }
    }

    fn function(&self, command: &Command) -> Option<&'static str> {
        match &command.function {
            Function::Substitute(s) if s.execute => Some("starts a command"),
            Function::Substitute(s) if s.file.is_some() => Some("writes a file"),
            Function::Substitute(s) => self.expression(&s.regex, Some(&s.replacement)),
            Function::Transliterate(from, to) => self.transliteration(from, to),
            Function::Text(..) | Function::List(_) if self.mode.null_data => {
                Some("may end its output with a newline instead of NUL")
            }
            Function::Open
            | Function::Close
            | Function::Label(_)
            | Function::Branch(..)
            | Function::Text(..)
            | Function::List(_) => None,
            Function::ReadFile(..) => Some("reads a file"),
            Function::WriteFile(..) => Some("writes a file"),
            Function::Quit(..) => Some("ends the script early"),
            Function::Execute(_) => Some("starts a command"),
            Function::Version(_) => Some("asks for a version of sed"),
            Function::Plain(letter) => self.plain(*letter),
        }
    }

    fn plain(&self, letter: char) -> Option<&'static str> {
        match letter {
            'n' | 'N' => Some("takes the next line"),
            // Without these, the hold space stays empty, so `g` and `G` are harmless.
            'h' | 'H' | 'x' => Some("keeps text from line to line"),
            '=' => Some("prints line numbers"),
            'F' if self.mode.names_files => Some("prints the file's name"),
            'F' if self.mode.null_data => Some("may end its output with a newline instead of NUL"),
            'D' if self.makes_lines() => Some("may start again with the rest of the line"),
            _ => None,
        }
    }

    /// Returns why the expression of an address, or of `s` with its replacement, is rejected, or
    /// `None` if it is accepted.
    fn expression(&self, regex: &Regex, replacement: Option<&str>) -> Option<&'static str> {
        if !regex.text.is_empty() {
            return None;
        }
        let refers = |text: &str| {
            let is_group = |piece| matches!(piece, Piece::Escaped('1'..='9'));
            pieces(text).into_iter().any(is_group)
        };
        let fails = regex.ignores_case || regex.multiline || replacement.is_some_and(refers);
        let known = !fails && self.last_used_is_known();
        (!known).then_some("repeats the last expression used, perhaps on another line")
    }

    /// Returns whether all non-empty expressions are the same one, and the first command uses it
    /// for every record.
    fn last_used_is_known(&self) -> bool {
        let mut all = self.script.expressions().filter(|regex| !regex.text.is_empty());
        let Some(one) = all.next() else { return false };
        let used_first = self.script.commands.first().is_some_and(|command| {
            match (&command.selection, &command.function) {
                (Selection::One(Address::Regex(regex)), _) => !regex.text.is_empty(),
                (Selection::All, Function::Substitute(s)) => {
                    !command.negated && !s.regex.text.is_empty()
                }
                _ => false,
            }
        });
        used_first && all.all(|regex| regex == one)
    }

    fn transliteration(&self, from: &str, to: &str) -> Option<&'static str> {
        let length = |piece: Piece| match piece {
            Piece::Character(c) if self.mode.multibyte => Some(c.len_utf8().min(1)),
            Piece::Character(c) => Some(c.len_utf8()),
            Piece::Byte(byte) => (byte != b'\\' && byte.is_ascii()).then_some(1),
            Piece::Escaped('a' | 'f' | 'n' | 'r' | 't' | 'v' | '\n') => Some(1),
            Piece::Escaped(c) => c.is_ascii_punctuation().then_some(1),
            Piece::Uncertain => None,
        };
        let length = |text: &str| pieces(text).into_iter().map(length).sum::<Option<usize>>();
        match (length(from), length(to)) {
            (Some(from), Some(to)) if from == to => None,
            (Some(_), Some(_)) => Some("has strings of different lengths"),
            _ => Some("has a character that seds read differently"),
        }
    }

    fn traits(&self) -> PerRecord {
        let prints_itself = !self.mode.quiet && !self.script.quiet;
        let makes_lines = self.makes_lines();
        let effects: Vec<Effect> =
            self.script.commands.iter().map(|command| Effect::of(&command.function)).collect();
        let count = |wanted: Effect| effects.iter().filter(|&&effect| effect == wanted).count();
        let is_plain = !makes_lines && count(Effect::Adds) == 0;
        let loops = count(Effect::Jumps) > 0;
        // `c` ends the cycle, so its line is the only output if nothing was written before.
        let replaces = count(Effect::Replaces);
        let prints = count(Effect::Prints) + count(Effect::PrintsChanged);
        let at_most_once =
            is_plain && if prints_itself { prints == 0 } else { prints + replaces <= 1 && !loops };
        let removes = count(Effect::Removes) + replaces > 0;
        let changes = count(Effect::Changes) + count(Effect::PrintsChanged) + replaces > 0;
        PerRecord {
            one_to_one: prints_itself && at_most_once && !removes,
            at_most_once,
            writes_at_most_its_line: at_most_once && !changes,
            may_split_characters: self.may_split_characters(),
            may_write_nul: self.may_write_nul(),
            makes_lines,
        }
    }

    /// Returns whether the pattern space may contain a record's terminator.
    fn makes_lines(&self) -> bool {
        let end = if self.mode.null_data { 0 } else { b'\n' };
        self.script.commands.iter().any(|command| match &command.function {
            Function::Plain('G') => true,
            Function::Text(..) => false,
            function => written(function).into_iter().any(|piece| piece.may_be(end)),
        })
    }

    fn may_write_nul(&self) -> bool {
        self.script.commands.iter().any(|command| {
            let own_end = self.mode.null_data && command.function == Function::Plain('G');
            own_end || written(&command.function).into_iter().any(|piece| piece.may_be(0))
        })
    }

    fn may_split_characters(&self) -> bool {
        self.script.commands.iter().any(|command| {
            let cuts = match &command.function {
                Function::Substitute(s) => self.may_split_in(s),
                Function::Transliterate(from, to) => {
                    let is_ascii = from.is_ascii() && to.is_ascii();
                    let in_bytes = !self.mode.multibyte && !is_ascii;
                    in_bytes || pieces(from).into_iter().any(Piece::may_be_part)
                }
                _ => false,
            };
            cuts || written(&command.function).into_iter().any(Piece::may_be_part)
        })
    }

    fn may_split_in(&self, s: &Substitution) -> bool {
        let repeats = s.global || s.number.is_some_and(|number| number > 1);
        let Mode { extended, multibyte, .. } = self.mode;
        // In a single-byte locale, a change of case may lose invalid bytes.
        let is_case = |piece| matches!(piece, Piece::Escaped('L' | 'U' | 'l' | 'u'));
        if !multibyte && pieces(&s.replacement).into_iter().any(is_case) {
            return true;
        }
        let cuts =
            |regex: &Regex| may_split_characters(regex, repeats, Syntax { extended, multibyte });
        if s.regex.text.is_empty() {
            return self.script.expressions().filter(|regex| !regex.text.is_empty()).any(cuts);
        }
        cuts(&s.regex)
    }
}

/// Returns the elements that a command may add to the output, besides parts of the input line.
fn written(function: &Function) -> Vec<Piece> {
    match function {
        Function::Substitute(s) => pieces(&s.replacement),
        Function::Transliterate(_, text) => pieces(text),
        // Versions of `sed` differ in how many backslashes an escape takes.
        Function::Text(_, text) if text.replace("\\\n", "").contains('\\') => {
            vec![Piece::Uncertain]
        }
        Function::Text(_, text) => text.chars().map(Piece::Character).collect(),
        _ => Vec::new(),
    }
}

/// The effect of a command on the pattern space and on the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The command changes the pattern space.
    Changes,
    /// The command prints the pattern space.
    Prints,
    /// The command changes and prints the pattern space.
    PrintsChanged,
    /// The command prints anything else, or more than one line.
    Adds,
    /// The command deletes the pattern space without printing it.
    Removes,
    /// The command prints another line in place of the pattern space.
    Replaces,
    /// The command is a label, to which a branch may jump back, so that commands may run again.
    Jumps,
    Nothing,
}

impl Effect {
    fn of(function: &Function) -> Self {
        match function {
            Function::Substitute(s) if s.print => Self::PrintsChanged,
            Function::Substitute(_) | Function::Transliterate(..) | Function::Plain('g' | 'z') => {
                Self::Changes
            }
            Function::Plain('p' | 'P') => Self::Prints,
            Function::Plain('d' | 'D') => Self::Removes,
            Function::Text('c', text) if !text.contains('\n') && !text.contains('\\') => {
                Self::Replaces
            }
            Function::Label(_) => Self::Jumps,
            Function::Open | Function::Close | Function::Branch(..) => Self::Nothing,
            _ => Self::Adds,
        }
    }
}

#[cfg(test)]
mod tests;
