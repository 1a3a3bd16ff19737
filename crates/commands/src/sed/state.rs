//! The proof that a script of GNU `sed` treats every record for itself.
//!
//! A record is a line or, with `-z`, what ends with NUL. `sed` takes from one record to the next:
//! the hold space, the line's number, the states of ranges, the expression that was used last, and
//! what files it reads and writes. What else there is begins anew with each: the pattern space,
//! the flag of `t`, the texts of `a`. A script that touches none of the former writes for a part
//! of the input what it would write for it within the whole, if parts end where records do. Only
//! the last record can lack its end, and it is the last of the last part.

use super::super::options::Options;
use super::super::{Simple, Word};
use super::letters::{Piece, Syntax, may_cut, pieces};
use super::script::{
    Address, Command, Delimiters, Function, Regex, Script, Selection, Substitution,
};
use super::{TABLE, given};

/// How a script is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mode {
    /// `-n`.
    pub quiet: bool,
    /// `-E`.
    pub extended: bool,
    /// `-z`.
    pub null_data: bool,
    /// Files are named, not only standard input read.
    pub names_files: bool,
    /// The locale's encoding is UTF-8; otherwise every byte is a character.
    pub multibyte: bool,
}

/// What is known of a script that treats every record for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerRecord {
    /// It writes exactly one record for each that it reads. Of a last one that lacks its end nothing
    /// is left if it becomes empty.
    pub one_to_one: bool,
    /// It writes at most one record for each that it reads: that one, changed or not, or the line
    /// that `c` puts in its place.
    pub at_most_once: bool,
    /// What it writes of a record is that record, unchanged, or nothing.
    pub writes_at_most_its_line: bool,
    /// Of valid UTF-8 it may make what is not.
    pub may_split_characters: bool,
    /// It may write NUL bytes that are not in its input, other than as ends of records.
    pub may_write_nul: bool,
    /// One record may become several in the pattern space, which are then written at once.
    pub makes_lines: bool,
}

/// Why a script is not known to treat every record for itself: what is in it that looks further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Why(pub String);

/// Proves it of a command. `contents` gives the text of a script's file, as the command would
/// find it. Files that the command names are for the caller to look at.
///
/// That the locale is one or the other, and that it is GNU's `sed` without `POSIXLY_CORRECT`, is
/// for the caller to know as well.
///
/// # Errors
///
/// What looks beyond a record, or is not known.
pub fn of_command(
    simple: &Simple,
    multibyte: bool,
    contents: impl Fn(&str) -> Option<String>,
) -> Result<PerRecord, Why> {
    let unknown = || Why("its options are not known".to_owned());
    let options = Options::read(&simple.arguments, &TABLE).ok_or_else(unknown)?;
    if !options.has_only("nefErzub") || simple.variable("POSIXLY_CORRECT").is_some() {
        return Err(unknown());
    }
    let may_read = |name: &str| name != "-" && !name.starts_with("/dev/");
    let contents = |name: &str| Some(name).filter(|name| may_read(name)).and_then(&contents);
    let (text, files) = given(simple, &options, contents)
        .ok_or_else(|| Why("its script is not known".to_owned()))?;
    let mode = Mode {
        quiet: options.has('n'),
        extended: options.has('E') || options.has('r'),
        null_data: options.has('z'),
        names_files: files.iter().any(|file: &Word| file.text != "-"),
        multibyte,
    };
    per_record(&text, mode)
}

/// Proves it of a script; several of `-e` and `-f` are joined by a newline.
///
/// A script that is proved may still be one that `sed` does not take, since regular expressions
/// are not looked into: it then fails before it reads anything.
///
/// # Errors
///
/// What looks beyond a record, or is not certain.
pub fn per_record(text: &str, mode: Mode) -> Result<PerRecord, Why> {
    let script =
        Script::read(text, Delimiters::Shielded).map_err(|unread| Why(unread.to_string()))?;
    let proof = Proof { script: &script, text, mode };
    for command in &script.commands {
        let reason = proof.addresses(command).or_else(|| proof.function(command));
        if let Some(reason) = reason {
            return Err(Why(format!("`{}` {reason}", proof.shown(command))));
        }
    }
    Ok(proof.traits())
}

