//! Definite assignment analysis of expressions.

use std::collections::BTreeSet;

use super::ast::{Action, Expression, Place, Statement};
use super::flow::{Defined, Flow, Stage, join, union, with};
use super::rejection::Rejection;
use super::walk::{Node, Walk};

impl<'a> Flow<'a> {
    /// Analyzes a condition. Returns the facts for the case that it is true and the case that it is
    /// false. The fact for an impossible case is `None`.
    pub(super) fn condition(
        &mut self,
        condition: &'a Expression,
        defined: Defined<'a>,
    ) -> Result<(Defined<'a>, Defined<'a>), Rejection> {
        match condition {
            Expression::Group(inner) => self.condition(inner, defined),
            Expression::Not(inner) => {
                let (yes, no) = self.condition(inner, defined)?;
                Ok((no, yes))
            }
            Expression::And(parts) => parts.iter().try_fold((defined, None), |(yes, no), part| {
                let (still, not) = self.condition(part, yes)?;
                Ok((still, join(no, not)))
            }),
            Expression::Or(parts) => parts.iter().try_fold((None, defined), |(yes, no), part| {
                let (one, still) = self.condition(part, no)?;
                Ok((join(yes, one), still))
            }),
            Expression::Number(number) if number.parse().is_ok_and(|n: f64| n != 0.0) => {
                Ok((defined, None))
            }
            other => {
                let defined = self.value(other, defined)?;
                Ok((defined.clone(), defined))
            }
        }
    }

    /// Analyzes expressions that awk may evaluate in any order, so that none may rely on the
    /// assignments of another. Returns the names assigned after all of them.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of all transfer functions")]
    pub(super) fn unordered(
        &mut self,
        values: &'a [Expression],
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        let mut all = defined.clone();
        for value in values {
            all = union(all, self.value(value, defined.clone())?);
        }
        Ok(all)
    }

    pub(super) fn value(
        &mut self,
        value: &'a Expression,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        if defined.is_none() {
            return Ok(None);
        }
        match value {
            Expression::Number(_)
            | Expression::Text(_)
            | Expression::Regex(_)
            | Expression::Array(_)
            | Expression::Getline(..) => Ok(defined),
            Expression::Place(place) => self.read(place, defined),
            Expression::Name(name) if self.known.arrays.contains(name.as_str()) => {
                self.members(name, &defined)?;
                Ok(defined)
            }
            Expression::Name(name) => self.name(name, defined),
            Expression::Group(inner) | Expression::Signed(inner) => self.value(inner, defined),
            Expression::Step(step) => self.read(&step.target, defined),
            Expression::Not(_) | Expression::And(_) | Expression::Or(_) => {
                let (yes, no) = self.condition(value, defined)?;
                Ok(join(yes, no))
            }
            Expression::Choice(parts) => {
                let [condition, then, otherwise] = &**parts;
                let (yes, no) = self.condition(condition, defined)?;
                Ok(join(self.value(then, yes)?, self.value(otherwise, no)?))
            }
            Expression::Assign(assignment) => {
                let before = defined.clone();
                let defined = self.value(&assignment.value, defined)?;
                self.assign(&assignment.target, &assignment.operator, before, defined)
            }
            Expression::In(values, array) => {
                self.members(array, &defined)?;
                self.unordered(values, defined)
            }
            Expression::List(values)
            | Expression::Chain(_, values)
            | Expression::UserCall(_, values) => self.unordered(values, defined),
            Expression::Call(name, arguments) => {
                let defined = self.unordered(arguments, defined)?;
                Ok(called(name, arguments, defined))
            }
        }
    }

    fn assign(
        &mut self,
        target: &'a Place,
        operator: &str,
        before: Defined<'a>,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        if operator != "=" {
            self.read(target, before.clone())?;
        }
        let parts: &[Expression] = match target {
            Place::Variable(name) => return Ok(with(defined, name)),
            Place::Element(_, subscript) => subscript,
            Place::Field(number) => std::slice::from_ref(&**number),
        };
        Ok(union(defined, self.unordered(parts, before)?))
    }

    fn read(&mut self, place: &'a Place, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        match place {
            Place::Variable(name) => self.name(name, defined),
            Place::Element(name, subscript) => {
                let defined = self.unordered(subscript, defined)?;
                self.name(name, defined)
            }
            Place::Field(number) => self.value(number, defined),
        }
    }

    fn name(&self, name: &str, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        let is_defined = defined.as_ref().is_none_or(|set| set.contains(name));
        match self.stage {
            _ if is_defined || !self.known.changing.contains(name) => Ok(defined),
            Stage::Records => Err(Rejection::KeepsValue(name.to_owned())),
            Stage::End if self.known.left.contains(name) => {
                Err(Rejection::LastLine(name.to_owned()))
            }
            Stage::End => Err(Rejection::UnspecifiedOrder(self.last_array.to_owned())),
        }
    }

    /// Checks a use whose result depends on which elements an array has: `in`, a loop over the
    /// array, or the whole array as a value. Fails if other records may have changed the set of
    /// elements, except for sums in END. Also fails if the array is in `known.changing` but not in
    /// `defined`.
    pub(super) fn members(&self, array: &str, defined: &Defined<'a>) -> Result<(), Rejection> {
        let sum = self.stage == Stage::End && self.known.sums.contains(array);
        let in_record =
            self.stage == Stage::Records && defined.as_ref().is_none_or(|set| set.contains(array));
        if self.known.touched.contains(array) && !sum && !in_record {
            return Err(match self.stage {
                Stage::Records => Rejection::KeepsValue(array.to_owned()),
                Stage::End => Rejection::LastLine(array.to_owned()),
            });
        }
        self.name(array, defined.clone()).map(drop)
    }
}

