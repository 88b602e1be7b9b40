//! Settings of the kernel that the model knows: those under `/proc/sys/vm`, and those of huge pages ([`super::thp`]).

use super::mechanisms::{ProactiveCompaction, WatermarkBoost, WatermarkGap};
use super::thp::{CHOICES, SINCE as THP, Thp};
use super::{Kernel, KernelError, Version, v};
use crate::time::{Nanos, SECOND};
use lowmark_spec::machine::PAGE_SIZE;

const CENTISECOND: Nanos = SECOND / 100;

/// `watermark_scale_factor` while the kernel boots, and until it is set.
pub(crate) const WATERMARK_SCALE_FACTOR: u64 = 10;

/// `/proc/sys/vm`, with the kernel's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// log2 of the largest swap-in window in pages, 0 to 5.
    pub page_cluster: u32,
    /// Weight of anonymous against file pages in reclaim, 0 to 100, or to 200 from 5.8 on.
    pub swappiness: u32,
    /// Free memory kept by the watermarks, KiB; computed from RAM when absent.
    pub min_free_kbytes: Option<u64>,
    /// Distance between watermarks in 1/10000 of a zone (since 4.6); 10 when absent.
    pub watermark_scale_factor: Option<u64>,
    /// How far watermarks are boosted at most, in 1/10000 of the high one (since 5.0); 0 for never.
    pub watermark_boost_factor: u64,
    /// How little fragmented kcompactd keeps memory by itself, percent (since 5.9); 0 for not at all.
    pub compaction_proactiveness: u64,
    /// Below this index, 0 to 1000, a zone is short of memory rather than fragmented, and is not compacted.
    pub extfrag_threshold: u64,
    /// 0: maps that are obviously too large are refused; 1: none is. 2, strict accounting, is not modelled.
    pub overcommit_memory: u32,
    /// How much dentries and inodes are shrunk, percent of what pages are; 0 for not at all.
    pub vfs_cache_pressure: u64,
    /// Percent of dirtyable memory at which writers are throttled.
    pub dirty_ratio: u64,
    /// Percent of dirtyable memory at which background writeback begins.
    pub dirty_background_ratio: u64,
    /// Bytes in place of `dirty_ratio`; 0 if that counts.
    pub dirty_bytes: u64,
    /// Bytes in place of `dirty_background_ratio`; 0 if that counts.
    pub dirty_background_bytes: u64,
    /// Flushers look for old pages so often, 1/100 s; 0 for never.
    pub dirty_writeback_centisecs: u64,
    /// Pages are old when they have been dirty for so long, 1/100 s.
    pub dirty_expire_centisecs: u64,
    /// Huge pages.
    pub thp: Thp,
    /// Generations of pages (since 6.1): the sum of 1 for generations, 2 for walks of page tables, and 4 for the young bits of
    /// directories; 0 for active and inactive lists.
    pub lru_gen: u64,
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            page_cluster: 3,
            swappiness: 60,
            min_free_kbytes: None,
            watermark_scale_factor: None,
            watermark_boost_factor: 15_000,
            compaction_proactiveness: 20,
            extfrag_threshold: 500,
            overcommit_memory: 0,
            vfs_cache_pressure: 100,
            dirty_ratio: 20,
            dirty_background_ratio: 10,
            dirty_bytes: 0,
            dirty_background_bytes: 0,
            dirty_writeback_centisecs: 500,
            dirty_expire_centisecs: 3000,
            thp: Thp::default(),
            lru_gen: 0,
        }
    }
}

/// The first version in which swappiness may favour file pages, by commit c843966c556d.
const FAVOURS_FILES: Version = v(5, 8);

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name under `/proc/sys/vm`, where `page_cluster` alone is written with a dash; with `thp.` or `khugepaged.`
    /// before it one under `/sys/kernel/mm/transparent_hugepage`, with `lru_gen.` under `/sys/kernel/mm/lru_gen`.
    pub name: &'static str,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// First version that has it; none if every version of the model does.
    pub since: Option<Version>,
    /// What it is, with its unit.
    pub text: &'static str,
    get: fn(&Sysctl) -> Option<u64>,
    set: fn(&mut Sysctl, u64),
}

impl Setting {
    /// The kernel's default; none where that follows from the machine.
    pub fn default(&self) -> Option<u64> {
        (self.get)(&Sysctl::default())
    }
}

macro_rules! settings {
    ($( $name:literal, $min:expr, $max:expr, $since:expr, $text:literal, $get:expr, $set:expr; )*) => {
        /// Every setting that the model obeys.
        pub const SETTINGS: &[Setting] = &[ $( Setting {
            name: $name,
            min: $min,
            max: $max,
            since: $since,
            text: $text,
            get: $get,
            set: $set,
        }, )* ];
    };
}

