//! What the files of a workload's memory cgroups say, by the names that the model has for it.
//!
//! The groups are new when a run begins, and what a group counts begins with 0. Everything is named
//! `cgroup/PATH/FILE.KEY`, or `cgroup/PATH/FILE` where a file holds one number.

use lowmark_spec::workload::Cgroup;
use std::collections::BTreeMap;

/// Files of which every line is a counter.
const EVENTS: [&str; 3] = ["memory.events", "memory.events.local", "memory.swap.events"];
/// Events that the model has as well.
const COUNTED: [&str; 5] = ["low", "high", "max", "oom", "fail"];
/// Counters in `memory.stat`.
const COUNTERS: [&str; 16] = [
    "pgscan",
    "pgsteal",
    "pgscan_kswapd",
    "pgsteal_kswapd",
    "pgscan_direct",
    "pgsteal_direct",
    "pgscan_proactive",
    "pgsteal_proactive",
    "pgrefill",
    "pgdeactivate",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
];
/// Sizes in `memory.stat`, bytes.
const SIZES: [&str; 4] = [
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
];
/// Files that hold a size, bytes.
const SIZE_FILES: [&str; 2] = ["memory.current", "memory.swap.current"];

/// Lines of a name and a number.
fn lines(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
}

/// Counters of the groups over a run, and what they have at its end; `root` is where the snapshot has their files.
pub(super) fn counters_and_state(
    after: &BTreeMap<String, String>,
    root: &str,
    groups: &[Cgroup],
) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut counters, mut state) = (BTreeMap::new(), BTreeMap::new());
    for Cgroup { path, .. } in groups {
        let text = |file: &str| {
            let found = after.get(&format!("{root}/{path}/{file}"));
            found.map_or("", String::as_str)
        };
        let named = |file: &str, key: &str| format!("cgroup/{path}/{file}.{key}");
        for file in EVENTS {
            let events = lines(text(file)).filter(|(key, _)| COUNTED.contains(key));
            counters.extend(events.map(|(key, count)| (named(file, key), count)));
        }
        for (key, value) in lines(text("memory.stat")) {
            if COUNTERS.contains(&key) {
                counters.insert(named("memory.stat", key), value);
            }
            if SIZES.contains(&key) {
                state.insert(named("memory.stat", key), value);
            }
        }
        for file in SIZE_FILES {
            if let Ok(size) = text(file).trim().parse() {
                state.insert(format!("cgroup/{path}/{file}"), size);
            }
        }
    }
    (counters, state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_groups_inside_groups_are_named_by_their_paths() {
        let file = |path: &str, text: &str| (format!("sys/fs/cgroup/{path}"), text.to_owned());
        let after = BTreeMap::from([
            file(
                "a/memory.events",
                "low 3\nhigh 0\nmax 7\noom 0\noom_kill 0\n",
            ),
            file("a/b/memory.events.local", "low 2\nhigh 0\n"),
            file(
                "a/b/memory.stat",
                "anon 4096\ninactive_anon 8192\npgscan 12\npgscan_proactive 5\n",
            ),
            file("a/b/memory.current", "123\n"),
            file("other/memory.current", "7\n"),
        ]);
        let group = |path: &str| Cgroup {
            path: path.into(),
            ..Cgroup::default()
        };
        let groups = [group("a"), group("a/b")];
        let (counters, state) = counters_and_state(&after, "sys/fs/cgroup", &groups);
        let pairs = |map: BTreeMap<String, u64>| map.into_iter().collect::<Vec<_>>();
        let expected = [
            ("cgroup/a/b/memory.events.local.high", 0),
            ("cgroup/a/b/memory.events.local.low", 2),
            ("cgroup/a/b/memory.stat.pgscan", 12),
            ("cgroup/a/b/memory.stat.pgscan_proactive", 5),
            ("cgroup/a/memory.events.high", 0),
            ("cgroup/a/memory.events.low", 3),
            ("cgroup/a/memory.events.max", 7),
            ("cgroup/a/memory.events.oom", 0),
        ];
        assert_eq!(
            pairs(counters),
            expected.map(|(name, value)| (name.to_owned(), value))
        );
        let expected = [
            ("cgroup/a/b/memory.current", 123),
            ("cgroup/a/b/memory.stat.inactive_anon", 8192),
        ];
        assert_eq!(
            pairs(state),
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }
}
