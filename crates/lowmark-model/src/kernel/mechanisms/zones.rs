//! Zones: watermarks, reserves, allocation.

macro_rules! zones {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Zones: watermarks, reserves, allocation.
            zones: Zones {
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
                    /// A quarter of min, or watermark_scale_factor of the zone if that is more.
                    ScaleFactor = "scale-factor",
                }
                /// Largest `min_free_kbytes` that the kernel sets by itself (`calculate_min_free_kbytes`).
                min_free_bound: MinFreeBound {
                    /// 64 MB.
                    Megabytes64 = "64m",
                    /// 256 MB.
                    Megabytes256 = "256m",
                }
                /// What becomes of `min_free_kbytes` where huge pages are off (`set_recommended_min_free_kbytes`).
                min_free_without_thp: MinFreeWithoutThp {
                    /// It stays as it was computed at boot.
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
                /// Which maps are refused as obvious overcommits (`__vm_enough_memory`).
                overcommit: Overcommit {
                    /// Those larger than what is free or could be, swap included, without what the allocator keeps back.
                    Available = "available",
                    /// Those larger than RAM and swap together.
                    Total = "total",
                }
                /// How much of the first megabyte of a PC the kernel keeps (`reserve_real_mode`).
                first_megabyte: FirstMegabyte {
                    /// What firmware and the first kernel structures use, some 120 pages.
                    Used = "used",
                    /// All of it, 256 pages.
                    All = "all",
                }
                /// What an allocation takes when there are no free blocks of its type (`__rmqueue_fallback`).
                migrate_types: MigrateTypes {
                    /// The largest block of another type. If it has 16 pages or more, or if the allocation is reclaimable,
                    /// all that is free in its pageblock changes its type, and the pageblock does so if that is half of it.
                    Moved = "moved",
                    /// The same, and the rest of a smaller block changes its type, too.
                    RestTaken = "rest-taken",
                    /// The rest of a block changes its type only with its pageblock.
                    RestLeft = "rest-left",
                    /// The rest of a block changes its type always, and unmovable allocations take what is free in a pageblock
                    /// as reclaimable ones do.
                    UnmovableToo = "unmovable-too",
                    /// A pageblock also changes its type for its pages in use that are like those of the allocation; what
                    /// is split then is the smallest block that changed its type.
                    Alike = "alike",
                    /// The same, but movable pages that cannot take a pageblock come from the smallest block.
                    Stolen = "stolen",
                    /// The same, but what is free changes its type only with its pageblock.
                    Claimed = "claimed",
                    /// A pageblock to claim is looked for among all blocks; else a page comes from the smallest one.
                    ClaimedFirst = "claimed-first",
                }
                /// Pageblocks kept for allocations of several pages that cannot wait.
                atomic_reserve: AtomicReserve {
                    /// Two of each zone from booting on, which other allocations use when nothing else is free
                    /// (`MIGRATE_RESERVE`).
                    AtBoot = "at-boot" needs(zones.migrate_types = MigrateTypes::Moved
                        | MigrateTypes::RestTaken
                        | MigrateTypes::RestLeft
                        | MigrateTypes::UnmovableToo
                        | MigrateTypes::Alike
                        | MigrateTypes::Stolen),
                    /// Those from which such an allocation got a block, as long as they are not more than a hundredth of the
                    /// zone; an allocation that reclaimed and found nothing gives one back (`MIGRATE_HIGHATOMIC`).
                    OnDemand = "on-demand",
                    /// The same; none in a zone of which a hundredth is less than a pageblock
                    /// (`reserve_highatomic_pageblock`).
                    LargeZones = "large-zones",
                }
                /// Whether kswapd is to free more when blocks change their type (`boost_watermark`).
                watermark_boost: WatermarkBoost {
                    /// It is not.
                    Off = "off",
                    /// Watermarks are a pageblock higher until kswapd has reclaimed for them.
                    AllZones = "all-zones",
                    /// The same in zones of four pageblocks and more.
                    FourBlocks = "four-blocks",
                }
                /// Memory that drivers of virtio disks need for requests under way (`virtblk_map_data`, `alloc_indirect_split`).
                virtio_memory: VirtioMemory within virtio_memory {
                    /// A table with a descriptor for each piece of memory.
                    Descriptors = "descriptors",
                    /// A table of descriptors, and a list of the pieces in chunks where there are more than two.
                    Chunks = "chunks",
                    /// The same, and what else is known of a descriptor is beside it, which makes the tables twice as large.
                    Extras = "extras",
                }
                /// Memory for DMA allocations that cannot sleep (`dma_atomic_pool_init`).
                dma_pool: DmaPool {
                    /// One pool, in ZONE_DMA32: it is a part of `occupied`.
                    One = "one",
                    /// One for each zone that devices may be confined to; that of ZONE_DMA matters.
                    EachZone = "each-zone",
                }
                /// The stack that a task has in the kernel (`alloc_thread_info`, `alloc_thread_stack_node`).
                kernel_stack: KernelStack {
                    /// A block of two pages; of four on PPC64.
                    TwoPages = "two-pages",
                    /// A block of four pages.
                    FourPages = "four-pages",
                    /// Four single pages (`CONFIG_VMAP_STACK`).
                    Mapped = "mapped",
                }
                /// Whether pages of zones above the request's count as scanned when reclaim meets them, and how many it skips
                /// (`isolate_lru_pages`).
                skipped_pages: SkippedPages {
                    /// A quarter of them, or all if there was nothing else.
                    Quarter = "quarter",
                    /// All of them.
                    Counted = "counted" needs(reclaim.lru_unit = LruUnit::Node),
                    /// All of them; after 32,768 in one pass reclaim takes pages of every zone.
                    Bounded = "bounded" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// How many free pages the lists of each CPU hold (`struct per_cpu_pages`).
                pcp_lists: PcpLists {
                    /// Single pages, up to six batches of a quarter of a thousandth of the zone, 31 pages at most.
                    SixBatches = "six-batches",
                    /// The same, but batches are up to 63 pages.
                    LargeBatches = "large-batches",
                    /// Small blocks and huge pages too, up to a CPU's share of the low watermark, four batches while kswapd is
                    /// at work.
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
                /// What an allocation that is to be tried again waits for, 20 ms at most (`__alloc_pages_slowpath`).
                alloc_wait: AllocWait {
                    /// For congestion to pass, whether there is any or not (before 0e093d99763e, 2.6.37).
                    Always = "always",
                    /// The same while a queue is congested. As posted: Mel Gorman, linux-mm, 15 September 2010, patch 7
                    /// of 8.
                    AnyQueue = "any-queue",
                    /// The same while a queue is congested, if the first zone of the allocation is marked as congested.
                    MarkedZone = "marked-zone",
                    /// For nothing.
                    None = "none",
                }
                /// When a failed allocation stops trying (`__alloc_pages_slowpath`).
                alloc_retry: AllocRetry {
                    /// Small orders retry for ever; out of memory only when reclaim found nothing.
                    Always = "always",
                    /// Sixteen rounds without progress, or watermarks out of reach even with all reclaimable pages.
                    Bounded = "bounded",
                }
                /// Which pages count as reclaimable in a zone with no pages on its LRU lists (`zone_reclaimable_pages`).
                empty_zone: EmptyZone {
                    /// Nothing.
                    Nothing = "nothing",
                    /// Its free pages. Where they are added to the free ones they count twice (`should_reclaim_retry`,
                    /// `compaction_zonelist_suitable`).
                    FreePages = "free-pages" needs(reclaim.lru_unit = LruUnit::Node),
                }
            }
        }
    };
}

pub(super) use zones;
