//! The words of memory management that every room uses: frames and their flags, zones, watermarks, lists, what an
//! allocation may do.

use crate::ids::NodeId;
use lowmark_record::event::gfp;
use lowmark_spec::machine::{Arch, ZoneKind};

/// Page frame number.
pub(crate) type Pfn = u32;

/// No page: end of a list.
pub(crate) const NONE: Pfn = Pfn::MAX;

/// Page flags (`enum pageflags`), one bit each.
pub(crate) mod flag {
    /// PG_referenced
    pub(crate) const REFERENCED: u16 = 1 << 0;
    /// PG_active
    pub(crate) const ACTIVE: u16 = 1 << 1;
    /// PG_lru: on an LRU list
    pub(crate) const LRU: u16 = 1 << 2;
    /// PG_dirty
    pub(crate) const DIRTY: u16 = 1 << 3;
    /// PG_writeback
    pub(crate) const WRITEBACK: u16 = 1 << 4;
    /// PG_swapbacked: anonymous or shmem
    pub(crate) const SWAPBACKED: u16 = 1 << 5;
    /// PG_swapcache: `private` is its slot
    pub(crate) const SWAPCACHE: u16 = 1 << 6;
    /// PG_reclaim while under writeback, PG_readahead otherwise
    pub(crate) const RECLAIM: u16 = 1 << 7;
    /// PG_locked: a read into it is under way, or reclaim waits for its write and wants it as it is then
    pub(crate) const LOCKED: u16 = 1 << 8;
    /// PG_waiters: somebody waits for the lock or for writeback
    pub(crate) const WAITERS: u16 = 1 << 9;
    /// PG_workingset: it has been active
    pub(crate) const WORKINGSET: u16 = 1 << 10;
    /// PageAnon (`PAGE_MAPPING_ANON`): `owner` is or was in a private region
    pub(crate) const ANON: u16 = 1 << 11;
    /// First page of a free block on the list of a CPU.
    pub(crate) const PCP: u16 = 1 << 12;
    /// No buffer of a dirty page has BH_Dirty: the journal has given all that is in the page to the device.
    pub(crate) const BUFFERS_CLEAN: u16 = 1 << 13;
    /// BH_Lock of its buffers: the journal's write of a dirty page is under way.
    pub(crate) const BUFFERS_LOCKED: u16 = 1 << 14;
    /// PG_unevictable, PG_mlocked: locked in memory, and on no list
    pub(crate) const UNEVICTABLE: u16 = 1 << 15;
    /// PageBuddy: first page of a free block of the zone. A page on the list of a CPU is free, and one that is locked in
    /// memory is not.
    pub(crate) const BUDDY: u16 = PCP | UNEVICTABLE;
}

/// `owner` of a page that belongs to nobody.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// `owner` of a page that nothing maps any more and that a task still holds: see
/// [`mmu_gather`](crate::mm::fault::mmu_gather).
pub(crate) const GATHERED: u32 = UNMAPPED - 1;

/// Zone types of a node.
pub(crate) const MAX_NR_ZONES: usize = 4;
/// Pages by type of their zone.
pub(crate) type ByZone = [u64; MAX_NR_ZONES];
/// Orders of the buddy allocator on the machine that has most, 0 to 12.
pub(crate) const MAX_ORDER: usize = 13;
/// Blocks above this order are hard to come by, and who wants one may do without.
pub(crate) const PAGE_ALLOC_COSTLY_ORDER: usize = 3;

/// Zone types in the order that every rule uses (`enum zone_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneType {
    /// Below 16 MiB.
    Dma,
    /// Below 4 GiB.
    Dma32,
    /// The rest, or up to 896 MiB on 32 bits.
    Normal,
    /// Above what the kernel maps, or movable only.
    High,
}

impl ZoneType {
    /// All types, lowest first.
    pub(crate) const ALL: [ZoneType; MAX_NR_ZONES] = [
        ZoneType::Dma,
        ZoneType::Dma32,
        ZoneType::Normal,
        ZoneType::High,
    ];