/// Returns `defined` with the names that a call of the built-in function `name` certainly assigns.
fn called<'a>(name: &str, arguments: &'a [Expression], mut defined: Defined<'a>) -> Defined<'a> {
    if name == "match" {
        defined = with(with(defined, "RSTART"), "RLENGTH");
    }
    for argument in arguments {
        if let Expression::Array(array) = argument {
            defined = with(defined, array);
        }
    }
    defined
}

/// Returns the variables that `part` of a program assigns, and the arrays in which it assigns or
/// deletes elements.
pub(super) fn assigned<W: Walk + ?Sized>(part: &W) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    part.walk(&mut |node| {
        let place = match node {
            Node::Statement(Statement {
                action: Action::ForIn(name, ..) | Action::Delete(name, _),
                ..
            })
            | Node::Expression(Expression::Array(name)) => {
                names.insert(name.as_str());
                return;
            }
            Node::Expression(Expression::Assign(assignment)) => &assignment.target,
            Node::Expression(Expression::Step(step)) => &step.target,
            Node::Expression(Expression::Getline(Some(place), _)) => place,
            Node::Expression(Expression::Call(name, arguments)) => {
                if name == "match" {
                    names.extend(["RSTART", "RLENGTH"]);
                }
                match arguments.get(2) {
                    Some(Expression::Place(place)) if name == "sub" || name == "gsub" => place,
                    _ => return,
                }
            }
            _ => return,
        };
        if let Place::Variable(name) | Place::Element(name, _) = place {
            names.insert(name.as_str());
        }
    });
    names
}

/// Returns the arrays whose elements `part` of a program reads or assigns. `in`, `delete`,
/// `getline` and whole arrays as arguments do not count.
pub(super) fn touched<W: Walk + ?Sized>(part: &W) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    part.walk(&mut |node| {
        let place = match node {
            Node::Expression(Expression::Place(place)) => place,
            Node::Expression(Expression::Assign(assignment)) => &assignment.target,
            Node::Expression(Expression::Step(step)) => &step.target,
            _ => return,
        };
        if let Place::Element(name, _) = place {
            names.insert(name.as_str());
        }
    });
    names
}
