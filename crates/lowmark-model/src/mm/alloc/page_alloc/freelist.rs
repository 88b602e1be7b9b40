//! A block from the first zone that keeps what it has to keep (`get_page_from_freelist`).
//!
//! 1. One page that may lie in any zone is what most allocations want: what each zone keeps from them is known
//!    beforehand ([`Fallback`](crate::mm::alloc::mmzone::Fallback)).
//! 2. All other blocks are asked for zone by zone.

use super::RmqueueMode;
use crate::ids::NodeId;
use crate::kernel::{AtomicReserve, FairZones};
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Gfp, Mark, MigrateType, Pfn, Reserves};
use crate::world::World;
use lowmark_record::event::gfp;

/// Down to where pages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    /// The high watermark: the last look before the OOM killer is called.
    High,
    /// The low watermark: the fast path.
    Low,
    /// The min watermark, or what is left of it.
    Min(Reserves),
}

impl Floor {
    /// The watermark that it is, if it is one.
    fn mark(self) -> Option<Mark> {
        match self {
            Floor::High => Some(Mark::High),
            Floor::Low => Some(Mark::Low),
            Floor::Min(Reserves::None) => Some(Mark::Min),
            Floor::Min(_) => None,
        }
    }

    /// Pages that a zone keeps; none: any page may be taken.
    fn of(self, zone: &Zone) -> Option<u64> {
        let min = zone.mark(Mark::Min);
        let half = min - min / 2;
        match self {
            Floor::High => Some(zone.mark(Mark::High)),
            Floor::Low => Some(zone.mark(Mark::Low)),
            Floor::Min(Reserves::None) => Some(min),
            Floor::Min(Reserves::High) => Some(half),
            Floor::Min(Reserves::Atomic) => Some(half - half / 4),
            Floor::Min(Reserves::All) => None,
        }
    }
}

impl Zone {
    /// `rmqueue`: a block of an order, of the CPU's list if that has such blocks. One for an allocation that cannot wait
    /// comes from what is kept for those first.
    #[inline]
    fn take_block(
        &mut self,
        cpu: usize,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
        atomic: bool,
    ) -> Option<Pfn> {
        if self.pcp.has_list(order) {
            let found = self.take_from_pcp(cpu, pages, order, list);
            return if atomic && order > 0 && found.is_none() {
                self.rmqueue_smallest(pages, order, MigrateType::HighAtomic)
            } else {
                found
            };
        }
        if atomic && let Some(pfn) = self.rmqueue_smallest(pages, order, MigrateType::HighAtomic) {
            return Some(pfn);
        }
        self.rmqueue(pages, order, list, &mut RmqueueMode::Normal)
    }
}

impl Mm {
    /// `get_page_from_freelist` for one page on the fast path, which may lie in any zone.
    #[inline]
    pub(in crate::mm) fn get_page_fast(&mut self, gfp: Gfp) -> Option<Pfn> {
        match self.kernel.mechanisms.zones.fair_zones {
            FairZones::On => self.share_fairly(gfp),
            FairZones::Off => self.walk_zonelist(gfp, Mark::Low, false),
        }
    }

    /// Zones of the node that have had their share are passed over once (3.12 to 4.7).
    #[inline(never)]
    fn share_fairly(&mut self, gfp: Gfp) -> Option<Pfn> {
        let page = self.walk_zonelist(gfp, Mark::Low, true);
        page.or_else(|| {
            self.reset_alloc_batches(gfp.node);
            self.walk_zonelist(gfp, Mark::Low, false)
        })
    }

    #[inline(always)]
    fn walk_zonelist(&mut self, gfp: Gfp, mark: Mark, fair: bool) -> Option<Pfn> {
        debug_assert!(self.may_lie_anywhere(gfp));
        let spreads = mark == Mark::Low && gfp.has(gfp::WRITE);
        for fallback in &self.nodes[gfp.node].fallbacks {
            if spreads && !self.dirty_ok(fallback.zone) {
                continue;
            }
            let zone = &mut self.zones[fallback.zone];
            if fair && (!fallback.local || zone.alloc_batch <= 0) {
                continue;
            }
            let enough = zone.free > fallback.keeps[mark as usize];
            if zone.free <= fallback.keeps[Mark::High as usize] {
                zone.pcp.note_below_high();
            }
            let page = if enough {
                zone.take_from_pcp(self.cpu, &mut self.pages, 0, gfp.migrate_type())
            } else {
                None
            };
            if let Some(pfn) = page {
                zone.alloc_batch -= 1;
                self.stat.pgalloc[zone.kind as usize] += 1;
                if zone.boosted_watermark {
                    let zone = fallback.zone;
                    self.note_boost(zone);
                }
                return Some(pfn);
            }
        }
        None
    }

    /// `reset_alloc_batches`: every zone of the node gets its share again.
    fn reset_alloc_batches(&mut self, node: NodeId) {
        for &zone in &self.nodes[node].zones {
            let zone = &mut self.zones[zone];
            zone.alloc_batch = (zone.mark(Mark::High) - zone.mark(Mark::Low)) as i64;
        }
    }

