//! Checks every command and redirection in the syntax tree of shell source for side effects.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem,
    CompoundCommand, CompoundList, ExtendedTestExpr, IoFileRedirectKind, IoFileRedirectTarget,
    IoHereDocument, IoRedirect, Pipeline, RedirectList, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions, Token, tokenize_str};
use contend_commands::Word;

use super::Change;
use super::called::called;
use super::words::{UNKNOWN, arithmetic, between_quotes, read, subscript, words};

/// Files that a command may write to without a side effect, besides those in `/dev/fd`.
const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/stderr", "/dev/stdout", "/dev/zero"];

/// Returns the commands of the pipeline, or `None` if the source cannot be parsed, is empty, or has
/// several commands separated by newlines, `;` or `&`. Ignores pipelines after `&&` and `||`.
pub(super) fn stages(text: &str) -> Option<Vec<Command>> {
    let program = read_program(text)?;
    let mut items = program.into_iter().flat_map(|list| list.0);
    let (item, None) = (items.next()?, items.next()) else { return None };
    Some(item.0.first.seq)
}

fn read_program(text: &str) -> Option<Vec<CompoundList>> {
    if is_misplaced(text) {
        return None;
    }
    let program = Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program();
    program.ok().map(|program| program.complete_commands)
}

/// Returns whether brush-parser 0.4 may have misplaced the content of a substitution: the source
/// has a here-document and an empty substitution. After a `<<WORD` on the same line, the content
/// may appear outside of the substitution.
fn is_misplaced(text: &str) -> bool {
    let tokens = tokenize_str(text).unwrap_or_default();
    let is_here =
        |token: &Token| matches!(token, Token::Operator(name, _) if name.starts_with("<<"));
    let is_empty =
        |token: &Token| ["$()", "$(()", "$[]", "${}"].iter().any(|e| token.to_str().contains(e));
    tokens.iter().any(is_here) && tokens.iter().any(is_empty)
}

/// Checks that complete source, such as a setup or the content of a substitution, has no side
/// effects.
pub(super) fn program(text: &str) -> Result<(), Change> {
    read_program(text).ok_or(Change::Unparsed)?.iter().try_for_each(list)
}

pub(super) fn list(list: &CompoundList) -> Result<(), Change> {
    list.0.iter().try_for_each(|item| item.0.iter().try_for_each(|(_, part)| pipeline(part)))
}

fn pipeline(pipeline: &Pipeline) -> Result<(), Change> {
    pipeline.seq.iter().try_for_each(command)
}

pub(super) fn command(command: &Command) -> Result<(), Change> {
    match command {
        Command::Simple(found) => simple(found),
        Command::Compound(found, redirects) => {
            compound(found)?;
            redirect_list(redirects.as_ref())
        }
        // The body is judged at its definition, whether or not the function is called.
        Command::Function(function) => {
            compound(&function.body.0)?;
            redirect_list(function.body.1.as_ref())
        }
        Command::ExtendedTest(test, redirects) => {
            extended_test(&test.expr)?;
            redirect_list(redirects.as_ref())
        }
    }
}

fn compound(compound: &CompoundCommand) -> Result<(), Change> {
    match compound {
        CompoundCommand::Arithmetic(found) => arithmetic(&found.expr.value),
        CompoundCommand::ArithmeticForClause(found) => {
            let parts = [&found.initializer, &found.condition, &found.updater];
            parts.into_iter().flatten().try_for_each(|part| arithmetic(&part.value))?;
            list(&found.body.list)
        }
        CompoundCommand::BraceGroup(found) => list(&found.list),
        CompoundCommand::Subshell(found) => list(&found.list),
        CompoundCommand::ForClause(found) => {
            words(found.values.iter().flatten())?;
            list(&found.body.list)
        }
        CompoundCommand::CaseClause(found) => {
            words([&found.value])?;
            words(found.cases.iter().flat_map(|case| &case.patterns))?;
            found.cases.iter().filter_map(|case| case.cmd.as_ref()).try_for_each(list)
        }
        CompoundCommand::IfClause(found) => {
            list(&found.condition)?;
            list(&found.then)?;
            found.elses.iter().flatten().try_for_each(|part| {
                part.condition.iter().try_for_each(list)?;
                list(&part.body)
            })
        }
        CompoundCommand::WhileClause(found) | CompoundCommand::UntilClause(found) => {
            list(&found.0)?;
            list(&found.1.list)
        }
        CompoundCommand::Coprocess(found) => command(&found.body),
    }
}

