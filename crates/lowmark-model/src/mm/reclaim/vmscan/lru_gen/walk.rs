//! Which pages page tables know to be used: a walk of all tables before a new generation is made (`walk_mm`), and a look at the
//! entries around one that reclaim has found young (`lru_gen_look_around`).
//!
//! 1. A walk clears the young bit of every entry of a page on the lists and makes the page young. It passes over tables in
//!    which the last walk, or a look around, found fewer young entries than one in eight; those of processes that no walk has seen yet it
//!    goes through as a whole.
//! 2. A look around does the same with up to 64 entries. A reclaimer that has no memory to note what it finds moves the pages
//!    at once (`folio_activate`).
//! 3. Up to 6.13 an entry of a page that is isolated loses its young bit, and the page is marked as referenced, so that
//!    reclaim keeps it. From 6.14 on such entries are left alone. The page whose entry was found is treated like its neighbours
//!    to 6.11, so that it is activated; from 6.12 on it is kept.
//!
//! Simplified: a walk takes place at one moment, and its time is spent after it. Kernels have a Bloom filter, which says yes to
//! a few tables more. Processes that have not run since the last walk are not told apart; none of their entries is young.

use super::MIN_LRU_BATCH;
use crate::ids::LruvecId;
use crate::kernel::{GenOwnEntry, GenRefault};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::lru_gen::Filter;
use crate::mm::fault::rmap::References;
use crate::mm::frames::page::Page;
use crate::mm::types::{HPAGE_PMD_NR, Pfn, flag};

/// Bits of `lru_gen.enabled`: walks of page tables, and young bits of what is above tables.
const MM_WALK: u64 = 2;
const NONLEAF_YOUNG: u64 = 4;

/// `suitable_to_scan`: whether of so many entries enough are young, one in a cache line.
fn is_worth_a_walk(young: u64, entries: u64) -> bool {
    young * 8 >= entries
}

impl Mm {
    /// Walks the tables of all processes for a new generation of some lists. How many entries that were; none if walks are off.
    pub(super) fn walk_page_tables(&mut self, lruvec: LruvecId, swap: bool) -> Option<u64> {
        let enabled = self.kernel.sysctl.lru_gen;
        if enabled & MM_WALK == 0 {
            return None;
        }
        let gens = self.lruvecs[lruvec].generations_mut()?;
        let (now, next) = (gens.max_seq as usize % 2, (gens.max_seq as usize + 1) % 2);
        let worth = gens.filters[now].take();
        let seen = gens.spaces_seen;
        let mut worth_next = Filter::new();
        let mut looked_at = 0;
        let mut spaces = seen;
        for vma in 0..self.vmas.len() as u32 {
            let region = &self.vmas[vma as usize];
            spaces = spaces.max(region.space + 1);
            let forced = region.space >= seen;
            for first in (0..region.pages()).step_by(HPAGE_PMD_NR as usize) {
                let extent = (vma, first / HPAGE_PMD_NR);
                let filtered = worth.as_ref().is_some_and(|worth| !worth.contains(&extent));
                if !forced
                    && (filtered || enabled & NONLEAF_YOUNG != 0 && !self.any_young(vma, first))
                {
                    continue;
                }
                let (entries, young) = self.walk_table(lruvec, (vma, first), swap);
                looked_at += entries;
                if entries > 1 && is_worth_a_walk(young, entries) {
                    worth_next.insert(extent);
                }
            }
        }
        if let Some(gens) = self.lruvecs[lruvec].generations_mut() {
            gens.filters[now] = worth;
            gens.filters[next] = Some(worth_next);
            gens.spaces_seen = spaces;
        }
        Some(looked_at)
    }

    fn any_young(&self, vma: u32, first: u32) -> bool {
        let ptes = &self.vmas[vma as usize].ptes;
        let end = ptes.len().min((first + HPAGE_PMD_NR) as usize);
        ptes[first as usize..end].iter().any(|pte| pte.is_young())
    }

    /// The entries of a table, or the one in its place, and how many of them were young, of pages of the lists (`walk_pte_range`,
    /// `walk_pmd_range_locked`).
    fn walk_table(&mut self, lruvec: LruvecId, (vma, first): (u32, u32), swap: bool) -> (u64, u64) {
        let end = self.vmas[vma as usize].pages().min(first + HPAGE_PMD_NR);
        let huge = self.pmd(vma, first).is_some_and(|pmd| pmd.is_huge());
        let mut young = 0;
        let mut last = None;
        for index in first..end {
            if let Some(head) = self.take_young((vma, index), lruvec, swap) {
                young += 1;
                if last != Some(head) {
                    last = Some(head);
                    self.note_walked(head);
                }
            }
        }
        if huge {
            (1, u64::from(young > 0))
        } else {
            (u64::from(end - first), young)
        }
    }

    /// Clears the young bit of an entry of a page of some lists that may be taken: the page, or the head of its folio.
    fn take_young(
        &mut self,
        (vma, index): (u32, u32),
        lruvec: LruvecId,
        swap: bool,
    ) -> Option<Pfn> {
        let region = &self.vmas[vma as usize];
        let pte = region.ptes[index as usize];
        if !pte.is_young() || !region.parts.at(index).recency {
            return None;
        }
        let head = self.pages.head(pte.frame()?);
        let page = &self.pages[head];
        let left_alone = self.kernel.mechanisms.lru_gen.gen_refault == GenRefault::Window
            && !page.has(flag::LRU);
        let kept = page.has(flag::SWAPBACKED) && !swap;
        if left_alone || kept || self.place_of(head).0 != lruvec {
            return None;
        }
        self.vmas[vma as usize].ptes[index as usize].test_and_clear_young();
        Some(head)
    }

