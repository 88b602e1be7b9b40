//! Memory cgroups (`mm/memcontrol.c`, version 2), one level below the root.
//!
//! 1. A page of a task is *charged* to the task's group when it is allocated, one read back from swap to
//!    the group that it had; freeing it takes the charge back.
//! 2. A CPU charges 64 pages ahead ([`Stock`]); only when that is used up the group is asked.
//! 3. At `memory.max` the charge first reclaims from the group itself; if nothing helps, the run ends.
//! 4. Beyond `memory.high` the task reclaims before it goes on, and is slowed down the more the farther
//!    the group is beyond it.
//!
//! The pages of a group are on LRU lists of their own: see [`Mm::lruvec_of`].

mod charge;
mod stats;

use crate::ids::{LruvecId, MemcgId, NodeId};
pub(crate) use charge::{alloc_charged, alloc_folio_charged, charge_folio};

use crate::mm::Mm;
use crate::mm::types::{Gfp, Lru, Pfn, SWAP_CLUSTER_MAX};
use crate::time::{SECOND, TaskId};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::workload::Cgroup;
use typed_index_collections::TiVec;

/// Pages that a CPU charges at once (`MEMCG_CHARGE_BATCH` of 6.0 and later).
const CHARGE_BATCH: u64 = 64;
/// Rounds of reclaim without progress before a charge fails (`MAX_RECLAIM_RETRIES`).
const MAX_RECLAIM_RETRIES: u32 = 16;
/// `MEMCG_DELAY_PRECISION_SHIFT`
const DELAY_PRECISION_SHIFT: u32 = 20;
/// `MEMCG_DELAY_SCALING_SHIFT`
const DELAY_SCALING_SHIFT: u32 = 14;

/// A group (`struct mem_cgroup`).
#[derive(Debug)]
struct Memcg {
    name: String,
    /// Pages charged, those of stocks included.
    usage: u64,
    /// `memory.max`, pages.
    max: u64,
    /// `memory.high`, pages.
    high: u64,
    /// `memory.events`: charges that met `memory.max`.
    max_events: u64,
    /// `memory.events`: rounds of reclaim because of `memory.high`.
    high_events: u64,
    /// `memory.stat`: `file_dirty`, pages.
    dirty: u64,
    /// `memory.stat`: `file_writeback` and those of swap, pages.
    writeback: u64,
    /// Both as they were when counters were last flushed.
    flushed: (u64, u64),
}

/// Pages that a CPU has charged ahead (`memcg_stock_pcp`).
#[derive(Debug, Clone, Copy)]
struct Stock {
    memcg: MemcgId,
    pages: u64,
}

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Memcontrol {
    /// The root first; empty if there is no other.
    groups: TiVec<MemcgId, Memcg>,
    /// By CPU.
    stocks: Vec<Stock>,
    /// Group of each frame; empty without groups.
    of_page: Vec<MemcgId>,
    /// Group of each swap slot's page; empty without groups.
    of_slot: Vec<MemcgId>,
    /// Group of each task.
    of_task: Vec<MemcgId>,
    /// Pages that each task has charged beyond `memory.high` since it last paid for it.
    over_high: Vec<u64>,
    /// Changes of counters that are flushed already.
    updates_flushed: u64,
}

impl Memcontrol {
    /// Groups, the root included.
    pub(crate) fn len(&self) -> usize {
        self.groups.len().max(1)
    }

    /// The group that a page is charged to.
    #[inline]
    pub(crate) fn of_page(&self, pfn: Pfn) -> MemcgId {
        self.of_page
            .get(pfn as usize)
            .copied()
            .unwrap_or(MemcgId::ROOT)
    }

