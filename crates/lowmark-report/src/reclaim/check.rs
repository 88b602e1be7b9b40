//! The trace against `/proc/vmstat`: two routes to the same counts, and so a test for lost events.
//!
//! On the classic LRU they are equal if nothing was lost and nothing ran at the edges of the trace: `nr_scanned`
//! and `nr_reclaimed` of `mm_vmscan_lru_shrink_inactive` with `pgscan_*` and `pgsteal_*`, begins of direct
//! reclaim with `allocstall_*`, pages written with `nr_vmscan_write` to within the per-CPU counters. With the
//! multi-generational LRU the trace has more pages scanned. What reclaim for a memory cgroup does is in the
//! sums over anon and file only.

use super::figures::ReclaimFigures;
use super::pages::Actor;
use super::tasks::Span;
use serde::Serialize;

/// One count by both routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What is counted.
    pub name: &'static str,
    /// By the trace.
    pub trace: u64,
    /// By `/proc/vmstat`.
    pub vmstat: u64,
}

impl ReclaimFigures {
    /// The counts that both have; empty without `/proc/vmstat`.
    pub fn checks(&self) -> Vec<Check> {
        let Some(vmstat) = &self.context.vmstat else {
            return Vec::new();
        };
        let totals = |field: fn(&super::figures::Totals) -> u64| {
            self.totals.iter().map(field).fold(0, u64::saturating_add)
        };
        let event = |names: &[&str]| names.iter().any(|n| self.events.contains_key(n));
        let rows = self.by_shrink_inactive;
        let zoned = |row: &str| vmstat.row(row).map(|v| v as u64);
        let (kswapd, direct) = (self.totals(Actor::Kswapd), self.totals(Actor::Direct));
        let by_list = |name: &str| vmstat.sum(&[&format!("{name}_anon"), &format!("{name}_file")]);
        let written = event(&["mm_vmscan_writepage", "mm_vmscan_write_folio"]);
        let begins = event(&["mm_vmscan_direct_reclaim_begin"]);
        let candidates = [
            (
                "Pages scanned",
                rows,
                totals(|t| t.scanned),
                by_list("pgscan"),
            ),
            (
                "Pages reclaimed",
                rows,
                totals(|t| t.reclaimed.unwrap_or(0)),
                by_list("pgsteal"),
            ),
            (
                "Kswapd pages scanned",
                rows,
                kswapd.scanned,
                zoned("Kswapd pages scanned"),
            ),
            (
                "Kswapd pages reclaimed",
                rows,
                kswapd.reclaimed.unwrap_or(0),
                zoned("Kswapd pages reclaimed"),
            ),
            (
                "Direct pages scanned",
                rows,
                direct.scanned,
                zoned("Direct pages scanned"),
            ),
            (
                "Direct pages reclaimed",
                rows,
                direct.reclaimed.unwrap_or(0),
                zoned("Direct pages reclaimed"),
            ),
            (
                "Direct reclaims",
                begins,
                self.pairs[Span::Direct as usize].begins,
                zoned("Allocation stalls"),
            ),
            (
                "Pages written",
                written,
                totals(|t| t.written),
                zoned("Page writes by reclaim"),
            ),
        ];
        let checks = candidates.into_iter().filter(|(_, recorded, ..)| *recorded);
        let checks = checks.filter_map(|(name, _, trace, vmstat)| {
            let vmstat = vmstat?;
            Some(Check {
                name,
                trace,
                vmstat,
            })
        });
        checks.collect()
    }
}
