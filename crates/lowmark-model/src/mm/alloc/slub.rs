//! Memory of the kernel's own objects (`mm/slub.c`).
//!
//! 1. Objects of a kind lie in *slabs*, blocks of pages of an order that wastes little (`calculate_order`); where
//!    there is none to be had, of as few as hold an object.
//! 2. A CPU takes objects of one slab until there are none left in it, then of those that it has set aside, then of the
//!    partly used ones of all CPUs. Without any, a slab is allocated.
//! 3. A full slab of which an object is freed is set aside by that CPU. When it has too many, all of them go to the
//!    partly used ones, and of these the empty ones back to the page allocator, but for a few.
//!
//! Slabs of all nodes are in the same lists. [`waiting`] has the allocations that may wait for memory.

mod slabs;
mod waiting;

pub(in crate::mm) use waiting::{alloc_object_waiting, preload_file_nodes};

use slabs::{Slabs, get_order};

use crate::ids::{MemcgId, NodeId};
use crate::kernel::{Kernel, TreeNodes};
use crate::mm::Mm;
use crate::mm::alloc::xarray::Object;
use crate::mm::types::{Gfp, MigrateType, NONE, Pfn, Reserves};
use crate::world::World;
use lowmark_record::event::gfp;
use lowmark_spec::Machine;

/// Bios that are kept for bad times (`BIO_POOL_SIZE`).
pub(in crate::mm) const POOL_SIZE: usize = 2;

/// Kinds of objects (`struct kmem_cache`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    /// `radix_tree_node_cachep`
    RadixTreeNode,
    /// Those of `fs_bio_set`, with room for four pages.
    Bio,
    /// `sg_pools`: so many pieces of memory of a request, as a power of two from 3 to 7.
    ScatterList(u8),
    /// `kmalloc_caches`: the number of a size in [`KMALLOC_SIZES`].
    Kmalloc(u8),
    /// `dentry_cache`
    Dentry,
    /// `xfs_inode`
    XfsInode,
    /// `ext4_inode_cache`
    Ext4Inode,
    /// `ext3_inode_cache`
    Ext3Inode,
    /// `ext4_extent_status`
    ExtentStatus,
    /// `buffer_head`
    BufferHead,
}

/// Bytes of the objects of `kmalloc_caches`, of the smaller ones those that the model needs.
const KMALLOC_SIZES: [u64; 10] = [64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];
/// The smallest and the largest pool of scatterlists (`sg_pools`, `SG_CHUNK_SIZE`).
const SG_SHIFTS: std::ops::RangeInclusive<u8> = 3..=7;
/// `SG_CHUNK_SIZE`: the largest one's pieces. What is kept for bad times (`mempool_create`) fills its slabs while the
/// kernel boots: guests need one for the first list of theirs.
const SG_CHUNK: u64 = 128;
/// Number of the first cache of file systems: they come after those of drivers.
const FIRST_OF_VFS: usize = 7 + KMALLOC_SIZES.len();
/// `sizeof(struct scatterlist)`
const SCATTERLIST: u64 = 32;

impl Cache {
    /// All kinds, each at its [`Cache::number`].
    pub(crate) fn all() -> impl Iterator<Item = Cache> {
        let lists = SG_SHIFTS.map(Cache::ScatterList);
        let sizes = (0..KMALLOC_SIZES.len() as u8).map(Cache::Kmalloc);
        [Cache::RadixTreeNode, Cache::Bio]
            .into_iter()
            .chain(lists)
            .chain(sizes)
            .chain([
                Cache::Dentry,
                Cache::XfsInode,
                Cache::Ext4Inode,
                Cache::Ext3Inode,
                Cache::ExtentStatus,
                Cache::BufferHead,
            ])
    }

    /// Whether drivers allocate them for requests.
    pub(crate) fn is_of_drivers(self) -> bool {
        matches!(self, Cache::ScatterList(_) | Cache::Kmalloc(_))
    }

    #[inline]
    fn number(self) -> usize {
        match self {
            Cache::RadixTreeNode => 0,
            Cache::Bio => 1,
            Cache::ScatterList(shift) => 2 + usize::from(shift - SG_SHIFTS.start()),
            Cache::Kmalloc(size) => 2 + SG_SHIFTS.len() + usize::from(size),
            Cache::Dentry => FIRST_OF_VFS,
            Cache::XfsInode => FIRST_OF_VFS + 1,
            Cache::Ext4Inode => FIRST_OF_VFS + 2,
            Cache::Ext3Inode => FIRST_OF_VFS + 3,
            Cache::ExtentStatus => FIRST_OF_VFS + 4,
            Cache::BufferHead => FIRST_OF_VFS + 5,
        }
    }

    /// `kmalloc_slab`: where so many bytes fit in, up to 8 KiB.
    pub(crate) fn kmalloc(bytes: u64) -> Cache {
        Cache::Kmalloc(KMALLOC_SIZES.partition_point(|&size| size < bytes) as u8)
    }

