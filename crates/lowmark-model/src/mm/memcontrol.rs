//! Memory cgroups (`mm/memcontrol.c`, version 2, and of version 1 limits and soft limits).
//!
//! 1. A page of a task is *charged* to the task's group when it is allocated, one read back from swap to
//!    the group that it had ([`swapin`]); freeing it takes the charge back. It counts for all groups above as well ([`counter`]).
//! 2. A CPU charges 32 or 64 pages ahead; only when that is used up the groups are asked.
//! 3. At `memory.max` the charge first reclaims from the group that is at it; if nothing helps, the run ends.
//! 4. Beyond `memory.high` the task reclaims before it goes on, and is slowed down ([`high`]).
//! 5. Reclaim leaves alone what `memory.min` and `memory.low` protect ([`protection`]).
//! 6. Objects that a group's tasks leave in the caches of file systems count, too ([`kmem`]).
//! 7. Groups of version 1 may have soft limits: a reclaimer takes pages of a group beyond its soft limit first ([`soft`]).
//!
//! The pages of a group are on LRU lists of their own: see [`Mm::lruvec_of`]. Reclaim goes through those of a group and of
//! all inside it ([`walk`]). Groups are numbered in that order, so that a group and all inside it have numbers in a row.

mod charge;
mod counter;
mod events;
mod high;
mod kmem;
mod proactive;
mod protection;
mod soft;
mod stats;
mod swapin;
mod walk;

use crate::ids::{LruvecId, MemcgId, NodeId};
pub(crate) use charge::{alloc_charged, alloc_folio_charged, charge_folio};
pub(crate) use events::{Event, Reclaimer};
pub(crate) use high::handle_over_high;
pub(in crate::mm) use kmem::alloc_charged_object_waiting;
pub(crate) use proactive::memory_reclaim;
pub(crate) use protection::{Protected, unprotected_part};
pub(in crate::mm) use swapin::charge_mapped_waiting;
pub(crate) use walk::Walk;

use crate::kernel::{EmptyZone, MemcgRules, ProtectionShares};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::{Lruvec, Zone};
use crate::mm::types::{Gfp, Lru, Pfn};
use crate::time::TaskId;
use crate::world::World;
use counter::{Charge, Stock};
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::Cgroup;
use std::ops::Range;
use typed_index_collections::TiVec;

/// Rounds of reclaim without progress before those who want memory of a group give up (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;

/// A group (`struct mem_cgroup`). Sizes are pages.
#[derive(Debug)]
struct Memcg {
    /// Its directory.
    path: String,
    /// The group that it is in. That of the root is the root.
    parent: MemcgId,
    /// The number behind those of all inside it.
    end: usize,
    /// Charged to it and to all inside it, stocks included.
    usage: u64,
    /// `memory.max`
    max: u64,
    /// `memory.high`
    high: u64,
    /// `memory.min`
    min: u64,
    /// `memory.low`
    low: u64,
    /// What it has of `memory.min`, as of the last walk.
    emin: u64,
    /// What it has of `memory.low`, as of the last walk.
    elow: u64,
    /// `memory.swap.max`
    swap_max: u64,
    /// `memory.soft_limit_in_bytes`, of version 1
    soft: u64,
    /// `memory.events.local`
    events: [u64; 6],
    /// `memory.stat`, its own.
    counts: events::Counts,
    /// `memory.stat`: `file_dirty`, pages.
    dirty: u64,
    /// `memory.stat`: `file_writeback` and those of swap, pages.
    writeback: u64,
    /// Pages charged for objects in slabs (`memcg->kmem`), its own.
    kmem: u64,
    /// Bytes of these that are nobody's and no CPU's (`nr_charged_bytes`).
    loose: u64,
    /// Dirty pages and those under writeback as they were when counters were last flushed.
    flushed: (u64, u64),
}

