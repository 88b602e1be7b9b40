//! `/proc/vmstat`.

use crate::kernel::{Kernel, Version, v};
use crate::mm::types::{ByZone, ZoneType};
use std::collections::BTreeMap;

macro_rules! counters {
    ($( $(#[$doc:meta])* $field:ident )*) => {
        /// Event counters (`enum vm_event_item`), summed over CPUs and zones.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub(crate) struct VmStat { $( $(#[$doc])* pub(crate) $field: u64, )*
            /// pgalloc_*, by zone type
            pub(crate) pgalloc: ByZone,
            /// allocstall_*: direct reclaims by the highest zone type that the allocation could use
            pub(crate) allocstall: ByZone,
            /// pgskip_*: pages set aside because their zone is above the one asked for
            pub(crate) pgskip: ByZone,
            /// pgrefill: active pages scanned, by the zone type of the lists; of a node's lists that of its highest zone
            pub(crate) pgrefill: ByZone,
            /// pgscan_kswapd: inactive pages scanned by kswapd, by zone type as pgrefill
            pub(crate) pgscan_kswapd: ByZone,
            /// pgscan_direct: inactive pages scanned by direct reclaim
            pub(crate) pgscan_direct: ByZone,
            /// pgsteal_kswapd: pages reclaimed by kswapd
            pub(crate) pgsteal_kswapd: ByZone,
            /// pgsteal_direct: pages reclaimed by direct reclaim
            pub(crate) pgsteal_direct: ByZone,
            /// pgscan_anon, pgscan_file
            pub(crate) pgscan_kind: [u64; 2],
            /// pgsteal_anon, pgsteal_file
            pub(crate) pgsteal_kind: [u64; 2],
            /// workingset_refault_anon, workingset_refault_file
            pub(crate) workingset_refault: [u64; 2],
            /// workingset_activate_anon, workingset_activate_file
            pub(crate) workingset_activate: [u64; 2],
            /// workingset_restore_anon, workingset_restore_file
            pub(crate) workingset_restore: [u64; 2],
        }

        impl VmStat {
            fn named(&self) -> Vec<(&'static str, u64)> {
                vec![ $( (stringify!($field), self.$field) ),* ]
            }
        }
    };
}

counters! {
    /// Page faults
    pgfault
    /// Page faults that waited for I/O
    pgmajfault
    /// Pages read from swap
    pswpin
    /// Pages written to swap
    pswpout
    /// Kilobytes read from devices
    pgpgin
    /// Kilobytes written to devices
    pgpgout
    /// Pages of files made dirty
    nr_dirtied
    /// Pages written, of files and to swap
    nr_written
    /// Pages freed
    pgfree
    /// Pages moved to an active list
    pgactivate
    /// Pages moved to an inactive list
    pgdeactivate
    /// Pages of which MADV_FREE has said that nobody needs their content
    pglazyfree
    /// Those of them that were dropped
    pglazyfreed
    /// Pages that were locked in memory
    unevictable_pgs_mlocked
    /// Pages that were unlocked
    unevictable_pgs_munlocked
    /// Pages taken off their lists, as they are locked
    unevictable_pgs_culled
    /// Pages put back on them
    unevictable_pgs_rescued
    /// Pages put at the inactive tail when their writeback ended
    pgrotated
    /// Times that a task waited before it reclaimed directly, as too little was free
    pgscan_direct_throttle
    /// Balancing runs of kswapd
    pageoutrun
    /// kswapd slept less than a full nap because the low watermark was hit
    kswapd_low_wmark_hit_quickly
    /// kswapd found a zone below high after a run or right after its nap
    kswapd_high_wmark_hit_quickly
    /// kswapd did not wait although it made no progress, because a zone was below min
    kswapd_skip_congestion_wait
    /// Pages written by reclaim
    nr_vmscan_write
    /// Dirty pages marked for reclaim as soon as they are clean
    nr_vmscan_immediate_reclaim
    /// Swap-in neighbours read (an extension before 4.14)
    swap_ra
    /// Swap-in neighbours touched (an extension before 4.14)
    swap_ra_hit
    /// Frames that compaction looked at for pages to move
    compact_migrate_scanned
    /// Frames that it looked at for room
    compact_free_scanned
    /// Pages and free pages that it isolated
    compact_isolated
    /// Times that a task compacted for a block, or would have had it not failed lately
    compact_stall
    /// Times that there was a block then
    compact_success
    /// Times that there was none
    compact_fail
    /// Times that kcompactd was woken for a block
    compact_daemon_wake
    /// Of the frames looked at for pages to move, those that kcompactd did
    compact_daemon_migrate_scanned
    /// Of those looked at for room, those that kcompactd did
    compact_daemon_free_scanned
    /// Times that a folio of a file was mapped as a huge page
    thp_file_mapped
    /// Faults that got a huge page
    thp_fault_alloc
    /// Faults that got none and fell back to a page
    thp_fault_fallback
    /// Of these, those that a memory cgroup could not have
    thp_fault_fallback_charge
    /// Huge pages that khugepaged allocated
    thp_collapse_alloc
    /// Times that it found none
    thp_collapse_alloc_failed
    /// Huge pages split
    thp_split_page
    /// Huge pages that could not be split
    thp_split_page_failed
    /// Huge pages of which a part was unmapped, and that wait to be split
    thp_deferred_split_page
    /// Huge pages split because they were hardly used
    thp_underused_split_page
    /// Entries of a directory split that mapped a huge page
    thp_split_pmd
    /// Huge pages of zeroes allocated
    thp_zero_page_alloc
    /// Times that there was none for it
    thp_zero_page_alloc_failed
    /// Huge pages written to swap as they are
    thp_swpout
    /// Huge pages that were split for want of slots side by side
    thp_swpout_fallback
    /// Times that compaction moved pages (to 3.7)
    compact_blocks_moved
    /// Pages that compaction could not move (to 3.7)
    compact_pagemigrate_failed
    /// Pages moved
    pgmigrate_success
    /// Pages that could not be moved
    pgmigrate_fail
}

/// What compaction counts to 3.7 under names of its own (before 397487db696c and 5647bc293ab1).
const COMPACTION_BEFORE_3_8: [&str; 3] = [
    "compact_blocks_moved",
    "compact_pages_moved",
    "compact_pagemigrate_failed",
];
/// What it has counted since.
const COMPACTION_SINCE_3_8: [&str; 5] = [
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "pgmigrate_success",
    "pgmigrate_fail",
];
/// Counters that came later than others of their kind: kcompactd's (698b1b30642f, 7f354a548d1c), of huge pages of files
/// (95ecedcd6abb), and of pages that were given up (f7ad2a6cb9f7, 854e9ed09ded).
const LATER: [(&str, Version); 6] = [
    ("compact_daemon_wake", v(4, 6)),
    ("compact_daemon_migrate_scanned", v(4, 12)),
    ("compact_daemon_free_scanned", v(4, 12)),
    ("thp_file_mapped", v(4, 8)),
    ("pglazyfree", v(4, 12)),
    ("pglazyfreed", v(4, 5)),
];

/// Counters that are gone, with the first version without them.
const GONE: [(&str, Version); 1] = [("kswapd_skip_congestion_wait", v(3, 11))];

/// How the names of those begin that count compaction, which are there only with [`Coverage::compaction`](crate::kernel::Coverage::compaction).
const COMPACTION: [&str; 2] = ["compact_", "pgmigrate_"];

/// Counters of huge pages that came with a version; the others are there wherever huge pages are.
const THP_SINCE: [(&str, Version); 8] = [
    ("thp_file_mapped", v(4, 8)),
    ("thp_fault_fallback_charge", v(5, 8)),
    ("thp_deferred_split_page", v(4, 5)),
    ("thp_underused_split_page", v(6, 12)),
    ("thp_split_pmd", v(4, 5)),
    ("thp_split_page_failed", v(4, 5)),
    ("thp_zero_page_alloc", v(3, 8)),
    ("thp_swpout", v(4, 14)),
];

/// Splits of huge pages were `thp_split` before.
const THP_SPLIT_PAGE: Version = v(4, 5);

/// From this version on counters have the names of their kernel; recordings of older ones keep the sums
/// over zones and the counters of later kernels that they have always had.
const ERA_NAMES: Version = v(4, 13);

/// Reclaim is counted by zone before 599d0c954f91 (4.8).
const BY_NODE: Version = v(4, 8);
/// What kswapd and direct reclaim have reclaimed is counted apart since 904249aa6895 (3.4): before, there are all pages by
/// zone, and those of kswapd.
const STEAL_APART: Version = v(3, 4);

/// Counters of anon and file pages came with commit 497a6c1b0990 (5.8), those of anon refaults with
/// 170b04b7ae49 (5.9).
const BY_KIND: Version = v(5, 9);

/// Whether a kernel has a counter, as far as it is one of huge pages.
fn counts_huge_pages(name: &str, kernel: &Kernel) -> bool {
    let mut since = THP_SINCE
        .iter()
        .filter(|(begin, _)| name.starts_with(begin));
    let there = match name {
        "thp_file_mapped" => kernel.coverage.compaction,
        _ => kernel.coverage.huge_pages,
    };
    !name.starts_with("thp_") || there && since.all(|(_, since)| kernel.version >= *since)
}

impl VmStat {
    /// About how often counters of memory cgroups have changed (`memcg_rstat_updated`). A fault counts itself, a
    /// charge, a mapping and a page on a list; a scanned page counts itself and leaves its list; a reclaimed
    /// one counts itself and is mapped no more.
    pub(crate) fn memcg_updates(&self) -> u64 {
        let sum = |by_kind: &[u64; 2]| by_kind.iter().sum::<u64>();
        4 * self.pgfault + 2 * sum(&self.pgscan_kind) + 2 * sum(&self.pgsteal_kind)
    }

    /// Every counter by the name that it has in a kernel. `highest` is what the zone type above Normal is
    /// called.
    pub(crate) fn by_name(&self, kernel: &Kernel, highest: &str) -> BTreeMap<String, u64> {
        let version = kernel.version;
        let mut counters: BTreeMap<String, u64> = self
            .named()
            .into_iter()
            .filter(|(name, _)| {
                let compaction = COMPACTION.iter().any(|begin| name.starts_with(begin));
                // A run that locks nothing has none of these.
                let idle = self.unevictable_pgs_mlocked == 0 && name.starts_with("unevictable_pgs");
                let there = kernel.coverage.compaction || !compaction;
                there && !idle && counts_huge_pages(name, kernel)
            })
            .map(|(name, value)| match name {
                "thp_split_page" if version < THP_SPLIT_PAGE => ("thp_split".to_owned(), value),
                _ => (name.to_owned(), value),
            })
            .collect();
        if kernel.coverage.compaction {
            counters.insert("compact_pages_moved".into(), self.pgmigrate_success);
        }
        let foreign: &[&str] = if version < v(3, 8) {
            &COMPACTION_SINCE_3_8
        } else {
            &COMPACTION_BEFORE_3_8
        };
        counters.retain(|name, _| {
            let early = LATER
                .iter()
                .any(|(it, since)| it == name && version < *since);
            !foreign.contains(&name.as_str()) && !early
        });
        counters.extend(self.reclaim_sums(version));
        let mut by_zone = |prefix: &str, values: &ByZone, highest: &str| {
            for (zone, value) in ZoneType::ALL.iter().zip(values) {
                let suffix = match zone {
                    ZoneType::High => highest,
                    _ => zone.name(),
                };
                counters.insert(format!("{prefix}_{suffix}"), *value);
            }
        };
        for (prefix, values) in self.reclaim_by_zone(version) {
            by_zone(prefix, &values, ZoneType::High.name());
        }
        if version < ERA_NAMES {
            by_zone("pgalloc", &self.pgalloc, ZoneType::High.name());
            counters.insert("allocstall".into(), self.allocstall.iter().sum());
            counters.insert("pgskip".into(), self.pgskip.iter().sum());
            return counters;
        }
        by_zone("pgalloc", &self.pgalloc, highest);
        by_zone("allocstall", &self.allocstall, highest);
        by_zone("pgskip", &self.pgskip, highest);
        counters.retain(|name, _| {
            GONE.iter()
                .all(|(gone, since)| gone != name || version < *since)
        });
        if version >= BY_KIND {
            for (kind, suffix) in ["anon", "file"].iter().enumerate() {
                for (prefix, values) in [
                    ("pgscan", self.pgscan_kind),
                    ("pgsteal", self.pgsteal_kind),
                    ("workingset_refault", self.workingset_refault),
                    ("workingset_activate", self.workingset_activate),
                    ("workingset_restore", self.workingset_restore),
                ] {
                    counters.insert(format!("{prefix}_{suffix}"), values[kind]);
                }
            }
        }
        counters
    }

    /// What reclaim has done by zone, where the kernel counts it so.
    fn reclaim_by_zone(&self, version: Version) -> Vec<(&'static str, ByZone)> {
        if version >= BY_NODE {
            return Vec::new();
        }
        let mut counters = vec![
            ("pgrefill", self.pgrefill),
            ("pgscan_kswapd", self.pgscan_kswapd),
            ("pgscan_direct", self.pgscan_direct),
        ];
        if version < STEAL_APART {
            let both = self.pgsteal_kswapd.iter().zip(self.pgsteal_direct);
            let mut all = ByZone::default();
            for (all, (kswapd, direct)) in all.iter_mut().zip(both) {
                *all = kswapd + direct;
            }
            counters.push(("pgsteal", all));
        } else {
            counters.push(("pgsteal_kswapd", self.pgsteal_kswapd));
            counters.push(("pgsteal_direct", self.pgsteal_direct));
        }
        counters
    }

    /// What reclaim has done in all zones together, where the kernel counts it so.
    fn reclaim_sums(&self, version: Version) -> Vec<(String, u64)> {
        let sum = |name: &str, values: ByZone| (name.to_owned(), values.iter().sum());
        if version < STEAL_APART {
            vec![sum("kswapd_steal", self.pgsteal_kswapd)]
        } else if version < BY_NODE {
            Vec::new()
        } else {
            vec![
                sum("pgrefill", self.pgrefill),
                sum("pgscan_kswapd", self.pgscan_kswapd),
                sum("pgscan_direct", self.pgscan_direct),
                sum("pgsteal_kswapd", self.pgsteal_kswapd),
                sum("pgsteal_direct", self.pgsteal_direct),
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of what a kernel counts of reclaim, and their values, of which each zone has another.
    fn named(version: &str) -> Vec<(String, u64)> {
        let stat = VmStat {
            pgscan_kswapd: [1, 20, 300, 4000],
            pgsteal_kswapd: [2, 30, 400, 5000],
            pgsteal_direct: [3, 40, 500, 6000],
            ..VmStat::default()
        };
        let kernel = Kernel::named(version);
        let counters = stat.by_name(&kernel, "movable");
        let own = counters.into_iter().filter(|(name, count)| {
            *count > 0 && (name.contains("steal") || name.starts_with("pgscan_kswapd"))
        });
        own.collect()
    }

    fn expected(list: &[(&str, u64)]) -> Vec<(String, u64)> {
        let pair = |&(name, count): &(&str, u64)| (name.to_owned(), count);
        list.iter().map(pair).collect()
    }

    #[test]
    fn reclaim_is_counted_by_zone_before_4_8() {
        let scans = [
            ("pgscan_kswapd_dma", 1),
            ("pgscan_kswapd_dma32", 20),
            ("pgscan_kswapd_high", 4000),
            ("pgscan_kswapd_normal", 300),
        ];
        for version in ["v2.6.36", "v3.3"] {
            let steals = [
                ("pgsteal_dma", 5),
                ("pgsteal_dma32", 70),
                ("pgsteal_high", 11_000),
                ("pgsteal_normal", 900),
            ];
            let all = [&[("kswapd_steal", 5432)][..], &scans, &steals].concat();
            assert_eq!(named(version), expected(&all), "{version}");
        }
        for version in ["v3.4", "v4.7"] {
            let names: Vec<String> = named(version).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), 12, "{version}");
            assert!(
                names.contains(&"pgsteal_direct_dma32".to_owned()),
                "{version}"
            );
        }
        let sums = [
            ("pgscan_kswapd", 4321),
            ("pgsteal_direct", 6543),
            ("pgsteal_kswapd", 5432),
        ];
        assert_eq!(named("v4.8"), expected(&sums));
        assert_eq!(named("v6.18"), expected(&sums));
    }

    /// Compaction has other names before 3.8, kcompactd came with 4.6, and its scanners are counted from 4.12 on.
    #[test]
    fn compaction_is_counted_under_the_names_of_its_era() {
        let names = |version: &str| -> Vec<String> {
            let counters = VmStat::default().by_name(&Kernel::named(version), "movable");
            let own = |name: &String| name.starts_with("compact_") || name.starts_with("pgmig");
            counters.into_keys().filter(own).collect()
        };
        let early = [
            "compact_blocks_moved",
            "compact_fail",
            "compact_pagemigrate_failed",
            "compact_pages_moved",
            "compact_stall",
            "compact_success",
        ];
        assert_eq!(names("v2.6.36"), early);
        assert_eq!(names("v3.7"), early);
        let later = [
            "compact_fail",
            "compact_free_scanned",
            "compact_isolated",
            "compact_migrate_scanned",
            "compact_stall",
            "compact_success",
            "pgmigrate_fail",
            "pgmigrate_success",
        ];
        for (version, kcompactd) in [("v3.8", 0), ("v4.5", 0), ("v4.6", 1), ("v4.12", 3)] {
            let (daemon, others): (Vec<String>, Vec<String>) =
                (names(version).into_iter()).partition(|name| name.contains("daemon"));
            assert_eq!(
                (daemon.len(), others.as_slice()),
                (kcompactd, &later.map(String::from)[..])
            );
        }
    }
}
