//! Parses expressions by recursive descent, from the lowest to the highest precedence.

use super::ast::{Assignment, Chain, Expression, Place, Source, Step};
use super::lexer::Token;
use super::names;
use super::parser::Parser;
use super::rejection::Rejection;

const ASSIGNMENTS: &[&str] = &["=", "+=", "-=", "*=", "/=", "%=", "^="];
const COMPARISONS: &[&str] = &["<", "<=", "==", "!=", ">", ">="];

/// Tokens that make `!` ambiguous if they follow its operand: awks differ in how much of the
/// expression `!` then negates.
const AMBIGUOUS_AFTER_NOT: &[&str] =
    &["<", "<=", "==", "!=", ">=", "~", "!~", "+", "-", "*", "/", "%", "^", "|", "=", "(", "$"];

impl Parser<'_> {
    /// Parses an expression with operators of any precedence, including assignments.
    pub(super) fn expression(&mut self) -> Result<Expression, Rejection> {
        self.deeper(Self::assignment)
    }

    /// Runs `read` with `>` as a comparison rather than a redirection, as within parentheses.
    pub(super) fn enclosed<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Rejection>,
    ) -> Result<T, Rejection> {
        let printing = std::mem::replace(&mut self.printing, false);
        let found = read(self);
        self.printing = printing;
        found
    }

    fn assignment(&mut self) -> Result<Expression, Rejection> {
        let start = self.place.start;
        let left = self.choice()?;
        let Some(operator) = ASSIGNMENTS.iter().find(|sign| self.is(sign)) else { return Ok(left) };
        let Expression::Place(target) = left else { return Err(self.unexpected()) };
        let target_place = start..self.previous_end;
        self.advance()?;
        let value_start = self.place.start;
        let value = self.expression()?;
        let value_place = value_start..self.previous_end;
        let operator = (*operator).to_owned();
        Ok(Expression::Assign(Box::new(Assignment {
            target,
            target_place,
            operator,
            value,
            value_place,
        })))
    }

    fn choice(&mut self) -> Result<Expression, Rejection> {
        let condition = self.or()?;
        if !self.take("?")? {
            return Ok(condition);
        }
        let then = self.expression()?;
        self.expect(":")?;
        let otherwise = self.deeper(Self::choice)?;
        Ok(Expression::Choice(Box::new([condition, then, otherwise])))
    }

    fn or(&mut self) -> Result<Expression, Rejection> {
        self.several("||", Self::and, Expression::Or)
    }

    fn and(&mut self) -> Result<Expression, Rejection> {
        self.several("&&", Self::membership, Expression::And)
    }

    fn several(
        &mut self,
        sign: &str,
        read: fn(&mut Self) -> Result<Expression, Rejection>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Rejection> {
        let first = read(self)?;
        if !self.is(sign) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(sign)? {
            self.skip_newlines()?;
            parts.push(read(self)?);
        }
        Ok(join(parts))
    }

    fn membership(&mut self) -> Result<Expression, Rejection> {
        let value = self.matching()?;
        if !self.take_word("in")? {
            return Ok(value);
        }
        let compared = Self::is_chain(&value, &[Chain::Comparison, Chain::Match]);
        let array = self.name()?;
        // Awks differ in the precedence of `in`.
        if compared || self.is_word("in") {
            return Err(Rejection::unread("`in` next to another comparison without parentheses"));
        }
        Ok(Expression::In(vec![value], array))
    }

    fn matching(&mut self) -> Result<Expression, Rejection> {
        let value = self.comparison()?;
        if !self.is_one_of(&["~", "!~"]) {
            return Ok(value);
        }
        self.advance()?;
        let pattern = self.comparison()?;
        let compares = |side: &Expression| Self::is_chain(side, &[Chain::Comparison]);
        if compares(&value) || compares(&pattern) || self.is_one_of(&["~", "!~"]) {
            return Err(Rejection::unread("`~` next to another comparison without parentheses"));
        }
        Ok(Expression::Chain(Chain::Match, vec![value, pattern]))
    }

    fn is_chain(value: &Expression, kinds: &[Chain]) -> bool {
        matches!(value, Expression::Chain(kind, _) if kinds.contains(kind))
    }

    fn comparison(&mut self) -> Result<Expression, Rejection> {
        let left = self.concatenation()?;
        let compares = |p: &Self| p.is_one_of(COMPARISONS) && !(p.printing && p.is(">"));
        if !compares(self) {
            return Ok(left);
        }
        self.advance()?;
        let right = self.concatenation()?;
        if compares(self) {
            return Err(Rejection::unread("two comparisons in a row without parentheses"));
        }
        Ok(Expression::Chain(Chain::Comparison, vec![left, right]))
    }

    fn concatenation(&mut self) -> Result<Expression, Rejection> {
        let first = self.sum()?;
        let value = if self.begins_value() {
            let mut parts = vec![first];
            while self.begins_value() {
                parts.push(self.sum()?);
            }
            Expression::Chain(Chain::Concatenation, parts)
        } else {
            first
        };
        if self.printing || !self.take("|")? {
            return Ok(value);
        }
        // Awks differ in how they parse a longer expression before a pipe.
        let is_longer = matches!(
            value,
            Expression::Chain(..) | Expression::Signed(_) | Expression::Getline(..)
        );
        if is_longer || !self.take_word("getline")? {
            return Err(self.unexpected());
        }
        let place = self.getline_place()?;
        Ok(Expression::Getline(place, Some(Box::new(Source::Command(value)))))
    }

    /// Returns whether the next token begins a value that can be concatenated.
    fn begins_value(&self) -> bool {
        match &self.token {
            Token::Number(_) | Token::Text(_) => true,
            Token::Word(word, _) => names::is_function(word) || !names::is_reserved(word),
            Token::Operator(sign) => ["$", "("].contains(sign),
            Token::Newline | Token::End => false,
        }
    }

    fn sum(&mut self) -> Result<Expression, Rejection> {
        self.chain(&["+", "-"], Chain::Sum, Self::product)
    }

    fn product(&mut self) -> Result<Expression, Rejection> {
        self.chain(&["*", "/", "%"], Chain::Product, Self::unary)
    }

    fn chain(
        &mut self,
        signs: &[&str],
        kind: Chain,
        read: fn(&mut Self) -> Result<Expression, Rejection>,
    ) -> Result<Expression, Rejection> {
        let first = read(self)?;
        if !self.is_one_of(signs) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.is_one_of(signs) {
            let unclear = match &self.previous {
                Token::Operator(sign) => ["++", "--"].contains(sign),
                Token::Word(word, _) => names::is_function(word),
                _ => false,
            };
            if unclear && self.is("/") {
                return Err(Rejection::unread(
                    "a `/` that may divide or begin a regular expression",
                ));
            }
            self.advance()?;
            parts.push(read(self)?);
        }
        Ok(Expression::Chain(kind, parts))
    }

    fn unary(&mut self) -> Result<Expression, Rejection> {
        if self.take("!")? {
            let value = self.deeper(Self::unary)?;
            let goes_on =
                self.is_one_of(AMBIGUOUS_AFTER_NOT) || self.begins_value() || self.is_word("in");
            if goes_on || self.is(">") && !self.printing {
                return Err(Rejection::unread(
                    "`!` before a longer expression without parentheses",
                ));
            }
            return Ok(Expression::Not(Box::new(value)));
        }
        if self.is_one_of(&["-", "+"]) {
            self.advance()?;
            return Ok(Expression::Signed(Box::new(self.deeper(Self::unary)?)));
        }
        self.power()
    }

    fn power(&mut self) -> Result<Expression, Rejection> {
        let base = self.postfix()?;
        if !self.take("^")? {
            return Ok(base);
        }
        let exponent = self.deeper(|p| if p.is("!") { Err(p.unexpected()) } else { p.unary() })?;
        Ok(Expression::Chain(Chain::Power, vec![base, exponent]))
    }

    fn postfix(&mut self) -> Result<Expression, Rejection> {
        let value = self.primary()?;
        match value {
            Expression::Place(target) if self.is_one_of(&["++", "--"]) => {
                self.advance()?;
                Ok(Expression::Step(Box::new(Step { target })))
            }
            value => Ok(value),
        }
    }

    /// Parses an operand, without the operators after it.
    pub(super) fn primary(&mut self) -> Result<Expression, Rejection> {
        match self.token.clone() {
            Token::Number(number) => {
                self.advance()?;
                Ok(Expression::Number(number))
            }
            Token::Text(text) => {
                self.advance()?;
                Ok(Expression::Text(text))
            }
            Token::Operator("/" | "/=") => Ok(Expression::Regex(self.regex()?)),
            Token::Operator("(") => self.deeper(Self::parentheses),
            Token::Operator("++" | "--") => self.stepped(),
            Token::Word(word, _) if word == "getline" => self.getline(),
            Token::Word(word, _) if names::is_function(&word) => self.call(word),
            Token::Word(word, true) if !names::is_reserved(&word) => {
                self.advance()?;
                let arguments = self.arguments()?.into_iter().map(named).collect();
                Ok(Expression::UserCall(word, arguments))
            }
            _ => Ok(Expression::Place(self.target()?)),
        }
    }

    fn stepped(&mut self) -> Result<Expression, Rejection> {
        self.advance()?;
        let target = self.target()?;
        Ok(Expression::Step(Box::new(Step { target })))
    }

    fn parentheses(&mut self) -> Result<Expression, Rejection> {
        self.expect("(")?;
        let mut values = self.enclosed(Self::list)?;
        self.expect(")")?;
        if values.len() > 1 && self.take_word("in")? {
            return Ok(Expression::In(values, self.name()?));
        }
        Ok(match (values.len(), values.pop()) {
            (1, Some(value)) => Expression::Group(Box::new(value)),
            (_, last) => Expression::List(values.into_iter().chain(last).collect()),
        })
    }

    /// Parses one or more expressions separated by commas.
    pub(super) fn list(&mut self) -> Result<Vec<Expression>, Rejection> {
        let mut values = vec![self.expression()?];
        while self.take(",")? {
            self.skip_newlines()?;
            values.push(self.expression()?);
        }
        Ok(values)
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Rejection> {
        self.expect("(")?;
        let values = if self.is(")") { Vec::new() } else { self.enclosed(Self::list)? };
        self.expect(")")?;
        Ok(values)
    }

    /// Parses an lvalue: a variable, an element or a field.
    fn target(&mut self) -> Result<Place, Rejection> {
        if self.take("$")? {
            return Ok(Place::Field(Box::new(self.deeper(Self::field)?)));
        }
        if matches!(self.token, Token::Word(_, true)) {
            return Err(self.unexpected());
        }
        let name = self.name()?;
        if !self.take("[")? {
            return Ok(Place::Variable(name));
        }
        let subscript = self.enclosed(Self::list)?;
        self.expect("]")?;
        Ok(Place::Element(name, subscript))
    }

    fn field(&mut self) -> Result<Expression, Rejection> {
        match &self.token {
            Token::Number(_) | Token::Operator("(" | "++" | "--") => self.primary(),
            _ => Ok(Expression::Place(self.target()?)),
        }
    }

    fn getline_place(&mut self) -> Result<Option<Place>, Rejection> {
        let is_name = matches!(&self.token, Token::Word(word, _) if !names::is_reserved(word));
        if is_name || self.is("$") { self.target().map(Some) } else { Ok(None) }
    }

    fn getline(&mut self) -> Result<Expression, Rejection> {
        self.advance()?;
        let place = self.getline_place()?;
        if !self.take("<")? {
            return Ok(Expression::Getline(place, None));
        }
        let file = self.primary()?;
        let ends = self.is_one_of(&[")", ";", "}", "&&", "||"])
            || matches!(self.token, Token::Newline | Token::End);
        // Awks differ in how they parse a longer expression as a file name.
        if !ends {
            return Err(self.unexpected());
        }
        Ok(Expression::Getline(place, Some(Box::new(Source::File(file)))))
    }

    fn call(&mut self, name: String) -> Result<Expression, Rejection> {
        self.advance()?;
        let alone = name == "length" && !self.is("(");
        let mut arguments = if alone { Vec::new() } else { self.arguments()? };
        if !names::takes(&name, arguments.len()) {
            return Err(Rejection::unread(format!(
                "`{name}()` with {} arguments",
                arguments.len()
            )));
        }
        if let Some(argument) = names::array_argument(&name).and_then(|i| arguments.get_mut(i)) {
            let Expression::Place(Place::Variable(array)) = argument else {
                return Err(Rejection::unread(format!("`{name}()` without an array")));
            };
            *argument = Expression::Array(std::mem::take(array));
        }
        if ["sub", "gsub"].contains(&name.as_str())
            && !matches!(arguments.get(2), None | Some(Expression::Place(_)))
        {
            return Err(Rejection::unread(format!(
                "`{name}()` on a value that cannot be assigned"
            )));
        }
        let takes_any = ["length", "asort", "asorti", "typeof", "isarray"];
        if takes_any.contains(&name.as_str()) {
            arguments = arguments.into_iter().map(named).collect();
        }
        Ok(Expression::Call(name, arguments))
    }
}

/// Converts a variable to a bare name, which may be that of an array. Returns other arguments
/// unchanged.
fn named(argument: Expression) -> Expression {
    match argument {
        Expression::Place(Place::Variable(name)) => Expression::Name(name),
        other => other,
    }
}