fn extended_test(test: &ExtendedTestExpr) -> Result<(), Change> {
    let both = match test {
        ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
            extended_test(left)?;
            return extended_test(right);
        }
        ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
            return extended_test(inner);
        }
        ExtendedTestExpr::UnaryTest(_, word) => [Some(word), None],
        ExtendedTestExpr::BinaryTest(_, left, right) => [Some(left), Some(right)],
    };
    both.into_iter().flatten().try_for_each(|word| subscript(&read(&word.value)?.text))
}

fn simple(simple: &SimpleCommand) -> Result<(), Change> {
    let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    for item in prefix {
        item_of(item)?;
    }
    let mut seen = Vec::new();
    if let Some(name) = &simple.word_or_name {
        seen.push(read(&name.value)?);
    }
    for item in suffix {
        seen.extend(item_of(item)?);
    }
    called(&seen)
}

/// Checks that expanding an item of a simple command, or redirecting, has no side effects. Returns
/// the item as a word of the command, or `None` if it is a redirection.
fn item_of(item: &CommandPrefixOrSuffixItem) -> Result<Option<Word>, Change> {
    match item {
        CommandPrefixOrSuffixItem::IoRedirect(found) => redirect(found).map(|()| None),
        CommandPrefixOrSuffixItem::Word(word) => read(&word.value).map(Some),
        CommandPrefixOrSuffixItem::AssignmentWord(found, word) => {
            assignment(found)?;
            match found.value {
                AssignmentValue::Scalar(_) => read(&word.value).map(Some),
                AssignmentValue::Array(_) => Ok(Some(Word::new(UNKNOWN))),
            }
        }
        // The command receives the path of a pipe.
        CommandPrefixOrSuffixItem::ProcessSubstitution(_, inner) => {
            list(&inner.list).map(|()| Some(Word::new("/dev/fd/63")))
        }
    }
}

fn assignment(assignment: &Assignment) -> Result<(), Change> {
    if let AssignmentName::ArrayElementName(_, index) = &assignment.name {
        arithmetic(index)?;
    }
    match &assignment.value {
        AssignmentValue::Scalar(word) => words([word]),
        AssignmentValue::Array(elements) => elements.iter().try_for_each(|(key, value)| {
            words(key)?;
            words([value])
        }),
    }
}

fn redirect_list(redirects: Option<&RedirectList>) -> Result<(), Change> {
    redirects.iter().flat_map(|redirects| &redirects.0).try_for_each(redirect)
}

fn redirect(redirect: &IoRedirect) -> Result<(), Change> {
    match redirect {
        IoRedirect::File(_, kind, IoFileRedirectTarget::Filename(word)) => {
            let file = read(&word.value)?.text;
            // For these paths, bash connects to another machine.
            let connects = file.starts_with("/dev/tcp/") || file.starts_with("/dev/udp/");
            let reads = matches!(kind, IoFileRedirectKind::Read) && !connects;
            if reads || is_device(&file) { Ok(()) } else { Err(Change::Writes) }
        }
        IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
            let target = read(&word.value)?.text;
            let reads = matches!(kind, IoFileRedirectKind::DuplicateInput);
            // Anything but a descriptor, or `-` to close it, is the name of a file.
            let number = target.strip_suffix('-').unwrap_or(&target);
            let descriptor = number.chars().all(|c| c.is_ascii_digit()) && !target.is_empty();
            if reads || descriptor || is_device(&target) { Ok(()) } else { Err(Change::Writes) }
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::ProcessSubstitution(_, inner)) => {
            list(&inner.list)
        }
        IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_)) => Ok(()),
        IoRedirect::HereDocument(_, document) => here_document(document),
        IoRedirect::HereString(_, word) => words([word]),
        IoRedirect::OutputAndError(word, _) => {
            if is_device(&read(&word.value)?.text) {
                Ok(())
            } else {
                Err(Change::Writes)
            }
        }
    }
}

fn is_device(file: &str) -> bool {
    let number = |number: &str| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    DEVICES.contains(&file) || file.strip_prefix("/dev/fd/").is_some_and(number)
}

fn here_document(document: &IoHereDocument) -> Result<(), Change> {
    if document.requires_expansion { between_quotes(&document.doc.value) } else { Ok(()) }
}
