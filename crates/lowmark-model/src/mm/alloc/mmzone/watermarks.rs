//! What zones keep back: reserves and watermarks, as booting and settings leave them (`mm/page_alloc.c`).
//!
//! 1. `init_per_zone_wmark_min` computes all of it while the kernel still boots, by the pages managed until then.
//! 2. khugepaged raises `min_free_kbytes`, or has it computed again where there are no huge pages.
//! 3. The memory of booting is given to the allocator. The watermarks stay; the reserves follow, by version.
//! 4. A setting that is written has the watermarks computed once more: first `thp.enabled`, of which khugepaged hears as at
//!    boot, on machines too that are too small to have huge pages unless they are asked for.

use super::pageblocks::boost_max;
use super::{Built, Layout, Zone};
use crate::kernel::thp::Enabled;
use crate::kernel::{
    Kernel, KernelError, MinFreeBound, MinFreeWithoutThp, ReserveUpdate, WATERMARK_SCALE_FACTOR,
    WatermarkGap,
};
use crate::mm::Mm;
use crate::mm::alloc::pcp::Pcp;
use crate::mm::types::{MAX_NR_ZONES, Mark, ZoneType};
use lowmark_spec::Machine;
use lowmark_spec::machine::PAGE_SIZE;

const KIB_PER_PAGE: u64 = PAGE_SIZE / 1024;
/// `watermark_scale_factor` while the kernel boots.
const SCALE: u64 = WATERMARK_SCALE_FACTOR;
/// Machines with less have no huge pages, and `hugepage_init` leaves `min_free_kbytes` alone.
const THP_RAM_MIN: u64 = (512 << 20) / PAGE_SIZE;
/// Pages that khugepaged wants free in every zone: `pageblock_nr_pages · (2 + 3 · 3)`.
const THP_BLOCK: u64 = 512 * (2 + 3 * 3);

/// What a zone keeps back, pages: as `/proc/zoneinfo` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneMarks {
    /// Node.
    pub node: usize,
    /// Type.
    pub kind: ZoneType,
    /// Pages of the allocator.
    pub managed: u64,
    /// Allocations that may not wait can go down to here.
    pub min: u64,
    /// Below it kswapd is woken.
    pub low: u64,
    /// Above it kswapd sleeps.
    pub high: u64,
    /// `protection`: what it keeps from allocations that could use a higher zone, by that zone's type.
    pub protection: [u64; MAX_NR_ZONES],
}

/// The zones of a machine under a kernel, node by node and lowest first.
pub fn zone_marks(machine: &Machine, kernel: &Kernel) -> Vec<ZoneMarks> {
    let Built { zones, .. } = Layout::of(machine, kernel).build(kernel);
    let marks = |zone: &Zone| ZoneMarks {
        node: zone.node.into(),
        kind: zone.kind,
        managed: zone.managed,
        min: zone.mark(Mark::Min),
        low: zone.mark(Mark::Low),
        high: zone.mark(Mark::High),
        protection: zone.lowmem_reserve,
    };
    zones.iter().map(marks).collect()
}

impl Layout {
    /// Reserves and watermarks of zones that manage what they do when the kernel begins; when this is done they
    /// manage all of their pages.
    ///
    /// A small machine boots without huge pages. Where the setting is written afterwards khugepaged starts or stops, and computes
    /// `min_free_kbytes` as it does while larger machines boot (`enabled_store`, `start_stop_khugepaged`).
    ///
    /// The result is `min_free_kbytes`.
    pub(super) fn boot(&self, zones: &mut [Zone], kernel: &Kernel) -> u64 {
        setup_lowmem_reserve(zones);
        let mut kbytes = min_free_kbytes(zones, kernel);
        setup_watermarks(zones, kernel, kbytes, SCALE);
        let managed: u64 = zones.iter().map(|zone| zone.managed).sum();
        if managed >= THP_RAM_MIN {
            kbytes = self.min_free_kbytes_of_khugepaged(zones, kernel, kbytes);
            setup_watermarks(zones, kernel, kbytes, SCALE);
        }
        for (zone, spec) in zones.iter_mut().zip(&self.zones) {
            zone.managed = spec.managed;
        }
        match kernel.mechanisms.zones.reserve_update {
            ReserveUpdate::AtBoot => {}
            ReserveUpdate::ManagedPages => setup_lowmem_reserve(zones),
        }
        let sysctl = &kernel.sysctl;
        if sysctl.thp.enabled.is_some() {
            kbytes = self.min_free_kbytes_of_khugepaged(zones, kernel, kbytes);
            setup_watermarks(zones, kernel, kbytes, SCALE);
        }
        if sysctl.min_free_kbytes.is_some() || sysctl.watermark_scale_factor.is_some() {
            kbytes = sysctl.min_free_kbytes.unwrap_or(kbytes);
            let scale = sysctl.watermark_scale_factor.unwrap_or(SCALE);
            setup_watermarks(zones, kernel, kbytes, scale);
        }
        kbytes
    }

