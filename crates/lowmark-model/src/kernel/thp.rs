//! Settings of huge pages, `/sys/kernel/mm/transparent_hugepage`: `thp.…` and `khugepaged.…`.

use super::{KernelError, Version, v};
use lowmark_spec::machine::PAGE_SIZE;

/// Which private memory gets huge pages (`thp.enabled`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThpEnabled {
    /// All of it.
    Always,
    /// What asked for them by madvise(2).
    Madvise,
    /// None.
    Never,
}

/// What a fault does for a huge page when there is none (`thp.defrag`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThpDefrag {
    /// It reclaims and compacts.
    Always,
    /// It wakes kswapd and kcompactd.
    Defer,
    /// The first in regions that asked for huge pages by madvise(2), the second in others.
    DeferMadvise,
    /// It reclaims and compacts in regions that asked for huge pages, and does nothing in others.
    Madvise,
    /// Nothing.
    Never,
}

/// What khugepaged does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Khugepaged {
    /// It may reclaim and compact (`khugepaged.defrag`).
    pub defrag: bool,
    /// Pages that it scans before it sleeps.
    pub pages_to_scan: u64,
    /// How long it sleeps, ms.
    pub scan_sleep_millisecs: u64,
    /// How long it waits after it found no huge page, ms.
    pub alloc_sleep_millisecs: u64,
    /// Most pages of an extent that may be missing.
    pub max_ptes_none: u64,
    /// Most pages of an extent that may be in swap (4.8).
    pub max_ptes_swap: u64,
}

/// All of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thp {
    /// `thp.enabled`; unless it is set `always`, on a small machine `never`.
    pub enabled: ThpEnabled,
    /// `thp.defrag`
    pub defrag: ThpDefrag,
    /// Reads of what was never written map the huge page of zeroes.
    pub use_zero_page: bool,
    /// `khugepaged.…`
    pub khugepaged: Khugepaged,
    /// Which of them a run has set.
    asked: Asked,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Asked {
    enabled: bool,
    defrag: bool,
    khugepaged_defrag: bool,
}

/// Pages of a machine below which nothing of huge pages is switched on unless it is asked for (`hugepage_init`): 512 MiB.
const SMALL_MACHINE: u64 = (512 << 20) / PAGE_SIZE;

/// Commit 444eb2a449ef: the mode `defer`, and `madvise` as the default.
const DEFER: Version = v(4, 6);
/// Commit 21440d7eb904: the mode `defer+madvise`.
const DEFER_MADVISE: Version = v(4, 11);

/// Pages of a huge page.
const HUGE_PAGE: u64 = 512;

/// A setting: its name, its values in words, and what it is.
pub const THP_SETTINGS: &[(&str, &str, &str)] = &[
    (
        "thp.enabled",
        "always, madvise, never",
        "which private memory gets huge pages",
    ),
    (
        "thp.defrag",
        "always, defer, defer+madvise, madvise, never",
        "what a fault does for a huge page when there is none",
    ),
    (
        "khugepaged.defrag",
        "0 or 1",
        "whether khugepaged may reclaim and compact",
    ),
    (
        "khugepaged.pages_to_scan",
        "1 and more",
        "pages that khugepaged scans before it sleeps",
    ),
    (
        "khugepaged.scan_sleep_millisecs",
        "0 and more",
        "how long khugepaged sleeps between two scans, ms",
    ),
    (
        "khugepaged.alloc_sleep_millisecs",
        "0 and more",
        "how long khugepaged waits after it found no huge page, ms",
    ),
    (
        "khugepaged.max_ptes_none",
        "0 to 511",
        "most pages of an extent that may be missing when khugepaged makes it a huge page",
    ),
    (
        "khugepaged.max_ptes_swap",
        "0 to 511",
        "most pages of an extent that may be in swap when khugepaged makes it a huge page",
    ),
];

impl Thp {
    /// What a version boots with.
    pub fn of(version: Version) -> Thp {
        Thp {
            enabled: ThpEnabled::Always,
            defrag: match version < DEFER {
                true => ThpDefrag::Always,
                false => ThpDefrag::Madvise,
            },
            use_zero_page: true,
            asked: Asked::default(),
            khugepaged: Khugepaged {
                defrag: true,
                pages_to_scan: 8 * HUGE_PAGE,
                scan_sleep_millisecs: 10_000,
                alloc_sleep_millisecs: 60_000,
                max_ptes_none: HUGE_PAGE - 1,
                max_ptes_swap: HUGE_PAGE / 8,
            },
        }
    }

