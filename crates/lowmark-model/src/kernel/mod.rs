//! Kernels: a version is a set of mechanisms.
//!
//! Each mechanism is one enum in [`mechanisms`], documented with what it does. Which variant a version
//! has follows from the rows of [`versions::HISTORY`]: a kernel is the oldest one with every change up
//! to its version applied, then the changes asked for by hand.
//!
//! To add a mechanism: an enum (or a variant), a row in the history, one `match` where the kernel has
//! its `if`, a test.

mod change;
mod declare;
mod early_history;
mod history;
pub mod mechanisms;
mod recent_history;
mod sysctl;
pub mod versions;

pub(crate) use change::v;
pub use mechanisms::*;
pub use sysctl::Sysctl;
pub use versions::{Version, versions};

use lowmark_spec::KernelSpec;

/// A kernel that the model can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Version it starts from.
    pub version: Version,
    /// Its mechanisms.
    pub mechanisms: Mechanisms,
    /// Its settings.
    pub sysctl: Sysctl,
}

/// Before, pageblocks have no types, and neither have slabs.
const SLABS_SINCE: Version = v(5, 0);

/// Why a kernel cannot be run on the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// No such version.
    #[error("the model has no kernel {found}; it has {known}")]
    UnknownVersion {
        /// What was asked for.
        found: String,
        /// What there is.
        known: String,
    },
    /// Neither a mechanism nor a change.
    #[error("the model has no mechanism or change called {found}; see `lowmark list mechanisms`")]
    UnknownMechanism {
        /// What was asked for.
        found: String,
    },
    /// The mechanism has no such variant.
    #[error("{mechanism} has no variant {found}; it has {known}")]
    UnknownVariant {
        /// The mechanism.
        mechanism: String,
        /// What was asked for.
        found: String,
        /// What there is.
        known: String,
    },
    /// The model has the variant in later kernels alone.
    #[error(
        "the model has {setting} from {since} on, not in {version}; leave it out, or use --kernel {since}"
    )]
    TooOld {
        /// The mechanism and its variant.
        setting: &'static str,
        /// The kernel that was asked for.
        version: Version,
        /// The first kernel that can have it.
        since: Version,
    },
    /// The mechanism works on what another one leaves out.
    #[error("{setting} needs {needed}; set that, too, or leave it out")]
    Needs {
        /// The mechanism and its variant.
        setting: &'static str,
        /// What is missing.
        needed: &'static str,
    },
    /// A setting that is not there or cannot have this value.
    #[error("{0}")]
    Sysctl(String),
}

impl Kernel {
    /// The kernel that a specification names.
    ///
    /// # Errors
    ///
    /// When version, mechanism, variant or setting is not known.
    pub fn resolve(spec: &KernelSpec) -> Result<Kernel, KernelError> {
        let version = Version::known(&spec.version)?;
        let mut mechanisms = versions::at(version);
        for toggle in &spec.toggles {
            match &toggle.variant {
                Some(variant) => mechanisms.set(&toggle.mechanism, variant)?,
                None => versions::change(&toggle.mechanism)?.apply(&mut mechanisms),
            }
        }
        let with_slabs = [
            (
                mechanisms.slab_pages != SlabPages::LeftOut,
                "slab_pages=allocated",
            ),
            (
                mechanisms.virtio_memory != VirtioMemory::LeftOut,
                "virtio_memory",
            ),
            (
                mechanisms.swap_bios != SwapBios::LeftOut,
                "swap_bios=allocated",
            ),
        ];
        if let Some((_, setting)) = with_slabs.into_iter().find(|&(set, _)| set)
            && version < SLABS_SINCE
        {
            return Err(KernelError::TooOld {
                setting,
                version,
                since: SLABS_SINCE,
            });
        }
        if mechanisms.compaction != Compaction::LeftOut
            && mechanisms.migrate_types == MigrateTypes::LeftOut
        {
            return Err(KernelError::Needs {
                setting: "compaction=on",
                needed: "migrate_types other than left-out",
            });
        }
        if mechanisms.read_folios == ReadFolios::Grown && mechanisms.lru_unit == LruUnit::Zone {
            return Err(KernelError::Needs {
                setting: "read_folios=grown",
                needed: "lru_unit=node",
            });
        }
        let mut sysctl = Sysctl::default();
        for (name, value) in &spec.sysctl {
            sysctl.set(name, value)?;
        }
        sysctl.check(version)?;
        Ok(Kernel {
            version,
            mechanisms,
            sysctl,
        })
    }
}