    /// `set_recommended_min_free_kbytes`
    fn min_free_kbytes_of_khugepaged(&self, zones: &[Zone], kernel: &Kernel, kbytes: u64) -> u64 {
        if self.thp.enabled != Enabled::Never {
            let wanted = THP_BLOCK * zones.len() as u64;
            let recommended = wanted.min(nr_free_buffer_pages(zones) / 20);
            return kbytes.max(recommended * KIB_PER_PAGE);
        }
        match kernel.mechanisms.zones.min_free_without_thp {
            MinFreeWithoutThp::AtBoot => kbytes,
            MinFreeWithoutThp::Again => min_free_kbytes(zones, kernel),
        }
    }
}

impl Mm {
    /// A setting is written while tasks run: the handlers of those that watermarks follow from
    /// (`min_free_kbytes_sysctl_handler`, `watermark_scale_factor_sysctl_handler`).
    ///
    /// # Errors
    ///
    /// When the kernel has no such setting or the value is out of its range.
    pub(crate) fn write_sysctl(&mut self, name: &str, value: &str) -> Result<(), KernelError> {
        self.kernel.sysctl.set(name, value)?;
        let sysctl = &self.kernel.sysctl;
        if ["min_free_kbytes", "watermark_scale_factor"].contains(&name) {
            self.min_free_kbytes = sysctl.min_free_kbytes.unwrap_or(self.min_free_kbytes);
            let scale = sysctl.watermark_scale_factor.unwrap_or(SCALE);
            let zones = self.zones.as_mut();
            setup_watermarks(zones, &self.kernel, self.min_free_kbytes, scale);
            for zone in zones {
                zone.watermark_boost = 0;
                Pcp::follow_watermarks(zone);
            }
        }
        for zone in &mut self.zones {
            zone.boost_max = boost_max(zone, &self.kernel);
        }
        self.zones
            .keys()
            .for_each(|zone| self.update_fallbacks(zone));
        Ok(())
    }
}

/// `sysctl_lowmem_reserve_ratio`
fn reserve_ratio(kind: ZoneType) -> u64 {
    match kind {
        ZoneType::Dma | ZoneType::Dma32 => 256,
        ZoneType::Normal | ZoneType::High => 32,
    }
}

/// `setup_per_zone_lowmem_reserve`: a zone keeps, for requests that could use a higher class, the pages
/// of the zones above it divided by its ratio.
fn setup_lowmem_reserve(zones: &mut [Zone]) {
    for index in 0..zones.len() {
        let (node, kind) = (zones[index].node, zones[index].kind);
        for class in kind as usize + 1..MAX_NR_ZONES {
            let above: u64 = zones
                .iter()
                .filter(|zone| zone.node == node && zone.kind > kind && zone.kind as usize <= class)
                .map(|zone| zone.size())
                .sum();
            zones[index].lowmem_reserve[class] = above / reserve_ratio(kind);
        }
    }
}

/// Zones that the kernel's own allocations may use.
fn lowmem(zones: &[Zone]) -> impl Iterator<Item = &Zone> {
    zones.iter().filter(|zone| zone.kind != ZoneType::High)
}

/// `nr_free_buffer_pages`: the pages above the high watermarks, which are 0 at first.
fn nr_free_buffer_pages(zones: &[Zone]) -> u64 {
    lowmem(zones)
        .map(|zone| zone.size().saturating_sub(zone.mark(Mark::High)))
        .sum()
}

/// `calculate_min_free_kbytes`
fn min_free_kbytes(zones: &[Zone], kernel: &Kernel) -> u64 {
    let most = match kernel.mechanisms.zones.min_free_bound {
        MinFreeBound::Megabytes64 => 65_536,
        MinFreeBound::Megabytes256 => 262_144,
    };
    let lowmem_kbytes = nr_free_buffer_pages(zones) * KIB_PER_PAGE;
    (lowmem_kbytes * 16).isqrt().clamp(128, most)
}

/// `setup_per_zone_wmarks`; `scale` is `watermark_scale_factor`.
fn setup_watermarks(zones: &mut [Zone], kernel: &Kernel, min_free_kbytes: u64, scale: u64) {
    let pages_min = min_free_kbytes / KIB_PER_PAGE;
    let lowmem: u64 = lowmem(zones).map(|zone| zone.size()).sum();
    for zone in zones {
        let size = zone.size();
        let share = pages_min * size / lowmem.max(1);
        let min = match zone.kind {
            ZoneType::High => (size / 1024).clamp(32, 128),
            _ => share,
        };
        let gap = match kernel.mechanisms.zones.watermark_gap {
            WatermarkGap::QuarterOfMin => share / 4,
            WatermarkGap::ScaleFactor => (share / 4).max(zone.managed * scale / 10_000),
        };
        zone.watermark = [min, min + gap, min + 2 * gap];
        zone.alloc_batch = gap as i64;
    }
}
