//! Every field of every tracepoint, declared once.
//!
//! A field's name is the kernel's: the key in the event's text, or the record's member where the text has
//! no key. What a field is called elsewhere, in records of other eras, are its aliases. The declaration
//! drives decoding of text and of binary records, rendering, JSON and documentation.

/// What the value of a field is, and with it how it is written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueType {
    /// Signed number, kept as the bits of an `i64`.
    Signed,
    /// Unsigned number.
    Unsigned,
    /// Address, `%p`: 16 hexadecimal digits.
    Pointer,
    /// Text, kept as a [`NameId`](super::NameId).
    Text,
    /// Set of allocation flags, see [`gfp`](super::gfp).
    Gfp,
    /// Set of `RECLAIM_WB_*`.
    ReclaimFlags,
    /// Index of an LRU list, `enum lru_list`.
    Lru,
    /// Set of `VMSCAN_THROTTLE_*`, one bit each.
    Throttle,
    /// Device number: major in the upper, minor in the lower 20 bits.
    Device,
}

/// How a member of a binary record becomes the field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// As it is.
    Same,
    /// Two to the power of the member (`1UL << defer_shift`).
    PowerOfTwo,
    /// Index of a page to bytes (`index << 12`).
    PagesToBytes,
    /// `sync` or `async`, as compaction prints its mode.
    SyncMode,
}

/// Declaration of a field.
#[derive(Debug)]
pub struct FieldSpec {
    /// Name in text and JSON.
    pub name: &'static str,
    /// Kind of value.
    pub value: ValueType,
    /// What it means, with its unit.
    pub doc: &'static str,
    /// Members of binary records that hold it under another name.
    pub aliases: &'static [(&'static str, Transform)],
}

