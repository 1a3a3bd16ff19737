//! Reserved words, built-in functions and special variables, and checks of a program's names.

use std::collections::{BTreeMap, BTreeSet};

use super::ast::{Action, Expression, Function, Place, Program, Statement};
use super::rejection::Rejection;
use super::walk::{Node, Walk};

/// Words that are reserved in at least one awk.
const RESERVED_WORDS: &[&str] = &[
    "BEGIN",
    "END",
    "BEGINFILE",
    "ENDFILE",
    "function",
    "func",
    "if",
    "else",
    "while",
    "for",
    "do",
    "break",
    "continue",
    "next",
    "nextfile",
    "exit",
    "return",
    "delete",
    "in",
    "getline",
    "print",
    "printf",
    "switch",
    "case",
    "default",
];

/// Functions that are built into at least one awk, with their minimum and maximum number of
/// arguments.
const BUILTIN_FUNCTIONS: &[(&str, usize, usize)] = &[
    ("and", 2, 9),
    ("asort", 1, 3),
    ("asorti", 1, 3),
    ("atan2", 2, 2),
    ("close", 1, 2),
    ("compl", 1, 1),
    ("cos", 1, 1),
    ("exp", 1, 1),
    ("extension", 1, 2),
    ("fflush", 0, 1),
    ("gensub", 3, 4),
    ("gsub", 2, 3),
    ("index", 2, 2),
    ("int", 1, 1),
    ("length", 0, 1),
    ("log", 1, 1),
    ("lshift", 2, 2),
    ("match", 2, 3),
    ("mktime", 1, 2),
    ("or", 2, 9),
    ("patsplit", 2, 4),
    ("rand", 0, 0),
    ("rshift", 2, 2),
    ("sin", 1, 1),
    ("split", 2, 3),
    ("sprintf", 1, 99),
    ("sqrt", 1, 1),
    ("srand", 0, 1),
    ("strftime", 0, 3),
    ("strtonum", 1, 1),
    ("sub", 2, 3),
    ("substr", 2, 3),
    ("system", 1, 1),
    ("systime", 0, 0),
    ("tolower", 1, 1),
    ("toupper", 1, 1),
    ("typeof", 1, 2),
    ("isarray", 1, 1),
    ("mkbool", 1, 1),
    ("bindtextdomain", 1, 2),
    ("dcgettext", 1, 3),
    ("dcngettext", 1, 5),
    ("xor", 2, 9),
];

/// Variables that are special in gawk, although most are ordinary in other awks.
pub(super) const GAWK_VARIABLES: &[&str] = &[
    "ARGIND",
    "BINMODE",
    "ERRNO",
    "FIELDWIDTHS",
    "FPAT",
    "FUNCTAB",
    "IGNORECASE",
    "LINT",
    "PREC",
    "PROCINFO",
    "ROUNDMODE",
    "RT",
    "SYMTAB",
    "TEXTDOMAIN",
];

/// Special variables of POSIX awk.
const SPECIAL_VARIABLES: &[&str] = &[
    "ARGC", "ARGV", "CONVFMT", "ENVIRON", "FILENAME", "FNR", "FS", "NF", "NR", "OFMT", "OFS",
    "ORS", "RLENGTH", "RS", "RSTART", "SUBSEP",
];

/// Returns whether a variable is special, in POSIX awk or in gawk.
pub(super) fn is_special(name: &str) -> bool {
    SPECIAL_VARIABLES.contains(&name) || GAWK_VARIABLES.contains(&name)
}

/// Returns whether a word cannot be a user-defined name in some awk: it is reserved or a built-in
/// function.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED_WORDS.contains(&word) || is_function(word)
}

pub(super) fn is_function(word: &str) -> bool {
    BUILTIN_FUNCTIONS.iter().any(|(name, ..)| *name == word)
}

/// Returns whether `name` is a built-in function that accepts the given number of arguments.
pub(super) fn takes(name: &str, arguments: usize) -> bool {
    BUILTIN_FUNCTIONS
        .iter()
        .any(|(function, least, most)| *function == name && (*least..=*most).contains(&arguments))
}

/// Returns the index of the argument that the built-in function `name` requires to be an array, or
/// `None` if there is none. Some functions can be called without that argument.
pub(super) fn array_argument(name: &str) -> Option<usize> {
    match name {
        "split" | "patsplit" => Some(1),
        "match" => Some(2),
        _ => None,
    }
}

