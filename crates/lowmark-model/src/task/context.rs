//! What a running instance of a task holds.

use super::files::Turn;
use crate::mm::filemap::OpenFile;
use crate::world::SysRef;
use lowmark_spec::random::Stream;
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::Workload;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Why a body does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// SIGKILL, SIGSEGV or the end of memory.
    Killed,
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
    /// Node that its allocations prefer.
    pub(super) node: usize,
    /// Regions by their number in the task.
    pub(super) maps: Vec<Option<u32>>,
    /// Files that stay open, by their number.
    pub(super) open: BTreeMap<usize, OpenFile>,
    /// Orders in which files of sets are taken.
    pub(super) picks: BTreeMap<Turn, Visit>,
    /// Threads of this instance that `parallel` has started, for their streams.
    pub(super) threads: u64,
}
