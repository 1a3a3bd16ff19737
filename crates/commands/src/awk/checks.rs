//! Checks the parts of a program for constructs that prevent it from running in chunks.

use std::collections::BTreeSet;

use super::ast::{Action, Expression, Function, ItemKind, Place, Program, Statement};
use super::names;
use super::rejection::Rejection;
use super::values::assigned;
use super::walk::{Node, Walk};

/// Functions that affect the world outside the program.
const SIDE_EFFECT_FUNCTIONS: &[&str] = &["system", "close", "fflush", "extension"];

/// Functions whose values differ from run to run.
const NONDETERMINISTIC_FUNCTIONS: &[&str] = &["rand", "srand", "systime", "strftime", "mktime"];

/// Functions of gawk that are not analyzed, so that programs with them are rejected.
const UNSUPPORTED_FUNCTIONS: &[&str] = &[
    "asort",
    "asorti",
    "patsplit",
    "typeof",
    "isarray",
    "mkbool",
    "bindtextdomain",
    "dcgettext",
    "dcngettext",
];

/// Variables that describe the whole input or the command's arguments.
const INPUT_VARIABLES: &[&str] = &["FILENAME", "ARGC", "ARGV"];

/// Variables whose assignment affects later records or other rules.
const AFFECTING_LATER_RECORDS: &[&str] = &["FS", "OFS", "ORS", "SUBSEP", "CONVFMT", "OFMT"];