    /// The group that the page in a slot was charged to (`lookup_swap_cgroup_id`).
    #[inline]
    pub(crate) fn of_slot(&self, slot: u32) -> MemcgId {
        self.of_slot
            .get(slot as usize)
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

    /// Remembers whose page goes to a slot (`swap_cgroup_record`).
    #[inline]
    pub(super) fn record_slot(&mut self, slot: u32, pfn: Pfn) {
        let memcg = self.of_page(pfn);
        if let Some(place) = self.of_slot.get_mut(slot as usize) {
            *place = memcg;
        }
    }

    /// Takes back what a page was charged.
    #[inline]
    pub(super) fn uncharge(&mut self, pfn: Pfn) {
        if !self.of_page.is_empty() {
            self.uncharge_page(pfn);
        }
    }

    #[inline(never)]
    fn uncharge_page(&mut self, pfn: Pfn) {
        let place = &mut self.of_page[pfn as usize];
        let memcg = std::mem::replace(place, MemcgId::ROOT);
        if memcg != MemcgId::ROOT {
            self.groups[memcg].usage -= 1;
        }
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

    /// A page is being written (`NR_WRITEBACK` of its group).
    #[inline]
    pub(super) fn count_writeback(&mut self, pfn: Pfn) {
        if let Some(group) = self.group_of(pfn) {
            group.writeback += 1;
        }
    }

    /// It no longer is.
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

    /// Pages that a group may still be charged (`mem_cgroup_wb_stats`).
    pub(super) fn headroom(&self, memcg: MemcgId) -> u64 {
        let group = &self.groups[memcg];
        group.max.min(group.high).saturating_sub(group.usage)
    }

    /// `consume_stock`
    fn consume_stock(&mut self, cpu: usize, memcg: MemcgId) -> bool {
        let stock = &mut self.stocks[cpu];
        let has = stock.memcg == memcg && stock.pages > 0;
        stock.pages -= u64::from(has);
        has
    }

    /// `refill_stock`
    fn refill_stock(&mut self, cpu: usize, memcg: MemcgId, pages: u64) {
        let stock = self.stocks[cpu];
        if stock.memcg != memcg || stock.pages + pages > CHARGE_BATCH {
            self.groups[stock.memcg].usage -= stock.pages;
            self.stocks[cpu].pages = 0;
        }
        self.stocks[cpu].memcg = memcg;
        self.stocks[cpu].pages += pages;
    }

    /// `drain_all_stock` of a group.
    fn drain_all_stock(&mut self, memcg: MemcgId) {
        for stock in self.stocks.iter_mut().filter(|stock| stock.memcg == memcg) {
            self.groups[memcg].usage -= std::mem::take(&mut stock.pages);
        }
    }

    /// `page_counter_try_charge`
    fn try_charge_counter(&mut self, memcg: MemcgId, pages: u64) -> bool {
        let group = &mut self.groups[memcg];
        let fits = group.usage + pages <= group.max;
        group.usage += if fits { pages } else { 0 };
        fits
    }

    /// Charges a page without reclaim: from the stock, with a whole batch, or alone.
    fn try_charge(&mut self, cpu: usize, memcg: MemcgId) -> Charge {
        if self.consume_stock(cpu, memcg) {
            return Charge::Stock;
        }
        for batch in [CHARGE_BATCH, 1] {
            if self.try_charge_counter(memcg, batch) {
                if batch > 1 {
                    self.refill_stock(cpu, memcg, batch - 1);
                }
                return Charge::Batch(batch);
            }
        }
        Charge::OverMax
    }

    fn is_over_high(&self, memcg: MemcgId) -> bool {
        let group = &self.groups[memcg];
        group.usage > group.high
    }

    /// `calculate_high_delay`: jiffies that a task has to wait that has charged `pages` beyond
    /// `memory.high`.
    fn high_delay(&self, memcg: MemcgId, pages: u64, hz: u64) -> u64 {
        let group = &self.groups[memcg];
        if group.usage <= group.high {
            return 0;
        }
        let high = group.high.max(1);
        let overage = u128::from(group.usage - high.min(group.usage)) << DELAY_PRECISION_SHIFT;
        let overage = overage / u128::from(high);
        let penalty = (overage * overage * u128::from(hz)) >> DELAY_PRECISION_SHIFT;
        let penalty = (penalty >> DELAY_SCALING_SHIFT) * u128::from(pages);
        let most = 2 * hz;
        u64::try_from(penalty / u128::from(CHARGE_BATCH)).map_or(most, |delay| delay.min(most))
    }

    /// Files of the groups, by `NAME/FILE.KEY`.
    pub(crate) fn counters(&self) -> impl Iterator<Item = (String, u64)> {
        self.groups.iter().skip(1).flat_map(|group| {
            let fields = [
                ("memory.events.max", group.max_events),
                ("memory.events.high", group.high_events),
            ];
            fields.map(|(file, value)| (format!("cgroup/{}/{file}", group.name), value))
        })
    }

    /// Whether no CPU has charged more than a batch ahead: for tests of the model itself.
    pub(crate) fn stocks_are_batches(&self) -> bool {
        self.stocks.iter().all(|stock| stock.pages <= CHARGE_BATCH)
    }

    /// Pages that each group has charged, stocks aside, beside those that are charged to it: for tests of
    /// the model itself.
    pub(crate) fn charges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.groups.iter_enumerated().skip(1).map(|(id, group)| {
            let of_group = |stock: &&Stock| stock.memcg == id;
            let stocked: u64 = self.stocks.iter().filter(of_group).map(|s| s.pages).sum();
            let charged = self.of_page.iter().filter(|&&of| of == id);
            (group.usage - stocked, charged.count() as u64)
        })
    }
}

/// Pages that a task has charged beyond its group's `memory.high`.
#[derive(Debug)]
pub(crate) struct Over {
    memcg: MemcgId,
    pages: u64,
}

/// How a charge was met.
enum Charge {
    Stock,
    /// So many pages were charged at once.
    Batch(u64),
    /// Not at all: reclaim first.
    OverMax,
}

impl Mm {
    /// Makes the groups of a workload, before any task runs.
    pub(crate) fn make_cgroups(&mut self, groups: &[Cgroup], cpus: u32) {
        if groups.is_empty() {
            return;
        }
        let pages = |limit: Option<u64>| limit.map_or(u64::MAX, |bytes| bytes / PAGE_SIZE);
        let group = |name: &str, max, high| Memcg {
            name: name.to_owned(),
            usage: 0,
            max,
            high,
            max_events: 0,
            high_events: 0,
            dirty: 0,
            writeback: 0,
            flushed: (0, 0),
        };
        let root = group("", u64::MAX, u64::MAX);
        let children = groups
            .iter()
            .map(|spec| group(&spec.name, pages(spec.max), pages(spec.high)));
        let no_stock = Stock {
            memcg: MemcgId::ROOT,
            pages: 0,
        };
        self.memcontrol = Memcontrol {
            groups: std::iter::once(root).chain(children).collect(),
            stocks: vec![no_stock; cpus as usize],
            of_page: vec![MemcgId::ROOT; self.pages.len() as usize],
            of_slot: vec![MemcgId::ROOT; self.swap.slot_numbers()],
            of_task: Vec::new(),
            over_high: Vec::new(),
            updates_flushed: 0,
        };
        self.limits
            .resize_with(self.memcontrol.len(), Default::default);
        for _ in 0..groups.len() * self.sets {
            self.lruvecs.push(Default::default());
        }
    }

