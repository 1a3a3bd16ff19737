//! Properties of a program's output, and of its comparisons.

use super::ast::{Action, Chain, Expression, Pattern, Place, Program, Rule, Statement};
use super::values::assigned;
use super::walk::{Node, Walk};

/// Returns whether `print` may end its output with anything but a newline. `given` lists the
/// variables that the command's arguments assign.
pub(super) fn changes_line_end(program: &Program, given: &[&str]) -> bool {
    given.contains(&"ORS") || assigned(program.items.as_slice()).contains("ORS")
}

/// Returns whether the rules certainly print each record at most once, unchanged, and nothing else.
/// How `print` ends its output is not considered.
pub(super) fn prints_at_most_its_line(program: &Program) -> bool {
    let mut plain = true;
    program.walk(&mut |node| {
        plain &= match node {
            Node::Statement(Statement { action: Action::Print(print), .. }) => {
                !print.formatted
                    && print.arguments.iter().all(is_record)
                    && print.arguments.len() < 2
            }
            Node::Statement(_) => true,
            Node::Expression(expression) => !changes_record(expression),
        };
    });
    let mut prints = Some(0);
    let mut most = 0;
    for rule in program.rules() {
        let before = prints.unwrap_or(0);
        let (through, left) = rule_prints(rule, before);
        most = most.max(left.unwrap_or(0));
        let passed_by = if rule.pattern == Pattern::Always { None } else { prints };
        prints = passed_by.max(through);
    }
    plain && most.max(prints.unwrap_or(0)) <= 1
}

fn is_record(argument: &Expression) -> bool {
    match argument.bare() {
        Expression::Place(Place::Field(number)) => **number == Expression::Number("0".to_owned()),
        _ => false,
    }
}

fn changes_record(expression: &Expression) -> bool {
    let is_part = |place: &Place| match place {
        Place::Field(_) => true,
        Place::Variable(name) => name == "NF",
        Place::Element(..) => false,
    };
    match expression {
        Expression::Assign(assignment) => is_part(&assignment.target),
        Expression::Step(step) => is_part(&step.target),
        Expression::Call(name, arguments) if name == "sub" || name == "gsub" => {
            match arguments.get(2) {
                Some(Expression::Place(place)) => is_part(place),
                _ => true,
            }
        }
        _ => false,
    }
}

/// Returns upper bounds on the number of `print`s so far: at the end of the rule, and at `next`.
/// `before` is the bound at the start of the rule. A bound above 1 stands for any number, and
/// `None` means that control does not get there.
fn rule_prints(rule: &Rule, before: u32) -> (Option<u32>, Option<u32>) {
    let Some(action) = &rule.action else { return (Some(before + 1), None) };
    let mut left = None;
    let through = all_prints(action, Some(before), &mut left);
    (through, left)
}

fn all_prints(
    statements: &[Statement],
    before: Option<u32>,
    left: &mut Option<u32>,
) -> Option<u32> {
    statements.iter().fold(before, |before, statement| prints(statement, before, left))
}

fn prints(statement: &Statement, before: Option<u32>, left: &mut Option<u32>) -> Option<u32> {
    let count = before?;
    match &statement.action {
        Action::Print(_) => Some(count + 1),
        Action::Block(body) => all_prints(body, before, left),
        Action::If(_, then, otherwise) => {
            let then = prints(then, before, left);
            let otherwise = match otherwise {
                Some(otherwise) => prints(otherwise, before, left),
                None => before,
            };
            then.max(otherwise)
        }
        Action::Next => {
            *left = (*left).max(before);
            None
        }
        Action::While(_, body) | Action::Do(body, _) | Action::ForIn(_, _, body) => {
            loop_prints(body, count, left)
        }
        Action::For(turns) => loop_prints(&turns.body, count, left),
        _ => before,
    }
}

/// Returns the bound on the number of `print`s after a loop, as [`rule_prints`] does for a rule,
/// and updates `left`, the bound at `next`. If the body may print, the bound exceeds 1.
fn loop_prints(body: &Statement, before: u32, left: &mut Option<u32>) -> Option<u32> {
    let mut inner = None;
    let after = prints(body, Some(before), &mut inner).max(Some(before));
    let again = if after > Some(before) { 2 } else { 0 };
    *left = (*left).max(inner.map(|count| count + again));
    after.map(|count| count + again)
}

/// Returns whether the program may compare a missing field as a number. busybox's awk compares it
/// as a string instead if an earlier record had that field. A comparison is harmless if one side is
/// certainly a string, or if both sides are certainly numbers.
pub(super) fn compares_fields(program: &Program) -> bool {
    let mut may = false;
    program.walk(&mut |node| {
        if let Node::Expression(Expression::Chain(Chain::Comparison, sides)) = node {
            let certain = sides.iter().any(is_string) || sides.iter().all(is_number);
            may |= !certain;
        }
    });
    may
}

/// Returns whether a value is certainly a string, so that it is compared as one.
fn is_string(value: &Expression) -> bool {
    match value.bare() {
        Expression::Text(_) | Expression::Chain(Chain::Concatenation, _) => true,
        Expression::Call(name, _) => {
            ["substr", "sprintf", "tolower", "toupper"].contains(&name.as_str())
        }
        _ => false,
    }
}

