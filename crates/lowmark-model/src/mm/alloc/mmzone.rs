//! Nodes, zones, reserves and watermarks (`include/linux/mmzone.h`, `setup_per_zone_wmarks`).

use crate::ids::{LruvecId, NodeId, ZoneId};
use crate::kernel::thp::InForce;
use crate::kernel::{FirstMegabyte, Kernel, LruUnit, ZoneSize, Zones};
use crate::mm::alloc::pcp::Pcp;
use crate::mm::frames::page::FreeList;
use crate::mm::types::{BlockOrders, MAX_NR_ZONES, MAX_ORDER, Mark, MigrateType, Pfn, ZoneType};
use lowmark_spec::machine::{Arch, Machine, PAGE_SIZE, Pageblocks, Zone as ZoneSpec, ZoneKind};
use lru_gen::GroupLru;
use typed_index_collections::{TiSlice, TiVec};

/// A zone.
#[derive(Debug)]
pub(crate) struct Zone {
    /// Node.
    pub(crate) node: NodeId,
    /// Type.
    pub(crate) kind: ZoneType,
    /// First frame.
    pub(crate) start: Pfn,
    /// Frames, reserved ones included (`present_pages`).
    pub(crate) present: u64,
    /// Frames from the first to the last (`spanned_pages`).
    pub(crate) spanned: u64,
    /// Frames that the allocator manages (`managed_pages`).
    pub(crate) managed: u64,
    /// The first of them.
    pub(crate) first_managed: Pfn,
    /// `NR_FREE_PAGES`
    pub(crate) free: u64,
    /// Its pages that are dirty, on their way to a device or in a server's memory only (`NR_FILE_DIRTY`,
    /// `NR_WRITEBACK`, `NR_UNSTABLE_NFS`).
    pub(crate) dirty: u64,
    /// Those of them that are on their way to a device (`NR_WRITEBACK`).
    pub(crate) writeback: u64,
    /// Free blocks by type and order.
    pub(crate) free_area: [[FreeList; MAX_ORDER]; MigrateType::COUNT],
    /// How large its blocks are.
    pub(crate) blocks: BlockOrders,
    /// The rules that it works by.
    pub(crate) rules: Zones,
    /// Type of each pageblock; none on machines so small that blocks are not grouped, and all are movable.
    pub(crate) pageblocks: Vec<MigrateType>,
    /// `nr_reserved_highatomic`: pages of the pageblocks that are kept for allocations that cannot wait, from 4.4 on.
    pub(crate) reserved_highatomic: u64,
    /// min, low, high in pages, without boost.
    pub(crate) watermark: [u64; 3],
    /// `watermark_boost`: pages that all watermarks are higher for a while.
    pub(crate) watermark_boost: u64,
    /// The most that it becomes; 0 if never boosted.
    pub(crate) boost_max: u64,
    /// `ZONE_BOOSTED_WATERMARK`: it was boosted and kswapd is to be told.
    pub(crate) boosted_watermark: bool,
    /// `lowmem_reserve` by class.
    pub(crate) lowmem_reserve: [u64; MAX_NR_ZONES],
    /// Index of the root's LRU lists for it.
    pub(crate) lruvec: LruvecId,
    /// Pages scanned since a page was last freed.
    pub(crate) pages_scanned: u64,
    /// kswapd has given up on it.
    pub(crate) all_unreclaimable: bool,
    /// ZONE_CONGESTED, PGDAT_CONGESTED: all dirty file pages of a batch were on congested devices.
    pub(crate) congested: bool,
    /// Free pages that CPUs keep to themselves.
    pub(crate) pcp: Pcp,
    /// `NR_ALLOC_BATCH`: pages until it is another zone's turn.
    pub(crate) alloc_batch: i64,
    /// What compaction remembers of it.
    pub(crate) compaction: ZoneCompaction,
}

impl Zone {
    /// A watermark in pages (`wmark_pages`).
    #[inline]
    pub(crate) fn mark(&self, mark: Mark) -> u64 {
        self.watermark[mark as usize] + self.watermark_boost
    }

    /// The watermarks as `setup_per_zone_wmarks` left them.
    pub(crate) fn unboosted(&self, mark: Mark) -> u64 {
        self.watermark[mark as usize]
    }

