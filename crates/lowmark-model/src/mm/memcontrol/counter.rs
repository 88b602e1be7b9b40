//! Page counters of memory cgroups (`mm/page_counter.c`), and what CPUs have charged ahead (`memcg_stock_pcp`).
//!
//! 1. A page counts for its group and for every group above that one.
//! 2. It is charged only if all of them have room; the first one from below that has none is *over its limit*.

use super::{Memcg, Memcontrol};
use crate::ids::MemcgId;
use crate::kernel::ChargeBatch;

impl ChargeBatch {
    /// `MEMCG_CHARGE_BATCH`
    pub(super) fn pages(self) -> u64 {
        match self {
            ChargeBatch::Small => 32,
            ChargeBatch::Large => 64,
        }
    }
}

/// Pages that a CPU has charged ahead.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stock {
    pub(super) memcg: MemcgId,
    pub(super) pages: u64,
}

/// How a charge was met.
pub(super) enum Charge {
    Stock,
    /// So many pages were charged at once.
    Batch(u64),
    /// Not at all: reclaim from this group first.
    Over(MemcgId),
}

impl Memcontrol {
    /// Pages that a CPU charges at once.
    pub(super) fn batch(&self) -> u64 {
        self.rules.charge_batch.pages()
    }

    /// A group and those above it, without the root.
    pub(super) fn ancestors(&self, memcg: MemcgId) -> impl Iterator<Item = MemcgId> {
        let below_root = |at: MemcgId| (at != MemcgId::ROOT).then_some(at);
        std::iter::successors(below_root(memcg), move |&at| {
            below_root(self.groups[at].parent)
        })
    }

    /// Does something to a group and to those above it.
    pub(super) fn with_ancestors(&mut self, memcg: MemcgId, mut change: impl FnMut(&mut Memcg)) {
        let mut at = memcg;
        while at != MemcgId::ROOT {
            let group = &mut self.groups[at];
            change(group);
            at = group.parent;
        }
    }

    /// `page_counter_try_charge`: the group that has no room, if there is one.
    fn try_charge_counter(&mut self, memcg: MemcgId, pages: u64) -> Result<(), MemcgId> {
        let mut at = memcg;
        while at != MemcgId::ROOT {
            let group = &self.groups[at];
            if group.usage + pages > group.max {
                return Err(at);
            }
            at = group.parent;
        }
        self.with_ancestors(memcg, |group| group.usage += pages);
        Ok(())
    }

    /// `page_counter_uncharge`
    pub(super) fn uncharge_counter(&mut self, memcg: MemcgId, pages: u64) {
        self.with_ancestors(memcg, |group| group.usage -= pages);
    }

    /// `consume_stock`
    fn consume_stock(&mut self, cpu: usize, memcg: MemcgId) -> bool {
        let stock = &mut self.stocks[cpu];
        let has = stock.memcg == memcg && stock.pages > 0;
        stock.pages -= u64::from(has);
        has
    }

    /// `refill_stock`
    pub(super) fn refill_stock(&mut self, cpu: usize, memcg: MemcgId, pages: u64) {
        let stock = self.stocks[cpu];
        if stock.memcg != memcg || stock.pages + pages > self.batch() {
            self.uncharge_counter(stock.memcg, stock.pages);
            self.stocks[cpu].pages = 0;
        }
        self.stocks[cpu].memcg = memcg;
        self.stocks[cpu].pages += pages;
    }

    /// `drain_all_stock` of a group and those inside it.
    pub(super) fn drain_all_stock(&mut self, memcg: MemcgId) {
        for cpu in 0..self.stocks.len() {
            let objects = self.obj_stocks[cpu].memcg;
            if self.subtree(memcg).contains(&usize::from(objects)) {
                self.drain_obj_stock(cpu);
            }
            let stock = self.stocks[cpu];
            if self.subtree(memcg).contains(&usize::from(stock.memcg)) {
                self.uncharge_counter(stock.memcg, stock.pages);
                self.stocks[cpu].pages = 0;
            }
        }
    }

    /// Charges pages without reclaim: one from the stock, or with a whole batch; else no more than these.
    pub(super) fn try_charge(&mut self, cpu: usize, memcg: MemcgId, pages: u64) -> Charge {
        if pages == 1 && self.consume_stock(cpu, memcg) {
            return Charge::Stock;
        }
        let batch = self.batch();
        if pages < batch && self.try_charge_counter(memcg, batch).is_ok() {
            self.refill_stock(cpu, memcg, batch - pages);
            return Charge::Batch(batch);
        }
        match self.try_charge_counter(memcg, pages) {
            Ok(()) => Charge::Batch(pages),
            Err(over) => Charge::Over(over),
        }
    }

    /// Pages for which a group has room (`mem_cgroup_margin`).
    pub(super) fn margin(&self, memcg: MemcgId) -> u64 {
        let group = &self.groups[memcg];
        group.max.saturating_sub(group.usage)
    }

    /// Pages that a group may still be charged, as writeback sees it (`mem_cgroup_wb_stats`): below its own limits and
    /// those above.
    pub(crate) fn headroom(&self, memcg: MemcgId) -> u64 {
        let rooms = self.ancestors(memcg).map(|at| {
            let group = &self.groups[at];
            group.max.min(group.high).saturating_sub(group.usage)
        });
        rooms.min().unwrap_or(u64::MAX)
    }

    /// Whether no CPU has charged more than a batch ahead: for tests of the model itself.
    pub(crate) fn stocks_are_batches(&self) -> bool {
        let batch = self.batch();
        self.stocks.iter().all(|stock| stock.pages <= batch)
    }

    /// Of each group but the root the pages that it is charged, beside those of the groups in it: for tests of the model
    /// itself.
    pub(crate) fn usages(&self) -> impl Iterator<Item = (u64, u64)> {
        self.groups.iter_enumerated().skip(1).map(|(id, group)| {
            let children = self.groups.iter().filter(|child| child.parent == id);
            (group.usage, children.map(|child| child.usage).sum())
        })
    }

    /// Of each group but the root the pages that it is charged, stocks aside, beside the pages and objects of it and of all
    /// inside it: for tests of the model itself.
    pub(crate) fn charges(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut own = vec![0; self.len()];
        for memcg in &self.of_page {
            own[usize::from(*memcg)] += 1;
        }
        for (memcg, group) in self.groups.iter_enumerated() {
            own[usize::from(memcg)] += group.kmem;
        }
        self.groups
            .iter_enumerated()
            .skip(1)
            .map(move |(id, group)| {
                let inside = self.subtree(id);
                let stocked = self.stocks.iter();
                let stocked = stocked.filter(|stock| inside.contains(&usize::from(stock.memcg)));
                let stocked: u64 = stocked.map(|stock| stock.pages).sum();
                (group.usage - stocked, own[inside.clone()].iter().sum())
            })
    }
}
