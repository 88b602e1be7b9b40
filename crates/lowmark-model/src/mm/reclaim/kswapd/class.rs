//! The class of zones that kswapd works for, between one request and the next, where lists are a node's
//! (`kswapd_classzone_idx`, `kswapd_highest_zoneidx`).

use crate::kernel::{Kernel, KswapdClasszone};
use crate::mm::types::ZoneType;

/// What kswapd remembers of the class that it was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassMemory {
    /// Nothing: without a request, the lowest zone.
    Nothing,
    /// While it runs it keeps the class that it was asked for, or a higher one that is asked for meanwhile.
    WhileItRuns,
    /// The class of its last run, until another one is asked for.
    LastRun,
}

impl ClassMemory {
    pub(super) fn of(kernel: &Kernel) -> ClassMemory {
        match kernel.mechanisms.kswapd.kswapd_classzone {
            KswapdClasszone::KeepAwake => ClassMemory::WhileItRuns,
            KswapdClasszone::Remembers => ClassMemory::LastRun,
            _ => ClassMemory::Nothing,
        }
    }

    /// The class before anybody has asked.
    pub(super) fn first(self) -> usize {
        let class = match self {
            ClassMemory::Nothing => ZoneType::Dma,
            ClassMemory::WhileItRuns | ClassMemory::LastRun => ZoneType::High,
        };
        class as usize
    }

    /// The class of a run that nobody asked for; `done` is that of the last one.
    pub(super) fn unasked(self, done: usize) -> usize {
        match self {
            ClassMemory::Nothing | ClassMemory::WhileItRuns => 0,
            ClassMemory::LastRun => done,
        }
    }

    /// The class by which it asks whether it may sleep, after a run for `request`; `asked` came meanwhile.
    pub(super) fn after_run(self, request: usize, asked: Option<usize>) -> usize {
        match (self, asked) {
            (ClassMemory::WhileItRuns, Some(asked)) => asked.max(request),
            (_, Some(asked)) => asked,
            (ClassMemory::WhileItRuns | ClassMemory::LastRun, None) => request,
            (ClassMemory::Nothing, None) => 0,
        }
    }

    /// The class that is asked for when a nap is cut short that kswapd would have gone to sleep by.
    pub(super) fn after_nap(self, done: usize, asked: Option<usize>) -> Option<usize> {
        match (self, asked) {
            (ClassMemory::LastRun, Some(asked)) => Some(asked),
            (_, Some(asked)) => Some(asked.max(done)),
            (_, None) => Some(done),
        }
    }
}
