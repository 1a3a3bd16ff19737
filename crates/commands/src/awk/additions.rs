//! Finds statements that add to variables or array elements, and names that programs change only by
//! adding.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Action, Assignment, Expression, Place, Program, Statement};
use super::flow::Known;
use super::names;
use super::values::assigned;
use super::walk::{Node, Walk};

/// Exclusive upper bound of the sum of the absolute values that rules add. Doubles represent
/// integers up to 2^53 exactly, so END actions may add the same totals up to 8 times.
pub(super) const EXACT_SUM_LIMIT: u64 = 1 << 50;

/// Largest integer constant whose additions are not tracked: no input is long enough for their sum
/// to become inexact.
const MAX_UNTRACKED_CONSTANT: u32 = 1024;

/// Maximum number of statements that may add to one tally, so that it stays exact; see
/// [`EXACT_SUM_LIMIT`].
const MAX_TALLY_STATEMENTS: usize = 8;

/// An addition: `n++`, `n--`, `n += value`, `n -= value`, or the same for an element of an array.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addition<'a> {
    /// The name of the variable or of the array.
    pub(super) name: &'a str,
    /// The subscript; empty for a variable.
    pub(super) subscript: &'a [Expression],
    /// The amount added or subtracted; `None` for `++` and `--`.
    pub(super) value: Option<&'a Expression>,
    /// The assignment of `+=` or `-=`; `None` for `++` and `--`.
    pub(super) assignment: Option<&'a Assignment>,
}

/// Returns the addition if the whole expression is one, and `None` otherwise.
pub(super) fn addition(value: &Expression) -> Option<Addition<'_>> {
    let (target, value, assignment) = match value {
        Expression::Step(step) => (&step.target, None, None),
        Expression::Assign(found) if ["+=", "-="].contains(&found.operator.as_str()) => {
            (&found.target, Some(&found.value), Some(&**found))
        }
        _ => return None,
    };
    let (name, subscript) = match target {
        Place::Variable(name) => (name.as_str(), &[][..]),
        Place::Element(name, subscript) => (name.as_str(), subscript.as_slice()),
        Place::Field(_) => return None,
    };
    Some(Addition { name, subscript, value, assignment })
}

/// Returns the addition if the node is a statement that consists of one, and `None` otherwise.
fn added(node: Node<'_>) -> Option<Addition<'_>> {
    match node {
        Node::Statement(Statement { action: Action::Value(value), .. }) => addition(value),
        _ => None,
    }
}

/// Returns all statements in `part` that consist of an addition, with that addition.
pub(super) fn additions<W: Walk + ?Sized>(part: &W) -> Vec<(&Statement, Addition<'_>)> {
    let mut found = Vec::new();
    part.walk(&mut |node| {
        if let (Node::Statement(statement), Some(addition)) = (node, added(node)) {
            found.push((statement, addition));
        }
    });
    found
}

/// Returns the number of occurrences in `part` of each variable and array.
pub(super) fn mentions<W: Walk + ?Sized>(part: &W) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    part.walk(&mut |node| {
        let mut note = |name, _| *counts.entry(name).or_insert(0) += 1;
        names::uses(node, &mut note);
        if let Node::Expression(Expression::Name(name)) = node {
            note(name, false);
        }
    });
    counts
}

/// Returns the names that occur in `part` only as the targets of additions that are statements of
/// their own and have no other side effects. Special variables are not returned.
pub(super) fn only_added_to<W: Walk + ?Sized>(part: &W) -> BTreeSet<&str> {
    let mut counts = mentions(part);
    let mut names = BTreeSet::new();
    for (_, addition) in additions(part) {
        if has_no_effects(addition)
            && let Some(count) = counts.get_mut(addition.name)
        {
            *count -= 1;
            names.insert(addition.name);
        }
    }
    names.retain(|name| counts.get(name) == Some(&0) && !names::is_special(name));
    names
}

/// Returns whether evaluating the subscript and the value of an addition changes nothing, so that
/// they can be evaluated separately. Calls of user-defined functions, which are checked elsewhere,
/// count as changing nothing.
fn has_no_effects(addition: Addition<'_>) -> bool {
    let mut effects = false;
    let mut look = |node: Node<'_>| {
        effects |= match node {
            Node::Expression(
                Expression::Assign(_) | Expression::Step(_) | Expression::Getline(..),
            ) => true,
            Node::Expression(Expression::Call(name, _)) => {
                ["sub", "gsub", "match", "split"].contains(&name.as_str())
            }
            _ => false,
        };
    };
    addition.subscript.walk(&mut look);
    addition.value.iter().for_each(|value| value.walk(&mut look));
    !effects
}

