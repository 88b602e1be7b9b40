//! Requests: contiguous pages of a device on their way.

use super::virtio::Tables;
use crate::ids::DeviceId;
use crate::mm::types::Pfn;
use crate::time::{Nanos, TaskId};

/// Direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dir {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// One page of I/O.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Io {
    /// The device of the machine that it goes to.
    pub(crate) device: DeviceId,
    /// Direction.
    pub(crate) dir: Dir,
    /// Somebody waits for it.
    pub(crate) sync: bool,
    /// Page of the device.
    pub(crate) position: u64,
    /// Page of memory.
    pub(crate) pfn: Pfn,
    /// It is in memory with its neighbours in the file, in a large folio.
    pub(crate) in_folio: bool,
    /// It is the only page of its bio.
    pub(crate) own_bio: bool,
    /// It takes memory of its own that has not been found yet ([`crate::mm::io::bio`]).
    pub(crate) needs_bio: bool,
}

/// Index of a request in its queue.
pub(super) type RequestId = u32;

/// A request: contiguous pages of a device.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) dir: Dir,
    pub(super) sync: bool,
    pub(super) submitter: TaskId,
    pub(super) start: u64,
    /// When it was allocated.
    pub(super) since: Nanos,
    /// When its submitter has done the work that it takes; the device knows of it no earlier.
    pub(super) ready: Nanos,
    /// Pages of memory in ascending order of position.
    pub(super) pages: Vec<Pfn>,
    /// What its driver has allocated for it.
    pub(super) tables: Tables,
}

impl Request {
    /// Page after its last one.
    pub(super) fn end(&self) -> u64 {
        self.start + self.pages.len() as u64
    }
}