/// Characters of a command that a reason shows.
const SHOWN: usize = 40;

struct Proof<'a> {
    script: &'a Script,
    text: &'a str,
    mode: Mode,
}

impl Proof<'_> {
    /// A command as it stands in the script, of long ones the beginning.
    fn shown(&self, command: &Command) -> String {
        let text = &self.text[command.place.clone()];
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN).collect();
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
                Some("may end what it writes with a newline instead of NUL")
            }
            Function::Open
            | Function::Close
            | Function::Label(_)
            | Function::Branch(..)
            | Function::Text(..)
            | Function::List(_) => None,
            Function::ReadFile(..) => Some("reads a file"),
            Function::WriteFile(..) => Some("writes a file"),
            Function::Quit(..) => Some("ends it early"),
            Function::Execute(_) => Some("starts a command"),
            Function::Version(_) => Some("asks for a version of sed"),
            Function::Plain(letter) => self.plain(*letter),
        }
    }

    fn plain(&self, letter: char) -> Option<&'static str> {
        match letter {
            'n' | 'N' => Some("takes the next line"),
            // Without them the hold space is empty, whatever `g` and `G` take from it.
            'h' | 'H' | 'x' => Some("keeps text from line to line"),
            '=' => Some("prints line numbers"),
            'F' if self.mode.names_files => Some("prints the file's name"),
            'F' if self.mode.null_data => {
                Some("may end what it writes with a newline instead of NUL")
            }
            'D' if self.makes_lines() => Some("may start again with what is left of the line"),
            _ => None,
        }
    }

    /// An expression of an address, or of `s` with its replacement.
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
        (!known).then_some("stands for the expression used last, maybe with another line")
    }

    /// Whether there is one expression only, which is used first of all with every line.
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
        // `c` ends the cycle, so that its line is the only one if nothing is written before it.
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

    /// Whether the pattern space may come to hold the end of a record.
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
                Function::Substitute(s) => self.cuts(s),
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

    fn cuts(&self, s: &Substitution) -> bool {
        let repeats = s.global || s.number.is_some_and(|number| number > 1);
        let Mode { extended, multibyte, .. } = self.mode;
        // Bytes that are no characters of the locale get lost where letters change their case.
        let is_case = |piece| matches!(piece, Piece::Escaped('L' | 'U' | 'l' | 'u'));
        if !multibyte && pieces(&s.replacement).into_iter().any(is_case) {
            return true;
        }
        let cuts = |regex: &Regex| may_cut(regex, repeats, Syntax { extended, multibyte });
        if s.regex.text.is_empty() {
            return self.script.expressions().filter(|regex| !regex.text.is_empty()).any(cuts);
        }
        cuts(&s.regex)
    }
}

/// What a command can put into the output, besides what it takes from the line.
fn written(function: &Function) -> Vec<Piece> {
    match function {
        Function::Substitute(s) => pieces(&s.replacement),
        Function::Transliterate(_, text) => pieces(text),
        // How many backslashes it takes for an escape differs.
        Function::Text(_, text) if text.replace("\\\n", "").contains('\\') => {
            vec![Piece::Uncertain]
        }
        Function::Text(_, text) => text.chars().map(Piece::Character).collect(),
        _ => Vec::new(),
    }
}

/// What a command means for how often a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The line is another one.
    Changes,
    /// The line is written.
    Prints,
    /// The line is another one and is written.
    PrintsChanged,
    /// Something is written besides the line, or more than one line.
    Adds,
    /// The line is not written.
    Removes,
    /// Another line is written in its place.
    Replaces,
    /// What stands before may be done again.
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
