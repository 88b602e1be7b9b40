//! Values read in the light of a [`Scope`]: sizes, counts, durations, rates, words.
//!
//! Every reader takes a node and says what it expected when the node is something else. Sizes are bytes,
//! durations nanoseconds; what is not whole is rounded down (a size to a whole page).

use crate::machine::PAGE_SIZE;
use crate::workload::{Duration, Order};

use super::error::{Problem, Result};
use super::exact::{Quantity, Ratio, Unit};
use super::expr;
use super::fields::Fields;
use super::scope::Scope;
use super::suggest;
use super::tree::{Node, Value, shorten};

/// Largest size, count or time: what a signed 64-bit `off_t` or `ktime_t` of the kernel holds.
const VALUE_MAX: i128 = i64::MAX as i128;

impl<'a> Scope<'a> {
    /// Any expression.
    pub(crate) fn quantity(&self, node: &Node) -> Result<Quantity> {
        self.measure(
            node,
            "a number",
            "write a number or an expression such as \"0.8*RAM\"",
        )
    }

    fn measure(&self, node: &Node, expected: &str, help: &str) -> Result<Quantity> {
        match &node.value {
            Value::Number(value) => Ok(Quantity {
                value: *value,
                unit: Unit::NUMBER,
            }),
            Value::Text(text) => expr::evaluate(text, &|name| self.lookup(name))
                .map_err(|error| Problem::new(node.part(error.range), error.message, error.help)),
            _ => Err(Problem::new(
                node.span,
                format!("expected {expected}, found {}", node.describe()),
                help,
            )),
        }
    }

    /// An expression that measures one of `units`, not negative and not too large.
    fn checked(&self, node: &Node, expected: &str, units: &[Unit], help: &str) -> Result<Ratio> {
        let quantity = self.measure(node, expected, help)?;
        if !units.contains(&quantity.unit) {
            return Err(Problem::new(
                node.span,
                format!(
                    "expected {expected}, found {}, {}",
                    node.written(),
                    quantity.unit.name()
                ),
                help,
            ));
        }
        let value = quantity.value;
        if value.is_negative() {
            return Err(Problem::new(
                node.span,
                format!(
                    "expected {expected}, found {}, which is {value}, below zero",
                    node.written()
                ),
                "bound the expression from below, for example with max(…)",
            ));
        }
        if value.floor() > VALUE_MAX {
            return Err(Problem::new(
                node.span,
                format!(
                    "expected {expected}, found {}, which is {value}",
                    node.written()
                ),
                format!("at most {VALUE_MAX} fits (bytes, counts, nanoseconds)"),
            ));
        }
        Ok(value)
    }

    /// Bytes. A fraction of a byte is rounded down to a whole page.
    pub(crate) fn size(&self, node: &Node) -> Result<u64> {
        const HELP: &str =
            "write a size: 4096, \"64K\", \"1.5G\", \"300p\", or an expression such as \"0.8*RAM\"";
        let value = self.checked(node, "a size", &[Unit::SIZE, Unit::NUMBER], HELP)?;
        let bytes = natural(value);
        Ok(if value.is_whole() {
            bytes
        } else {
            bytes - bytes % PAGE_SIZE
        })
    }

    /// Bytes, at least one.
    pub(crate) fn some_size(&self, node: &Node) -> Result<u64> {
        self.at_least_one(node, self.size(node)?)
    }

    /// Bytes for an inode of a file system, in the bounds of mke2fs(8).
    pub(crate) fn inode_ratio(&self, node: &Node) -> Result<u64> {
        let bytes = self.size(node)?;
        if (1 << 10..=4 << 20).contains(&bytes) {
            return Ok(bytes);
        }
        Err(Problem::new(
            node.span,
            format!(
                "expected a size from 1K to 4M for each inode, found {}, which is {bytes} bytes",
                node.written()
            ),
            "mke2fs makes 16K of it unless it is told otherwise",
        ))
    }

    /// A length in whole pages, rounded up as mmap(2) does, at least one.
    pub(crate) fn pages(&self, node: &Node) -> Result<u64> {
        Ok(self.some_size(node)?.next_multiple_of(PAGE_SIZE))
    }

    /// An offset, rounded down to a whole page.
    pub(crate) fn page_offset(&self, node: &Node) -> Result<u64> {
        let bytes = self.size(node)?;
        Ok(bytes - bytes % PAGE_SIZE)
    }

