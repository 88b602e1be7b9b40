//! Faults that get a huge page (`do_huge_pmd_anonymous_page`), and what they may do for it.
//!
//! One attempt is made for each 2 MiB: as soon as there is a table, pages are mapped one by one.

use crate::ids::{MemcgId, NodeId};
use crate::kernel::thp::{Defrag, Enabled};
use crate::kernel::{NewAnon, ThpGfp, ThpNode, ThpZero};
use crate::mm::Mm;
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::fault::memory::{Backing, Brought, Step};
use crate::mm::fault::parts::HugeAdvice;
use crate::mm::fault::pgtable::alloc_table_page;
use crate::mm::frames::pte::{Pte, ZERO_FRAME};
use crate::mm::memcontrol::charge_folio;
use crate::mm::types::{Gfp, HPAGE_PMD_NR, HPAGE_PMD_ORDER, OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};
use lowmark_record::event::gfp;

/// First page of the 2 MiB that a page lies in.
pub(super) fn first_of_extent(index: u32) -> u32 {
    index & !(HPAGE_PMD_NR - 1)
}

impl Mm {
    /// `alloc_hugepage_direct_gfpmask`, `vma_thp_gfp_mask`
    pub(super) fn thp_gfp(&self, node: NodeId, advice: HugeAdvice) -> Gfp {
        let asked = advice == HugeAdvice::Huge;
        let rule = self.kernel.mechanisms.huge.thp_gfp;
        let direct = |asked: bool| match (rule, asked) {
            (ThpGfp::NoRetry | ThpGfp::Modes, _) | (ThpGfp::Madvised, false) => {
                gfp::DIRECT_RECLAIM | gfp::NORETRY
            }
            (ThpGfp::Madvised, true) => gfp::DIRECT_RECLAIM,
        };
        let more = match self.huge.settings.defrag {
            Defrag::Always => direct(asked),
            Defrag::Defer => gfp::KSWAPD_RECLAIM,
            Defrag::DeferMadvise | Defrag::Madvise if asked => direct(true),
            Defrag::DeferMadvise => gfp::KSWAPD_RECLAIM,
            Defrag::Madvise | Defrag::Never => 0,
        };
        let noretry = match rule {
            ThpGfp::NoRetry | ThpGfp::Modes => gfp::NORETRY,
            ThpGfp::Madvised => 0,
        };
        Gfp::of(node, gfp::TRANSHUGE_LIGHT | more | noretry)
    }

    /// What was asked for a page of a region by madvise(2).
    fn huge_advice(&self, vma: u32, index: u32) -> HugeAdvice {
        self.vmas[vma as usize].parts.at(index).huge
    }

    /// Whether the 2 MiB around a page may get a huge page: all of them lie in one VMA of a private region, which may have
    /// some (`thp_vma_allowable_order`).
    pub(super) fn may_be_huge(&self, vma: u32, index: u32) -> bool {
        let region = &self.vmas[vma as usize];
        let (around, part) = region.parts.around(index, region.pages());
        let first = first_of_extent(index);
        let inside = around.start <= first && first + HPAGE_PMD_NR <= around.end;
        region.backing == Backing::Anon && part.mapped && inside && self.allows_huge(vma, index)
    }

    /// Whether settings and advice let a page of a region lie in a huge page.
    fn allows_huge(&self, vma: u32, index: u32) -> bool {
        let allowed = match (self.huge.settings.enabled, self.huge_advice(vma, index)) {
            (_, HugeAdvice::NoHuge) | (Enabled::Never, _) => false,
            (Enabled::Always, _) | (Enabled::Madvise, HugeAdvice::Huge) => true,
            (Enabled::Madvise, HugeAdvice::None) => false,
        };
        self.huge.is_on() && allowed
    }

    /// A huge page is mapped to the 2 MiB around the page that is touched, with the page of a table that is kept for it.
    pub(super) fn map_huge_anon(
        &mut self,
        (vma, touched, write): (u32, u32, bool),
        head: Pfn,
        table: Option<Pfn>,
    ) {
        let first = first_of_extent(touched);
        let region = &mut self.vmas[vma as usize];
        for (index, pfn) in (first..first + HPAGE_PMD_NR).zip(head..) {
            region.ptes[index as usize] = if index == touched {
                Pte::mapped(pfn, write, true)
            } else {
                Pte::mapped_beside(pfn)
            };
            let page = &mut self.pages[pfn];
            page.owner = region.first + index;
            page.set(flag::ANON | flag::SWAPBACKED);
            page.mapcount += 1;
        }
        self.huge.add(head);
        self.set_huge_pmd(vma, touched, table);
        if self.kernel.mechanisms.reclaim.new_anon == NewAnon::Active {
            self.pages[head].set(flag::ACTIVE);
        }
        self.lru_add(head);
        self.queue_new(head);
    }
}

impl super::HugeMemory {
    /// A new huge page, all of it mapped.
    pub(super) fn add(&mut self, head: Pfn) {
        *self.of_mut(head) = super::HugePage {
            mapped: HPAGE_PMD_NR as u16,
            ..super::FRESH
        };
    }
}