    /// The LRU lists that a page belongs to: those of its zone or node, and there those of its group. The
    /// root's come first.
    #[inline]
    pub(crate) fn lruvec_of(&self, pfn: Pfn) -> LruvecId {
        let root = self.zones[self.pages.zone(pfn)].lruvec;
        match self.memcontrol.of_page(pfn) {
            MemcgId::ROOT => root,
            memcg => self.memcg_lruvec(root, memcg),
        }
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

    /// Lists and those above them (`parent_lruvec`).
    pub(crate) fn lruvec_and_root(
        &self,
        lruvec: LruvecId,
    ) -> impl Iterator<Item = LruvecId> + use<> {
        let root = self.root_lruvec(lruvec);
        std::iter::once(lruvec).chain((root != lruvec).then_some(root))
    }

    /// Lists and those of the groups below: of the root all on its zone or node (`mem_cgroup_iter`).
    #[inline]
    pub(crate) fn lruvec_tree(&self, lruvec: LruvecId) -> impl Iterator<Item = LruvecId> + use<> {
        let first = usize::from(lruvec);
        let groups = match first < self.sets {
            true => self.memcontrol.len(),
            false => 1,
        };
        (first..)
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
        let slow = memcontrol.groups[memcg].high != u64::MAX;
        if slow || matches!(memcontrol.try_charge(cpu, memcg), Charge::OverMax) {
            return false;
        }
        memcontrol.of_page[pfn as usize] = memcg;
        true
    }
}

impl World {
    /// The group of the task that runs.
    #[inline]
    pub(crate) fn current_memcg(&self) -> MemcgId {
        self.mm.memcontrol.of_task(self.sched.current())
    }

    /// What the task that runs has charged beyond `memory.high` since it was last asked.
    #[inline]
    pub(crate) fn take_over_high(&mut self) -> Option<Over> {
        let task = self.sched.current();
        let pages = std::mem::take(self.mm.memcontrol.over_high.get_mut(task.index())?);
        let memcg = self.mm.memcontrol.of_task(task);
        (pages > 0).then_some(Over { memcg, pages })
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

/// `mem_cgroup_handle_over_high`: on its way out of the kernel, a task that [has charged](Over) pages beyond
/// `memory.high` reclaims as many, and waits if that does not help.
pub(crate) async fn handle_over_high(sys: &Sys, over: Over) {
    let Over { memcg, pages } = over;
    let gfp = Gfp::user(NodeId::FIRST);
    let (mut retries, mut want) = (MAX_RECLAIM_RETRIES, pages);
    loop {
        {
            let memcontrol = &mut sys.world().mm.memcontrol;
            if !memcontrol.is_over_high(memcg) {
                return;
            }
            memcontrol.groups[memcg].high_events += 1;
        }
        let reclaimed = sys.try_to_free_mem_cgroup_pages(gfp, memcg, want).await;
        let penalty = {
            let world = sys.world();
            let hz = world.hz();
            let delay = world.mm.memcontrol.high_delay(memcg, pages, hz);
            // What hardly shows is not worth a sleep.
            if delay <= hz / 100 || world.sched.current_killed() {
                return;
            }
            SECOND / hz * delay
        };
        if reclaimed == 0 && retries == 0 {
            sys.sleep(penalty).await;
            return;
        }
        retries -= u32::from(reclaimed == 0);
        want = SWAP_CLUSTER_MAX;
    }
}
