//! The workload's tasks: each statement of the language, done to the model.

mod advise;
mod alloc;
mod barrier;
mod context;
mod fileio;
mod files;
mod interpreter;
mod maps;
mod mlock;
mod process;
mod since;
mod support;
mod touch;

pub(crate) use barrier::Barrier;
pub(crate) use files::{Files, bytes_before};
pub(crate) use interpreter::start;
pub use since::Later;
pub(crate) use since::later;
pub use support::{Unsupported, unsupported};

use crate::time::{Nanos, TaskId, WaitQueue};
use lowmark_record::Phase;
use lowmark_spec::random::ZipfTables;
use lowmark_spec::visit::Touched;
use std::collections::BTreeMap;

/// What the tasks of a run have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Barriers, as the workload numbers them.
    pub(crate) barriers: Vec<Barrier>,
    /// Samples by the number of their series and answer: time of completion and value.
    pub(crate) samples: BTreeMap<u64, Vec<(Nanos, Nanos)>>,
    /// For each task of the run, by its id: the line of the statement that it carries out.
    pub(crate) lines: Vec<u32>,
    /// Pages of all maps that are there now.
    pub(crate) mapped: u64,
    /// Phase marks.
    pub(crate) phases: Vec<Phase>,
    /// For each task of the workload: its instances.
    pub(crate) groups: Vec<Group>,
    /// A statement locks memory, so that what is locked is counted.
    pub(crate) locks: bool,
    /// The run goes on until kswapd sleeps.
    pub(crate) until_kswapd_idle: bool,
    /// Touches done, for showing progress.
    pub(crate) touches: u64,
    /// Bytes that tasks have read and written by system calls (`rchar` and `wchar` of `/proc/PID/io`).
    pub(crate) rchar: u64,
    pub(crate) wchar: u64,
    /// Files.
    pub(crate) files: Files,
    /// Distributions of what statements pick by `zipf`.
    pub(crate) zipf_tables: ZipfTables,
    /// Every touch in order, if they are wanted.
    pub(crate) touched: Option<Vec<Touched>>,
}

impl Shared {
    /// The line of the statement that a task carries out; 0 for a kernel thread.
    pub(crate) fn line(&self, task: TaskId) -> u32 {
        self.lines.get(task.index()).copied().unwrap_or(0)
    }

    /// A task begins a statement, or goes on with the one around it: the line where it was before.
    pub(crate) fn set_line(&mut self, task: TaskId, line: u32) -> u32 {
        if self.lines.len() <= task.index() {
            self.lines.resize(task.index() + 1, 0);
        }
        std::mem::replace(&mut self.lines[task.index()], line)
    }
}

/// The instances of one task of the workload.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Those that were started, in order.
    pub(crate) started: Vec<TaskId>,
    /// How many of them have ended.
    pub(crate) ended: usize,
    /// Who waits for their end.
    pub(crate) waiters: WaitQueue,
}