    /// Size as the kernel's version counts it for watermarks.
    pub(crate) fn size(&self) -> u64 {
        match self.rules.zone_size {
            ZoneSize::Present => self.present,
            ZoneSize::Managed => self.managed,
        }
    }
}

/// A zone as an allocation of one page sees it that may use every zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fallback {
    /// The zone.
    pub(crate) zone: ZoneId,
    /// It is on the node that is preferred.
    pub(crate) local: bool,
    /// What it keeps at each mark, its reserve against the class of the first zone included.
    pub(crate) keeps: [u64; 3],
}

/// A node (`pg_data_t`).
#[derive(Debug)]
pub(crate) struct Node {
    /// Its populated zones, lowest first.
    pub(crate) zones: Vec<ZoneId>,
    /// Zones in the order in which an allocation that prefers this node tries them.
    pub(crate) zonelist: Vec<ZoneId>,
    /// Class of an allocation that may use all of them: the type of the first one.
    pub(crate) class: usize,
    /// The same for one page that may lie in any zone, with what each zone has to keep.
    pub(crate) fallbacks: Vec<Fallback>,
    /// kswapd's state.
    pub(crate) kswapd: Kswapd,
    /// kcompactd's.
    pub(crate) kcompactd: Kcompactd,
    /// Reclaimers that wait.
    pub(crate) throttled: Throttled,
    /// Those that wait to reclaim directly (`pfmemalloc_wait`).
    pub(crate) pfmemalloc_wait: crate::time::WaitQueue,
    /// Memory cgroups, where pages stand in generations (`memcg_lru`).
    pub(crate) groups: Option<GroupLru>,
}

/// Where the zones of a machine lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Node by node, lowest first.
    zones: Vec<ZoneSpec>,
    nodes: usize,
    cpus: u32,
    /// Huge pages, as the kernel has them on such a machine.
    pub(crate) thp: InForce,
    arch: Arch,
}

const DMA_END: u64 = (16 << 20) / PAGE_SIZE;
const DMA32_END: u64 = (4 << 30) / PAGE_SIZE;
const LOWMEM_END_32: u64 = (896 << 20) / PAGE_SIZE;
/// Of the 4096 frames below 16 MiB a PC's firmware and first kernel structures keep about 120.
const DMA_RESERVED: u64 = 120;
/// Bytes of a `struct page`.
const STRUCT_PAGE: u64 = 64;
/// Frames of the first megabyte.
const FIRST_MEGABYTE: u64 = (1 << 20) / PAGE_SIZE;

impl Layout {
    /// The zones of a machine: those that a kernel reported, or the usual ones.
    pub(crate) fn of(machine: &Machine, kernel: &Kernel) -> Layout {
        let zones = match machine.zones.as_slice() {
            [] => Layout::usual(machine, kernel),
            given => given.to_vec(),
        };
        let pages = zones
            .iter()
            .map(|zone| zone.managed.saturating_sub(zone.initmem))
            .sum();
        Layout {
            zones,
            nodes: machine.nodes.len(),
            cpus: machine.cpus,
            thp: kernel
                .sysctl
                .thp
                .in_force(kernel.version, machine.thp, pages),
            arch: machine.arch,
        }
    }