    /// A whole number: what an expression comes to is rounded down, but a number that is written out has to be
    /// whole.
    pub(crate) fn count(&self, node: &Node) -> Result<u64> {
        const HELP: &str =
            "write a plain number: 5000, or an expression such as \"RAM/1M\" or \"4*NCPU\"";
        let written = match &node.value {
            Value::Number(value) => Some(*value),
            Value::Text(text) => Ratio::decimal(text.trim()),
            _ => None,
        };
        if written.is_some_and(|value| !value.is_whole()) {
            return Err(Problem::new(
                node.span,
                format!("expected a whole number, found {}", node.written()),
                HELP,
            ));
        }
        Ok(natural(self.checked(
            node,
            "a count",
            &[Unit::NUMBER],
            HELP,
        )?))
    }

    /// A whole number, at least one.
    pub(crate) fn some(&self, node: &Node) -> Result<u64> {
        self.at_least_one(node, self.count(node)?)
    }

    /// A whole number of at most `max`, at least one.
    pub(crate) fn some_up_to(&self, node: &Node, max: u32) -> Result<u32> {
        match u32::try_from(self.some(node)?) {
            Ok(value) if value <= max => Ok(value),
            _ => Err(Problem::new(
                node.span,
                format!("expected a count from 1 to {max}, found {}", node.written()),
                "use a smaller number",
            )),
        }
    }

    fn at_least_one(&self, node: &Node, value: u64) -> Result<u64> {
        if value > 0 {
            return Ok(value);
        }
        Err(Problem::new(
            node.span,
            format!("expected at least 1, found {}, which is 0", node.written()),
            "use a larger value; fractions are rounded down (a size to a whole page)",
        ))
    }

    /// A decimal fraction in thousandths, above zero and at most `max` thousandths.
    fn thousandths(&self, node: &Node, max: u32) -> Result<u32> {
        let value = self.checked(
            node,
            "a plain number",
            &[Unit::NUMBER],
            "write for example 0.99",
        )?;
        let scaled = value
            .times(Ratio::whole(1000))
            .filter(|scaled| scaled.is_whole());
        match scaled.and_then(|scaled| u32::try_from(scaled.floor()).ok()) {
            Some(thousandths) if (1..=max).contains(&thousandths) => Ok(thousandths),
            _ => Err(Problem::new(
                node.span,
                format!(
                    "expected a number from 0.001 to {}, found {value}",
                    max / 1000
                ),
                "use at most three decimals",
            )),
        }
    }

    /// The sigma of a distribution, in thousandths.
    pub(crate) fn sigma(&self, node: &Node) -> Result<u32> {
        self.thousandths(node, 10_000)
    }

    /// Nanoseconds, rounded down.
    pub(crate) fn duration(&self, node: &Node) -> Result<u64> {
        const HELP: &str = "write a duration with its unit: \"250ns\", \"5ms\", \"2.5s\", \"10m\"";
        Ok(natural(self.checked(
            node,
            "a duration",
            &[Unit::TIME],
            HELP,
        )?))
    }

    /// Nanoseconds, at least one.
    pub(crate) fn some_duration(&self, node: &Node) -> Result<u64> {
        self.at_least_one(node, self.duration(node)?)
    }

    /// Nanoseconds of one piece of work of a machine, rounded down: a cost, or a time of a device. The bound keeps
    /// the time of as many pieces as a run can ask for at once within 64 bits.
    pub(crate) fn work(&self, node: &Node) -> Result<u64> {
        const WORK_MAX: u64 = 60_000_000_000;
        let time = self.duration(node)?;
        if time <= WORK_MAX {
            return Ok(time);
        }
        Err(Problem::new(
            node.span,
            format!("expected at most one minute, found {}", node.written()),
            "write what one piece of work takes, for example \"300ns\" or \"7.5ms\"",
        ))
    }

    /// A time, fixed or drawn at random.
    pub(crate) fn duration_dist(&self, node: &Node) -> Result<Duration> {
        let Value::Table(entries) = &node.value else {
            return Ok(Duration::Fixed(self.duration(node)?));
        };
        const KEYS: [&str; 2] = ["uniform", "exponential"];
        let fields = Fields::open(node, node.span, "a random duration", &KEYS, self)?;
        match entries.as_slice() {
            [entry] if entry.key == "uniform" => {
                let (low, high) = fields.scope.interval(&entry.node, Scope::duration)?;
                Ok(Duration::Uniform(low, high))
            }
            [entry] => Ok(Duration::Exponential(self.some_duration(&entry.node)?)),
            _ => Err(Problem::new(
                node.span,
                format!(
                    "expected one of `uniform` and `exponential`, found {} keys",
                    entries.len()
                ),
                "write { uniform = [\"1ms\", \"5ms\"] } or { exponential = \"5ms\" }",
            )),
        }
    }

