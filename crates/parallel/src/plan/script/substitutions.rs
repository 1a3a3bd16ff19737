//! Finds stages whose words read the stage's input when they are expanded: in
//! `… | grep "$(head -n 1)"`, head takes the first line. Such a stage starts contend only after its
//! input has been read, so the stage before must not wait for it.

use brush_parser::ParserOptions;
use brush_parser::ast::{
    Command, CommandPrefixOrSuffixItem as Item, IoFileRedirectKind, IoFileRedirectTarget as Target,
    IoRedirect, SimpleCommand,
};
use brush_parser::word::{WordPiece, WordPieceWithSource, parse as parse_word};

use super::stages::items;
use super::walk::{Walk, parse};

/// Commands that read standard input only if an argument names it, as `-` does.
const READ_NOTHING: &[&str] = &[
    ":", "arch", "basename", "date", "df", "dirname", "du", "echo", "expr", "false", "find",
    "getconf", "groups", "hostname", "id", "jot", "ls", "mktemp", "nproc", "printf", "ps", "pwd",
    "readlink", "realpath", "seq", "stat", "test", "true", "type", "uname", "uptime", "which",
    "whoami",
];

/// Returns whether expanding the words and redirections of a stage may read its standard input.
pub(super) fn read_input(stage: &SimpleCommand) -> bool {
    items(stage).any(|item| match item {
        Item::Word(word)
        | Item::AssignmentWord(_, word)
        | Item::IoRedirect(
            IoRedirect::File(_, _, Target::Filename(word) | Target::Duplicate(word))
            | IoRedirect::HereString(_, word)
            | IoRedirect::OutputAndError(word, _),
        ) => reads_input(&word.value),
        Item::IoRedirect(IoRedirect::HereDocument(_, document)) => {
            document.requires_expansion && reads_input(&document.doc.value)
        }
        Item::IoRedirect(IoRedirect::File(..)) | Item::ProcessSubstitution(..) => false,
    })
}

/// Returns whether the shell may read standard input to expand the given word.
fn reads_input(word: &str) -> bool {
    if !has_substitution(word) {
        return false;
    }
    let pieces = parse_word(word, &ParserOptions::default());
    pieces.map_or(true, |pieces| pieces.iter().any(|piece| piece_reads_input(word, piece)))
}

