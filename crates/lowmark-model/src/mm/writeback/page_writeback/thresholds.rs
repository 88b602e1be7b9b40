//! How many pages may be dirty, as arithmetic alone: what the thresholds of `/proc/vmstat` follow from.
//!
//! 1. *Dirtyable* memory is what is free and what is in files, by era also anonymous memory, less what the
//!    allocator keeps back ([`global_dirtyable_memory`]).
//! 2. The thresholds are parts of it, or as many bytes as the settings say ([`domain_dirty_limits`]).
//! 3. Since 4.2 a memory cgroup is a domain of its own with thresholds of its own: parts of what it has in
//!    files and may still get ([`memcg_dirtyable_memory`]).

use crate::kernel::{DirtyRatios, DirtyReserve, Dirtyable, Mechanisms, Sysctl};
use lowmark_spec::machine::PAGE_SIZE;

/// Pages that may become dirty, and what is kept from that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// `nr_free_pages`
    pub free: u64,
    /// `nr_active_file` and `nr_inactive_file`
    pub file: u64,
    /// `nr_active_anon` and `nr_inactive_anon` while swap is free, else 0.
    pub anon: u64,
    /// `totalreserve_pages` (`dirty_balance_reserve` before 4.5, the same sum): the largest lowmem reserve and
    /// the high watermark of every zone.
    pub reserve: u64,
}

/// `determine_dirtyable_memory`, `global_dirtyable_memory`: pages, at least one where nothing underflows.
pub fn global_dirtyable_memory(memory: &Memory, mechanisms: &Mechanisms) -> u64 {
    let Memory { free, reserve, .. } = *memory;
    let cached = match mechanisms.writeback.dirtyable {
        Dirtyable::AnonToo => memory.file + memory.anon,
        Dirtyable::FileOnly => memory.file,
    };
    let left = match mechanisms.writeback.dirty_reserve {
        DirtyReserve::None => free + cached,
        DirtyReserve::Balance => (free + cached).saturating_sub(reserve),
        DirtyReserve::Free => free.saturating_sub(reserve) + cached,
    };
    left + 1
}

/// Pages of a domain from which the flusher writes, and from which writers are held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thresholds {
    /// `nr_dirty_background_threshold`
    pub background: u64,
    /// `nr_dirty_threshold`
    pub dirty: u64,
}

/// `global_dirty_limits`, `domain_dirty_limits`: the thresholds of a domain with so much dirtyable memory.
/// `global` is that of the whole machine if the domain is a memory cgroup: settings in bytes then become
/// parts of it.
pub fn domain_dirty_limits(
    available: u64,
    global: Option<u64>,
    sysctl: &Sysctl,
    mechanisms: &Mechanisms,
) -> Thresholds {
    let pages = |bytes: u64, percent: u64| {
        let (part, whole) = match (mechanisms.writeback.dirty_ratios, bytes, global) {
            (_, 1.., None) => return bytes.div_ceil(PAGE_SIZE),
            (DirtyRatios::Percent, 0, _) => (percent, 100),
            (DirtyRatios::PageParts, 0, _) => (percent * PAGE_SIZE / 100, PAGE_SIZE),
            (DirtyRatios::Percent, _, Some(global)) => {
                (bytes.div_ceil(PAGE_SIZE) * 100 / global.max(1), 100)
            }
            // Bytes for each page are parts of 4096.
            (DirtyRatios::PageParts, _, Some(global)) => (bytes.div_ceil(global.max(1)), PAGE_SIZE),
        };
        part.min(whole) * available / whole
    };
    let dirty = pages(sysctl.dirty_bytes, sysctl.dirty_ratio);
    let background = pages(sysctl.dirty_background_bytes, sysctl.dirty_background_ratio);
    Thresholds {
        background: if background >= dirty {
            dirty / 2
        } else {
            background
        },
        dirty,
    }
}

/// What is dirty of what may be: a domain as `mdtc_calc_avail` compares two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Domain {
    /// Dirtyable pages; of a memory cgroup its pages in files.
    pub available: u64,
    /// Dirty pages, with those under writeback.
    pub dirty: u64,
}

impl Domain {
    fn clean(&self) -> u64 {
        self.available.saturating_sub(self.dirty)
    }
}

