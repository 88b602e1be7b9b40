//! khugepaged, which makes huge pages of single ones (`mm/khugepaged.c`).
//!
//! It goes through all private regions, so many pages at a time, and sleeps between. 2 MiB of which enough is there and in
//! use get a huge page into which their pages are copied. It comes round again and again, as others change what there is.

use crate::kernel::{NewAnon, ThpReadOnly};
use crate::mm::Mm;
use crate::mm::alloc::page_alloc::alloc_pages;
use crate::mm::fault::memory::{Backing, FaultBy, handle_mm_fault};
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
#[derive(Debug)]
pub(super) struct Look {
    /// The last page that was looked at.
    pub(super) page: Option<Pfn>,
    /// Pages that were accessed, that are not there, and whether one may be written.
    pub(super) referenced: u32,
    pub(super) none: u64,
    pub(super) writable: bool,
    /// Pages in swap.
    pub(super) swapped: Vec<u32>,
    /// `SCAN_STATUS`
    pub(super) status: &'static str,
}

/// The extent can be collapsed (`SCAN_SUCCEED`).
pub(super) const SUCCEEDED: &str = "succeeded";

impl Look {
    fn succeeded(&self) -> bool {
        self.status == SUCCEEDED
    }
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
            let Some((extent, look)) = found else {
                continue;
            };
            let status = collapse(&sys, extent, &look).await;
            {
                let world = &mut *sys.world();
                world.trace_collapse(extent.vma, status);
                world.trace_scan(extent.vma, &look, status);
            }
            if status == ALLOC_FAILED {
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

impl Mm {
    /// The first 2 MiB that begin in the VMA behind that of a page.
    fn next_vma(&self, vma: u32, index: u32) -> Scanner {
        let region = &self.vmas[vma as usize];
        let end = region.vma_around(index).end.next_multiple_of(HPAGE_PMD_NR);
        if region.backing == Backing::Anon && end + HPAGE_PMD_NR <= region.pages() {
            Scanner { vma, index: end }
        } else {
            Scanner {
                vma: vma + 1,
                index: 0,
            }
        }
    }
}

impl World {
    /// Goes on through the regions, `left` pages at most, to an extent that is to be collapsed, with what was seen of it; the
    /// time that it took.
    fn khugepaged_scan(
        &mut self,
        left: &mut u64,
        rounds: &mut u32,
    ) -> (Option<(Extent, Look)>, Nanos) {
        let before = *left;
        let mut found = None;
        while found.is_none() && *left > 0 && *rounds < 2 {
            let Scanner { vma, index } = self.mm.huge.scanner;
            if vma as usize >= self.mm.vmas.len() {
                self.mm.huge.scanner = Scanner::default();
                *rounds += 1;
                continue;
            }
            if !self.mm.may_be_huge(vma, index) {
                self.mm.huge.scanner = self.mm.next_vma(vma, index);
                *left -= 1;
                continue;
            }
            self.mm.huge.scanner.index += HPAGE_PMD_NR;
            *left = left.saturating_sub(u64::from(HPAGE_PMD_NR));
            let look = self.mm.look_at_extent(vma, index);
            if look.succeeded() {
                found = Some((Extent { vma, first: index }, look))
            } else {
                self.trace_scan(vma, &look, look.status)
            }
        }
        (found, (before - *left) * self.costs.reclaim_clean_ns())
    }
}

impl Mm {
    /// `hpage_collapse_scan_pmd`, up to where it collapses.
    fn look_at_extent(&self, vma: u32, first: u32) -> Look {
        let mut look = Look {
            page: None,
            referenced: 0,
            none: 0,
            writable: false,
            swapped: Vec::new(),
            status: SUCCEEDED,
        };
        let pmd = self.pmd(vma, first);
        look.status = match pmd {
            None => "pmd_null",
            Some(pmd) if pmd.is_none() => "pmd_none",
            Some(pmd) if pmd.is_huge() => "page_pmd_mapped",
            Some(_) => {
                let mut indices = first..first + HPAGE_PMD_NR;
                let ended = indices.find_map(|index| self.look_at_page(vma, index, &mut look));
                ended.unwrap_or_else(|| self.worth_of(&look))
            }
        };
        look
    }

    /// A page of an extent; what keeps the extent from being collapsed, if it does.
    fn look_at_page(&self, vma: u32, index: u32, look: &mut Look) -> Option<&'static str> {
        let settings = &self.kernel.sysctl.thp;
        let pte = self.vmas[vma as usize].ptes[index as usize];
        if pte.swap_entry().is_some() {
            look.swapped.push(index);
            let most = settings.max_ptes_swap;
            return (look.swapped.len() as u64 > most).then_some("exceed_swap_pte");
        }
        let Some(pfn) = pte.frame() else {
            look.none += 1;
            return (look.none > settings.max_ptes_none).then_some("exceed_none_pte");
        };
        look.writable |= pte.is_writable();
        look.page = Some(pfn);
        let page = &self.pages[pfn];
        if page.order() > 0 {
            return Some("page_compound");
        }
        if !page.has(flag::LRU) {
            return Some("page_not_in_lru");
        }
        if page.has(flag::LOCKED) {
            return Some("page_locked");
        }
        if page.has(flag::WRITEBACK) {
            return Some("not_suitable_page_count");
        }
        look.referenced += u32::from(pte.is_young() || page.has(flag::REFERENCED));
        None
    }

    /// Whether an extent all of whose pages can be had is worth a huge page: it is in use, and one page can be written if
    /// the kernel asks for that.
    fn worth_of(&self, look: &Look) -> &'static str {
        let least = match look.swapped.len() {
            0 => 1,
            _ => HPAGE_PMD_NR / 2,
        };
        let may_be_read_only = self.kernel.mechanisms.huge.thp_read_only == ThpReadOnly::Collapsed;
        match (look.writable || may_be_read_only, look.referenced >= least) {
            (false, _) => "no_writable_page",
            (true, false) => "lack_referenced_page",
            (true, true) => SUCCEEDED,
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

/// There was no huge page to be had (`SCAN_ALLOC_HUGE_PAGE_FAIL`).
const ALLOC_FAILED: &str = "alloc_huge_page_failed";

/// The region is not there any more (`SCAN_VMA_CHECK`).
const UNMAPPED: &str = "vma_check_failed";

/// `collapse_huge_page`: makes a huge page of an extent; what came of it.
async fn collapse(sys: &Sys, extent: Extent, look: &Look) -> &'static str {
    let Extent { vma, first } = extent;
    let (gfp, memcg, space) = {
        let world = sys.world();
        // The look at the extent has taken time, in which its task may have unmapped it.
        let ptes = &world.mm.vmas[vma as usize].ptes;
        let Some(extent) = ptes.get(first as usize..(first + HPAGE_PMD_NR) as usize) else {
            return UNMAPPED;
        };
        let Some(some) = extent.iter().find_map(|pte| pte.frame()) else {
            return "failed";
        };
        let direct = if world.mm.huge.settings.khugepaged_defrag {
            gfp::TRANSHUGE
        } else {
            gfp::TRANSHUGE_LIGHT
        };
        let gfp = Gfp::of(world.mm.node_of(some), direct | gfp::THISNODE);
        let space = world.mm.vmas[vma as usize].space;
        (gfp, world.mm.memcontrol.of_page(some), space)
    };
    let Ok(head) = alloc_pages(sys, gfp, HPAGE_PMD_ORDER).await else {
        sys.world().mm.stat.thp_collapse_alloc_failed += 1;
        return ALLOC_FAILED;
    };
    {
        let world = &mut *sys.world();
        world.mm.pages.make_folio(head, HPAGE_PMD_ORDER);
        world.mm.stat.thp_collapse_alloc += 1;
    }
    let status = if charge_folio(sys, head, gfp, memcg).await.is_ok() {
        swap_in(sys, vma, look).await
    } else {
        "ccgroup_charge_failed"
    };
    sys.down_write(space).await;
    let (status, cost) = sys.world().collapse_or_free(extent, head, status);
    sys.charge_kernel(cost).await;
    sys.up_write(space);
    status
}

/// `__collapse_huge_page_swapin`: reads what is in swap of an extent.
async fn swap_in(sys: &Sys, vma: u32, look: &Look) -> &'static str {
    if look.swapped.is_empty() {
        return SUCCEEDED;
    }
    let (mut read, mut status) = (0, SUCCEEDED);
    for &index in &look.swapped {
        let is_swapped = {
            let world = sys.world();
            let pte = world.mm.vmas[vma as usize].ptes.get(index as usize);
            pte.is_some_and(|pte| pte.swap_entry().is_some())
        };
        if !is_swapped {
            continue;
        }
        let by = FaultBy::Khugepaged;
        let fault = Box::pin(handle_mm_fault(sys, vma, index, false, None, by)).await;
        if fault.is_err() {
            status = "failed";
            break;
        }
        read += 1;
    }
    sys.world()
        .trace_swapin(vma, read, look.referenced, status == SUCCEEDED);
    status
}

impl World {
    /// The second half of `collapse_huge_page`: a last look (`__collapse_huge_page_isolate`), and what is in the extent moves to
    /// the huge page, which is free again if that cannot be; what came of it, and the time that it took.
    fn collapse_or_free(
        &mut self,
        extent: Extent,
        head: Pfn,
        status: &'static str,
    ) -> (&'static str, Nanos) {
        let Extent { vma, first } = extent;
        let inside = self.mm.vmas[vma as usize].ptes.len() as u32 >= first + HPAGE_PMD_NR;
        let status = match (status == SUCCEEDED, inside) {
            (false, _) => status,
            (true, false) => UNMAPPED,
            (true, true) => {
                let mut look = self.mm.look_at_extent(vma, first);
                if !look.swapped.is_empty() {
                    look.status = "pte_non_present";
                }
                self.trace_isolate(&look);
                look.status
            }
        };
        if status != SUCCEEDED {
            self.mm.free_folio(head);
            return (status, 0);
        }
        self.mm.collapse_into(extent, head);
        let copied = u64::from(HPAGE_PMD_NR) * self.costs.migrate_page_ns;
        (status, copied)
    }
}
