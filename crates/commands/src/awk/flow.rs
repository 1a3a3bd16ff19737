//! Definite assignment analysis: computes the variables that are certainly assigned for the current
//! record at each point of a program.
//!
//! This is a forward data-flow analysis over the syntax tree. A fact is the set of assigned names
//! ([`Defined`]); `None` is the fact at unreachable points, the top of the lattice. Where paths
//! join, facts meet by intersection ([`join`]):
//!
//! ```text
//!            {x}                      if (c) y = 1; else z = 1
//!         ┌───┴───┐
//!       {x,y}   {x,z}                 each branch adds its assignments
//!         └───┬───┘
//!            {x}                      join: certain on both paths
//! ```
//!
//! Since awk's grammar nests statements and expressions, the analysis spans three modules that
//! import each other: statements are here, expressions in `values`, and additions in `additions`.

use std::collections::BTreeSet;

use super::additions::{addition, tallies_in};
use super::ast::{Action, Expression, For, Pattern, Print, Program, Rule, Statement};
use super::rejection::Rejection;
use super::values::assigned;
use super::walk::{Node, Walk};

/// A pseudo-variable, assigned while the output is at the start of a line.
pub(super) const LINE_START: &str = "\n";

/// The names that are certainly assigned; `None` at unreachable points.
pub(super) type Defined<'a> = Option<BTreeSet<&'a str>>;

/// The part of a program to analyze.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Rules, which run for each record.
    Records,
    /// END actions, which run after the last record.
    End,
}

/// Facts about a program's names.
#[derive(Debug, Clone)]
pub(super) struct Known<'a> {
    /// Names that may be read only where they are certainly assigned.
    pub(super) changing: BTreeSet<&'a str>,
    /// Names that hold values from the last record when END runs.
    pub(super) left: BTreeSet<&'a str>,
    /// Arrays with elements that rules or functions read or assign. Even reading an element creates
    /// it.
    pub(super) touched: BTreeSet<&'a str>,
    /// All arrays of the program.
    pub(super) arrays: BTreeSet<&'a str>,
    /// Sums, to which additions are allowed anywhere.
    pub(super) sums: BTreeSet<&'a str>,
    /// Variables to which END adds only integers, so that the order of additions does not matter.
    pub(super) tallies: BTreeSet<&'a str>,
    /// Whether `print` ends its output with a newline.
    pub(super) print_ends_line: bool,
}

/// The state and the results of the analysis.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) known: Known<'a>,
    pub(super) stage: Stage,
    loops: Vec<Loop<'a>>,
    /// The array of the last analyzed loop over an array; empty before the first.
    pub(super) last_array: &'a str,
    /// The names that are certainly assigned when the processing of a record ends; `None` before
    /// [`Self::record`].
    pub(super) at_end: Defined<'a>,
    /// Whether a loop prints in the order of an array.
    pub(super) prints_in_order_of_array: bool,
}

/// A loop around the statement that is being analyzed.
#[derive(Debug, Default)]
struct Loop<'a> {
    breaks: Defined<'a>,
    continues: Defined<'a>,
    /// The array over which the loop iterates; `None` for any other loop.
    array: Option<&'a str>,
}

/// Returns the fact where two paths join: the names assigned on both. If one path is unreachable,
/// returns the fact of the other.
pub(super) fn join<'a>(one: Defined<'a>, other: Defined<'a>) -> Defined<'a> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}

/// Returns the fact after two expressions that are both evaluated: the names assigned after either.
/// Returns `None` if the point after one of them is unreachable.
pub(super) fn union<'a>(one: Defined<'a>, other: Defined<'a>) -> Defined<'a> {
    let (mut one, other) = (one?, other?);
    one.extend(other);
    Some(one)
}

pub(super) fn with<'a>(mut defined: Defined<'a>, name: &'a str) -> Defined<'a> {
    if let Some(set) = &mut defined {
        set.insert(name);
    }
    defined
}

fn without<'a>(mut defined: Defined<'a>, names: &BTreeSet<&'a str>) -> Defined<'a> {
    if let Some(set) = &mut defined {
        set.retain(|name| !names.contains(name));
    }
    defined
}

impl<'a> Flow<'a> {
    pub(super) fn new(known: Known<'a>, stage: Stage) -> Self {
        Self {
            known,
            stage,
            loops: Vec::new(),
            last_array: "",
            at_end: None,
            prints_in_order_of_array: false,
        }
    }

