//! The workload's tasks: each statement of the language, done to the model.

mod barrier;
mod context;
mod fileio;
mod files;
mod interpreter;
mod maps;
mod support;
mod touch;

pub(crate) use barrier::Barrier;
pub(crate) use files::{Files, bytes_before};
pub(crate) use interpreter::start;
pub use support::{Unsupported, unsupported};

use crate::mm::page::Pfn;
use crate::time::{Nanos, TaskId, WaitQueue};
use lowmark_record::Phase;
use lowmark_spec::visit::Touched;

/// What the tasks of a run have in common.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Barriers, as the workload numbers them.
    pub(crate) barriers: Vec<Barrier>,
    /// Samples of each series: time of completion and value.
    pub(crate) samples: Vec<Vec<(Nanos, Nanos)>>,
    /// Phase marks.
    pub(crate) phases: Vec<Phase>,
    /// For each task of the workload: its instances.
    pub(crate) groups: Vec<Group>,
    /// The run goes on until kswapd sleeps.
    pub(crate) until_kswapd_idle: bool,
    /// Touches done, for showing progress.
    pub(crate) touches: u64,
    /// Files.
    pub(crate) files: Files,
    /// Every touch in order, if they are wanted.
    pub(crate) touched: Option<Vec<Touched>>,
    /// Scratch for finished requests.
    pub(crate) done_pages: Vec<Pfn>,
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
