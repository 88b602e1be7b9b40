//! Reclaim: LRU lists, scan balance, direct reclaim, writes from reclaim.

macro_rules! reclaim {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Reclaim: LRU lists, scan balance, direct reclaim, writes from reclaim.
            reclaim: Reclaim {
                /// What LRU lists, and kswapd's notion of balance, belong to.
                lru_unit: LruUnit {
                    /// Five lists per zone.
                    Zone = "zone",
                    /// Five lists per node.
                    Node = "node",
                }
                /// List on which a new anonymous page starts.
                new_anon: NewAnon {
                    /// Active.
                    Active = "active",
                    /// Inactive; promoted by its second reference. Merged in v5.9 with commit b518154e59aa.
                    Inactive = "inactive",
                }
                /// List on which an anonymous page is that a task maps which was read from swap (`do_swap_page`).
                swapped_in: SwappedIn {
                    /// The one that it was read to, the inactive one.
                    Inactive = "inactive",
                    /// The active one, unless it was read without any others: then it is on no list yet.
                    Active = "active",
                }
                /// What is remembered of evicted pages, so that those that come back soon start active
                /// (`workingset_eviction`, `workingset_refault`).
                workingset: Workingset {
                    /// Nothing.
                    Off = "off",
                    /// When a file page went. Soon is within as many evictions and activations as there are active
                    /// file pages.
                    File = "file",
                    /// The same of anonymous and shmem pages, in their swap slots. Soon is within the size of all
                    /// lists that the page competes with.
                    All = "all",
                }
                /// Which referenced pages at the inactive tail are activated at once (`page_check_references`).
                page_references: PageReferences {
                    /// Anonymous ones; shmem is treated as file.
                    Anon = "anon",
                    /// All swap-backed ones.
                    SwapBacked = "swap-backed",
                    /// None; anonymous pages, too, have to be found referenced twice.
                    SecondLook = "second-look",
                }
                /// When reclaim activates a file page that it finds referenced through several mappings at the inactive tail
                /// (`page_check_references`).
                shared_references: SharedReferences {
                    /// At its second reference, as any other file page.
                    SecondLook = "second-look",
                    /// At its first reference.
                    AtOnce = "at-once",
                }
                /// The same for a file page that was referenced through an executable mapping (`VM_EXEC`).
                executable_references: ExecutableReferences {
                    /// At its second reference, as any other file page.
                    SecondLook = "second-look",
                    /// At its first reference.
                    AtOnce = "at-once",
                }
                /// What reclaim does about a page whose mappings another task is changing (`folio_referenced`).
                rmap_lock: RmapLock {
                    /// It waits; in the model it goes on.
                    Waits = "waits",
                    /// It leaves the page on its list, as if it had been referenced.
                    Keeps = "keeps",
                }
                /// How many pages and huge pages a task holds that it has unmapped and not freed yet (`mmu_gather`).
                mmu_batches: MmuBatches {
                    /// None: they are free before another task gets the CPU.
                    Blocks = "blocks",
                    /// As many as one call unmaps.
                    Unbounded = "unbounded",
                    /// 9,698 at most.
                    Bounded = "bounded",
                }
                /// Where pages wait to be dropped whose content nobody needs (MADV_FREE, 854e9ed09ded, 4.5).
                lazyfree: Lazyfree {
                    /// On the inactive list of anonymous pages.
                    InactiveAnon = "inactive-anon",
                    /// On that of files, so that they go without swap and before pages that are needed.
                    InactiveFile = "inactive-file",
                }
                /// How much larger than the inactive list the active anon list may be (`inactive_is_low`).
                inactive_ratio: InactiveRatio {
                    /// isqrt(10 · GiB of the zone) for anon, 1 for file.
                    ZoneSize = "zone-size",
                    /// isqrt(10 · GiB of the two lists) for both.
                    ListSize = "list-size",
                }
                /// Whether plenty of inactive file pages spares anon (`get_scan_count`).
                enough_inactive_file: EnoughInactiveFile {
                    /// Both types are scanned in proportion.
                    Ignored = "ignored",
                    /// File only while the inactive file list is not low.
                    FileOnly = "file-only",
                }
                /// What decides the shares of anon and file where both are scanned (`get_scan_count`).
                scan_balance: ScanBalance {
                    /// The type of which less was found referenced is scanned more.
                    Rotated = "rotated",
                    /// The type that cost less is: pages written by reclaim, and refaults of pages that had been active.
                    IoCost = "io-cost",
                    /// The same, each of these counted 32 times, and every page scanned but not reclaimed once.
                    WorkCost = "work-cost",
                }
                /// What swappiness weighs where anon and file share the scanning (`get_scan_count`).
                swappiness_weight: SwappinessWeight {
                    /// swappiness + 1 for anon and 200 - swappiness + 1 for file: with 0, too, anonymous pages are scanned.
                    PlusOne = "plus-one",
                    /// What it says; with 0 the last priority, too, keeps to the shares.
                    Exact = "exact",
                }
                /// Whether a write counts as an access of the page that it writes to (`generic_perform_write`,
                /// `grab_cache_page_write_begin`).
                write_access: WriteAccess {
                    /// It does, as a read does: the second one activates the page.
                    Counts = "counts",
                    /// It does not: reads and references by page tables alone activate a page.
                    Ignored = "ignored",
                }
                /// Mappings whose references reclaim does not count (`page_referenced`,
                /// `zap_pte_range`).
                vma_recency: VmaRecency {
                    /// Those with MADV_SEQUENTIAL (4917e5d0499b, 2.6.29).
                    NotSequential = "not-sequential",
                    /// Those with MADV_RANDOM, too (`vma_has_recency`).
                    NoAdvice = "no-advice",
                }
                /// When it is decided which lists are to be scanned and which active ones shrunk
                /// (`prepare_scan_control`).
                scan_control: ScanControlTime {
                    /// Before each batch, by the state of its lists alone.
                    Batch = "batch",
                    /// Before the pass over a node, for all of it. Anon alone is scanned for want of file pages only if
                    /// there is inactive anon and no need to shrink active anon.
                    Node = "node" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// Whether refaults of pages that are then activated make reclaim shrink the active list, however long
                /// it is (`snapshot_refaults`).
                refault_deactivation: RefaultDeactivation {
                    /// They do not.
                    Off = "off",
                    /// Those of file pages.
                    File = "file" needs(reclaim.workingset = Workingset::File | Workingset::All),
                    /// Those of file and of anonymous pages, each for its own list.
                    All = "all" needs(reclaim.workingset = Workingset::All),
                }
                /// How old the counters of LRU lists are by which reclaim and refaults decide (`lruvec_page_state`).
                /// Since 5.15 each CPU counts for itself, and its counts are flushed every two seconds at least.
                lruvec_stats: LruvecStats {
                    /// As of now. From 5.15 to 5.17 every reader flushes first, if enough has changed.
                    Current = "current",
                    /// As of the last flush. Reclaim flushes before it decides, if enough has changed.
                    BeforeReclaim = "before-reclaim",
                    /// As of the last flush, two seconds at most.
                    Periodic = "periodic",
                }
                /// What a reclaimer does that makes no progress (`reclaim_throttle`).
                reclaim_stall: ReclaimStall {
                    /// It waits for congestion to pass. Where no queue is ever congested (blk-mq, from 5.0), a congestion wait
                    /// always takes its full timeout.
                    CongestionWait = "congestion-wait",
                    /// It waits for what it lacks: for writes to end, for others to make progress, for isolated pages
                    /// to come back.
                    Throttle = "throttle" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// Whether a reclaimer waits after each pass over lists while more pages are being written than dirty pages may be, and a
                /// tenth (`throttle_vm_writeout`).
                vm_writeout: VmWriteout {
                    /// A reclaimer waits by the dirty threshold of the moment, which is next to nothing where memory has no pages of files.
                    Threshold = "threshold",
                    /// A reclaimer waits by the smoothed dirty limit where that is higher than the threshold. The limit begins with the
                    /// threshold at boot from 3.5 on, and follows it down only while writers are held back.
                    Limit = "limit",
                    /// No reclaimer waits for that.
                    Free = "free",
                }
                /// How many pages others may have isolated before a direct reclaimer waits (`too_many_isolated`).
                isolated_limit: IsolatedLimit {
                    /// As many as are left on the list.
                    All = "all",
                    /// An eighth of those, for reclaimers that may do all I/O, as all of the model may.
                    Eighth = "eighth",
                }
                /// How long a direct reclaimer waits when too many pages are isolated (`shrink_inactive_list`).
                isolated_wait: IsolatedWait {
                    /// Until there are fewer.
                    Fewer = "fewer",
                    /// Once; if still too many are isolated, it gives up the batch.
                    Once = "once",
                }
                /// Whether a direct reclaimer that has gone through all priorities and freed nothing tries again
                /// (`do_try_to_free_pages`).
                fruitless_round: FruitlessRound {
                    /// The reclaimer gives up.
                    GivesUp = "gives-up",
                    /// The reclaimer goes through all priorities once more, and does not spare what `memory.low` protects. That
                    /// counts as another allocation stall.
                    Repeats = "repeats",
                    /// The reclaimer does so only if it has spared pages that `memory.low` protects.
                    RepeatsForLow = "repeats-for-low",
                }
                /// When a scan pass over the four lists stops (`shrink_lruvec`).
                scan_target: ScanTarget {
                    /// Direct reclaim at 32 pages below the first priority; kswapd has no target.
                    Unbounded = "unbounded",
                    /// Target reached: the smaller type stops, the larger is cut in proportion; kswapd aims at the
                    /// high watermark.
                    Proportional = "proportional",
                    /// The same for direct reclaim, which goes through its whole share at the first priority.
                    ProportionalDirect = "proportional-direct",
                }
                /// What becomes of the share of a list that is below a batch (`get_scan_count`).
                small_scan: SmallScan {
                    /// It is saved up until there are 32 pages (`nr_scan_try_batch`, before 246e87a93934, 3.0).
                    Saved = "saved",
                    /// It is scanned; a batch at least where kswapd had given up.
                    Forced = "forced",
                }
                /// How reclaim goes about a block of several pages, if that is costly or the priority is below 10
                /// (`set_lumpy_reclaim_mode`, from 2.6.38 to 3.4 `set_reclaim_mode`).
                lumpy_reclaim: LumpyReclaim {
                    /// Lumpy reclaim (5ad333eb66ff): as long as a pass over a zone lasts, active pages are taken beside
                    /// inactive ones, and references are ignored.
                    Whole = "whole" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// The same, but a page that has to be kept, unless for its writeback, ends it for the rest of the batch.
                    GivesUp = "gives-up" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// Pages are taken as single ones, until there are enough for compaction to go on; a last page that has
                    /// to be kept ends that, too. Without compaction it is lumpy reclaim that gives up.
                    Compaction = "compaction" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// Pages are taken as single ones, until there are enough for compaction, whatever is kept.
                    Never = "never",
                }
                /// Whether reclaim that takes a page takes the rest of its block as well (`isolate_lru_pages`).
                block_walk: BlockWalk {
                    /// Reclaim does, and goes past pages that are not to be had.
                    PastOthers = "past-others" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// Reclaim does, up to the first page that is not to be had.
                    ToFirstOther = "to-first-other" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// The same in lumpy reclaim alone: where there is compaction, never.
                    LumpyAlone = "lumpy-alone" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// Reclaim does not.
                    Never = "never",
                }
                /// What a direct reclaimer waits for that wants a block and could not free all pages of a batch, before it goes
                /// through them once more (`should_reclaim_stall`).
                sync_reclaim: SyncReclaim {
                    /// Up to 100 ms for congestion to pass, and then for each page that is being written or that it writes.
                    CongestionFirst = "congestion-first" needs(reclaim.lumpy_reclaim = LumpyReclaim::Whole | LumpyReclaim::GivesUp | LumpyReclaim::Compaction),
                    /// For each page that is being written or that it writes.
                    EachPage = "each-page" needs(reclaim.lumpy_reclaim = LumpyReclaim::Whole | LumpyReclaim::GivesUp | LumpyReclaim::Compaction),
                    /// For each page that is being written.
                    UnderWriteback = "under-writeback" needs(reclaim.lumpy_reclaim = LumpyReclaim::Whole | LumpyReclaim::GivesUp | LumpyReclaim::Compaction),
                    /// For nothing: it goes through them once.
                    Never = "never",
                }
                /// Whether a direct reclaimer that wants a costly block writes pages to a device whose queue is congested
                /// (`may_write_to_queue`).
                congested_queue: CongestedQueue {
                    /// It does not.
                    Spared = "spared",
                    /// It does, and waits there for free requests.
                    CostlyBlocks = "costly-blocks",
                }
                /// Whether a direct reclaimer waits between two priorities, below priority 10
                /// (`do_try_to_free_pages`).
                direct_wait: DirectWait {
                    /// It waits for congestion to pass, whether there is any or not (before 0e093d99763e, 2.6.37).
                    Always = "always",
                    /// It waits while a queue is congested, if that zone is marked as congested which has the most
                    /// pages under writeback. As posted: Mel Gorman, linux-mm, 15 September 2010, patch 8 of 8.
                    BusiestZone = "busiest-zone" needs(reclaim.congested_zone = CongestedZone::NoneLeft | CongestedZone::Dirty),
                    /// It waits while a queue is congested, if the first zone of the allocation is marked as congested.
                    Priority = "priority",
                    /// It does not wait.
                    None = "none",
                }
                /// When a zone is marked as congested (`ZONE_CONGESTED`). The mark goes when kswapd finds the zone balanced.
                congested_zone: CongestedZone {
                    /// Never (before 0e093d99763e, 2.6.37).
                    Never = "never",
                    /// When no dirty page of a batch could be written for congestion, also if there was none in it. As
                    /// posted: Mel Gorman, linux-mm, 15 September 2010, patch 8 of 8.
                    NoneLeft = "none-left",
                    /// The same, if there was a dirty page.
                    Dirty = "dirty",
                }
                /// Which pages of files that a reclaimer meets count as dirty (`shrink_page_list`).
                dirty_count: DirtyCount {
                    /// Dirty ones that it could write at once.
                    Writable = "writable",
                    /// All that are dirty or under writeback (`page_check_dirty_writeback`).
                    All = "all",
                }
                /// Whether a reclaimer waits after a batch with many dirty pages or pages under writeback
                /// (`shrink_inactive_list`).
                batch_stall: BatchStall {
                    /// It goes on (before 92df3a723f84, 3.2).
                    None = "none",
                    /// It waits if a queue is congested and enough pages are under writeback: the higher its priority, the
                    /// fewer.
                    Priority = "priority",
                    /// It waits if it met a page again before its writeback ended, or nothing but dirty pages that are not
                    /// being written. A direct reclaimer also waits whenever a queue is congested.
                    Contents = "contents" needs(reclaim.dirty_count = DirtyCount::All),
                    /// The same, but dirty pages that are not being written are no reason.
                    Immediate = "immediate" needs(reclaim.dirty_count = DirtyCount::All),
                    /// It goes on. kswapd waits after a whole pass over a node in which it met such a page, a direct reclaimer after
                    /// one if kswapd, or a reclaimer for the same group, met nothing but dirty pages of congested queues.
                    Pass = "pass" needs(reclaim.dirty_count = DirtyCount::All, reclaim.lru_unit = LruUnit::Node),
                }
                /// Block plug around a reclaim pass: pages written together become one request.
                reclaim_plug: ReclaimPlug {
                    /// None, as up to 3.1; commit 3da367c3e5fc brought it.
                    Off = "off",
                    /// Held over the pass.
                    On = "on" needs(block.plug = Plug::Task),
                }
                /// Where pages under writeback go when reclaim meets them at the inactive tail.
                tail_writeback: TailWriteback {
                    /// To the inactive head.
                    Keep = "keep",
                    /// To the active list, from where the end of their writeback brings them back.
                    Activate = "activate",
                }
            }
        }
    };
}

pub(super) use reclaim;