/// Checks the variables `names`, which the command's arguments assign. Fails for `RS`, `NR`, `FNR`,
/// `NF`, variables that describe the input or the arguments, and variables that are special in
/// gawk.
pub(super) fn given(names: &[&str]) -> Result<(), Rejection> {
    for name in names {
        match *name {
            "RS" => return Err(Rejection::Separator),
            "NR" | "FNR" => return Err(Rejection::CountsRecords((*name).to_owned())),
            name if name == "NF" || is_outer(name) => {
                return Err(Rejection::DescribesInput(name.to_owned()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_outer(name: &str) -> bool {
    INPUT_VARIABLES.contains(&name) || names::GAWK_VARIABLES.contains(&name)
}

/// Fails with the first rejection that `wrong` returns for a node of `part`.
fn first<W: Walk + ?Sized>(
    part: &W,
    mut wrong: impl FnMut(Node<'_>) -> Option<Rejection>,
) -> Result<(), Rejection> {
    let mut found = None;
    part.walk(&mut |node| {
        if found.is_none() {
            found = wrong(node);
        }
    });
    found.map_or(Ok(()), Err)
}

/// Returns why a node is forbidden in all parts of a program, or `None` if some part may contain
/// it.
fn wrong_anywhere(node: Node<'_>) -> Option<Rejection> {
    let mut outer = None;
    names::uses(node, &mut |name, _| {
        if is_outer(name) {
            outer = Some(Rejection::DescribesInput(name.to_owned()));
        }
    });
    match node {
        Node::Expression(Expression::Getline(..)) => Some(Rejection::UsesGetline),
        Node::Expression(Expression::Call(name, _)) => match name.as_str() {
            name if SIDE_EFFECT_FUNCTIONS.contains(&name) => {
                Some(Rejection::ReachesOut(name.to_owned()))
            }
            name if NONDETERMINISTIC_FUNCTIONS.contains(&name) => {
                Some(Rejection::VariesByRun(name.to_owned()))
            }
            name if UNSUPPORTED_FUNCTIONS.contains(&name) => {
                Some(Rejection::unread(format!("`{name}()` is a gawk extension")))
            }
            _ => outer,
        },
        Node::Statement(Statement { action: Action::Print(print), .. })
            if print.output.is_some() =>
        {
            Some(Rejection::Redirects)
        }
        _ => outer,
    }
}

fn counter(node: Node<'_>) -> Option<Rejection> {
    let mut found = None;
    names::uses(node, &mut |name, _| {
        if ["NR", "FNR"].contains(&name) {
            found = Some(Rejection::CountsRecords(name.to_owned()));
        }
    });
    found
}

/// Checks BEGIN actions: they must set up the same state each time, without visible effects, and
/// may assign only a newline to `RS`.
pub(super) fn begins(program: &Program) -> Result<(), Rejection> {
    for begin in program.begins() {
        first(begin, |node| match node {
            Node::Statement(statement) => match &statement.action {
                Action::Print(_) => Some(Rejection::HasBeginEffect("`print`")),
                Action::Exit(_) => Some(Rejection::HasBeginEffect("`exit`")),
                Action::ForIn(_, array, _) => Some(Rejection::UnspecifiedOrder(array.clone())),
                _ => wrong_anywhere(node),
            },
            Node::Expression(Expression::Assign(assignment))
                if is_separator(&assignment.target) =>
            {
                let text = match &assignment.value {
                    Expression::Text(text) if assignment.operator == "=" => text.value.as_deref(),
                    _ => None,
                };
                (text != Some(b"\n")).then_some(Rejection::Separator)
            }
            Node::Expression(_) => {
                wrong_anywhere(node).or_else(|| counter(node)).or_else(|| changes_separator(node))
            }
        })?;
    }
    Ok(())
}

fn is_separator(place: &Place) -> bool {
    matches!(place, Place::Variable(name) if name == "RS")
}

/// Returns a rejection if a node changes `RS` by `++`, `--` or a substitution, and `None`
/// otherwise.
fn changes_separator(node: Node<'_>) -> Option<Rejection> {
    let changed = match node {
        Node::Expression(Expression::Step(step)) => is_separator(&step.target),
        Node::Expression(Expression::Call(name, arguments)) if name.ends_with("sub") => {
            arguments.iter().any(|a| matches!(a, Expression::Place(place) if is_separator(place)))
        }
        _ => false,
    };
    changed.then_some(Rejection::Separator)
}

/// Checks rules: they must not use ranges, `NR`, `FNR`, `exit` or loops over arrays, contain a
/// construct that is forbidden everywhere, or affect how later records are processed.
pub(super) fn rules(program: &Program) -> Result<(), Rejection> {
    for item in &program.items {
        let ItemKind::Rule(rule) = &item.kind else { continue };
        if let super::ast::Pattern::Range(..) = rule.pattern {
            let text = &program.text[item.place.clone()];
            let pattern = text.split('{').next().unwrap_or(text).trim();
            return Err(Rejection::Range(pattern.to_owned()));
        }
        first(rule, |node| match node {
            Node::Statement(Statement { action: Action::Exit(_), .. }) => {
                Some(Rejection::EndsEarly)
            }
            Node::Statement(Statement { action: Action::ForIn(_, array, _), .. }) => {
                Some(Rejection::UnspecifiedOrder(array.clone()))
            }
            _ => wrong_anywhere(node).or_else(|| counter(node)),
        })?;
        let assigned = assigned(rule);
        if assigned.contains("RS") {
            return Err(Rejection::Separator);
        }
        if let Some(name) = AFFECTING_LATER_RECORDS.iter().find(|name| assigned.contains(*name)) {
            return Err(Rejection::AffectsLaterRecords((*name).to_owned()));
        }
    }
    Ok(())
}

/// Checks user-defined functions: they may only compute a value from their parameters, which must
/// not be arrays, and from names that are not in `changing`.
pub(super) fn functions(program: &Program, changing: &BTreeSet<&str>) -> Result<(), Rejection> {
    let arrays = arrays(program);
    for function in program.functions() {
        let wrong = || Rejection::Function(function.name.clone());
        first(function.body.as_slice(), |node| wrong_anywhere(node).or_else(|| counter(node)))?;
        if !is_computation(function, changing) {
            return Err(wrong());
        }
    }
    first(program, |node| match node {
        Node::Expression(Expression::UserCall(name, arguments)) => arguments
            .iter()
            .any(|a| matches!(a, Expression::Name(n) if arrays.contains(n.as_str())))
            .then(|| Rejection::Function(name.clone())),
        _ => None,
    })
}

fn is_computation(function: &Function, changing: &BTreeSet<&str>) -> bool {
    let is_local = |name: &str| function.parameters.iter().any(|parameter| parameter == name);
    let mut fine = true;
    function.body.walk(&mut |node| {
        fine &= match node {
            Node::Statement(statement) => !matches!(
                statement.action,
                Action::Print(_) | Action::Exit(_) | Action::Delete(..) | Action::ForIn(..)
            ),
            Node::Expression(Expression::Assign(a)) => !matches!(a.target, Place::Field(_)),
            Node::Expression(Expression::Step(step)) => !matches!(step.target, Place::Field(_)),
            Node::Expression(Expression::Call(name, arguments)) => match name.as_str() {
                "sub" | "gsub" => {
                    matches!(arguments.get(2), Some(Expression::Place(Place::Variable(_))))
                }
                "split" | "match" => false,
                _ => true,
            },
            Node::Expression(_) => true,
        };
        names::uses(node, &mut |name, is_array| {
            fine &= if is_local(name) { !is_array } else { !changing.contains(name) };
        });
        if let Node::Expression(Expression::Name(name)) = node {
            fine &= is_local(name) || !changing.contains(name.as_str());
        }
    });
    fine && assigned(function.body.as_slice()).into_iter().all(is_local)
}

/// Returns the names of a program's arrays.
pub(super) fn arrays(program: &Program) -> BTreeSet<&str> {
    let mut arrays = BTreeSet::new();
    program.walk(&mut |node| {
        names::uses(node, &mut |name, is_array| {
            if is_array {
                arrays.insert(name);
            }
        });
    });
    arrays
}

/// Checks END actions: they must not use the last record, assign `NR`, or contain a construct that
/// is forbidden everywhere.
pub(super) fn ends(program: &Program) -> Result<(), Rejection> {
    let mut calls = false;
    for end in program.ends() {
        first(end, |node| {
            calls |= matches!(node, Node::Expression(Expression::UserCall(..)));
            wrong_anywhere(node).or_else(|| assigns_count(node))
        })?;
        not_the_record(end)?;
    }
    // Checks every function, without finding out which ones END calls.
    if calls {
        program.functions().try_for_each(|function| not_the_record(function.body.as_slice()))?;
    }
    Ok(())
}

fn assigns_count(node: Node<'_>) -> Option<Rejection> {
    let target = match node {
        Node::Expression(Expression::Assign(assignment)) => &assignment.target,
        Node::Expression(Expression::Step(step)) => &step.target,
        _ => return None,
    };
    let counts = matches!(target, Place::Variable(name) if name == "NR");
    counts.then(|| Rejection::CountsRecords("NR".to_owned()))
}

fn not_the_record(statements: &[Statement]) -> Result<(), Rejection> {
    let last = |name: &str| Some(Rejection::LastLine(name.to_owned()));
    // A regular expression is matched against the record unless its position requires one, as after
    // `~`.
    let mut alone = 0_usize;
    let mut in_place = 0;
    first(statements, |node| {
        let mut found = None;
        names::uses(node, &mut |name, _| {
            if ["NF", "FNR"].contains(&name) {
                found = last(name);
            }
        });
        match node {
            Node::Statement(Statement { action: Action::Print(print), .. }) => {
                if print.arguments.is_empty() {
                    return last("$0");
                }
            }
            Node::Statement(_) => {}
            Node::Expression(expression) => {
                alone += usize::from(matches!(expression, Expression::Regex(_)));
                in_place += wanted_regexes(expression);
                if uses_record(expression) {
                    return last("$0");
                }
            }
        }
        found
    })?;
    if alone == in_place { Ok(()) } else { Err(Rejection::LastLine("$0".to_owned())) }
}

fn uses_record(expression: &Expression) -> bool {
    match expression {
        Expression::Place(place) => matches!(place, Place::Field(_)),
        Expression::Assign(assignment) => matches!(assignment.target, Place::Field(_)),
        Expression::Step(step) => matches!(step.target, Place::Field(_)),
        Expression::Call(name, arguments) => match name.as_str() {
            "sub" | "gsub" => arguments.len() < 3,
            "gensub" => arguments.len() < 4,
            "length" => arguments.is_empty(),
            _ => false,
        },
        _ => false,
    }
}

/// Returns the number of operands of `expression` that are regular expressions in a position that
/// requires one.
fn wanted_regexes(expression: &Expression) -> usize {
    let place = match expression {
        Expression::Chain(super::ast::Chain::Match, parts) => parts.get(1),
        Expression::Call(name, arguments) => match name.as_str() {
            "sub" | "gsub" | "gensub" => arguments.first(),
            "match" => arguments.get(1),
            "split" => arguments.get(2),
            _ => None,
        },
        _ => None,
    };
    usize::from(matches!(place, Some(Expression::Regex(_))))
}