    /// `sg_pool_index`: the pool for so many pieces, up to 128.
    pub(crate) fn scatterlist(pieces: u64) -> Cache {
        let shift = pieces.next_power_of_two().ilog2() as u8;
        Cache::ScatterList(shift.max(*SG_SHIFTS.start()))
    }

    /// Bytes of an object on a 64-bit machine, aligned (`s->size`).
    fn size(self) -> u64 {
        match self {
            Cache::RadixTreeNode => 576,
            Cache::Bio => 256,
            Cache::ScatterList(shift) => SCATTERLIST << shift,
            Cache::Kmalloc(size) => KMALLOC_SIZES[usize::from(size)],
            Cache::Dentry => 192,
            // 940 to 1030 bytes in kernels of the model, and rounded up to a cache line.
            Cache::XfsInode => 1024,
            // 30 objects in eight pages, as in kernels from 4.4 to 5.10; others have 27 to 36.
            Cache::Ext4Inode => 1088,
            // Five objects in a page, as in slabinfo of x86-64 at the time: 720 to 816 bytes.
            Cache::Ext3Inode => 816,
            // A node of a tree and three words.
            Cache::ExtentStatus => 40,
            Cache::BufferHead => 104,
        }
    }

    /// Bytes that a memory cgroup is charged for an object: the object and a pointer to the charged cgroup (`obj_full_size`).
    pub(crate) fn charge(self) -> u64 {
        self.size() + size_of::<u64>() as u64
    }

    /// Type of the pageblocks that its slabs belong in: reclaimable if a shrinker can shrink it (SLAB_RECLAIM_ACCOUNT).
    fn migrate_type(self) -> MigrateType {
        match self {
            Cache::RadixTreeNode
            | Cache::Dentry
            | Cache::XfsInode
            | Cache::Ext4Inode
            | Cache::Ext3Inode
            | Cache::ExtentStatus
            | Cache::BufferHead => MigrateType::Reclaimable,
            _ => MigrateType::Unmovable,
        }
    }
}

impl Cache {
    /// The gfp flags of an allocation of an object that may wait: an inode of ext4 or ext3 is allocated without
    /// `__GFP_FS` (`ext4_alloc_inode`, `ext3_alloc_inode`), and so is a buffer head (`alloc_page_buffers`).
    pub(in crate::mm) fn waiting_gfp(self, node: NodeId) -> Gfp {
        let gfp = Gfp::kernel(node).with(self.gfp());
        match self {
            Cache::Ext4Inode | Cache::Ext3Inode | Cache::BufferHead => gfp.without(gfp::FS),
            _ => gfp,
        }
    }

    /// What its slabs are allocated with besides (`allocflags`).
    fn gfp(self) -> u64 {
        match self.migrate_type() {
            MigrateType::Reclaimable => gfp::COMP | gfp::RECLAIMABLE,
            _ => gfp::COMP,
        }
    }
}

/// An object for which there was no memory.
pub(crate) const NO_OBJECT: Object = NONE;

/// An object is the number of its slab below this bit, and above it the memory cgroup that is charged for it.
const GROUP_SHIFT: u32 = 28;

/// The number of the slab in which an object lies.
#[inline]
fn slab_of(object: Object) -> usize {
    (object & ((1 << GROUP_SHIFT) - 1)) as usize
}

/// The memory cgroup that is charged for an object; the root if there was no memory for it.
#[inline]
pub(crate) fn group_of(object: Object) -> MemcgId {
    match object {
        NO_OBJECT => MemcgId::ROOT,
        _ => MemcgId::from((object >> GROUP_SHIFT) as usize),
    }
}

/// An object that belongs to nobody, charged to a group.
pub(in crate::mm) fn charged_to(memcg: MemcgId, object: Object) -> Object {
    match object {
        NO_OBJECT => NO_OBJECT,
        _ => object | (usize::from(memcg) as u32) << GROUP_SHIFT,
    }
}

/// Slabs of all kinds, if the kernel's are not left out.
#[derive(Debug, Default)]
pub(crate) struct Slub {
    caches: Vec<Slabs>,
    /// Of each CPU, nodes of trees that it has for pages which are about to enter the tree of a file
    /// (`radix_tree_preloads`); none of any where nobody preloads.
    preloaded: Vec<Vec<Object>>,
    /// Nodes of trees take memory.
    is_on: bool,
    /// What drivers allocate for requests does.
    by_drivers: bool,
}

