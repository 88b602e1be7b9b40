//! Whose page lies in each slot (`mm/swap_cgroup.c`), and how many slots the pages of each memory cgroup take.

use crate::ids::MemcgId;
use crate::mm::Mm;
use crate::mm::memcontrol::Event;
use crate::mm::types::Pfn;
use typed_index_collections::TiVec;

/// Slots by group; empty without groups.
#[derive(Debug, Default)]
pub(super) struct SwapCgroups {
    /// Group of each slot's page; of a free slot the root.
    of_slot: Vec<MemcgId>,
    /// Slots of the pages of each group itself.
    slots: TiVec<MemcgId, u64>,
}

impl SwapCgroups {
    pub(super) fn new(slots: usize, groups: usize) -> SwapCgroups {
        SwapCgroups {
            of_slot: vec![MemcgId::ROOT; slots],
            slots: vec![0; groups].into(),
        }
    }

    /// `lookup_swap_cgroup_id`
    #[inline]
    pub(super) fn of_slot(&self, slot: u32) -> MemcgId {
        let slot = self.of_slot.get(slot as usize);
        slot.copied().unwrap_or(MemcgId::ROOT)
    }

    /// A page of a group gets the slot, or nobody's: it is free (`swap_cgroup_record`).
    #[inline]
    pub(super) fn record(&mut self, slot: u32, memcg: MemcgId) {
        if let Some(place) = self.of_slot.get_mut(slot as usize) {
            self.slots[*place] -= u64::from(*place != MemcgId::ROOT);
            self.slots[memcg] += u64::from(memcg != MemcgId::ROOT);
            *place = memcg;
        }
    }

    /// Of each group the slots that are counted, beside those that hold pages of it: for tests of the model itself.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u64, u64)> {
        self.slots
            .iter_enumerated()
            .skip(1)
            .map(|(memcg, &counted)| {
                let held = self.of_slot.iter().filter(|&&of| of == memcg).count();
                (counted, held as u64)
            })
    }

    /// Slots of the pages of a group itself.
    fn own(&self, memcg: MemcgId) -> u64 {
        self.slots.get(memcg).copied().unwrap_or(0)
    }
}

impl Mm {
    /// The group whose page a slot holds.
    #[inline]
    pub(in crate::mm) fn swap_group(&self, slot: u32) -> MemcgId {
        self.swap.cgroups.of_slot(slot)
    }

    /// Slots of the pages of a group and of all inside it (`memory.swap.current`).
    pub(crate) fn swap_usage(&self, memcg: MemcgId) -> u64 {
        let groups = self.memcontrol.subtree(memcg).map(MemcgId::from);
        groups.map(|group| self.swap.cgroups.own(group)).sum()
    }

    /// The groups with a `memory.swap.max` that a group is in, itself included: what each may have, and what it has.
    fn swap_limits(&self, memcg: MemcgId) -> impl Iterator<Item = (u64, u64)> {
        let limited = self.memcontrol.with_swap_max(memcg);
        limited.map(|(group, max)| (max, self.swap_usage(group)))
    }

    /// Slots that pages of a group may still get (`mem_cgroup_get_nr_swap_pages`).
    #[inline]
    pub(crate) fn nr_swap_pages(&self, memcg: MemcgId) -> u64 {
        let left = self.swap_limits(memcg);
        let left = left.map(|(max, used)| max.saturating_sub(used));
        left.fold(self.swap.free_slots(), u64::min)
    }

    /// Whether more than half of what there is for a page's group is in use (`mem_cgroup_swap_full`).
    pub(crate) fn swap_full(&self, pfn: Pfn) -> bool {
        let memcg = self.memcontrol.of_page(pfn);
        let mut limits = self.swap_limits(memcg);
        self.swap.is_full() || limits.any(|(max, used)| 2 * used >= max)
    }

    /// No slots for a huge page as a whole: its group is told, although its parts may get some (`MEMCG_SWAP_FAIL`).
    pub(crate) fn note_no_cluster(&mut self, head: Pfn) {
        let memcg = self.memcontrol.of_page(head);
        self.memcontrol.note(memcg, Event::SwapFail);
    }

    /// `mem_cgroup_try_charge_swap`: whether the page, or all of the huge page, may have slots.
    #[inline(always)]
    pub(super) fn may_swap_page(&mut self, pfn: Pfn) -> bool {
        let memcg = self.memcontrol.of_page(pfn);
        let pages = self.pages[pfn].folio_nr_pages();
        let fits = self
            .swap_limits(memcg)
            .all(|(max, used)| used + pages <= max);
        if !fits {
            self.memcontrol.note(memcg, Event::SwapMax);
            self.memcontrol.note(memcg, Event::SwapFail);
        }
        fits
    }
}