/// Returns whether a value is an integer constant of at most `MAX_UNTRACKED_CONSTANT`.
pub(super) fn is_small(value: &Expression) -> bool {
    matches!(value, Expression::Number(n) if n.parse().is_ok_and(|n: u32| n <= MAX_UNTRACKED_CONSTANT))
}

/// Returns the tallies: variables that only END changes, by adding integers in 1 to
/// `MAX_TALLY_STATEMENTS` statements and possibly by assigning small constants. The integers are
/// small constants or elements of arrays in `sums`. `given` lists the variables that the command's
/// arguments assign.
pub(super) fn tallies<'a>(
    program: &'a Program,
    sums: &BTreeSet<&str>,
    given: &[&str],
) -> BTreeSet<&'a str> {
    let mut others: BTreeSet<&str> = given.iter().copied().collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in &program.items {
        if matches!(item.kind, super::ast::ItemKind::End(_)) {
            others.extend(not_tallied(item, sums, &mut counts));
        } else {
            others.extend(assigned(item));
        }
    }
    let kept = |name: &str, count: usize| {
        count <= MAX_TALLY_STATEMENTS && !others.contains(name) && !names::is_special(name)
    };
    counts.into_iter().filter(|&(name, count)| kept(name, count)).map(|(name, _)| name).collect()
}

/// Returns the names that an END action changes in any way besides adding integers, assigning small
/// constants and deleting elements. Increases each variable's count in `counts` by the number of
/// statements that add integers to the variable.
fn not_tallied<'a>(
    end: &'a super::ast::Item,
    sums: &BTreeSet<&str>,
    counts: &mut BTreeMap<&'a str, usize>,
) -> BTreeSet<&'a str> {
    let whole = |value: &Expression| match value {
        Expression::Place(Place::Element(array, _)) => sums.contains(array.as_str()),
        other => is_small(other),
    };
    let mut changes: BTreeMap<&str, isize> = BTreeMap::new();
    let mut others = BTreeSet::new();
    end.walk(&mut |node| {
        let (name, change) = match node {
            // The last key depends on the order of the array.
            Node::Statement(Statement { action: Action::ForIn(variable, ..), .. }) => {
                others.insert(variable.as_str());
                return;
            }
            Node::Statement(_) => match added(node) {
                Some(Addition { name, subscript: [], value, .. }) if value.is_none_or(whole) => {
                    *counts.entry(name).or_insert(0) += 1;
                    (name, 1)
                }
                _ => return,
            },
            Node::Expression(Expression::Assign(assignment)) => match &assignment.target {
                Place::Variable(_) if assignment.operator == "=" && is_small(&assignment.value) => {
                    return;
                }
                Place::Variable(name) | Place::Element(name, _) => (name.as_str(), -1),
                Place::Field(_) => return,
            },
            Node::Expression(Expression::Step(step)) => match &step.target {
                Place::Variable(name) | Place::Element(name, _) => (name.as_str(), -1),
                Place::Field(_) => return,
            },
            Node::Expression(_) => {
                others.extend(assigned_by(node));
                return;
            }
        };
        *changes.entry(name).or_insert(0) += change;
    });
    others.extend(changes.into_iter().filter(|(_, change)| *change != 0).map(|(name, _)| name));
    others
}

/// Returns the names that a call of a built-in function may assign: those of its variable and array
/// arguments. Returns no names for any other node.
fn assigned_by(node: Node<'_>) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    if let Node::Expression(Expression::Call(_, arguments)) = node {
        for argument in arguments {
            if let Expression::Array(name) | Expression::Place(Place::Variable(name)) = argument {
                names.insert(name.as_str());
            }
        }
    }
    names
}

/// Returns the tallies that occur in the body of a loop over an array only as the targets of
/// additions.
pub(super) fn tallies_in<'a>(body: &'a Statement, known: &Known<'a>) -> BTreeSet<&'a str> {
    let mut names = only_added_to(body);
    names.retain(|name| known.tallies.contains(name));
    names
}