/// The kind of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    Array,
}

/// Checks that each name denotes only one function, scalar or array, that called functions are
/// defined with enough parameters, and that lists are only used as subscripts.
pub(super) fn check(program: &Program) -> Result<(), Rejection> {
    let mut functions = BTreeMap::new();
    for function in program.functions() {
        let two = functions.insert(function.name.as_str(), function).is_some();
        if two || SPECIAL_VARIABLES.contains(&function.name.as_str()) {
            return Err(Rejection::unread(format!(
                "function `{}` is already defined",
                function.name
            )));
        }
    }
    for function in &functions {
        check_parameters(function.1, &functions)?;
    }
    let mut kinds = BTreeMap::new();
    for item in &program.items {
        let local = match &item.kind {
            super::ast::ItemKind::Function(function) => function.parameters.as_slice(),
            _ => &[],
        };
        check_uses(item, local, &functions, &mut kinds)?;
    }
    Ok(())
}

fn check_parameters(
    function: &Function,
    functions: &BTreeMap<&str, &Function>,
) -> Result<(), Rejection> {
    let mut seen = BTreeSet::new();
    for parameter in &function.parameters {
        let name = parameter.as_str();
        let taken = functions.contains_key(name) || is_special(name);
        if taken || !seen.insert(name) {
            return Err(Rejection::unread(format!("parameter `{name}` is already defined")));
        }
    }
    Ok(())
}

fn check_uses<'a>(
    item: &'a super::ast::Item,
    local: &[String],
    functions: &BTreeMap<&str, &Function>,
    global: &mut BTreeMap<&'a str, Kind>,
) -> Result<(), Rejection> {
    let mut locals = BTreeMap::new();
    let mut wrong = None;
    let mut note = |name: &'a str, kind: Kind| {
        let kinds = if local.iter().any(|l| l == name) { &mut locals } else { &mut *global };
        let other = kinds.insert(name, kind).is_some_and(|before| before != kind);
        let special_array = ["ARGV", "ENVIRON"].contains(&name) != (kind == Kind::Array);
        if other
            || functions.contains_key(name)
            || SPECIAL_VARIABLES.contains(&name) && special_array
        {
            wrong = Some(format!("`{name}` has two meanings"));
        }
    };
    let mut calls = None;
    item.walk(&mut |node| {
        if let Node::Expression(Expression::List(_)) = node {
            calls = Some("a list that is not a subscript".to_owned());
        }
        if let Node::Expression(Expression::UserCall(name, arguments)) = node {
            let known = functions.get(name.as_str());
            if known.is_none_or(|function| function.parameters.len() < arguments.len()) {
                let count = arguments.len();
                calls = Some(format!("no function `{name}` that takes {count} arguments"));
            }
        }
        uses(node, &mut |name, is_array| {
            note(name, if is_array { Kind::Array } else { Kind::Scalar });
        });
    });
    wrong.or(calls).map_or(Ok(()), |reason| Err(Rejection::Unread(reason)))
}

/// Calls `note` with each variable and array that a node mentions itself, not in its children, and
/// with whether the name is an array. Skips bare names as arguments, since only the called function
/// determines what they denote.
pub(super) fn uses<'a>(node: Node<'a>, note: &mut dyn FnMut(&'a str, bool)) {
    match node {
        Node::Statement(Statement { action: Action::ForIn(variable, array, _), .. }) => {
            note(variable, false);
            note(array, true);
        }
        Node::Statement(Statement { action: Action::Delete(array, _), .. }) => note(array, true),
        Node::Statement(_) => {}
        Node::Expression(expression) => match expression {
            Expression::Assign(assignment) => used_place(&assignment.target, note),
            Expression::Step(step) => used_place(&step.target, note),
            Expression::Place(place) | Expression::Getline(Some(place), _) => {
                used_place(place, note);
            }
            Expression::In(_, array) => note(array, true),
            Expression::Array(name) => note(name, true),
            _ => {}
        },
    }
}

fn used_place<'a>(place: &'a Place, note: &mut dyn FnMut(&'a str, bool)) {
    match place {
        Place::Variable(name) => note(name, false),
        Place::Element(name, _) => note(name, true),
        Place::Field(_) => {}
    }
}