    /// `[low, high]` with low at most high.
    pub(crate) fn interval(
        &self,
        node: &Node,
        read: impl Fn(&Scope<'a>, &Node) -> Result<u64>,
    ) -> Result<(u64, u64)> {
        let ends = node.elements("the two ends of an interval")?;
        let [low, high] = ends else {
            return Err(Problem::new(
                node.span,
                format!("expected two ends of an interval, found {}", ends.len()),
                "write [low, high]",
            ));
        };
        let (low, high) = (read(self, low)?, read(self, high)?);
        if low > high {
            return Err(Problem::new(
                node.span,
                format!("expected the lower end first, found {low} before {high}"),
                "write [low, high]",
            ));
        }
        Ok((low, high))
    }

    fn per_second(&self, node: &Node, expected: &str, unit: Unit, help: &str) -> Result<u64> {
        let value = self.checked(node, expected, &[unit], help)?;
        let per_second = value.times(Ratio::whole(1_000_000_000)).map(natural);
        match per_second {
            Some(rate) if (1..=i64::MAX.unsigned_abs()).contains(&rate) => Ok(rate),
            _ => Err(Problem::new(
                node.span,
                format!(
                    "expected {expected} of at least one a second, found {}",
                    node.written()
                ),
                help,
            )),
        }
    }

    /// Bytes a second.
    pub(crate) fn data_rate(&self, node: &Node) -> Result<u64> {
        self.per_second(
            node,
            "a data rate",
            Unit::DATA_RATE,
            "write a size over a time: \"20M/s\"",
        )
    }

    /// Operations a second.
    pub(crate) fn rate(&self, node: &Node) -> Result<u64> {
        self.per_second(
            node,
            "a rate",
            Unit::RATE,
            "write a number over a time: \"1000/s\"",
        )
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, node: &Node) -> Result<bool> {
        if let Value::Boolean(value) = node.value {
            return Ok(value);
        }
        match self.text(node).as_deref() {
            Ok("true") => Ok(true),
            Ok("false") => Ok(false),
            _ => Err(Problem::new(
                node.span,
                format!("expected true or false, found {}", node.describe()),
                "write true or false",
            )),
        }
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &self,
        node: &Node,
        what: &str,
        words: &[(&str, T)],
    ) -> Result<T> {
        let text = self.text(node)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|&(_, value)| value).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| *word);
            let from = if node.describe().contains('$') {
                format!(" (from {})", node.describe())
            } else {
                String::new()
            };
            let all = suggest::list(&known.clone().collect::<Vec<_>>());
            Problem::new(
                node.span,
                format!("expected {what}, found \"{}\"{from}", shorten(&text)),
                match suggest::nearest(&text, known) {
                    Some(word) => format!("did you mean \"{word}\"? known: {all}"),
                    None => format!("known: {all}"),
                },
            )
        })
    }

    /// A short label: what appears in tables and traces.
    pub(crate) fn label(&self, node: &Node) -> Result<String> {
        const CHARS_MAX: usize = 64;
        let text = self.text(node)?;
        let plain = |c: char| c.is_alphanumeric() || " _-./:%".contains(c);
        if text.trim().is_empty() || text.chars().count() > CHARS_MAX || !text.chars().all(plain) {
            return Err(Problem::new(
                node.span,
                format!("expected a name, found \"{}\"", shorten(&text)),
                format!("use 1 to {CHARS_MAX} letters, digits, blanks and _ - . / : %"),
            ));
        }
        Ok(text)
    }

    /// Order of visits.
    pub(crate) fn order(&self, node: &Node) -> Result<Order> {
        const WORDS: [(&str, Order); 7] = [
            ("seq", Order::Seq),
            ("onward", Order::Onward),
            ("reverse", Order::Reverse),
            ("random", Order::Random),
            ("zipf(0.99)", Order::Zipf(990)),
            ("stride(16)", Order::Stride(16)),
            ("gauss(0.1)", Order::Gauss(100)),
        ];
        let text = self.text(node)?;
        let argument = |name: &str| {
            let inner = text
                .strip_prefix(name)?
                .strip_prefix('(')?
                .strip_suffix(')')?;
            Some(Node::text(node.span, inner))
        };
        if let Some(theta) = argument("zipf") {
            return Ok(Order::Zipf(self.thousandths(&theta, 10_000)?));
        }
        if let Some(sigma) = argument("gauss") {
            return Ok(Order::Gauss(self.thousandths(&sigma, 10_000)?));
        }
        if let Some(step) = argument("stride") {
            return Ok(Order::Stride(self.some(&step)?));
        }
        // Those with an argument are in the list to be shown and suggested.
        self.choice(node, "an order", &WORDS)
    }
}

/// A value that has been checked to be neither negative nor too large, rounded down.
fn natural(value: Ratio) -> u64 {
    u64::try_from(value.floor()).unwrap_or(u64::MAX)
}