settings! {
    "page_cluster", 0, 5, None,
        "log2 of the largest window of swap readahead, pages",
        |s| Some(s.page_cluster.into()), |s, n| s.page_cluster = n as u32;
    "swappiness", 0, 200, None,
        "weight of anonymous pages against pages of files in reclaim; up to 100 before v5.8",
        |s| Some(s.swappiness.into()), |s, n| s.swappiness = n as u32;
    "min_free_kbytes", 128, 1 << 30, None,
        "free memory that the min watermarks keep, KiB; computed from RAM unless set",
        |s| s.min_free_kbytes, |s, n| s.min_free_kbytes = Some(n);
    "watermark_scale_factor", 1, 1000, Some(v(4, 6)),
        "distance between watermarks, 1/10000 of a zone",
        |s| Some(s.watermark_scale_factor.unwrap_or(WATERMARK_SCALE_FACTOR)),
        |s, n| s.watermark_scale_factor = Some(n);
    "watermark_boost_factor", 0, i32::MAX as u64, Some(v(5, 0)),
        "how far fragmentation raises watermarks at most, 1/10000 of the high one; 0 for never",
        |s| Some(s.watermark_boost_factor), |s, n| s.watermark_boost_factor = n;
    "compaction_proactiveness", 0, 100, Some(v(5, 9)),
        "how little fragmented kcompactd keeps memory by itself, percent; 0 for not at all",
        |s| Some(s.compaction_proactiveness), |s, n| s.compaction_proactiveness = n;
    "extfrag_threshold", 0, 1000, None,
        "fragmentation index below which an allocation that failed reclaims and does not compact",
        |s| Some(s.extfrag_threshold), |s, n| s.extfrag_threshold = n;
    "overcommit_memory", 0, 1, None,
        "0: maps that are obviously too large are refused; 1: none is",
        |s| Some(s.overcommit_memory.into()), |s, n| s.overcommit_memory = n as u32;
    "vfs_cache_pressure", 0, 1 << 31, None,
        "how much dentries and inodes are shrunk, percent of what pages are; 0 for not at all",
        |s| Some(s.vfs_cache_pressure), |s, n| s.vfs_cache_pressure = n;
    // Bytes put a ratio out of force, and the other way round.
    "dirty_ratio", 1, 100, None,
        "dirty pages at which writers are throttled, percent of dirtyable memory",
        |s| Some(s.dirty_ratio), |s, n| (s.dirty_ratio, s.dirty_bytes) = (n, 0);
    "dirty_background_ratio", 0, 100, None,
        "dirty pages at which flushers begin to write, percent of dirtyable memory",
        |s| Some(s.dirty_background_ratio),
        |s, n| (s.dirty_background_ratio, s.dirty_background_bytes) = (n, 0);
    "dirty_bytes", 2 * PAGE_SIZE, 1 << 50, None,
        "the same as dirty_ratio in bytes, and in place of it; 0, the default, if dirty_ratio counts",
        |s| Some(s.dirty_bytes), |s, n| (s.dirty_ratio, s.dirty_bytes) = (0, n);
    "dirty_background_bytes", 1, 1 << 50, None,
        "the same as dirty_background_ratio in bytes, and in place of it; 0, the default, if that counts",
        |s| Some(s.dirty_background_bytes),
        |s, n| (s.dirty_background_ratio, s.dirty_background_bytes) = (0, n);
    "dirty_writeback_centisecs", 0, 1 << 31, None,
        "time between two looks of a flusher for old dirty pages, 1/100 s; 0 for none",
        |s| Some(s.dirty_writeback_centisecs), |s, n| s.dirty_writeback_centisecs = n;
    "dirty_expire_centisecs", 0, 1 << 31, None,
        "time after which a dirty page is old, 1/100 s",
        |s| Some(s.dirty_expire_centisecs), |s, n| s.dirty_expire_centisecs = n;
    "thp.use_zero_page", 0, 1, Some(v(3, 8)),
        "reads of what was never written map a huge page of zeroes",
        |s| s.thp.use_zero_page, |s, n| s.thp.use_zero_page = Some(n);
    "khugepaged.defrag", 0, 1, Some(THP),
        "whether khugepaged reclaims and compacts for a huge page",
        |s| s.thp.khugepaged_defrag, |s, n| s.thp.khugepaged_defrag = Some(n);
    "khugepaged.pages_to_scan", 1, u32::MAX as u64, Some(THP),
        "pages that khugepaged looks at in a run",
        |s| Some(s.thp.pages_to_scan), |s, n| s.thp.pages_to_scan = n;
    "khugepaged.scan_sleep_millisecs", 0, u32::MAX as u64, Some(THP),
        "time between two runs of khugepaged, ms",
        |s| Some(s.thp.scan_sleep_millisecs), |s, n| s.thp.scan_sleep_millisecs = n;
    "khugepaged.alloc_sleep_millisecs", 0, u32::MAX as u64, Some(THP),
        "time that khugepaged waits after an allocation failed, ms",
        |s| Some(s.thp.alloc_sleep_millisecs), |s, n| s.thp.alloc_sleep_millisecs = n;
    "lru_gen.enabled", 0, 7, Some(v(6, 1)),
        "generations of pages in place of active and inactive lists, a sum: 1 for them, 2 for walks of page tables, 4 for young bits above tables; the default of kernels built without LRU_GEN_ENABLED",
        |s| Some(s.lru_gen), |s, n| s.lru_gen = n;
    "khugepaged.max_ptes_none", 0, 511, Some(THP),
        "pages of a block that may be missing when khugepaged makes it huge",
        |s| Some(s.thp.max_ptes_none), |s, n| s.thp.max_ptes_none = n;
    "khugepaged.max_ptes_swap", 0, 511, Some(v(4, 8)),
        "pages of a block that may be in swap when khugepaged makes it huge",
        |s| Some(s.thp.max_ptes_swap), |s, n| s.thp.max_ptes_swap = n;
    "khugepaged.max_ptes_shared", 0, 511, Some(v(5, 8)),
        "pages of a block that processes may share when khugepaged makes it huge",
        |s| Some(s.thp.max_ptes_shared), |s, n| s.thp.max_ptes_shared = n;
}

