//! Several values in place of one: ranges and lists, in `--set` and in kernels.
//!
//! * `[256M, 512M]` is a list, of anything.
//! * `0..5` is a range with both ends, `0..100/20` one in steps of 20, `128M..512M/128M` one of sizes. Without a step it
//!   goes by one, or by one of the unit that both ends have.
//! * In a kernel each value may be one: `v6.1,swappiness=0..100/20`, `v3.6+swapin_readahead=[vanilla,hugh-new]`.
//!
//! Only what begins with a digit and has two points is taken for a range, so that texts such as `../file` stay what they
//! are.

use super::error::{Problem, Result, SpecError};
use super::exact::Ratio;
use super::expr;
use super::finish;
use super::source::Span;
use super::tree::shorten;
use std::cmp::Ordering;
use std::ops::Range;

/// Values of one range or list, and kernels of one text, at most.
const VALUES_MAX: usize = 1000;

const HELP: &str = "write a range with both ends, 0..5, or with a step, 0..100/20 or 128M..512M/128M, or a list, [a,b,c]";

/// The values that `--set NAME=TEXT` stands for: one, unless it is a range or a list.
///
/// # Errors
///
/// [`SpecError`] with the place of what is no range or no list.
pub fn sweep_setting(name: &str, text: &str) -> std::result::Result<Vec<String>, SpecError> {
    finish(|sources, _| {
        let whole = format!("{name}={text}");
        let span = sources.add("--set", name, &whole);
        let reader = Reader {
            text: &whole,
            source: span.source,
        };
        reader.values(name.len() + 1..whole.len())
    })
}

/// The kernels that a text stands for: one, unless a value in it is a range or a list.
///
/// # Errors
///
/// [`SpecError`] with the place of what is no range or no list.
pub fn sweep_kernel(text: &str) -> std::result::Result<Vec<String>, SpecError> {
    finish(|sources, _| {
        let span = sources.add("--kernel", "kernel.use", text);
        let reader = Reader {
            text,
            source: span.source,
        };
        let mut kernels = vec![String::new()];
        let mut written = 0;
        for value in values_of_kernel(text) {
            let values = reader.values(value.clone())?;
            if kernels.len().saturating_mul(values.len()) > VALUES_MAX {
                return Err(reader.wrong(value, "at most 1000 kernels", "use a larger step"));
            }
            let before = &text[written..value.start];
            let each = kernels.iter();
            kernels = each
                .flat_map(|kernel| values.iter().map(move |it| format!("{kernel}{before}{it}")))
                .collect();
            written = value.end;
        }
        let rest = &text[written..];
        Ok(kernels.into_iter().map(|kernel| kernel + rest).collect())
    })
}

/// Where values stand in a kernel: from a `=` to the next comma or plus that is not in brackets.
fn values_of_kernel(text: &str) -> Vec<Range<usize>> {
    let mut values = Vec::new();
    let (mut start, mut depth) = (None, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'=' if start.is_none() => start = Some(at + 1),
            b',' | b'+' if depth == 0 => values.extend(start.take().map(|start| start..at)),
            _ => {}
        }
    }
    values.extend(start.map(|start| start..text.len()));
    values
}

/// Reads values, and knows where they stand.
struct Reader<'t> {
    text: &'t str,
    source: u32,
}

/// A number with its unit.
struct Literal<'t> {
    value: Ratio,
    unit: &'t str,
    /// What the unit measures in its smallest one.
    scale: Ratio,
    measures: Option<super::exact::Unit>,
}

impl<'t> Reader<'t> {
    fn wrong(&self, range: Range<usize>, expected: &str, help: &str) -> Problem {
        let found = shorten(&self.text[range.clone()]);
        let span = Span::new(self.source, range);
        Problem::new(
            span,
            format!("expected {expected}, found \"{found}\""),
            help,
        )
    }

