//! Caches that reclaim can shrink, and shrinking them (`mm/shrinker.c`, before 6.7 in `mm/vmscan.c`).
//!
//! 1. A *shrinker* says how many objects of its cache could be freed, and scans as many as it is told to
//!    ([`pressure`]), in batches. A batch is decided upon at once, and its CPU time then spent.
//! 2. A name that was looked up has a dentry ([`dcache`]), which holds the inode of its file ([`icache`]). Those that
//!    nobody uses are on lists, from which a file system's shrinker takes them ([`super_block`]).
//! 3. Leaves of files with shadows alone have a shrinker of their own ([`shadow`]).
//! 4. ext4 remembers extents of files, and a shrinker forgets them ([`extent_status`]).
//! 5. XFS keeps inodes that the kernel's cache has let go for a while ([`evicted`]), and its metadata in buffers: both have shrinkers.
//! 6. Dentries, inodes and extents lie in slabs. Scanning frees objects, and memory only when a slab has none left.
//! 7. Every shrinker but those of extents and of XFS has lists for each node and each memory cgroup, and is called for one of them (`place`,
//!    [`Mm::cache_place`]): an object is on the list of its node and of the group that is charged for it.
//!
//! Every name of a workload may have a dentry. Dentries and inodes of directories and what else file systems cache are taken to
//! be in memory all the time.

mod dcache;
mod drop_slab;
mod evicted;
mod extent_status;
mod icache;
mod list_lru;
mod pressure;
mod shadow;
mod stat;
mod super_block;

pub(crate) use dcache::{Dentry, d_lookup};
pub(crate) use drop_slab::drop_slab;
pub(crate) use list_lru::ListLru;
pub(crate) use pressure::Pressure;
pub(crate) use stat::SlabStat;

use crate::fs::xfs::reclaim_inodes_nr;
use crate::ids::{MemcgId, NameId, NodeId};
use crate::kernel::{InodeCredit, Kernel, ShadowNodes, ThpSplit, Version, VfsShrinkers, v};
use crate::mm::Mm;
use crate::mm::alloc::slub::Cache;
use crate::mm::types::{Gfp, MigrateType, SWAP_CLUSTER_MAX};
use crate::world::{Sys, World};
use evicted::Evicted;
use extent_status::ExtentList;
use lowmark_record::event::gfp;
use lowmark_record::{Field, Kind};
use lowmark_spec::Machine;
use lowmark_spec::machine::FsKind;
use pressure::Quota;
use shadow::ShadowLists;
use std::collections::BTreeMap;
use super_block::SuperBlock;
use typed_index_collections::TiVec;

/// Objects in a batch of a shrinker that says nothing else (`SHRINK_BATCH`).
const SHRINK_BATCH: u64 = 128;
/// The same of a file system's (`alloc_super`).
const SUPER_BATCH: u64 = 1024;
/// What most objects cost to make again (`DEFAULT_SEEKS`).
const DEFAULT_SEEKS: u64 = 2;

/// From this version on the end of a call is traced with what was left to scan.
const TRACES_TOTAL: Version = v(3, 16);

/// Who shrinks a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shrinker {
    /// `scan_shadow_nodes`
    Shadows,
    /// `deferred_split_scan`
    HugePages,
    /// `shrink_dcache_memory`
    Dcache,
    /// `shrink_icache_memory`
    Icache,
    /// `super_cache_scan`, of the file system of this number.
    SuperBlock(usize),
    /// `ext4_es_scan`, of the file system of this number.
    Extents(usize),
    /// `xfs_reclaim_inode_shrink`, of the file system of this number: to 3.0, and part of that file system's since.
    XfsInodes(usize),
    /// `xfs_buftarg_shrink_scan`, of the file system of this number.
    XfsBuffers(usize),
}

