//! Counters and sizes in the files of memory cgroups, by the names under which the model has them.
//!
//! The groups are new when a run begins, and what a group counts begins with 0. Everything is named
//! `cgroup/PATH/FILE.KEY`, or `cgroup/PATH/FILE` where a file holds one number; of the group that a whole workload is in there
//! is no PATH.

use std::collections::BTreeMap;

/// Files of which every line is a counter.
const EVENTS: [&str; 3] = ["memory.events", "memory.events.local", "memory.swap.events"];
/// Events that the model has as well.
const COUNTED: [&str; 5] = ["low", "high", "max", "oom", "fail"];
/// Counters in `memory.stat`; version 1 has the last four and refaults.
const COUNTERS: [&str; 20] = [
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
    "pgfault",
    "pgmajfault",
    "pgpgin",
    "pgpgout",
];
/// What stands before the names of version 1 that count groups inside a group as well, as version 2 does.
const WITH_INNER: &str = "total_";
/// Sizes in `memory.stat`, bytes.
const SIZES: [&str; 4] = [
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
];
/// Files that hold a size, bytes; the last three are of version 1.
const SIZE_FILES: [&str; 5] = [
    "memory.current",
    "memory.swap.current",
    "memory.usage_in_bytes",
    "memory.memsw.usage_in_bytes",
    "memory.max_usage_in_bytes",
];
/// How often a charge met the limit of memory, or that of memory and swap together, in version 1.
const FAILURES: [&str; 2] = ["memory.failcnt", "memory.memsw.failcnt"];

/// Lines of a name and a number.
fn lines(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
}

/// The counters of groups over a run, and the sizes of the groups at the end of the run. `root` is where the snapshot has their files, and each group is
/// named by its path below it.
pub(crate) fn counters_and_state<'a>(
    after: &BTreeMap<String, String>,
    root: &str,
    groups: impl IntoIterator<Item = &'a str>,
) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut counters, mut state) = (BTreeMap::new(), BTreeMap::new());
    for path in groups {
        let inside = if path.is_empty() {
            String::new()
        } else {
            format!("{path}/")
        };
        let text = |file: &str| {
            let found = after.get(&format!("{root}/{inside}{file}"));
            found.map_or("", String::as_str)
        };
        let named = |file: &str, key: &str| format!("cgroup/{inside}{file}.{key}");
        for file in EVENTS {
            let events = lines(text(file)).filter(|(key, _)| COUNTED.contains(key));
            counters.extend(events.map(|(key, count)| (named(file, key), count)));
        }
        let stat = text("memory.stat");
        let is_v1 = lines(stat).any(|(key, _)| key.starts_with(WITH_INNER));
        for (key, value) in lines(stat) {
            let key = match (is_v1, key.strip_prefix(WITH_INNER)) {
                (false, _) => key,
                (true, Some(key)) => key,
                (true, None) => continue,
            };
            if COUNTERS.contains(&key) {
                counters.insert(named("memory.stat", key), value);
            }
            if SIZES.contains(&key) {
                state.insert(named("memory.stat", key), value);
            }
        }
        for file in FAILURES {
            if let Ok(count) = text(file).trim().parse() {
                counters.insert(format!("cgroup/{inside}{file}"), count);
            }
        }
        for file in SIZE_FILES {
            if let Ok(size) = text(file).trim().parse() {
                state.insert(format!("cgroup/{inside}{file}"), size);
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
        let (counters, state) = counters_and_state(&after, "sys/fs/cgroup", ["a", "a/b"]);
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

    #[test]
    fn version_1_counts_groups_inside_under_names_of_their_own() {
        let file = |name: &str, text: &str| (format!("groups/own/{name}"), text.to_owned());
        let after = BTreeMap::from([
            file(
                "memory.stat",
                "inactive_anon 4096\npgfault 3\ntotal_inactive_anon 8192\ntotal_pgfault 5\ntotal_rss 1\n",
            ),
            file("memory.failcnt", "17\n"),
            file("memory.max_usage_in_bytes", "9000\n"),
        ]);
        let (counters, state) = counters_and_state(&after, "groups/own", [""]);
        let pairs = |map: BTreeMap<String, u64>| map.into_iter().collect::<Vec<_>>();
        let named = |(name, value): (&str, u64)| (name.to_owned(), value);
        let expected = [
            ("cgroup/memory.failcnt", 17),
            ("cgroup/memory.stat.pgfault", 5),
        ];
        assert_eq!(pairs(counters), expected.map(named));
        let expected = [
            ("cgroup/memory.max_usage_in_bytes", 9000),
            ("cgroup/memory.stat.inactive_anon", 8192),
        ];
        assert_eq!(pairs(state), expected.map(named));
    }
}
