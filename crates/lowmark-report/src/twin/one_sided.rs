//! Counters that moved on one side only: all of `/proc/vmstat` that both have, and what one of them lacks.

use lowmark_record::Recording;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Why a counter moved on one side only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It is 0 in all runs of the kernel.
    KernelZero,
    /// It is 0 in all runs of the model.
    ModelZero,
    /// The kernel has no counter of this name.
    KernelLacks,
    /// The model has no counter of this name.
    ModelLacks,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::KernelZero => "0 in the kernel",
            Why::ModelZero => "0 in the model",
            Why::KernelLacks => "not in the kernel",
            Why::ModelLacks => "not in the model",
        })
    }
}

/// A counter that moved on one side only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OneSided {
    /// Name as in `/proc/vmstat`.
    pub name: String,
    /// What the other side has.
    pub why: Why,
    /// The greatest value of the side on which it moved.
    pub most: u64,
}

/// Over several loads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OneSidedOverAll {
    /// Name as in `/proc/vmstat`.
    pub name: String,
    /// What the other side has.
    pub why: Why,
    /// Loads in which it is so.
    pub loads: usize,
    /// The greatest value of the side on which it moved.
    pub most: u64,
    /// The load that has it.
    pub load: String,
}

/// The greatest value of each counter of `/proc/vmstat`. What the model counts of its own, and devices, have a `/`.
fn greatest<'a>(runs: &[&'a Recording]) -> BTreeMap<&'a str, u64> {
    let mut greatest = BTreeMap::new();
    for (name, value) in runs.iter().flat_map(|run| &run.counters) {
        if !name.contains('/') {
            let most = greatest.entry(name.as_str()).or_insert(0);
            *most = (*most).max(*value);
        }
    }
    greatest
}

/// The counters that moved on one side only, by name.
pub(super) fn one_sided(kernel: &[&Recording], model: &[&Recording]) -> Vec<OneSided> {
    let (kernel, model) = (greatest(kernel), greatest(model));
    let names: BTreeSet<&str> = kernel.keys().chain(model.keys()).copied().collect();
    let found = names.into_iter().filter_map(|name| {
        let (why, most) = match (kernel.get(name).copied(), model.get(name).copied()) {
            (Some(0), Some(most)) if most > 0 => (Why::KernelZero, most),
            (Some(most), Some(0)) if most > 0 => (Why::ModelZero, most),
            (None, Some(most)) if most > 0 => (Why::KernelLacks, most),
            (Some(most), None) if most > 0 => (Why::ModelLacks, most),
            _ => return None,
        };
        Some(OneSided {
            name: name.to_owned(),
            why,
            most,
        })
    });
    found.collect()
}

/// The same over loads with their titles: those that are 0 first, then what is lacking; of each the most frequent first.
pub fn over_all<'a>(
    loads: impl IntoIterator<Item = (String, &'a [OneSided])>,
) -> Vec<OneSidedOverAll> {
    let mut found: BTreeMap<(Why, &str), OneSidedOverAll> = BTreeMap::new();
    for (title, counters) in loads {
        for counter in counters {
            let entry = found
                .entry((counter.why, &counter.name))
                .or_insert_with(|| OneSidedOverAll {
                    name: counter.name.clone(),
                    why: counter.why,
                    loads: 0,
                    most: 0,
                    load: String::new(),
                });
            entry.loads += 1;
            if counter.most > entry.most {
                (entry.most, entry.load) = (counter.most, title.clone());
            }
        }
    }
    let mut found: Vec<OneSidedOverAll> = found.into_values().collect();
    // Stable: by name within.
    found.sort_by_key(|counter| (counter.why, std::cmp::Reverse(counter.loads)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(counters: &[(&str, u64)]) -> Recording {
        let counters = counters.iter().map(|(name, n)| ((*name).to_owned(), *n));
        crate::comparison::recording_of(counters.collect())
    }

    #[test]
    fn what_moved_on_one_side_only_is_named_with_the_reason() {
        let kernel = [
            run(&[
                ("both", 1),
                ("model_only", 0),
                ("kernel_only", 0),
                ("slab", 9),
                ("none", 0),
            ]),
            run(&[
                ("both", 0),
                ("model_only", 0),
                ("kernel_only", 4),
                ("slab", 3),
                ("none", 0),
            ]),
        ];
        let model = [run(&[
            ("both", 7),
            ("model_only", 5),
            ("kernel_only", 0),
            ("sda/reads", 3),
            ("extra", 2),
            ("none", 0),
        ])];
        let kernel: Vec<&Recording> = kernel.iter().collect();
        let model: Vec<&Recording> = model.iter().collect();
        let found = one_sided(&kernel, &model);
        let found_is: Vec<(&str, Why, u64)> = found
            .iter()
            .map(|it| (it.name.as_str(), it.why, it.most))
            .collect();
        assert_eq!(
            found_is,
            [
                ("extra", Why::KernelLacks, 2),
                ("kernel_only", Why::ModelZero, 4),
                ("model_only", Why::KernelZero, 5),
                ("slab", Why::ModelLacks, 9),
            ]
        );
        let all = over_all([("a".to_owned(), &found[..]), ("b".to_owned(), &found[1..2])]);
        let first = &all[0];
        assert_eq!((first.why, first.loads), (Why::KernelZero, 1));
        let second = &all[1];
        assert_eq!(
            (second.name.as_str(), second.loads, second.load.as_str()),
            ("kernel_only", 2, "a")
        );
    }
}
