//! Settings under `/proc/sys/vm` that the model obeys.

use super::{KernelError, Version};

/// `/proc/sys/vm`, with the kernel's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// log2 of the largest swap-in window in pages, 0 to 5.
    pub page_cluster: u32,
    /// Weight of anonymous against file pages in reclaim, 0 to 100, or to 200 from 5.8 on.
    pub swappiness: u32,
    /// Free memory kept by the watermarks, KiB; computed from RAM when absent.
    pub min_free_kbytes: Option<u64>,
    /// Distance between watermarks in 1/10000 of a zone (since 4.6).
    pub watermark_scale_factor: u64,
    /// Percent of dirtyable memory at which writers are throttled.
    pub dirty_ratio: u64,
    /// Percent of dirtyable memory at which background writeback begins.
    pub dirty_background_ratio: u64,
}

impl Default for Sysctl {
    fn default() -> Self {
        Sysctl {
            page_cluster: 3,
            swappiness: 60,
            min_free_kbytes: None,
            watermark_scale_factor: 10,
            dirty_ratio: 20,
            dirty_background_ratio: 10,
        }
    }
}

/// The first version in which swappiness may favour file pages, by commit c843966c556d.
const FAVOURS_FILES: Version = Version { major: 5, minor: 8 };

/// Names of the settings with their smallest and largest value.
const RANGES: [(&str, u64, u64); 6] = [
    ("page_cluster", 0, 5),
    ("swappiness", 0, 200),
    ("min_free_kbytes", 128, 1 << 30),
    ("watermark_scale_factor", 1, 1000),
    ("dirty_ratio", 1, 100),
    ("dirty_background_ratio", 0, 100),
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
            "watermark_scale_factor" => self.watermark_scale_factor = number,
            "dirty_ratio" => self.dirty_ratio = number,
            _ => self.dirty_background_ratio = number,
        }
        Ok(())
    }
}
