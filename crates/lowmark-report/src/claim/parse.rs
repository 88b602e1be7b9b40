//! From tokens to an expression, by precedence climbing.

use super::lex::{Spanned, Token, lex};
use super::{ArithOp, ClaimError, Expr, ExprKind, Function};
use std::ops::Range;

/// Parentheses, signs and calls may be nested this deep: a bound on the stack, far above need.
const DEPTH_MAX: usize = 100;

/// Chains of operators may be this long, for the same reason: `a + b + c` is a tree of depth three.
const OPERATORS_MAX: usize = 2_000;

/// Parses a whole claim.
pub(super) fn parse(text: &str) -> Result<Expr, ClaimError> {
    let mut parser = Parser {
        text,
        tokens: lex(text)?,
        at: 0,
        depth: 0,
    };
    let operators = parser
        .tokens
        .iter()
        .filter(|t| matches!(t.token, Token::Arith(_)))
        .count();
    if operators > OPERATORS_MAX {
        return Err(ClaimError::new(text, 0..text.len(), "too many operators"));
    }
    let expr = parser.disjunction()?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Spanned>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.token)
    }

    fn span(&self) -> Range<usize> {
        self.tokens
            .get(self.at)
            .map_or(self.text.len()..self.text.len(), |t| t.span.clone())
    }

    fn unexpected(&self, expected: &str) -> ClaimError {
        let found = self.peek().map_or("the end".to_owned(), Token::describe);
        ClaimError::new(
            self.text,
            self.span(),
            format!("expected {expected}, found {found}"),
        )
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, token: &Token) -> Result<(), ClaimError> {
        if self.eat(token) {
            Ok(())
        } else {
            Err(self.unexpected(&token.describe()))
        }
    }

    /// Runs `inner` one level deeper.
    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<Expr, ClaimError>,
    ) -> Result<Expr, ClaimError> {
        if self.depth == DEPTH_MAX {
            return Err(ClaimError::new(self.text, self.span(), "nested too deeply"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn disjunction(&mut self) -> Result<Expr, ClaimError> {
        self.joined("or", Self::conjunction, ExprKind::Or)
    }

    fn conjunction(&mut self) -> Result<Expr, ClaimError> {
        self.joined("and", Self::negation, ExprKind::And)
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Expr, ClaimError>,
        kind: fn(Vec<Expr>) -> ExprKind,
    ) -> Result<Expr, ClaimError> {
        let first = part(self)?;
        if !matches!(self.peek(), Some(Token::Word(w)) if w == word) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_word(word) {
            parts.push(part(self)?);
        }
        let span = covering(&parts);
        Ok(Expr {
            kind: kind(parts),
            span,
        })
    }

    fn negation(&mut self) -> Result<Expr, ClaimError> {
        let start = self.span().start;
        if !self.eat_word("not") {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        let span = start..inner.span.end;
        Ok(Expr {
            kind: ExprKind::Not(Box::new(inner)),
            span,
        })
    }

    fn comparison(&mut self) -> Result<Expr, ClaimError> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(&Token::Compare(op)) = self.peek() {
            self.at += 1;
            rest.push((op, self.sum()?));
        }
        let Some((_, last)) = rest.last() else {
            return Ok(first);
        };
        let span = first.span.start..last.span.end;
        Ok(Expr {
            kind: ExprKind::Compare(Box::new(first), rest),
            span,
        })
    }

    fn sum(&mut self) -> Result<Expr, ClaimError> {
        self.arithmetic(&[ArithOp::Add, ArithOp::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ClaimError> {
        self.arithmetic(&[ArithOp::Multiply, ArithOp::Divide], Self::sign)
    }

    fn arithmetic(
        &mut self,
        operators: &[ArithOp],
        part: fn(&mut Self) -> Result<Expr, ClaimError>,
    ) -> Result<Expr, ClaimError> {
        let mut left = part(self)?;
        while let Some(&Token::Arith(op)) = self.peek() {
            if !operators.contains(&op) {
                break;
            }
            self.at += 1;
            let right = part(self)?;
            let span = left.span.start..right.span.end;
            left = Expr {
                kind: ExprKind::Arith(op, Box::new(left), Box::new(right)),
                span,
            };
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr, ClaimError> {
        let start = self.span().start;
        if self.eat(&Token::Arith(ArithOp::Add)) {
            return self.nested(Self::sign);
        }
        if self.eat(&Token::Arith(ArithOp::Subtract)) {
            let inner = self.nested(Self::sign)?;
            let span = start..inner.span.end;
            return Ok(Expr {
                kind: ExprKind::Negate(Box::new(inner)),
                span,
            });
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expr, ClaimError> {
        let span = self.span();
        let kind = match self.peek() {
            Some(Token::Number(value)) => ExprKind::Number(*value),
            Some(Token::Cell(cell)) => ExprKind::Cell(cell.clone()),
            Some(Token::Open) => return self.parenthesis(),
            Some(Token::Word(word)) => match function(word) {
                Some(function) => return self.call(function),
                None => return Err(self.unexpected("a value")),
            },
            _ => return Err(self.unexpected("a value")),
        };
        self.at += 1;
        Ok(Expr { kind, span })
    }

    fn parenthesis(&mut self) -> Result<Expr, ClaimError> {
        let start = self.span().start;
        self.expect(&Token::Open)?;
        let inner = self.nested(Self::disjunction)?;
        let end = self.span().end;
        self.expect(&Token::Close)?;
        Ok(Expr {
            span: start..end,
            ..inner
        })
    }

    fn call(&mut self, function: Function) -> Result<Expr, ClaimError> {
        let start = self.span().start;
        self.at += 1;
        self.expect(&Token::Open)?;
        let mut arguments = vec![self.nested(Self::disjunction)?];
        while self.eat(&Token::Comma) {
            arguments.push(self.nested(Self::disjunction)?);
        }
        let span = start..self.span().end;
        self.expect(&Token::Close)?;
        if function == Function::Abs && arguments.len() != 1 {
            let problem = format!("abs takes one value, found {}", arguments.len());
            return Err(ClaimError::new(self.text, span, problem));
        }
        Ok(Expr {
            kind: ExprKind::Call(function, arguments),
            span,
        })
    }
}

fn covering(parts: &[Expr]) -> Range<usize> {
    let start = parts.first().map_or(0, |e| e.span.start);
    start..parts.last().map_or(start, |e| e.span.end)
}

fn function(word: &str) -> Option<Function> {
    match word {
        "min" => Some(Function::Min),
        "max" => Some(Function::Max),
        "abs" => Some(Function::Abs),
        _ => None,
    }
}