fn has_substitution(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

fn piece_reads_input(word: &str, piece: &WordPieceWithSource) -> bool {
    match &piece.piece {
        WordPiece::CommandSubstitution(text) => commands_read_input(text),
        WordPiece::BackquotedCommandSubstitution(text) => {
            text.contains('\\') || commands_read_input(text)
        }
        WordPiece::DoubleQuotedSequence(inner) | WordPiece::GettextDoubleQuotedSequence(inner) => {
            inner.iter().any(|piece| piece_reads_input(word, piece))
        }
        WordPiece::SingleQuotedText(_) | WordPiece::AnsiCQuotedText(_) => false,
        WordPiece::ArithmeticExpression(inner) => has_substitution(&inner.value),
        // Nested substitutions are not parsed, nor is anything outside the grammar of words.
        WordPiece::ParameterExpansion(_)
        | WordPiece::Text(_)
        | WordPiece::EscapeSequence(_)
        | WordPiece::TildeExpansion(_) => {
            word.get(piece.start_index..piece.end_index).is_none_or(has_substitution)
        }
    }
}

/// Returns whether the commands of a substitution may read their standard input, which the first
/// command of a pipeline inherits.
fn commands_read_input(text: &str) -> bool {
    let Some(program) = parse(text) else { return true };
    Walk::of(&program).pipelines.iter().any(|found| match found.pipeline.seq.as_slice() {
        // The walk lists nested pipelines separately.
        [Command::Compound(..) | Command::Function(_), ..] => false,
        [Command::Simple(first), rest @ ..] => {
            let rest_reads = |stage: &Command| match stage {
                Command::Simple(stage) => read_input(stage),
                _ => false,
            };
            reads(first) || read_input(first) || rest.iter().any(rest_reads)
        }
        _ => true,
    })
}

/// Returns whether a command may read the standard input of the shell that starts it.
fn reads(command: &SimpleCommand) -> bool {
    if items(command).any(names_standard_input) {
        return true;
    }
    // Without a name, this is only an assignment, or `$(<file)`.
    let Some(name) = &command.word_or_name else { return false };
    let has_word = |is: fn(&str) -> bool| {
        items(command).any(|item| matches!(item, Item::Word(word) if is(&word.value)))
    };
    !items(command).any(replaces_standard_input)
        && match name.value.as_str() {
            "cat" => !has_word(|word| !word.starts_with('-')),
            name => !READ_NOTHING.contains(&name),
        }
}

/// Returns whether a word or redirection may name standard input: `-`, as in `date -f -`, a
/// duplicated descriptor (`<&0`), or a path such as `/dev/stdin`.
fn names_standard_input(item: &Item) -> bool {
    let is_path =
        |word: &str| ["/dev/stdin", "/dev/fd/", "/proc/"].iter().any(|path| word.contains(path));
    match item {
        Item::Word(word) => word.value == "-" || is_path(&word.value),
        Item::IoRedirect(IoRedirect::File(_, kind, target)) => {
            matches!(kind, IoFileRedirectKind::DuplicateInput)
                || matches!(target, Target::Filename(word) if is_path(&word.value))
        }
        _ => false,
    }
}

/// Returns whether a redirection gives a command another standard input.
fn replaces_standard_input(item: &Item) -> bool {
    let Item::IoRedirect(redirect) = item else { return false };
    matches!(
        redirect,
        IoRedirect::File(None | Some(0), IoFileRedirectKind::Read, _)
            | IoRedirect::HereDocument(None | Some(0), _)
            | IoRedirect::HereString(None | Some(0), _)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads_input_in(stage: &str) -> bool {
        let program = parse(stage).expect("it is understood");
        let walk = Walk::of(&program);
        let [found] = walk.pipelines.as_slice() else { panic!("one pipeline") };
        let [Command::Simple(simple)] = found.pipeline.seq.as_slice() else { panic!("one stage") };
        read_input(simple)
    }

    #[test]
    fn a_command_that_may_read_standard_input_is_found() {
        for stage in [
            r#"sed "s/^/$(head -n 1)/""#,
            "grep `cat`",
            "grep $(read -r line; echo $line)",
            "grep $(echo a; cat)",
            "grep $(echo $(cat))",
            "grep ${x:-$(cat)}",
            "head -n $((1 + $(wc -l)))",
            "x=$(cat) awk 1",
            "sort >$(cat)",
            "sort <<<$(cat)",
            "grep $(if true; then cat; fi)",
            "grep $(unknown | tail -n 1)",
            "grep $(cat - b | cat)",
            "grep \"$(cat -- )\"",
            "grep $(date -f -)",
            "grep $(head -n1 <&0)",
            "grep $(wc -l </dev/stdin)",
            "grep $(cat /proc/self/fd/0)",
            "grep $(</dev/fd/0)",
            "grep $(head -n 1 3<words)",
            "cut -c \"`echo \\`cat\\``\"",
        ] {
            assert!(reads_input_in(stage), "{stage}");
        }
    }

    #[test]
    fn commands_that_read_nothing_and_other_inputs_are_told_from_it() {
        for stage in [
            "grep a",
            "grep '$(cat)'",
            "grep \\$\\(cat\\)",
            r#"sed "s/^/$(date +%F)/""#,
            "head -n $(echo 2 | cat)",
            "head -n $((1 + 2))",
            "grep -f $(cat words)",
            "grep $(<words)",
            "grep $(head -n 1 <words)",
            "grep $(for x in 1 2; do echo $x; done)",
            "grep ${x:-a}",
        ] {
            assert!(!reads_input_in(stage), "{stage}");
        }
    }
}
