//! Every tracepoint, declared once: its text in every era.
//!
//! A text is the kernel's format string with the names of the fields in place of its conversions; the
//! string of a release holds until the next one in the list. `{pfn:x}` is hexadecimal, `{zone:8}` is padded
//! to eight characters. Text of every era is read whatever the release; these only say what is written.

use super::field::Field;
use super::texts::*;

/// Text by first release.
pub type Texts = &'static [(&'static str, &'static str)];

/// Declaration of an event.
#[derive(Debug)]
pub struct EventSpec {
    /// Subsystem, the directory under `events/`.
    pub group: &'static str,
    /// Name of the tracepoint.
    pub name: &'static str,
    /// What happened, with the kernel function that tells.
    pub doc: &'static str,
    /// Text by first release.
    pub texts: Texts,
    /// First release without the event.
    pub until: Option<&'static str>,
    /// Fields that only the binary record has.
    pub unprinted: &'static [Field],
}

macro_rules! events {
    ($( $group:ident { $( $(#[doc = $doc:literal])* $variant:ident = $name:literal
        $( until $until:literal )? $( with $($field:ident)+ )? : $texts:expr ; )* } )*) => {
        /// Which tracepoint.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $( $( $(#[doc = $doc])* $variant, )* )*
        }

        impl Kind {
            /// Every tracepoint, in order of declaration.
            pub const ALL: &'static [Kind] = &[ $( $( Kind::$variant, )* )* ];
        }

        const SPECS: &[EventSpec] = &[ $( $( EventSpec {
            group: stringify!($group),
            name: $name,
            doc: concat!($($doc),*).trim_ascii(),
            texts: $texts,
            until: first_of!($($until)?),
            unprinted: &[ $($( Field::$field ),+)? ],
        }, )* )* ];
    };
}

macro_rules! first_of {
    () => {
        None
    };
    ($until:literal) => {
        Some($until)
    };
}