    fn values(&self, range: Range<usize>) -> Result<Vec<String>> {
        let text = &self.text[range.clone()];
        if text.starts_with('[') {
            return self.list(range);
        }
        match text.find("..") {
            Some(at) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                self.range(range.clone(), range.start + at)
            }
            _ => Ok(vec![text.to_owned()]),
        }
    }

    fn list(&self, range: Range<usize>) -> Result<Vec<String>> {
        let text = &self.text[range.clone()];
        let Some(inner) = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')) else {
            return Err(self.wrong(range, "a list that ends with `]`", HELP));
        };
        let mut values: Vec<String> = Vec::new();
        let mut start = range.start + 1;
        for part in inner.split(',') {
            let place = start..start + part.len();
            start = place.end + 1;
            let value = part.trim().trim_matches('"');
            if value.is_empty() {
                let whole = if part.is_empty() {
                    range.clone()
                } else {
                    place
                };
                return Err(self.wrong(whole, "a value between the commas of a list", HELP));
            }
            if values.iter().any(|known| known == value) {
                return Err(self.wrong(place, "each value once", "leave one of them out"));
            }
            values.push(value.to_owned());
        }
        if values.len() > VALUES_MAX {
            Err(self.wrong(range, "at most 1000 values", "shorten the list"))
        } else {
            Ok(values)
        }
    }

    /// A range whose two points stand at `dots`.
    fn range(&self, range: Range<usize>, dots: usize) -> Result<Vec<String>> {
        let slash = self.text[dots..range.end].find('/').map(|at| dots + at);
        let last_end = slash.unwrap_or(range.end);
        let first = self.literal(range.start..dots)?;
        let last_place = dots + 2..last_end;
        let last = self.literal(last_place.clone())?;
        let (step, step_place) = match slash {
            Some(slash) => (self.literal(slash + 1..range.end)?, slash + 1..range.end),
            None if first.unit == last.unit => (
                Literal {
                    value: first.scale,
                    ..self.literal(range.start..dots)?
                },
                range.clone(),
            ),
            None => return Err(self.wrong(range, "a step, as both ends have other units", HELP)),
        };
        for (other, place) in [(&last, last_place.clone()), (&step, step_place.clone())] {
            if other.measures != first.measures {
                return Err(self.wrong(
                    place,
                    "the same measure as at the start of the range",
                    HELP,
                ));
            }
        }
        if step.value.is_zero() {
            return Err(self.wrong(step_place, "a step above zero", HELP));
        }
        if last.value.compare(first.value) != Some(Ordering::Greater) {
            return Err(self.wrong(last_place, "an end above the start of the range", HELP));
        }
        let too_many = || self.wrong(range.clone(), "at most 1000 values", "use a larger step");
        let mut values = Vec::new();
        let mut value = first.value;
        while value.compare(last.value) != Some(Ordering::Greater) {
            if values.len() == VALUES_MAX {
                return Err(too_many());
            }
            let scaled = first.scale.inverse().and_then(|it| value.times(it));
            let text = scaled.ok_or_else(too_many)?.to_string();
            if text.contains('/') {
                let expected = format!("a step that is a decimal part of one {}", first.unit);
                return Err(self.wrong(step_place, &expected, HELP));
            }
            values.push(text + first.unit);
            value = value.plus(step.value).ok_or_else(too_many)?;
        }
        Ok(values)
    }

    fn literal(&self, range: Range<usize>) -> Result<Literal<'t>> {
        let text = self.text[range.clone()].trim();
        let digit = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
        let split = text.find(|c| !digit(c)).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let wrong = || self.wrong(range.clone(), "a number, or one with its unit", HELP);
        let number = Ratio::decimal(number).ok_or_else(wrong)?;
        let quantity = match unit {
            "" => None,
            unit => Some(expr::unit(unit).ok_or_else(wrong)?),
        };
        let scale = quantity.map_or(Ratio::whole(1), |it| it.value);
        Ok(Literal {
            value: number.times(scale).ok_or_else(wrong)?,
            unit,
            scale,
            measures: quantity.map(|it| it.unit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        sweep_setting("x", text).expect("values")
    }

    fn error(text: &str) -> String {
        let error = sweep_setting("x", text).expect_err("no values");
        error.to_string()
    }

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(values("0..5"), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(values("0..100/40"), ["0", "40", "80"]);
        assert_eq!(values("0.5..1/0.25"), ["0.5", "0.75", "1"]);
        assert_eq!(values("1M..3M"), ["1M", "2M", "3M"]);
        assert_eq!(values("512M..1G/256M"), ["512M", "768M", "1024M"]);
        assert_eq!(values("5ms..15ms/5ms"), ["5ms", "10ms", "15ms"]);
    }

    #[test]
    fn lists_hold_anything() {
        assert_eq!(values("[256M,512M]"), ["256M", "512M"]);
        assert_eq!(values("[ seq, \"random\" ]"), ["seq", "random"]);
        assert_eq!(values("[7]"), ["7"]);
    }

    #[test]
    fn other_texts_are_what_they_are() {
        for text in ["5", "0.2*RAM", "../file", "zipf(0.99)", "", "a..b"] {
            assert_eq!(values(text), [text]);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, column, said) in [
            ("0..x", 6, "a number, or one with its unit, found \"x\""),
            ("0..", 6, "a number, or one with its unit, found \"\""),
            ("5..0", 6, "an end above the start of the range"),
            ("3..3", 6, "an end above the start of the range"),
            ("0..9/0", 8, "a step above zero"),
            ("0..9M", 3, "a step, as both ends have other units"),
            (
                "0..9M/1",
                6,
                "the same measure as at the start of the range",
            ),
            ("1M..9M/1s", 10, "the same measure"),
            ("0..1000000", 3, "at most 1000 values"),
            ("1G..2G/333333B", 10, "a decimal part of one G"),
            ("[1,2", 3, "a list that ends with `]`"),
            ("[1,,2]", 3, "a value between the commas"),
            ("[1, ,2]", 6, "a value between the commas"),
            ("[1,2,1]", 8, "each value once"),
        ] {
            let error = error(text);
            let place = format!("--set:1:{column}: ");
            assert!(
                error.starts_with(&place) && error.contains(said),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn kernels_are_swept_at_any_value() {
        let kernels = |text| sweep_kernel(text).expect("kernels");
        assert_eq!(kernels("v6.1-eevdf"), ["v6.1-eevdf"]);
        assert_eq!(
            kernels("v6.1,swappiness=0..100/50,page_cluster=[0,3],-eevdf"),
            [
                "v6.1,swappiness=0,page_cluster=0,-eevdf",
                "v6.1,swappiness=0,page_cluster=3,-eevdf",
                "v6.1,swappiness=50,page_cluster=0,-eevdf",
                "v6.1,swappiness=50,page_cluster=3,-eevdf",
                "v6.1,swappiness=100,page_cluster=0,-eevdf",
                "v6.1,swappiness=100,page_cluster=3,-eevdf",
            ]
        );
        assert_eq!(
            kernels("v3.6+swapin_readahead=[vanilla,hugh-new]+x"),
            [
                "v3.6+swapin_readahead=vanilla+x",
                "v3.6+swapin_readahead=hugh-new+x"
            ]
        );
        let error = sweep_kernel("v6.1,swappiness=0..1x")
            .expect_err("no kernels")
            .to_string();
        assert!(error.starts_with("--kernel:1:20: "), "{error}");
        assert!(sweep_kernel("v6.1,a=0..99,b=0..99").is_err());
    }
}
