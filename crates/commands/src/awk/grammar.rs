//! Parses programs and statements in the subset of POSIX awk that all implementations interpret
//! alike.
//!
//! A construct that mawk, gawk, busybox's awk and the original awk may interpret differently, or
//! that only some of them support, is an error.

use super::ast::{
    Action, Expression, For, Function, Item, ItemKind, Output, Pattern, Print, Program, Rule,
    Statement,
};
use super::lexer::Token;
use super::names;
use super::parser::Parser;
use super::rejection::Rejection;

impl Program {
    /// Parses a program.
    ///
    /// # Errors
    ///
    /// Fails with [`Rejection::Unread`] if the program has a syntax error or a construct that is
    /// unknown or ambiguous, or is nested too deeply.
    pub fn read(text: &str) -> Result<Self, Rejection> {
        let mut parser = Parser::new(text)?;
        let mut items = Vec::new();
        loop {
            while parser.token == Token::Newline || parser.is(";") {
                parser.advance()?;
            }
            if parser.token == Token::End {
                break;
            }
            let start = parser.place.start;
            let kind = parser.item()?;
            items.push(Item { kind, place: start..parser.previous_end });
        }
        let program = Self { text: text.to_owned(), items };
        names::check(&program)?;
        Ok(program)
    }
}

impl Parser<'_> {
    fn item(&mut self) -> Result<ItemKind, Rejection> {
        if self.take_word("BEGIN")? {
            return Ok(ItemKind::Begin(self.block()?));
        }
        if self.take_word("END")? {
            return Ok(ItemKind::End(self.block()?));
        }
        if self.take_word("function")? {
            return Ok(ItemKind::Function(self.function()?));
        }
        let pattern = self.pattern()?;
        let action = if self.is("{") { Some(self.block()?) } else { None };
        let ended = matches!(self.token, Token::Newline | Token::End) || self.is(";");
        if action.is_none() && !ended {
            return Err(self.unexpected());
        }
        Ok(ItemKind::Rule(Rule { pattern, action }))
    }

    fn pattern(&mut self) -> Result<Pattern, Rejection> {
        if self.is("{") {
            return Ok(Pattern::Always);
        }
        let first = self.expression()?;
        if !self.take(",")? {
            return Ok(Pattern::When(first));
        }
        self.skip_newlines()?;
        Ok(Pattern::Range(first, self.expression()?))
    }

    fn function(&mut self) -> Result<Function, Rejection> {
        let name = self.name()?;
        let mut parameters = Vec::new();
        self.expect("(")?;
        while !self.is(")") {
            parameters.push(self.name()?);
            if !self.is(")") {
                self.expect(",")?;
                self.skip_newlines()?;
            }
        }
        self.expect(")")?;
        self.skip_newlines()?;
        self.in_function = true;
        let body = self.block();
        self.in_function = false;
        Ok(Function { name, parameters, body: body? })
    }

    fn block(&mut self) -> Result<Vec<Statement>, Rejection> {
        self.expect("{")?;
        let mut statements = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.take("}")? {
                return Ok(statements);
            }
            statements.push(self.statement()?);
        }
    }

    fn statement(&mut self) -> Result<Statement, Rejection> {
        self.deeper(|p| {
            let start = p.place.start;
            let (action, end) = p.action()?;
            Ok(Statement { action, place: start..end })
        })
    }

    /// Parses the statement after a condition, `do` or `else`, which may be on a later line.
    fn body(&mut self) -> Result<Statement, Rejection> {
        self.skip_newlines()?;
        self.statement()
    }

    fn loop_body(&mut self) -> Result<Statement, Rejection> {
        self.loops += 1;
        let body = self.body();
        self.loops -= 1;
        body
    }

    fn condition(&mut self) -> Result<Expression, Rejection> {
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    /// Parses a statement, and returns it with the byte offset of its end.
    fn action(&mut self) -> Result<(Action, usize), Rejection> {
        let word = match &self.token {
            Token::Word(word, _) => word.as_str(),
            Token::Operator(sign) => sign,
            _ => "",
        };
        match word {
            "{" => Ok((Action::Block(self.block()?), self.previous_end)),
            ";" => Ok((Action::Empty, self.end_of_simple()?)),
            "if" => self.conditional(),
            "while" => {
                self.advance()?;
                let condition = self.condition()?;
                let body = self.loop_body()?;
                let end = body.place.end;
                Ok((Action::While(condition, Box::new(body)), end))
            }
            "do" => {
                self.advance()?;
                let body = self.loop_body()?;
                self.skip_newlines()?;
                if !self.take_word("while")? {
                    return Err(self.unexpected());
                }
                let condition = self.condition()?;
                Ok((Action::Do(Box::new(body), condition), self.end_of_simple()?))
            }
            "for" => {
                self.advance()?;
                self.for_statement()
            }
            _ => {
                let action = self.simple()?;
                Ok((action, self.end_of_simple()?))
            }
        }
    }

    /// Consumes the terminator of a simple statement, unless it is `}`. Returns the byte offset of
    /// the statement's end, which is after a `;` but before any other terminator.
    fn end_of_simple(&mut self) -> Result<usize, Rejection> {
        let end = self.previous_end;
        if self.take(";")? {
            let end = self.previous_end;
            self.skip_newlines()?;
            return Ok(end);
        }
        match self.token {
            Token::Newline => self.skip_newlines()?,
            _ if self.is("}") => {}
            _ => return Err(self.unexpected()),
        }
        Ok(end)
    }

    fn conditional(&mut self) -> Result<(Action, usize), Rejection> {
        self.advance()?;
        let condition = self.condition()?;
        let then = self.body()?;
        self.skip_newlines()?;
        let otherwise = if self.take_word("else")? { Some(self.body()?) } else { None };
        let end = otherwise.as_ref().unwrap_or(&then).place.end;
        Ok((Action::If(condition, Box::new(then), otherwise.map(Box::new)), end))
    }

    fn for_statement(&mut self) -> Result<(Action, usize), Rejection> {
        self.expect("(")?;
        if let Some((variable, array)) = self.for_in_header() {
            for _ in 0..4 {
                self.advance()?;
            }
            let body = self.loop_body()?;
            let end = body.place.end;
            return Ok((Action::ForIn(variable, array, Box::new(body)), end));
        }
        let start = self.expression_before(";")?;
        self.skip_newlines()?;
        let condition = self.expression_before(";")?;
        self.skip_newlines()?;
        let step = self.expression_before(")")?;
        let body = self.loop_body()?;
        let end = body.place.end;
        Ok((Action::For(Box::new(For { start, condition, step, body })), end))
    }

    /// Returns the variable and the array if the next tokens are `NAME in NAME)`, and `None`
    /// otherwise. Does not consume the tokens.
    fn for_in_header(&self) -> Option<(String, String)> {
        let mut ahead = self.clone();
        let variable = ahead.name().ok()?;
        let is_in = ahead.take_word("in").ok()?;
        let array = ahead.name().ok()?;
        (is_in && ahead.is(")")).then_some((variable, array))
    }

    fn expression_before(&mut self, sign: &str) -> Result<Option<Expression>, Rejection> {
        let value = if self.is(sign) { None } else { Some(self.expression()?) };
        self.expect(sign)?;
        Ok(value)
    }

    fn simple(&mut self) -> Result<Action, Rejection> {
        let Token::Word(word, _) = self.token.clone() else {
            return Ok(Action::Value(self.expression()?));
        };
        if !["next", "break", "continue", "exit", "return", "delete", "print", "printf"]
            .contains(&word.as_str())
        {
            return Ok(Action::Value(self.expression()?));
        }
        self.advance()?;
        match word.as_str() {
            "next" if !self.in_function => Ok(Action::Next),
            "break" if self.loops > 0 => Ok(Action::Break),
            "continue" if self.loops > 0 => Ok(Action::Continue),
            "exit" => Ok(Action::Exit(self.value_if_any()?)),
            "return" if self.in_function => Ok(Action::Return(self.value_if_any()?)),
            "delete" => self.delete(),
            "print" | "printf" => self.print(word == "printf"),
            _ => Err(Rejection::unread(format!("unexpected `{word}`"))),
        }
    }

    fn is_at_end(&self) -> bool {
        self.token == Token::Newline || self.token == Token::End || self.is_one_of(&[";", "}"])
    }

    fn value_if_any(&mut self) -> Result<Option<Expression>, Rejection> {
        if self.is_at_end() { Ok(None) } else { self.expression().map(Some) }
    }

    fn delete(&mut self) -> Result<Action, Rejection> {
        let array = self.name()?;
        let subscript = if self.take("[")? {
            let subscript = self.list()?;
            self.expect("]")?;
            Some(subscript)
        } else {
            None
        };
        Ok(Action::Delete(array, subscript))
    }

    fn print(&mut self, formatted: bool) -> Result<Action, Rejection> {
        self.printing = true;
        let print = self.printed(formatted);
        self.printing = false;
        print.map(Action::Print)
    }

    fn printed(&mut self, formatted: bool) -> Result<Print, Rejection> {
        let ends = self.is_at_end() || self.is_one_of(&[">", ">>", "|"]);
        let mut arguments = if ends { Vec::new() } else { self.list()? };
        if let [Expression::List(_)] = arguments.as_slice()
            && let Some(Expression::List(parts)) = arguments.pop()
        {
            arguments = parts;
        }
        if formatted && arguments.is_empty() {
            return Err(Rejection::unread("`printf` without a format"));
        }
        let output = match self.token {
            Token::Operator(">" | ">>") => {
                self.advance()?;
                Some(Output::File(self.primary()?))
            }
            Token::Operator("|") => {
                self.advance()?;
                if self.is_word("getline") {
                    return Err(self.unexpected());
                }
                Some(Output::Command(self.primary()?))
            }
            _ => None,
        };
        // Awks differ in how they parse a longer expression as a file name.
        if self.is_at_end() {
            Ok(Print { arguments, formatted, output })
        } else {
            Err(self.unexpected())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_read() {
        for text in [
            "",
            "{ print }",
            "1",
            "/a/ { print }; /b/",
            "BEGIN { FS = \":\" } { print $1 } END { print NR }",
            "$1 ~ /^[a-z\\/]+$/ && !($2 in seen) { seen[$2]++ }",
            "{ a[$1, $2] = $3; if (($1, $2) in a) print a[$1, $2] }",
            "{ for (i = NF; i > 0; i--) printf \"%s%s\", $i, (i > 1 ? OFS : ORS) }",
            "{ for (;;) break; while (x) continue; do { x++ } while (x < 3); next }",
            "function f(a, b,\n  c)\n{ return a b\n}\n{ print f($1, 2) f(3) }",
            "{ x = -$1 ^ -2 ^ 3; y = $NF-1; z = $++i; w = $i++; v = !x; u = 1 - -1 }",
            "{ print (1, 2) > \"/dev/stderr\"; print(1)(2); print $1, ($2 > 3) }",
            "{ while ((\"date\" | getline line) > 0) n++; getline; getline x <\"f\"; close(\"f\") }",
            "{ print $1 | \"sort\"; printf(\"%d\\n\", $1) >> $2 }",
            "{ if (x) print; else if (y) { print 1 } else print 2; }",
            "{ if (x)\n print\n else\n print 2 }",
            "{ x = y = 3; x += y -= 2; a[x++] /= 2; x = y ? 1 : z ? 2 : 3 }",
            "{ print length, length(), length($1) / 2, length \"x\" }",
            "{ print \"a\" \"b\" 1 -1, x y, $1 $2; print -1 \" \" -1 } # remark",
            "{ print /a/ ? \"y\" : \"n\", $1 ~ \"b\", $0 !~ /=/ }",
            "a && b || c, /x/ { print } ; NR == 1, NR == 2",
            "{ n = split($0, parts, /[[:space:]]+/); delete parts; delete a[1] }",
            "{ print 1e3, .5, 1., 1.5E-3 \\\n , 2 }",
            "{ print a,\n b }\n\n\n$1 == \"x\" &&\n $2 { exit 1 }",
            "{ x = a / b / c; y = d[1] / 2; z = (1) / 3 }",
        ] {
            let read = Program::read(text);
            assert!(read.is_ok(), "{text}: {:?}", read.err());
        }
    }

    #[test]
    fn ambiguous_programs_are_rejected() {
        for text in [
            "{",
            "{ print ",
            "{ print \"a }",
            "{ print \"a\nb\" }",
            "{ print /a\nb/ }",
            "{ x = n++ / 2 }",
            "{ gsub(/[/]*/, \"\") }",
            "{ if (x) /a/ }",
            "{ print !x ~ y }",
            "!x == y",
            "a < b < c",
            "a ~ b ~ c",
            "a == b ~ c",
            "a in b in c",
            "{ print > \"a\" \"b\" }",
            "{ print \"a\" \"b\" | getline }",
            "{ \"a\" \"b\" | getline }",
            "{ getline < \"a\" \"b\" }",
            "{ print 0x10 }",
            "{ print 1a }",
            "{ x ** 2 }",
            "{ f(x) }",
            "function f(x) { return x } { print f (1) }",
            "function f(x) { next } { print f(1) }",
            "{ return }",
            "{ break }",
            "{ print a; print a[1] }",
            "{ print (1, 2) (3) }",
            "{ x = (1, 2) }",
            "BEGIN\n{ print }",
            "BEGIN",
            "BEGINFILE { print }",
            "func f() { }",
            "{ switch (x) { case 1: print } }",
            "{ nextfile }",
            "@load \"x\"",
            "{ @f(x) }",
            "{ print `x` }",
            "{ print é }",
            "{ print 1 # remark \\\n }",
            "{ if (x) { print }; else print }",
            "{ length = 3 }",
            "{ print substr($1) }",
            "{ sub(/a/, \"b\", 3) }",
            "{ split($0) }",
            "{ x = y\n= 3 }",
            "{ 1 + x = 2 }",
            "{ print $-1 }",
            "{ print } }",
        ] {
            let read = Program::read(text);
            assert!(matches!(read, Err(Rejection::Unread(_))), "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        for (open, close) in [
            ("(", ")"),
            ("$", ""),
            ("!", ""),
            ("- ", ""),
            ("2 ^ ", ""),
            ("x = ", ""),
            ("y ? ", " : z"),
            ("y ? z : ", ""),
            ("a[", "]"),
            ("int(", ")"),
        ] {
            let text = |n: usize| format!("{{ x = {}1{} }}", open.repeat(n), close.repeat(n));
            assert!(Program::read(&text(25)).is_ok(), "{}", text(25));
            let error = Program::read(&text(10_000)).expect_err("it is too deep");
            assert_eq!(error, Rejection::unread("it is nested too deeply"), "{open}");
        }
        for open in ["{ ", "if (x) ", "while (x) ", "for (k in a) ", "do "] {
            assert!(Program::read(&format!("{{ {}", open.repeat(10_000))).is_err(), "{open}");
        }
        let long = format!("{{ x = 1{} }}", " + 1 1 && y || z".repeat(10_000));
        let read = Program::read(&long).expect("wide, not deep");
        assert!(super::super::state::per_record(&read, &[]).is_ok());
    }
}
