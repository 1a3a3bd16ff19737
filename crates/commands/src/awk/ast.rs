//! Syntax tree of an awk program.

use std::ops::Range;

/// A parsed program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program source.
    pub text: String,
    /// The items, in program order.
    pub items: Vec<Item>,
}

/// An item of a program, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The kind and contents of the item.
    pub kind: ItemKind,
    /// Byte range of the item in the program source.
    pub place: Range<usize>,
}

/// Kind of an item, with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// `BEGIN`: an action that runs before any input is read.
    Begin(Vec<Statement>),
    /// `END`: an action that runs after the last record.
    End(Vec<Statement>),
    /// A rule, which runs for each record that its pattern selects.
    Rule(Rule),
    /// A user-defined function.
    Function(Function),
}

/// An action for the records that a pattern selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The pattern, which selects records.
    pub pattern: Pattern,
    /// The action; `None` to print the record.
    pub action: Option<Vec<Statement>>,
}

/// A condition that selects the records of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Every record.
    Always,
    /// Records for which the expression is true.
    When(Expression),
    /// Ranges of records. A range starts at a record for which the first expression is true, and
    /// ends at the next record for which the second is true, which may be the same record.
    Range(Expression, Expression),
}

/// A user-defined function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name, which no other function or variable has.
    pub name: String,
    /// The parameters, which double as local variables.
    pub parameters: Vec<String>,
    /// The statements of the body.
    pub body: Vec<Statement>,
}

/// A statement, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The kind and contents of the statement.
    pub action: Action,
    /// Byte range of the statement in the program source, including a terminating `;`.
    pub place: Range<usize>,
}

/// Kind of a statement, with its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The empty statement (`;`).
    Empty,
    /// Statements in braces.
    Block(Vec<Statement>),
    /// An expression, evaluated for its side effects.
    Value(Expression),
    /// `print` or `printf`.
    Print(Print),
    /// `if`: the condition, the statement, and the statement after `else`, if any.
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    /// `while`: the condition and the body.
    While(Expression, Box<Statement>),
    /// `do`: the body and the condition.
    Do(Box<Statement>, Expression),
    /// A C-style loop (`for (;;)`).
    For(Box<For>),
    /// `for (in)`: the variable, the array and the body.
    ForIn(String, String, Box<Statement>),
    /// `delete` of an array or, with a subscript, of one of its elements.
    Delete(String, Option<Vec<Expression>>),
    /// `next`, which ends the processing of the record.
    Next,
    /// `break`, which leaves the innermost loop.
    Break,
    /// `continue`, which starts the next iteration.
    Continue,
    /// `exit`, with the exit code if it is given.
    Exit(Option<Expression>),
    /// `return`, with the function's value if it is given.
    Return(Option<Expression>),
}

/// The parts of a C-style loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct For {
    /// The initialization, evaluated once; `None` if it is omitted.
    pub start: Option<Expression>,
    /// The condition for another iteration; `None` for an endless loop.
    pub condition: Option<Expression>,
    /// The expression evaluated after each iteration; `None` if it is omitted.
    pub step: Option<Expression>,
    /// The statement that each iteration runs.
    pub body: Statement,
}

/// `print` or `printf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// The values to print; empty to print the record.
    pub arguments: Vec<Expression>,
    /// Whether the statement is `printf`, whose first argument is a format.
    pub formatted: bool,
    /// The redirection; `None` for standard output.
    pub output: Option<Output>,
}

/// A redirection of `print` or `printf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A file (`>` or `>>`).
    File(Expression),
    /// The standard input of a command (`|`).
    Command(Expression),
}

/// An expression, which may have side effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A numeric constant, as written.
    Number(String),
    /// A string constant.
    Text(Text),
    /// A regular expression, as written between the slashes. Its value is whether the record
    /// matches, except where a pattern is expected, as after `~`.
    Regex(String),
    /// The value of a variable, an element or a field.
    Place(Place),
    /// An array as an argument of a built-in function.
    Array(String),
    /// A bare name as an argument of a function that may take an array: a variable or an array.
    Name(String),
    /// An expression in parentheses.
    Group(Box<Self>),
    /// Several expressions in parentheses, as after `print`.
    List(Vec<Self>),
    /// An assignment: `=`, `+=` and the like.
    Assign(Box<Assignment>),
    /// An increment or a decrement: `++` or `--`.
    Step(Box<Step>),
    /// Logical negation (`!`).
    Not(Box<Self>),
    /// Unary `-` or `+`.
    Signed(Box<Self>),
    /// Operands of one or more binary operators that evaluate both sides, in unspecified order.
    Chain(Chain, Vec<Self>),
    /// Membership in an array (`in`): the values, which form one subscript, and the array.
    In(Vec<Self>, String),
    /// Logical conjunction (`&&`).
    And(Vec<Self>),
    /// Logical disjunction (`||`).
    Or(Vec<Self>),
    /// A conditional expression (`? :`): the condition and both values.
    Choice(Box<[Self; 3]>),
    /// A call of a built-in function: the name and the arguments.
    Call(String, Vec<Self>),
    /// A call of a user-defined function: the name and the arguments.
    UserCall(String, Vec<Self>),
    /// `getline`: the target (`None` for the record) and the source (`None` for the input).
    Getline(Option<Place>, Option<Box<Source>>),
}

/// The operators between the operands of a chain.
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
    /// `<`, `<=`, `==`, `!=`, `>` and `>=`.
    Comparison,
    /// `~` and `!~`.
    Match,
}

/// The source of `getline`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file (`<`).
    File(Expression),
    /// The output of a command (`|`).
    Command(Expression),
}

/// An lvalue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A variable, by name.
    Variable(String),
    /// An element of an array: the array and the values of the subscript.
    Element(String, Vec<Expression>),
    /// A field, by number, or the record (`$0`).
    Field(Box<Expression>),
}

/// An assignment of a value to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The lvalue that the operation changes.
    pub target: Place,
    /// Byte range of the target in the program source.
    pub target_place: Range<usize>,
    /// The operator: `=`, `+=` and the like.
    pub operator: String,
    /// The expression to the right of the operator.
    pub value: Expression,
    /// Byte range of the value in the program source.
    pub value_place: Range<usize>,
}

/// An increment or a decrement, before or after its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The lvalue that the operation changes.
    pub target: Place,
}

/// A string constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The string's bytes; `None` if implementations resolve an escape differently.
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
    /// Returns the bodies of all `BEGIN` actions, in program order.
    pub fn begins(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Begin(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// Returns the bodies of all `END` actions, in program order.
    pub fn ends(&self) -> impl Iterator<Item = &[Statement]> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::End(body) => Some(body.as_slice()),
            _ => None,
        })
    }

    /// Returns the rules, in program order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// Returns the user-defined functions, in program order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(function),
            _ => None,
        })
    }
}
