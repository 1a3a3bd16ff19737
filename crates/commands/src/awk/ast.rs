//! The syntax tree of a program.

use std::ops::Range;

/// A program that was parsed completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program text.
    pub text: String,
    /// The items, in order.
    pub items: Vec<Item>,
}

/// An item of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The kind of the item, with its contents.
    pub kind: ItemKind,
    /// The item's range in the text, in bytes.
    pub place: Range<usize>,
}

/// The kinds of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// `BEGIN`: an action that runs before any input is read.
    Begin(Vec<Statement>),
    /// `END`: an action that runs after the last record.
    End(Vec<Statement>),
    /// A rule, which runs for each record.
    Rule(Rule),
    /// A user-defined function.
    Function(Function),
}

/// An action for the records that a pattern selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The pattern.
    pub pattern: Pattern,
    /// The action; by default, the record is printed.
    pub action: Option<Vec<Statement>>,
}

/// Selects the records of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Every record.
    Always,
    /// Records for which the expression is true.
    When(Expression),
    /// From a record that the first expression selects up to one that the second selects.
    Range(Expression, Expression),
}

/// A user-defined function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters, which double as local variables.
    pub parameters: Vec<String>,
    /// Its body.
    pub body: Vec<Statement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The kind of the statement, with its contents.
    pub action: Action,
    /// The statement's range in the text, including a terminating `;`, in bytes.
    pub place: Range<usize>,
}

/// The kinds of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The empty statement.
    Empty,
    /// Statements in braces.
    Block(Vec<Statement>),
    /// An expression, evaluated for its side effects.
    Value(Expression),
    /// `print` and `printf`.
    Print(Print),
    /// `if`.
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    /// `while`.
    While(Expression, Box<Statement>),
    /// `do`.
    Do(Box<Statement>, Expression),
    /// `for (;;)`.
    For(Box<For>),
    /// `for (in)`: the variable, the array and the body.
    ForIn(String, String, Box<Statement>),
    /// `delete` of an array or, with a subscript, of an element.
    Delete(String, Option<Vec<Expression>>),
    /// `next`.
    Next,
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `exit`.
    Exit(Option<Expression>),
    /// `return`.
    Return(Option<Expression>),
}

/// A C-style `for`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct For {
    /// The initialization.
    pub start: Option<Expression>,
    /// The loop runs while this is true.
    pub condition: Option<Expression>,
    /// Evaluated after each iteration.
    pub step: Option<Expression>,
    /// The loop body.
    pub body: Statement,
}

/// `print` or `printf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// The values to print; the record if empty.
    pub arguments: Vec<Expression>,
    /// It is `printf`: the first argument is a format.
    pub formatted: bool,
    /// The redirection; by default, standard output.
    pub output: Option<Output>,
}

/// A redirection of `print`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// `>` and `>>`.
    File(Expression),
    /// `|`.
    Command(Expression),
}

/// An expression, with its side effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A number, as written.
    Number(String),
    /// A string.
    Text(Text),
    /// A regular expression, as written. As a value it is whether the record matches.
    Regex(String),
    /// The value of a variable, an element or a field.
    Place(Place),
    /// An array as argument of a built-in function.
    Array(String),
    /// A bare name as argument of a function: a variable or an array.
    Name(String),
    /// An expression in parentheses.
    Group(Box<Self>),
    /// Several expressions in parentheses, after `print`.
    List(Vec<Self>),
    /// `=`, `+=` and the like.
    Assign(Box<Assignment>),
    /// `++` and `--`.
    Step(Box<Step>),
    /// `!`.
    Not(Box<Self>),
    /// Unary `-` and `+`.
    Signed(Box<Self>),
    /// Operands of operators that evaluate both sides, in unspecified order.
    Chain(Chain, Vec<Self>),
    /// Membership in an array; several values form one subscript.
    In(Vec<Self>, String),
    /// `&&`.
    And(Vec<Self>),
    /// `||`.
    Or(Vec<Self>),
    /// `? :`.
    Choice(Box<[Self; 3]>),
    /// A call of a built-in function.
    Call(String, Vec<Self>),
    /// A call of a user-defined function.
    UserCall(String, Vec<Self>),
    /// `getline`, with its target and its source.
    Getline(Option<Place>, Option<Box<Source>>),
}

/// The operators of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// Juxtaposition.
    Concatenation,
    /// `+` and `-`.
    Sum,
    /// `*`, `/` and `%`.
    Product,
    /// `^`.
    Power,
    /// `<` and the like.
    Comparison,
    /// `~` and `!~`.
    Match,
}

/// The source of `getline`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `<`.
    File(Expression),
    /// `|`.
    Command(Expression),
}

/// An lvalue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A variable.
    Variable(String),
    /// An element of an array.
    Element(String, Vec<Expression>),
    /// A field, or the record.
    Field(Box<Expression>),
}

/// An assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The target.
    pub target: Place,
    /// The target's range in the text, in bytes.
    pub target_place: Range<usize>,
    /// The operator: `=`, `+=` and the like.
    pub operator: String,
    /// The assigned value.
    pub value: Expression,
    /// The value's range in the text, in bytes.
    pub value_place: Range<usize>,
}

/// `++` or `--`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The target.
    pub target: Place,
}

/// A string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The string's bytes; `None` if awks differ.
    pub value: Option<Vec<u8>>,
}

impl Expression {
    /// Returns the expression without enclosing parentheses.
    pub fn bare(&self) -> &Self {
        match self {
            Self::Group(inner) => inner.bare(),
            other => other,
        }
    }
}

impl Program {
    /// Returns the bodies of all `BEGIN` actions.
    pub fn begins(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Begin(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// Returns the bodies of all `END` actions.
    pub fn ends(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::End(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// Returns the rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// Returns the user-defined functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(function),
            _ => None,
        })
    }
}
