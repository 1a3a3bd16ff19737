//! What a program says, as a tree.

use std::ops::Range;

/// A program that was read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its text.
    pub text: String,
    /// Its parts, in their order.
    pub items: Vec<Item>,
}

/// One part of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// Where it stands in the text, in bytes.
    pub place: Range<usize>,
}

/// The parts that there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// What is done before any input is read.
    Begin(Vec<Statement>),
    /// What is done after the last record.
    End(Vec<Statement>),
    /// What is done for records.
    Rule(Rule),
    /// A function of the user's.
    Function(Function),
}

/// What is done for the records that a pattern selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which records.
    pub pattern: Pattern,
    /// What is done; the record is printed if nothing is said.
    pub action: Option<Vec<Statement>>,
}

/// Which records a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// All.
    Always,
    /// Those for which the expression is true.
    When(Expression),
    /// Those from one that the first selects to one that the second does.
    Range(Expression, Expression),
}

/// A function of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its parameters, which are its local variables too.
    pub parameters: Vec<String>,
    /// What it does.
    pub body: Vec<Statement>,
}

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub action: Action,
    /// Where it stands in the text, with the `;` that ends it, in bytes.
    pub place: Range<usize>,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    Empty,
    /// Statements in braces.
    Block(Vec<Statement>),
    /// An expression is evaluated for what it changes.
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
    /// `for (in)`: the variable, the array and what is done.
    ForIn(String, String, Box<Statement>),
    /// `delete`, of an element if there is a subscript.
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

/// A `for` that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct For {
    /// What is done first.
    pub start: Option<Expression>,
    /// While this is true.
    pub condition: Option<Expression>,
    /// What is done after each turn.
    pub step: Option<Expression>,
    /// What is done in each turn.
    pub body: Statement,
}

/// `print` or `printf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// What is printed; the record if there is nothing.
    pub arguments: Vec<Expression>,
    /// The first argument is a format.
    pub formatted: bool,
    /// Where to, if not to standard output.
    pub output: Option<Output>,
}

/// Where something is printed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// `>` and `>>`.
    File(Expression),
    /// `|`.
    Command(Expression),
}

/// A value, and what is changed on the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A number, as written.
    Number(String),
    /// A string.
    Text(Text),
    /// A regular expression, as written; where a value is wanted, whether the record matches it.
    Regex(String),
    /// What is in a variable, an element or a field.
    Place(Place),
    /// An array that a function of the language's works on.
    Array(String),
    /// A name as the argument of a function, of a variable or of an array.
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
    /// `-` and `+` before a value.
    Signed(Box<Self>),
    /// Values put together by operators that take both sides, in no order to rely on.
    Chain(Chain, Vec<Self>),
    /// A value in an array; several make one subscript.
    In(Vec<Self>, String),
    /// `&&`.
    And(Vec<Self>),
    /// `||`.
    Or(Vec<Self>),
    /// `? :`.
    Choice(Box<[Self; 3]>),
    /// A function of the language's.
    Call(String, Vec<Self>),
    /// A function of the user's.
    UserCall(String, Vec<Self>),
    /// `getline`, with what it reads from.
    Getline(Option<Place>, Option<Box<Source>>),
}

/// How values are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// One after the other.
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

/// What `getline` reads from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `<`.
    File(Expression),
    /// `|`.
    Command(Expression),
}

/// Something that can be assigned to.
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
    /// What is assigned to.
    pub target: Place,
    /// Where that stands in the text, in bytes.
    pub target_place: Range<usize>,
    /// `=`, `+=` and the like.
    pub operator: String,
    /// What is assigned.
    pub value: Expression,
    /// Where that stands in the text, in bytes.
    pub value_place: Range<usize>,
}

/// `++` or `--`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is changed.
    pub target: Place,
}

/// A string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What it means; `None` if that differs from awk to awk.
    pub value: Option<Vec<u8>>,
}

impl Expression {
    /// The expression without the parentheses around it.
    pub fn bare(&self) -> &Self {
        match self {
            Self::Group(inner) => inner.bare(),
            other => other,
        }
    }
}

impl Program {
    /// The bodies of all `BEGIN`s.
    pub fn begins(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Begin(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// The bodies of all `END`s.
    pub fn ends(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::End(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// What is done for records.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// The user's functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(function),
            _ => None,
        })
    }
}
