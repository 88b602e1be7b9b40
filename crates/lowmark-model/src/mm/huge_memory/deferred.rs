//! Huge pages that wait to be split, and the shrinker that splits them (`deferred_split_scan`).

use super::HugePage;
use crate::ids::MemcgId;
use crate::kernel::ThpSplit;
use crate::mm::Mm;
use crate::mm::types::{HPAGE_PMD_NR, NONE, Pfn, flag};
use crate::world::Sys;

impl Sys {
    /// `deferred_split_scan`: those that have waited longest, one after the other; how many were split.
    pub(crate) async fn scan_deferred_splits(&self, place: usize, nr: u64) -> u64 {
        let heads = self.world().mm.oldest_waiting(place, nr);
        let mut split = 0;
        for head in heads {
            let time = {
                let world = &mut *self.world();
                if !world.mm.is_to_be_split(head) {
                    continue;
                }
                let time = world.time_to_split(head);
                world.mm.split_huge_page(head);
                if let Some(time) = time {
                    world.mm.huge.begin_split(time.vma);
                }
                time
            };
            split += 1;
            if let Some(time) = time {
                self.charge_kernel(time.cost).await;
                self.world().mm.huge.end_split(time.vma);
            }
        }
        split
    }
}

impl Mm {
    /// A part of a huge page has been unmapped (`deferred_split_folio`).
    pub(super) fn note_partly_mapped(&mut self, head: Pfn) {
        let page = self.huge.of_mut(head);
        if !page.partly_mapped {
            page.partly_mapped = true;
            self.stat.thp_deferred_split_page += 1;
        }
        self.queue_for_split(head);
    }

    /// A new huge page, of which it is not known yet how much of it will be used.
    pub(super) fn queue_new(&mut self, head: Pfn) {
        if self.kernel.mechanisms.huge.thp_split == ThpSplit::Underused {
            self.queue_for_split(head);
        }
    }

    /// It goes to the end of the list of its node and memory cgroup if it is on none.
    pub(super) fn queue_for_split(&mut self, head: Pfn) {
        let memcg = if self.kernel.coverage.cgroup_slab {
            self.memcontrol.of_page(head)
        } else {
            MemcgId::ROOT
        };
        let place = self.cache_place(self.node_of(head), memcg);
        let queue = self.huge.queues[place];
        let page = self.huge.of_mut(head);
        if page.queued {
            return;
        }
        (page.queued, page.before, page.behind) = (true, queue.last, NONE);
        page.queue = place as u16;
        match queue.last {
            NONE => self.huge.queues[place].first = head,
            last => self.huge.of_mut(last).behind = head,
        }
        let queue = &mut self.huge.queues[place];
        queue.last = head;
        queue.len += 1;
    }

    /// It is off the list.
    pub(super) fn unqueue(&mut self, head: Pfn) {
        let HugePage {
            queued,
            queue,
            before,
            behind,
            ..
        } = *self.huge.of(head);
        if !queued {
            return;
        }
        let queue = usize::from(queue);
        match before {
            NONE => self.huge.queues[queue].first = behind,
            before => self.huge.of_mut(before).behind = behind,
        }
        match behind {
            NONE => self.huge.queues[queue].last = before,
            behind => self.huge.of_mut(behind).before = before,
        }
        self.huge.queues[queue].len -= 1;
        self.huge.of_mut(head).queued = false;
    }

    /// What is known of a huge page is known of it at another place.
    pub(crate) fn move_huge_page(&mut self, from: Pfn, to: Pfn) {
        let waits = self.huge.of(from).queued;
        self.unqueue(from);
        *self.huge.of_mut(to) = *self.huge.of(from);
        self.huge.forget(from);
        if waits {
            self.queue_for_split(to);
        }
    }

    /// A huge page is about to be free.
    pub(crate) fn forget_huge_page(&mut self, head: Pfn) {
        self.unqueue(head);
        self.huge.forget(head);
    }

