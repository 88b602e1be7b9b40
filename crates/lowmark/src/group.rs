//! Which recordings stand side by side.
//!
//! 1. Recordings that differ in nothing but the seed are repeats: one column.
//! 2. Kernels are columns, and there is a table for each combination of everything else (workload,
//!    machine, parameters, backend).
//! 3. Where that would leave every table with a single column, what differs is compared instead: one
//!    table, each column named by it.

use lowmark_record::{Recording, RunInfo};
use lowmark_report::ColumnInput;

/// What is said of a run, its seed apart: name and value.
type Facts = Vec<(String, String)>;

/// Recordings to be compared.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// What they have in common.
    pub(crate) title: String,
    /// Columns, the baseline first.
    pub(crate) columns: Vec<ColumnInput<'a>>,
}

/// The fact whose values are columns.
pub(crate) const KERNEL: &str = "kernel";

fn facts(run: &RunInfo) -> Facts {
    let own = [
        ("workload", &run.workload),
        ("machine", &run.machine),
        (KERNEL, &run.kernel),
        ("backend", &run.backend),
        ("lowmark", &run.lowmark),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value.clone()));
    own.into_iter().chain(run.params.iter().cloned()).collect()
}

/// Values of the same keys put together, in the order in which the keys first appear.
fn by_key<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Puts recordings together.
pub(crate) fn groups(recordings: &[Recording]) -> Vec<Group<'_>> {
    let all: Vec<Member<'_>> = recordings.iter().map(|r| (facts(&r.run), r)).collect();
    let differing = differing(&all);
    let rest = |member: &Member<'_>| -> Facts {
        let rest = member.0.iter().filter(|(name, _)| name != KERNEL);
        rest.cloned().collect()
    };
    let tables = by_key(all.iter().map(|member| (rest(member), member)));
    let by_kernel: Vec<Group<'_>> = tables
        .into_iter()
        .map(|(_, members)| group(&members, &differing, |member| member.1.run.kernel.clone()))
        .collect();
    if by_kernel.len() <= 1 || by_kernel.iter().any(|table| table.columns.len() > 1) {
        return by_kernel;
    }
    let members: Vec<&Member<'_>> = all.iter().collect();
    vec![group(&members, &differing, |member| {
        describe(&member.0, |name| {
            differing.iter().any(|known| known == name)
        })
    })]
}

/// Names of what is not the same for all of some recordings, the seed apart.
pub(crate) fn differing_facts(recordings: &[Recording]) -> Vec<String> {
    let all: Vec<Member<'_>> = recordings.iter().map(|r| (facts(&r.run), r)).collect();
    differing(&all)
}

/// What runs have in common besides the `axes` and their seeds: workload, parameters, machine, and the kernel unless kernels
/// are compared.
pub(crate) fn in_common(recordings: &[Recording], axes: &[String], compared: bool) -> String {
    let all: Vec<Facts> = recordings.iter().map(|r| facts(&r.run)).collect();
    let first = all.first().map_or(&[][..], Vec::as_slice);
    let common: Facts = (first.iter())
        .filter(|fact| !axes.contains(&fact.0) && all.iter().all(|facts| facts.contains(fact)))
        .cloned()
        .collect();
    let told = |names: &[&str]| describe(&common, |name| names.contains(&name));
    let params =
        |name: &str| !["workload", "machine", KERNEL, "backend", "lowmark"].contains(&name);
    let parts = [
        told(&["workload"]),
        describe(&common, params),
        told(&["machine"]),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    match told(&[KERNEL]).as_str() {
        kernel if !compared && !kernel.is_empty() => format!("{}, {kernel}", parts.join(" ")),
        _ => parts.join(" "),
    }
}

/// Recordings that have the same value of each of these facts, in the order in which they first appear.
pub(crate) fn along<'a>(
    recordings: &'a [Recording],
    names: &[String],
) -> Vec<(Vec<String>, Vec<&'a Recording>)> {
    let values = |recording: &Recording| -> Vec<String> {
        let facts = facts(&recording.run);
        let value = |name: &String| facts.iter().find(|(known, _)| known == name);
        let values = names.iter().map(value);
        values
            .map(|fact| fact.map_or(String::new(), |(_, value)| value.clone()))
            .collect()
    };
    by_key(recordings.iter().map(|it| (values(it), it)))
}

/// A column for each kernel.
pub(crate) fn by_kernel<'a>(recordings: &[&'a Recording]) -> Vec<ColumnInput<'a>> {
    let kernels = by_key(recordings.iter().map(|it| (it.run.kernel.clone(), *it)));
    kernels
        .into_iter()
        .map(|(name, recordings)| ColumnInput { name, recordings })
        .collect()
}