/// Returns whether a value is certainly a number.
fn is_number(value: &Expression) -> bool {
    match value.bare() {
        Expression::Number(_) | Expression::Signed(_) | Expression::Step(_) => true,
        Expression::Chain(kind, _) => *kind != Chain::Concatenation,
        Expression::Place(Place::Variable(name)) => name == "NF",
        Expression::Call(name, _) => {
            ["length", "index", "int", "match", "split", "gsub", "sub"].contains(&name.as_str())
        }
        _ => false,
    }
}

/// Returns whether an awk that works on bytes may split multibyte characters.
pub(super) fn may_split_characters(program: &Program) -> bool {
    let mut may = false;
    program.walk(&mut |node| {
        may |= match node {
            Node::Statement(Statement { action: Action::Print(print), .. }) => {
                print.formatted && !print.arguments.first().is_some_and(is_whole_format)
            }
            Node::Statement(_) => false,
            Node::Expression(expression) => cuts(expression),
        };
    });
    may
}

fn cuts(expression: &Expression) -> bool {
    match expression {
        Expression::Call(name, arguments) => match name.as_str() {
            "substr" | "patsplit" => true,
            "sprintf" => !arguments.first().is_some_and(is_whole_format),
            "sub" | "gsub" | "gensub" => !arguments.first().is_some_and(is_plain_pattern),
            "split" => arguments.get(2).is_some_and(|separator| !is_plain_separator(separator)),
            "match" => arguments.len() > 2,
            _ => false,
        },
        Expression::Assign(assignment) => {
            assignment.target == Place::Variable("FS".to_owned())
                && !is_plain_separator(&assignment.value)
        }
        _ => false,
    }
}

/// Returns whether a format certainly neither truncates a string nor prints a single byte.
fn is_whole_format(format: &Expression) -> bool {
    let Expression::Text(text) = format else { return false };
    let Some(value) = &text.value else { return false };
    let mut rest = value.as_slice();
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        rest = &rest[at + 1..];
        let flags = rest.iter().take_while(|b| b"-+ #0123456789".contains(b)).count();
        match rest.get(flags) {
            Some(
                b'd' | b'i' | b'o' | b'x' | b'X' | b'u' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G'
                | b's' | b'%',
            ) => {
                rest = &rest[flags + 1..];
            }
            // The precision of a number.
            Some(b'.') => {
                let digits = rest[flags + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
                match rest.get(flags + 1 + digits) {
                    Some(b'd' | b'i' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G') => {
                        rest = &rest[flags + digits + 2..];
                    }
                    _ => return false,
                }
            }
            _ => return false,
        }
    }
    true
}

/// Returns whether a separator is certainly a single ASCII character, or a pattern that matches
/// only single-byte characters.
fn is_plain_separator(separator: &Expression) -> bool {
    match separator {
        Expression::Text(text) if text.value.as_ref().is_some_and(|value| value.len() == 1) => {
            text.value.as_ref().is_some_and(|value| value.is_ascii())
        }
        other => is_plain_pattern(other),
    }
}

/// Returns whether a pattern certainly matches one or more single-byte characters, and nothing
/// else.
fn is_plain_pattern(pattern: &Expression) -> bool {
    let text = match pattern {
        Expression::Regex(text) => text.clone(),
        Expression::Text(text) => match &text.value {
            Some(value) => String::from_utf8_lossy(value).into_owned(),
            None => return false,
        },
        _ => return false,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || " _:,;=@#%&<>\"'~!-\t+".contains(c);
    let mut rest = text.trim_start_matches('^').trim_end_matches('$');
    if rest.is_empty() || text.ends_with("\\$") {
        return false;
    }
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\\' => match rest[1..].chars().next() {
                Some(next) if next.is_ascii_punctuation() && !"<>`'".contains(next) => 2,
                Some('t') => 2,
                _ => return false,
            },
            '[' => match rest.find(']') {
                Some(end)
                    if end > 1 && rest[1..end].chars().all(|c| plain(c) || ".|*/".contains(c)) =>
                {
                    end + 1
                }
                _ => return false,
            },
            c if plain(c) => 1,
            _ => return false,
        };
        rest = &rest[length..];
    }
    true
}

/// Returns whether the output may contain a NUL byte that is not in the input.
pub(super) fn writes_nul(program: &Program) -> bool {
    let mut may = false;
    program.walk(&mut |node| {
        let Node::Expression(expression) = node else {
            if let Node::Statement(Statement { action: Action::Print(print), .. }) = node {
                may |= print.formatted
                    && print.arguments.first().is_none_or(|f| !has_no_characters(f));
            }
            return;
        };
        may |= match expression {
            Expression::Text(text) => text.value.as_ref().is_none_or(|value| value.contains(&0)),
            Expression::Call(name, arguments) if name == "sprintf" => {
                arguments.first().is_none_or(|format| !has_no_characters(format))
            }
            _ => false,
        };
    });
    may
}

fn has_no_characters(format: &Expression) -> bool {
    match format {
        Expression::Text(text) => text.value.as_ref().is_some_and(|value| {
            let letters = value.split(|b| *b == b'%').skip(1);
            letters.into_iter().all(|rest| {
                let letter = rest.iter().find(|b| !b"-+ #0123456789.*".contains(b));
                letter != Some(&b'c')
            })
        }),
        _ => false,
    }
}
