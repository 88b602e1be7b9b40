//! Dirty pages: limits, throttling of writers, flushers.

macro_rules! writeback {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Dirty pages: limits, throttling of writers, flushers.
            writeback: Writeback {
                /// Whether anonymous memory may become dirty pages (`global_dirtyable_memory`).
                dirtyable: Dirtyable {
                    /// All LRU pages count while there is swap.
                    AnonToo = "anon-too",
                    /// File pages only.
                    FileOnly = "file-only",
                }
                /// Whether reserves and watermarks count as memory that may become dirty (`global_dirtyable_memory`).
                dirty_reserve: DirtyReserve {
                    /// It counts.
                    None = "none",
                    /// They do not.
                    Balance = "balance",
                    /// They do not: they are taken off free memory alone, never off the page cache.
                    Free = "free",
                }
                /// How exact ratios of dirty memory are (`domain_dirty_limits`).
                dirty_ratios: DirtyRatios {
                    /// Percent.
                    Percent = "percent",
                    /// Rounded down to 1/4096, with which those of memory cgroups are exact.
                    PageParts = "page-parts",
                }
                /// How tasks that dirty pages are throttled (`balance_dirty_pages`).
                throttle: Throttle {
                    /// Tasks write pages themselves, and sleep ever longer until few enough are dirty (before
                    /// ffd1f609ab10, 3.1).
                    Foreground = "foreground",
                    /// The same, for 200 ms at most below the hard limit (ffd1f609ab10, bb0822954aab).
                    ForegroundBounded = "foreground-bounded",
                    /// Tasks pause for as long as their pages take at the task's rate limit: commit
                    /// 143dfe8611a6 alone, of which no release is without what follows.
                    IoLess = "io-less",
                    /// The same, with the longest pause and the pages until the next call following the rate
                    /// (c8462cc9de9e, 57fc978cfb61), and a share for devices that were idle (8927f66c4ede).
                    PauseControl = "pause-control",
                    /// The same, with the time that a task spends between two calls taken off its pause (83712358ba0a,
                    /// 7ccb9ad5364d).
                    ThinkTime = "think-time",
                }
                /// Whether the balanced rate of tasks may exceed the write bandwidth (`bdi_update_dirty_ratelimit`).
                balanced_rate: BalancedRate {
                    /// It may.
                    Any = "any",
                    /// It is cut to the write bandwidth.
                    BelowBandwidth = "below-bandwidth" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                }
                /// Where pages that are about to be written to come from (`zone_dirty_ok`, `node_dirty_ok`).
                dirty_spread: DirtySpread {
                    /// From where there is one.
                    Anywhere = "anywhere",
                    /// From a zone of which no more than `dirty_ratio` is dirty, as long as there is one.
                    Zone = "zone",
                    /// From a node of which no more is.
                    Node = "node",
                }
                /// How far the position of dirty pages moves the rate of writers (`pos_ratio_polynom`).
                position_ratio: PositionRatio {
                    /// Without bound; divisors are one more than what may be 0.
                    Unbounded = "unbounded",
                    /// At most twice the base rate, for all of memory.
                    Clamped = "clamped" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                    /// The same, with divisors made odd.
                    OddDivisors = "odd-divisors" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                }
                /// Whether a device can be held to its share of dirty pages whatever there is elsewhere
                /// (`BDI_CAP_STRICTLIMIT`).
                strictlimit: Strictlimit {
                    /// It cannot.
                    Off = "off",
                    /// It can.
                    On = "on" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                }
                /// Where a device that wrote nothing of late gets room for its first pages.
                idle_devices: IdleDevices {
                    /// In the position ratio, an eighth of what is left up to the limit.
                    Ratio = "ratio",
                    /// In its threshold, with a hundredth of what is left for those that are held to their share.
                    Threshold = "threshold" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
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
                    /// 0.
                    Zero = "zero",
                    /// The threshold.
                    Threshold = "threshold",
                }
                /// How much of a write goes into the page cache at once (`generic_perform_write`, `iomap_write_iter`),
                /// after which the writer looks whether it has to wait.
                write_folios: WriteFolios {
                    /// A page.
                    Pages = "pages",
                    /// On XFS as many pages as a large folio has: a power of two to which its place in the file is
                    /// aligned, 2 MiB at most.
                    Xfs = "xfs",
                    /// On ext4 as well.
                    XfsAndExt4 = "xfs-and-ext4",
                }
                /// Whether memory cgroups have dirty limits and flushers of their own.
                cgroup_writeback: CgroupWriteback within memory_cgroups {
                    /// Their dirty pages count in the global limits alone.
                    Off = "off",
                    /// Each is a domain with limits that are parts of its memory.
                    Domains = "domains",
                }
                /// How old the file and dirty page counts of a memory cgroup are that throttling of its tasks uses (`mem_cgroup_wb_stats`).
                group_dirty_stats: GroupDirtyStats within memory_cgroups {
                    /// As of now. From 5.15 on every look flushes first, if enough has changed.
                    Current = "current",
                    /// As of the last flush, two seconds at most.
                    Periodic = "periodic",
                }
                /// When the bandwidth of a device is measured (`bdi_update_bandwidth`, `wb_update_bandwidth`).
                bandwidth_sampling: BandwidthSampling {
                    /// By writers and after each round of the flusher, but for pauses of a second between rounds.
                    Rounds = "rounds",
                    /// By writers, after an inode's turn, and after the last page of an inode is written; pauses in
                    /// which nothing is being written are left out.
                    Completions = "completions",
                }
                /// Which bandwidth throttles a task whose own call has taken a new sample.
                position_time: PositionTime {
                    /// The new one: the position ratio is computed again.
                    AfterSample = "after-sample",
                    /// The one before: the position ratio is computed once.
                    BeforeSample = "before-sample" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                }
                /// When balance_dirty_pages() starts background writeback, and which flag it clears.
                balance_loop: BalanceLoop {
                    /// At its end; it clears `dirty_exceeded` of the device when few pages are dirty.
                    AtEnd = "at-end",
                    /// At its beginning; calls that find few dirty pages leave `dirty_exceeded` alone.
                    AtBegin = "at-begin" needs(writeback.throttle = Throttle::IoLess | Throttle::PauseControl | Throttle::ThinkTime),
                }
                /// When tasks that write to a device are to call balance_dirty_pages() more often (`dirty_exceeded`).
                dirty_exceeded: DirtyExceeded {
                    /// The device or all of memory is above its threshold.
                    Either = "either",
                    /// Both are above their thresholds.
                    Both = "both",
                }
                /// Which caller is told of a writeback error (`filemap_check_errors`, `file_check_and_advance_wb_err`).
                writeback_errors: WritebackErrors {
                    /// The first that asks.
                    MappingFlag = "mapping-flag",
                    /// Every file that was open then, once.
                    OpenFile = "open-file",
                    /// The same, and files opened later if no caller was told before.
                    EveryOpenFile = "every-open-file",
                }
                /// Whether sync(2), which returns no errors, leaves them to others (`filemap_fdatawait_keep_errors`).
                sync_errors: SyncErrors {
                    /// It clears them.
                    Cleared = "cleared",
                    /// It keeps them.
                    Kept = "kept",
                }
                /// How many pages of one inode a flusher writes before it goes on to the next (`writeback_chunk_size`).
                writeback_slice: WritebackSlice {
                    /// 1024 (before 1a12d8bd7b29, 3.1).
                    Fixed = "fixed",
                    /// What the device writes in half a second, an eighth of the limit at most.
                    Bandwidth = "bandwidth",
                }
                /// Which lock protects the lists of dirty inodes. A task that dirties a clean inode takes it, and so does a task
                /// that writes inodes, before and after each inode.
                list_lock: ListLock {
                    /// `inode_lock`, one for all inodes, which also protects their state: it is taken once more for each.
                    Inode = "inode-lock",
                    /// `inode_wb_list_lock`, one for all lists.
                    InodeWbList = "inode-wb-list-lock",
                    /// `wb->list_lock`, one for the lists of each device, and of each memory cgroup there.
                    Wb = "wb-list-lock",
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
                /// When reclaim wakes the flushers (`wakeup_flusher_threads`).
                flusher_wakeup: FlusherWakeup {
                    /// When direct reclaim has scanned half as much again as it wants, for as many pages.
                    Scanned = "scanned",
                    /// The same, and whenever a batch has dirty pages of files: for 32 times as many, 1024 at most. As posted:
                    /// Mel Gorman, linux-mm, July to September 2010, "Kick flusher threads to clean pages when reclaim is
                    /// encountering dirty pages".
                    ScannedOrDirty = "scanned-or-dirty",
                    /// When a whole batch is dirty and nobody writes it, for all dirty pages.
                    DirtyBatch = "dirty-batch",
                }
                /// Which reclaimers write dirty file pages from the end of the LRU lists (`shrink_page_list`).
                reclaim_file_writes: ReclaimFileWrites {
                    /// Every reclaimer (before ee72886d8ed5, 3.2).
                    Anybody = "anybody",
                    /// kswapd. As posted: Mel Gorman, linux-mm, July to September 2010, "Do not writeback filesystem pages in
                    /// direct reclaim".
                    Kswapd = "kswapd",
                    /// kswapd, below priority 10.
                    KswapdLate = "kswapd-late",
                    /// kswapd, after a batch of nothing but dirty pages.
                    TailDirty = "tail-dirty" needs(reclaim.dirty_count = DirtyCount::All),
                    /// The same, and only pages that it meets for the second time; others are moved out of the way.
                    SeenTwice = "seen-twice" needs(reclaim.dirty_count = DirtyCount::All),
                    /// None: dirty pages are moved out of the way and left to the flushers.
                    Nobody = "nobody",
                }
            }
        }
    };
}

pub(super) use writeback;