impl Shrinker {
    /// The function that scans, as tracepoints name it.
    fn function(self, vfs: VfsShrinkers) -> &'static str {
        match (self, vfs) {
            (Shrinker::Shadows, _) => "scan_shadow_nodes",
            (Shrinker::HugePages, _) => "deferred_split_scan",
            (Shrinker::Dcache, _) => "shrink_dcache_memory",
            (Shrinker::Icache, _) => "shrink_icache_memory",
            (Shrinker::SuperBlock(_), VfsShrinkers::SuperBlock) => "prune_super",
            (Shrinker::SuperBlock(_), _) => "super_cache_scan",
            (Shrinker::Extents(_), _) => "ext4_es_scan",
            (Shrinker::XfsInodes(_), _) => "xfs_reclaim_inode_shrink",
            (Shrinker::XfsBuffers(_), VfsShrinkers::Node) => "xfs_buftarg_shrink_scan",
            (Shrinker::XfsBuffers(_), _) => "xfs_buftarg_shrink",
        }
    }

    fn batch(self) -> u64 {
        match self {
            Shrinker::SuperBlock(_) => SUPER_BATCH,
            _ => SHRINK_BATCH,
        }
    }

    /// Where its `struct shrinker` lies, as far as that matters: no two at one place.
    fn address(self) -> u64 {
        let number = match self {
            Shrinker::Shadows => 0,
            Shrinker::Dcache => 1,
            Shrinker::Icache => 2,
            Shrinker::HugePages => 3,
            Shrinker::SuperBlock(number) => 4 + 2 * number as u64,
            // A file system has those of ext4 or those of XFS.
            Shrinker::Extents(number) | Shrinker::XfsBuffers(number) => 5 + 2 * number as u64,
            Shrinker::XfsInodes(number) => 4 + 2 * number as u64,
        };
        0xffff_8880_0000_0000 + 0x1000 * number
    }
}

/// The caches and their shrinkers.
#[derive(Debug, Default)]
pub(crate) struct Shrinkers {
    /// Every name of the workload; none if the kernel's shrinkers are left out.
    pub(crate) dentries: TiVec<NameId, Dentry>,
    /// Of each file system of the machine, what its inodes are.
    inode_caches: Vec<Cache>,
    /// The lists of each file system; to 3.0 one for all.
    supers: Vec<SuperBlock>,
    shadows: ShadowLists,
    /// Of each file system, the files of which extents are remembered.
    extents: Vec<ExtentList>,
    /// Of each file system, the inodes that it keeps though the kernel's cache has let them go.
    evicted: Vec<Evicted>,
    /// What each shrinker put off, at each place (`nr_deferred`).
    deferred: BTreeMap<(Shrinker, usize), u64>,
    /// Memory for a list of calls, empty: reclaim needs one all the time.
    calls: Calls,
    /// Counters.
    pub(crate) stat: SlabStat,
}

/// Shrinkers to call, each for a place.
type Calls = Vec<(Shrinker, usize)>;

/// What a call of the shrinkers has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Objects freed.
    pub(crate) objects: u64,
    /// Pages of slabs that went with them, and of files as far as these count (`reclaim_state`).
    pub(crate) pages: u64,
}

/// A page of an inode that has to stay, dirty or being written, is looked up, locked and let go: an estimate of what part that is
/// of the time for a page that reclaim scans and frees.
const KEPT_FOR_ONE_SCANNED: u64 = 4;

/// Who calls the shrinkers, and what for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// What the pass over the LRU lists came to.
    pub(crate) pressure: Pressure,
    /// Flags of the allocation that memory is reclaimed for.
    pub(crate) gfp: Gfp,
    /// kswapd, not an allocating task.
    pub(crate) kswapd: bool,
}

/// What a batch came to.
#[derive(Debug, Clone, Copy, Default)]
struct Scanned {
    /// Objects freed, or taken off the list.
    freed: u64,
    /// Objects looked at, and of these those that lost their mark and went to the other end of the list.
    looked: u64,
    rotated: u64,
    /// Pages of files dropped, and of these and shadows those that were counted.
    dropped: u64,
    stolen: u64,
    /// Pages that had to stay.
    kept: u64,
    /// How many evicted inodes XFS is to scan.
    of_evicted: u64,
}

impl Shrinkers {
    /// No names yet.
    pub(in crate::mm) fn new(machine: &Machine, kernel: &Kernel, nodes: usize) -> Shrinkers {
        let systems = machine.filesystems.iter();
        let inode_caches = systems.map(|fs| match fs.kind {
            FsKind::Xfs => Cache::XfsInode,
            FsKind::Ext3 => Cache::Ext3Inode,
            // Those of tmpfs are not the model's: it has no files there.
            FsKind::Ext4 | FsKind::Tmpfs => Cache::Ext4Inode,
        });
        let inode_caches: Vec<Cache> = inode_caches.collect();
        let supers = match kernel.mechanisms.shrinker.vfs_shrinkers {
            VfsShrinkers::Global => 1,
            VfsShrinkers::SuperBlock | VfsShrinkers::Node => inode_caches.len(),
        };
        Shrinkers {
            supers: (0..supers).map(|_| SuperBlock::new(nodes)).collect(),
            extents: inode_caches.iter().map(|_| ExtentList::default()).collect(),
            evicted: vec![None; inode_caches.len()],
            inode_caches,
            shadows: ShadowLists::new(nodes),
            ..Shrinkers::default()
        }
    }

