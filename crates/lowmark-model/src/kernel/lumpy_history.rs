//! The changes of lumpy reclaim, and of what else needs blocks of several pages, as in [`history`](super::history).

use super::change::{Change, v, v2_6};
use super::mechanisms::*;

/// Every change of lumpy reclaim, of reclaim that makes room for compaction, and of stacks, oldest first.
pub(super) const LUMPY: &[Change] = &[
    Change {
        name: "sync-lumpy-at-once",
        version: v2_6(37),
        commit: "bc57e00f5e0b",
        summary: "synchronous lumpy reclaim does not wait for congestion before it waits for pages",
        effect: |m| {
            m.reclaim.sync_reclaim = SyncReclaim::EachPage;
        },
    },
    Change {
        name: "lowlumpy",
        version: v2_6(37),
        commit: "7d3579e8e619",
        summary: "a page that cannot be reclaimed ends lumpy reclaim of its batch; costly blocks write to congested queues",
        effect: |m| {
            m.reclaim.lumpy_reclaim = LumpyReclaim::GivesUp;
            m.reclaim.congested_queue = CongestedQueue::CostlyBlocks;
        },
    },
    Change {
        name: "stop-neighbour-search",
        version: v2_6(37),
        commit: "08fc468f4eaf",
        summary: "lumpy reclaim looks at a block up to the first page that is not to be had",
        effect: |m| {
            m.reclaim.block_walk = BlockWalk::ToFirstOther;
        },
    },
    Change {
        name: "no-waits-for-own-writes",
        version: v(3, 2),
        commit: "a18bba061c78",
        summary: "synchronous reclaim waits for pages that are being written already, not for those that it writes",
        effect: |m| {
            m.reclaim.sync_reclaim = SyncReclaim::UnderWriteback;
        },
    },
    Change {
        name: "no-walk-with-compaction",
        version: v(3, 4),
        commit: "fe2c2a106663",
        summary: "reclaim takes the rest of a page's block in lumpy reclaim only",
        effect: |m| {
            m.reclaim.block_walk = BlockWalk::LumpyAlone;
        },
    },
    Change {
        name: "no-lumpy-reclaim",
        version: v(3, 5),
        commit: "c53919adc045",
        summary: "there is no lumpy reclaim; a block is no reason to write to congested queues",
        effect: |m| {
            m.reclaim.block_walk = BlockWalk::Never;
            m.reclaim.congested_queue = CongestedQueue::Spared;
        },
    },
    Change {
        name: "no-sync-reclaim",
        version: v(3, 5),
        commit: "41ac1999c3e3",
        summary: "reclaim for compaction does not wait for writeback, and goes on whatever was kept (23b9da55c5b0)",
        effect: |m| {
            m.reclaim.sync_reclaim = SyncReclaim::Never;
            m.reclaim.lumpy_reclaim = LumpyReclaim::Never;
        },
    },
    Change {
        name: "16k-stacks",
        version: v(3, 15),
        commit: "6538b8ea886e",
        summary: "kernel stacks of x86-64 are 16 KiB",
        effect: |m| {
            m.zones.kernel_stack = KernelStack::FourPages;
        },
    },
    Change {
        name: "vmap-stacks",
        version: v(4, 9),
        commit: "e37e43a497d5",
        summary: "kernel stacks of x86-64 are single pages, mapped side by side (ba14a194a434)",
        effect: |m| {
            m.zones.kernel_stack = KernelStack::Mapped;
        },
    },
];