    /// Suffix in `/proc/vmstat`.
    pub fn name(self) -> &'static str {
        match self {
            ZoneType::Dma => "dma",
            ZoneType::Dma32 => "dma32",
            ZoneType::Normal => "normal",
            ZoneType::High => "high",
        }
    }

    /// Name in `/proc/zoneinfo` (`zone_names`).
    pub(crate) fn zone_name(self) -> &'static str {
        match self {
            ZoneType::Dma => "DMA",
            ZoneType::Dma32 => "DMA32",
            ZoneType::Normal => "Normal",
            ZoneType::High => "HighMem",
        }
    }
}

impl From<ZoneKind> for ZoneType {
    fn from(kind: ZoneKind) -> ZoneType {
        match kind {
            ZoneKind::Dma => ZoneType::Dma,
            ZoneKind::Dma32 => ZoneType::Dma32,
            ZoneKind::Normal => ZoneType::Normal,
            ZoneKind::HighMem => ZoneType::High,
        }
    }
}

/// Watermark indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Min,
    Low,
    High,
}

/// How large blocks of an architecture are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockOrders {
    /// The largest order of a block (`MAX_PAGE_ORDER`, before 6.8 `MAX_ORDER - 1`).
    pub(crate) largest: usize,
    /// Order of a pageblock (`pageblock_order`): that of a huge page.
    pub(crate) pageblock: usize,
}

impl BlockOrders {
    /// PPC64 with pages of 4 KiB has huge pages of 16 MiB, and `CONFIG_FORCE_MAX_ZONEORDER=13` for them.
    pub(crate) fn of(arch: Arch) -> BlockOrders {
        let (largest, pageblock) = match arch {
            Arch::X86_64 | Arch::X86_32 => (10, PAGEBLOCK_ORDER),
            Arch::Ppc64 => (12, 12),
        };
        BlockOrders { largest, pageblock }
    }
}

/// Order of a pageblock of x86.
pub(crate) const PAGEBLOCK_ORDER: usize = 9;
/// Pages of a pageblock of x86 (`pageblock_nr_pages`).
pub(crate) const PAGEBLOCK_PAGES: Pfn = 1 << PAGEBLOCK_ORDER;

/// What can be done about a page so that its block becomes free (`enum migratetype`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MigrateType {
    /// Nothing: page tables, stacks, most of the kernel's own.
    Unmovable,
    /// It can be moved: pages of users and of files.
    Movable,
    /// It can be given up: caches of inodes and the like.
    Reclaimable,
    /// Kept for allocations of several pages that cannot wait (`MIGRATE_HIGHATOMIC`; up to 4.3 `MIGRATE_RESERVE`).
    HighAtomic,
}

impl MigrateType {
    /// How many there are.
    pub(crate) const COUNT: usize = 4;
    /// All of them, by their numbers.
    pub(crate) const ALL: [MigrateType; MigrateType::COUNT] = [
        MigrateType::Unmovable,
        MigrateType::Movable,
        MigrateType::Reclaimable,
        MigrateType::HighAtomic,
    ];
    /// How many of them allocations belong to, the first ones (`MIGRATE_PCPTYPES`).
    pub(crate) const PCPTYPES: usize = 3;

    /// Whose blocks are taken when there are none of this type, in order (`fallbacks`).
    pub(crate) fn fallbacks(self) -> &'static [MigrateType] {
        match self {
            MigrateType::Unmovable => &[MigrateType::Reclaimable, MigrateType::Movable],
            MigrateType::Movable => &[MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => &[MigrateType::Unmovable, MigrateType::Movable],
            MigrateType::HighAtomic => &[],
        }
    }
}

/// LRU lists (`enum lru_list`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lru {
    InactiveAnon,
    ActiveAnon,
    InactiveFile,
    ActiveFile,
}

impl Lru {
    /// The four evictable lists in the order in which they are scanned.
    pub(crate) const EVICTABLE: [Lru; 4] = [
        Lru::InactiveAnon,
        Lru::ActiveAnon,
        Lru::InactiveFile,
        Lru::ActiveFile,
    ];