    /// What is in force on a machine with so many pages.
    pub(crate) fn booted(self, pages: u64) -> Thp {
        let mut booted = self;
        if pages < SMALL_MACHINE {
            booted.use_zero_page = false;
            if !self.asked.enabled {
                booted.enabled = ThpEnabled::Never;
            }
            if !self.asked.defrag {
                booted.defrag = ThpDefrag::Never;
            }
            booted.khugepaged.defrag &= self.asked.khugepaged_defrag;
        }
        booted
    }

    /// Whether a setting is one of huge pages.
    pub fn has(name: &str) -> bool {
        THP_SETTINGS.iter().any(|(known, ..)| *known == name)
    }

    /// Sets one value by name, as a version takes it.
    ///
    /// # Errors
    ///
    /// When there is no such setting, or the version does not take the value.
    pub fn set(&mut self, name: &str, value: &str, version: Version) -> Result<(), KernelError> {
        let Some((_, values, _)) = THP_SETTINGS.iter().find(|(known, ..)| *known == name) else {
            return Err(KernelError::Sysctl(format!(
                "the model has no setting {name}"
            )));
        };
        let wrong = || KernelError::Sysctl(format!("{name} = {value}: expected {values}"));
        let later = |since| {
            KernelError::Sysctl(format!(
                "{name} = {value}: {version} has no such mode, which came with {since}"
            ))
        };
        let number = |max: u64| value.parse().ok().filter(|&n| n <= max).ok_or_else(wrong);
        let ms = || number(u64::from(u32::MAX));
        let own = &mut self.khugepaged;
        match name {
            "thp.enabled" => {
                self.asked.enabled = true;
                self.enabled = match value {
                    "always" => ThpEnabled::Always,
                    "madvise" => ThpEnabled::Madvise,
                    "never" => ThpEnabled::Never,
                    _ => return Err(wrong()),
                }
            }
            "thp.defrag" => {
                self.asked.defrag = true;
                self.defrag = match value {
                    "always" => ThpDefrag::Always,
                    "defer" if version < DEFER => return Err(later(DEFER)),
                    "defer" => ThpDefrag::Defer,
                    "defer+madvise" if version < DEFER_MADVISE => return Err(later(DEFER_MADVISE)),
                    "defer+madvise" => ThpDefrag::DeferMadvise,
                    "madvise" => ThpDefrag::Madvise,
                    "never" => ThpDefrag::Never,
                    _ => return Err(wrong()),
                }
            }
            "khugepaged.defrag" => {
                self.asked.khugepaged_defrag = true;
                own.defrag = number(1)? == 1;
            }
            "khugepaged.pages_to_scan" => {
                own.pages_to_scan = Some(ms()?).filter(|&n| n > 0).ok_or_else(wrong)?;
            }
            "khugepaged.scan_sleep_millisecs" => own.scan_sleep_millisecs = ms()?,
            "khugepaged.alloc_sleep_millisecs" => own.alloc_sleep_millisecs = ms()?,
            "khugepaged.max_ptes_none" => own.max_ptes_none = number(HUGE_PAGE - 1)?,
            _ => own.max_ptes_swap = number(HUGE_PAGE - 1)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_came_one_after_the_other() {
        let takes = |version, mode: &str| Thp::of(version).set("thp.defrag", mode, version).is_ok();
        assert_eq!(Thp::of(v(4, 5)).defrag, ThpDefrag::Always);
        assert_eq!(Thp::of(v(4, 6)).defrag, ThpDefrag::Madvise);
        assert!(!takes(v(4, 5), "defer") && takes(v(4, 6), "defer"));
        assert!(!takes(v(4, 10), "defer+madvise") && takes(v(4, 11), "defer+madvise"));
        assert!(!takes(v(6, 1), "sometimes"));
    }

    #[test]
    fn a_small_machine_has_nothing_but_what_is_asked_for() -> Result<(), KernelError> {
        let mut thp = Thp::of(v(6, 1));
        assert_eq!(thp.booted(SMALL_MACHINE), thp);
        assert_eq!(thp.booted(SMALL_MACHINE - 1).enabled, ThpEnabled::Never);
        thp.set("thp.enabled", "always", v(6, 1))?;
        let small = thp.booted(SMALL_MACHINE - 1);
        assert_eq!(small.enabled, ThpEnabled::Always);
        assert_eq!(small.defrag, ThpDefrag::Never);
        Ok(())
    }

    #[test]
    fn every_setting_is_one_that_can_be_set() {
        for (name, values, _) in THP_SETTINGS {
            let mut thp = Thp::of(v(6, 1));
            let value = match values.split([',', ' ']).next() {
                Some("always") => "never",
                _ => "1",
            };
            assert_eq!(thp.set(name, value, v(6, 1)), Ok(()), "{name}");
            let error = thp.set(name, "-3", v(6, 1)).expect_err(name).to_string();
            assert!(error.contains(name) && error.contains(values), "{error}");
        }
    }
}
