//! Pageblocks and their types as booting leaves them, and how far a zone's watermarks can be boosted.

use super::{Layout, Zone};
use crate::kernel::{Kernel, WatermarkBoost};
use crate::mm::types::{Mark, MigrateType, Pfn};
use lowmark_spec::machine::Arch;

/// Machines with fewer pageblocks do not group pages: one for each of the kernel's six types (`build_all_zonelists`).
const GROUPED_BLOCKS_MIN: u64 = 6;
/// Zones with fewer pageblocks are not boosted from 5.7 on.
const BOOSTED_BLOCKS_MIN: u64 = 4;

impl Zone {
    /// Pages of a pageblock (`pageblock_nr_pages`).
    #[inline]
    pub(crate) fn pageblock_pages(&self) -> Pfn {
        1 << self.blocks.pageblock
    }

    /// First page of the pageblock that a frame lies in.
    #[inline]
    pub(crate) fn pageblock_start(&self, pfn: Pfn) -> Pfn {
        pfn & !(self.pageblock_pages() - 1)
    }

    /// `get_pageblock_migratetype` of the block that a frame lies in.
    #[inline]
    pub(crate) fn pageblock_type(&self, pfn: Pfn) -> MigrateType {
        if self.pageblocks.is_empty() {
            return MigrateType::Movable;
        }
        let block = (pfn - self.start) / self.pageblock_pages();
        let known = self.pageblocks.get(block as usize);
        known.copied().unwrap_or(MigrateType::Movable)
    }

    /// `boost_watermark`: all watermarks are a pageblock higher until kswapd has been here.
    pub(crate) fn boost_watermark(&mut self) {
        if self.boost_max > 0 {
            let boost = self.watermark_boost + u64::from(self.pageblock_pages());
            self.watermark_boost = boost.min(self.boost_max);
            self.boosted_watermark = true;
        }
    }
}

impl Layout {
    /// Types of all pageblocks, if the machine is large enough to group them.
    pub(super) fn set_pageblocks(&self, zones: &mut [Zone], kernel: &Kernel) {
        let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
        let Some(pages) = zones.first().map(Zone::pageblock_pages) else {
            return;
        };
        if managed < GROUPED_BLOCKS_MIN * u64::from(pages) {
            return;
        }
        for zone in zones.iter_mut() {
            let blocks = zone.spanned / u64::from(pages);
            zone.pageblocks = vec![MigrateType::Movable; blocks as usize];
            zone.boost_max = boost_max(zone, kernel);
        }
        // The first zone of a PC begins with frame 1, and the type of a block is set with its first frame: that
        // of the first block stays 0 (`memmap_init_range`).
        if self.arch != Arch::Ppc64
            && let Some(zone) = zones.first_mut()
            && let Some(first) = zone.pageblocks.first_mut()
        {
            *first = MigrateType::Unmovable;
        }
    }
}

/// The most that the watermarks of a zone are boosted by (`boost_watermark`).
pub(super) fn boost_max(zone: &Zone, kernel: &Kernel) -> u64 {
    let pageblock = u64::from(zone.pageblock_pages());
    let boosted = match kernel.mechanisms.zones.watermark_boost {
        WatermarkBoost::Off => false,
        WatermarkBoost::AllZones => true,
        WatermarkBoost::FourBlocks => zone.managed >= BOOSTED_BLOCKS_MIN * pageblock,
    };
    let factor = kernel.sysctl.watermark_boost_factor;
    let most = zone.unboosted(Mark::High) * factor / 10_000;
    if boosted && most > 0 {
        most.max(pageblock)
    } else {
        0
    }
}