    /// Whether an allocation may use all zones of its zonelist.
    fn may_lie_anywhere(&self, gfp: Gfp) -> bool {
        gfp.highest() as usize >= self.nodes[gfp.node].class && !gfp.has(gfp::THISNODE)
    }

    /// The same for any block, down to any floor.
    pub(super) fn get_block(&mut self, gfp: Gfp, order: usize, floor: Floor) -> Option<Pfn> {
        if let (0, Some(mark), true) = (order, floor.mark(), self.may_lie_anywhere(gfp)) {
            return match mark {
                Mark::Low => self.get_page_fast(gfp),
                mark => self.walk_zonelist(gfp, mark, false),
            };
        }
        if floor == Floor::Low && self.kernel.mechanisms.zones.fair_zones == FairZones::On {
            return self.walk_for_block(gfp, order, floor, true).or_else(|| {
                self.reset_alloc_batches(gfp.node);
                self.walk_for_block(gfp, order, floor, false)
            });
        }
        self.walk_for_block(gfp, order, floor, false)
    }

    /// The zones of the zonelist in turn; with `fair` those alone that are of the node and have not had their share.
    fn walk_for_block(&mut self, gfp: Gfp, order: usize, floor: Floor, fair: bool) -> Option<Pfn> {
        let highest = gfp.highest();
        let spreads = floor == Floor::Low && gfp.has(gfp::WRITE);
        // ALLOC_HARDER, ALLOC_HIGHATOMIC
        let atomic = floor == Floor::Min(Reserves::Atomic)
            && self.kernel.mechanisms.zones.atomic_reserve != AtomicReserve::AtBoot;
        for at in 0..self.zonelist(gfp).len() {
            let fallback = self.nodes[gfp.node].fallbacks[at];
            let number = fallback.zone;
            if spreads && !self.dirty_ok(number) {
                continue;
            }
            let zone = &mut self.zones[number];
            if zone.kind > highest || fair && (!fallback.local || zone.alloc_batch <= 0) {
                continue;
            }
            let enough = floor.of(zone).is_none_or(|mark| {
                if atomic {
                    zone.watermark_ok_atomic(order, mark, highest)
                } else {
                    zone.watermark_ok(order, mark, highest)
                }
            });
            if zone.free <= fallback.keeps[Mark::High as usize] {
                zone.pcp.note_below_high();
            }
            if !enough {
                continue;
            }
            let list = gfp.migrate_type();
            let found = zone.take_block(self.cpu, &mut self.pages, order, list, atomic);
            let Some(pfn) = found else {
                continue;
            };
            zone.alloc_batch -= 1 << order;
            self.stat.pgalloc[zone.kind as usize] += 1 << order;
            if zone.boosted_watermark {
                self.note_boost(number);
            }
            if atomic && order > 0 {
                self.keep_for_atomic(number, pfn);
            }
            return Some(pfn);
        }
        None
    }

    /// The node that a page lies on (`page_to_nid`).
    #[inline]
    pub(crate) fn node_of(&self, pfn: Pfn) -> NodeId {
        self.zones[self.pages.zone(pfn)].node
    }

    /// Frees a block (`__free_pages`).
    pub(in crate::mm) fn free_pages(&mut self, pfn: Pfn, order: usize) {
        self.pages[pfn].reset();
        self.stat.pgfree += 1 << order;
        if self.zones[self.pages.zone(pfn)].pcp.has_list(order) {
            self.free_to_pcp(pfn, order)
        } else {
            self.free_block(pfn, order)
        }
    }
}

impl World {
    /// One page from a zone that keeps its low watermark: the fast path of most allocations.
    #[inline]
    pub(crate) fn alloc_page_fast(&mut self, gfp: Gfp) -> Option<Pfn> {
        let page = self.mm.get_page_fast(gfp);
        if self.mm.boosted_zone.is_some() {
            self.wake_kswapd_for_boost();
        }
        page
    }

    /// A block from a zone that stays above its min watermark; the allocation wakes no kswapd.
    pub(in crate::mm) fn alloc_pages_if_there(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.take_pages(gfp, order, Floor::Low)
            .or_else(|| self.take_pages(gfp, order, Floor::Min(Reserves::None)))
    }

    /// A block from the first zone that keeps its low watermark, if there is one.
    pub(in crate::mm) fn alloc_pages_fast(&mut self, gfp: Gfp, order: usize) -> Option<Pfn> {
        self.take_pages(gfp, order, Floor::Low)
    }

    /// A block from a zone that keeps its floor; kswapd hears of it if that boosted the zone.
    #[inline(never)]
    pub(super) fn take_pages(&mut self, gfp: Gfp, order: usize, floor: Floor) -> Option<Pfn> {
        let page = self.mm.get_block(gfp, order, floor);
        self.wake_kswapd_for_boost();
        page
    }
}
