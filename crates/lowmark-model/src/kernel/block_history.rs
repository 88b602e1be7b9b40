//! The changes of how blocks of several pages are allocated, reclaimed for and compacted, as in [`history`](super::history).

use super::change::{Change, v, v2_6};
use super::mechanisms::*;

/// Every change of the slow path for blocks and of compaction, oldest first.
pub(super) const BLOCKS: &[Change] = &[
    Change {
        name: "second-compaction",
        version: v2_6(38),
        commit: "77f1fe08bd85",
        summary: "an allocation of a block compacts for any order (c5a73c3d55be) without waiting at first, and waits when it compacts again after it has reclaimed",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::SecondCompaction;
            m.blocks.compact_defer = CompactDefer::SyncFailure;
            m.blocks.compact_writeback = CompactWriteback::SyncWaits;
        },
    },
    Change {
        name: "async-movable-blocks",
        version: v2_6(38),
        commit: "9927af740b1b",
        summary: "compaction that may not wait goes through movable pageblocks alone",
        effect: |m| {
            m.blocks.compact_async = CompactAsync::Movable;
        },
    },
    Change {
        name: "reclaim-compaction",
        version: v2_6(38),
        commit: "3e7d34497067",
        summary: "for a block twice as much is reclaimed, single pages, and compaction does the rest",
        effect: |m| {
            m.blocks.block_reclaim = BlockReclaim::TwiceTheBlock;
            m.reclaim.lumpy_reclaim = LumpyReclaim::Compaction;
        },
    },
    Change {
        name: "quarter-of-the-node",
        version: v2_6(38),
        commit: "1741c8775744",
        summary: "kswapd has done its work for a block when a quarter of the node's pages are in zones that have it (995047488155)",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::Quarter;
        },
    },
    Change {
        name: "sync-light",
        version: v(3, 3),
        commit: "a6bc32b89922",
        summary: "compaction for an allocation never waits for writeback",
        effect: |m| {
            m.blocks.compact_writeback = CompactWriteback::Skipped;
        },
    },
    Change {
        name: "light-gives-up",
        version: v(3, 3),
        commit: "66199712e9ee",
        summary: "an allocation that wakes no kswapd fails without reclaim where compaction is put off",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::LightGivesUp;
        },
    },
    Change {
        name: "compaction-ready",
        version: v(3, 3),
        commit: "fe4b1b244bdb",
        summary: "direct reclaim for a block leaves a zone alone in which compaction has room (e0c23279c9f8)",
        effect: |m| {
            m.blocks.block_reclaim = BlockReclaim::CompactionReady;
        },
    },
    Change {
        name: "defer-by-order",
        version: v(3, 4),
        commit: "aff622495c9a",
        summary: "compaction is put off for blocks that it could not make, not for smaller ones",
        effect: |m| {
            m.blocks.compact_defer = CompactDefer::ByOrder;
        },
    },
    Change {
        name: "kswapd-at-order-0",
        version: v(3, 4),
        commit: "fe2c2a106663",
        summary: "kswapd reclaims as for single pages where compaction has room, and then compacts (7be62de99adc)",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::Compacts;
        },
    },
    Change {
        name: "compaction-goes-on",
        version: v(3, 6),
        commit: "7db8889ab05b",
        summary: "the free scanner goes on where the last pass left off",
        effect: |m| {
            m.blocks.compact_start = CompactStart::LastFree;
        },
    },
    Change {
        name: "pageblock-skip",
        version: v(3, 7),
        commit: "c89511ab2f8f",
        summary: "both scanners go on where the last pass left off, and leave out pageblocks that had nothing to isolate (bb13ffeb9f6b, 62997027ca5b)",
        effect: |m| {
            m.blocks.compact_start = CompactStart::SkipHints;
        },
    },
    Change {
        name: "zones-with-room",
        version: v(3, 7),
        commit: "60cefed485a0",
        summary: "kswapd calls a zone balanced for a block only if compaction has room in it, and looks at no zone again once the node is balanced (c702418f8a2f)",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::WeighsRoom;
        },
    },
    Change {
        name: "held-pages-not-isolated",
        version: v(3, 15),
        commit: "119d6d59dcc0",
        summary: "compaction leaves anonymous pages on their lists that a task holds",
        effect: |m| {
            m.blocks.compact_held = CompactHeld::Left;
        },
    },
    Change {
        name: "async-migrate-position",
        version: v(3, 16),
        commit: "35979ef33931",
        summary: "passes that may not wait have a position of their own for the migrate scanner",
        effect: |m| {
            m.blocks.compact_start = CompactStart::OwnPosition;
        },
    },
    Change {
        name: "huge-faults-stay-async",
        version: v(3, 16),
        commit: "75f30861a12a",
        summary: "compaction for a huge page never waits during a fault",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::FaultsStayAsync;
        },
    },
    Change {
        name: "stop-when-ready",
        version: v(3, 17),
        commit: "0b06496a33a6",
        summary: "a direct reclaimer stops after the priority at which it has left a zone to compaction, where it went on through all of them",
        effect: |m| {
            m.blocks.block_reclaim = BlockReclaim::StopsReady;
        },
    },
    Change {
        name: "defer-by-zone",
        version: v(3, 18),
        commit: "53853e2d2bfb",
        summary: "compaction is put off in each zone, not in all of them by what came of the preferred one",
        effect: |m| {
            m.blocks.compact_defer = CompactDefer::ByZone;
        },
    },
    Change {
        name: "stalls-compact",
        version: v(3, 18),
        commit: "98dd3b48a7b8",
        summary: "attempts to compact that compact in no zone do not count as stalls",
        effect: |m| {
            m.blocks.compact_stalls = CompactStalls::Done;
        },
    },
    Change {
        name: "free-scanner-as-needed",
        version: v(3, 18),
        commit: "e14c720efdd7",
        summary: "the free scanner remembers where it is within a pageblock, and isolates what is needed",
        effect: |m| {
            m.blocks.compact_scan = CompactScan::AsNeeded;
        },
    },
    Change {
        name: "pageblock-ends",
        version: v(3, 18),
        commit: "7d49d8868336",
        summary: "compaction looks at both ends of every pageblock to tell whether it belongs to the zone",
        effect: |m| {
            m.blocks.pageblock_check = PageblockCheck::BothEnds;
        },
    },
    Change {
        name: "block-before-room",
        version: v(3, 19),
        commit: "ebff398017c6",
        summary: "whether compaction can help in a zone depends on the class of the allocation; a block that is there is seen first",
        effect: |m| {
            m.blocks.compact_suitable = CompactSuitable::BlockFirst;
        },
    },
    Change {
        name: "node-bound-waits",
        version: v(4, 1),
        commit: "4167e9b2cf10",
        summary: "an allocation from one node alone that may wait reclaims and compacts there",
        effect: |m| {
            m.blocks.node_bound = NodeBound::CannotWait;
        },
    },
    Change {
        name: "claimable-block-ends-compaction",
        version: v(4, 1),
        commit: "2149cdaef6c0",
        summary: "compaction ends when there is a block of which the allocation could claim the pageblock",
        effect: |m| {
            m.blocks.compact_finish = CompactFinish::Claimable;
        },
    },
    Change {
        name: "unevictable-pages-move",
        version: v(4, 1),
        commit: "5bbe3547aa3b",
        summary: "compaction moves pages that are unevictable",
        effect: |m| {
            m.blocks.compact_unevictable = CompactUnevictable::Moved;
        },
    },
    Change {
        name: "slabs-do-not-reclaim",
        version: v(4, 4),
        commit: "45eb00cd3a03",
        summary: "an allocation of a slab of several pages reclaims for a smaller one only",
        effect: |m| {
            m.blocks.slab_block = SlabBlock::Wakes;
        },
    },
    Change {
        name: "kcompactd",
        version: v(4, 6),
        commit: "accf62422b3a",
        summary: "kcompactd compacts in kswapd's place (698b1b30642f)",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::Kcompactd;
        },
    },
    Change {
        name: "node-bound-is-ordinary",
        version: v(4, 6),
        commit: "444eb2a449ef",
        summary: "an allocation from one node alone that cannot wait wakes kswapd if its flags say so, and goes down to the min watermark",
        effect: |m| {
            m.blocks.node_bound = NodeBound::Ordinary;
        },
    },
    Change {
        name: "slabs-wake-nobody",
        version: v(4, 6),
        commit: "444eb2a449ef",
        summary: "an allocation of a slab of several pages wakes no kswapd before it takes a smaller one",
        effect: |m| {
            m.blocks.slab_block = SlabBlock::Nothing;
        },
    },
    Change {
        name: "pageblocks-of-whole-zones",
        version: v(4, 6),
        commit: "7cf91a98e607",
        summary: "compaction does not look at both ends of every pageblock of a zone without holes",
        effect: |m| {
            m.blocks.pageblock_check = PageblockCheck::FirstFrame;
        },
    },
    Change {
        name: "compaction-feedback",
        version: v(4, 7),
        commit: "33c2d21438da",
        summary: "an allocation of up to 8 pages tries again as long as compaction may help (7854ea6c28c6)",
        effect: |m| {
            m.blocks.compact_retry = CompactRetry::Feedback;
        },
    },
    Change {
        name: "compact-block-by-block",
        version: v(4, 7),
        commit: "fdd048e12c9a",
        summary: "compaction that may not wait leaves the rest of a block alone as soon as a page of it cannot be moved",
        effect: |m| {
            m.blocks.compact_async = CompactAsync::BlockByBlock;
        },
    },
    Change {
        name: "compact-priority",
        version: v(4, 8),
        commit: "a8161d1ed609",
        summary: "an allocation of a block compacts after it has reclaimed, with a priority that it raises (a5508cd83f10)",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::ByPriority;
            m.blocks.compact_retry = CompactRetry::RaisesPriority;
        },
    },
    Change {
        name: "free-scanner-refused",
        version: v(4, 8),
        commit: "66c64223ad4e",
        summary: "the free scanner ends at a free block that the watermark does not let it take, where it went on behind it",
        effect: |m| {
            m.blocks.refused_block = RefusedBlock::Ends;
        },
    },
    Change {
        name: "full-compact-priority",
        version: v(4, 9),
        commit: "9f7e3387939b",
        summary: "at the highest priority compaction goes through all pageblocks, whatever is known of them or their types",
        effect: |m| {
            m.blocks.compact_retry = CompactRetry::FullPriority;
        },
    },
    Change {
        name: "compact-own-watermark",
        version: v(4, 9),
        commit: "8348faf91f56",
        summary: "compaction goes by the watermark of the allocation, and needs less room for 8 pages and less (f2b8228c5f0b)",
        effect: |m| {
            m.blocks.compact_suitable = CompactSuitable::CostlyApart;
            m.blocks.block_reclaim = BlockReclaim::BlockReady;
        },
    },
    Change {
        name: "compact-own-type",
        version: v(4, 12),
        commit: "282722b0d258",
        summary: "compaction that may not wait goes through pageblocks of the allocation's type alone",
        effect: |m| {
            m.blocks.compact_async = CompactAsync::OwnType;
        },
    },
    Change {
        name: "finish-claimed-pageblock",
        version: v(4, 12),
        commit: "baf6a9a1db5a",
        summary: "a pageblock that an unmovable allocation is to claim is compacted to its end; watermarks do not count",
        effect: |m| {
            m.blocks.compact_finish = CompactFinish::NoWatermark;
        },
    },
    Change {
        name: "kcompactd-heeds-hints",
        version: v(4, 15),
        commit: "21dc7e023611",
        summary: "kcompactd leaves out pageblocks that had nothing to isolate",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::HeedsHints;
        },
    },
    Change {
        name: "kcompactd-on-request",
        version: v(4, 17),
        commit: "5ecd9d403ad0",
        summary: "an allocation that cannot wait wakes kcompactd where kswapd has nothing to do",
        effect: |m| {
            m.blocks.kswapd_blocks = KswapdBlocks::OnRequest;
        },
    },
    Change {
        name: "fast-scanners",
        version: v(5, 1),
        commit: "70b44595eafe",
        summary: "compaction finds pageblocks through the lists of free blocks (5a811889de10), and finishes those that it has begun (efe771c7603b)",
        effect: |m| {
            m.blocks.compact_scan = CompactScan::FreeLists;
            m.blocks.compact_finish = CompactFinish::WholePageblock;
        },
    },
    Change {
        name: "block-capture",
        version: v(5, 1),
        commit: "5e1f0f098b46",
        summary: "a block that a task has compacted for goes to it directly",
        effect: |m| {
            m.blocks.block_capture = BlockCapture::On;
        },
    },
    Change {
        name: "pageblocks-give-up",
        version: v(5, 4),
        commit: "b39d0ee2632d",
        summary: "nothing is reclaimed for a pageblock where compaction is put off or lacks room",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::PageblocksGiveUp;
        },
    },
    Change {
        name: "reclaim-for-room-alone",
        version: v(5, 4),
        commit: "1c6c15971e47",
        summary: "for a block memory is reclaimed only as long as compaction lacks room; an allocation raises the priority also when compaction gave up",
        effect: |m| {
            m.blocks.block_reclaim = BlockReclaim::RoomAlone;
            m.blocks.compact_retry = CompactRetry::WithdrawnToo;
        },
    },
    Change {
        name: "noretry-gives-up",
        version: v(5, 5),
        commit: "cc638f329ef6",
        summary: "an allocation with __GFP_NORETRY alone gives up where compaction is put off or lacks room",
        effect: |m| {
            m.blocks.block_slow_path = BlockSlowPath::NoretryGivesUp;
        },
    },
    Change {
        name: "deferred-stalls",
        version: v(5, 13),
        commit: "06dac2f467fe",
        summary: "attempts to compact that were put off count as stalls, those that lack room do not",
        effect: |m| {
            m.blocks.compact_stalls = CompactStalls::NotSkipped;
        },
    },
    Change {
        name: "count-proactive-scans",
        version: v(6, 3),
        commit: "1bfb7684db12",
        summary: "what kcompactd scans without a request counts as its own scans",
        effect: |m| {
            m.blocks.daemon_scans = DaemonScans::All;
        },
    },
    Change {
        name: "folio-compaction",
        version: v(6, 9),
        commit: "733aea0b3a7b",
        summary: "compaction moves folios of several pages as they are (ee6f62fd34f0)",
        effect: |m| {
            m.blocks.folio_migration = FolioMigration::Whole;
        },
    },
];