    pub(crate) fn new(file: bool, active: bool) -> Lru {
        Self::EVICTABLE[2 * usize::from(file) + usize::from(active)]
    }

    /// The inactive and the active list of anonymous pages, or of pages of files.
    pub(crate) fn of_type(file: bool) -> [Lru; 2] {
        [false, true].map(|active| Lru::new(file, active))
    }

    /// Anonymous pages and pages of files, of counts by list.
    pub(crate) fn by_type(counts: &[u64; 4]) -> [u64; 2] {
        [false, true].map(|file| {
            let [inactive, active] = Lru::of_type(file);
            counts[inactive as usize] + counts[active as usize]
        })
    }

    pub(crate) fn is_active(self) -> bool {
        matches!(self, Lru::ActiveAnon | Lru::ActiveFile)
    }

    pub(crate) fn is_file(self) -> bool {
        matches!(self, Lru::InactiveFile | Lru::ActiveFile)
    }
}

/// What an allocation may do, and the node that it prefers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gfp {
    /// `gfp_t`, in the bits of [`gfp`].
    flags: u64,
    /// Node whose zonelist is used.
    pub(crate) node: NodeId,
}

impl Gfp {
    /// GFP_HIGHUSER_MOVABLE on a node: what user pages are allocated with.
    pub(crate) fn user(node: NodeId) -> Gfp {
        let flags = gfp::HIGHUSER_MOVABLE;
        Gfp { flags, node }
    }

    /// GFP_KERNEL on a node: what the kernel allocates for itself.
    pub(crate) fn kernel(node: NodeId) -> Gfp {
        let flags = gfp::KERNEL;
        Gfp { flags, node }
    }

    /// These flags on a node.
    pub(crate) fn of(node: NodeId, flags: u64) -> Gfp {
        Gfp { flags, node }
    }

    /// GFP_TRANSHUGE with direct reclaim on a node: what a huge page is allocated with for a fault. It wakes no kswapd, and
    /// gives up soon.
    pub(crate) fn transhuge(node: NodeId) -> Gfp {
        let flags = gfp::TRANSHUGE | gfp::NORETRY;
        Gfp { flags, node }
    }

    /// The same with more flags.
    pub(crate) fn with(self, flags: u64) -> Gfp {
        let flags = self.flags | flags;
        Gfp { flags, ..self }
    }

    /// The same without these flags.
    pub(crate) fn without(self, flags: u64) -> Gfp {
        let flags = self.flags & !flags;
        Gfp { flags, ..self }
    }

    /// The same with `__GFP_NORETRY | __GFP_NOWARN`: it gives up when memory was reclaimed once and there is still no page.
    pub(crate) fn noretry(self) -> Gfp {
        self.with(gfp::NORETRY | gfp::NOWARN)
    }

    /// GFP_NOWAIT in its place: for a caller that cannot wait, and that may go so far below the min watermark.
    pub(crate) fn nowait(self, reserves: Reserves) -> Gfp {
        let kept = self.flags & !(gfp::DIRECT_RECLAIM | gfp::IO | gfp::FS);
        let flags = kept | gfp::NOWARN | reserves.flags();
        Gfp { flags, ..self }
    }

    /// Whether all of these flags are set.
    #[inline]
    pub(crate) fn has(self, flags: u64) -> bool {
        self.flags & flags == flags
    }

    /// Highest zone type that the page may lie in (`gfp_zone`).
    #[inline]
    pub(crate) fn highest(self) -> ZoneType {
        match self.flags & (gfp::HIGHMEM | gfp::DMA32 | gfp::DMA) {
            0 => ZoneType::Normal,
            zone if zone & gfp::HIGHMEM != 0 => ZoneType::High,
            zone if zone & gfp::DMA32 != 0 => ZoneType::Dma32,
            _ => ZoneType::Dma,
        }
    }

    /// Type of the pageblocks that it belongs in (`gfp_migratetype`).
    #[inline]
    pub(crate) fn migrate_type(self) -> MigrateType {
        match self.flags & (gfp::MOVABLE | gfp::RECLAIMABLE) {
            0 => MigrateType::Unmovable,
            mobility if mobility & gfp::MOVABLE != 0 => MigrateType::Movable,
            _ => MigrateType::Reclaimable,
        }
    }