    /// Every list holds as many huge pages as it says, each of which knows that; a panic names what is broken.
    pub(crate) fn check_split_queues(&self) {
        let mut on_lists = 0;
        for queue in &self.huge.queues {
            let (mut before, mut next, mut len) = (NONE, queue.first, 0);
            while next != NONE {
                let page = self.huge.of(next);
                assert!(
                    page.queued && page.before == before,
                    "the huge page {next} is on a list that it does not know"
                );
                (before, next, len) = (next, page.behind, len + 1);
            }
            assert_eq!(
                (queue.last, queue.len),
                (before, len),
                "huge pages that wait"
            );
            on_lists += len;
        }
        let places = self.huge.places.iter();
        let marked = places.filter(|page| page.queued).count() as u64;
        assert_eq!(marked, on_lists, "huge pages marked as waiting");
    }

    /// `deferred_split_count`
    pub(crate) fn count_deferred_splits(&self, place: usize) -> u64 {
        self.huge.queues.get(place).map_or(0, |queue| queue.len)
    }

    /// So many of those that have waited longest.
    fn oldest_waiting(&self, place: usize, nr: u64) -> Vec<Pfn> {
        let mut heads = Vec::new();
        let mut next = self.huge.queues[place].first;
        while next != NONE && (heads.len() as u64) < nr {
            heads.push(next);
            next = self.huge.of(next).behind;
        }
        heads
    }

    /// Whether one that waits can be split now and is worth it: no task holds it, and it is not being written. What cannot be
    /// split waits on, and what is in use after all does no longer.
    fn is_to_be_split(&mut self, head: Pfn) -> bool {
        let held = self.pages[head].is_gathered();
        if held || !self.is_huge(head) || !self.huge.of(head).queued {
            return false;
        }
        let underused = !self.huge.of(head).partly_mapped;
        if underused && !self.is_underused(head) {
            self.unqueue(head);
            return false;
        }
        let busy = self.pages[head].has_any(flag::LOCKED | flag::WRITEBACK | flag::SWAPCACHE);
        let splits = !busy && self.pages[head].has(flag::LRU);
        if splits && underused {
            self.stat.thp_underused_split_page += 1;
        }
        splits
    }

    /// `thp_underused`: more of its pages were never written than khugepaged would fill.
    fn is_underused(&self, head: Pfn) -> bool {
        let bearable = self.kernel.sysctl.thp.max_ptes_none;
        let all = u64::from(HPAGE_PMD_NR) - 1;
        let rule = self.kernel.mechanisms.huge.thp_split;
        rule == ThpSplit::Underused
            && bearable < all
            && self.unwritten(head).count() as u64 > bearable
    }

    /// Frames of a huge page that hold zeroes, as nobody has stored anything in them.
    pub(super) fn unwritten(&self, head: Pfn) -> impl Iterator<Item = Pfn> + '_ {
        self.pages.folio(head).filter(|&pfn| {
            let page = &self.pages[pfn];
            let (vma, index) = self.mappings.of(page.owner);
            page.is_mapped() && !self.vmas[vma].ptes[index].is_dirty()
        })
    }

    /// `try_to_map_unused_to_zeropage`: where a huge page is split, what was never written of it is mapped to the page of zeroes
    /// (b1f202060afe, 6.12, whatever splits the huge page), but for what is locked in memory.
    pub(super) fn free_unused(&mut self, head: Pfn) {
        let is_locked = |pfn: Pfn| {
            let (vma, index) = self.mappings.of(self.pages[pfn].owner);
            self.vmas[vma].parts.at(index as u32).locked
        };
        let unwritten = self.unwritten(head).filter(|&pfn| !is_locked(pfn));
        let unwritten: Vec<Pfn> = unwritten.collect();
        for pfn in unwritten {
            let page = self.pages[pfn];
            self.anon_pte(page).map_zeroes();
            self.pages[pfn].mapcount -= 1;
            self.huge.of_mut(head).mapped -= 1;
        }
    }
}
