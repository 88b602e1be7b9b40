//! The changes from the oldest kernel of the model to 3.2, one row each.

use super::mechanisms::*;
use super::versions::{Change, v, v2_6};

/// Every change up to 3.2, oldest first.
pub(super) const TO_3_2: &[Change] = &[
    Change {
        name: "wake-only-asleep",
        version: v2_6(38),
        commit: "88f5acf88ae6",
        summary: "who finds kswapd awake does not look at the watermarks",
        effect: |m| {
            m.kswapd_wake = KswapdWake::BelowLow;
        },
    },
    Change {
        name: "xfs-dynamic-preallocation",
        version: v2_6(38),
        commit: "055388a3188f",
        summary: "XFS allocates as much ahead as a file has",
        effect: |m| {
            m.xfs_ahead = XfsAhead::FileSize;
        },
    },
    Change {
        name: "on-stack-plug",
        version: v2_6(39),
        commit: "73c101011926",
        summary: "tasks hold back their own requests; queues do not (7eaceaccab5f)",
        effect: |m| {
            m.plug = Plug::Task;
        },
    },
    Change {
        name: "balance-gap",
        version: v2_6(39),
        commit: "8afdcece4911",
        summary: "kswapd leaves a zone a little above its high watermark, not at eight times of it",
        effect: |m| {
            m.balance_gap = BalanceGap::LowOrPercent;
        },
    },
    Change {
        name: "force-scan-small-lists",
        version: v(3, 0),
        commit: "246e87a93934",
        summary: "shares of lists below a batch are not saved up",
        effect: |m| {
            m.small_scan = SmallScan::Forced;
        },
    },
    Change {
        name: "stable-pages",
        version: v(3, 0),
        commit: "3d08bcc88775",
        summary: "stores wait while their page is being written",
        effect: |m| {
            m.stable_pages = StablePages::Always;
        },
    },
    Change {
        name: "closed-writeback-rounds",
        version: v(3, 1),
        commit: "424b351fe190",
        summary: "a round of the flusher takes no new inodes",
        effect: |m| {
            m.writeback_round = WritebackRound::Closed;
        },
    },
    Change {
        name: "half-second-slice",
        version: v(3, 1),
        commit: "1a12d8bd7b29",
        summary: "the turn of an inode is half a second of the device, not 4 MiB (d46db3d58233)",
        effect: |m| {
            m.writeback_slice = WritebackSlice::Bandwidth;
        },
    },
    Change {
        name: "max-pause-area",
        version: v(3, 1),
        commit: "ffd1f609ab10",
        summary: "a writer may leave after 200 ms (bb0822954aab)",
        effect: |m| {
            m.throttle = Throttle::ForegroundBounded;
        },
    },
    Change {
        name: "io-less",
        version: v(3, 2),
        commit: "143dfe8611a6",
        summary: "writers pause at the rate of the device and write nothing themselves",
        effect: |m| {
            m.throttle = Throttle::IoLess;
        },
    },
    Change {
        name: "pause-control",
        version: v(3, 2),
        commit: "57fc978cfb61",
        summary: "the pauses of writers follow their number (c8462cc9de9e), idle devices catch up (8927f66c4ede)",
        effect: |m| {
            m.throttle = Throttle::PauseControl;
        },
    },
    Change {
        name: "bdi-background",
        version: v(3, 2),
        commit: "b00949aa2df9",
        summary: "one device above its share is written in the background",
        effect: |m| {
            m.bdi_background = BdiBackground::On;
        },
    },
    Change {
        name: "no-file-writes-by-direct-reclaim",
        version: v(3, 2),
        commit: "ee72886d8ed5",
        summary: "only kswapd writes pages of files, and late (f84f6e2b0868)",
        effect: |m| {
            m.reclaim_file_writes = ReclaimFileWrites::KswapdLate;
        },
    },
    Change {
        name: "stall-on-writeback",
        version: v(3, 2),
        commit: "92df3a723f84",
        summary: "reclaimers that meet many pages under writeback may wait",
        effect: |m| {
            m.batch_stall = BatchStall::Writeback;
        },
    },
    Change {
        name: "reclaim-plug",
        version: v(3, 2),
        commit: "3da367c3e5fc",
        summary: "the writes of a reclaim pass are merged",
        effect: |m| {
            m.reclaim_plug = ReclaimPlug::On;
        },
    },
];
