//! The changes from the oldest kernel of the model to 4.7 that have no list of their own, one row each.

use super::change::{Change, v, v2_6};
use super::mechanisms::*;

/// Every change before 4.8, oldest first.
pub(super) const BEFORE_4_8: &[Change] = &[
    Change {
        name: "wait-iff-congested",
        version: v2_6(37),
        commit: "0e093d99763e",
        summary: "allocations and direct reclaimers wait for congestion only where there is some",
        effect: |m| {
            m.zones.alloc_wait = AllocWait::MarkedZone;
            m.reclaim.direct_wait = DirectWait::Priority;
            m.reclaim.congested_zone = CongestedZone::Dirty;
        },
    },
    Change {
        name: "xfs-dynamic-preallocation",
        version: v2_6(38),
        commit: "055388a3188f",
        summary: "XFS allocates as much ahead as a file has",
        effect: |m| {
            m.files.xfs_ahead = XfsAhead::FileSize;
        },
    },
    Change {
        name: "on-stack-plug",
        version: v2_6(39),
        commit: "73c101011926",
        summary: "tasks hold back their own requests; queues do not (7eaceaccab5f)",
        effect: |m| {
            m.block.plug = Plug::Task;
        },
    },
    Change {
        name: "inode-wb-list-lock",
        version: v2_6(39),
        commit: "a66979abad09",
        summary: "the lists of dirty inodes have a lock of their own",
        effect: |m| {
            m.writeback.list_lock = ListLock::InodeWbList;
        },
    },
    Change {
        name: "force-scan-small-lists",
        version: v(3, 0),
        commit: "246e87a93934",
        summary: "shares of lists below a batch are not saved up",
        effect: |m| {
            m.reclaim.small_scan = SmallScan::Forced;
        },
    },
    Change {
        name: "stable-pages",
        version: v(3, 0),
        commit: "3d08bcc887a1",
        summary: "stores wait while their page is under writeback",
        effect: |m| {
            m.writeback.stable_pages = StablePages::Always;
        },
    },
    Change {
        name: "held-while-unmapping",
        version: v(3, 0),
        commit: "d16dfc550f53",
        summary: "a task that unmaps pages holds them while others have the CPU",
        effect: |m| {
            m.reclaim.mmu_batches = MmuBatches::Unbounded;
        },
    },
    Change {
        name: "closed-writeback-rounds",
        version: v(3, 1),
        commit: "424b351fe190",
        summary: "a round of the flusher takes no new inodes",
        effect: |m| {
            m.writeback.writeback_round = WritebackRound::Closed;
        },
    },
    Change {
        name: "wb-list-lock",
        version: v(3, 1),
        commit: "f758eeabeb96",
        summary: "each device has a lock for its lists of dirty inodes",
        effect: |m| {
            m.writeback.list_lock = ListLock::Wb;
        },
    },
    Change {
        name: "half-second-slice",
        version: v(3, 1),
        commit: "1a12d8bd7b29",
        summary: "the turn of an inode is half a second of the device, not 4 MiB (d46db3d58233)",
        effect: |m| {
            m.writeback.writeback_slice = WritebackSlice::Bandwidth;
        },
    },
    Change {
        name: "max-pause-area",
        version: v(3, 1),
        commit: "ffd1f609ab10",
        summary: "a writer may leave after 200 ms (bb0822954aab)",
        effect: |m| {
            m.writeback.throttle = Throttle::ForegroundBounded;
        },
    },
    Change {
        name: "io-less",
        version: v(3, 2),
        commit: "143dfe8611a6",
        summary: "writers pause at the rate of the device and write nothing themselves",
        effect: |m| {
            m.writeback.throttle = Throttle::IoLess;
        },
    },
    Change {
        name: "pause-control",
        version: v(3, 2),
        commit: "57fc978cfb61",
        summary: "the pauses of writers follow their number (c8462cc9de9e), idle devices catch up (8927f66c4ede)",
        effect: |m| {
            m.writeback.throttle = Throttle::PauseControl;
        },
    },
    Change {
        name: "bdi-background",
        version: v(3, 2),
        commit: "b00949aa2df9",
        summary: "one device above its share is written in the background",
        effect: |m| {
            m.writeback.bdi_background = BdiBackground::On;
        },
    },
    Change {
        name: "no-file-writes-by-direct-reclaim",
        version: v(3, 2),
        commit: "ee72886d8ed5",
        summary: "only kswapd writes pages of files, and late (f84f6e2b0868)",
        effect: |m| {
            m.writeback.reclaim_file_writes = ReclaimFileWrites::KswapdLate;
        },
    },
    Change {
        name: "stall-on-writeback",
        version: v(3, 2),
        commit: "92df3a723f84",
        summary: "reclaimers that meet many pages under writeback may wait",
        effect: |m| {
            m.reclaim.batch_stall = BatchStall::Priority;
        },
    },
    Change {
        name: "reclaim-plug",
        version: v(3, 2),
        commit: "3da367c3e5fc",
        summary: "the writes of a reclaim pass are merged",
        effect: |m| {
            m.reclaim.reclaim_plug = ReclaimPlug::On;
        },
    },
    Change {
        name: "no-reserve-dirtyable",
        version: v(3, 3),
        commit: "ab8fabd46f81",
        summary: "reserves and high watermarks may not become dirty",
        effect: |m| {
            m.writeback.dirty_reserve = DirtyReserve::Balance;
        },
    },
    Change {
        name: "dirty-pages-by-zone",
        version: v(3, 3),
        commit: "a756cf590853",
        summary: "pages that are about to be written to come from zones that are not too dirty yet",
        effect: |m| {
            m.writeback.dirty_spread = DirtySpread::Zone;
        },
    },
    Change {
        name: "think-time",
        version: v(3, 3),
        commit: "83712358ba0a",
        summary: "the time that a writer spends elsewhere is taken off its pause (with 7ccb9ad5364d, 54848d73f9f2)",
        effect: |m| {
            m.writeback.throttle = Throttle::ThinkTime;
        },
    },
    Change {
        name: "balanced-below-bandwidth",
        version: v(3, 3),
        commit: "bdaac4902a82",
        summary: "the balanced rate is at most the write bandwidth of the device",
        effect: |m| {
            m.writeback.balanced_rate = BalancedRate::BelowBandwidth;
        },
    },
    Change {
        name: "strict-dirty-exceeded",
        version: v(3, 3),
        commit: "82791940545b",
        summary: "a device's writers look more often only if memory and device are above their thresholds",
        effect: |m| {
            m.writeback.dirty_exceeded = DirtyExceeded::Both;
        },
    },
    Change {
        name: "activate-shared",
        version: v(3, 3),
        commit: "34dbc67a644f",
        summary: "a file page that was referenced through several mappings is activated at its first reference",
        effect: |m| {
            m.reclaim.shared_references = SharedReferences::AtOnce;
        },
    },
    Change {
        name: "activate-executable",
        version: v(3, 3),
        commit: "c909e99364c8",
        summary: "a file page that was referenced through an executable mapping is activated at its first reference",
        effect: |m| {
            m.reclaim.executable_references = ExecutableReferences::AtOnce;
        },
    },
    Change {
        name: "writeout-by-smoothed-limit",
        version: v(3, 4),
        commit: "47a133339c33",
        summary: "reclaimers wait for writes by the smoothed dirty limit, not by the dirty threshold of the moment",
        effect: |m| {
            m.reclaim.vm_writeout = VmWriteout::Limit;
        },
    },
    Change {
        name: "swappiness-zero",
        version: v(3, 5),
        commit: "fe35004fbf9e",
        summary: "swappiness weighs what it says; with 0 nothing is swapped while there are file pages",
        effect: |m| {
            m.reclaim.swappiness_weight = SwappinessWeight::Exact;
        },
    },
    Change {
        name: "activate-swap-backed",
        version: v(3, 5),
        commit: "e48982734ea0",
        summary: "a referenced shmem page is activated like an anonymous one",
        effect: |m| {
            m.reclaim.page_references = PageReferences::SwapBacked;
        },
    },
    Change {
        name: "swapin-plug",
        version: v(3, 6),
        commit: "3fb5c298b04e",
        summary: "the reads of a swap-in window are merged",
        effect: |m| {
            m.swap.swapin_plug = SwapinPlug::On;
        },
    },
    Change {
        name: "flexible-proportions",
        version: v(3, 6),
        commit: "eb608e3a344b",
        summary: "shares of devices are halved every three seconds, and cold at first; the smoothed limit is not",
        effect: |m| {
            m.writeback.proportions = Proportions::Flex;
            // 3.5 in fact.
            m.writeback.dirty_limit_start = DirtyLimitStart::Threshold;
        },
    },
    Change {
        name: "only-evict-file-when-plenty",
        version: v(3, 8),
        commit: "e9868505987a",
        summary: "anon is spared while there are many inactive file pages",
        effect: |m| {
            m.reclaim.enough_inactive_file = EnoughInactiveFile::FileOnly;
        },
    },
    Change {
        name: "bounded-unmapping",
        version: v(3, 8),
        commit: "53a59fc67f97",
        summary: "a task that unmaps pages holds no more than 9,698 of them",
        effect: |m| {
            m.reclaim.mmu_batches = MmuBatches::Bounded;
        },
    },
    Change {
        name: "fewer-isolated-pages",
        version: v(3, 8),
        commit: "3cf23841b4b7",
        summary: "direct reclaim waits when an eighth of the inactive pages is isolated",
        effect: |m| {
            m.reclaim.isolated_limit = IsolatedLimit::Eighth;
        },
    },
    Change {
        name: "managed-pages",
        version: v(3, 9),
        commit: "b40da04946aa",
        summary: "watermarks and reserves count managed pages",
        effect: |m| {
            m.zones.zone_size = ZoneSize::Managed;
        },
    },
    Change {
        name: "stable-pages-on-demand",
        version: v(3, 9),
        commit: "1d1d1a767206",
        summary: "stores wait for writeback only where the device needs it",
        effect: |m| {
            m.writeback.stable_pages = StablePages::Device;
        },
    },
    Change {
        name: "proportional-scan",
        version: v(3, 11),
        commit: "e82e0561dae9",
        summary: "a pass that has reclaimed enough stops, in proportion",
        effect: |m| {
            m.reclaim.scan_target = ScanTarget::Proportional;
        },
    },
    Change {
        name: "block-on-immediate-writeback",
        version: v(3, 11),
        commit: "b1a6f21e3b23",
        summary: "whether a reclaimer waits after a batch depends on the pages of the batch, not on its priority (283aba9f9e0e, e2be15f6c3ee)",
        effect: |m| {
            m.reclaim.dirty_count = DirtyCount::All;
            m.reclaim.batch_stall = BatchStall::Contents;
        },
    },
    Change {
        name: "no-wait-between-priorities",
        version: v(3, 11),
        commit: "8e9502828045",
        summary: "direct reclaimers wait for congestion after a batch, no longer after a priority",
        effect: |m| {
            m.reclaim.direct_wait = DirectWait::None;
        },
    },
    Change {
        name: "tail-dirty",
        version: v(3, 11),
        commit: "d43006d503ac",
        summary: "kswapd writes file pages when it meets nothing but dirty ones",
        effect: |m| {
            m.writeback.reclaim_file_writes = ReclaimFileWrites::TailDirty;
        },
    },
    Change {
        name: "ssd-clusters",
        version: v(3, 12),
        commit: "2a8f94493432",
        summary: "solid-state swap is allocated by clusters, one per CPU (ebc2a1a69111)",
        effect: |m| {
            m.swap.swap_allocator = SwapAllocator::ClusterList;
        },
    },
    Change {
        name: "fair-zone-allocator",
        version: v(3, 12),
        commit: "81c0a2bb515f",
        summary: "zones of a node take turns",
        effect: |m| {
            m.zones.fair_zones = FairZones::On;
        },
    },
    Change {
        name: "context-readahead",
        version: v(3, 12),
        commit: "2cad40180197",
        summary: "random reads next to pages in memory are no longer taken for streams",
        effect: |m| {
            m.files.context_readahead = ContextReadahead::MoreThanWanted;
        },
    },
    Change {
        name: "strictlimit",
        version: v(3, 12),
        commit: "5a53748568f7",
        summary: "a device may be held to its share of dirty pages; the position of all of them at most doubles rates",
        effect: |m| {
            m.writeback.strictlimit = Strictlimit::On;
            m.writeback.position_ratio = PositionRatio::Clamped;
        },
    },
    Change {
        name: "swapin_nr_pages",
        version: v(3, 14),
        commit: "579f82901f6f",
        summary: "swap-in window from the hits of the last one",
        effect: |m| {
            m.swap.swapin_readahead = SwapinReadahead::SwapinNrPages;
        },
    },
    Change {
        name: "anon-not-dirtyable",
        version: v(3, 14),
        commit: "a1c3bfb2f67e",
        summary: "dirty limits count file pages only",
        effect: |m| {
            m.writeback.dirtyable = Dirtyable::FileOnly;
        },
    },
    Change {
        name: "reserve-off-free-pages",
        version: v(3, 14),
        commit: "a804552b9a15",
        summary: "reserves are taken off free memory, not off the page cache",
        effect: |m| {
            m.writeback.dirty_reserve = DirtyReserve::Free;
        },
    },
    Change {
        name: "file-workingset",
        version: v(3, 15),
        commit: "a528910e12ec",
        summary: "a file page that comes back soon after its eviction starts active",
        effect: |m| {
            m.reclaim.workingset = Workingset::File;
        },
    },
    Change {
        name: "fault-around",
        version: v(3, 15),
        commit: "8c6e50b0290c",
        summary: "a read fault on a file maps what is in memory around it",
        effect: |m| {
            m.files.fault_around = FaultAround::On;
        },
    },
    Change {
        name: "proportional-direct-reclaim",
        version: v(3, 16),
        commit: "1a501907bbea",
        summary: "direct reclaim scans in proportion, and its whole share at the first priority",
        effect: |m| {
            m.reclaim.scan_target = ScanTarget::ProportionalDirect;
        },
    },
    Change {
        name: "no-wait-for-unqueued-dirty",
        version: v(3, 18),
        commit: "b738d764652d",
        summary: "reclaimers do not wait for dirty pages that are not being written",
        effect: |m| {
            m.reclaim.batch_stall = BatchStall::Immediate;
        },
    },
    Change {
        name: "odd-divisors",
        version: v(4, 1),
        commit: "464d1387acb9",
        summary: "limits close to each other do not divide by zero (with d5c9fde3dae7, 3.15)",
        effect: |m| {
            m.writeback.position_ratio = PositionRatio::OddDivisors;
        },
    },
    Change {
        name: "one-position-ratio",
        version: v(4, 2),
        commit: "daddfa3cb30e",
        summary: "the position ratio is computed once for each call of balance_dirty_pages()",
        effect: |m| {
            m.writeback.position_time = PositionTime::BeforeSample;
        },
    },
    Change {
        name: "cgroup-writeback",
        version: v(4, 2),
        commit: "c2aa723a6093",
        summary: "memory cgroups have dirty limits and flushers of their own (52ebea749aae, 841710aa6e4a)",
        effect: |m| {
            m.writeback.cgroup_writeback = CgroupWriteback::Domains;
        },
    },
    Change {
        name: "requests-of-1280k",
        version: v(4, 3),
        commit: "d2be537c3ba3",
        summary: "requests of large folios, which come later, grow to 1280 KiB",
        effect: |m| {
            m.block.max_sectors = MaxSectors::Sectors2560;
        },
    },
    Change {
        name: "order-0-watermarks",
        version: v(4, 4),
        commit: "97a16fc82a7c",
        summary: "one free block is enough for a high order",
        effect: |m| {
            m.zones.watermark_order = WatermarkOrder::FreeBlock;
        },
    },
    Change {
        name: "sync-keeps-errors",
        version: v(4, 4),
        commit: "aa750fd71c24",
        summary: "sync(2) leaves writeback errors to callers that return them",
        effect: |m| {
            m.writeback.sync_errors = SyncErrors::Kept;
        },
    },
    Change {
        name: "watermark-scale-factor",
        version: v(4, 6),
        commit: "795ae7a0de6b",
        summary: "watermarks lie further apart on large machines",
        effect: |m| {
            m.zones.watermark_gap = WatermarkGap::ScaleFactor;
        },
    },
    Change {
        name: "smaller-inactive-list",
        version: v(4, 7),
        commit: "59dc76b0d4df",
        summary: "the inactive share shrinks with the size of the lists",
        effect: |m| {
            m.reclaim.inactive_ratio = InactiveRatio::ListSize;
        },
    },
    Change {
        name: "writes-do-not-activate",
        version: v(4, 7),
        commit: "bbddabe2e436",
        summary: "a page that is written again and again stays inactive; reads alone activate",
        effect: |m| {
            m.reclaim.write_access = WriteAccess::Ignored;
        },
    },
    Change {
        name: "bounded-alloc-retry",
        version: v(4, 7),
        commit: "0a0337e0d1d1",
        summary: "allocation gives up after sixteen rounds without progress",
        effect: |m| {
            m.zones.alloc_retry = AllocRetry::Bounded;
            m.zones.alloc_wait = AllocWait::None;
        },
    },
];
