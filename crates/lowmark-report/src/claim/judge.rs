//! Evaluation of a claim on figures.

use super::{ArithOp, Claim, CmpOp, Expr, ExprKind, Function};
use crate::cell::CellId;

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// The expression as written.
    pub text: String,
    /// Its value; not a number where the claim divides 0 by 0.
    pub value: f64,
    /// Whether it is the same whatever the figures: a threshold.
    pub constant: bool,
}

/// A comparison with its two numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Left side.
    pub left: Side,
    /// Operator as written.
    pub op: &'static str,
    /// Right side.
    pub right: Side,
    /// Whether it holds.
    pub holds: bool,
}

/// What figures say about a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Every cell has a figure.
    Decided {
        /// Whether the claim holds.
        holds: bool,
        /// Its comparisons in the order of the text, inner ones first.
        compared: Vec<Compared>,
    },
    /// These cells have no figure, so the claim is undecided.
    Missing(Vec<CellId>),
}

impl Judgement {
    /// Whether the claim holds; none if undecided.
    pub fn holds(&self) -> Option<bool> {
        match self {
            Judgement::Decided { holds, .. } => Some(*holds),
            Judgement::Missing(_) => None,
        }
    }

    /// The comparisons; none if undecided.
    pub fn compared(&self) -> &[Compared] {
        match self {
            Judgement::Decided { compared, .. } => compared,
            Judgement::Missing(_) => &[],
        }
    }
}

/// Value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    /// A number.
    Number(f64),
    /// A truth value.
    Truth(bool),
}

impl Value {
    /// As Python's arithmetic takes it: true is 1, false is 0.
    fn number(self) -> f64 {
        match self {
            Value::Number(n) => n,
            Value::Truth(t) => f64::from(u8::from(t)),
        }
    }

    /// As Python's `bool()` takes it, except that NaN is false: it supports nothing.
    fn truth(self) -> bool {
        match self {
            Value::Number(n) => n != 0.0 && !n.is_nan(),
            Value::Truth(t) => t,
        }
    }
}

impl Claim {
    /// Judges the claim by the figures that `figure` gives for cells.
    pub fn judge(&self, figure: impl Fn(&CellId) -> Option<f64>) -> Judgement {
        let cells = self.cells();
        let missing: Vec<CellId> = cells
            .into_iter()
            .filter(|c| figure(c).is_none_or(f64::is_nan))
            .collect();
        if !missing.is_empty() {
            return Judgement::Missing(missing);
        }
        let mut judge = Judge {
            text: &self.text,
            figure: &figure,
            compared: Vec::new(),
        };
        let holds = judge.value(&self.expr).truth();
        Judgement::Decided {
            holds,
            compared: judge.compared,
        }
    }
}

struct Judge<'a> {
    text: &'a str,
    figure: &'a dyn Fn(&CellId) -> Option<f64>,
    compared: Vec<Compared>,
}

impl Judge<'_> {
    fn value(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Number(n) => Value::Number(*n),
            ExprKind::Cell(cell) => Value::Number((self.figure)(cell).unwrap_or(f64::NAN)),
            ExprKind::Negate(e) => Value::Number(-self.value(e).number()),
            ExprKind::Arith(op, left, right) => {
                let (left, right) = (self.value(left).number(), self.value(right).number());
                Value::Number(match op {
                    ArithOp::Add => left + right,
                    ArithOp::Subtract => left - right,
                    ArithOp::Multiply => left * right,
                    ArithOp::Divide => left / right,
                })
            }
            ExprKind::Compare(first, rest) => self.chain(first, rest),
            ExprKind::Not(e) => Value::Truth(!self.value(e).truth()),
            ExprKind::And(list) => Value::Truth(self.truths(list).iter().all(|&t| t)),
            ExprKind::Or(list) => Value::Truth(self.truths(list).iter().any(|&t| t)),
            ExprKind::Call(function, list) => self.call(*function, list),
        }
    }

    /// Truth of every part: all are looked at, so that all their numbers are kept.
    fn truths(&mut self, list: &[Expr]) -> Vec<bool> {
        list.iter().map(|e| self.value(e).truth()).collect()
    }

    fn call(&mut self, function: Function, list: &[Expr]) -> Value {
        let values = list.iter().map(|e| self.value(e).number());
        Value::Number(match function {
            Function::Abs => values.fold(f64::NAN, |_, v| v.abs()),
            Function::Min => values
                .reduce(|a, b| extreme(a, b, a < b))
                .unwrap_or(f64::NAN),
            Function::Max => values
                .reduce(|a, b| extreme(a, b, a > b))
                .unwrap_or(f64::NAN),
        })
    }

    fn chain(&mut self, first: &Expr, rest: &[(CmpOp, Expr)]) -> Value {
        let mut left = self.side(first);
        let mut all = true;
        for (op, expr) in rest {
            let right = self.side(expr);
            let holds = op.holds(left.value, right.value);
            all &= holds;
            self.compared.push(Compared {
                left,
                op: op.symbol(),
                right: right.clone(),
                holds,
            });
            left = right;
        }
        Value::Truth(all)
    }

    fn side(&mut self, expr: &Expr) -> Side {
        Side {
            text: self
                .text
                .get(expr.span.clone())
                .unwrap_or_default()
                .to_owned(),
            value: self.value(expr).number(),
            constant: expr.is_constant(),
        }
    }
}

/// `a` or `b`; a NaN on either side is not lost, unlike in [`f64::min`].
fn extreme(a: f64, b: f64, take_a: bool) -> f64 {
    if a.is_nan() || (take_a && !b.is_nan()) {
        a
    } else {
        b
    }
}