    /// On x86-64 only node 0 has memory below 4 GiB.
    fn usual(machine: &Machine, kernel: &Kernel) -> Vec<ZoneSpec> {
        let mut zones = Vec::new();
        let mut base = 0;
        let mut reserved = machine.reserved / PAGE_SIZE;
        for (node, spec) in machine.nodes.iter().enumerate() {
            let end = base + spec.ram / PAGE_SIZE;
            let bounds: &[(ZoneKind, u64)] = match machine.arch {
                Arch::X86_64 => &[
                    (ZoneKind::Dma, DMA_END),
                    (ZoneKind::Dma32, DMA32_END),
                    (ZoneKind::Normal, u64::MAX),
                ],
                Arch::X86_32 => &[
                    (ZoneKind::Dma, DMA_END),
                    (ZoneKind::Normal, LOWMEM_END_32),
                    (ZoneKind::HighMem, u64::MAX),
                ],
                Arch::Ppc64 => &[(ZoneKind::Dma, u64::MAX)],
            };
            let first = zones.len();
            let mut low = base;
            for &(kind, bound) in bounds {
                // Nodes after the first have Normal memory only.
                let below_normal = matches!(kind, ZoneKind::Dma | ZoneKind::Dma32);
                let high = if node > 0 && below_normal && machine.arch != Arch::Ppc64 {
                    low
                } else {
                    end.min(bound.max(low))
                };
                if high > low {
                    let pages = high - low;
                    zones.push(ZoneSpec::new(node, kind, pages, pages));
                }
                low = high;
            }
            // The kernel keeps its reserve in the highest zone, firmware a little in DMA.
            if node == 0 {
                for zone in zones[first..].iter_mut().rev() {
                    let taken = reserved.min(zone.managed);
                    zone.managed -= taken;
                    reserved -= taken;
                }
                if let [dma, _, ..] = &mut zones[first..]
                    && machine.reserved > 0
                {
                    let kept = match kernel.mechanisms.zones.first_megabyte {
                        FirstMegabyte::Used => DMA_RESERVED,
                        FirstMegabyte::All => FIRST_MEGABYTE,
                    };
                    dma.managed = dma.managed.saturating_sub(kept);
                }
                // A PC's kernel is loaded at 16 MiB.
                if let [_, kernel_at, ..] | [kernel_at] = &mut zones[first..] {
                    kernel_at.initmem = machine.initmem / PAGE_SIZE;
                }
            }
            base = end;
        }
        zones
    }

    /// Zones of node 0 given directly, all their pages managed.
    #[cfg(test)]
    pub(crate) fn from_zones(zones: &[(ZoneKind, u64)], thp: bool) -> Layout {
        let zone = |&(kind, pages): &(ZoneKind, u64)| ZoneSpec::new(0, kind, pages, pages);
        Layout {
            zones: zones.iter().map(zone).collect(),
            nodes: 1,
            cpus: 1,
            thp: crate::kernel::thp::Thp::default().in_force(crate::kernel::v(6, 1), thp, u64::MAX),
            arch: Arch::X86_64,
        }
    }

    /// Pageblocks with pages in use, by type and zone.
    pub(in crate::mm) fn pageblocks(&self) -> TiVec<ZoneId, [(MigrateType, Pageblocks); 2]> {
        let of_zone = |zone: &ZoneSpec| {
            [
                (MigrateType::Reclaimable, zone.reclaimable),
                (MigrateType::Movable, zone.movable),
            ]
        };
        self.zones.iter().map(of_zone).collect()
    }

    /// Free pages that CPUs keep for themselves, by zone.
    pub(in crate::mm) fn kept(&self) -> TiVec<ZoneId, u64> {
        self.zones.iter().map(|zone| zone.kept).collect()
    }

    /// CPUs of a node: they are spread evenly.
    fn cpus_of(&self, node: NodeId) -> u32 {
        let nodes = self.nodes.max(1);
        let (each, left) = (self.cpus as usize / nodes, self.cpus as usize % nodes);
        (each + usize::from(usize::from(node) < left)) as u32
    }

    /// Frames at the end of a zone that the allocator never gets. The last zone of a node has there what it lacks to a
    /// whole pageblock, and the `struct page` of all frames of the node, as memblock allocates from the top down
    /// (`sparse_init_nid`). Other zones have their holes at the beginning.
    fn pages_at_end(&self, index: usize, spanned: u64) -> u64 {
        let node = self.zones[index].node;
        let of_node = |zones: &[ZoneSpec]| -> u64 {
            let zones = zones.iter().filter(|zone| zone.node == node);
            zones.map(|zone| zone.present).sum()
        };
        match of_node(&self.zones[index + 1..]) {
            0 => {
                let rounded = spanned - self.zones[index].present;
                rounded + of_node(&self.zones) * STRUCT_PAGE / PAGE_SIZE
            }
            _ => 0,
        }
    }

