//! Kernels: a version is a set of mechanisms.
//!
//! Each mechanism is one enum in [`mechanisms`], documented with what it does and what it works with. Which variant a
//! version has follows from the rows of [`versions::HISTORY`]: a kernel is the oldest one with every change up
//! to its version applied, then the changes asked for by hand ([`Kernel::resolve`]).
//!
//! What the model lacks is no mechanism: [`coverage`] lists it.
//!
//! To add a mechanism: an enum (or a variant), a row in the history, one `match` or one predicate with a name where the
//! kernel has its `if`, a test.

mod blk_mq_history;
mod block_history;
mod change;
pub mod coverage;
mod declare;
pub mod difference;
mod early_history;
mod effect;
mod error;
mod free_page_history;
mod history;
mod huge_page_history;
mod kswapd_history;
mod lru_gen_history;
mod lumpy_history;
pub mod mechanisms;
mod memcg_history;
mod readahead_history;
mod recent_history;
mod resolve;
mod shrinker_history;
mod sysctl;
pub mod thp;
pub mod versions;

pub(crate) use change::v;
pub use coverage::Coverage;
pub use difference::{Alteration, Difference};
pub use error::KernelError;
pub use mechanisms::*;
pub(crate) use sysctl::WATERMARK_SCALE_FACTOR;
pub use sysctl::{SETTINGS, Setting, Sysctl};
pub use versions::{Version, versions};

/// A kernel that the model can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Version it starts from.
    pub version: Version,
    /// Its mechanisms.
    pub mechanisms: Mechanisms,
    /// What of it the model carries out.
    pub coverage: Coverage,
    /// Its settings.
    pub sysctl: Sysctl,
}

/// The first version that has generations of pages, by commit ac35a4902374.
const LRU_GEN: Version = v(6, 1);

impl Kernel {
    /// Whether pages stand in generations, not on active and inactive lists.
    pub(crate) fn has_generations(&self) -> bool {
        self.version >= LRU_GEN && self.sysctl.lru_gen & 1 != 0
    }
}

#[cfg(test)]
impl Kernel {
    /// The kernel that a text names as `--kernel` does, for tests.
    pub(crate) fn named(text: &str) -> Kernel {
        let spec = lowmark_spec::KernelSpec::parse(text).expect("a kernel's name");
        Kernel::resolve(&spec).expect("a kernel of the model")
    }
}
