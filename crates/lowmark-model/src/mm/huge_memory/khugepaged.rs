//! khugepaged, which makes huge pages of single ones (`mm/khugepaged.c`).
//!
//! It goes through all private regions, so many pages at a time, and sleeps between. 2 MiB of which enough is there and in
//! use get a huge page into which their pages are copied. It comes round again and again, as others change what there is.

use crate::kernel::NewAnon;
use crate::mm::Mm;
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::fault::memory::{Backing, handle_mm_fault};
use crate::mm::frames::pte::Pte;
use crate::mm::memcontrol::charge_folio;
use crate::mm::types::{Gfp, HPAGE_PMD_NR, HPAGE_PMD_ORDER, Pfn, flag};
use crate::time::{Nanos, SECOND};
use crate::world::{Sys, SysRef, World};
use lowmark_record::event::gfp;

const MILLISECOND: Nanos = SECOND / 1000;

/// Where khugepaged goes on (`khugepaged_scan`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scanner {
    vma: u32,
    index: u32,
}

/// 2 MiB of a region, by their first page, that may become a huge page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    vma: u32,
    first: u32,
}

/// What a look at an extent came to.
enum Look {
    /// It is to be collapsed as soon as these pages have been read from swap.
    Collapse(Vec<u32>),
    /// It stays as it is.
    Leave,
}

/// The thread. It does not keep a run going.
pub(crate) async fn khugepaged(sys: SysRef) {
    loop {
        let settings = sys.world().mm.kernel.sysctl.thp.clone();
        let mut sleep = settings.scan_sleep_millisecs;
        let mut left = settings.pages_to_scan;
        let mut rounds = 0;
        while left > 0 && rounds < 2 {
            let (found, cost) = sys.world().khugepaged_scan(&mut left, &mut rounds);
            sys.charge_kernel(cost).await;
            if let Some((extent, swapped)) = found
                && !collapse(&sys, extent, swapped).await
            {
                sleep = settings.alloc_sleep_millisecs;
                break;
            }
        }
        {
            let world = &mut *sys.world();
            let timeout = world.jiffies(sleep * MILLISECOND);
            world
                .sched
                .block_in_background("khugepaged's next scan", timeout);
        }
        sys.suspend().await;
    }
}

impl World {
    /// Goes on through the regions, `left` pages at most, to an extent that is to be collapsed, with the pages of it that are
    /// in swap; the time that it took.
    fn khugepaged_scan(
        &mut self,
        left: &mut u64,
        rounds: &mut u32,
    ) -> (Option<(Extent, Vec<u32>)>, Nanos) {
        let before = *left;
        let mut found = None;
        while found.is_none() && *left > 0 && *rounds < 2 {
            let Scanner { vma, index } = self.mm.huge.scanner;
            let Some(region) = self.mm.vmas.get(vma as usize) else {
                self.mm.huge.scanner = Scanner::default();
                *rounds += 1;
                continue;
            };
            let inside = index + HPAGE_PMD_NR <= region.ptes.len() as u32;
            if region.backing != Backing::Anon || !inside || !self.mm.may_collapse(vma, index) {
                self.mm.huge.scanner = Scanner {
                    vma: vma + 1,
                    index: 0,
                };
                *left -= 1;
                continue;
            }
            self.mm.huge.scanner.index += HPAGE_PMD_NR;
            *left = left.saturating_sub(u64::from(HPAGE_PMD_NR));
            if let Look::Collapse(swapped) = self.mm.look_at_extent(vma, index) {
                found = Some((Extent { vma, first: index }, swapped));
            }
        }
        (found, (before - *left) * self.costs.scan_page_ns)
    }
}

impl Mm {
    /// `hpage_collapse_scan_pmd`
    fn look_at_extent(&self, vma: u32, first: u32) -> Look {
        let settings = &self.kernel.sysctl.thp;
        if self
            .pmd(vma, first)
            .is_none_or(|pmd| pmd.is_none() || pmd.is_huge())
        {
            return Look::Leave;
        }
        let region = &self.vmas[vma as usize];
        let (mut none, mut referenced, mut writable) = (0, 0, false);
        let mut swapped = Vec::new();
        for index in first..first + HPAGE_PMD_NR {
            let pte = region.ptes[index as usize];
            if pte.swap_entry().is_some() {
                swapped.push(index);
                continue;
            }
            let Some(pfn) = pte.frame() else {
                none += 1;
                continue;
            };
            let page = &self.pages[pfn];
            if page.order() > 0
                || !page.has(flag::LRU)
                || page.has_any(flag::LOCKED | flag::WRITEBACK)
            {
                return Look::Leave;
            }
            writable |= pte.is_writable();
            referenced += u32::from(pte.is_young() || page.has(flag::REFERENCED));
        }
        let in_use = match swapped.len() {
            0 => referenced > 0,
            _ => referenced >= HPAGE_PMD_NR / 2,
        };
        let fits = none <= settings.max_ptes_none && swapped.len() as u64 <= settings.max_ptes_swap;
        match fits && writable && in_use {
            true => Look::Collapse(swapped),
            false => Look::Leave,
        }
    }

