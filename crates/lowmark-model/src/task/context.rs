//! What a running instance of a task holds.

use super::files::Turn;
use crate::mm::fault::memory::FaultError;
use crate::mm::files::filemap::OpenFile;
use crate::mm::files::filemap_write::WriteError;
use crate::mm::types::{OutOfMemory, Pfn};
use crate::world::SysRef;
use lowmark_spec::random::Stream;
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::{Answer, PoolId, Workload};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Why a body does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGKILL, or the run is over anyway.
    Killed,
    /// The statement cannot be carried out, and that is why.
    Failed(Cow<'static, str>),
}

/// A map is not there.
pub(super) fn unmapped() -> Stop {
    Stop::Failed("the map is not there (SIGSEGV)".into())
}

/// A file is not there.
pub(super) fn missing() -> Stop {
    Stop::Failed("the file is not there (ENOENT)".into())
}

impl From<OutOfMemory> for Stop {
    /// That the run is over then has been said already.
    fn from(_: OutOfMemory) -> Stop {
        Stop::Killed
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Stop {
        match error {
            WriteError::OutOfMemory => Stop::Killed,
            WriteError::NoSpace => Stop::Failed("no space left on the device (ENOSPC)".into()),
        }
    }
}

impl From<FaultError> for Stop {
    fn from(error: FaultError) -> Stop {
        match error {
            FaultError::OutOfMemory => Stop::Killed,
            FaultError::Sigsegv => Stop::Failed("the page was unmapped (SIGSEGV)".into()),
            FaultError::Sigbus => Stop::Failed(
                "no page there: behind the end of the file, or no space left on its device (SIGBUS)".into(),
            ),
        }
    }
}

/// The workload as the tasks hold it.
pub(super) struct Program {
    pub(super) workload: Workload,
    pub(super) seed: u64,
}

/// One running instance.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) sys: SysRef,
    pub(super) stream: Stream,
    pub(super) program: Rc<Program>,
    /// Task of the workload.
    pub(super) task: usize,
    /// Which instance of it.
    pub(super) instance: usize,
    /// Thread of the instance, from 1; 0 if it has not been parted.
    pub(super) thread: u64,
    /// Its process.
    pub(super) space: usize,
    /// Regions by their number in the task.
    pub(super) maps: Vec<Option<u32>>,
    /// Files that stay open, by their number.
    pub(super) open: BTreeMap<usize, OpenFile>,
    /// Orders in which files of sets are taken.
    pub(super) picks: BTreeMap<Turn, Visit>,
    /// First pages of the blocks that it holds, by pool.
    pub(super) held: BTreeMap<PoolId, Vec<Pfn>>,
    /// Threads of this instance that `parallel` has started, and processes of `build`, for their streams.
    pub(super) threads: u64,
    /// What the last `probe` of a `sample` found.
    pub(super) answer: Option<Answer>,
}

impl Context {
    /// The region of a map.
    pub(super) fn region(&self, map: usize) -> Result<u32, Stop> {
        let vma = self.maps[map].ok_or_else(unmapped)?;
        // Another thread may have unmapped it.
        if self.sys.world().mm.vmas[vma as usize].ptes.is_empty() {
            Err(unmapped())
        } else {
            Ok(vma)
        }
    }
}
