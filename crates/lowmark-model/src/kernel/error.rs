//! Why a kernel cannot be run on the model.

use super::Version;

/// Why a kernel cannot be run on the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// No such version.
    #[error(
        "the model has no kernel {found}; it has every release from v2.6.36 to v6.18, written for example v3.6, 6.1 or, \
         with what stable kernels took over, 6.1.192"
    )]
    UnknownVersion {
        /// What was asked for.
        found: String,
    },
    /// No such mechanism.
    #[error(
        "the model has no mechanism called {found}; `lowmark list mechanisms` names those that it has"
    )]
    UnknownMechanism {
        /// What was asked for.
        found: String,
    },
    /// No such change.
    #[error(
        "the model has no change called {found}; `lowmark list kernels` names those that it has"
    )]
    UnknownChange {
        /// What was asked for.
        found: String,
    },
    /// A mechanism stands where a change should.
    #[error("{mechanism} is a mechanism and needs a variant: +{mechanism}=VARIANT, one of {known}")]
    MissingVariant {
        /// The mechanism.
        mechanism: String,
        /// Its variants.
        known: String,
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
    /// A change is applied to a kernel that has it.
    #[error("{version} has the change {change} already, since {since}; leave it out")]
    HasAlready {
        /// The change.
        change: &'static str,
        /// The kernel that was asked for.
        version: Version,
        /// The version that brought the change.
        since: Version,
    },
    /// A change is taken out of a kernel that does not have it.
    #[error(
        "{version} does not have the change {change}, which came with {since}; leave -{change} out"
    )]
    HasNot {
        /// The change.
        change: &'static str,
        /// The kernel that was asked for.
        version: Version,
        /// The version that brought the change.
        since: Version,
    },
    /// A later change builds on one that is to be taken out.
    #[error(
        "taking {change} out of {version} would change nothing about {mechanism}: {later}, which came with {since}, \
         builds on it; take that out as well: {version}-{change},-{later}"
    )]
    BuiltUpon {
        /// The change.
        change: &'static str,
        /// The kernel that was asked for.
        version: Version,
        /// The mechanism that both change.
        mechanism: &'static str,
        /// The later change.
        later: &'static str,
        /// The version that brought it.
        since: Version,
    },
    /// Two variants that no kernel combined.
    #[error(
        "{setting} works only with {other}={works_with}, and this kernel has {other}={found}; change both, or neither"
    )]
    Needs {
        /// The mechanism and its variant.
        setting: String,
        /// The other mechanism.
        other: &'static str,
        /// Its variants that would do.
        works_with: String,
        /// The variant that it has.
        found: &'static str,
    },
    /// What was asked for is part of what the model leaves out of this kernel.
    #[error(
        "{asked} has no effect in the model of {version}: it is a part of {subject}, which the model {modelled}; see \
         `lowmark list coverage`"
    )]
    LeftOut {
        /// The mechanism or the change.
        asked: String,
        /// The kernel that was asked for.
        version: Version,
        /// What is left out.
        subject: &'static str,
        /// From which version on the model has it.
        modelled: String,
    },
    /// A mechanism of generations of pages was asked for, and this kernel has no generations.
    #[error("{asked} has no effect in {version}: it is about generations of pages, {remedy}")]
    WithoutGenerations {
        /// The mechanism or the change.
        asked: String,
        /// The kernel that was asked for.
        version: Version,
        /// How to get a kernel that uses them.
        remedy: String,
    },
    /// What the model leaves out cannot be switched in this way.
    #[error("{0}")]
    Coverage(String),
    /// A setting that is not there or cannot have this value.
    #[error("{0}")]
    Sysctl(String),
}

impl KernelError {
    /// Whether it is about several parts of a specification, each of which may be right without the others.
    pub(super) fn is_of_several(&self) -> bool {
        use KernelError::{BuiltUpon, LeftOut, Needs, WithoutGenerations};
        matches!(
            self,
            BuiltUpon { .. } | Needs { .. } | LeftOut { .. } | WithoutGenerations { .. }
        )
    }
}