/// A recording with what is said of it.
type Member<'a> = (Facts, &'a Recording);

fn group<'a>(
    members: &[&Member<'a>],
    differing: &[String],
    column: impl Fn(&Member<'a>) -> String,
) -> Group<'a> {
    let common = |(name, value): &&(String, String)| {
        let same = |member: &&Member<'_>| member.0.iter().any(|(n, v)| n == name && v == value);
        members.iter().all(same)
    };
    let told = |name: &str| match name {
        KERNEL => false,
        // Mostly the same for all, and then not worth a word.
        "backend" | "lowmark" => differing.iter().any(|known| known == name),
        _ => true,
    };
    let first = members.first().map_or(&[][..], |member| &member.0);
    let common: Facts = first.iter().filter(common).cloned().collect();
    let columns = by_key(members.iter().map(|member| (column(member), member.1)));
    Group {
        title: describe(&common, told),
        columns: columns
            .into_iter()
            .map(|(name, recordings)| ColumnInput { name, recordings })
            .collect(),
    }
}

/// Names of the facts that are not the same for all.
fn differing(all: &[Member<'_>]) -> Vec<String> {
    let facts = all.iter().flat_map(|(facts, _)| facts);
    let names = by_key(facts.map(|(name, value)| (name.clone(), value.as_str())));
    let differs =
        |values: &[&str]| values.len() < all.len() || values.iter().any(|v| *v != values[0]);
    let names = names.into_iter().filter(|(_, values)| differs(values));
    names.map(|(name, _)| name).collect()
}

/// Facts in words: those of the run by their value, parameters as `name=value`.
fn describe(facts: &[(String, String)], told: impl Fn(&str) -> bool) -> String {
    let told = facts.iter().filter(|(name, _)| told(name));
    let words = told.map(|(name, value)| match name.as_str() {
        "workload" | KERNEL => value.clone(),
        "machine" => format!("on {value}"),
        "lowmark" => format!("lowmark {value}"),
        "backend" => format!("by {value}"),
        _ => format!("{name}={value}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(kernel: &str, order: &str, seed: u64) -> Recording {
        let mut scenario = lowmark_model::example_scenario();
        scenario.kernel.text = kernel.into();
        scenario.params = vec![("order".into(), order.into())];
        scenario.seed = seed;
        lowmark_model::run(&scenario, &Default::default(), &mut |_| {}).expect("it runs")
    }

    fn shape(recordings: &[Recording]) -> Vec<(String, Vec<(String, usize)>)> {
        let shape = groups(recordings).into_iter().map(|group| {
            let columns = group.columns.into_iter();
            (
                group.title,
                columns.map(|c| (c.name, c.recordings.len())).collect(),
            )
        });
        shape.collect()
    }

    fn columns(columns: &[(&str, usize)]) -> Vec<(String, usize)> {
        columns
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    #[test]
    fn kernels_are_columns_and_seeds_are_repeats() {
        let recordings = [("seq", 0), ("seq", 1), ("random", 0)]
            .map(|(order, seed)| ["v3.6", "v3.14"].map(|kernel| recording(kernel, order, seed)));
        assert_eq!(
            shape(&recordings.concat()),
            [
                (
                    "example on small order=seq".to_owned(),
                    columns(&[("v3.6", 2), ("v3.14", 2)])
                ),
                (
                    "example on small order=random".to_owned(),
                    columns(&[("v3.6", 1), ("v3.14", 1)])
                ),
            ]
        );
    }

    #[test]
    fn without_kernels_to_compare_it_is_what_differs() {
        let same = [recording("v3.6", "seq", 0), recording("v3.6", "random", 0)];
        let title = "example on small".to_owned();
        assert_eq!(
            shape(&same),
            [(
                title.clone(),
                columns(&[("order=seq", 1), ("order=random", 1)])
            )]
        );
        let both = [recording("v3.6", "seq", 0), recording("v3.14", "random", 0)];
        let named = columns(&[("v3.6 order=seq", 1), ("v3.14 order=random", 1)]);
        assert_eq!(shape(&both), [(title, named)]);
    }

    #[test]
    fn one_run_is_one_column() {
        let alone = [recording("v3.6", "seq", 3)];
        let title = "example on small order=seq".to_owned();
        assert_eq!(shape(&alone), [(title, columns(&[("v3.6", 1)]))]);
        assert!(shape(&[]).is_empty());
    }
}
