//! Expressions: `0.64*RAM/threads`, `min(4*NCPU, 32)`, `HPAGE/(16M/s)`, `2.5s`.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/") factor }
//! factor  = "-" factor | number [ unit ] | [ "$" ] name | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```
//!
//! A recursive descent that evaluates as it reads. Values carry what they measure, so `5s` where a size
//! belongs, or `RAM - 512` where `512M` was meant, is told as such.

use std::cmp::Ordering;
use std::ops::Range;

use super::exact::{Quantity, Ratio, Unit};
use super::suggest;

/// Parentheses, functions and signs inside each other.
const NESTING_MAX: usize = 64;

/// Units of size and of time with their bytes or nanoseconds. As dd(1) has it, `K` and `KiB` are
/// 1024 and `KB` is 1000.
const UNITS: [(&str, u64, Unit); 20] = [
    ("B", 1, Unit::SIZE),
    ("K", 1 << 10, Unit::SIZE),
    ("M", 1 << 20, Unit::SIZE),
    ("G", 1 << 30, Unit::SIZE),
    ("T", 1 << 40, Unit::SIZE),
    ("KiB", 1 << 10, Unit::SIZE),
    ("MiB", 1 << 20, Unit::SIZE),
    ("GiB", 1 << 30, Unit::SIZE),
    ("TiB", 1 << 40, Unit::SIZE),
    ("KB", 1_000, Unit::SIZE),
    ("MB", 1_000_000, Unit::SIZE),
    ("GB", 1_000_000_000, Unit::SIZE),
    ("TB", 1_000_000_000_000, Unit::SIZE),
    ("p", 4096, Unit::SIZE),
    ("ns", 1, Unit::TIME),
    ("us", 1_000, Unit::TIME),
    ("ms", 1_000_000, Unit::TIME),
    ("s", 1_000_000_000, Unit::TIME),
    ("m", 60 * 1_000_000_000, Unit::TIME),
    ("h", 3600 * 1_000_000_000, Unit::TIME),
];

/// Functions of the language.
pub(crate) const FUNCTIONS: [&str; 4] = ["min", "max", "floor", "ceil"];

/// A unit by name.
pub(crate) fn unit(name: &str) -> Option<Quantity> {
    let found = UNITS.iter().find(|(unit, ..)| *unit == name);
    found.map(|&(_, scale, unit)| Quantity::whole(scale, unit))
}

/// `value` bytes or nanoseconds in the one of the `names` of units in which it is at least one and the exact text is
/// shortest; of equals in the larger unit. None if it is less than one in all of them.
pub(crate) fn shortest(value: u64, measures: Unit, names: &[&str]) -> Option<String> {
    let fits =
        |name: &str, scale, unit| unit == measures && scale <= value && names.contains(&name);
    let units = UNITS
        .iter()
        .filter(|&&(name, scale, unit)| fits(name, scale, unit));
    let texts = units.filter_map(|&(name, scale, _)| {
        let number = Ratio::new(value.into(), scale.into())?.to_string();
        // What is no decimal is printed as a fraction, which a file would read as a division.
        (!number.contains('/')).then(|| (format!("{number}{name}"), scale))
    });
    texts
        .min_by_key(|(text, scale)| (text.len(), std::cmp::Reverse(*scale)))
        .map(|(text, _)| text)
}

/// Whether a name means a time by itself, as in `20M/s`.
pub(crate) fn is_time_unit(name: &str) -> bool {
    unit(name).is_some_and(|quantity| quantity.unit == Unit::TIME)
}

