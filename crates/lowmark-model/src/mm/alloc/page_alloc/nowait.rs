//! Blocks for the kernel itself, for callers that cannot wait (GFP_NOWAIT).

use crate::ids::NodeId;
use crate::mm::Mm;
use crate::mm::alloc::mmzone::Zone;
use crate::mm::alloc::pcp;
use crate::mm::frames::page::Pages;
use crate::mm::types::{Gfp, Mark, MigrateType, Pfn, Reserves};
use crate::world::World;
use lowmark_record::event::gfp::DIRECT_RECLAIM;

use super::RmqueueMode;

/// Down to where pages are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floor {
    Low,
    Min(Reserves),
}

impl Floor {
    /// Pages that a zone keeps; none: any page may be taken.
    fn of(self, zone: &Zone) -> Option<u64> {
        let min = zone.mark(Mark::Min);
        let half = min - min / 2;
        match self {
            Floor::Low => Some(zone.mark(Mark::Low)),
            Floor::Min(Reserves::None) => Some(min),
            Floor::Min(Reserves::High) => Some(half),
            Floor::Min(Reserves::Atomic) => Some(half - half / 4),
            Floor::Min(Reserves::All) => None,
        }
    }
}

impl Zone {
    /// A block of an order, of the CPU's list if that has such blocks.
    fn take_block(
        &mut self,
        cpu: usize,
        pages: &mut Pages,
        order: usize,
        list: MigrateType,
    ) -> Option<Pfn> {
        match self.pcp.is_some() && pcp::has_list(order) {
            true => self.take_from_pcp(cpu, pages, order, list),
            false => self.rmqueue(pages, order, list, &mut RmqueueMode::Normal),
        }
    }
}

impl World {
    /// Allocates a block of 2^order pages without reclaiming: from a zone that keeps its low watermark, else, after
    /// waking kswapd, its min watermark or what is left of it for such callers.
    #[inline(never)]
    pub(in crate::mm) fn alloc_pages_nowait(
        &mut self,
        gfp: Gfp,
        order: usize,
        reserves: Reserves,
    ) -> Option<Pfn> {
        if let Some(page) = self.take_pages(gfp, order, Floor::Low) {
            return Some(page);
        }
        let flags = gfp.flags() & !DIRECT_RECLAIM;
        self.wake_all_kswapds(gfp, flags, order as u32);
        let depths: &[Reserves] = match reserves {
            Reserves::All => &[Reserves::None, Reserves::All],
            _ => &[reserves],
        };
        let mut depths = depths.iter();
        depths.find_map(|&reserves| self.take_pages(gfp, order, Floor::Min(reserves)))
    }

    pub(super) fn take_pages(&mut self, gfp: Gfp, order: usize, floor: Floor) -> Option<Pfn> {
        let page = self.mm.take_pages(gfp, order, floor);
        self.wake_kswapd_for_boost();
        page
    }
}

impl Mm {
    /// `get_page_from_freelist` for a block.
    fn take_pages(&mut self, gfp: Gfp, order: usize, floor: Floor) -> Option<Pfn> {
        for at in 0..self.nodes[gfp.node].fallbacks.len() {
            let fallback = &self.nodes[gfp.node].fallbacks[at];
            let (number, zone) = (fallback.zone, &mut self.zones[fallback.zone]);
            let enough = floor
                .of(zone)
                .is_none_or(|mark| zone.watermark_ok(order, mark, gfp.highest));
            if zone.free <= fallback.keeps[Mark::High as usize]
                && let Some(pcp) = &mut zone.pcp
            {
                pcp.note_below_high();
            }
            if !enough {
                continue;
            }
            let Some(pfn) = zone.take_block(self.cpu, &mut self.pages, order, gfp.migrate_type)
            else {
                continue;
            };
            self.stat.pgalloc[zone.kind as usize] += 1 << order;
            if zone.boosted_watermark {
                self.note_boost(number);
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
        if !pcp::has_list(order) || !self.free_to_pcp(pfn, order) {
            self.free_block(pfn, order);
        }
    }
}