    /// Analyzes all rules in order, as they run for one record. Fails if a name in `known.changing`
    /// may be read before it is assigned, and for range patterns and loops over arrays.
    pub(super) fn record(&mut self, program: &'a Program) -> Result<(), Rejection> {
        let mut defined = Some(BTreeSet::from([LINE_START]));
        for rule in program.rules() {
            defined = self.rule(rule, defined)?;
        }
        self.at_end = join(self.at_end.take(), defined);
        Ok(())
    }

    fn rule(&mut self, rule: &'a Rule, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        let (selected, others) = match &rule.pattern {
            Pattern::Always => (defined, None),
            Pattern::When(condition) => self.condition(condition, defined)?,
            Pattern::Range(..) => return Err(Rejection::Range("…".to_owned())),
        };
        let done = match &rule.action {
            Some(action) => self.statements(action, selected)?,
            None => Self::printed(self.known.print_ends_line, selected),
        };
        Ok(join(done, others))
    }

    pub(super) fn statements(
        &mut self,
        statements: &'a [Statement],
        mut defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        for statement in statements {
            defined = self.statement(statement, defined)?;
        }
        Ok(defined)
    }

    fn statement(
        &mut self,
        statement: &'a Statement,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        if defined.is_none() {
            return Ok(None);
        }
        match &statement.action {
            Action::Empty => Ok(defined),
            Action::Block(body) => self.statements(body, defined),
            Action::Value(value) => self.evaluated(value, defined),
            Action::Print(print) => self.print(print, defined),
            Action::If(condition, then, otherwise) => {
                let (yes, no) = self.condition(condition, defined)?;
                let then = self.statement(then, yes)?;
                let otherwise = match otherwise {
                    Some(otherwise) => self.statement(otherwise, no)?,
                    None => no,
                };
                Ok(join(then, otherwise))
            }
            Action::While(condition, body) => {
                self.conditional_loop(Some(condition), body, None, defined)
            }
            Action::Do(body, condition) => self.do_while(body, condition, defined),
            Action::For(turns) => self.for_loop(turns, defined),
            Action::ForIn(variable, array, body) => self.for_in(variable, array, body, defined),
            Action::Delete(array, None) => Ok(with(defined, array)),
            Action::Delete(_, Some(subscript)) => self.unordered(subscript, defined),
            Action::Next => {
                self.at_end = join(self.at_end.take(), defined);
                Ok(None)
            }
            Action::Break | Action::Continue => self.leave(&statement.action, defined),
            Action::Exit(value) | Action::Return(value) => {
                if let Some(value) = value {
                    self.value(value, defined)?;
                }
                Ok(None)
            }
        }
    }

    /// Analyzes an expression statement. An addition to a sum does not count as reading that sum.
    fn evaluated(
        &mut self,
        value: &'a Expression,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        match addition(value) {
            Some(added) if self.known.sums.contains(added.name) => {
                let defined = self.unordered(added.subscript, defined)?;
                match added.value {
                    Some(value) => self.value(value, defined),
                    None => Ok(defined),
                }
            }
            _ => self.value(value, defined),
        }
    }

    fn leave(&mut self, action: &Action, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        let Some(innermost) = self.loops.last_mut() else { return Ok(None) };
        if *action == Action::Continue {
            innermost.continues = join(innermost.continues.take(), defined);
        } else if let Some(array) = innermost.array {
            return Err(Rejection::UnspecifiedOrder(array.to_owned()));
        } else {
            innermost.breaks = join(innermost.breaks.take(), defined);
        }
        Ok(None)
    }

    fn for_loop(&mut self, turns: &'a For, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        let defined = match &turns.start {
            Some(start) => self.value(start, defined)?,
            None => defined,
        };
        self.conditional_loop(turns.condition.as_ref(), &turns.body, turns.step.as_ref(), defined)
    }

    fn conditional_loop(
        &mut self,
        condition: Option<&'a Expression>,
        body: &'a Statement,
        step: Option<&'a Expression>,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        // Iterations only add names to those assigned, except for the names in `invalidated`.
        let defined = without(defined, &self.invalidated(body));
        let (inside, outside) = match condition {
            Some(condition) => self.condition(condition, defined)?,
            None => (defined, None),
        };
        let (done, left) = self.iteration(body, inside)?;
        if let Some(step) = step {
            self.value(step, join(done, left.continues))?;
        }
        Ok(join(outside, left.breaks))
    }

    fn do_while(
        &mut self,
        body: &'a Statement,
        condition: &'a Expression,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        let defined = without(defined, &self.invalidated(body));
        let (done, left) = self.iteration(body, defined)?;
        let (_, outside) = self.condition(condition, join(done, left.continues))?;
        Ok(join(outside, left.breaks))
    }

    fn iteration(
        &mut self,
        body: &'a Statement,
        defined: Defined<'a>,
    ) -> Result<(Defined<'a>, Loop<'a>), Rejection> {
        self.loops.push(Loop::default());
        let done = self.statement(body, defined)?;
        Ok((done, self.loops.pop().unwrap_or_default()))
    }

    /// Returns the names that iterations of the loop with this `body` may remove from the assigned
    /// ones.
    fn invalidated(&self, body: &'a Statement) -> BTreeSet<&'a str> {
        let mut invalidated = BTreeSet::new();
        body.walk(&mut |node| match node {
            Node::Statement(Statement { action: Action::ForIn(variable, _, body), .. }) => {
                invalidated.insert(variable.as_str());
                invalidated.extend(assigned(&**body));
            }
            Node::Statement(Statement { action: Action::Print(print), .. })
                if !self.ends_line(print) =>
            {
                invalidated.insert(LINE_START);
            }
            _ => {}
        });
        invalidated
    }

    /// Analyzes a loop over an array in END, and fails for such a loop in a rule. The iterations
    /// must be independent of each other, since their order is unspecified.
    fn for_in(
        &mut self,
        variable: &'a str,
        array: &'a str,
        body: &'a Statement,
        defined: Defined<'a>,
    ) -> Result<Defined<'a>, Rejection> {
        let why = || Rejection::UnspecifiedOrder(array.to_owned());
        self.members(array, &defined)?;
        let turns = LoopEffects::of(body);
        if self.stage == Stage::Records || turns.leave {
            return Err(why());
        }
        let at_start = |d: &Defined<'_>| d.as_ref().is_none_or(|set| set.contains(LINE_START));
        // Within another loop, sums could grow too large to be exact.
        let in_loops = turns.have_loops || !self.loops.is_empty();
        let kept = if in_loops { BTreeSet::new() } else { tallies_in(body, &self.known) };
        let mut changed = assigned(body);
        changed.insert(variable);
        changed.retain(|name| !kept.contains(name));
        let head = without(defined, &changed);
        let sums = self.known.sums.clone();
        self.known.sums.extend(kept);
        self.loops.push(Loop { array: Some(array), ..Loop::default() });
        let done = self.statement(body, with(head.clone(), variable)).map_err(|_| why());
        self.known.sums = sums;
        let left = self.loops.pop().unwrap_or_default();
        let done = join(done?, left.continues);
        if turns.print && !(at_start(&head) && at_start(&done)) {
            return Err(why());
        }
        self.prints_in_order_of_array |= turns.print;
        self.last_array = array;
        Ok(head)
    }

    fn ends_line(&self, print: &Print) -> bool {
        match print.arguments.first() {
            Some(Expression::Text(text)) if print.formatted => {
                text.value.as_deref().is_some_and(|value| value.ends_with(b"\n"))
            }
            _ => !print.formatted && self.known.print_ends_line,
        }
    }

    fn print(&mut self, print: &'a Print, defined: Defined<'a>) -> Result<Defined<'a>, Rejection> {
        let defined = self.unordered(&print.arguments, defined)?;
        Ok(Self::printed(self.ends_line(print), defined))
    }

    fn printed(ends_line: bool, defined: Defined<'a>) -> Defined<'a> {
        if ends_line {
            with(defined, LINE_START)
        } else {
            without(defined, &BTreeSet::from([LINE_START]))
        }
    }
}

/// Possible effects of the body of a loop over an array.
#[derive(Debug, Default)]
struct LoopEffects {
    /// Whether the body contains `exit`, `return` or `delete`.
    leave: bool,
    print: bool,
    have_loops: bool,
}

impl LoopEffects {
    fn of(body: &Statement) -> Self {
        let mut turns = Self::default();
        body.walk(&mut |node| {
            let Node::Statement(statement) = node else { return };
            match &statement.action {
                Action::Exit(_) | Action::Return(_) | Action::Delete(..) => turns.leave = true,
                Action::Print(_) => turns.print = true,
                Action::While(..) | Action::Do(..) | Action::For(_) | Action::ForIn(..) => {
                    turns.have_loops = true;
                }
                _ => {}
            }
        });
        turns
    }
}
