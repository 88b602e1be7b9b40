//! Settings of transparent huge pages, under `/sys/kernel/mm/transparent_hugepage`.

use super::change::{v, v2_6};
use super::{KernelError, Version};

/// The first version with transparent huge pages, by commit 71e3aac0724f.
pub const SINCE: Version = v2_6(38);

/// Which memory may get huge pages (`enabled`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enabled {
    /// All private memory.
    Always,
    /// What was advised so (MADV_HUGEPAGE).
    Madvise,
    /// None.
    Never,
}

/// What a fault may do to get a huge page when there is no block free (`defrag`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defrag {
    /// Reclaim and compact.
    Always,
    /// Wake kswapd and kcompactd, and take small pages meanwhile (444eb2a449ef).
    Defer,
    /// Reclaim and compact where that was advised, and `Defer` elsewhere (21440d7eb904).
    DeferMadvise,
    /// Reclaim and compact where that was advised, and nothing elsewhere.
    Madvise,
    /// Nothing.
    Never,
}

const ENABLED: [(&str, Enabled); 3] = [
    ("always", Enabled::Always),
    ("madvise", Enabled::Madvise),
    ("never", Enabled::Never),
];
const DEFRAG: [(&str, Defrag, Version); 5] = [
    ("always", Defrag::Always, SINCE),
    ("defer", Defrag::Defer, v(4, 6)),
    ("defer+madvise", Defrag::DeferMadvise, v(4, 11)),
    ("madvise", Defrag::Madvise, SINCE),
    ("never", Defrag::Never, SINCE),
];

/// `/sys/kernel/mm/transparent_hugepage`, with the kernel's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thp {
    /// Which memory may get huge pages; as the machine says (`thp`) when absent.
    pub enabled: Option<Enabled>,
    /// What a fault may do for one; when absent `always`, from 4.6 on `madvise`.
    pub defrag: Option<Defrag>,
    /// Reads of what was never written map a huge page of zeroes (since 3.8): 0 or 1.
    pub use_zero_page: u64,
    /// Whether khugepaged reclaims and compacts for a huge page: 0 or 1.
    pub khugepaged_defrag: u64,
    /// Pages that khugepaged looks at in a run.
    pub pages_to_scan: u64,
    /// Time between two runs of khugepaged, ms.
    pub scan_sleep_millisecs: u64,
    /// Time that khugepaged waits after an allocation failed, ms.
    pub alloc_sleep_millisecs: u64,
    /// Pages of a block that may be missing when khugepaged makes it huge, 0 to 511.
    pub max_ptes_none: u64,
    /// Pages of it that may be in swap (since 4.8), 0 to 511.
    pub max_ptes_swap: u64,
    /// Pages of it that may be shared between processes (since 5.8), 0 to 511.
    pub max_ptes_shared: u64,
}

impl Default for Thp {
    fn default() -> Self {
        Thp {
            enabled: None,
            defrag: None,
            use_zero_page: 1,
            khugepaged_defrag: 1,
            pages_to_scan: 4096,
            scan_sleep_millisecs: 10_000,
            alloc_sleep_millisecs: 60_000,
            max_ptes_none: 511,
            max_ptes_swap: 64,
            max_ptes_shared: 256,
        }
    }
}

/// A setting whose values are words.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// First version that has it.
    pub since: Version,
    /// What it is.
    pub text: &'static str,
}

/// Settings whose values are words.
pub const CHOICES: &[Choice] = &[
    Choice {
        name: "thp.enabled",
        since: SINCE,
        text: "which memory may get huge pages; as the machine's `thp` says unless set",
    },
    Choice {
        name: "thp.defrag",
        since: SINCE,
        text: "what a fault may do to get a huge page; always up to v4.5, madvise from v4.6 on unless set",
    },
];

impl Choice {
    /// The words that it takes, each with the first version that knows it.
    pub fn words(&self) -> Vec<(&'static str, Version)> {
        match self.name {
            "thp.enabled" => ENABLED.iter().map(|&(word, _)| (word, SINCE)).collect(),
            _ => DEFRAG
                .iter()
                .map(|&(word, _, since)| (word, since))
                .collect(),
        }
    }
}

impl Thp {
    /// Sets what is set by words.
    ///
    /// # Errors
    ///
    /// When the setting has no such value.
    pub(super) fn choose(&mut self, choice: &Choice, value: &str) -> Result<(), KernelError> {
        let enabled = ENABLED.iter().find(|(word, _)| *word == value);
        let defrag = DEFRAG.iter().find(|(word, ..)| *word == value);
        match (choice.name, enabled, defrag) {
            ("thp.enabled", Some(&(_, enabled)), _) => self.enabled = Some(enabled),
            ("thp.defrag", _, Some(&(_, defrag, _))) => self.defrag = Some(defrag),
            _ => {
                let words: Vec<&str> = choice.words().iter().map(|&(word, _)| word).collect();
                return Err(KernelError::Sysctl(format!(
                    "{} = {value}: expected one of {}",
                    choice.name,
                    words.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Whether a version knows these values.
    ///
    /// # Errors
    ///
    /// When one of them came later.
    pub(super) fn check(&self, version: Version) -> Result<(), KernelError> {
        let chosen = DEFRAG
            .iter()
            .find(|(_, defrag, _)| Some(*defrag) == self.defrag);
        match chosen {
            Some((word, _, since)) if version < *since && version >= SINCE => {
                Err(KernelError::Sysctl(format!(
                    "thp.defrag = {word}: {version} does not know it; it came with {since}"
                )))
            }
            _ => Ok(()),
        }
    }
}
