//! Blocks of several pages: the allocator's slow path for them, reclaim and kswapd for their sake, compaction.

macro_rules! blocks {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Blocks of several pages: the allocator's slow path for them, reclaim and kswapd for their sake, compaction.
            blocks: Blocks {
                /// When an allocation of a block compacts, and when it fails without reclaiming (`__alloc_pages_slowpath`). A
                /// *light* allocation wakes no kswapd.
                block_slow_path: BlockSlowPath within compaction {
                    /// It compacts once, before it reclaims, and only for blocks of 16 pages and more.
                    OneCompaction = "one-compaction",
                    /// It compacts for any block before it reclaims, and once more when it would not try again.
                    SecondCompaction = "second-compaction",
                    /// The same; a light allocation fails where compaction is put off.
                    LightGivesUp = "light-gives-up",
                    /// The same, and a huge page for a fault is compacted for without waiting, both times.
                    FaultsStayAsync = "faults-stay-async",
                    /// It compacts before it reclaims for 16 pages and more, or what cannot be moved, and then after each time that
                    /// it reclaims. For 16 pages and more, one with `__GFP_NORETRY` fails where compaction is put off.
                    ByPriority = "by-priority",
                    /// The same; a pageblock is not reclaimed for either where compaction is put off or lacks room.
                    PageblocksGiveUp = "pageblocks-give-up",
                    /// Compaction by priority; one with `__GFP_NORETRY` fails where it is put off or lacks room.
                    NoretryGivesUp = "noretry-gives-up",
                }
                /// When an allocation that wants a block tries again because of what compaction came to
                /// (`should_compact_retry`).
                compact_retry: CompactRetry within compaction {
                    /// Never.
                    Never = "never",
                    /// As long as compaction could go on, or makes blocks that others take, sixteen times.
                    Feedback = "feedback" needs(zones.alloc_retry = AllocRetry::Bounded),
                    /// The same, and with a higher priority when compaction failed.
                    RaisesPriority = "raises-priority" needs(zones.alloc_retry = AllocRetry::Bounded),
                    /// The same; the highest priority goes through all of a zone, whatever is known of its pageblocks.
                    FullPriority = "full-priority" needs(zones.alloc_retry = AllocRetry::Bounded),
                    /// The same, and with a higher priority also when compaction gave up.
                    WithdrawnToo = "withdrawn-too" needs(zones.alloc_retry = AllocRetry::Bounded),
                }
                /// What becomes of an allocation from one node only that finds no free block (`__GFP_THISNODE`).
                node_bound: NodeBound {
                    /// With `__GFP_NORETRY` and `__GFP_NOWARN`, which is what it has (`GFP_THISNODE`), it fails.
                    GivesUp = "gives-up",
                    /// If it cannot wait, it fails, and wakes no kswapd.
                    CannotWait = "cannot-wait",
                    /// The same as of any other.
                    Ordinary = "ordinary",
                }
                /// What an allocation of a slab of several pages does that may wait and finds no free block, before it takes a
                /// slab of fewer (`allocate_slab`).
                slab_block: SlabBlock {
                    /// It wakes kswapd, and reclaims and compacts once (`__GFP_NORETRY`).
                    Reclaims = "reclaims",
                    /// It wakes kswapd.
                    Wakes = "wakes",
                    /// Nothing.
                    Nothing = "nothing",
                }
                /// Which slabs a CPU sets aside for itself besides the one from which it allocates, so that it frees and allocates
                /// objects without a lock (`put_cpu_partial`).
                cpu_slabs: CpuSlabs {
                    /// Nothing.
                    Current = "current",
                    /// Slabs with more than 30 free objects in all (2 to 13 if objects are larger), as counted when the CPU set each slab
                    /// aside. A slab that was full has one free object at that time, so these are some thirty slabs.
                    Objects = "objects",
                    /// A number of slabs: those that half full would have 120 free objects (6 to 52 if objects are larger).
                    Slabs = "slabs",
                }
                /// How much is reclaimed for a block, and when compaction is left to do the rest
                /// (`should_continue_reclaim`, `compaction_ready`).
                block_reclaim: BlockReclaim within compaction {
                    /// As for a single page.
                    Batch = "batch",
                    /// Twice the block, as long as something is freed, or more if compaction lacks room.
                    TwiceTheBlock = "twice-the-block",
                    /// The same; nothing where compaction has twice the block, and a gap, above the high watermark.
                    CompactionReady = "compaction-ready",
                    /// The same; a reclaimer that left a zone alone for that stops after this priority.
                    StopsReady = "stops-ready",
                    /// The same without the gap; nothing either where there is a block.
                    BlockReady = "block-ready",
                    /// The same; as long as compaction lacks room in all zones and there are inactive pages enough.
                    RoomAlone = "room-alone",
                }
                /// What kswapd does for blocks, and who compacts in the background.
                kswapd_blocks: KswapdBlocks {
                    /// kswapd reclaims until every zone has the block above its high watermark, or freed nothing.
                    EveryZone = "every-zone",
                    /// The same; a quarter of the node's pages in zones that have it is enough.
                    Quarter = "quarter",
                    /// Where compaction has room kswapd reclaims as for single pages, and then compacts. Its run begins anew as
                    /// long as compaction lacks room in any zone.
                    Compacts = "compacts",
                    /// The same; a zone is balanced only if compaction has room in it, and no run begins anew for that.
                    WeighsRoom = "weighs-room",
                    /// kswapd reclaims as for single pages, and wakes kcompactd when it goes to sleep.
                    Kcompactd = "kcompactd",
                    /// The same; kcompactd leaves out pageblocks that are known to have nothing to isolate.
                    HeedsHints = "heeds-hints",
                    /// The same; an allocation that cannot wait and finds pages enough wakes kcompactd, too.
                    OnRequest = "on-request",
                }
                /// Where the scanners of a pass begin, and what they know of pageblocks.
                compact_start: CompactStart within compaction {
                    /// At the ends of the zone.
                    ZoneEnds = "zone-ends",
                    /// The free scanner goes on where the last pass ended.
                    LastFree = "last-free",
                    /// Both scanners do, and leave out pageblocks in which they found nothing, until kswapd sleeps.
                    SkipHints = "skip-hints",
                    /// The same; passes that may not wait have a position of their own for the migrate scanner.
                    OwnPosition = "own-position",
                }
                /// How scanners go through pageblocks.
                compact_scan: CompactScan within compaction {
                    /// Frame by frame; all that is free in a pageblock is isolated.
                    WholeBlocks = "whole-blocks",
                    /// The same, but no more is isolated than is needed.
                    AsNeeded = "as-needed",
                    /// Pageblocks are found through the lists of free blocks; one that was begun is finished.
                    FreeLists = "free-lists",
                }
                /// What scanners look at of every pageblock that they come to, before they know whether to go through it.
                pageblock_check: PageblockCheck within compaction {
                    /// Its first frame. From 4.6 on that is so in zones without holes, which those of the model are.
                    FirstFrame = "first-frame",
                    /// The frames at both ends, to tell whether it belongs to the zone (`pageblock_pfn_to_page`).
                    BothEnds = "both-ends",
                }
                /// Where the free scanner goes on from a free block that is refused because too few pages would be left
                /// (`isolate_freepages_block`).
                refused_block: RefusedBlock within compaction {
                    /// Behind the block: smaller ones in the same pageblock may do.
                    Passed = "passed",
                    /// At the block, when compaction needs free pages again: the scanner isolates nothing more now.
                    Ends = "ends",
                }
                /// What compaction does about an anonymous page that a task holds beside those that map it
                /// (`isolate_migratepages`).
                compact_held: CompactHeld within compaction {
                    /// It is isolated, and cannot be moved.
                    Isolated = "isolated",
                    /// It is left on its list, unless it is in the swap cache.
                    Left = "left",
                }
                /// What compaction does about unevictable pages, which in the model are those locked in memory
                /// (`isolate_migratepages_block`).
                compact_unevictable: CompactUnevictable within compaction {
                    /// They stay where they are.
                    Left = "left",
                    /// They are moved (`vm.compact_unevictable_allowed`, 1 by default).
                    Moved = "moved",
                }
                /// Which pageblocks a pass that may not wait migrates from.
                compact_async: CompactAsync within compaction {
                    /// All of them.
                    All = "all",
                    /// Movable ones.
                    Movable = "movable",
                    /// The same; the rest of a block of the size that is wanted is left alone as soon as a page cannot be moved.
                    BlockByBlock = "block-by-block",
                    /// The same in pageblocks of the allocation's own type.
                    OwnType = "own-type",
                }
                /// Whether compaction can help in a zone (`compaction_suitable`).
                compact_suitable: CompactSuitable within compaction {
                    /// First it is asked for room, twice the block above the low watermark, then for a block.
                    RoomFirst = "room-first",
                    /// First for a block above the low watermark; reserves against the allocation's class count.
                    BlockFirst = "block-first",
                    /// First for a block above the allocation's own watermark; up to 8 pages need less room, and may be short.
                    CostlyApart = "costly-apart",
                }
                /// When a pass has what it wants (`compact_finished`).
                compact_finish: CompactFinish within compaction {
                    /// When there is a block of the allocation's type, or a pageblock of any, above a watermark.
                    OwnList = "own-list",
                    /// The same, or a block of which the allocation could claim the pageblock.
                    Claimable = "claimable",
                    /// The same, whatever the watermark; a pageblock that is to be claimed is finished first.
                    NoWatermark = "no-watermark",
                    /// The same; every pageblock is finished first.
                    WholePageblock = "whole-pageblock",
                }
                /// When compaction is put off (`defer_compaction`).
                compact_defer: CompactDefer within compaction {
                    /// For all blocks, when it made none.
                    AnyFailure = "any-failure",
                    /// The same, unless it could not wait.
                    SyncFailure = "sync-failure",
                    /// The same for blocks as large as that and larger.
                    ByOrder = "by-order",
                    /// The same in each zone that it has gone through to the end.
                    ByZone = "by-zone",
                }
                /// What counts as `compact_stall`.
                compact_stalls: CompactStalls within compaction {
                    /// An attempt to compact, whatever came of it.
                    Entered = "entered",
                    /// One that compacted in a zone.
                    Done = "done",
                    /// The same, or that was put off in a zone.
                    NotSkipped = "not-skipped",
                }
                /// Which pages that kcompactd's scanners came to count as its own (`compact_daemon_*_scanned`).
                daemon_scans: DaemonScans within compaction {
                    /// Those for a block that was asked for.
                    Requests = "requests",
                    /// Also those without a request (`proactive_compact_node`).
                    All = "all",
                }
                /// What compaction does about a page that is being written.
                compact_writeback: CompactWriteback within compaction {
                    /// It waits for the page.
                    Waits = "waits",
                    /// The same, unless it may not wait.
                    SyncWaits = "sync-waits",
                    /// It leaves the page alone.
                    Skipped = "skipped",
                }
                /// Whether a block that a compacting task has made whole goes to it directly (`compaction_capture`).
                block_capture: BlockCapture within compaction {
                    /// It goes to the lists of free blocks.
                    Off = "off",
                    /// It does.
                    On = "on",
                }
                /// What compaction does about folios of several pages.
                folio_migration: FolioMigration within compaction {
                    /// It leaves them where they are.
                    Skipped = "skipped",
                    /// It moves them as they are, or splits them if there is no free block for them.
                    Whole = "whole",
                }
                /// Whether kcompactd compacts memory without a request for a block (`should_proactive_compact_node`).
                proactive_compaction: ProactiveCompaction within compaction {
                    /// It does not.
                    Off = "off",
                    /// It does where memory is fragmented beyond what `compaction_proactiveness` allows.
                    On = "on" needs(blocks.kswapd_blocks = KswapdBlocks::Kcompactd | KswapdBlocks::HeedsHints | KswapdBlocks::OnRequest),
                }
                /// What compaction does about a pageblock that it has found to be nearly free (`fast_find_migrateblock`).
                fast_migrateblock: FastMigrateblock within compaction {
                    /// Compaction marks the pageblock to be skipped, and then skips it.
                    MarkedFirst = "marked-first",
                    /// Compaction goes through it.
                    Taken = "taken" needs(blocks.compact_scan = CompactScan::FreeLists),
                }
                /// Where compaction goes on when a page of a pageblock could not be moved (`compact_zone`).
                failed_migration: FailedMigration within compaction {
                    /// Behind the page; a task that gives up soon leaves out the rest of the block of the size that is wanted.
                    SkipsBlock = "skips-block",
                    /// It isolates all that is left of the pageblock, which it then leaves alone.
                    FinishesPageblock = "finishes-pageblock" needs(blocks.compact_scan = CompactScan::FreeLists),
                }
                /// What counts as scanned of a free block or compound page in which there is nothing to isolate.
                compact_counts: CompactCounts within compaction {
                    /// One frame, its first.
                    Looks = "looks",
                    /// Each of its frames.
                    Frames = "frames",
                }
            }
        }
    };
}

pub(super) use blocks;
