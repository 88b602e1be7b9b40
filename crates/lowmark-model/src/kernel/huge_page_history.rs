//! The changes of huge pages of private memory, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change of huge pages, oldest first.
pub(super) const HUGE_PAGES: &[Change] = &[
    Change {
        name: "huge-zero-page",
        version: v(3, 8),
        commit: "93b4796ded91",
        summary: "reads of private memory that was never written share one huge page of zeroes",
        effect: |m| {
            m.huge.thp_zero = ThpZero::Huge;
        },
    },
    Change {
        name: "thp-on-local-node",
        version: v(4, 0),
        commit: "077fcf116c8c",
        summary: "huge pages come from the task's own node or not at all",
        effect: |m| {
            m.huge.thp_node = ThpNode::Local;
        },
    },
    Change {
        name: "thp-deferred-split",
        version: v(4, 5),
        commit: "9a982250f773",
        summary: "a huge page of which a part is unmapped is split when memory is short, not at once",
        effect: |m| {
            m.huge.thp_split = ThpSplit::Deferred;
            m.huge.thp_zap = ThpZap::Queued;
        },
    },
    Change {
        name: "thp-defrag-modes",
        version: v(4, 6),
        commit: "444eb2a449ef",
        summary: "by default only regions that asked for huge pages reclaim and compact for one in a fault",
        effect: |m| {
            m.huge.thp_gfp = ThpGfp::Modes;
        },
    },
    Change {
        name: "thp-madvised-retries",
        version: v(4, 8),
        commit: "2516035499b9",
        summary: "faults in regions that asked for huge pages do not give up soon",
        effect: |m| {
            m.huge.thp_gfp = ThpGfp::Madvised;
        },
    },
    Change {
        name: "thp-swap-cluster",
        version: v(4, 13),
        commit: "38d8b4e6bdc8",
        summary: "a huge page gets 512 slots side by side before it is split; clusters have 512 slots",
        effect: |m| {
            m.huge.thp_swap = ThpSwap::Cluster;
        },
    },
    Change {
        name: "thp-swap-whole",
        version: v(4, 14),
        commit: "bd4c82c22c36",
        summary: "a huge page is written to swap as it is",
        effect: |m| {
            m.huge.thp_swap = ThpSwap::Whole;
        },
    },
    Change {
        name: "thp-scan-pages",
        version: v(5, 3),
        commit: "98879b3b9edc",
        summary: "scanned and reclaimed pages count all pages of a huge page",
        effect: |m| {
            m.huge.thp_scan = ThpScan::Pages;
        },
    },
    Change {
        name: "thp-local-first",
        version: v(5, 4),
        commit: "cc638f329ef6",
        summary: "huge pages come from the task's own node without reclaim, then with it from any",
        effect: |m| {
            m.huge.thp_node = ThpNode::LocalFirst;
        },
    },
    Change {
        name: "thp-swap-cache-not-deferred",
        version: v(5, 4),
        commit: "87eaceb3faa5",
        summary: "a huge page in the swap cache does not count as partly mapped while it is split",
        effect: |m| {
            m.huge.thp_unmap = ThpUnmap::SwapCacheSpared;
        },
    },
    Change {
        name: "thp-unmapped-not-queued",
        version: v(5, 5),
        commit: "f1fe80d4ae33",
        summary: "a huge page that is unmapped as a whole does not go on the list of those that wait to be split",
        effect: |m| {
            m.huge.thp_zap = ThpZap::Freed;
        },
    },
    Change {
        name: "thp-zero-splits",
        version: v(5, 8),
        commit: "3917c80280c9",
        summary: "a store to the huge page of zeroes gets a page, no huge page",
        effect: |m| {
            m.huge.thp_zero = ThpZero::Page;
        },
    },
    Change {
        name: "thp-swap-partitions-only",
        version: v(5, 9),
        commit: "41663430588c",
        summary: "a huge page is split before it is swapped out to a file; stable kernels of 4.14, 4.19, 5.4 and 5.8 have this, too",
        effect: |m| {
            m.huge.thp_swap_area = ThpSwapArea::Partition;
        },
    },
    Change {
        name: "thp-unmap-whole",
        version: v(6, 2),
        commit: "cb67f4282bf9",
        summary: "the entry of a huge page is taken away as a whole when it is split",
        effect: |m| {
            m.huge.thp_unmap = ThpUnmap::Whole;
        },
    },
    Change {
        name: "thp-underused",
        version: v(6, 12),
        commit: "dafff3f4c850",
        summary: "huge pages that are hardly used are split when memory is short",
        effect: |m| {
            m.huge.thp_split = ThpSplit::Underused;
        },
    },
    Change {
        name: "thp-zero-huge",
        version: v(6, 13),
        commit: "1ced09e0331f",
        summary: "a store to the huge page of zeroes gets a huge page again",
        effect: |m| {
            m.huge.thp_zero = ThpZero::Huge;
        },
    },
    Change {
        name: "thp-tails-descending",
        version: v(6, 15),
        commit: "00527733d0dc",
        summary: "the pages of a huge page that is split come to reclaim from the end",
        effect: |m| {
            m.huge.thp_tails = ThpTails::Descending;
        },
    },
    Change {
        name: "collapse-read-only",
        version: v(6, 18),
        commit: "62b98015d988",
        summary: "khugepaged makes huge pages of pages that can only be read, too",
        effect: |m| {
            m.huge.thp_read_only = ThpReadOnly::Collapsed;
        },
    },
];
