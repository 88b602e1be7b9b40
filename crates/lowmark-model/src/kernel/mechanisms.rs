//! The mechanisms of reclaim and swap, one enum each.
//!
//! A variant's text says what the kernel does with it. Variants that were never merged say where they
//! were posted; for merged ones commit and version stand in [`super::versions::HISTORY`].

use super::KernelError;
use super::declare::mechanisms;

mechanisms! {
    /// How many pages around a swapped-out one are read with it (`swapin_readahead`).
    swapin_readahead: SwapinReadahead {
        /// Always the aligned block of 2^page_cluster slots (up to 3.13).
        Vanilla = "vanilla",
        /// One global score moved by hits, swap-ins and swap-outs scales page_cluster. Konstantin
        /// Khlebnikov, linux-mm, 6 September 2012; never merged.
        Konstantin = "konstantin",
        /// Misses and hits counted per anon_vma; above 100 the window is one page. Shaohua Li, linux-mm,
        /// 3 September 2012 (v4); in linux-next, never merged.
        Shaohua = "shaohua",
        /// Window halved or doubled by hits of the last one, the target counted as a hit. Hugh Dickins,
        /// linux-mm, 1 October 2012; found defective: the window cannot fall below two pages.
        HughOld = "hugh-old",
        /// Window from the hits since the last swap-in. Hugh Dickins, linux-mm, 14 November 2012.
        HughNew = "hugh-new",
        /// As hugh-new, but never less than half the window before (`swapin_nr_pages`).
        SwapinNrPages = "swapin-nr-pages",
        /// The same by neighbouring pages of the region, wherever their slots are, with hits counted per
        /// region; by slots still for shmem, and where any swap area rotates.
        Vma = "vma",
    }
    /// How a free slot is found on a solid-state swap area (`scan_swap_map`, `cluster_alloc_swap_entry`).
    swap_allocator: SwapAllocator {
        /// First run of 256 free slots from the current position on, else next fit.
        ScanSwapMap = "scan-swap-map",
        /// Aligned clusters of 256 slots from a free list, one current cluster per CPU.
        ClusterList = "cluster-list",
        /// Aligned clusters of 512 slots; when none is free those that are partly used, before any slot is
        /// searched for.
        FreeFirst = "free-first",
        /// The same, but those of which slots have been given up come before free ones.
        NonfullFirst = "nonfull-first",
    }
    /// How a free slot is found on a rotating swap area.
    rotating_swap: RotatingSwap {
        /// In runs of 256 free slots from the lowest one on, else the lowest one.
        LowestFree = "lowest-free",
        /// As on a solid-state one, with one current cluster for all CPUs.
        Clusters = "clusters",
    }
    /// Whether each CPU takes slots 64 at a time (`get_swap_page`).
    swap_slots: SwapSlots {
        /// One by one.
        Single = "single",
        /// 64 at a time while there are plenty. Slots that are given up go back at once; the kernel keeps up
        /// to 64 of them back, too.
        Cache = "cache",
    }
    /// When swap areas of one priority take turns (`get_swap_pages`, `swap_alloc_slow`).
    swap_turns: SwapTurns {
        /// After each slot, or after 64 where as many are taken at once.
        Allocation = "allocation",
        /// On solid-state areas when a CPU has filled its cluster, of which it has one at a time.
        Cluster = "cluster",
    }
    /// Whose LRU lists (and kswapd's idea of balance).
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
    /// By what anon and file share the scanning where both are scanned (`get_scan_count`).
    scan_balance: ScanBalance {
        /// The type of which less was found referenced is scanned more.
        Rotated = "rotated",
        /// The type that cost less is: pages written by reclaim, and refaults of pages that had been active.
        IoCost = "io-cost",
        /// The same, each of these counted 32 times, and every page scanned in vain once.
        WorkCost = "work-cost",
    }
    /// When it is decided which lists are to be scanned and which active ones shrunk
    /// (`prepare_scan_control`).
    scan_control: ScanControlTime {
        /// Before each batch, by the state of its lists alone.
        Batch = "batch",
        /// Before the pass over a node, for all of it. Anon alone is scanned for want of file pages only if
        /// there is inactive anon and no need to shrink active anon.
        Node = "node",
    }
    /// Whether refaults of pages that are then activated make reclaim shrink the active list, however long
    /// it is (`snapshot_refaults`).
    refault_deactivation: RefaultDeactivation {
        /// They do not.
        Off = "off",
        /// Those of file pages.
        File = "file",
        /// Those of file and of anonymous pages, each for its own list.
        All = "all",
    }
    /// How old the counters of LRU lists are by which reclaim and refaults decide (`lruvec_page_state`). From 5.15
    /// on CPUs count for themselves until somebody flushes that, every two seconds at least.
    lruvec_stats: LruvecStats {
        /// As of now. From 5.15 to 5.17 everybody flushes first, if enough has changed.
        Current = "current",
        /// As of the last flush. Reclaim flushes before it decides, if enough has changed.
        BeforeReclaim = "before-reclaim",
        /// As of the last flush, two seconds at most.
        Periodic = "periodic",
    }
    /// What a reclaimer does that gets nowhere (`reclaim_throttle`).
    reclaim_stall: ReclaimStall {
        /// It waits for congestion to pass.
        CongestionWait = "congestion-wait",
        /// It waits for what it lacks: for writes to end, for others to make progress, for isolated pages
        /// to come back.
        Throttle = "throttle",
    }
    /// How many pages others may have isolated before a direct reclaimer waits (`too_many_isolated`).
    isolated_limit: IsolatedLimit {
        /// As many as are left on the list.
        All = "all",
        /// An eighth of those, for reclaimers that may do all I/O, as all of the model may.
        Eighth = "eighth",
    }
    /// How long it waits then (`shrink_inactive_list`).
    isolated_wait: IsolatedWait {
        /// Until there are fewer.
        Fewer = "fewer",
        /// Once; if there are as many still, it gives up the batch.
        Once = "once",
    }
    /// When kswapd leaves a node to direct reclaim.
    hopeless_node: HopelessNode {
        /// When all has been scanned six times and nothing freed.
        PagesScanned = "pages-scanned",
        /// After sixteen runs that reclaimed nothing (`kswapd_failures`).
        Failures = "failures",
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
    /// Whether a reclaimer waits after a batch with many pages under writeback (`shrink_inactive_list`).
    batch_stall: BatchStall {
        /// It goes on (before 92df3a723f84, 3.2).
        None = "none",
        /// It waits if a queue is congested: by its priority (3.2), by what it met (3.11).
        Writeback = "writeback",
    }
    /// Where requests are held back so that neighbours come together (`blk_start_plug`).
    plug: Plug {
        /// In an empty queue of a disk, until there are four, somebody waits or 3 ms have passed (before
        /// 7eaceaccab5f, 2.6.39).
        Queue = "queue",
        /// With the task that submits them, while it says so.
        Task = "task",
    }
    /// Block plug around a reclaim pass: pages written together become one request.
    reclaim_plug: ReclaimPlug {
        /// None, as up to 3.1; commit 3da367c3e5fc brought it.
        Off = "off",
        /// Held over the pass.
        On = "on",
    }
    /// Block plug around the reads of a swap-in window.
    swapin_plug: SwapinPlug {
        /// None: neighbours merge only when the queue is busy.
        Off = "off",
        /// Held over the window.
        On = "on",
    }
    /// When a plug is submitted though its holder goes on (`blk_attempt_plug_merge`, `blk_add_rq_to_plug`).
    plug_flush: PlugFlush {
        /// At 16 requests.
        Requests = "requests",
        /// The same, and when there is another request beside one of 128 KiB.
        LargeRequest = "large-request",
        /// The same, at 32 requests.
        MoreRequests = "more-requests",
    }
    /// kswapd's loop over priorities (`balance_pgdat`).
    balance_pgdat: BalancePgdat {
        /// Zone by zone up to the end zone, priority raised after every pass, restarted until balanced.
        EveryPass = "every-pass",
        /// Raises priority only when a zone was not scanned to its target; waits inside
        /// `shrink_inactive_list` only.
        ScannedTarget = "scanned-target",
        /// One pass over the node's lists per priority.
        Node = "node",
    }
    /// How far above its high watermark kswapd reclaims a zone while another one needs it
    /// (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
    balance_gap: BalanceGap {
        /// To eight times the watermark (before 8afdcece4911, 2.6.39).
        EightTimesHigh = "eight-times-high",
        /// By the low watermark or a hundredth of the zone, the smaller one.
        LowOrPercent = "low-or-percent",
    }
    /// What kswapd does below priority 10 when a balancing run gets nowhere.
    kswapd_wait: KswapdWait {
        /// Up to 100 ms in `congestion_wait`, unless a zone is below its min watermark.
        CongestionWait = "congestion-wait",
        /// It goes on.
        None = "none",
    }
    /// When an allocation in its slow path wakes a sleeping kswapd (`wakeup_kswapd`).
    kswapd_wake: KswapdWake {
        /// The zone is below its low watermark; the tracepoint tells so even if kswapd is awake (before
        /// 88f5acf88ae6, 2.6.38).
        Told = "told",
        /// The zone is below its low watermark.
        BelowLow = "below-low",
        /// The zone is below its high watermark.
        NotBalanced = "not-balanced",
        /// No zone of the node up to the class is at its high watermark.
        NodeNotBalanced = "node-not-balanced",
    }
    /// Where pages under writeback go when reclaim meets them at the inactive tail.
    tail_writeback: TailWriteback {
        /// To the inactive head.
        Keep = "keep",
        /// To the active list, from where the end of their writeback brings them back.
        Activate = "activate",
    }
    /// kswapd's classzone index between requests, and what lets it sleep.
    kswapd_classzone: KswapdClasszone {
        /// Resets to zone 0; every zone up to the class must pass to sleep, any passing zone clears the
        /// node's congestion bits.
        Vanilla = "vanilla",
        /// Any passing zone is enough to sleep; a node without a zone in the class is never balanced.
        Clear = "clear",
        /// Resets to "none"; a node without a zone in the class counts as balanced.
        KeepAwake = "keepawake",
        /// The same, and keeps its class if none is asked for, in place of zone 0; one that is asked for
        /// while it works or naps counts even if it is lower.
        Remembers = "remembers",
    }
    /// What a watermark means for orders above 0 (`zone_watermark_ok`).
    watermark_order: WatermarkOrder {
        /// Free pages of each lower order are discounted, the mark halved for each.
        Decay = "decay",
        /// One free block of the order is enough.
        FreeBlock = "free-block",
    }
    /// Distance between min, low and high.
    watermark_gap: WatermarkGap {
        /// A quarter of min.
        QuarterOfMin = "quarter-of-min",
        /// That, or watermark_scale_factor of the zone if more.
        ScaleFactor = "scale-factor",
    }
    /// How large `min_free_kbytes` becomes by itself at most (`calculate_min_free_kbytes`).
    min_free_bound: MinFreeBound {
        /// 64 MB.
        Megabytes64 = "64m",
        /// 256 MB.
        Megabytes256 = "256m",
    }
    /// What becomes of `min_free_kbytes` where huge pages are off (`set_recommended_min_free_kbytes`).
    min_free_without_thp: MinFreeWithoutThp {
        /// It stays as it was computed first.
        AtBoot = "at-boot",
        /// It is computed again, without the pages below the high watermarks that have been set by then.
        Again = "again",
    }
    /// Whether reserves against higher classes follow the managed pages (`adjust_managed_page_count`).
    reserve_update: ReserveUpdate {
        /// They stay as they were computed while the kernel booted.
        AtBoot = "at-boot",
        /// They count the memory of booting as soon as it is free.
        ManagedPages = "managed-pages",
    }
    /// Whether the zones of a node take turns (`NR_ALLOC_BATCH`).
    fair_zones: FairZones {
        /// The highest zone first, always.
        Off = "off",
        /// In proportion to the gap between low and high.
        On = "on",
    }
    /// How much of the first megabyte of a PC the kernel keeps (`reserve_real_mode`).
    first_megabyte: FirstMegabyte {
        /// What firmware and the first kernel structures use, some 120 pages.
        Used = "used",
        /// All of it, 256 pages.
        All = "all",
    }
    /// How free blocks are grouped by what can be done about their pages, and what an allocation takes when there
    /// are none of its type (`__rmqueue_fallback`).
    migrate_types: MigrateTypes {
        /// Kernels have grouped them since 2.6.24, but the model leaves it out: all blocks are movable.
        LeftOut = "left-out",
        /// A page of the largest block of another type, with all that is free in its pageblock; movable pages
        /// come from the smallest one, with the rest of it.
        Stolen = "stolen",
        /// The same, but what is free changes its type only with its pageblock.
        Claimed = "claimed",
        /// A pageblock to claim is looked for among all blocks; else a page comes from the smallest one.
        ClaimedFirst = "claimed-first",
    }
    /// Whether kswapd is to free more when blocks change their type (`boost_watermark`).
    watermark_boost: WatermarkBoost {
        /// It is not.
        Off = "off",
        /// It is: watermarks are a pageblock higher until it has been there.
        AllZones = "all-zones",
        /// The same in zones of four pageblocks and more.
        FourBlocks = "four-blocks",
    }
    /// Pages of page tables (`pte_alloc`).
    page_tables: PageTables {
        /// All kernels have them, but the model leaves them out, or takes them for a part of `occupied`.
        LeftOut = "left-out",
        /// One that cannot be moved for each 2 MiB of a region.
        Allocated = "allocated",
    }
    /// Memory for devices that cannot wait (`dma_atomic_pool_init`).
    dma_pool: DmaPool {
        /// One pool, which the model does not tell from other memory in use.
        None = "none",
        /// One for each zone that devices may be confined to; that of ZONE_DMA matters.
        EachZone = "each-zone",
    }
    /// Whether pages that reclaim meets in zones that do not help count as scanned (`isolate_lru_pages`).
    skipped_pages: SkippedPages {
        /// A quarter of them, or all if there was nothing else.
        Quarter = "quarter",
        /// All of them.
        Counted = "counted",
    }
    /// Free pages that each CPU keeps to itself (`struct per_cpu_pages`).
    pcp_lists: PcpLists {
        /// Kernels have had them since 2.5, but the model leaves them out: every free page is the zone's.
        LeftOut = "left-out",
        /// Up to a CPU's share of the low watermark, four batches while kswapd is at work.
        Fixed = "fixed",
        /// Up to an eighth of the zone, as far as allocations and frees in a row let them grow; batches grow
        /// as well.
        Tuned = "tuned",
    }
    /// What a zone's size means for watermarks and reserves.
    zone_size: ZoneSize {
        /// `present_pages`.
        Present = "present",
        /// `managed_pages`.
        Managed = "managed",
    }
    /// Whether anonymous memory may become dirty pages (`global_dirtyable_memory`).
    dirtyable: Dirtyable {
        /// All LRU pages count while there is swap.
        AnonToo = "anon-too",
        /// File pages only.
        FileOnly = "file-only",
    }
    /// Whether what the allocator keeps back may become dirty (`global_dirtyable_memory`).
    dirty_reserve: DirtyReserve {
        /// It counts.
        None = "none",
        /// Reserves and high watermarks do not.
        Balance = "balance",
        /// The same, but they are taken off free memory alone, and never off the cache.
        Free = "free",
    }
    /// How exact ratios of dirty memory are (`domain_dirty_limits`).
    dirty_ratios: DirtyRatios {
        /// Percent.
        Percent = "percent",
        /// Rounded down to 1/4096, with which those of memory cgroups are exact.
        PageParts = "page-parts",
    }
    /// How writers of too many dirty pages are held back (`balance_dirty_pages`).
    throttle: Throttle {
        /// They write pages themselves, and sleep ever longer until there are few enough (before
        /// ffd1f609ab10, 3.1).
        Foreground = "foreground",
        /// The same, for 200 ms if things are not too bad (ffd1f609ab10, bb0822954aab).
        ForegroundBounded = "foreground-bounded",
        /// They pause for as long as their pages take at the rate that the device allows: commit
        /// 143dfe8611a6 alone, of which no release is without what follows.
        IoLess = "io-less",
        /// The same, with the longest pause and the pages until the next look following the rate
        /// (c8462cc9de9e, 57fc978cfb61), and a share for devices that were idle (8927f66c4ede).
        PauseControl = "pause-control",
        /// The same, with the time that a writer spends elsewhere taken off its pause (83712358ba0a,
        /// 7ccb9ad5364d).
        ThinkTime = "think-time",
    }
    /// Whether what a writer should do may be more than the device does (`bdi_update_dirty_ratelimit`).
    balanced_rate: BalancedRate {
        /// It may.
        Any = "any",
        /// It is cut to the write bandwidth.
        BelowBandwidth = "below-bandwidth",
    }
    /// How far the position of dirty pages moves the rate of writers (`pos_ratio_polynom`).
    position_ratio: PositionRatio {
        /// Without bound; divisors are one more than what may be 0.
        Unbounded = "unbounded",
        /// At most twice the base rate, for all of memory.
        Clamped = "clamped",
        /// The same, with divisors made odd.
        OddDivisors = "odd-divisors",
    }
    /// Whether a device can be held to its share of dirty pages whatever there is elsewhere
    /// (`BDI_CAP_STRICTLIMIT`).
    strictlimit: Strictlimit {
        /// It cannot.
        Off = "off",
        /// It can.
        On = "on",
    }
    /// Where a device that wrote nothing of late gets room for its first pages.
    idle_devices: IdleDevices {
        /// In the position ratio, an eighth of what is left up to the limit.
        Ratio = "ratio",
        /// In its threshold, with a hundredth of what is left for those that are held to their share.
        Threshold = "threshold",
    }
    /// How shares of devices follow what they have written (`bdi_writeout_fraction`,
    /// `fprop_fraction_percpu`).
    proportions: Proportions {
        /// By the pages that all have written; what was before counts for long.
        Prop = "prop",
        /// Halved every three seconds; nothing written is no share.
        Flex = "flex",
    }
    /// What the smoothed dirty limit is before a writer was first held back (`global_dirty_limit`).
    dirty_limit_start: DirtyLimitStart {
        /// Nothing.
        Zero = "zero",
        /// The threshold.
        Threshold = "threshold",
    }
    /// How much of a write goes into the page cache at once (`generic_perform_write`, `iomap_write_iter`), after
    /// which the writer looks whether it has to wait.
    write_folios: WriteFolios {
        /// A page.
        Pages = "pages",
        /// On XFS as many pages as a large folio has: a power of two to which its place in the file is aligned,
        /// 2 MiB at most.
        Xfs = "xfs",
        /// On ext4 as well.
        XfsAndExt4 = "xfs-and-ext4",
    }
    /// Whether memory cgroups have dirty limits and flushers of their own.
    cgroup_writeback: CgroupWriteback {
        /// Their dirty pages are among everybody's.
        Off = "off",
        /// Each is a domain with limits that are parts of its memory.
        Domains = "domains",
    }
    /// When the bandwidth of a device is measured (`bdi_update_bandwidth`, `wb_update_bandwidth`).
    bandwidth_sampling: BandwidthSampling {
        /// By writers and after each round of the flusher, but for pauses of a second between rounds.
        Rounds = "rounds",
        /// By writers, after an inode's turn, and after the last page of an inode is written; pauses in
        /// which nothing is being written are left out.
        Completions = "completions",
    }
    /// By which bandwidth a writer is held back when its look takes a sample.
    position_time: PositionTime {
        /// By the new one: the position ratio is worked out again.
        AfterSample = "after-sample",
        /// By the one before: it is worked out once.
        BeforeSample = "before-sample",
    }
    /// When a look of a writer starts background writeback, and what it leaves behind.
    balance_loop: BalanceLoop {
        /// At its end; it clears the device's flag that there are too many dirty pages when there are few.
        AtEnd = "at-end",
        /// At its beginning; looks with few dirty pages leave the flag alone.
        AtBegin = "at-begin",
    }
    /// When writers of a device are to look more often (`dirty_exceeded`).
    dirty_exceeded: DirtyExceeded {
        /// The device or all of memory is above its threshold.
        Either = "either",
        /// Both are.
        Both = "both",
    }
    /// Who is told of an error of writeback (`filemap_check_errors`, `file_check_and_advance_wb_err`).
    writeback_errors: WritebackErrors {
        /// Whoever asks first.
        MappingFlag = "mapping-flag",
        /// Every file that was open then, once.
        OpenFile = "open-file",
        /// The same, and files opened later if nobody was told before.
        EveryOpenFile = "every-open-file",
    }
    /// Whether sync(2), which returns no errors, leaves them to others (`filemap_fdatawait_keep_errors`).
    sync_errors: SyncErrors {
        /// It clears them.
        Cleared = "cleared",
        /// It keeps them.
        Kept = "kept",
    }
    /// When a file on a server is committed without anybody waiting (`nfs_write_inode`).
    nfs_commit: NfsCommit {
        /// After a turn, once more than half of its pages are written and wait for it.
        HalfOfWrites = "half-of-writes",
        /// After the last write of a turn is answered, or after one that finds none under way.
        AfterWriteback = "after-writeback",
    }
    /// What pages that wait for a COMMIT count as.
    nfs_unstable: NfsUnstable {
        /// As dirty, by a counter of their own (`NR_UNSTABLE_NFS`).
        Reclaimable = "reclaimable",
        /// As being written.
        Writeback = "writeback",
    }
    /// Whom `nfs_congestion_kb` holds back.
    nfs_congestion: NfsCongestion {
        /// Reclaim.
        Reclaim = "reclaim",
        /// The flusher.
        Flusher = "flusher",
    }
    /// Pages that a flusher writes of an inode in its turn (`writeback_chunk_size`).
    writeback_slice: WritebackSlice {
        /// 1024 (before 1a12d8bd7b29, 3.1).
        Fixed = "fixed",
        /// What the device writes in half a second, an eighth of the limit at most.
        Bandwidth = "bandwidth",
    }
    /// Which inodes a round of the flusher goes through (`queue_io`).
    writeback_round: WritebackRound {
        /// All that are dirty meanwhile, but those of periodic work (before 424b351fe190, 3.1).
        Open = "open",
        /// Those that were dirty when it began.
        Closed = "closed",
    }
    /// Whether background writing also begins when one device is above its share (`over_bground_thresh`).
    bdi_background: BdiBackground {
        /// Only all of memory counts (before b00949aa2df9, 3.2).
        Off = "off",
        /// It does.
        On = "on",
    }
    /// How much XFS allocates behind the end of a file that grows (`xfs_iomap_prealloc_size`).
    xfs_ahead: XfsAhead {
        /// 64 KiB (before 055388a3188f, 2.6.38).
        Fixed = "fixed",
        /// As much again as the file has, to 8 GiB.
        FileSize = "file-size",
    }
    /// Whether stores wait while their page is being written (`wait_on_page_writeback` in `write_begin` and
    /// `page_mkwrite`).
    stable_pages: StablePages {
        /// They do not (before 3d08bcc887a1, 3.0; Darrick J. Wong, linux-mm, 27 May 2011).
        Off = "off",
        /// They do.
        Always = "always",
        /// Only on devices that need it, of which the model has none.
        Device = "device",
    }
    /// Who writes dirty pages of files from the end of the LRU lists (`shrink_page_list`).
    reclaim_file_writes: ReclaimFileWrites {
        /// Every reclaimer (before ee72886d8ed5, 3.2).
        Anybody = "anybody",
        /// kswapd, below priority 10.
        KswapdLate = "kswapd-late",
        /// kswapd, after a batch of nothing but dirty pages.
        TailDirty = "tail-dirty",
        /// The same, and only pages that it meets for the second time; others are moved out of the way.
        SeenTwice = "seen-twice",
    }
    /// Which pages before a miss are taken for a stream (`try_context_readahead`).
    context_readahead: ContextReadahead {
        /// Any.
        AnyPage = "any-page",
        /// More than are wanted; the window is then no longer than what is there.
        MoreThanWanted = "more-than-wanted",
    }
    /// Whether a read fault on a file maps the pages around it (`do_fault_around`).
    fault_around: FaultAround {
        /// Its own page only.
        Off = "off",
        /// Sixteen, if they are in memory.
        On = "on",
    }
    /// When a failed allocation stops trying (`__alloc_pages_slowpath`).
    alloc_retry: AllocRetry {
        /// Small orders retry for ever; out of memory only when reclaim found nothing.
        Always = "always",
        /// Sixteen rounds without progress, or watermarks out of reach even with all reclaimable pages.
        Bounded = "bounded",
    }
}