impl Memcg {
    /// A group with nothing in it; of the root there is no description.
    fn new(spec: &Cgroup, parent: MemcgId, end: usize) -> Memcg {
        let limit = |bytes: Option<u64>| bytes.map_or(u64::MAX, |bytes| bytes / PAGE_SIZE);
        let kept = |bytes: Option<u64>| bytes.map_or(0, |bytes| bytes / PAGE_SIZE);
        Memcg {
            path: spec.path.clone(),
            parent,
            end,
            usage: 0,
            max: limit(spec.max),
            high: limit(spec.high),
            min: kept(spec.min),
            low: kept(spec.low),
            emin: 0,
            elow: 0,
            swap_max: limit(spec.swap_max),
            soft: limit(spec.soft),
            events: [0; 6],
            counts: Default::default(),
            dirty: 0,
            writeback: 0,
            kmem: 0,
            loose: 0,
            flushed: (0, 0),
        }
    }
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Memcontrol {
    /// The rules of the kernel for groups.
    rules: MemcgRules,
    /// The root first; empty if there is no other.
    groups: TiVec<MemcgId, Memcg>,
    /// By CPU.
    stocks: Vec<Stock>,
    /// By CPU, for objects.
    obj_stocks: Vec<kmem::ObjStock>,
    /// Group of each frame; empty without groups.
    of_page: Vec<MemcgId>,
    /// Where the reclaimers of each group are on each node, by priority; empty without groups.
    iters: TiVec<LruvecId, walk::ReclaimIters>,
    /// Protection that groups do not claim goes to those inside them all the same (`memory_recursiveprot`).
    recursive_protection: bool,
    /// Group of each task.
    of_task: Vec<MemcgId>,
    /// Pages that each task has charged beyond `memory.high` since it last paid for it.
    over_high: Vec<u64>,
    /// Changes of counters that are flushed already.
    updates_flushed: u64,
    /// Soft limits.
    soft: soft::SoftLimits,
}

impl Memcontrol {
    /// No groups.
    pub(in crate::mm) fn new(rules: MemcgRules) -> Memcontrol {
        Memcontrol {
            rules,
            groups: TiVec::new(),
            stocks: Vec::new(),
            obj_stocks: Vec::new(),
            of_page: Vec::new(),
            iters: TiVec::new(),
            recursive_protection: false,
            of_task: Vec::new(),
            over_high: Vec::new(),
            updates_flushed: 0,
            soft: soft::SoftLimits::default(),
        }
    }

    /// Groups, the root included.
    pub(crate) fn len(&self) -> usize {
        self.groups.len().max(1)
    }

    /// The numbers of a group and of all inside it.
    pub(crate) fn subtree(&self, memcg: MemcgId) -> Range<usize> {
        let end = self.groups.get(memcg).map_or(1, |group| group.end);
        usize::from(memcg)..end
    }

    /// The groups with a `memory.swap.max` that a group is in, itself included, with that.
    pub(crate) fn with_swap_max(&self, memcg: MemcgId) -> impl Iterator<Item = (MemcgId, u64)> {
        let all = self.ancestors(memcg);
        all.map(|at| (at, self.groups[at].swap_max))
            .filter(|&(_, max)| max != u64::MAX)
    }

    /// The group that a page is charged to.
    #[inline]
    pub(crate) fn of_page(&self, pfn: Pfn) -> MemcgId {
        self.of_page
            .get(pfn as usize)
            .copied()
            .unwrap_or(MemcgId::ROOT)
    }

    /// The group of a task.
    #[inline]
    pub(crate) fn of_task(&self, task: TaskId) -> MemcgId {
        self.of_task
            .get(task.index())
            .copied()
            .unwrap_or(MemcgId::ROOT)
    }

    /// A task, and what it does from now on, belongs to a group.
    pub(crate) fn attach(&mut self, task: TaskId, memcg: MemcgId) {
        if memcg == MemcgId::ROOT {
            return;
        }
        let tasks = self.of_task.len().max(task.index() + 1);
        self.of_task.resize(tasks, MemcgId::ROOT);
        self.over_high.resize(tasks, 0);
        self.of_task[task.index()] = memcg;
    }

    /// `mem_cgroup_migrate`: what was charged for one frame counts for another.
    pub(super) fn migrate(&mut self, from: Pfn, to: Pfn) {
        if !self.of_page.is_empty() {
            self.of_page[to as usize] =
                std::mem::replace(&mut self.of_page[from as usize], MemcgId::ROOT);
        }
    }

    /// The group of a page, unless that is the root.
    #[inline]
    fn group_of(&mut self, pfn: Pfn) -> Option<&mut Memcg> {
        match self.of_page(pfn) {
            MemcgId::ROOT => None,
            memcg => Some(&mut self.groups[memcg]),
        }
    }

    /// A page of a file is dirty (`NR_FILE_DIRTY` of its group).
    #[inline]
    pub(super) fn count_dirty(&mut self, pfn: Pfn) {
        if let Some(group) = self.group_of(pfn) {
            group.dirty += 1;
        }
    }

    /// It no longer is.
    #[inline]
    pub(super) fn uncount_dirty(&mut self, pfn: Pfn) {
        if let Some(group) = self.group_of(pfn) {
            group.dirty -= 1;
        }
    }