impl Slub {
    /// No slabs yet. Machines with high memory, whose kernels are of 32 bits, have none.
    pub(in crate::mm) fn new(kernel: &Kernel, machine: &Machine, high: bool) -> Slub {
        let is_on = kernel.coverage.slab_pages;
        let by_drivers = kernel.coverage.virtio_memory
            && machine.devices.iter().any(|device| device.driver.is_some());
        let cached = kernel.coverage.shrinkers || kernel.coverage.buffer_heads;
        let by_files = cached && !machine.filesystems.is_empty();
        let bios = kernel.coverage.swap_bios;
        if high || !is_on && !by_drivers && !by_files && !bios {
            return Slub::default();
        }
        let rule = kernel.mechanisms.blocks.cpu_slabs;
        let new = |cache: Cache| Slabs::new(cache.size(), machine.cpus.max(1), rule);
        let preloads = is_on && kernel.mechanisms.files.tree_nodes == TreeNodes::Preloaded;
        let mut slub = Slub {
            caches: Cache::all().map(new).collect(),
            preloaded: vec![
                Vec::new();
                if preloads {
                    machine.cpus.max(1) as usize
                } else {
                    0
                }
            ],
            is_on,
            by_drivers,
        };
        let full = Cache::scatterlist(SG_CHUNK);
        for cache in Cache::all().filter(|&cache| cache != Cache::Bio && cache != full) {
            slub.caches[cache.number()].begin_midway();
        }
        slub
    }

    /// Whether the kernel's objects take memory.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether any object has a slab.
    pub(in crate::mm) fn has_slabs(&self) -> bool {
        !self.caches.is_empty()
    }

    /// Whether what drivers allocate for requests does.
    #[inline]
    pub(crate) fn is_of_drivers(&self) -> bool {
        self.by_drivers
    }

    /// Pages of slabs whose objects can be reclaimed, and of the others (`nr_slab_*`).
    pub(crate) fn pages(&self, migrate_type: MigrateType) -> u64 {
        let caches = Cache::all().zip(&self.caches);
        let of_type = caches.filter(|(cache, _)| cache.migrate_type() == migrate_type);
        of_type.map(|(_, slabs)| slabs.pages).sum()
    }

    /// The node on which an object lies; the first for those of slabs that there were before the workload.
    pub(crate) fn pfn_of(&self, cache: Cache, object: Object) -> Option<Pfn> {
        let slab = self.caches.get(cache.number())?.slabs.get(slab_of(object));
        slab.map(|slab| slab.pfn).filter(|&pfn| pfn != NONE)
    }

    /// Objects of a kind in use.
    pub(crate) fn in_use(&self, cache: Cache) -> u64 {
        let slabs = self.caches.get(cache.number());
        let slabs = slabs.into_iter().flat_map(|slabs| &slabs.slabs);
        slabs.map(|slab| u64::from(slab.used - slab.before)).sum()
    }

    /// Bios that are kept for bad times, of the slab that they were allocated with (`bioset_init`); none where there
    /// are no slabs.
    pub(crate) fn keep_bios(&mut self) -> Option<[Object; POOL_SIZE]> {
        let slabs = self.caches.get_mut(Cache::Bio.number())?;
        Some([slabs.begin_with(0, POOL_SIZE as u32, 0); POOL_SIZE])
    }
}

impl World {
    /// `kmem_cache_alloc` on a node, by who cannot wait.
    #[inline]
    pub(crate) fn alloc_object(
        &mut self,
        cache: Cache,
        node: NodeId,
        reserves: Reserves,
    ) -> Object {
        let cpu = self.mm.cpu;
        match self.mm.slub.caches[cache.number()].take(cpu) {
            Some(object) => object,
            None => self.new_slab(cache, node, reserves),
        }
    }

    #[cold]
    fn new_slab(&mut self, cache: Cache, node: NodeId, reserves: Reserves) -> Object {
        // allocate_slab
        let gfp = Gfp::kernel(node).nowait(reserves);
        let gfp = gfp.with(gfp::NORETRY | cache.gfp());
        let order = self.mm.slub.caches[cache.number()].order;
        let smallest = get_order(cache.size()) as usize;
        let mut orders = [order, smallest].into_iter();
        let block = orders.find_map(|order| Some((self.alloc_pages_nowait(gfp, order)?, order)));
        match block {
            Some((pfn, order)) => {
                let cpu = self.mm.cpu;
                self.mm.slub.caches[cache.number()].add(cpu, pfn, order)
            }
            None => NO_OBJECT,
        }
    }
}

impl Mm {
    /// An object of the slabs that there are, if they have one left.
    #[inline]
    pub(in crate::mm) fn take_object(&mut self, cache: Cache) -> Option<Object> {
        self.slub.caches[cache.number()].take(self.cpu)
    }

    /// `kmem_cache_free`
    #[inline]
    pub(crate) fn free_object(&mut self, cache: Cache, object: Object) {
        if object == NO_OBJECT {
            return;
        }
        let memcg = group_of(object);
        if memcg != MemcgId::ROOT {
            self.uncharge_object(memcg, cache.charge());
        }
        let mut discarded = Vec::new();
        let (cpu, slab) = (self.cpu, slab_of(object) as Object);
        self.slub.caches[cache.number()].free(cpu, slab, &mut discarded);
        for (pfn, order) in discarded {
            self.free_pages(pfn, order);
        }
    }
}
