//! Settings under `/proc/sys/vm` that the model obeys.

use super::{KernelError, Version, v};
use crate::time::{Nanos, SECOND};
use lowmark_spec::machine::PAGE_SIZE;

const CENTISECOND: Nanos = SECOND / 100;

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
            dirty_ratio: 20,
            dirty_background_ratio: 10,
            dirty_bytes: 0,
            dirty_background_bytes: 0,
            dirty_writeback_centisecs: 500,
            dirty_expire_centisecs: 3000,
        }
    }
}

/// The first version in which swappiness may favour file pages, by commit c843966c556d.
const FAVOURS_FILES: Version = v(5, 8);

/// Names of the settings with their smallest and largest value.
const RANGES: [(&str, u64, u64); 14] = [
    ("page_cluster", 0, 5),
    ("swappiness", 0, 200),
    ("min_free_kbytes", 128, 1 << 30),
    ("watermark_scale_factor", 1, 1000),
    ("watermark_boost_factor", 0, i32::MAX as u64),
    ("compaction_proactiveness", 0, 100),
    ("extfrag_threshold", 0, 1000),
    ("overcommit_memory", 0, 1),
    ("dirty_ratio", 1, 100),
    ("dirty_background_ratio", 0, 100),
    ("dirty_bytes", 2 * PAGE_SIZE, 1 << 50),
    ("dirty_background_bytes", 1, 1 << 50),
    ("dirty_writeback_centisecs", 0, 1 << 31),
    ("dirty_expire_centisecs", 0, 1 << 31),
];

impl Sysctl {
    /// Whether a version takes these values.
    ///
    /// # Errors
    ///
    /// When one of them came later.
    pub(super) fn check(&self, version: Version) -> Result<(), KernelError> {
        match self.swappiness > 100 && version < FAVOURS_FILES {
            true => Err(KernelError::Sysctl(format!(
                "swappiness = {}: {version} takes 0 to 100; more came with {FAVOURS_FILES}",
                self.swappiness
            ))),
            false => Ok(()),
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
        let Some(&(_, min, max)) = RANGES.iter().find(|(known, ..)| *known == key) else {
            let known: Vec<&str> = RANGES.iter().map(|(known, ..)| *known).collect();
            return Err(KernelError::Sysctl(format!(
                "the model has no setting {name}; it has {}",
                known.join(", ")
            )));
        };
        let number = value
            .parse()
            .ok()
            .filter(|n| (min..=max).contains(n))
            .ok_or_else(|| {
                KernelError::Sysctl(format!(
                    "{name} = {value}: expected a number from {min} to {max}"
                ))
            })?;
        match key.as_str() {
            "page_cluster" => self.page_cluster = number as u32,
            "swappiness" => self.swappiness = number as u32,
            "min_free_kbytes" => self.min_free_kbytes = Some(number),
            "watermark_boost_factor" => self.watermark_boost_factor = number,
            "watermark_scale_factor" => self.watermark_scale_factor = Some(number),
            "compaction_proactiveness" => self.compaction_proactiveness = number,
            "extfrag_threshold" => self.extfrag_threshold = number,
            "overcommit_memory" => self.overcommit_memory = number as u32,
            // Bytes put a ratio out of force, and the other way round.
            "dirty_ratio" => (self.dirty_ratio, self.dirty_bytes) = (number, 0),
            "dirty_bytes" => (self.dirty_ratio, self.dirty_bytes) = (0, number),
            "dirty_background_bytes" => {
                (self.dirty_background_ratio, self.dirty_background_bytes) = (0, number);
            }
            "dirty_writeback_centisecs" => self.dirty_writeback_centisecs = number,
            "dirty_expire_centisecs" => self.dirty_expire_centisecs = number,
            _ => (self.dirty_background_ratio, self.dirty_background_bytes) = (number, 0),
        }
        Ok(())
    }
}