    /// Pages are being written, this one and those of its folio (`NR_WRITEBACK` of its group).
    #[inline]
    pub(super) fn count_writeback(&mut self, pfn: Pfn, pages: u64) {
        if let Some(group) = self.group_of(pfn) {
            group.writeback += pages;
        }
    }

    /// A page is no longer being written.
    #[inline]
    pub(super) fn uncount_writeback(&mut self, pfn: Pfn) {
        if let Some(group) = self.group_of(pfn) {
            group.writeback -= 1;
        }
    }

    /// Dirty pages of a group, and those under writeback.
    pub(crate) fn dirty_and_writeback(&self, memcg: MemcgId) -> (u64, u64) {
        let group = &self.groups[memcg];
        (group.dirty, group.writeback)
    }

    /// The same as far as it is known when counters are flushed every two seconds only.
    pub(crate) fn flushed_dirty_and_writeback(&self, memcg: MemcgId) -> (u64, u64) {
        self.groups[memcg].flushed
    }
}

impl Mm {
    /// Uncharges a page from its memory cgroup.
    #[inline]
    pub(super) fn uncharge(&mut self, pfn: Pfn) {
        if !self.memcontrol.of_page.is_empty() {
            self.uncharge_page(pfn);
        }
    }

    #[inline(never)]
    fn uncharge_page(&mut self, pfn: Pfn) {
        let place = &mut self.memcontrol.of_page[pfn as usize];
        let memcg = std::mem::replace(place, MemcgId::ROOT);
        if memcg != MemcgId::ROOT {
            self.memcontrol.uncharge_counter(memcg, 1);
            self.check_soft_limits(pfn, memcg, 1);
        }
    }

    /// Makes the groups of a workload, before any task runs.
    pub(crate) fn make_cgroups(&mut self, specs: &[Cgroup], recursive_protection: bool, cpus: u32) {
        if specs.is_empty() {
            return;
        }
        let number = |spec: usize| MemcgId::from(spec + 1);
        let parent = |spec: &Cgroup| spec.parent.map_or(MemcgId::ROOT, number);
        let mut groups: TiVec<MemcgId, Memcg> = TiVec::new();
        groups.push(Memcg::new(
            &Cgroup::default(),
            MemcgId::ROOT,
            specs.len() + 1,
        ));
        for (at, spec) in specs.iter().enumerate() {
            groups.push(Memcg::new(spec, parent(spec), at + 2));
            let mut above = parent(spec);
            while above != MemcgId::ROOT {
                groups[above].end = at + 2;
                above = groups[above].parent;
            }
        }
        let no_stock = Stock {
            memcg: MemcgId::ROOT,
            pages: 0,
        };
        for _ in 0..specs.len() * self.sets {
            let mut lists = Lruvec::default();
            if self.lru_gen {
                lists.switch_to_generations(self.kernel.mechanisms.lru_gen);
            }
            self.lruvecs.push(lists);
        }
        let soft = if specs.iter().any(|spec| spec.soft.is_some()) {
            soft::SoftLimits::new(groups.len(), self.nodes.len(), cpus)
        } else {
            soft::SoftLimits::default()
        };
        let rules = self.kernel.mechanisms.memcg;
        let can_share = rules.protection_shares == ProtectionShares::Recursive;
        self.memcontrol = Memcontrol {
            groups,
            stocks: vec![no_stock; cpus as usize],
            obj_stocks: vec![kmem::ObjStock::EMPTY; cpus as usize],
            of_page: vec![MemcgId::ROOT; self.pages.len() as usize],
            iters: self.lruvecs.keys().map(|_| Default::default()).collect(),
            recursive_protection: recursive_protection && can_share,
            soft,
            ..Memcontrol::new(rules)
        };
        self.swap.make_cgroups(self.memcontrol.len());
        let places = self.nodes.len() * self.memcontrol.len();
        self.shrinkers.make_lists(places);
        self.huge.make_queues(places);
        self.limits
            .resize_with(self.memcontrol.len(), Default::default);
    }

    /// The LRU lists that a page belongs to: those of its zone or node, and there those of its group. The
    /// root's come first.
    #[inline]
    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        self.place_of(pfn).0
    }

    /// The lists of the root on the zone or node of others.
    #[inline]
    pub(crate) fn root_lruvec(&self, lruvec: LruvecId) -> LruvecId {
        LruvecId::from(usize::from(lruvec) % self.sets)
    }

    /// `NR_ISOLATED_ANON`, `NR_ISOLATED_FILE` of the zone or node.
    #[inline]
    pub(crate) fn isolated(&mut self, lruvec: LruvecId) -> &mut [u64; 2] {
        let root = self.root_lruvec(lruvec);
        &mut self.lruvecs[root].isolated
    }

