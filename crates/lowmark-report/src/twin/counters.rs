//! The counters that are compared, by the names of kernels of today.

use crate::vmstat::Deltas;
use lowmark_record::Recording;
use std::collections::BTreeMap;

/// Where a metric comes from: the first of these sums of which a counter exists. `name` stands for itself
/// and `name_<zone>`.
pub(super) struct Definition {
    pub(super) name: &'static str,
    sums: &'static [&'static [&'static str]],
}

const fn sum(name: &'static str, sums: &'static [&'static [&'static str]]) -> Definition {
    Definition { name, sums }
}

macro_rules! counters {
    ($($name:literal),* $(,)?) => { [$(sum($name, &[&[$name]])),*] };
}

/// Reclaim, swap, faults. `pgscan_anon` and so on (5.8) count every reclaim, that of memory cgroups too.
const RECLAIM: [Definition; 18] = [
    sum(
        "pgscan",
        &[
            &["pgscan_anon", "pgscan_file"],
            &["pgscan_kswapd", "pgscan_direct"],
        ],
    ),
    sum("pgscan_kswapd", &[&["pgscan_kswapd"]]),
    sum("pgscan_direct", &[&["pgscan_direct"]]),
    sum(
        "pgsteal",
        &[
            &["pgsteal_anon", "pgsteal_file"],
            &["pgsteal_kswapd", "pgsteal_direct"],
        ],
    ),
    sum("pgsteal_kswapd", &[&["pgsteal_kswapd"]]),
    sum("pgsteal_direct", &[&["pgsteal_direct"]]),
    sum("pswpin", &[&["pswpin"]]),
    sum("pswpout", &[&["pswpout"]]),
    // Pages of zones that were not asked for: they are in pgscan, too.
    sum("pgskip", &[&["pgskip"]]),
    sum("pgmajfault", &[&["pgmajfault"]]),
    sum("allocstall", &[&["allocstall"]]),
    sum("workingset_refault_anon", &[&["workingset_refault_anon"]]),
    sum(
        "workingset_refault_file",
        &[&["workingset_refault_file"], &["workingset_refault"]],
    ),
    sum("pgactivate", &[&["pgactivate"]]),
    sum("pgdeactivate", &[&["pgdeactivate"]]),
    // Generations of pages that were made.
    sum("lru_gen/max_seq", &[&["lru_gen/max_seq"]]),
    sum("swap_ra", &[&["swap_ra"]]),
    sum("swap_ra_hit", &[&["swap_ra_hit"]]),
];

/// What reclaim has beside it: compaction, migration, huge pages, shrinkers, writeback, dropped caches.
const BESIDE: [Definition; 28] = counters![
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_daemon_wake",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "pgmigrate_success",
    "pgmigrate_fail",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_file_alloc",
    "thp_file_mapped",
    "thp_split_page",
    "thp_deferred_split_page",
    "thp_split_pmd",
    "thp_swpout",
    "slabs_scanned",
    "pginodesteal",
    "kswapd_inodesteal",
    "nr_dirtied",
    "nr_written",
    "drop_pagecache",
    "drop_slab",
];

/// All of them, in the order in which they are printed.
pub(super) fn all() -> impl Iterator<Item = &'static Definition> {
    RECLAIM.iter().chain(&BESIDE)
}

/// What begins the names of a memory cgroup's counters and sizes.
const CGROUP: &str = "cgroup/";

/// Counters and sizes of the memory cgroups of a run. What is a group's own is left out: it is in that of the groups
/// above.
pub(super) fn of_groups(run: &Recording) -> impl Iterator<Item = &str> {
    let sizes = run.state.keys();
    let sizes = sizes.filter(|name| name.ends_with("/memory.current"));
    let names = run.counters.keys().chain(sizes).map(String::as_str);
    names.filter(|name| name.starts_with(CGROUP) && !name.contains(".local."))
}

/// What a run has of one of them.
pub(super) fn group_value(name: &str, run: &Recording) -> Option<u64> {
    let counter = run.counters.get(name);
    counter.or_else(|| run.state.get(name)).copied()
}

/// The name of a metric without the group.
pub(super) fn own_name(metric: &str) -> &str {
    if metric.starts_with(CGROUP) {
        metric.rsplit('/').next().unwrap_or(metric)
    } else {
        metric
    }
}

impl Definition {
    /// The value of a run; none if it has no such counter.
    pub(super) fn value(&self, counters: &BTreeMap<String, u64>) -> Option<u64> {
        let deltas = Deltas::new(counters);
        self.sums.iter().find_map(|sum| {
            let parts = sum.iter().filter_map(|name| deltas.zones(name));
            parts.reduce(u64::saturating_add)
        })
    }
}
