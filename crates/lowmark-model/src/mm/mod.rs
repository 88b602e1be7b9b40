//! Memory management. Each file has the name of the kernel's.

pub(crate) mod alloc;
pub(crate) mod compaction;
pub(crate) mod fault;
pub(crate) mod files;
pub(crate) mod frames;
pub(crate) mod huge_memory;
pub(crate) mod io;
pub(crate) mod memcontrol;
pub(crate) mod reclaim;
pub(crate) mod shrinker;
pub(crate) mod swap;
pub(crate) mod types;
pub(crate) mod vmstat;
pub(crate) mod writeback;

use crate::ids::{InodeId, LruvecId, MemcgId, NodeId, WbId, ZoneId};
use crate::kernel::Kernel;
use crate::mm::types::{Pfn, ZoneType};
use alloc::held::Held;
use alloc::mmzone::{Built, Layout, Lruvec, Node, Zone};
use alloc::slub::Slub;
use compaction::Told;
use fault::memory::Vma;
use fault::shmem::ShmemInode;
use files::buffer_head::BufferHeads;
use files::inode::Inode;
use frames::lru_list::Chunks;
use frames::mapping::Mappings;
use frames::page::Pages;
use huge_memory::HugeMemory;
use lowmark_spec::Machine;
use lowmark_spec::machine::Arch;
use lowmark_spec::machine::PAGE_SIZE;
use memcontrol::Memcontrol;
use shrinker::Shrinkers;
use swap::swapfile::Swap;
use typed_index_collections::TiVec;
use vmstat::VmStat;
use writeback::backing_dev::Bdi;
use writeback::page_writeback::DirtyLimits;

/// All memory of the machine and what is mapped to it.
#[derive(Debug)]
pub(crate) struct Mm {
    /// The kernel that runs: every rule of memory is read here.
    pub(crate) kernel: Kernel,
    /// The machine's architecture.
    pub(crate) arch: Arch,
    /// Pages stand in generations, not on active and inactive lists (`lru_gen_enabled`).
    pub(crate) lru_gen: bool,
    /// Every frame (`mem_map`).
    pub(crate) pages: Pages,
    /// Zones of all nodes, node by node, lowest first.
    pub(crate) zones: TiVec<ZoneId, Zone>,
    /// Nodes.
    pub(crate) nodes: TiVec<NodeId, Node>,
    /// LRU lists, one set per zone or per node; those of the root, then those of each memory cgroup.
    pub(crate) lruvecs: TiVec<LruvecId, Lruvec>,
    /// Sets of LRU lists that a memory cgroup has.
    pub(crate) sets: usize,
    /// Memory cgroups.
    pub(crate) memcontrol: Memcontrol,
    /// What the LRU lists consist of.
    pub(crate) chunks: Chunks,
    /// Whose the pages are.
    pub(crate) mappings: Mappings,
    /// Mapped regions of all processes; an index stays valid after munmap.
    pub(crate) vmas: Vec<Vma>,
    /// Shared anonymous objects.
    pub(crate) shmem: Vec<ShmemInode>,
    /// Files; an index stays valid when the file is gone.
    pub(crate) inodes: TiVec<InodeId, Inode>,
    /// Devices, as writeback sees them: for the root, then for each memory cgroup (`bdi_writeback`).
    pub(crate) bdis: TiVec<WbId, Bdi>,
    /// Devices.
    pub(crate) devices: usize,
    /// What is remembered of the dirty limits: of all memory, then of each memory cgroup but the root (`cgwb_domain`).
    pub(crate) limits: TiVec<MemcgId, DirtyLimits>,
    /// Caches that reclaim can shrink.
    pub(crate) shrinkers: Shrinkers,
    /// The kernel's own objects.
    pub(crate) slub: Slub,
    /// What file systems know of the blocks of pages.
    pub(crate) buffer_heads: BufferHeads,
    /// Blocks that tasks hold.
    pub(crate) held: Held,
    /// Swap areas and slots.
    pub(crate) swap: Swap,
    /// Huge pages of private memory.
    pub(crate) huge: HugeMemory,
    /// What was decided about compaction and is not in the trace yet.
    pub(crate) told: Told,
    /// Counters.
    pub(crate) stat: VmStat,
    /// What the watermarks follow from, KiB.
    pub(crate) min_free_kbytes: u64,
    /// A zone that has been boosted, of which kswapd does not know yet.
    pub(crate) boosted_zone: Option<ZoneId>,
    /// CPU of the task that runs.
    pub(crate) cpu: usize,
    /// Pages being written.
    pub(crate) nr_writeback: u64,
    /// Dirty pages of files.
    pub(crate) nr_dirty: u64,
    /// Pages of files that a server has in its memory only, as far as they count by themselves
    /// (`NR_UNSTABLE_NFS`).
    pub(crate) nr_unstable: u64,
    /// Dirty pages that were given up: of files cut short or gone.
    pub(crate) nr_cancelled: u64,
    /// Writes of pages of files that the device did not take.
    pub(crate) nr_lost: u64,
    /// Calls of fsync(2) and its like that returned EIO.
    pub(crate) nr_eio: u64,
    /// Pages of files.
    pub(crate) nr_file_pages: u64,
    /// Pages that are locked in memory.
    pub(crate) nr_unevictable: u64,
    /// Pages in use from the beginning that are for the page cache of block devices.
    pub(crate) boot_buffers: Vec<Pfn>,
}