    /// Makes lists for each place.
    pub(in crate::mm) fn make_lists(&mut self, places: usize) {
        for lists in &mut self.supers {
            lists.make_lists(places);
        }
        self.shadows.make_lists(places);
    }

    /// Whether there is anything that could be in a cache.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        !self.dentries.is_empty()
    }
}

impl Mm {
    /// Whether there is anything that could be in a cache, or a huge page that could be split.
    pub(crate) fn has_shrinkers(&self) -> bool {
        self.shrinkers.is_on() || self.splits_huge_pages()
    }

    /// Whether huge pages wait for a shrinker that splits them.
    fn splits_huge_pages(&self) -> bool {
        let rule = self.kernel.mechanisms.huge.thp_split;
        self.huge.is_on() && rule != ThpSplit::AtOnce && self.kernel.coverage.shrinkers
    }

    /// Adds every shrinker to `calls`, with each of the places for which it is called: nodes, for a memory cgroup.
    fn shrinker_calls(&self, nodes: &[NodeId], memcg: MemcgId, calls: &mut Calls) {
        let rules = &self.kernel.mechanisms.shrinker;
        let by_node = rules.vfs_shrinkers == VfsShrinkers::Node;
        let mut add = |shrinker| {
            if by_node {
                let places = nodes.iter().map(|&node| self.cache_place(node, memcg));
                calls.extend(places.map(|place| (shrinker, place)));
            } else {
                calls.push((shrinker, 0));
            }
        };
        if rules.shadow_nodes != ShadowNodes::All {
            add(Shrinker::Shadows);
        }
        if self.splits_huge_pages() {
            add(Shrinker::HugePages);
        }
        match rules.vfs_shrinkers {
            VfsShrinkers::Global => [Shrinker::Dcache, Shrinker::Icache]
                .into_iter()
                .for_each(add),
            _ => (0..self.shrinkers.supers.len())
                .map(Shrinker::SuperBlock)
                .for_each(add),
        }
        // Called for each node, though they know none.
        let own = self
            .extent_shrinkers(memcg)
            .chain(self.xfs_shrinkers(memcg));
        for shrinker in own {
            calls.extend(nodes.iter().map(|_| (shrinker, 0)));
        }
    }

    /// The shrinkers of extents, which are called for the root alone.
    fn extent_shrinkers(&self, memcg: MemcgId) -> impl Iterator<Item = Shrinker> {
        let called = self.kernel.coverage.extent_status && memcg == MemcgId::ROOT;
        let file_systems = if called {
            self.shrinkers.extents.len()
        } else {
            0
        };
        (0..file_systems).map(Shrinker::Extents)
    }

    /// The shrinkers of XFS's own, which are called for the root alone.
    ///
    /// Simplified: that of buffers is called for each node, though it has a list for each (3.12).
    fn xfs_shrinkers(&self, memcg: MemcgId) -> impl Iterator<Item = Shrinker> {
        let own_inodes = self.kernel.mechanisms.shrinker.vfs_shrinkers == VfsShrinkers::Global;
        let systems = self.shrinkers.evicted.iter().enumerate();
        let kept = systems.filter(move |(_, evicted)| evicted.is_some() && memcg == MemcgId::ROOT);
        kept.flat_map(move |(fs, _)| {
            let inodes = own_inodes.then_some(Shrinker::XfsInodes(fs));
            inodes.into_iter().chain([Shrinker::XfsBuffers(fs)])
        })
    }
}

impl World {
    /// `count_objects`
    fn count_objects(&mut self, shrinker: Shrinker, place: usize) -> u64 {
        match shrinker {
            Shrinker::XfsBuffers(number) => self.count_buffers(number),
            _ => self.mm.count_objects(shrinker, place),
        }
    }

    fn describe(&mut self, shrinker: Shrinker, place: usize) -> pressure::Cache {
        pressure::Cache {
            freeable: self.count_objects(shrinker, place),
            seeks: match shrinker {
                Shrinker::Shadows => self.mm.shadow_seeks(),
                _ => DEFAULT_SEEKS,
            },
            batch: shrinker.batch(),
        }
    }
}