events! {
    vmscan {
        /// kswapd goes fully to sleep (`kswapd_try_to_sleep`).
        KswapdSleep = "mm_vmscan_kswapd_sleep": NID;
        /// kswapd starts a balancing run (`kswapd`).
        KswapdWake = "mm_vmscan_kswapd_wake" with Zid: KSWAPD_WAKE;
        /// Somebody wakes kswapd (`wakeup_kswapd`).
        WakeupKswapd = "mm_vmscan_wakeup_kswapd" with Zid: WAKEUP_KSWAPD;
        /// kswapd begins to balance a node (`balance_pgdat`).
        BalancePgdatBegin = "mm_vmscan_balance_pgdat_begin":
            &[("7.1", "nid={nid} order={order} highest_zoneidx={highest_zone:8}")];
        /// kswapd has balanced a node, or gave up (`balance_pgdat`).
        BalancePgdatEnd = "mm_vmscan_balance_pgdat_end": &[(
            "7.1",
            "nid={nid} order={order} highest_zoneidx={highest_zone:8} nr_reclaimed={nr_reclaimed}",
        )];
        /// kswapd found nothing to reclaim (`balance_pgdat`).
        KswapdReclaimFail = "mm_vmscan_kswapd_reclaim_fail":
            &[("7.1", "nid={nid} failures={failures}")];
        /// A node is worth another try (`kswapd_clear_hopeless`).
        KswapdClearHopeless = "mm_vmscan_kswapd_clear_hopeless":
            &[("7.1", "nid={nid} reason={reason}")];
        /// Direct reclaim begins (`try_to_free_pages`).
        DirectReclaimBegin = "mm_vmscan_direct_reclaim_begin": RECLAIM_BEGIN;
        /// Direct reclaim ends (`try_to_free_pages`).
        DirectReclaimEnd = "mm_vmscan_direct_reclaim_end": RECLAIM_END;
        /// Reclaim for the limit of a memory cgroup begins (`try_to_free_mem_cgroup_pages`).
        MemcgReclaimBegin = "mm_vmscan_memcg_reclaim_begin": RECLAIM_BEGIN;
        /// Reclaim for the limit of a memory cgroup ends.
        MemcgReclaimEnd = "mm_vmscan_memcg_reclaim_end": RECLAIM_END;
        /// Reclaim above a soft limit begins (`mem_cgroup_shrink_node`).
        MemcgSoftlimitReclaimBegin = "mm_vmscan_memcg_softlimit_reclaim_begin": RECLAIM_BEGIN;
        /// Reclaim above a soft limit ends.
        MemcgSoftlimitReclaimEnd = "mm_vmscan_memcg_softlimit_reclaim_end": RECLAIM_END;
        /// Reclaim of one's own node begins (`__node_reclaim`).
        NodeReclaimBegin = "mm_vmscan_node_reclaim_begin":
            &[("5.2", "nid={nid} order={order} gfp_flags={gfp_flags}")];
        /// Reclaim of one's own node ends.
        NodeReclaimEnd = "mm_vmscan_node_reclaim_end": RECLAIM_END;
        /// Pages were taken off an LRU list (`isolate_lru_pages`).
        LruIsolate = "mm_vmscan_lru_isolate": LRU_ISOLATE;
        /// The same for a memory cgroup (`mem_cgroup_isolate_pages`).
        MemcgIsolate = "mm_vmscan_memcg_isolate" until "4.11": LRU_ISOLATE;
        /// Reclaim writes a page (`pageout`).
        Writepage = "mm_vmscan_writepage" until "5.18": WRITEPAGE;
        /// Reclaim writes a folio (`pageout`).
        WriteFolio = "mm_vmscan_write_folio":
            &[("5.18", "page={page} pfn=0x{pfn:x} flags={flags}")];
        /// A batch of the inactive list was gone through (`shrink_inactive_list`).
        LruShrinkInactive = "mm_vmscan_lru_shrink_inactive": LRU_SHRINK_INACTIVE;
        /// Pages were reclaimed by name (`reclaim_pages`).
        ReclaimPages = "mm_vmscan_reclaim_pages": RECLAIM_PAGES;
        /// A batch of the active list was gone through (`shrink_active_list`).
        LruShrinkActive = "mm_vmscan_lru_shrink_active": &[(
            "4.11",
            "nid={nid} nr_taken={nr_taken} nr_active={nr_active} nr_deactivated={nr_deactivated} \
             nr_referenced={nr_referenced} priority={priority} flags={flags}",
        )];
        /// Whether the active list is to be shrunk (`inactive_list_is_low`).
        InactiveListIsLow = "mm_vmscan_inactive_list_is_low" until "5.5": &[(
            "4.11",
            "nid={nid} reclaim_idx={reclaim_idx} total_inactive={total_inactive} \
             inactive={inactive} total_active={total_active} active={active} ratio={ratio} \
             flags={flags}",
        )];
        /// A reclaimer was made to wait (`reclaim_throttle`). The typo is the kernel's.
        Throttled = "mm_vmscan_throttled": &[(
            "5.16",
            "nid={nid} usec_timeout={usec_timeout} usect_delayed={usec_delayed} \
             reason={throttle_reason}",
        )];
        /// A shrinker is called (`do_shrink_slab`).
        ShrinkSlabStart = "mm_shrink_slab_start": SHRINK_SLAB_START;
        /// A shrinker has returned (`do_shrink_slab`).
        ShrinkSlabEnd = "mm_shrink_slab_end": SHRINK_SLAB_END;
        /// The swap token changes hands (`grab_swap_token`).
        ReplaceSwapToken = "replace_swap_token" until "3.5": &[(
            "3.0",
            "old_token_mm={old_token_mm} old_prio={old_prio} new_token_mm={new_token_mm} \
             new_prio={new_prio}",
        )];
        /// The swap token is given back (`__put_swap_token`).
        PutSwapToken = "put_swap_token" until "3.5": &[("3.0", "token_mm={token_mm}")];
        /// The swap token is taken away (`disable_swap_token`).
        DisableSwapToken = "disable_swap_token" until "3.5": &[("3.0", "token_mm={token_mm}")];
        /// The priority of the swap token changes (`grab_swap_token`).
        UpdateSwapTokenPriority = "update_swap_token_priority" until "3.5": &[(
            "3.0",
            "mm={mm} old_prio={old_prio} new_prio={new_prio} swap_token_mm={token_mm} \
             token_prio={token_prio}",
        )];
    }
    writeback {
        /// A task slept in `congestion_wait`.
        CongestionWait = "writeback_congestion_wait" until "5.18": CONGESTION;
        /// A task passed `wait_iff_congested`, asleep or not.
        WaitIffCongested = "writeback_wait_iff_congested" until "5.16": CONGESTION;
        /// A writer has to clean pages or to wait (`balance_dirty_pages`).
        WbcBalanceDirtyStart = "wbc_balance_dirty_start" until "3.1": WRITEBACK_CONTROL;
        /// A writer has waited (`balance_dirty_pages`).
        WbcBalanceDirtyWait = "wbc_balance_dirty_wait" until "3.1": WRITEBACK_CONTROL;
        /// A writer has cleaned pages (`balance_dirty_pages`).
        WbcBalanceDirtyWritten = "wbc_balance_dirty_written" until "3.1": WRITEBACK_CONTROL;
        /// A writer has to clean pages or to wait (`balance_dirty_pages`).
        BalanceDirtyStart = "balance_dirty_start" until "3.2": BDI;
        /// A writer has waited (`balance_dirty_pages`).
        BalanceDirtyWait = "balance_dirty_wait" until "3.2": BDI;
        /// A writer has cleaned pages (`balance_dirty_pages`).
        BalanceDirtyWritten = "balance_dirty_written" until "3.2":
            &[("3.1", "bdi {bdi} written {written}")];
        /// A writer is throttled, or not yet (`balance_dirty_pages`).
        BalanceDirtyPages = "balance_dirty_pages": BALANCE_DIRTY_PAGES;
        /// The rate of a device is set anew (`bdi_update_dirty_ratelimit`).
        BdiDirtyRatelimit = "bdi_dirty_ratelimit": BDI_DIRTY_RATELIMIT;
        /// Dirty pages against their thresholds (`global_dirty_limits`).
        GlobalDirtyState = "global_dirty_state": GLOBAL_DIRTY_STATE;
        /// Work is queued for the flusher (`bdi_queue_work`).
        WritebackQueue = "writeback_queue": WRITEBACK_WORK;
        /// The flusher takes work up (`wb_do_writeback`).
        WritebackExec = "writeback_exec": WRITEBACK_WORK;
        /// A round of writing begins (`wb_writeback`).
        WritebackStart = "writeback_start": WRITEBACK_WORK;
        /// A round of writing has ended (`wb_writeback`).
        WritebackWritten = "writeback_written": WRITEBACK_WORK;
        /// The flusher waits for an inode (`wb_writeback`).
        WritebackWait = "writeback_wait": WRITEBACK_WORK;
        /// Pages that the flusher wrote (`wb_workfn`).
        WritebackPagesWritten = "writeback_pages_written": &[("2.6.36", "{pages}")];
        /// The flusher is woken for background writing (`wb_start_background_writeback`).
        WritebackWakeBackground = "writeback_wake_background": BDI_CGROUP;
        /// Dirty inodes are queued for writing (`queue_io`).
        WritebackQueueIo = "writeback_queue_io": WRITEBACK_QUEUE_IO;
        /// An inode is written (`__writeback_single_inode`).
        WritebackSingleInodeStart = "writeback_single_inode_start": SINGLE_INODE;
        /// An inode was written (`__writeback_single_inode`).
        WritebackSingleInode = "writeback_single_inode": SINGLE_INODE;
        /// An inode is put back in the queue (`writeback_sb_inodes`).
        WritebackSbInodesRequeue = "writeback_sb_inodes_requeue": SB_INODES_REQUEUE;
        /// An inode becomes dirty (`__mark_inode_dirty`).
        WritebackMarkInodeDirty = "writeback_mark_inode_dirty": DIRTY_INODE;
        /// An inode becomes dirty (`__mark_inode_dirty`).
        WritebackDirtyInodeStart = "writeback_dirty_inode_start": DIRTY_INODE;
        /// An inode has become dirty (`__mark_inode_dirty`).
        WritebackDirtyInode = "writeback_dirty_inode": DIRTY_INODE;
        /// A page becomes dirty (`account_page_dirtied`).
        WritebackDirtyPage = "writeback_dirty_page" until "5.18":
            &[("3.9", "bdi {bdi}: ino={ino} index={index}")];
        /// A folio becomes dirty (`folio_account_dirtied`).
        WritebackDirtyFolio = "writeback_dirty_folio":
            &[("5.18", "bdi {bdi}: ino={ino} index={index}")];
        /// An inode itself is written (`write_inode`).
        WritebackWriteInodeStart = "writeback_write_inode_start": WRITE_INODE;
        /// An inode itself was written (`write_inode`).
        WritebackWriteInode = "writeback_write_inode": WRITE_INODE;
    }
    compaction {
        /// Pages were isolated for migration (`isolate_migratepages_block`).
        IsolateMigratepages = "mm_compaction_isolate_migratepages": COMPACTION_ISOLATE;
        /// Free pages were isolated (`isolate_freepages_block`).
        IsolateFreepages = "mm_compaction_isolate_freepages": COMPACTION_ISOLATE;
        /// Free pages were taken from the free lists (`fast_isolate_freepages`).
        FastIsolateFreepages = "mm_compaction_fast_isolate_freepages": &[(
            "6.4",
            "range=(0x{start_pfn:x} ~ 0x{end_pfn:x}) nr_scanned={nr_scanned} nr_taken={nr_taken}",
        )];
        /// Pages were migrated (`compact_zone`).
        Migratepages = "mm_compaction_migratepages":
            &[("2.6.38", "nr_migrated={nr_migrated} nr_failed={nr_failed}")];
        /// Compaction of a zone begins (`compact_zone`).
        CompactionBegin = "mm_compaction_begin": COMPACTION_BEGIN;
        /// Compaction of a zone ends (`compact_zone`).
        CompactionEnd = "mm_compaction_end": COMPACTION_END;
        /// Direct compaction is tried (`try_to_compact_pages`).
        TryToCompactPages = "mm_compaction_try_to_compact_pages": &[
            ("4.1", "order={order} gfp_mask={gfp_flags} mode={mode}"),
            ("4.8", "order={order} gfp_mask={gfp_flags} priority={priority}"),
        ];
        /// Whether compaction is done (`compact_finished`).
        CompactionFinished = "mm_compaction_finished": COMPACTION_RESULT;
        /// Whether compaction can help (`compaction_suitable`).
        CompactionSuitable = "mm_compaction_suitable": COMPACTION_RESULT;
        /// Compaction is put off (`compaction_deferred`).
        CompactionDeferred = "mm_compaction_deferred": COMPACTION_DEFER;
        /// Compaction failed and will be put off (`defer_compaction`).
        DeferCompaction = "mm_compaction_defer_compaction": COMPACTION_DEFER;
        /// Compaction succeeded and is put off no longer (`compaction_defer_reset`).
        DeferReset = "mm_compaction_defer_reset": COMPACTION_DEFER;
        /// kcompactd goes to sleep (`kcompactd`).
        KcompactdSleep = "mm_compaction_kcompactd_sleep": &[("4.6", "nid={nid}")];
        /// Somebody wakes kcompactd (`wakeup_kcompactd`).
        WakeupKcompactd = "mm_compaction_wakeup_kcompactd": KCOMPACTD;
        /// kcompactd starts to compact (`kcompactd_do_work`).
        KcompactdWake = "mm_compaction_kcompactd_wake": KCOMPACTD;
    }
    migrate {
        /// Pages were migrated (`migrate_pages`).
        MigratePages = "mm_migrate_pages": MIGRATE_PAGES;
        /// Pages are going to be migrated (`migrate_pages`).
        MigratePagesStart = "mm_migrate_pages_start": &[("5.11", "mode={mode} reason={reason}")];
    }
    kmem {
        /// Pages were allocated (`__alloc_pages`).
        MmPageAlloc = "mm_page_alloc": MM_PAGE_ALLOC;
        /// Pages were taken from the buddy lists (`rmqueue`).
        MmPageAllocZoneLocked = "mm_page_alloc_zone_locked": MM_PAGE_ALLOC_ZONE_LOCKED;
        /// A block of another migrate type was taken (`steal_suitable_fallback`).
        MmPageAllocExtfrag = "mm_page_alloc_extfrag": MM_PAGE_ALLOC_EXTFRAG;
        /// Pages were freed (`free_pages`).
        MmPageFree = "mm_page_free": &[
            ("3.3", "page={page} pfn={pfn} order={order}"),
            ("5.17", "page={page} pfn=0x{pfn:x} order={order}"),
        ];
        /// Pages were freed in a batch (`free_unref_page_list`).
        MmPageFreeBatched = "mm_page_free_batched": &[
            ("3.3", "page={page} pfn={pfn} order=0 cold={retval}"),
            ("4.15", "page={page} pfn={pfn} order=0"),
            ("5.17", "page={page} pfn=0x{pfn:x} order=0"),
        ];
        /// A per-CPU list was drained (`free_pcppages_bulk`).
        MmPagePcpuDrain = "mm_page_pcpu_drain": &[
            ("2.6.36", "page={page} pfn={pfn} order={order} migratetype={migratetype}"),
            ("5.17", "page={page} pfn=0x{pfn:x} order={order} migratetype={migratetype}"),
        ];
        /// Watermarks were set (`__setup_per_zone_wmarks`).
        SetupPerZoneWmarks = "mm_setup_per_zone_wmarks": &[(
            "6.15",
            "node_id={nid} zone name={zone} watermark min={watermark_min} low={watermark_low} \
             high={watermark_high} promo={watermark_promo}",
        )];
        /// A lowmem reserve was set (`setup_per_zone_lowmem_reserve`).
        SetupPerZoneLowmemReserve = "mm_setup_per_zone_lowmem_reserve": &[(
            "6.15",
            "node_id={nid} zone name={zone} upper_zone name={upper_zone} \
             lowmem_reserve_pages={lowmem_reserve}",
        )];
        /// The sum of all reserves was computed (`calculate_totalreserve_pages`).
        CalculateTotalreservePages = "mm_calculate_totalreserve_pages":
            &[("6.15", "totalreserve_pages={totalreserve_pages}")];
    }
    oom {
        /// Whether reclaim of a zone is tried again (`should_reclaim_retry`).
        ReclaimRetryZone = "reclaim_retry_zone": &[(
            "4.10",
            "node={nid} zone={zone:8} order={order} reclaimable={reclaimable} \
             available={available} min_wmark={min_wmark} no_progress_loops={no_progress_loops} \
             wmark_check={wmark_check}",
        )];
        /// Whether compaction is tried again (`should_compact_retry`).
        CompactRetry = "compact_retry": &[(
            "4.10",
            "order={order} priority={compact_priority} compaction_result={compaction_result} \
             retries={retries} max_retries={max_retries} should_retry={should_retry}",
        )];
        /// A process is chosen to die (`mark_oom_victim`).
        MarkVictim = "mark_victim": MARK_VICTIM;
    }
    huge_memory {
        /// khugepaged looked at a huge page's worth of pages (`hpage_collapse_scan_pmd`).
        KhugepagedScanPmd = "mm_khugepaged_scan_pmd": KHUGEPAGED_SCAN_PMD;
        /// khugepaged looked at a file's pages (`hpage_collapse_scan_file`).
        KhugepagedScanFile = "mm_khugepaged_scan_file": &[
            (
                "4.8",
                "mm={mm}, scan_pfn=0x{scan_pfn:x}, filename={filename}, present={present}, \
                 swap={swap}, result={result}",
            ),
        ];
        /// khugepaged has gone through some pages (`khugepaged_scan_mm_slot`).
        KhugepagedScan = "mm_khugepaged_scan": &[(
            "7.0",
            "mm={mm}, progress={progress}, full_scan_finished={full_scan_finished}",
        )];
        /// Pages were collapsed into a huge page (`collapse_huge_page`).
        CollapseHugePage = "mm_collapse_huge_page": &[
            ("4.5", "mm={mm}, isolated={isolated}, status={status}"),
            ("7.2", "mm={mm}, isolated={isolated}, status={status}, order={order}"),
        ];
        /// Pages were isolated to be collapsed (`__collapse_huge_page_isolate`).
        CollapseHugePageIsolate = "mm_collapse_huge_page_isolate": COLLAPSE_ISOLATE;
        /// Pages were swapped in to be collapsed (`__collapse_huge_page_swapin`).
        CollapseHugePageSwapin = "mm_collapse_huge_page_swapin": &[
            (
                "4.8",
                "mm={mm}, swapped_in={swapped_in}, referenced={referenced}, ret={retval}",
            ),
            (
                "7.2",
                "mm={mm}, swapped_in={swapped_in}, referenced={referenced}, ret={retval}, \
                 order={order}",
            ),
        ];
    }
    pagemap {
        /// A page was put on an LRU list (`lru_add`).
        LruInsertion = "mm_lru_insertion": &[
            ("3.12", "page={page} pfn={pfn} lru={lru_index} flags={page_flags}"),
            ("5.17", "folio={page} pfn=0x{pfn:x} lru={lru_index} flags={page_flags}"),
        ];
        /// A page was made active (`lru_activate`).
        LruActivate = "mm_lru_activate": &[
            ("3.12", "page={page} pfn={pfn}"),
            ("5.17", "folio={page} pfn=0x{pfn:x}"),
        ];
    }
    filemap {
        /// A page entered the page cache (`__filemap_add_folio`).
        AddToPageCache = "mm_filemap_add_to_page_cache": PAGE_CACHE;
        /// A page left the page cache (`__filemap_remove_folio`).
        DeleteFromPageCache = "mm_filemap_delete_from_page_cache": PAGE_CACHE;
    }
    memcg {
        /// An event of a memory cgroup was counted (`count_memcg_events`).
        CountMemcgEvents = "count_memcg_events":
            &[("6.14", "memcg_id={memcg_id} item={item} val={val}")];
    }
    sched {
        /// A process or thread begins (`copy_process`).
        ProcessFork = "sched_process_fork":
            &[("2.6.36", "comm={comm} pid={pid} child_comm={child_comm} child_pid={child_pid}")];
        /// A process becomes another program (`exec_binprm`).
        ProcessExec = "sched_process_exec":
            &[("3.4", "filename={filename} pid={pid} old_pid={old_pid}")];
        /// A process or thread ends (`do_exit`).
        ProcessExit = "sched_process_exit": &[
            ("2.6.36", "comm={comm} pid={pid} prio={prio}"),
            ("6.16", "comm={comm} pid={pid} prio={prio} group_dead={group_dead}"),
        ];
    }
}

impl Kind {
    /// Its declaration.
    #[inline]
    pub fn spec(self) -> &'static EventSpec {
        &SPECS[self as usize]
    }

    /// Name of the tracepoint.
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}