    /// A reclaimer that has memory to note it has found a page used (`folio_update_gen`).
    fn note_walked(&mut self, head: Pfn) {
        if self.pages[head].has(flag::LRU) {
            let (lruvec, zone) = self.place_of(head);
            self.lruvecs[lruvec].promote(&mut self.pages, (head, zone));
        } else {
            self.pages[head].set(flag::REFERENCED);
        }
    }

    /// A reclaimer without that memory has found a page used, and moves it at once if it is young.
    fn note_looked_at(&mut self, head: Pfn, lruvec: LruvecId) {
        let rule = self.kernel.mechanisms.lru_gen.gen_refault;
        if !self.pages[head].has(flag::LRU) {
            self.pages[head].set(flag::REFERENCED);
            return;
        }
        let young = self.pages.note_used(head, rule);
        let gens = self.lruvecs[lruvec].generations();
        let youngest = gens.is_some_and(|gens| gens.is_youngest(&self.pages, head));
        if young && !youngest {
            self.activate_page(head);
        }
    }

    /// `folio_referenced` of an isolated page, with a look around each young entry. A reclaimer that `walks` notes what it finds.
    #[cold]
    pub(in crate::mm::reclaim::vmscan) fn referenced_around(
        &mut self,
        head: Pfn,
        walks: bool,
    ) -> References {
        let page = self.pages[head];
        if !page.has_owner() || self.is_huge(head) {
            return self.page_referenced(head);
        }
        let mut references = References::default();
        for (vma, range) in self.entries_of(head, &page) {
            let mut young = false;
            for index in range {
                let region = &mut self.vmas[vma as usize];
                let part = region.parts.at(index);
                if !region.ptes[index as usize].is_young() {
                    continue;
                }
                if !part.recency {
                    region.ptes[index as usize].test_and_clear_young();
                    continue;
                }
                references.executable |= part.executable;
                young = true;
                self.look_around(head, (vma, index), walks);
            }
            references.young += u32::from(young);
        }
        references
    }

    /// Where a page is mapped: regions, and which of their pages.
    fn entries_of(&self, head: Pfn, page: &Page) -> Vec<(u32, std::ops::Range<u32>)> {
        let frames = self.pages.folio(head);
        let is_mapped = |vma: u32, index: u32, pfn: Pfn| {
            let pte = self.vmas[vma as usize].ptes.get(index as usize);
            pte.and_then(|pte| pte.frame()) == Some(pfn)
        };
        let (mappers, first) = if page.is_anon() {
            let (vma, index) = self.mappings.of(page.owner);
            let at = (vma as u32, index as u32..index as u32 + 1);
            return Vec::from_iter(page.is_mapped().then_some(at));
        } else if page.has(flag::SWAPBACKED) {
            let (object, index) = self.mappings.of(page.owner);
            (&self.shmem[object].mappers, index as u32)
        } else {
            let (inode, index) = self.file_of(page);
            (&self.inodes[inode].mappers, index)
        };
        let of_file = !page.has(flag::SWAPBACKED);
        let mut found: Vec<(u32, std::ops::Range<u32>)> = Vec::new();
        for &vma in mappers {
            let offset = if of_file {
                self.vmas[vma as usize].offset
            } else {
                0
            };
            for (number, pfn) in (first..).zip(frames.clone()) {
                let index = number.wrapping_sub(offset);
                if is_mapped(vma, index, pfn) {
                    match found.last_mut() {
                        Some((last, range)) if *last == vma && range.end == index => range.end += 1,
                        _ => found.push((vma, index..index + 1)),
                    }
                }
            }
        }
        found
    }

    /// `lru_gen_look_around` an entry of an isolated page that is young.
    fn look_around(&mut self, own: Pfn, (vma, index): (u32, u32), walks: bool) {
        let rules = self.kernel.mechanisms.lru_gen;
        let lruvec = self.place_of(own).0;
        let window = window(self.vmas[vma as usize].vma_around(index), index);
        let mut young = 0;
        if rules.gen_own_entry == GenOwnEntry::Apart {
            self.vmas[vma as usize].ptes[index as usize].test_and_clear_young();
            young += 1;
        }
        let entries = u64::from(window.end - window.start);
        let mut last = None;
        for at in window {
            if let Some(head) = self.take_young((vma, at), lruvec, true) {
                young += 1;
                if last == Some(head) {
                    continue;
                }
                last = Some(head);
                if walks {
                    self.note_walked(head);
                } else {
                    self.note_looked_at(head, lruvec);
                }
            }
        }
        if is_worth_a_walk(young, entries)
            && let Some(gens) = self.lruvecs[lruvec].generations_mut()
            && let Some(filter) = &mut gens.filters[gens.max_seq as usize % 2]
        {
            filter.insert((vma, index / HPAGE_PMD_NR));
        }
    }
}

/// The entries to look at around one: 64 within its table and its region.
fn window(region: std::ops::Range<u32>, index: u32) -> std::ops::Range<u32> {
    const BATCH: u32 = MIN_LRU_BATCH as u32;
    let table = index / HPAGE_PMD_NR * HPAGE_PMD_NR;
    let start = region.start.max(table);
    let end = region.end.min(table + HPAGE_PMD_NR);
    if end - start <= BATCH {
        start..end
    } else if index - start < BATCH / 2 {
        start..start + BATCH
    } else if end - index < BATCH / 2 {
        end - BATCH..end
    } else {
        index - BATCH / 2..index + BATCH / 2
    }
}
