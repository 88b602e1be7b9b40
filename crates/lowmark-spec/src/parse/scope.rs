//! What names mean at a place of the file.
//!
//! 1. `for` parameters are texts; they replace `$name` in strings and may be used as numbers.
//! 2. The machine gives `RAM`, `MEMTOTAL`, `RAM_MB`, `NCPU`, `NODES`, `HPAGE`, `HPAGE_ORDER`, `PAGE`.
//! 3. `[let]` names are values, computed once in the order of the file.
//! 4. Inside a task `idx`, `threads` and `processes` say which instance this is.

use crate::machine::{Arch, Machine, PAGE_SIZE};

use super::error::{Problem, Result};
use super::exact::{Quantity, Unit};
use super::expr;
use super::source::Span;
use super::suggest;
use super::tree::{Node, Value, shorten};

/// Names that the language keeps for itself.
pub(crate) const RESERVED: [&str; 11] = [
    "RAM",
    "MEMTOTAL",
    "RAM_MB",
    "NCPU",
    "NODES",
    "HPAGE",
    "HPAGE_ORDER",
    "PAGE",
    "idx",
    "threads",
    "processes",
];

/// A `for` parameter bound to one of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Which instance of a task this is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Instance {
    pub(crate) idx: u64,
    pub(crate) threads: u64,
    pub(crate) processes: u64,
}

/// Everything that names can mean at one place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope<'a> {
    /// The machine, once it is known.
    pub(crate) machine: Option<&'a Machine>,
    /// The bound `for` parameters.
    pub(crate) params: &'a [Param],
    /// The `let` values computed so far.
    pub(crate) lets: Vec<(String, Quantity)>,
    /// `let` names that are still to be computed, the one in work last.
    pub(crate) pending: Vec<String>,
    /// The instance, inside a task.
    pub(crate) instance: Option<Instance>,
}

/// Pages of the machine's huge page as a power of two.
fn huge_page_order(arch: Arch) -> u32 {
    match arch {
        Arch::X86_64 => 9,
        Arch::X86_32 => 10,
        Arch::Ppc64 => 12,
    }
}

impl<'a> Scope<'a> {
    /// Value of a name; otherwise message and help.
    pub(crate) fn lookup(&self, name: &str) -> std::result::Result<Quantity, (String, String)> {
        if let Some((_, value)) = self.lets.iter().find(|(known, _)| known == name) {
            return Ok(*value);
        }
        if let Some(param) = self.params.iter().find(|param| param.name == name) {
            // A parameter may be an expression over the machine, but not over other parameters.
            let scope = Scope {
                machine: self.machine,
                ..Scope::default()
            };
            return expr::evaluate(&param.text, &|inner| scope.lookup(inner)).map_err(|_| {
                (
                    format!(
                        "expected a number, found `{name}`, which is \"{}\"",
                        shorten(&param.text)
                    ),
                    format!("use \"${name}\" where the text itself is meant"),
                )
            });
        }
        if self.pending.iter().any(|known| known == name) {
            return Err(if self.pending.last().is_some_and(|known| known == name) {
                (
                    format!("`{name}` is defined through itself"),
                    "give it a value without itself".into(),
                )
            } else {
                (
                    format!("`{name}` is defined later"),
                    format!("move `{name}` up: [let] is read in order"),
                )
            });
        }
        if !RESERVED.contains(&name) {
            let known = RESERVED.iter().copied().chain(self.names());
            return Err((
                format!("unknown name `{}`", shorten(name)),
                suggest::help(name, known),
            ));
        }
        if let Some(instance) = self.instance {
            match name {
                "idx" => return Ok(Quantity::whole(instance.idx, Unit::NUMBER)),
                "threads" => return Ok(Quantity::whole(instance.threads, Unit::NUMBER)),
                "processes" => return Ok(Quantity::whole(instance.processes, Unit::NUMBER)),
                _ => {}
            }
        }
        if matches!(name, "idx" | "threads" | "processes") {
            return Err((
                format!("`{name}` is known only inside the `run` of a task"),
                "move the expression into the statement that needs it".into(),
            ));
        }
        let Some(machine) = self.machine else {
            return Err((
                format!(
                    "`{name}` is not known yet: it belongs to the machine, which is being read"
                ),
                "write the figure itself, or a parameter of [for]".into(),
            ));
        };
        let order = huge_page_order(machine.arch);
        Ok(match name {
            "RAM" => Quantity::whole(machine.ram(), Unit::SIZE),
            "MEMTOTAL" => Quantity::whole(machine.mem_total(), Unit::SIZE),
            "RAM_MB" => Quantity::whole(machine.ram() >> 20, Unit::NUMBER),
            "NCPU" => Quantity::whole(machine.cpus.into(), Unit::NUMBER),
            "NODES" => Quantity::whole(machine.nodes.len() as u64, Unit::NUMBER),
            "HPAGE" => Quantity::whole(PAGE_SIZE << order, Unit::SIZE),
            "HPAGE_ORDER" => Quantity::whole(order.into(), Unit::NUMBER),
            _ => Quantity::whole(PAGE_SIZE, Unit::SIZE),
        })
    }

