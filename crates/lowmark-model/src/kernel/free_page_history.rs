//! The changes of where free pages are kept and whose they are, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change of the lists of CPUs, of pageblocks and of what is kept of them, oldest first.
pub(super) const FREE_PAGES: &[Change] = &[
    Change {
        name: "rest-of-a-stolen-block",
        version: v(3, 5),
        commit: "47118af076f6",
        summary: "what is left of a block of another type changes its type, always",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::RestTaken;
        },
    },
    Change {
        name: "rest-stays-unclaimed",
        version: v(3, 12),
        commit: "fef903efcf0c",
        summary: "what is left of a block of another type changes its type only with its pageblock",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::RestLeft;
        },
    },
    Change {
        name: "unmovable-steals",
        version: v(4, 0),
        commit: "9c0415eb8cbf",
        summary: "unmovable allocations take what is free in a pageblock; the rest of a block always changes its type (99592d598eca)",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::UnmovableToo;
        },
    },
    Change {
        name: "highatomic-on-demand",
        version: v(4, 4),
        commit: "0aaa29a56e4f",
        summary: "pageblocks are kept for allocations that cannot wait when such an allocation was met, not from booting on (974a786e63c9)",
        effect: |m| {
            m.zones.atomic_reserve = AtomicReserve::OnDemand;
        },
    },
    Change {
        name: "alike-pages-count",
        version: v(4, 12),
        commit: "02aa0cdd7248",
        summary: "pages in use that are like those of an allocation count when it takes a pageblock; the smallest block is split then (3bc48f96cf11)",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::Alike;
        },
    },
    Change {
        name: "smallest-movable-fallback",
        version: v(4, 13),
        commit: "7a8f58f39188",
        summary: "movable pages that cannot take a pageblock come from the smallest block of another type",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::Stolen;
        },
    },
    Change {
        name: "double-pcp-batch",
        version: v(4, 19),
        commit: "d8a759b57035",
        summary: "the free pages that a CPU keeps, and its batches, may be twice as many",
        effect: |m| {
            m.zones.pcp_lists = PcpLists::LargeBatches;
        },
    },
    Change {
        name: "pcp-high-by-watermark",
        version: v(5, 14),
        commit: "b92ca18e8ca5",
        summary: "the free pages that a CPU keeps follow the low watermark, with small blocks (44042b449872), and are few while kswapd is at work (c49c2c47dab6)",
        effect: |m| {
            m.zones.pcp_lists = PcpLists::Fixed;
        },
    },
    Change {
        name: "pcp-high-auto-tuning",
        version: v(6, 7),
        commit: "51a755c56dc0",
        summary: "the free pages that a CPU keeps, and its batches, grow with use (c0a242394cb9, 57c0419c5f0e)",
        effect: |m| {
            m.zones.pcp_lists = PcpLists::Tuned;
        },
    },
    Change {
        name: "atomic-reserve-in-large-zones",
        version: v(6, 8),
        commit: "9cd20f3fe045",
        summary: "no pageblock is kept for allocations that cannot wait in a zone of which a hundredth is less than one",
        effect: |m| {
            m.zones.atomic_reserve = AtomicReserve::LargeZones;
        },
    },
    Change {
        name: "pageblocks-by-type",
        version: v(6, 10),
        commit: "c0cd6f557b90",
        summary: "free blocks are on lists of their pageblock's type, always (e6cf9e1c4cde)",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::Claimed;
        },
    },
    Change {
        name: "claim-or-smallest",
        version: v(6, 15),
        commit: "c2f6ea38fc1b",
        summary: "single pages come from the smallest block of another type (90abee6d7895)",
        effect: |m| {
            m.zones.migrate_types = MigrateTypes::ClaimedFirst;
        },
    },
];