/// `mdtc_calc_avail`: dirtyable memory of a memory cgroup, which is what it has in files, and what it may
/// still be charged (`headroom`) as far as others have clean pages to give.
pub fn memcg_dirtyable_memory(memcg: &Domain, headroom: u64, global: &Domain) -> u64 {
    let others = global.clean().saturating_sub(memcg.clean());
    memcg.available + headroom.min(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Version;
    use crate::kernel::versions::at;

    const MEMORY: Memory = Memory {
        free: 100_000,
        file: 20_000,
        anon: 5_000,
        reserve: 3_000,
    };

    fn of(version: &str) -> Mechanisms {
        at(Version::known(version).unwrap())
    }

    #[test]
    fn what_counts_as_dirtyable_by_era() {
        let pages = |version, memory| global_dirtyable_memory(memory, &of(version));
        assert_eq!(pages("v3.2", &MEMORY), 125_001);
        assert_eq!(pages("v3.3", &MEMORY), 122_001);
        assert_eq!(pages("v3.14", &MEMORY), 117_001);
        // With nothing free the reserve is taken off the cache, and later off nothing.
        let full = Memory { free: 0, ..MEMORY };
        assert_eq!(pages("v3.3", &full), 22_001);
        assert_eq!(pages("v6.18", &full), 20_001);
        assert_eq!(pages("v6.18", &Memory::default()), 1);
    }

    #[test]
    fn ratios_are_percent_and_later_parts_of_4096() {
        let limits = |version| {
            let found = domain_dirty_limits(786_433, None, &Sysctl::default(), &of(version));
            (found.background, found.dirty)
        };
        assert_eq!(limits("v4.7"), (78_643, 157_286));
        // 409 and 819 of 4096.
        assert_eq!(limits("v4.8"), (78_528, 157_248));
    }

    /// What guests of 512 MB said: free pages, those of files, reserves by their zoneinfo, both thresholds.
    #[test]
    fn real_kernels_say_the_same() {
        let captures = [
            ("v6.1", 104_504, 1, 1443, (10_291, 20_607)),
            ("v6.12", 106_934, 11, 1462, (10_532, 21_091)),
            ("v6.12", 41_034, 61_005, 1462, (10_043, 20_110)),
            ("v6.18", 5_323, 102_319, 1464, (10_602, 21_230)),
            ("v6.18", 103_920, 0, 1464, (10_230, 20_486)),
            ("v6.18", 107_643, 1, 1464, (10_602, 21_231)),
            ("v6.18", 52_248, 1, 9248, (4_293, 8_598)),
            ("v6.18", 64_357, 1, 9248, (5_503, 11_019)),
        ];
        for (version, free, file, reserve, expected) in captures {
            let memory = Memory {
                free,
                file,
                anon: 999,
                reserve,
            };
            let mechanisms = of(version);
            let available = global_dirtyable_memory(&memory, &mechanisms);
            let found = domain_dirty_limits(available, None, &Sysctl::default(), &mechanisms);
            assert_eq!((found.background, found.dirty), expected, "{version}");
        }
    }

    #[test]
    fn bytes_are_pages_rounded_up_and_the_background_is_below() {
        let mut sysctl = Sysctl::default();
        sysctl.set("dirty_bytes", "40961").unwrap();
        let limits = domain_dirty_limits(786_433, None, &sysctl, &of("v6.18"));
        assert_eq!((limits.background, limits.dirty), (5, 11));
        sysctl.set("dirty_background_bytes", "4096").unwrap();
        let limits = domain_dirty_limits(786_433, None, &sysctl, &of("v6.18"));
        assert_eq!((limits.background, limits.dirty), (1, 11));
    }

    #[test]
    fn a_cgroup_gets_its_part_of_bytes() {
        let mut sysctl = Sysctl::default();
        let of_group = |version, sysctl: &Sysctl| {
            domain_dirty_limits(10_000, Some(100_000), sysctl, &of(version)).dirty
        };
        assert_eq!(of_group("v6.18", &sysctl), 819 * 10_000 / 4096);
        assert_eq!(of_group("v4.7", &sysctl), 2_000);
        // Of all memory 1.5 %: rounded up to parts of 4096, and down to percent before.
        sysctl.set("dirty_bytes", "6144000").unwrap();
        assert_eq!(of_group("v6.18", &sysctl), 62 * 10_000 / 4096);
        assert_eq!(of_group("v4.7", &sysctl), 100);
    }

    #[test]
    fn a_cgroup_may_use_what_others_have_clean() {
        let global = Domain {
            available: 100_000,
            dirty: 10_000,
        };
        let memcg = Domain {
            available: 20_000,
            dirty: 5_000,
        };
        assert_eq!(memcg_dirtyable_memory(&memcg, 4_000, &global), 24_000);
        // 90,000 clean pages, of which 15,000 are its own.
        assert_eq!(memcg_dirtyable_memory(&memcg, 200_000, &global), 95_000);
    }
}