    /// Names that the file defines.
    fn names(&self) -> impl Iterator<Item = &str> {
        let params = self.params.iter().map(|param| param.name.as_str());
        params.chain(self.lets.iter().map(|(name, _)| name.as_str()))
    }

    /// Checks that a new name for a value can stand in expressions and is not taken.
    pub(crate) fn new_name(&self, name: &str, span: Span) -> Result<()> {
        identifier(name, span, "a value")?;
        if name.contains('-') || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(Problem::new(
                span,
                format!("expected a name that can stand in expressions, found `{name}`"),
                "use letters, digits and _, with a letter first",
            ));
        }
        if RESERVED.contains(&name) || expr::FUNCTIONS.contains(&name) || expr::is_time_unit(name) {
            return Err(Problem::new(
                span,
                format!("expected a new name, found `{name}`, which the language uses itself"),
                "choose another name",
            ));
        }
        if self.names().any(|known| known == name) {
            let message = format!("expected a new name, found `{name}`, which has a value already");
            return Err(Problem::new(span, message, "choose another name"));
        }
        Ok(())
    }

    /// The text of a string or number, with every `$name` and `${name}` replaced; `$$` is a dollar.
    pub(crate) fn text(&self, node: &Node) -> Result<String> {
        match &node.value {
            Value::Text(text) => self.substitute(node, text),
            Value::Number(number) => Ok(number.to_string()),
            Value::Boolean(value) => Ok(value.to_string()),
            _ => Err(Problem::new(
                node.span,
                format!("expected a text, found {}", node.describe()),
                "write the text between quotes",
            )),
        }
    }

    fn substitute(&self, node: &Node, text: &str) -> Result<String> {
        let mut result = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(found) = text[at..].find('$') {
            let dollar = at + found;
            result.push_str(&text[at..dollar]);
            let rest = &text[dollar + 1..];
            if rest.starts_with('$') {
                result.push('$');
                at = dollar + 2;
                continue;
            }
            let (inner, length) = match rest.strip_prefix('{') {
                Some(inner) => {
                    let length = inner.find('}').unwrap_or(0);
                    (&inner[..length], length + 2)
                }
                None => {
                    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                    (&rest[..length], length)
                }
            };
            if inner.is_empty() {
                return Err(Problem::new(
                    node.part(dollar..dollar + 1),
                    "expected a name after `$`",
                    "write $name or ${name}, ${an expression}, or $$ for a dollar sign",
                ));
            }
            let end = dollar + 1 + length;
            result.push_str(&self.value_in_text(node, dollar..end, inner)?);
            at = end;
        }
        result.push_str(&text[at..]);
        Ok(result)
    }

    /// What stands for a name or an expression, at `place` in the text of a node.
    fn value_in_text(
        &self,
        node: &Node,
        place: std::ops::Range<usize>,
        inner: &str,
    ) -> Result<String> {
        if let Some(param) = self.params.iter().find(|param| param.name == inner) {
            return Ok(param.text.clone());
        }
        let span = node.part(place);
        if inner.chars().all(is_word) {
            return self
                .lookup(inner)
                .map(|value| value.value.to_string())
                .map_err(|(message, help)| Problem::new(span, message, help));
        }
        let value = self.quantity(&Node::text(span, inner))?;
        Ok(value.value.to_string())
    }
}

/// Whether a character can be in a name that follows `$` without braces.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Checks a name that the file gives to a parameter, a file, a task and so on.
pub(crate) fn identifier(name: &str, span: Span, what: &str) -> Result<()> {
    const CHARS_MAX: usize = 64;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > CHARS_MAX || !name.chars().all(plain) {
        return Err(Problem::new(
            span,
            format!("expected a name for {what}, found \"{}\"", shorten(name)),
            format!("use 1 to {CHARS_MAX} of the characters a-z A-Z 0-9 _ -"),
        ));
    }
    Ok(())
}