    /// A group's lists on a zone or node.
    pub(crate) fn memcg_lruvec(&self, lruvec: LruvecId, memcg: MemcgId) -> LruvecId {
        let root = usize::from(self.root_lruvec(lruvec));
        LruvecId::from(root + self.sets * usize::from(memcg))
    }

    /// Where caches have the lists of a group on a node.
    pub(in crate::mm) fn cache_place(&self, node: NodeId, memcg: MemcgId) -> usize {
        usize::from(node) + self.nodes.len() * usize::from(memcg)
    }

    /// The group that lists belong to (`lruvec_memcg`).
    pub(crate) fn lruvec_memcg(&self, lruvec: LruvecId) -> MemcgId {
        MemcgId::from(usize::from(lruvec) / self.sets)
    }

    /// The lists of the group above (`parent_lruvec`).
    pub(crate) fn parent_lruvec(&self, lruvec: LruvecId) -> Option<LruvecId> {
        let memcg = self.lruvec_memcg(lruvec);
        let parent = self.memcontrol.groups.get(memcg)?.parent;
        (memcg != MemcgId::ROOT).then(|| self.memcg_lruvec(lruvec, parent))
    }

    /// Lists and those of all groups inside the group that they belong to, on the same zone or node.
    #[inline]
    pub(crate) fn lruvec_tree(&self, lruvec: LruvecId) -> impl Iterator<Item = LruvecId> + use<> {
        let groups = self.memcontrol.subtree(self.lruvec_memcg(lruvec)).len();
        (usize::from(lruvec)..)
            .step_by(self.sets)
            .take(groups)
            .map(LruvecId::from)
    }

    /// Length of a list, those of the groups below included.
    pub(crate) fn tree_len(&self, lruvec: LruvecId, lru: Lru) -> u64 {
        let tree = self.lruvec_tree(lruvec);
        tree.map(|lruvec| self.lruvecs[lruvec].len(lru)).sum()
    }

    /// Pages that reclaim may find there, of all groups.
    pub(crate) fn tree_reclaimable(&self, lruvec: LruvecId, swap: bool) -> u64 {
        let tree = self.lruvec_tree(lruvec);
        tree.map(|lruvec| self.lruvecs[lruvec].reclaimable(swap))
            .sum()
    }

    /// Pages that reclaim may find in a zone, of all groups: from 4.8 on lists hold those of the node's other zones, too
    /// (`zone_reclaimable_pages`). From 6.13 to 6.17 a zone that has none has its free pages.
    pub(crate) fn zone_reclaimable_pages(&self, zone: &Zone, swap: bool) -> u64 {
        let tree = self.lruvec_tree(zone.lruvec);
        let listed = tree
            .map(|lruvec| self.lruvecs[lruvec].zone_reclaimable(zone.kind, swap))
            .sum();
        match (listed, self.kernel.mechanisms.zones.empty_zone) {
            (0, EmptyZone::FreePages) => zone.free,
            (listed, _) => listed,
        }
    }

    #[inline(never)]
    fn charged_or_freed(&mut self, pfn: Pfn, memcg: MemcgId) -> Option<Pfn> {
        let charged = self.charge_fast(pfn, memcg);
        if !charged {
            self.free_page(pfn);
        }
        charged.then_some(pfn)
    }

    /// Charges a page without reclaim. False: it isn't charged, because of one of the limits.
    fn charge_fast(&mut self, pfn: Pfn, memcg: MemcgId) -> bool {
        let cpu = self.cpu;
        let memcontrol = &mut self.memcontrol;
        let slow = memcontrol.has_high(memcg);
        if slow || matches!(memcontrol.try_charge(cpu, memcg, 1), Charge::Over(_)) {
            return false;
        }
        memcontrol.of_page[pfn as usize] = memcg;
        self.check_soft_limits(pfn, memcg, 1);
        true
    }
}

impl World {
    /// The group of the task that runs.
    #[inline]
    pub(crate) fn current_memcg(&self) -> MemcgId {
        self.mm.memcontrol.of_task(self.sched.current())
    }

    /// A charged page if that takes neither reclaim nor a wait.
    #[inline(always)]
    pub(crate) fn alloc_charged_fast(&mut self, gfp: Gfp, memcg: MemcgId) -> Option<Pfn> {
        let pfn = self.alloc_page_fast(gfp)?;
        match memcg {
            MemcgId::ROOT => Some(pfn),
            _ => self.mm.charged_or_freed(pfn, memcg),
        }
    }
}
