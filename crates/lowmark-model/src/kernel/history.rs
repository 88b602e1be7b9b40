//! The changes of the kernel that the model knows, one row each.

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change from 4.8 to 6.5, oldest first.
pub(super) const BEFORE_6_6: &[Change] = &[
    Change {
        name: "node-lru",
        version: v(4, 8),
        commit: "599d0c954f91",
        summary: "LRU lists, kswapd and its wake-up test are per node",
        effect: |m| {
            m.reclaim.lru_unit = LruUnit::Node;
            m.kswapd.balance_pgdat = BalancePgdat::Node;
            m.kswapd.kswapd_wake = KswapdWake::NodeNotBalanced;
        },
    },
    Change {
        name: "activate-swapped-in",
        version: v(4, 8),
        commit: "1a8018fb4c69",
        summary: "anonymous pages that are mapped after they were read from swap are active",
        effect: |m| {
            m.reclaim.swapped_in = SwappedIn::Active;
        },
    },
    Change {
        name: "dirty-pages-by-node",
        version: v(4, 8),
        commit: "281e37265f28",
        summary: "dirty pages are limited to a part of each node's memory, not of each zone's",
        effect: |m| {
            m.writeback.dirty_spread = DirtySpread::Node;
        },
    },
    Change {
        name: "no-fair-zone-allocator",
        version: v(4, 8),
        commit: "e6cbd7f2efb4",
        summary: "the highest zone comes first again",
        effect: |m| {
            m.zones.fair_zones = FairZones::Off;
        },
    },
    Change {
        name: "timers-never-early",
        version: v(4, 8),
        commit: "500462a9de65",
        summary: "timers go off a jiffy later, those of 63 jiffies and more up to an eighth",
        effect: |m| {
            m.sched.timer_wheel = TimerWheel::Rounded;
        },
    },
    Change {
        name: "precise-dirty-ratios",
        version: v(4, 8),
        commit: "62a584fe05ee",
        summary: "ratios of dirty memory are rounded to 1/4096",
        effect: |m| {
            m.writeback.dirty_ratios = DirtyRatios::PageParts;
        },
    },
    Change {
        name: "no-throttle-of-writeout",
        version: v(4, 9),
        commit: "bf48438354a7",
        summary: "reclaimers do not wait because more is being written than dirty memory may be",
        effect: |m| {
            m.reclaim.vm_writeout = VmWriteout::Free;
        },
    },
    Change {
        name: "cfq-expired-first",
        version: v(4, 9),
        commit: "3932a86b4b9d",
        summary: "CFQ does not end the turn of async requests before one that has waited for too long",
        effect: |m| {
            m.block.expired_request = ExpiredRequest::HoldsTurn;
        },
    },
    Change {
        name: "flush-large-plugged-requests",
        version: v(4, 10),
        commit: "50d24c34403c",
        summary: "a plug with a request of 128 KiB is not kept for the next one",
        effect: |m| {
            m.block.plug_flush = PlugFlush::LargeRequest;
        },
    },
    Change {
        name: "swap-slot-cache",
        version: v(4, 11),
        commit: "67afa38e012e",
        summary: "each CPU takes swap slots 64 at a time",
        effect: |m| {
            m.swap.swap_slots = SwapSlots::Cache;
        },
    },
    Change {
        name: "activate-tail-writeback",
        version: v(4, 11),
        commit: "c55e8d035b28",
        summary: "pages under writeback are moved out of reclaim's way",
        effect: |m| {
            m.reclaim.tail_writeback = TailWriteback::Activate;
        },
    },
    Change {
        name: "flushers-by-dirty-batch",
        version: v(4, 11),
        commit: "726d061fbd36",
        summary: "a batch of nothing but dirty pages wakes the flushers, not what direct reclaim has scanned",
        effect: |m| {
            m.writeback.flusher_wakeup = FlusherWakeup::DirtyBatch;
        },
    },
    Change {
        name: "write-what-was-seen-twice",
        version: v(4, 11),
        commit: "4eda48235011",
        summary: "kswapd writes only dirty pages that it meets for the second time",
        effect: |m| {
            m.writeback.reclaim_file_writes = ReclaimFileWrites::SeenTwice;
        },
    },
    Change {
        name: "clear-node-writeback",
        version: v(4, 11),
        commit: "c2f83143f1c6",
        summary: "a balanced node is not taken for one under writeback",
        effect: |m| {
            m.kswapd.node_writeback = NodeWriteback::Balanced;
        },
    },
    Change {
        name: "kswapd-sleep-any-zone",
        version: v(4, 12),
        commit: "631b6e083ec3",
        summary: "one balanced zone lets kswapd sleep",
        effect: |m| {
            m.kswapd.kswapd_classzone = KswapdClasszone::Clear;
        },
    },
    Change {
        name: "kswapd-keep-awake",
        version: v(4, 12),
        commit: "e716f2eb24de",
        summary: "kswapd remembers the class it worked for",
        effect: |m| {
            m.kswapd.kswapd_classzone = KswapdClasszone::KeepAwake;
        },
    },
    Change {
        name: "kswapd-failures",
        version: v(4, 12),
        commit: "c73322d098e4",
        summary: "kswapd gives up on a node after 16 consecutive runs that reclaim nothing",
        effect: |m| {
            m.kswapd.hopeless_node = HopelessNode::Failures;
        },
    },
    Change {
        name: "refault-deactivation",
        version: v(4, 12),
        commit: "2a2e48854d70",
        summary: "active file pages are shrunk while file pages come back too soon",
        effect: |m| {
            m.reclaim.refault_deactivation = RefaultDeactivation::File;
        },
    },
    Change {
        name: "skipped-pages-count",
        version: v(4, 12),
        commit: "791b48b64232",
        summary: "pages skipped because their zone is above the request's count as scanned",
        effect: |m| {
            m.zones.skipped_pages = SkippedPages::Counted;
        },
    },
    Change {
        name: "lazyfree-on-file-list",
        version: v(4, 12),
        commit: "f7ad2a6cb9f7",
        summary: "pages of MADV_FREE wait on the inactive list of files to be dropped (802a3a92ad7a)",
        effect: |m| {
            m.reclaim.lazyfree = Lazyfree::InactiveFile;
        },
    },
    Change {
        name: "errseq",
        version: v(4, 13),
        commit: "5660e13d2fd6",
        summary: "every open file is told of an error of writeback once (84cbadadc6ea)",
        effect: |m| {
            m.writeback.writeback_errors = WritebackErrors::OpenFile;
        },
    },
    Change {
        name: "nfs-commit-after-writeback",
        version: v(4, 14),
        commit: "919e3bd9a875",
        summary: "the end of a turn's writes to a server is followed by a COMMIT; a file may have several at once",
        effect: |m| {
            m.nfs.nfs_commit = NfsCommit::AfterWriteback;
        },
    },
    Change {
        name: "vma-readahead",
        version: v(4, 14),
        commit: "ec560175c0b6",
        summary: "neighbours in the region are read ahead, not those in swap",
        effect: |m| {
            m.swap.swapin_readahead = SwapinReadahead::Vma;
        },
    },
    Change {
        name: "bounded-wait-for-isolated-pages",
        version: v(4, 14),
        commit: "db73ee0d4637",
        summary: "direct reclaim waits once for isolated pages, not until they are back",
        effect: |m| {
            m.reclaim.isolated_wait = IsolatedWait::Once;
        },
    },
    Change {
        name: "waits-after-passes",
        version: v(4, 17),
        commit: "d108c7721fbd",
        summary: "whether reclaimers wait for writeback or congestion depends on what kswapd found in a whole pass over the node, not on a batch (e3c1ac586c9a)",
        effect: |m| {
            m.reclaim.batch_stall = BatchStall::Pass;
        },
    },
    Change {
        name: "errseq-unseen",
        version: v(4, 17),
        commit: "b4678df184b3",
        summary: "a file opened after an error is told of it, if no caller was before",
        effect: |m| {
            m.writeback.writeback_errors = WritebackErrors::EveryOpenFile;
        },
    },
    Change {
        name: "watermark-boost",
        version: v(5, 0),
        commit: "1c30844d2dfe",
        summary: "watermarks are boosted when pageblocks are mixed (73444bc4d8f9)",
        effect: |m| {
            m.zones.watermark_boost = WatermarkBoost::AllZones;
        },
    },
    Change {
        name: "blk-mq-alone",
        version: v(5, 0),
        commit: "a1ce35fa4985",
        summary: "block devices have tags for requests of all kinds, whose sleepers are woken eight at a time; none is congested",
        effect: |m| {
            m.block.request_tags = RequestTags::QueueBatches;
        },
    },
    Change {
        name: "kblockd-dispatches",
        version: v(5, 0),
        commit: "a1ce35fa4985",
        summary: "kblockd gives a device the requests of an elevator, unless they were plugged",
        effect: |m| {
            m.block.dispatch = Dispatch::Kblockd;
        },
    },
    Change {
        name: "kswapd-remembers-class",
        version: v(5, 2),
        commit: "dffcac2cb88e",
        summary: "kswapd keeps its class when no allocation asks for one, and takes a lower one that is asked for",
        effect: |m| {
            m.kswapd.kswapd_classzone = KswapdClasszone::Remembers;
        },
    },
    Change {
        name: "overcommit-total",
        version: v(5, 2),
        commit: "8c7829b04c52",
        summary: "a map is refused if it is larger than RAM and swap, not if it is larger than what is free of them",
        effect: |m| {
            m.zones.overcommit = Overcommit::Total;
        },
    },
    Change {
        name: "scan-control-per-node",
        version: v(5, 5),
        commit: "b91ac374346b",
        summary: "which lists to scan and to shrink is decided for a node at once (b910718a948a)",
        effect: |m| {
            m.reclaim.scan_control = ScanControlTime::Node;
        },
    },
    Change {
        name: "no-boost-of-small-zones",
        version: v(5, 7),
        commit: "14f69140ff9c",
        summary: "watermarks of zones of less than four pageblocks are not boosted",
        effect: |m| {
            m.zones.watermark_boost = WatermarkBoost::FourBlocks;
        },
    },
    Change {
        name: "dma-pools",
        version: v(5, 8),
        commit: "c84dc6e68a1d",
        summary: "there is a pool for devices in ZONE_DMA, too (1d659236fb43)",
        effect: |m| {
            m.zones.dma_pool = DmaPool::EachZone;
        },
    },
    Change {
        name: "lru-cost-model",
        version: v(5, 8),
        commit: "314b57fb0460",
        summary: "anon and file share the scanning by the I/O that each has caused (1431d4d11abb, 96f8bf4fb1dd)",
        effect: |m| {
            m.reclaim.scan_balance = ScanBalance::IoCost;
        },
    },
    Change {
        name: "min-free-256m",
        version: v(5, 8),
        commit: "ee8eb9a5fe863",
        summary: "min_free_kbytes becomes up to 256 MB by itself",
        effect: |m| {
            m.zones.min_free_bound = MinFreeBound::Megabytes256;
        },
    },
    Change {
        name: "no-nr-unstable-nfs",
        version: v(5, 8),
        commit: "8d92890bd6b8",
        summary: "pages that wait for a COMMIT count as being written, not as dirty",
        effect: |m| {
            m.nfs.nfs_unstable = NfsUnstable::Writeback;
        },
    },
    Change {
        name: "anon-inactive-first",
        version: v(5, 9),
        commit: "b518154e59aa",
        summary: "new anonymous pages and those read from swap are inactive, and are activated by their second reference",
        effect: |m| {
            m.reclaim.new_anon = NewAnon::Inactive;
            m.reclaim.swapped_in = SwappedIn::Inactive;
            m.reclaim.page_references = PageReferences::SecondLook;
        },
    },
    Change {
        name: "proactive-compaction",
        version: v(5, 9),
        commit: "facdaa917c4d",
        summary: "kcompactd compacts memory that is too fragmented, without a request for a block",
        effect: |m| {
            m.blocks.proactive_compaction = ProactiveCompaction::On;
        },
    },
    Change {
        name: "anon-workingset",
        version: v(5, 9),
        commit: "aae466b0052e",
        summary: "evicted anonymous pages are remembered in their swap slots (170b04b7ae49, 3852f6768ede)",
        effect: |m| {
            m.reclaim.workingset = Workingset::All;
            m.reclaim.refault_deactivation = RefaultDeactivation::All;
        },
    },
    Change {
        name: "reserve-first-megabyte",
        version: v(5, 13),
        commit: "f1d4d47c5851",
        summary: "the first megabyte of a PC is never managed",
        effect: |m| {
            m.zones.first_megabyte = FirstMegabyte::All;
        },
    },
    Change {
        name: "xfs-without-writepage",
        version: v(5, 15),
        commit: "21b4ee7029c9",
        summary: "reclaim cannot have a page of a file on XFS written",
        effect: |m| {
            m.files.xfs_writepage = XfsWritepage::None;
        },
    },
    Change {
        name: "reliable-bandwidth",
        version: v(5, 15),
        commit: "45a2966fd641",
        summary: "the bandwidth of a device is measured when writes complete, not while it idles (fee468fdf41c)",
        effect: |m| {
            m.writeback.bandwidth_sampling = BandwidthSampling::Completions;
        },
    },
    Change {
        name: "reclaim-throttle",
        version: v(5, 16),
        commit: "8cd7c588decf",
        summary: "reclaimers wait for writeback, progress or isolated pages instead of for congestion (d818fca1cac3, 69392a403f49)",
        effect: |m| {
            m.reclaim.reclaim_stall = ReclaimStall::Throttle;
        },
    },
    Change {
        name: "plug-32-requests",
        version: v(5, 16),
        commit: "ba0ffdd8ce48",
        summary: "a plug holds 32 requests",
        effect: |m| {
            m.block.plug_flush = PlugFlush::MoreRequests;
        },
    },
    Change {
        name: "merge-with-newest-plugged",
        version: v(5, 16),
        commit: "d38a9c04c0d5",
        summary: "bios are merged with the newest plugged request of their queue alone (5b2050718d09)",
        effect: |m| {
            m.block.plug_merge = PlugMerge::Newest;
        },
    },
    Change {
        name: "virtio-lists-in-chunks",
        version: v(5, 16),
        commit: "02746e26c39e",
        summary: "virtio disks allocate the list of a request's pieces, in chunks of 128",
        effect: |m| {
            m.zones.virtio_memory = VirtioMemory::Chunks;
        },
    },
    Change {
        name: "min-free-after-khugepaged",
        version: v(5, 16),
        commit: "bd3400ea173f",
        summary: "without huge pages min_free_kbytes is computed again when khugepaged is not started",
        effect: |m| {
            m.zones.min_free_without_thp = MinFreeWithoutThp::Again;
        },
    },
    Change {
        name: "refaults-read-old-counters",
        version: v(5, 18),
        commit: "9b3016154c91",
        summary: "refaults do not bring the counters of memory cgroups up to date",
        effect: |m| {
            m.reclaim.lruvec_stats = LruvecStats::BeforeReclaim;
        },
    },
    Change {
        name: "nfs-holds-flusher",
        version: v(5, 18),
        commit: "6df25e58532b",
        summary: "while too much is under way to a server the flusher adds nothing",
        effect: |m| {
            m.nfs.nfs_congestion = NfsCongestion::Flusher;
        },
    },
    Change {
        name: "no-wait-for-mappings",
        version: v(5, 19),
        commit: "6d4675e60135",
        summary: "reclaim leaves a page alone whose mappings another task is changing, as a task that splits a huge page does",
        effect: |m| {
            m.reclaim.rmap_lock = RmapLock::Keeps;
        },
    },
    Change {
        name: "background-before-pause",
        version: v(6, 0),
        commit: "ea6813be07dc",
        summary: "writers start background writeback before they pause (e92eebbb0921)",
        effect: |m| {
            m.writeback.balance_loop = BalanceLoop::AtBegin;
        },
    },
    Change {
        name: "scan-balance-counts-work",
        version: v(6, 2),
        commit: "0538a82c39e9",
        summary: "pages that are scanned but not reclaimed count as a cost of their type",
        effect: |m| {
            m.reclaim.scan_balance = ScanBalance::WorkCost;
        },
    },
    Change {
        name: "ext4-without-writepage",
        version: v(6, 2),
        commit: "dae999602eeb",
        summary: "reclaim cannot have a page of a file on ext4 written",
        effect: |m| {
            m.files.ext4_writepage = Ext4Writepage::None;
        },
    },
    Change {
        name: "one-counter-of-tags",
        version: v(6, 2),
        commit: "4f8126bb2308",
        summary: "requests that are done are counted together for all tasks that wait for one (26edb30dd1c0); stable kernels of 6.1 have this, too",
        effect: |m| {
            m.block.request_tags = RequestTags::Batches;
        },
    },
    Change {
        name: "vma-has-recency",
        version: v(6, 3),
        commit: "8788f6781486",
        summary: "references by mappings with MADV_RANDOM do not count either",
        effect: |m| {
            m.reclaim.vma_recency = VmaRecency::NoAdvice;
        },
    },
    Change {
        name: "pageblocks-are-finished",
        version: v(6, 3),
        commit: "cfccd2e63e7e",
        summary: "compaction isolates all that is left of a pageblock of which a page could not be moved, and leaves it alone then",
        effect: |m| {
            m.blocks.failed_migration = FailedMigration::FinishesPageblock;
        },
    },
    Change {
        name: "compound-pages-are-scanned",
        version: v(6, 4),
        commit: "56d48d8dbefb",
        summary: "all frames of free blocks and compound pages that compaction goes past count as scanned",
        effect: |m| {
            m.blocks.compact_counts = CompactCounts::Frames;
        },
    },
    Change {
        name: "nearly-free-blocks-first",
        version: v(6, 5),
        commit: "90ed667c03fe",
        summary: "compaction goes through a pageblock that it has found to be nearly free instead of leaving it alone (7efc3b726103, which 6.1 had at first and stable kernels of 6.1 have not)",
        effect: |m| {
            m.blocks.fast_migrateblock = FastMigrateblock::Taken;
        },
    },
];