    /// How far it may go below the min watermark (`gfp_to_alloc_flags`).
    pub(crate) fn reserves(self) -> Reserves {
        match self.flags & (gfp::MEMALLOC | gfp::HIGH | gfp::NOMEMALLOC) {
            flags if flags & gfp::MEMALLOC != 0 => Reserves::All,
            gfp::HIGH if !self.has(gfp::DIRECT_RECLAIM) => Reserves::Atomic,
            flags if flags & gfp::HIGH != 0 => Reserves::High,
            _ => Reserves::None,
        }
    }

    /// The flags of a huge page for a fault (`is_thp_gfp_mask`, to 4.7): it gives up soon and wakes no kswapd.
    pub(crate) fn is_for_huge_page(self) -> bool {
        self.has(gfp::TRANSHUGE_LIGHT | gfp::NORETRY) && !self.has(gfp::KSWAPD_RECLAIM)
    }

    /// The allocation flags, as events hold them.
    pub(crate) fn flags(self) -> u64 {
        self.flags
    }
}

/// There was nothing left to reclaim; the run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

/// How far below the min watermark an allocation may go that cannot wait (`ALLOC_RESERVES`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserves {
    /// GFP_NOWAIT: not at all.
    None,
    /// `__GFP_HIGH`: to half of it.
    High,
    /// GFP_ATOMIC: to three eighths of it.
    Atomic,
    /// PF_MEMALLOC, who reclaims: to the last page.
    All,
}

impl Reserves {
    /// The flags of an allocation that cannot wait.
    pub(crate) fn flags(self) -> u64 {
        match self {
            Reserves::None => 0,
            Reserves::High => gfp::HIGH | gfp::NOMEMALLOC,
            Reserves::Atomic => gfp::HIGH,
            Reserves::All => gfp::MEMALLOC,
        }
    }
}

/// Order of a huge page, which one entry of the directory above tables maps (`HPAGE_PMD_ORDER`).
pub(crate) const HPAGE_PMD_ORDER: usize = 9;
/// Pages of a huge page.
pub(crate) const HPAGE_PMD_NR: u32 = 1 << HPAGE_PMD_ORDER;

/// Pages that are isolated together, and that direct reclaim aims at.
pub(crate) const SWAP_CLUSTER_MAX: u64 = 32;

/// Priority at which reclaim begins.
pub(crate) const DEF_PRIORITY: u32 = 12;

/// How hard compaction tries (`enum compact_priority`), as tracepoints number it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompactPriority {
    /// `COMPACT_PRIO_SYNC_FULL`
    SyncFull = 0,
    /// `COMPACT_PRIO_SYNC_LIGHT`
    SyncLight = 1,
    /// `COMPACT_PRIO_ASYNC`
    Async = 2,
}

/// What came of compacting a zone (`enum compact_result`), the better the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CompactResult {
    /// There was too little free memory, or too much.
    Skipped,
    /// It has failed too lately.
    Deferred,
    /// The scanners have not met.
    Continue,
    /// They have, and the pass has seen all of the zone.
    Complete,
    /// They have, but the pass had begun where another one ended; or other things come first.
    PartialSkipped,
    /// There was no room to go on.
    Contended,
    /// There is a block of the order, or the zone is less fragmented than it may be.
    Success,
}

impl CompactResult {
    /// There was nothing to work with in any zone.
    pub(crate) fn is_skipped(self) -> bool {
        self == CompactResult::Skipped
    }

    /// It failed so lately that it was not tried.
    pub(crate) fn is_deferred(self) -> bool {
        self == CompactResult::Deferred
    }
}

/// What came of compacting zones for a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compacted {
    /// The best result of all zones.
    pub(crate) result: CompactResult,
    /// The block, if the task has captured it.
    pub(crate) captured: Option<Pfn>,
}

/// Tags of a page (`PAGECACHE_TAG_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    Dirty,
    Writeback,
    /// Dirty when a data-integrity pass began, which writes these and no more.
    Towrite,
}