macro_rules! fields {
    ($( $(#[doc = $doc:literal])* $variant:ident = $name:literal : $value:ident
        $( from $($alias:literal $(as $transform:ident)?),+ )? ; )*) => {
        /// A field of a tracepoint.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field {
            $( $(#[doc = $doc])* $variant, )*
        }

        impl Field {
            /// Every field, in order of declaration.
            pub const ALL: &'static [Field] = &[ $( Field::$variant ),* ];
        }

        const SPECS: &[FieldSpec] = &[ $( FieldSpec {
            name: $name,
            value: ValueType::$value,
            doc: concat!($($doc),*).trim_ascii(),
            aliases: &[ $($( ($alias, transform!($($transform)?)) ),+)? ],
        } ),* ];
    };
}

macro_rules! transform {
    () => {
        Transform::Same
    };
    ($transform:ident) => {
        Transform::$transform
    };
}

fields! {
    /// Node.
    Nid = "nid": Signed from "node", "node_id";
    /// Zone index.
    Zid = "zid": Signed;
    /// Allocation order.
    Order = "order": Signed;
    /// Allocation flags.
    GfpFlags = "gfp_flags": Gfp from "gfp_mask";
    /// Whether dirty pages may be written (0 or 1).
    MayWritepage = "may_writepage": Signed;
    /// Highest zone index that the allocation may use.
    Classzone = "classzone": Signed from "highest_zoneidx", "classzone_idx";
    /// Highest zone that the allocation may use, by name.
    HighestZone = "highest_zone": Text from "highest_zoneidx", "classzone_idx";
    /// Pages freed.
    NrReclaimed = "nr_reclaimed": Signed;
    /// Process; of reclaim, where it is told since 7.1, the reclaimer.
    Pid = "pid": Signed from "parent_pid";
    /// Id of the memory cgroup (0 or 1: the root).
    MemcgId = "memcg_id": Unsigned from "id";
    /// `(in-irq)`, or nothing (since 7.1).
    InIrq = "in_irq": Text;
    /// Which pages may be isolated, as the era numbers it.
    IsolateMode = "isolate_mode": Signed;
    /// Pages wanted.
    NrRequested = "nr_requested": Signed;
    /// Pages looked at.
    NrScanned = "nr_scanned": Signed;
    /// Pages of zones that were not asked for.
    NrSkipped = "nr_skipped": Signed;
    /// Pages taken.
    NrTaken = "nr_taken": Signed;
    /// Pages taken because they were neighbours (lumpy reclaim).
    ContigTaken = "contig_taken": Signed from "nr_lumpy_taken";
    /// Dirty pages among them.
    ContigDirty = "contig_dirty": Signed from "nr_lumpy_dirty";
    /// Neighbours that could not be taken.
    ContigFailed = "contig_failed": Signed from "nr_lumpy_failed";
    /// File list (1) or anon list (0).
    File = "file": Signed;
    /// LRU list.
    Lru = "lru": Lru;
    /// `struct page` or folio.
    Page = "page": Pointer from "folio";
    /// Page frame number.
    Pfn = "pfn": Unsigned;
    /// Which kind of pages, synchronous or not.
    Flags = "flags": ReclaimFlags from "reclaim_flags";
    /// Dirty pages that were not written.
    NrDirty = "nr_dirty": Signed;
    /// Pages under writeback.
    NrWriteback = "nr_writeback": Signed;
    /// Pages of a congested device.
    NrCongested = "nr_congested": Signed;
    /// Pages marked for reclaim as soon as they are written.
    NrImmediate = "nr_immediate": Signed;
    /// Pages made active (to 5.1).
    NrActivate = "nr_activate": Signed;
    /// Anonymous pages made active.
    NrActivateAnon = "nr_activate_anon": Signed from "nr_activate0";
    /// File pages made active.
    NrActivateFile = "nr_activate_file": Signed from "nr_activate1";
    /// Pages kept because they were referenced.
    NrRefKeep = "nr_ref_keep": Signed;
    /// Pages that could not be unmapped.
    NrUnmapFail = "nr_unmap_fail": Signed;
    /// Scan priority, 12 down to 0; of compaction, 2 (async) down to 0.
    Priority = "priority": Signed;
    /// Pages that stay active.
    NrActive = "nr_active": Signed;
    /// Pages moved to the inactive list.
    NrDeactivated = "nr_deactivated": Signed;
    /// Pages found referenced.
    NrReferenced = "nr_referenced": Signed;
    /// Highest zone index reclaimed for.
    ReclaimIdx = "reclaim_idx": Signed;
    /// Inactive pages of all zones.
    TotalInactive = "total_inactive": Signed;
    /// Inactive pages of the zones reclaimed for.
    Inactive = "inactive": Signed;
    /// Active pages of all zones.
    TotalActive = "total_active": Signed;
    /// Active pages of the zones reclaimed for.
    Active = "active": Signed;
    /// Wanted ratio of active to inactive pages.
    Ratio = "ratio": Signed;
    /// Longest sleep allowed, µs.
    UsecTimeout = "usec_timeout": Signed;
    /// Time slept, µs.
    UsecDelayed = "usec_delayed": Signed;
    /// Why a reclaimer was throttled.
    ThrottleReason = "throttle_reason": Throttle from "reason";
    /// Failed runs of kswapd in a row.
    Failures = "failures": Signed;
    /// Function that scans (before 3.12 the `shrink` callback).
    Shrinker = "shrinker": Text from "shrink";
    /// `struct shrinker`.
    Shr = "shr": Pointer;
    /// Objects left over from earlier calls.
    NrObjectsToShrink = "nr_objects_to_shrink": Signed;
    /// LRU pages scanned meanwhile (to 4.15).
    PgsScanned = "pgs_scanned": Signed;
    /// LRU pages there were (to 4.15).
    LruPgs = "lru_pgs": Signed;
    /// Objects in the cache.
    CacheItems = "cache_items": Signed;
    /// Share of this call.
    Delta = "delta": Signed;
    /// Objects to scan, or scanned.
    TotalScan = "total_scan": Signed;
    /// Objects left before.
    UnusedScan = "unused_scan": Signed;
    /// Objects left after.
    NewScan = "new_scan": Signed;
    /// What the shrinker returned last.
    Retval = "retval": Signed from "ret";
    /// `struct mm_struct` that held the swap token.
    OldTokenMm = "old_token_mm": Pointer;
    /// Its priority.
    OldPrio = "old_prio": Unsigned;
    /// `struct mm_struct` that gets it.
    NewTokenMm = "new_token_mm": Pointer;
    /// Its priority.
    NewPrio = "new_prio": Unsigned;
    /// `struct mm_struct` that holds the token.
    TokenMm = "token_mm": Pointer from "swap_token_mm";
    /// Priority of the token's holder.
    TokenPrio = "token_prio": Unsigned from "swap_token_prio";
    /// `struct mm_struct`.
    Mm = "mm": Pointer;
    /// Backing device, `major:minor`.
    Bdi = "bdi": Text from "name";
    /// Device number of the super block.
    SbDev = "sb_dev": Device;
    /// Device number.
    Dev = "dev": Device from "s_dev";
    /// Pages to write.
    NrPages = "nr_pages": Signed;
    /// 0 for cleaning, 1 for integrity.
    SyncMode = "sync_mode": Signed;
    /// Periodic writeback.
    Kupdate = "kupdate": Signed from "for_kupdate";
    /// Goes on where the last one stopped.
    RangeCyclic = "range_cyclic": Signed;
    /// Background writeback.
    Background = "background": Signed from "for_background";
    /// Why.
    Reason = "reason": Text;
    /// Inode of the cgroup that pays.
    CgroupIno = "cgroup_ino": Unsigned;
    /// Cgroup that pays, by path (4.2 and on, until inodes were printed).
    Cgroup = "cgroup": Text;
    /// Pages written.
    Pages = "pages": Signed;
    /// Pages written, of `balance_dirty_written`.
    Written = "written": Signed from "nr_written";
    /// Inode.
    Ino = "ino": Unsigned from "i_ino";
    /// State of the inode, `I_*`.
    State = "state": Text;
    /// When it became dirty, jiffies.
    DirtiedWhen = "dirtied_when": Unsigned;
    /// How long it has been dirty, s; of `writeback_queue_io`, ms.
    Age = "age": Signed;
    /// Page at which writing goes on.
    Index = "index": Unsigned from "writeback_index";
    /// Pages that were allowed.
    ToWrite = "to_write": Signed from "nr_to_write";
    /// Pages passed over.
    PagesSkipped = "pages_skipped": Signed;
    /// For reclaim.
    ForReclaim = "for_reclaim": Signed;
    /// There is more to write.
    MoreIo = "more_io": Signed;
    /// First byte of the range.
    RangeStart = "range_start": Unsigned;
    /// Last byte of the range; 0 for all.
    RangeEnd = "range_end": Unsigned;
    /// Pages that were written.
    Wrote = "wrote": Unsigned;
    /// Dirtied before this, jiffies.
    Older = "older": Unsigned from "older_than_this";
    /// Inodes queued.
    Enqueue = "enqueue": Signed from "moved";
    /// Flags of the call, `I_*`.
    InodeFlags = "inode_flags": Text from "flags";
    /// Dirty pages, all told.
    Dirty = "dirty": Unsigned from "nr_dirty";
    /// Pages under writeback, all told.
    Writeback = "writeback": Unsigned from "nr_writeback";
    /// NFS pages not yet committed.
    Unstable = "unstable": Unsigned from "nr_unstable";
    /// Background threshold, pages.
    BgThresh = "bg_thresh": Unsigned from "background_thresh";
    /// Dirty threshold, pages.
    Thresh = "thresh": Unsigned from "dirty_thresh";
    /// Limit that follows the threshold, pages.
    Limit = "limit": Unsigned from "dirty_limit";
    /// Pages dirtied since boot, or by the task since its last pause.
    Dirtied = "dirtied": Unsigned from "nr_dirtied";
    /// Dirty pages aimed at.
    Setpoint = "setpoint": Unsigned;
    /// The device's share of it (`wb_setpoint` since 6.11).
    BdiSetpoint = "bdi_setpoint": Unsigned from "wb_setpoint";
    /// Dirty pages of the device (`wb_dirty` since 6.11).
    BdiDirty = "bdi_dirty": Unsigned from "wb_dirty";
    /// Base rate, KiB/s.
    DirtyRatelimit = "dirty_ratelimit": Unsigned;
    /// Rate of the task, KiB/s.
    TaskRatelimit = "task_ratelimit": Unsigned;
    /// Pages after which the task pauses.
    DirtiedPause = "dirtied_pause": Unsigned;
    /// Pauses so far in this call, ms.
    Paused = "paused": Unsigned;
    /// This pause, ms.
    Pause = "pause": Signed;
    /// Pause and think time, ms.
    Period = "period": Unsigned;
    /// Time since the last pause, ms.
    Think = "think": Signed;
    /// Write bandwidth, KiB/s.
    WriteBw = "write_bw": Unsigned;
    /// Smoothed write bandwidth, KiB/s.
    AwriteBw = "awrite_bw": Unsigned from "avg_write_bw";
    /// Rate of dirtying, KiB/s.
    DirtyRate = "dirty_rate": Unsigned;
    /// Rate at which dirtying would balance, KiB/s.
    BalancedDirtyRatelimit = "balanced_dirty_ratelimit": Unsigned;
    /// First page frame of the range.
    StartPfn = "start_pfn": Unsigned;
    /// End of the range.
    EndPfn = "end_pfn": Unsigned;
    /// Pages migrated.
    NrMigrated = "nr_migrated": Unsigned;
    /// Pages that could not be migrated.
    NrFailed = "nr_failed": Unsigned from "failed";
    /// First page frame of the zone.
    ZoneStart = "zone_start": Unsigned;
    /// Where the migration scanner is.
    MigratePfn = "migrate_pfn": Unsigned from "migrate_start";
    /// Where the free scanner is.
    FreePfn = "free_pfn": Unsigned from "free_start";
    /// End of the zone.
    ZoneEnd = "zone_end": Unsigned;
    /// `sync` or `async`; of migration `MIGRATE_*`.
    Mode = "mode": Text from "sync" as SyncMode;
    /// How it ended.
    Status = "status": Text;
    /// Zone by name.
    Zone = "zone": Text from "idx", "zone_idx", "name";
    /// Result by name.
    Ret = "ret": Text;
    /// Smallest order for which compaction failed.
    OrderFailed = "order_failed": Signed;
    /// Attempts skipped so far.
    Consider = "consider": Unsigned from "considered";
    /// Attempts to skip.
    DeferLimit = "defer_limit": Unsigned from "defer_shift" as PowerOfTwo;
    /// Migrate type.
    Migratetype = "migratetype": Signed;
    /// Refill of a per-CPU list (1) or not (0).
    PercpuRefill = "percpu_refill": Signed;
    /// Order asked for.
    AllocOrder = "alloc_order": Signed;
    /// Order of the block taken.
    FallbackOrder = "fallback_order": Signed;
    /// Order of a page block.
    PageblockOrder = "pageblock_order": Signed;
    /// Migrate type asked for.
    AllocMigratetype = "alloc_migratetype": Signed;
    /// Migrate type taken from.
    FallbackMigratetype = "fallback_migratetype": Signed;
    /// Whether a page block is broken up.
    Fragmenting = "fragmenting": Signed;
    /// Whether the page block changes its type.
    ChangeOwnership = "change_ownership": Signed;
    /// Watermark min, pages.
    WatermarkMin = "watermark_min": Unsigned;
    /// Watermark low, pages.
    WatermarkLow = "watermark_low": Unsigned;
    /// Watermark high, pages.
    WatermarkHigh = "watermark_high": Unsigned;
    /// Watermark of promotion, pages.
    WatermarkPromo = "watermark_promo": Unsigned;
    /// Zone that the reserve is held against, by name.
    UpperZone = "upper_zone": Text from "upper_name";
    /// Pages held back.
    LowmemReserve = "lowmem_reserve": Signed;
    /// Pages held back, all told.
    TotalreservePages = "totalreserve_pages": Unsigned;
    /// Pages that reclaim could give.
    Reclaimable = "reclaimable": Unsigned;
    /// Pages free or reclaimable.
    Available = "available": Unsigned;
    /// Watermark min, pages.
    MinWmark = "min_wmark": Unsigned;
    /// Rounds without progress.
    NoProgressLoops = "no_progress_loops": Signed;
    /// Whether the watermark would be met.
    WmarkCheck = "wmark_check": Signed;
    /// Priority of compaction by name.
    CompactPriority = "compact_priority": Text from "priority";
    /// Result of compaction by name.
    CompactionResult = "compaction_result": Text from "result";
    /// Retries so far.
    Retries = "retries": Signed;
    /// Retries allowed.
    MaxRetries = "max_retries": Signed;
    /// Whether it is tried again.
    ShouldRetry = "should_retry": Signed;
    /// `comm`.
    Comm = "comm": Text from "parent_comm";
    /// Virtual size, KiB.
    TotalVm = "total_vm": Unsigned;
    /// Anonymous resident set, KiB.
    AnonRss = "anon_rss": Unsigned;
    /// File resident set, KiB.
    FileRss = "file_rss": Unsigned;
    /// Shared memory in the resident set, KiB.
    ShmemRss = "shmem_rss": Unsigned;
    /// User.
    Uid = "uid": Unsigned;
    /// Page tables, KiB.
    Pgtables = "pgtables": Unsigned;
    /// `oom_score_adj`.
    OomScoreAdj = "oom_score_adj": Signed;
    /// Pages that were moved.
    NrSucceeded = "nr_succeeded": Unsigned from "succeeded";
    /// Huge pages that were moved.
    NrThpSucceeded = "nr_thp_succeeded": Unsigned from "thp_succeeded";
    /// Huge pages that were not.
    NrThpFailed = "nr_thp_failed": Unsigned from "thp_failed";
    /// Huge pages that were split.
    NrThpSplit = "nr_thp_split": Unsigned from "thp_split";
    /// Large folios that were split.
    NrSplit = "nr_split": Unsigned from "large_folio_split";
    /// Page frame that was looked at.
    ScanPfn = "scan_pfn": Unsigned from "pfn";
    /// Whether a page is writable.
    Writable = "writable": Signed;
    /// Pages found referenced.
    Referenced = "referenced": Signed;
    /// Empty or zero entries.
    NoneOrZero = "none_or_zero": Signed;
    /// Entries that are swapped out.
    Unmapped = "unmapped": Signed;
    /// Whether it was isolated.
    Isolated = "isolated": Signed;
    /// Pages swapped in.
    SwappedIn = "swapped_in": Signed;
    /// Name of the file.
    Filename = "filename": Text;
    /// Pages present.
    Present = "present": Signed;
    /// Pages swapped out.
    Swap = "swap": Signed;
    /// How it ended.
    Result = "result": Text;
    /// Pages gone through.
    Progress = "progress": Unsigned;
    /// Whether every process was gone through.
    FullScanFinished = "full_scan_finished": Signed;
    /// `MaBD…`: mapped, anon or file, swap-backed, and so on.
    PageFlags = "page_flags": Text;
    /// LRU list by number.
    LruIndex = "lru_index": Signed from "lru";
    /// Offset in the file, bytes.
    Ofs = "ofs": Unsigned from "index" as PagesToBytes;
    /// Counter of the memory cgroup by number.
    Item = "item": Signed;
    /// Value added.
    Val = "val": Signed;
    /// `comm` of the new process.
    ChildComm = "child_comm": Text;
    /// The new process.
    ChildPid = "child_pid": Signed;
    /// Number of the thread that became the program; it has that of its process from then on.
    OldPid = "old_pid": Signed;
    /// Priority.
    Prio = "prio": Signed;
    /// Whether it was the last thread of its process.
    GroupDead = "group_dead": Text;
}

impl Field {
    /// Its declaration.
    #[inline]
    pub fn spec(self) -> &'static FieldSpec {
        &SPECS[self as usize]
    }

    /// Name in text and JSON.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The field of this name.
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|f| f.name() == name)
    }
}