impl Mm {
    /// The same of what memory has.
    fn count_objects(&self, shrinker: Shrinker, place: usize) -> u64 {
        match shrinker {
            Shrinker::Shadows => {
                let nodes = self.nodes.len();
                self.count_shadow_nodes(NodeId::from(place % nodes), MemcgId::from(place / nodes))
            }
            Shrinker::HugePages => self.count_deferred_splits(place),
            Shrinker::Dcache => self.count_dentries(),
            Shrinker::Icache => self.count_inodes(),
            Shrinker::SuperBlock(number) => self.super_cache_count(number, place),
            Shrinker::Extents(number) => self.count_extents(number),
            Shrinker::XfsInodes(number) => self.count_evicted(number),
            Shrinker::XfsBuffers(_) => 0,
        }
    }
}

impl World {
    /// `scan_objects`: a batch, the CPU time that it takes, and how many evicted inodes XFS is to scan. None: it cannot be done now.
    fn scan_objects(
        &mut self,
        shrinker: Shrinker,
        place: usize,
        nr: u64,
        caller: &Caller,
    ) -> Option<(Freed, u64, u64)> {
        let is_vfs = matches!(
            shrinker,
            Shrinker::Dcache | Shrinker::Icache | Shrinker::SuperBlock(_) | Shrinker::XfsInodes(_)
        );
        if is_vfs && !caller.gfp.has(gfp::FS) {
            return None;
        }
        let slabs = |world: &World| world.mm.slub.pages(MigrateType::Reclaimable);
        let before = slabs(self);
        let scanned = match shrinker {
            Shrinker::Shadows => self.mm.scan_shadow_nodes(place, nr),
            // Their split takes time, each by itself.
            Shrinker::HugePages => Scanned::default(),
            Shrinker::Dcache => self.mm.prune_dcache(0, 0, nr),
            Shrinker::Icache => self.prune_icache(0, 0, nr, caller.kswapd),
            Shrinker::SuperBlock(number) => self.super_cache_scan(number, place, nr, caller.kswapd),
            Shrinker::Extents(number) => self.mm.scan_extents(number, nr),
            Shrinker::XfsInodes(_) => Scanned {
                of_evicted: nr,
                ..Scanned::default()
            },
            Shrinker::XfsBuffers(number) => {
                let (freed, looked) = self.scan_buffers(number, nr);
                Scanned {
                    freed,
                    looked,
                    ..Scanned::default()
                }
            }
        };
        self.mm.shrinkers.stat.slabs_scanned += nr;
        let costs = &self.costs;
        let free_ns = match shrinker {
            Shrinker::Shadows | Shrinker::Extents(_) => costs.free_extent_ns,
            _ => costs.free_object_ns,
        };
        let cost = scanned.looked * costs.scan_object_ns
            + scanned.freed * free_ns
            + scanned.kept * costs.reclaim_clean_ns() / KEPT_FOR_ONE_SCANNED
            + scanned.dropped * costs.drop_page_ns();
        let credit = match self.mm.kernel.mechanisms.shrinker.inode_credit {
            InodeCredit::None => 0,
            InodeCredit::Counted => scanned.stolen,
        };
        let freed = Freed {
            objects: scanned.freed,
            pages: before - slabs(self) + credit,
        };
        Some((freed, cost, scanned.of_evicted))
    }

    fn trace_slab_start(&mut self, call: &Call, caller: &Caller) {
        let Call { cache, quota, .. } = *call;
        let name = self.function_name(call.shrinker);
        let Pressure {
            scanned,
            eligible,
            priority,
        } = caller.pressure;
        let scanned = if scanned == 0 {
            SWAP_CLUSTER_MAX
        } else {
            scanned
        };
        let flags = caller.gfp.flags();
        let node = call.place % self.mm.nodes.len();
        self.trace(Kind::ShrinkSlabStart, |_| {
            vec![
                (Field::Shrinker, name),
                (Field::Shr, call.shrinker.address()),
                (Field::Nid, node as u64),
                (Field::NrObjectsToShrink, quota.deferred),
                (Field::GfpFlags, flags),
                (Field::PgsScanned, scanned),
                (Field::LruPgs, eligible),
                (Field::CacheItems, cache.freeable),
                (Field::Delta, quota.delta),
                (Field::TotalScan, quota.total),
                (Field::Priority, u64::from(priority)),
            ]
        });
    }

