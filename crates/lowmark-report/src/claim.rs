//! The language in which claims about tables are written.
//!
//! `[ssd::Rand Anon::Vanilla] / [ssd::Rand Anon::HughNew] >= 1.5` says that a ratio of two cells is at
//! least 1.5. The language is the subset of Python that `evaluations/published/index.toml` uses, with
//! the same precedence, so that `check.py` and this module agree:
//!
//! ```text
//! claim      = disjunction
//! disjunction= conjunction { "or" conjunction }
//! conjunction= negation { "and" negation }
//! negation   = "not" negation | comparison
//! comparison = sum { ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum }        a < b < c is a < b and b < c
//! sum        = product { ( "+" | "-" ) product }
//! product    = sign { ( "*" | "/" ) sign }
//! sign       = ( "-" | "+" ) sign | atom
//! atom       = number | "[" table "::" row "::" column "]" | ( "min" | "max" | "abs" ) "(" list ")"
//!            | "(" disjunction ")"
//! ```
//!
//! 1. The lexer cuts the text into tokens with their positions.
//! 2. The parser builds an [`Expr`] by precedence climbing; its depth is bounded.
//! 3. [`Claim::judge`] computes it on figures and keeps both sides of every comparison, because "1.66
//!    >= 1.5" says more than "true". Nothing is cut short: `a and b` looks at both.
//!
//! Numbers follow IEEE 754: a division by zero is infinite, 0/0 is not a number and every comparison
//! with it is false, so a claim about an effect that does not show at all is not borne out. A truth
//! value used as a number counts 1 or 0, as in Python: claims count how many of nine rows improve.
//! A cell without a figure leaves the whole claim undecided.

mod judge;
mod lex;
mod parse;

pub use judge::{Compared, Judgement, Side};

use crate::cell::CellId;
use std::ops::Range;

/// A claim, parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    text: String,
    expr: Expr,
}

impl Claim {
    /// Parses a claim.
    ///
    /// # Errors
    ///
    /// [`ClaimError`] with the position of what was not expected.
    pub fn parse(text: &str) -> Result<Claim, ClaimError> {
        let expr = parse::parse(text)?;
        Ok(Claim {
            text: text.to_owned(),
            expr,
        })
    }

    /// The text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        &self.expr
    }

    /// Every cell that the claim names, once each, in order.
    pub fn cells(&self) -> Vec<CellId> {
        let mut cells = Vec::new();
        self.expr.collect_cells(&mut cells);
        cells.sort();
        cells.dedup();
        cells
    }
}

/// Comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpOp {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl CmpOp {
    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            CmpOp::Less => "<",
            CmpOp::LessEqual => "<=",
            CmpOp::Greater => ">",
            CmpOp::GreaterEqual => ">=",
            CmpOp::Equal => "==",
            CmpOp::NotEqual => "!=",
        }
    }

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            CmpOp::Less => left < right,
            CmpOp::LessEqual => left <= right,
            CmpOp::Greater => left > right,
            CmpOp::GreaterEqual => left >= right,
            CmpOp::Equal => left == right,
            CmpOp::NotEqual => left != right,
        }
    }
}

/// Arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

/// Function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Smallest argument.
    Min,
    /// Largest argument.
    Max,
    /// Absolute value of one argument.
    Abs,
}

/// An expression with the stretch of text that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Bytes of the claim's text.
    pub span: Range<usize>,
}

/// Kinds of expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A number.
    Number(f64),
    /// A cell of a table.
    Cell(CellId),
    /// Minus.
    Negate(Box<Expr>),
    /// `left op right`.
    Arith(ArithOp, Box<Expr>, Box<Expr>),
    /// `first op second op third …`, true if each neighbouring pair compares so.
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    /// `not`
    Not(Box<Expr>),
    /// `and` of all.
    And(Vec<Expr>),
    /// `or` of all.
    Or(Vec<Expr>),
    /// Function of its arguments.
    Call(Function, Vec<Expr>),
}

impl Expr {
    /// The parts of which this expression is made.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Number(_) | ExprKind::Cell(_) => Vec::new(),
            ExprKind::Negate(e) | ExprKind::Not(e) => vec![e],
            ExprKind::Arith(_, left, right) => vec![left, right],
            ExprKind::Compare(first, rest) => std::iter::once(&**first)
                .chain(rest.iter().map(|(_, e)| e))
                .collect(),
            ExprKind::And(list) | ExprKind::Or(list) | ExprKind::Call(_, list) => {
                list.iter().collect()
            }
        }
    }

    fn collect_cells(&self, cells: &mut Vec<CellId>) {
        if let ExprKind::Cell(cell) = &self.kind {
            cells.push(cell.clone());
        }
        for child in self.children() {
            child.collect_cells(cells);
        }
    }

    /// Whether the expression is the same whatever the figures.
    fn is_constant(&self) -> bool {
        !matches!(self.kind, ExprKind::Cell(_)) && self.children().iter().all(|e| e.is_constant())
    }
}

/// Why a text is not a claim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at character {column} of claim `{text}`")]
pub struct ClaimError {
    /// What is wrong and what was expected.
    pub problem: String,
    /// Character, from 1.
    pub column: usize,
    /// Bytes of the text that are wrong.
    pub span: Range<usize>,
    /// The claim.
    pub text: String,
}

impl ClaimError {
    fn new(text: &str, span: Range<usize>, problem: impl Into<String>) -> ClaimError {
        let column = text
            .get(..span.start)
            .map_or(0, |before| before.chars().count())
            + 1;
        ClaimError {
            problem: problem.into(),
            column,
            span,
            text: text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
