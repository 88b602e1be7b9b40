//! Why a run on this system gave no recording.

use std::io;
use std::time::Duration;

/// Why a run on this system gave no recording. The changes that lowmark made for the run are undone all the same, unless the error says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The workload, machine or kernel asks for what this system does not have.
    #[error("this system cannot run it: {}", what.join("; "))]
    Unsupported {
        /// Everything that it cannot do.
        what: Vec<String>,
    },
    /// Settings or swap of the whole system would have to be changed, which nobody allowed.
    #[error("the whole system would have to be changed for it: {}", what.join("; "))]
    MachineWide {
        /// Everything that would have to be changed.
        what: Vec<String>,
    },
    /// Another run is going on.
    #[error("{process} runs a workload on this system already; wait for its end")]
    Busy {
        /// Whose it is, as far as that is known.
        process: String,
    },
    /// Something could not be set up.
    #[error("{what}: {source}")]
    Io {
        /// What was to be done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// The workload could not be carried out.
    #[error("the workload failed: {problem}")]
    WorkloadFailed {
        /// Which statement, and what the kernel said.
        problem: String,
    },
    /// It took too long.
    #[error(
        "the workload did not end within {} s and was stopped; give it longer with --timeout",
        limit.as_secs()
    )]
    TimedOut {
        /// Time that it had.
        limit: Duration,
    },
    /// It failed, and something that was changed for it could not be undone.
    #[error("{error}; besides, this system is not as it was: {}; run `lowmark recover`", left.join("; "))]
    NotUndone {
        /// How it failed.
        error: Box<HostError>,
        /// What could not be undone; its journal is still there.
        left: Vec<String>,
    },
}

impl HostError {
    /// Whether the workload had started: what was asked for could have worked.
    pub fn started(&self) -> bool {
        match self {
            HostError::WorkloadFailed { .. } | HostError::TimedOut { .. } => true,
            HostError::NotUndone { error, .. } => error.started(),
            HostError::Unsupported { .. }
            | HostError::MachineWide { .. }
            | HostError::Busy { .. }
            | HostError::Io { .. } => false,
        }
    }

    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> HostError {
        let what = what.into();
        move |source| HostError::Io { what, source }
    }
}
