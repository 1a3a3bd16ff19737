//! Preorder traversal of syntax trees.

use super::ast::Output;
use super::ast::{
    Action, Expression, Item, ItemKind, Pattern, Place, Print, Program, Rule, Source, Statement,
};

/// A node of a syntax tree.
#[derive(Debug, Clone, Copy)]
pub enum Node<'a> {
    /// A statement.
    Statement(&'a Statement),
    /// An expression.
    Expression(&'a Expression),
}

/// A part of a syntax tree that can be traversed.
pub trait Walk {
    /// Calls `visit` for all nodes in this part of the tree, in preorder.
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>));
}

impl<T: Walk> Walk for [T] {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        for part in self {
            part.walk(visit);
        }
    }
}

impl<T: Walk> Walk for Option<T> {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        if let Some(part) = self {
            part.walk(visit);
        }
    }
}

impl Walk for Program {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        self.items.walk(visit);
    }
}

impl Walk for Item {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        match &self.kind {
            ItemKind::Begin(body) | ItemKind::End(body) => body.walk(visit),
            ItemKind::Function(function) => function.body.walk(visit),
            ItemKind::Rule(rule) => rule.walk(visit),
        }
    }
}

impl Walk for Rule {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        match &self.pattern {
            Pattern::Always => {}
            Pattern::When(condition) => condition.walk(visit),
            Pattern::Range(first, last) => {
                first.walk(visit);
                last.walk(visit);
            }
        }
        self.action.iter().for_each(|action| action.walk(visit));
    }
}

impl Walk for Statement {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        visit(Node::Statement(self));
        match &self.action {
            Action::Empty | Action::Next | Action::Break | Action::Continue => {}
            Action::Block(body) => body.walk(visit),
            Action::Value(value) => value.walk(visit),
            Action::Print(print) => print.walk(visit),
            Action::If(condition, then, otherwise) => {
                condition.walk(visit);
                then.walk(visit);
                if let Some(otherwise) = otherwise {
                    otherwise.walk(visit);
                }
            }
            Action::While(condition, body) | Action::Do(body, condition) => {
                condition.walk(visit);
                body.walk(visit);
            }
            Action::For(turns) => {
                turns.start.walk(visit);
                turns.condition.walk(visit);
                turns.step.walk(visit);
                turns.body.walk(visit);
            }
            Action::ForIn(_, _, body) => body.walk(visit),
            Action::Delete(_, subscript) => subscript.iter().for_each(|s| s.walk(visit)),
            Action::Exit(value) | Action::Return(value) => value.walk(visit),
        }
    }
}

impl Walk for Print {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        self.arguments.walk(visit);
        match &self.output {
            Some(Output::File(name) | Output::Command(name)) => name.walk(visit),
            None => {}
        }
    }
}

impl Walk for Place {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        match self {
            Self::Variable(_) => {}
            Self::Element(_, subscript) => subscript.walk(visit),
            Self::Field(number) => number.walk(visit),
        }
    }
}

impl Walk for Expression {
    fn walk<'a>(&'a self, visit: &mut dyn FnMut(Node<'a>)) {
        visit(Node::Expression(self));
        match self {
            Self::Number(_) | Self::Text(_) | Self::Regex(_) | Self::Array(_) | Self::Name(_) => {}
            Self::Place(place) => place.walk(visit),
            Self::Group(inner) | Self::Not(inner) | Self::Signed(inner) => inner.walk(visit),
            Self::Assign(assignment) => {
                assignment.target.walk(visit);
                assignment.value.walk(visit);
            }
            Self::Step(step) => step.target.walk(visit),
            Self::Choice(parts) => parts.walk(visit),
            Self::List(parts)
            | Self::Chain(_, parts)
            | Self::In(parts, _)
            | Self::And(parts)
            | Self::Or(parts)
            | Self::Call(_, parts)
            | Self::UserCall(_, parts) => parts.walk(visit),
            Self::Getline(place, source) => {
                place.walk(visit);
                match source.as_deref() {
                    Some(Source::File(name) | Source::Command(name)) => name.walk(visit),
                    None => {}
                }
            }
        }
    }
}