    /// Zones, nodes and LRU lists as booting leaves them.
    pub(crate) fn build(&self, kernel: &Kernel) -> Built {
        let mut start = 0;
        let blocks = BlockOrders::of(self.arch);
        let mut zones: TiVec<ZoneId, Zone> = TiVec::new();
        for (index, spec) in self.zones.iter().enumerate() {
            let lruvec = match kernel.mechanisms.reclaim.lru_unit {
                LruUnit::Zone => LruvecId::from(index),
                LruUnit::Node => LruvecId::from(spec.node),
            };
            // Zones begin and end with a pageblock; what the kernel keeps lies at their beginning, where it
            // was loaded, but for what booting took from the end.
            let zone_start = Pfn::next_multiple_of(start, 1 << blocks.largest);
            let spanned = spec.present.next_multiple_of(1 << blocks.pageblock);
            let kept = spanned.saturating_sub(spec.managed + self.pages_at_end(index, spanned));
            zones.push(Zone {
                node: NodeId::from(spec.node),
                kind: spec.kind.into(),
                start: zone_start,
                present: spec.present,
                spanned,
                first_managed: zone_start + kept as Pfn,
                managed: spec.managed.saturating_sub(spec.initmem),
                free: 0,
                dirty: 0,
                writeback: 0,
                free_area: Default::default(),
                blocks,
                rules: kernel.mechanisms.zones,
                pageblocks: Vec::new(),
                reserved_highatomic: 0,
                watermark: [0; 3],
                watermark_boost: 0,
                boost_max: 0,
                boosted_watermark: false,
                lowmem_reserve: [0; MAX_NR_ZONES],
                lruvec,
                pages_scanned: 0,
                all_unreclaimable: false,
                congested: false,
                pcp: Pcp::default(),
                alloc_batch: 0,
                compaction: ZoneCompaction::default(),
            });
            start = zone_start + spanned as Pfn;
        }
        let min_free_kbytes = self.boot(zones.as_mut(), kernel);
        self.set_pageblocks(zones.as_mut(), kernel);
        for zone in &mut zones {
            zone.pcp = Pcp::new(zone, self.cpus, self.cpus_of(zone.node));
        }
        let last = zones.iter().map(|zone| usize::from(zone.lruvec)).max();
        let nodes = (0..self.nodes).map(|node| build_node(&zones, node.into(), self.nodes));
        Built {
            nodes: nodes.collect(),
            lruvecs: (0..=last.unwrap_or(0)).map(|_| Lruvec::default()).collect(),
            zones,
            min_free_kbytes,
        }
    }
}

/// What a layout is built to.
pub(crate) struct Built {
    /// Zones with their reserves and watermarks.
    pub(crate) zones: TiVec<ZoneId, Zone>,
    /// Nodes with their zonelists.
    pub(crate) nodes: TiVec<NodeId, Node>,
    /// The LRU lists of zones or nodes.
    pub(crate) lruvecs: TiVec<LruvecId, Lruvec>,
    /// What the watermarks follow from, KiB.
    pub(crate) min_free_kbytes: u64,
}

/// Zonelist in node order: the node's zones from high to low, then the next node's.
fn build_node(zones: &TiSlice<ZoneId, Zone>, node: NodeId, nodes: usize) -> Node {
    let of = |node: NodeId| -> Vec<ZoneId> {
        let of_node = |zone: &ZoneId| zones[*zone].node == node;
        zones.keys().filter(of_node).collect()
    };
    let by_distance = (0..nodes).map(|step| NodeId::from((usize::from(node) + step) % nodes));
    let zonelist: Vec<ZoneId> = by_distance
        .flat_map(|other| of(other).into_iter().rev())
        .collect();
    let class = zonelist
        .first()
        .map_or(0, |&zone| zones[zone].kind as usize);
    let fallbacks = zonelist.iter().map(|&zone| Fallback {
        zone,
        local: zones[zone].node == node,
        keeps: zones[zone]
            .watermark
            .map(|mark| mark + zones[zone].lowmem_reserve[class]),
    });
    Node {
        zones: of(node),
        class,
        fallbacks: fallbacks.collect(),
        zonelist,
        kswapd: Default::default(),
        kcompactd: Default::default(),
        groups: None,
        throttled: Default::default(),
        pfmemalloc_wait: Default::default(),
    }
}

pub(crate) mod lru_gen;
mod lruvec;
mod pageblocks;
mod state;
mod watermarks;

pub(crate) use lruvec::Lruvec;
pub(in crate::mm) use state::{
    Capture, Kcompactd, Kswapd, LruvecCounts, Throttled, ZoneCompaction,
};
pub use watermarks::{ZoneMarks, zone_marks};

#[cfg(test)]
mod tests;