impl World {
    /// A fault in 2 MiB without a table, or mapped to the huge page of zeroes, as far as it goes without sleeping. None: a
    /// single page is what it gets.
    pub(in crate::mm) fn huge_fault(
        &mut self,
        vma: u32,
        index: u32,
        write: bool,
        brought: &mut Brought,
    ) -> Option<Step> {
        let zeroes = self.mm.pmd(vma, index).is_some_and(|pmd| pmd.is_huge());
        let rule = self.mm.kernel.mechanisms.huge.thp_zero;
        if zeroes && (brought.no_huge || rule != ThpZero::Huge) {
            self.mm.split_huge_pmd(vma, index);
            return None;
        }
        if brought.no_huge || !zeroes && !self.mm.may_be_huge(vma, index) {
            return None;
        }
        if !write && rule != ThpZero::None && self.mm.huge.settings.use_zero_page {
            return self.map_huge_zero(vma, index);
        }
        let Some((head, table)) = self.take_huge(vma, index, brought) else {
            return Some(Step::AllocateHuge);
        };
        if self.in_lru_fault() {
            self.mm.pages[head].set(flag::ACTIVE);
        }
        self.mm.map_huge_anon((vma, index, write), head, table);
        self.mm.stat.thp_fault_alloc += 1;
        Some(Step::Done {
            cost: self.memory_time(self.costs.zero_huge_page_ns),
        })
    }

    /// The huge page, with the page of a table, that a fault has brought, or those that there are without waiting.
    fn take_huge(
        &mut self,
        vma: u32,
        index: u32,
        brought: &mut Brought,
    ) -> Option<(Pfn, Option<Pfn>)> {
        if let Some(brought) = brought.huge.take() {
            return Some(brought);
        }
        if self.current_memcg() != MemcgId::ROOT {
            return None;
        }
        let gfp = self.first_thp_gfp(vma, index);
        let head = self.alloc_pages_fast(gfp, HPAGE_PMD_ORDER)?;
        self.mm.pages.make_folio(head, HPAGE_PMD_ORDER);
        match self.table_page_fast() {
            Some(table) => Some((head, table)),
            None => {
                self.mm.free_folio(head);
                None
            }
        }
    }

    /// What a fault allocates a huge page with at its first attempt.
    fn first_thp_gfp(&self, vma: u32, index: u32) -> Gfp {
        let node = self.sched.current_node();
        let gfp = self.mm.thp_gfp(node, self.mm.huge_advice(vma, index));
        match self.mm.kernel.mechanisms.huge.thp_node {
            ThpNode::Any => gfp,
            ThpNode::Local => gfp.with(gfp::THISNODE),
            ThpNode::LocalFirst => gfp.with(gfp::THISNODE | gfp::NORETRY),
        }
    }

    /// The 2 MiB are mapped to the huge page of zeroes, which is allocated at its first use if there is one at once. The
    /// kernel would reclaim for it, and gives it up when nobody maps it.
    fn map_huge_zero(&mut self, vma: u32, index: u32) -> Option<Step> {
        if !self.mm.huge.zero {
            let node = self.sched.current_node();
            let gfp = Gfp::of(node, gfp::TRANSHUGE_LIGHT & !gfp::MOVABLE);
            match self.alloc_pages_fast(gfp, HPAGE_PMD_ORDER) {
                Some(head) => {
                    self.mm.pages.make_folio(head, HPAGE_PMD_ORDER);
                    self.mm.huge.zero = true;
                    self.mm.stat.thp_zero_page_alloc += 1;
                }
                None => {
                    self.mm.stat.thp_zero_page_alloc_failed += 1;
                    self.mm.stat.thp_fault_fallback += 1;
                    return None;
                }
            }
        }
        let table = self.table_page_fast()?;
        let first = first_of_extent(index) as usize;
        let zeroes = Pte::mapped(ZERO_FRAME, false, false);
        self.mm.vmas[vma as usize].ptes[first..first + HPAGE_PMD_NR as usize].fill(zeroes);
        self.mm.set_huge_pmd(vma, index, table);
        Some(Step::Done { cost: 0 })
    }
}

impl Sys {
    /// Allocates a huge page for a fault, charged to a group, and the page of a table with it. None: there is none, or the
    /// group may not have it, and the fault falls back to a single page.
    ///
    /// # Errors
    ///
    /// When there is no page for the table.
    pub(in crate::mm) async fn alloc_huge_page(
        &self,
        vma: u32,
        index: u32,
        memcg: MemcgId,
    ) -> Result<Option<(Pfn, Option<Pfn>)>, OutOfMemory> {
        let (first, all, tables) = {
            let world = self.world();
            let node = world.sched.current_node();
            let all = world.mm.thp_gfp(node, world.mm.huge_advice(vma, index));
            (
                world.first_thp_gfp(vma, index),
                all,
                world.mm.has_table_pages(),
            )
        };
        let Some(head) = self.alloc_huge_folio(first, all, memcg).await else {
            return Ok(None);
        };
        let table = if tables {
            alloc_table_page(self, memcg).await.map(Some)
        } else {
            Ok(None)
        };
        if table.is_err() {
            self.world().mm.free_folio(head);
        }
        table.map(|table| Some((head, table)))
    }

    /// A charged huge page; none is counted as a fallback.
    async fn alloc_huge_folio(&self, first: Gfp, all: Gfp, memcg: MemcgId) -> Option<Pfn> {
        let mut found = alloc_pages(self, first, HPAGE_PMD_ORDER).await.ok();
        let again = self.world().mm.kernel.mechanisms.huge.thp_node == ThpNode::LocalFirst
            && all.has(gfp::DIRECT_RECLAIM);
        if found.is_none() && again {
            found = alloc_pages(self, all, HPAGE_PMD_ORDER).await.ok();
        }
        let Some(head) = found else {
            self.world().mm.stat.thp_fault_fallback += 1;
            return None;
        };
        self.world().mm.pages.make_folio(head, HPAGE_PMD_ORDER);
        if charge_folio(self, head, all, memcg).await.is_err() {
            let world = &mut *self.world();
            world.mm.free_folio(head);
            world.mm.stat.thp_fault_fallback += 1;
            world.mm.stat.thp_fault_fallback_charge += 1;
            return None;
        }
        Some(head)
    }
}