    /// `collapse_huge_page`, when nothing can change any more: the pages of an extent are copied into a huge page, which
    /// takes their place.
    fn collapse_into(&mut self, extent: Extent, head: Pfn) {
        let Extent { vma, first } = extent;
        for (index, to) in (first..first + HPAGE_PMD_NR).zip(head..) {
            let owner = self.vmas[vma as usize].first + index;
            let pte = &mut self.vmas[vma as usize].ptes[index as usize];
            let from = pte.frame();
            *pte = match from {
                Some(_) => pte.collapsed_to(to),
                None => Pte::mapped_beside(to),
            };
            let page = &mut self.pages[to];
            page.owner = owner;
            page.set(flag::ANON | flag::SWAPBACKED);
            page.mapcount += 1;
            if let Some(from) = from {
                self.pages[from].mapcount -= 1;
                self.forget_page(from);
            }
        }
        self.huge.add(head);
        self.set_huge_pmd(vma, first, None);
        if self.kernel.mechanisms.reclaim.new_anon == NewAnon::Active {
            self.pages[head].set(flag::ACTIVE);
        }
        self.lru_add(head);
        self.queue_new(head);
    }
}

/// Makes a huge page of an extent. False: there is none to be had.
async fn collapse(sys: &Sys, extent: Extent, swapped: Vec<u32>) -> bool {
    let Extent { vma, first } = extent;
    let (gfp, memcg, space) = {
        let world = sys.world();
        let pages = world.mm.vmas[vma as usize].ptes[first as usize..].iter();
        let some = pages
            .take(HPAGE_PMD_NR as usize)
            .find_map(|pte| pte.frame());
        let Some(some) = some else {
            return true;
        };
        let direct = match world.mm.huge.settings.khugepaged_defrag {
            true => gfp::TRANSHUGE,
            false => gfp::TRANSHUGE_LIGHT,
        };
        let gfp = Gfp::of(world.mm.node_of(some), direct | gfp::THISNODE);
        let space = world.mm.vmas[vma as usize].space;
        (gfp, world.mm.memcontrol.of_page(some), space)
    };
    let Ok(head) = alloc_pages(sys, gfp, HPAGE_PMD_ORDER).await else {
        sys.world().mm.stat.thp_collapse_alloc_failed += 1;
        return false;
    };
    {
        let world = &mut *sys.world();
        world.mm.pages.make_folio(head, HPAGE_PMD_ORDER);
        world.mm.stat.thp_collapse_alloc += 1;
    }
    let mut usable = charge_folio(sys, head, gfp, memcg).await.is_ok();
    for index in swapped {
        let is_swapped = |world: &World| {
            let pte = world.mm.vmas[vma as usize].ptes.get(index as usize);
            pte.is_some_and(|pte| pte.swap_entry().is_some())
        };
        let reads = usable && is_swapped(&sys.world());
        if reads {
            let read = Box::pin(handle_mm_fault(sys, vma, index, false, None)).await;
            usable = read.is_ok();
        }
    }
    sys.down_write(space).await;
    let cost = {
        let world = &mut *sys.world();
        let inside = world.mm.vmas[vma as usize].ptes.len() as u32 >= first + HPAGE_PMD_NR;
        let still = usable
            && inside
            && matches!(world.mm.look_at_extent(vma, first), Look::Collapse(swapped) if swapped.is_empty());
        match still {
            true => world.mm.collapse_into(extent, head),
            false => world.mm.free_folio(head),
        }
        match still {
            true => u64::from(HPAGE_PMD_NR) * world.costs.migrate_page_ns,
            false => 0,
        }
    };
    sys.charge_kernel(cost).await;
    sys.up_write(space);
    true
}
