//! What becomes of a huge page at the end of its list: steps 1 to 7 of [`shrink_page_list`](super::page_list), all of its
//! pages at once as far as they go as one.

use super::ScanControl;
use super::page_list::{Fate, Outcome};
use crate::kernel::ThpSwap;
use crate::mm::types::{HPAGE_PMD_NR, Pfn, flag};
use crate::world::World;
use lowmark_record::event::{RECLAIM_WB_ANON, RECLAIM_WB_ASYNC};

impl World {
    pub(super) fn shrink_huge_page(
        &mut self,
        head: Pfn,
        sc: &ScanControl,
        outcome: &mut Outcome,
    ) -> Fate {
        let page = self.mm.pages[head];
        if page.has(flag::WRITEBACK) {
            return self.under_writeback(head, sc, outcome);
        }
        if page.is_gathered() {
            // add_to_swap: it has more references than it can be split with.
            return if page.has(flag::SWAPCACHE) {
                Fate::Keep
            } else {
                Fate::Activate
            };
        }
        let mapped = self.mm.huge.mapped(head) > 0;
        if !mapped && !page.has(flag::SWAPCACHE) {
            return Fate::Free;
        }
        let looks = mapped && !sc.ignore_references && !self.mm.is_kept_for_split(head);
        if looks && !self.mm.is_pmd_mapped(head) {
            outcome.cost += self.walk_cost(page.folio_nr_pages());
        }
        if let Some(fate) = self.mm.check_references(head, sc) {
            outcome.note_kept(&fate, page.folio_nr_pages());
            return fate;
        }
        if !page.has(flag::SWAPCACHE) && self.goes_in_parts(head) {
            return Fate::Split;
        }
        if mapped {
            self.mm.unmap_huge_page(head);
        }
        if self.mm.pages[head].has(flag::DIRTY) {
            return self.pageout_huge(head);
        }
        if mapped {
            // Otherwise it is a part of writing it.
            outcome.cost += self.costs.unmap_page_ns;
        }
        self.mm.remove_mapping(head, sc);
        Fate::Free
    }

    /// Gives a huge page a cluster of slots; false unless it is swapped out as one.
    fn goes_in_parts(&mut self, head: Pfn) -> bool {
        let rule = self.mm.kernel.mechanisms.huge.thp_swap;
        // Parts of a page that is not mapped as one may be free without any I/O.
        if !self.mm.is_pmd_mapped(head) {
            return true;
        }
        if rule == ThpSwap::Split {
            self.mm.note_no_cluster(head);
            return true;
        }
        if !self.add_huge_to_swap(head) {
            self.mm.stat.thp_swpout_fallback += 1;
            return true;
        }
        rule == ThpSwap::Cluster
    }

    /// `pageout` of a huge page of the swap cache.
    fn pageout_huge(&mut self, head: Pfn) -> Fate {
        if !self.mm.is_swapped(head) {
            self.mm.delete_from_swap_cache(head);
            return Fate::Free;
        }
        self.mm.start_swap_writeback(head);
        self.mm.pages[head].set(flag::RECLAIM);
        self.mm.huge.begin_writes(head, HPAGE_PMD_NR as u16);
        self.mm.stat.nr_vmscan_write += u64::from(HPAGE_PMD_NR);
        self.mm.stat.thp_swpout += 1;
        self.trace_writepage(head, RECLAIM_WB_ANON | RECLAIM_WB_ASYNC);
        Fate::Write
    }
}
