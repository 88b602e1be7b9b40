//! Settings of transparent huge pages, under `/sys/kernel/mm/transparent_hugepage`.

use super::change::{v, v2_6};
use super::{KernelError, Version};
use lowmark_spec::machine::PAGE_SIZE;

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
    /// Reads of what was never written map a huge page of zeroes (since 3.8): 0 or 1; 1 unless the machine is small.
    pub use_zero_page: Option<u64>,
    /// Whether khugepaged reclaims and compacts for a huge page: 0 or 1; 1 unless the machine is small.
    pub khugepaged_defrag: Option<u64>,
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
            use_zero_page: None,
            khugepaged_defrag: None,
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

/// What is in force on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InForce {
    /// Which memory may get huge pages.
    pub(crate) enabled: Enabled,
    /// What a fault may do for one.
    pub(crate) defrag: Defrag,
    /// Reads of what was never written map a huge page of zeroes.
    pub(crate) use_zero_page: bool,
    /// khugepaged reclaims and compacts for a huge page.
    pub(crate) khugepaged_defrag: bool,
}

/// Pages of a machine below which nothing of huge pages is on unless it is set (`hugepage_init`): 512 MiB.
const SMALL_MACHINE: u64 = (512 << 20) / PAGE_SIZE;

/// Commit 444eb2a449ef: faults reclaim and compact only where that was advised.
const MADVISE_BY_DEFAULT: Version = v(4, 6);

impl Thp {
    /// What is in force in a kernel of this version on a machine with so many pages, `on` if it boots with huge pages.
    pub(crate) fn in_force(&self, version: Version, on: bool, pages: u64) -> InForce {
        let large = pages >= SMALL_MACHINE;
        let enabled = if on && large {
            Enabled::Always
        } else {
            Enabled::Never
        };
        let defrag = if !large {
            Defrag::Never
        } else if version < MADVISE_BY_DEFAULT {
            Defrag::Always
        } else {
            Defrag::Madvise
        };
        let flag = |asked: Option<u64>| asked.map_or(large, |value| value == 1);
        InForce {
            enabled: self.enabled.unwrap_or(enabled),
            defrag: self.defrag.unwrap_or(defrag),
            use_zero_page: flag(self.use_zero_page),
            khugepaged_defrag: flag(self.khugepaged_defrag),
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_machine_has_nothing_but_what_is_set() {
        let found = |thp: &Thp, version, on, pages| {
            let found = thp.in_force(version, on, pages);
            (found.enabled, found.defrag, found.use_zero_page)
        };
        let mut thp = Thp::default();
        let large = (Enabled::Always, Defrag::Always, true);
        assert_eq!(found(&thp, v(4, 5), true, SMALL_MACHINE), large);
        let later = (Enabled::Always, Defrag::Madvise, true);
        assert_eq!(found(&thp, v(4, 6), true, SMALL_MACHINE), later);
        let small = (Enabled::Never, Defrag::Never, false);
        assert_eq!(found(&thp, v(4, 6), true, SMALL_MACHINE - 1), small);
        thp.enabled = Some(Enabled::Madvise);
        let asked = (Enabled::Madvise, Defrag::Never, false);
        assert_eq!(found(&thp, v(4, 6), false, SMALL_MACHINE - 1), asked);
    }
}
