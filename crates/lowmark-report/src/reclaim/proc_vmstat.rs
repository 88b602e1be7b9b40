//! The change of `/proc/vmstat` over a trace.

use crate::vmstat::{self, VmstatRow};
use std::collections::BTreeMap;

/// A text that is not one of counters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VmstatError {
    /// A line has not the expected form.
    #[error("line {line}: `{text}`; expected {expected}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Its beginning.
        text: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// No counter at all.
    #[error("no counters; expected the content of /proc/vmstat, a name and a number a line")]
    Empty,
}

/// How each counter changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VmstatChange {
    /// Those that grew or stayed, by name.
    pub counters: BTreeMap<String, u64>,
    /// Those that became smaller, by name: of what is counted only, as the kernel was booted anew or the
    /// texts are in the wrong order; levels (`nr_free_pages`) may.
    pub fell: Vec<String>,
}

/// Characters of a line that an error shows.
const SHOWN: usize = 60;

fn wrong(line: usize, text: &str, expected: &'static str) -> VmstatError {
    VmstatError::Line {
        line: line + 1,
        text: text.chars().take(SHOWN).collect(),
        expected,
    }
}

fn counters(text: &str) -> Result<BTreeMap<&str, i128>, VmstatError> {
    let mut counters = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut words = line.split_ascii_whitespace();
        let value = |word: &str| word.parse::<u64>().ok().map(i128::from);
        let (name, value) = (words.next(), words.next().and_then(value));
        let (Some(name), Some(value), None) = (name, value, words.next()) else {
            return Err(wrong(number, line, "a name and a number"));
        };
        counters.insert(name, value);
    }
    if counters.is_empty() {
        return Err(VmstatError::Empty);
    }
    Ok(counters)
}

impl VmstatChange {
    /// The change from one text of `/proc/vmstat` to a later one; counters that only one of them has are
    /// left out.
    ///
    /// # Errors
    ///
    /// The line that is not a name and a number, or that there is none.
    pub fn between(before: &str, after: &str) -> Result<VmstatChange, VmstatError> {
        let (before, after) = (counters(before)?, counters(after)?);
        let both = after
            .iter()
            .filter_map(|(name, value)| Some((*name, value - before.get(name)?)));
        Ok(VmstatChange::of(both))
    }

    /// The change as a table has it: name, before, after, change.
    ///
    /// # Errors
    ///
    /// The line that is not a name and three numbers of which the last is the change, or that there is none.
    pub fn from_table(text: &str) -> Result<VmstatChange, VmstatError> {
        let mut changes: BTreeMap<&str, i128> = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let value = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
            let change = words.get(3).and_then(|word| word.parse::<i128>().ok());
            let expected = "a name, its value before and after, and the change";
            let (Some(before), Some(after), Some(change), 4) =
                (value(1), value(2), change, words.len())
            else {
                return Err(wrong(number, line, expected));
            };
            if i128::from(after) - i128::from(before) != change {
                return Err(wrong(number, line, expected));
            }
            changes.insert(words[0], change);
        }
        if changes.is_empty() {
            return Err(VmstatError::Empty);
        }
        Ok(VmstatChange::of(changes.into_iter()))
    }

    fn of<'a>(changes: impl Iterator<Item = (&'a str, i128)>) -> VmstatChange {
        let mut change = VmstatChange::default();
        for (name, delta) in changes {
            match u64::try_from(delta) {
                Ok(delta) => {
                    change.counters.insert(name.to_owned(), delta);
                }
                Err(_) => change.fell.push(name.to_owned()),
            }
        }
        change
    }

    /// The rows of mmtests; those that need the elapsed time only if it is known.
    pub fn rows(&self, elapsed_s: Option<f64>) -> Vec<VmstatRow> {
        vmstat::rows(&self.counters, elapsed_s.unwrap_or(0.0))
    }

    /// The value of one of these rows.
    pub fn row(&self, name: &str) -> Option<f64> {
        let row = self.rows(None).into_iter().find(|row| row.name == name);
        row.map(|row| row.value)
    }

    /// Sum of the counters of these names, if there is any.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        let values = names.iter().filter_map(|name| self.counters.get(*name));
        values.copied().reduce(u64::saturating_add)
    }

    /// Sum of the counters whose names begin so, if there is any.
    pub fn sum_of_all(&self, prefix: &str) -> Option<u64> {
        let all = self
            .counters
            .iter()
            .filter(|(name, _)| name.starts_with(prefix));
        all.map(|(_, value)| *value).reduce(u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts() {
        let before = "nr_free_pages 10\npgfault 5\npgscan_direct 7\nold 1\n";
        let after = "nr_free_pages 4\npgfault 9\npgscan_direct 7\nnew 1\n";
        let change = VmstatChange::between(before, after).expect("valid");
        let expected = [("pgfault".to_owned(), 4), ("pgscan_direct".to_owned(), 0)];
        assert_eq!(change.counters, BTreeMap::from(expected));
        assert_eq!(change.fell, ["nr_free_pages"]);
    }

    #[test]
    fn a_table() {
        let text = "# counter before after delta\npswpin 10 30 20\nnr_free_pages 5 3 -2\n";
        let change = VmstatChange::from_table(text).expect("valid");
        assert_eq!(change.sum(&["pswpin", "absent"]), Some(20));
        assert_eq!(change.row("Swap Ins"), Some(20.0));
        assert_eq!(change.fell, ["nr_free_pages"]);
    }

    #[test]
    fn errors_name_the_line() {
        let error = VmstatChange::between("a 1\nb x\n", "a 1").expect_err("no number");
        let said = "line 2: `b x`; expected a name and a number";
        assert_eq!(error.to_string(), said);
        assert_eq!(VmstatChange::between("", "a 1"), Err(VmstatError::Empty));
        for wrong in ["a 1 2 3\n", "a 1 2\n", "a 1 2 1 1\n", "a b c d\n"] {
            let error = VmstatChange::from_table(wrong).expect_err("no change");
            assert!(error.to_string().starts_with("line 1: "), "{error}");
        }
    }
}