impl Mm {
    /// `totalram_pages`: all that the allocator manages.
    pub(crate) fn totalram_pages(&self) -> u64 {
        self.zones.iter().map(|zone| zone.managed).sum()
    }

    /// Memory as it is after boot, `occupied` allocated.
    pub(crate) fn new(machine: &Machine, mut kernel: Kernel) -> Mm {
        // Compaction is that of x86, by its pageblocks.
        kernel.coverage.compaction &= machine.arch != Arch::Ppc64;
        let layout = Layout::of(machine, &kernel);
        let Built {
            zones,
            nodes,
            mut lruvecs,
            min_free_kbytes,
        } = layout.build(&kernel);
        let end = |zone: &Zone| zone.start + zone.spanned as Pfn;
        let starts: Vec<Pfn> = zones.iter().skip(1).map(|zone| zone.start).collect();
        let mut pages = Pages::new(zones.last().map_or(0, end), &starts);
        if kernel.has_generations() {
            pages.make_generations();
            let rules = kernel.mechanisms.lru_gen;
            lruvecs
                .iter_mut()
                .for_each(|lists| lists.switch_to_generations(rules));
        }
        let shrinkers = Shrinkers::new(machine, &kernel, nodes.len());
        let high = zones.iter().any(|zone| zone.kind == ZoneType::High);
        let slub = Slub::new(&kernel, machine, high);
        let buffer_heads = BufferHeads::new(&kernel, pages.len(), slub.has_slabs());
        let huge = HugeMemory::new(&kernel, layout.thp, pages.len(), nodes.len());
        let mut mm = Mm {
            arch: machine.arch,
            lru_gen: kernel.has_generations(),
            pages,
            zones,
            nodes,
            sets: lruvecs.len(),
            lruvecs,
            memcontrol: Memcontrol::new(kernel.mechanisms.memcg),
            chunks: Chunks::default(),
            mappings: Mappings::default(),
            vmas: Vec::new(),
            shmem: Vec::new(),
            inodes: TiVec::new(),
            bdis: machine
                .devices
                .iter()
                .map(|device| Bdi::new(device, kernel.mechanisms.writeback.strictlimit))
                .collect(),
            devices: machine.devices.len(),
            limits: TiVec::from(vec![DirtyLimits::default()]),
            shrinkers,
            slub,
            buffer_heads,
            held: Held::default(),
            swap: Swap::new(machine, &kernel, high),
            huge,
            told: Told::default(),
            stat: VmStat::default(),
            min_free_kbytes,
            boosted_zone: None,
            cpu: 0,
            nr_writeback: 0,
            nr_dirty: 0,
            nr_unstable: 0,
            nr_cancelled: 0,
            nr_lost: 0,
            nr_eio: 0,
            nr_file_pages: 0,
            nr_unevictable: 0,
            boot_buffers: Vec::new(),
            kernel,
        };
        mm.free_boot_memory();
        let occupied = machine.occupied / PAGE_SIZE;
        let buffers = if mm.kernel.coverage.metadata {
            machine.buffers.min(machine.occupied) / PAGE_SIZE
        } else {
            0
        };
        mm.occupy(occupied, buffers, &layout.pageblocks());
        mm.keep_for_cpus(&layout.kept());
        mm.stat = VmStat::default();
        mm
    }
}