impl Kernel {
    /// Whether a setting can be written while tasks run, as far as the model goes: it reads the others when the kernel
    /// boots.
    pub(crate) fn changes_while_running(name: &str) -> bool {
        const AT_BOOT: [&str; 4] = [
            "thp.enabled",
            "thp.defrag",
            "thp.use_zero_page",
            "lru_gen.enabled",
        ];
        !AT_BOOT.contains(&name)
    }

    /// Whether the kernel takes a value for a setting.
    ///
    /// # Errors
    ///
    /// As [`Sysctl::set`], and when this version does not take the value.
    pub(crate) fn takes(&self, name: &str, value: &str) -> Result<(), KernelError> {
        let mut sysctl = self.sysctl.clone();
        sysctl.set(name, value)?;
        sysctl.check(self.version)
    }

    /// Why a setting does nothing: it came with a later version, and what it sets was not switched on alone; none for one that does something.
    pub(crate) fn without_effect(&self, name: &str) -> Option<String> {
        let choice = CHOICES.iter().find(|choice| choice.name == name);
        let setting = SETTINGS.iter().find(|setting| setting.name == name);
        let since = match (choice, setting) {
            (Some(choice), _) => Some(choice.since),
            (None, setting) => setting?.since,
        };
        let since = since.filter(|since| self.version < *since)?;
        let mechanisms = &self.mechanisms;
        let is_used = match name {
            "watermark_scale_factor" => mechanisms.zones.watermark_gap == WatermarkGap::ScaleFactor,
            "watermark_boost_factor" => mechanisms.zones.watermark_boost != WatermarkBoost::Off,
            "compaction_proactiveness" => {
                mechanisms.blocks.proactive_compaction == ProactiveCompaction::On
            }
            _ => false,
        };
        let version = self.version;
        (!is_used).then(|| {
            format!("{version} has no {name}, which came with {since}: the setting has no effect")
        })
    }
}

/// What a setting is counted in, as its name says.
fn unit(name: &str) -> &'static str {
    let units = [
        ("_kbytes", " of KiB"),
        ("_bytes", " of bytes"),
        ("_centisecs", " of 1/100 s"),
    ];
    let found = units.iter().find(|(ending, _)| name.ends_with(ending));
    found.map_or("", |&(_, unit)| unit)
}

impl Sysctl {
    /// Whether a version takes these values.
    ///
    /// # Errors
    ///
    /// When one of them came later.
    pub(super) fn check(&self, version: Version) -> Result<(), KernelError> {
        self.thp.check(version)?;
        if self.swappiness > 100 && version < FAVOURS_FILES {
            Err(KernelError::Sysctl(format!(
                "swappiness = {}: {version} takes 0 to 100; more came with {FAVOURS_FILES}",
                self.swappiness
            )))
        } else {
            Ok(())
        }
    }

    /// `dirty_writeback_centisecs` in ns.
    pub(crate) fn dirty_writeback(&self) -> Nanos {
        self.dirty_writeback_centisecs * CENTISECOND
    }