/// What is wrong with an expression, and at which of its bytes.
#[derive(Debug)]
pub(crate) struct ExprError {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl ExprError {
    fn new(range: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> ExprError {
        ExprError {
            range,
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Value of a name, or message and help.
pub(crate) type Lookup<'a> = dyn Fn(&str) -> Result<Quantity, (String, String)> + 'a;

/// Evaluates an expression.
pub(crate) fn evaluate(text: &str, names: &Lookup<'_>) -> Result<Quantity, ExprError> {
    let mut evaluator = Evaluator {
        text,
        at: 0,
        names,
        depth: 0,
    };
    let value = evaluator.sum()?;
    evaluator.end()?;
    Ok(value)
}

struct Evaluator<'t> {
    text: &'t str,
    at: usize,
    names: &'t Lookup<'t>,
    depth: usize,
}

type Value = Result<Quantity, ExprError>;

impl<'t> Evaluator<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes a symbol if it comes next.
    fn accept(&mut self, symbol: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(symbol);
        if found {
            self.at += symbol.len_utf8();
        }
        found
    }

    /// Consumes the longest run of matching characters.
    fn run(&mut self, matching: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !matching(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or("")
    }

    fn end(&mut self) -> Result<(), ExprError> {
        self.skip_blanks();
        match self.rest().chars().next() {
            None => Ok(()),
            Some(next) => Err(ExprError::new(
                self.at..self.at + next.len_utf8(),
                format!("expected an operator or the end of the expression, found `{next}`"),
                "operators are + - * /; units follow their number without a blank, as in 64K",
            )),
        }
    }

    fn sum(&mut self) -> Value {
        self.skip_blanks();
        let start = self.at;
        let mut left = self.product()?;
        loop {
            let minus = self.accept('-');
            if !minus && !self.accept('+') {
                return Ok(left);
            }
            let right = self.product()?;
            let verb = if minus { "subtract" } else { "add" };
            self.same_unit(start, left, right, verb)?;
            let addend = if minus {
                right.value.negate()
            } else {
                Some(right.value)
            };
            let value = addend.and_then(|addend| left.value.plus(addend));
            left.value = value.ok_or_else(|| self.overflow(start))?;
        }
    }

    fn product(&mut self) -> Value {
        self.skip_blanks();
        let start = self.at;
        let mut left = self.factor()?;
        loop {
            let product = if self.accept('*') {
                left.times(self.factor()?)
            } else if self.accept('/') {
                let right = self.factor()?;
                if right.value.is_zero() {
                    return Err(ExprError::new(
                        start..self.at,
                        "division by zero",
                        "make sure that the divisor is not zero for any combination of parameters",
                    ));
                }
                right.inverse().and_then(|inverse| left.times(inverse))
            } else {
                return Ok(left);
            };
            left = product.ok_or_else(|| self.overflow(start))?;
        }
    }

    fn factor(&mut self) -> Value {
        if self.depth >= NESTING_MAX {
            return Err(ExprError::new(
                self.at..self.text.len(),
                format!("found more than {NESTING_MAX} nested parentheses or signs"),
                "split the expression with [let]",
            ));
        }
        self.depth += 1;
        let value = self.unnested_factor();
        self.depth -= 1;
        value
    }

    fn unnested_factor(&mut self) -> Value {
        self.skip_blanks();
        let start = self.at;
        match self.rest().chars().next() {
            Some('-') => {
                self.at += 1;
                let operand = self.factor()?;
                let value = operand.value.negate().ok_or_else(|| self.overflow(start))?;
                Ok(Quantity { value, ..operand })
            }
            Some('(') => {
                self.at += 1;
                let value = self.sum()?;
                self.close(start)?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.literal(),
            Some('$') => {
                self.at += 1;
                let braced = self.accept('{');
                let value = self.name(start)?;
                if braced && !self.accept('}') {
                    return Err(self.expected("`}`"));
                }
                Ok(value)
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.name(start),
            _ => Err(self.expected("a number, a name or `(`")),
        }
    }

    fn expected(&self, what: &str) -> ExprError {
        let (found, length) = match self.rest().chars().next() {
            Some(c) => (format!("`{}`", c.escape_debug()), c.len_utf8()),
            None => ("the end of the expression".to_owned(), 0),
        };
        ExprError::new(
            self.at..self.at + length,
            format!("expected {what}, found {found}"),
            "an expression looks like 0.8*RAM/threads, min(4*NCPU, 32) or 64K",
        )
    }

    fn close(&mut self, open: usize) -> Result<(), ExprError> {
        if self.accept(')') {
            return Ok(());
        }
        let mut error = self.expected("an operator or `)`");
        error.help = format!("the parenthesis at character {} is not closed", open + 1);
        Err(error)
    }

    fn literal(&mut self) -> Value {
        let start = self.at;
        let digits = self.run(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
        let suffix = self.run(char::is_alphanumeric);
        let number = Ratio::decimal(digits).ok_or_else(|| {
            ExprError::new(
                start..self.at,
                format!(
                    "expected a number, found `{}`",
                    super::tree::shorten(digits)
                ),
                "a number has at most 38 digits and one decimal point",
            )
        })?;
        if suffix.is_empty() {
            return Ok(Quantity {
                value: number,
                unit: Unit::NUMBER,
            });
        }
        let Some(unit) = unit(suffix) else {
            let names = UNITS.iter().map(|(name, ..)| *name);
            return Err(ExprError::new(
                start..self.at,
                format!("unknown unit `{suffix}` in `{digits}{suffix}`"),
                match suggest::nearest(suffix, names.clone()) {
                    Some(unit) => format!("did you mean `{digits}{unit}`?"),
                    None => format!("units are {}", suggest::list(&names.collect::<Vec<_>>())),
                },
            ));
        };
        let number = Quantity {
            value: number,
            unit: Unit::NUMBER,
        };
        unit.times(number).ok_or_else(|| self.overflow(start))
    }

    fn name(&mut self, start: usize) -> Value {
        let name_start = self.at;
        let name = self.run(|c| c.is_ascii_alphanumeric() || c == '_');
        if name.is_empty() {
            return Err(self.expected("a name"));
        }
        if self.at > name_start && self.accept('(') {
            return self.call(name, start);
        }
        if is_time_unit(name)
            && let Some(unit) = unit(name)
        {
            return Ok(unit);
        }
        (self.names)(name).map_err(|(message, help)| {
            ExprError::new(start..name_start + name.len(), message, help)
        })
    }

    fn call(&mut self, function: &str, start: usize) -> Value {
        if !FUNCTIONS.contains(&function) {
            return Err(ExprError::new(
                start..self.at,
                format!("unknown function `{}`", super::tree::shorten(function)),
                suggest::help(function, FUNCTIONS),
            ));
        }
        let open = self.at.saturating_sub(1);
        let mut value = self.sum()?;
        match function {
            "floor" => value.value = Ratio::whole(value.value.floor()),
            "ceil" => value.value = Ratio::whole(value.value.ceil()),
            _ => {
                let keep = if function == "min" {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                while self.accept(',') {
                    let other = self.sum()?;
                    self.same_unit(start, value, other, "compare")?;
                    let order = other.value.compare(value.value);
                    if order.ok_or_else(|| self.overflow(start))? == keep {
                        value = other;
                    }
                }
            }
        }
        self.close(open)?;
        Ok(value)
    }

    fn same_unit(
        &self,
        start: usize,
        a: Quantity,
        b: Quantity,
        verb: &str,
    ) -> Result<(), ExprError> {
        if a.unit == b.unit {
            return Ok(());
        }
        let (left, right) = (a.unit.name(), b.unit.name());
        let help = match (a.unit, b.unit) {
            (Unit::SIZE, Unit::NUMBER) | (Unit::NUMBER, Unit::SIZE) => {
                "give the number a unit: 512M, 300p, or 512B for bytes"
            }
            (Unit::TIME, Unit::NUMBER) | (Unit::NUMBER, Unit::TIME) => {
                "give the number a unit: 5s, 20ms"
            }
            _ => "both sides must measure the same",
        };
        let message = match verb {
            "subtract" => format!("cannot subtract {right} from {left}"),
            "add" => format!("cannot add {right} to {left}"),
            _ => format!("cannot compare {left} with {right}"),
        };
        Err(ExprError::new(start..self.at, message, help))
    }

    fn overflow(&self, start: usize) -> ExprError {
        ExprError::new(
            start..self.at,
            "the value does not fit into 128 bits",
            "numbers are exact; use smaller factors or fewer decimals",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Result<Quantity, (String, String)> {
        match name {
            "RAM" => Ok(Quantity::whole(900 << 20, Unit::SIZE)),
            "threads" => Ok(Quantity::whole(7, Unit::NUMBER)),
            _ => Err((format!("unknown name `{name}`"), String::new())),
        }
    }

    fn value(text: &str) -> String {
        match evaluate(text, &names) {
            Ok(q) => format!("{} {}", q.value, q.unit.name()),
            Err(error) => format!(
                "{}..{} {}",
                error.range.start, error.range.end, error.message
            ),
        }
    }

    #[test]
    fn units() {
        assert_eq!(value("64K"), "65536 a size");
        assert_eq!(value("1KB"), "1000 a size");
        assert_eq!(value("1.5GiB"), "1610612736 a size");
        assert_eq!(value("3p"), "12288 a size");
        assert_eq!(value("2.5s"), "2500000000 a duration");
        assert_eq!(value("1h"), "3600000000000 a duration");
        assert_eq!(value("1_000"), "1000 a plain number");
    }

    #[test]
    fn arithmetic() {
        assert_eq!(value("1+2*3"), "7 a plain number");
        assert_eq!(value("(1+2)*3"), "9 a plain number");
        assert_eq!(value("7-2-1"), "4 a plain number");
        assert_eq!(value("100/10/2"), "5 a plain number");
        assert_eq!(value("-3 + 5"), "2 a plain number");
        assert_eq!(value("0.1+0.2-0.3"), "0 a plain number");
        assert_eq!(value("0.64*RAM/$threads"), "603979776/7 a size");
        assert_eq!(value("min(3, 2, 5) + max(1,4)"), "6 a plain number");
        assert_eq!(value("floor(7/2) + ceil(7/2)"), "7 a plain number");
        assert_eq!(value("2M/(16M/s)"), "125000000 a duration");
        assert_eq!(value("RAM/1M"), "900 a plain number");
        assert_eq!(value("1000/s"), "0.000001 a rate");
    }

    #[test]
    fn errors_tell_their_place() {
        assert_eq!(value("1+x*2"), "2..3 unknown name `x`");
        assert_eq!(value("5Q"), "0..2 unknown unit `Q` in `5Q`");
        assert_eq!(value("1/0"), "0..3 division by zero");
        assert_eq!(value("1/(threads-7)"), "0..13 division by zero");
        assert_eq!(
            value("RAM-512"),
            "0..7 cannot subtract a plain number from a size"
        );
        assert_eq!(
            value("min(1s, 2)"),
            "0..9 cannot compare a duration with a plain number"
        );
        assert_eq!(
            value("5 5"),
            "2..3 expected an operator or the end of the expression, found `5`"
        );
        assert_eq!(
            value(""),
            "0..0 expected a number, a name or `(`, found the end of the expression"
        );
        assert_eq!(
            value("(1"),
            "2..2 expected an operator or `)`, found the end of the expression"
        );
        assert_eq!(value("1..2"), "0..4 expected a number, found `1..2`");
        assert_eq!(value("sqrt(2)"), "0..5 unknown function `sqrt`");
    }

    #[test]
    fn overflow_is_an_error() {
        assert!(value("1000000T*1000000T*1000000T*1000000T").contains("128 bits"));
        assert!(value(&["99999999999999"; 4].join("*")).contains("128 bits"));
        assert!(value(&"(".repeat(5000)).contains("nested"));
        assert!(value(&"-".repeat(5000)).contains("nested"));
        assert!(value(&["RAM"; 200].join("*")).contains("128 bits"));
    }
}