    fn trace_slab_end(&mut self, call: &Call, left: u64, freed: Freed) {
        let name = self.function_name(call.shrinker);
        let key = (call.shrinker, call.place);
        let put_off = self.mm.shrinkers.deferred.get(&key).copied().unwrap_or(0);
        let Call { quota, place, .. } = *call;
        let node = place % self.mm.nodes.len();
        // To 3.11 a shrinker said how many objects were left, to 3.15 the event what was put off more than before.
        let vfs = self.mm.kernel.mechanisms.shrinker.vfs_shrinkers;
        let returned = match vfs {
            VfsShrinkers::SuperBlock if left < quota.total => {
                self.count_objects(call.shrinker, node)
            }
            VfsShrinkers::Global | VfsShrinkers::SuperBlock => 0,
            VfsShrinkers::Node => freed.objects,
        };
        let total = if self.mm.kernel.version < TRACES_TOTAL {
            put_off.wrapping_sub(quota.deferred)
        } else {
            left
        };
        self.trace(Kind::ShrinkSlabEnd, |_| {
            vec![
                (Field::Shrinker, name),
                (Field::Shr, call.shrinker.address()),
                (Field::Nid, node as u64),
                (Field::UnusedScan, quota.deferred),
                (Field::NewScan, put_off),
                (Field::TotalScan, total),
                (Field::Retval, returned),
            ]
        });
    }

    fn function_name(&mut self, shrinker: Shrinker) -> u64 {
        if !self.trace.enabled() {
            return 0;
        }
        let vfs = self.mm.kernel.mechanisms.shrinker.vfs_shrinkers;
        self.trace.name(shrinker.function(vfs))
    }
}

/// A call of one shrinker for one place.
#[derive(Debug, Clone, Copy)]
struct Call {
    shrinker: Shrinker,
    place: usize,
    cache: pressure::Cache,
    quota: Quota,
}

/// `shrink_slab`: each shrinker does its part on each of the nodes, for the objects of one memory cgroup.
pub(crate) async fn shrink_slab(
    sys: &Sys,
    nodes: &[NodeId],
    memcg: MemcgId,
    caller: &Caller,
) -> Freed {
    let mut calls = {
        let mm = &mut sys.world().mm;
        if !mm.has_shrinkers() {
            return Freed::default();
        }
        let mut calls = std::mem::take(&mut mm.shrinkers.calls);
        mm.shrinker_calls(nodes, memcg, &mut calls);
        calls
    };
    let mut freed = Freed::default();
    for &(shrinker, place) in &calls {
        let of_one = do_shrink_slab(sys, shrinker, place, caller).await;
        freed.objects += of_one.objects;
        freed.pages += of_one.pages;
    }
    calls.clear();
    sys.world().mm.shrinkers.calls = calls;
    freed
}

async fn do_shrink_slab(sys: &Sys, shrinker: Shrinker, place: usize, caller: &Caller) -> Freed {
    let (rules, call) = {
        let world = &mut *sys.world();
        let rules = world.mm.kernel.mechanisms.shrinker;
        let cache = world.describe(shrinker, place);
        if cache.freeable == 0 {
            return Freed::default();
        }
        // Others who call it meanwhile do not do the same work.
        let before = world.mm.shrinkers.deferred.remove(&(shrinker, place));
        let quota = Quota::new(&rules, &cache, &caller.pressure, before.unwrap_or(0));
        let call = Call {
            shrinker,
            place,
            cache,
            quota,
        };
        world.trace_slab_start(&call, caller);
        (rules, call)
    };
    let mut left = call.quota.total;
    let mut freed = Freed::default();
    while let Some(nr) = Quota::next_batch(&rules, &call.cache, left) {
        let scanned = sys.world().scan_objects(shrinker, place, nr, caller);
        let Some((of_batch, cost, of_evicted)) = scanned else {
            break;
        };
        if shrinker == Shrinker::HugePages {
            freed.objects += sys.scan_deferred_splits(place, nr).await;
        }
        left -= nr;
        freed.objects += of_batch.objects;
        freed.pages += of_batch.pages;
        sys.charge_kernel(cost).await;
        if let Shrinker::SuperBlock(fs) | Shrinker::XfsInodes(fs) = shrinker
            && of_evicted > 0
        {
            reclaim_inodes_nr(sys, fs, of_evicted).await;
        }
    }
    let world = &mut *sys.world();
    let put_off = call
        .quota
        .put_off(&rules, &call.cache, call.quota.total - left);
    if put_off > 0 {
        *world
            .mm
            .shrinkers
            .deferred
            .entry((shrinker, place))
            .or_default() += put_off;
    }
    world.trace_slab_end(&call, left, freed);
    freed
}