    /// `dirty_expire_centisecs` in ns.
    pub(crate) fn dirty_expire(&self) -> Nanos {
        self.dirty_expire_centisecs * CENTISECOND
    }

    /// Sets one value by name; a dash is as good as an underscore, `vm.` may stand before it.
    ///
    /// # Errors
    ///
    /// When there is no such setting or the value is not a number in its range.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), KernelError> {
        let key = name.strip_prefix("vm.").unwrap_or(name).replace('-', "_");
        if let Some(choice) = CHOICES.iter().find(|known| known.name == key) {
            return self.thp.choose(choice, value);
        }
        let Some(setting) = SETTINGS.iter().find(|known| known.name == key) else {
            return Err(KernelError::Sysctl(format!(
                "the model has no setting {name}"
            )));
        };
        let Setting { min, max, set, .. } = setting;
        let number = value.parse().ok().filter(|n| (min..=max).contains(&n));
        let number = number.ok_or_else(|| {
            KernelError::Sysctl(format!(
                "{name} = {value}: expected a number{} from {min} to {max}",
                unit(&key)
            ))
        })?;
        set(self, number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::thp::{Defrag, Enabled};
    use lowmark_spec::KernelSpec;

    #[test]
    fn settings_of_later_versions_are_named() {
        let said = |text: &str| {
            let spec = KernelSpec::parse(text).expect("a kernel");
            let kernel = Kernel::resolve(&spec).expect("the model has it");
            let mut names = spec.sysctl.keys();
            names.find_map(|name| kernel.without_effect(name))
        };
        assert_eq!(
            said("v3.6,watermark_boost_factor=0").as_deref(),
            Some(
                "v3.6 has no watermark_boost_factor, which came with v5.0: the setting has no effect"
            )
        );
        for setting in SETTINGS.iter().filter(|setting| setting.since.is_some()) {
            assert!(said(&format!("v2.6.36,{}=1", setting.name)).is_some());
            assert_eq!(said(&format!("v6.1,{}=1", setting.name)), None);
        }
        assert_eq!(
            said("v3.14+watermark_gap=scale-factor,watermark_scale_factor=50"),
            None
        );
        assert_eq!(said("v3.14,dirty_ratio=5"), None);
    }

    #[test]
    fn words_are_those_that_the_version_knows() {
        let found = |text: &str| {
            let spec = KernelSpec::parse(text).expect("a kernel");
            let kernel = Kernel::resolve(&spec).map_err(|error| error.to_string())?;
            Ok::<_, String>((kernel.sysctl.thp.enabled, kernel.sysctl.thp.defrag))
        };
        assert_eq!(found("v4.4"), Ok((None, None)));
        assert_eq!(
            found("v4.4,thp.enabled=always,thp.defrag=madvise"),
            Ok((Some(Enabled::Always), Some(Defrag::Madvise)))
        );
        assert_eq!(
            found("v4.5,thp.defrag=defer"),
            Err("thp.defrag = defer: v4.5 does not know it; it came with v4.6".into())
        );
        assert_eq!(
            found("v4.11,thp.defrag=defer+madvise"),
            Ok((None, Some(Defrag::DeferMadvise)))
        );
        for (text, part) in [
            ("v4.10,thp.defrag=defer+madvise", "it came with v4.11"),
            (
                "v4.4,thp.enabled=defer",
                "expected one of always, madvise, never",
            ),
            ("v6.1,khugepaged.max_ptes_none=512", "from 0 to 511"),
        ] {
            let error = found(text).expect_err("refused");
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn every_setting_is_the_one_that_it_names() -> Result<(), KernelError> {
        for setting in SETTINGS {
            for value in [setting.min, setting.max] {
                let mut sysctl = Sysctl::default();
                sysctl.set(setting.name, &value.to_string())?;
                assert_eq!((setting.get)(&sysctl), Some(value), "{}", setting.name);
                // And no other, but for a ratio and its bytes.
                let others = SETTINGS.iter().filter(|other| other.name != setting.name);
                let altered = others.filter(|other| (other.get)(&sysctl) != other.default());
                let altered: Vec<&str> = altered.map(|other| other.name).collect();
                let pair = setting.name.replace("_bytes", "_ratio");
                let pair = (pair != setting.name).then_some(pair.as_str());
                assert_eq!(altered, Vec::from_iter(pair), "{}", setting.name);
            }
            let out = (setting.max + 1).to_string();
            assert!(Sysctl::default().set(setting.name, &out).is_err());
            let default = setting.default();
            // 0 says that a ratio counts, and cannot be set.
            let bytes = setting.name.ends_with("_bytes");
            assert!(
                default.is_none_or(|d| bytes || (setting.min..=setting.max).contains(&d)),
                "{}",
                setting.name
            );
        }
        Ok(())
    }
}
