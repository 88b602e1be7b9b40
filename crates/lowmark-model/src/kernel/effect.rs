//! Which mechanisms decide something in a run of a kernel, and why others do not.
//!
//! A mechanism decides nothing where the model leaves out the subject that the mechanism is a part of
//! ([`Coverage`](super::Coverage)), and mechanisms of generations of pages decide nothing where pages stand on active and
//! inactive lists. A mechanism that decides nothing cannot be switched, and is no difference between two kernels.

use super::coverage::{PREFIX, Subject};
use super::{DESCRIPTIONS, Kernel, KernelError, LRU_GEN};
use lowmark_spec::Toggle;

/// Why a mechanism decides nothing in a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Idle {
    /// The mechanism is a part of this subject, which the model leaves out of this kernel.
    LeftOut(&'static Subject),
    /// The mechanism is one of generations of pages, which this kernel does not have or which are switched off.
    WithoutGenerations,
}

impl Kernel {
    /// Why a mechanism decides nothing in a run of this kernel; none of one that decides something.
    pub(super) fn idle(&self, mechanism: &str) -> Option<Idle> {
        let description = DESCRIPTIONS.iter().find(|it| it.name == mechanism)?;
        if description.group == "lru_gen" && !self.has_generations() {
            return Some(Idle::WithoutGenerations);
        }
        self.coverage.leaves_out(description).map(Idle::LeftOut)
    }

    /// Whether a change of these mechanisms decides nothing; false of one that changes none of them, as settings do.
    pub(super) fn is_idle(&self, altered: &[&str]) -> bool {
        !altered.is_empty() && altered.iter().all(|name| self.idle(name).is_some())
    }

    /// Refuses a change or variant that was asked for if all mechanisms that the change altered decide nothing.
    pub(super) fn check_effect(&self, asked: &Toggle, altered: &[&str]) -> Result<(), KernelError> {
        let first = altered.first().and_then(|name| self.idle(name));
        let Some(idle) = first.filter(|_| self.is_idle(altered)) else {
            return Ok(());
        };
        let (asked, version) = (asked.to_string(), self.version);
        Err(match idle {
            Idle::LeftOut(subject) => KernelError::LeftOut {
                asked,
                version,
                subject: subject.name,
                modelled: match subject.modelled_since {
                    Some(since) if version < since => format!("has from {since} on"),
                    _ => format!("has with {PREFIX}{}=on", subject.name),
                },
            },
            Idle::WithoutGenerations => KernelError::WithoutGenerations {
                asked,
                version,
                remedy: if version < LRU_GEN {
                    format!("which kernels have from {LRU_GEN} on")
                } else {
                    "which are switched on by ,lru_gen.enabled=7".into()
                },
            },
        })
    }
}
