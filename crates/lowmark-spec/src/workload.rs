//! The workload, resolved: every expression is a number, every name an index.
//!
//! This is what a backend carries out. Sizes and offsets are bytes, times are nanoseconds. Random
//! choices are drawn by the backend from a stream seeded by (run seed, task name, instance).

mod alloc;
mod objects;
mod probes;

pub use alloc::{Alloc, AllocFlags, AllocSeries};
pub use objects::{Barrier, Cgroup, File, FileKind, FileSet, Series, SizeDist, TimeUnit};
pub use probes::{Answer, Probe, series_name, series_number};
use serde::{Deserialize, Serialize};

/// A workload with all parameters bound. The default one does nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Name of the workload.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Tasks; those with [`Start::AtBegin`] start at time zero.
    pub tasks: Vec<Task>,
    /// Files that statements refer to by index.
    pub files: Vec<File>,
    /// Sets of files that statements refer to by index.
    pub filesets: Vec<FileSet>,
    /// Barriers that statements refer to by index.
    pub barriers: Vec<Barrier>,
    /// Memory cgroups that tasks refer to by index: each before those inside it, which follow it at once.
    pub cgroups: Vec<Cgroup>,
    /// Protection that a memory cgroup does not use is passed on to those inside it (`memory_recursiveprot`, an option
    /// of the cgroup2 file system since 5.7).
    pub recursive_protection: bool,
    /// Sample series that statements refer to by index.
    pub series: Vec<Series>,
    /// Labels of phases that statements refer to by index.
    pub phases: Vec<String>,
    /// When the run is over.
    pub end: End,
}

impl Workload {
    /// All statements of its tasks, those inside others too, in no particular order.
    pub fn statements(&self) -> Vec<&Stmt> {
        let tasks = self.tasks.iter();
        let mut open: Vec<&Stmt> = tasks
            .flat_map(|task| task.instances.iter().flatten())
            .collect();
        let mut all = Vec::new();
        while let Some(stmt) = open.pop() {
            open.extend(stmt.op.bodies().into_iter().flatten());
            all.push(stmt);
        }
        all
    }

    /// Whether it works with files.
    pub fn has_files(&self) -> bool {
        !(self.files.is_empty() && self.filesets.is_empty())
    }
}

/// When a run is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// When every task that started has ended.
    #[default]
    AllTasks,
    /// After this time, ns; tasks still running are killed.
    After(u64),
    /// When every task has ended and kswapd sleeps on every node.
    KswapdIdle,
}

/// Whether the instances of a task share an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// One process each.
    Processes,
    /// Threads of one process.
    Threads,
}

/// When a task's instances start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// At time zero.
    AtBegin,
    /// When a [`Op::Spawn`] names it.
    Spawned,
}

/// A task and its instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Name; also the `comm` of its events.
    pub name: String,
    /// Processes or threads.
    pub sharing: Sharing,
    /// When it starts.
    pub start: Start,
    /// Memory cgroup that its pages are charged to; none: the root.
    pub cgroup: Option<CgroupId>,
    /// Names of the maps of one instance; [`MapId`] indexes it.
    pub maps: Vec<String>,
    /// One body per instance.
    pub instances: Vec<Vec<Stmt>>,
}

/// Index of a map among those of its task.
pub type MapId = usize;
/// Number of a pool among those of its task.
pub type PoolId = usize;
/// Index into [`Workload::files`].
pub type FileId = usize;
/// Index into [`Workload::filesets`].
pub type FileSetId = usize;
/// Index into [`Workload::tasks`].
pub type TaskId = usize;
/// Index into [`Workload::cgroups`].
pub type CgroupId = usize;

/// A statement and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stmt {
    /// Line of the file, from 1; 0 when built in code.
    pub line: u32,
    /// What to do.
    pub op: Op,
}

/// What a map is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapKind {
    /// `MAP_PRIVATE | MAP_ANONYMOUS`
    AnonPrivate,
    /// `MAP_SHARED | MAP_ANONYMOUS`: shmem
    AnonShared,
    /// `MAP_SHARED` of a file
    FileShared(FileId),
    /// `MAP_PRIVATE` of a file
    FilePrivate(FileId),
}

/// `madvise` advice (and `MAP_POPULATE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// MADV_NORMAL
    Normal,
    /// MADV_RANDOM
    Random,
    /// MADV_SEQUENTIAL
    Sequential,
    /// MADV_WILLNEED
    Willneed,
    /// MADV_DONTNEED
    Dontneed,
    /// MADV_HUGEPAGE
    Hugepage,
    /// MADV_NOHUGEPAGE
    Nohugepage,
    /// MADV_COLD
    Cold,
    /// MADV_PAGEOUT
    Pageout,
    /// MADV_FREE
    Free,
    /// MADV_POPULATE_WRITE
    Populate,
    /// MADV_POPULATE_READ
    PopulateRead,
}

/// Kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Load.
    Read,
    /// Store.
    Write,
    /// Load and compare with what was stored.
    Verify,
}

/// Order in which units (pages, blocks, files) are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Ascending.
    Seq,
    /// Ascending from a unit drawn at random on, round and round.
    Onward,
    /// Descending.
    Reverse,
    /// Uniform with replacement.
    Random,
    /// Zipf with exponent in thousandths over a seeded permutation of the units.
    Zipf(u32),
    /// Every k-th unit, then the next residue.
    Stride(u64),
    /// Normal around the middle, sigma in thousandths of the range.
    Gauss(u32),
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Amount {
    /// Times round the whole range.
    Passes(u64),
    /// This many units.
    Count(u64),
}

/// Part of a map or file, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub length: u64,
}

impl Range {
    /// The range, and its repetitions at the distance `every` that begin before `end`.
    pub fn repeated(self, every: Option<u64>, end: u64) -> impl Iterator<Item = Range> {
        let step = every.unwrap_or(u64::MAX).max(1);
        let next = move |range: &Range| {
            let offset = range.offset.checked_add(step)?;
            Some(Range { offset, ..*range })
        };
        std::iter::successors(Some(self), next).take_while(move |range| range.offset < end)
    }
}

/// Which file or files a file statement works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileRef {
    /// One file.
    File(FileId),
    /// A file of the set, chosen by `order` for each operation.
    Set(FileSetId, Order),
}

/// A time that may be drawn at random, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Duration {
    /// Always this long.
    Fixed(u64),
    /// Uniform over the closed interval.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(u64),
}

/// How long a `repeat` goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Times {
    /// This many rounds.
    Count(u64),
    /// New rounds begin until this much time has passed, ns.
    For(u64),
    /// Until the run ends or the task is killed.
    Forever,
}

/// Something to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// kswapd sleeps on every node.
    KswapdIdle,
    /// A vmstat field reaches a value.
    Vmstat {
        /// Field name.
        field: String,
        /// Comparison.
        cmp: Cmp,
        /// Right-hand side.
        value: u64,
    },
}

/// Comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cmp {
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `==`
    Eq,
    /// `>=`
    Ge,
    /// `>`
    Gt,
}

/// What is touched of a map, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Loads or stores.
    pub access: Access,
    /// In which order.
    pub order: Order,
    /// Bytes from one touch to the next.
    pub step: u64,
    /// How many.
    pub amount: Amount,
    /// The part that is touched; all of it if none.
    pub range: Option<Range>,
    /// Touches per second, if paced.
    pub rate: Option<u64>,
}

/// A file read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIo {
    /// On what.
    pub file: FileRef,
    /// Bytes per call.
    pub block: u64,
    /// Order of blocks within the file.
    pub order: Order,
    /// How many blocks, or passes over the file.
    pub amount: Amount,
    /// Bytes per second, if paced.
    pub rate: Option<u64>,
    /// O_DIRECT.
    pub direct: bool,
    /// O_SYNC.
    pub sync: bool,
}

/// Statements of the language. Every one is parsed; a backend says before it starts which it cannot
/// run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(
    missing_docs,
    reason = "fields are described on their types and in docs/workloads.md"
)]
pub enum Op {
    /// mmap(2)
    Map {
        map: MapId,
        kind: MapKind,
        length: u64,
        offset: u64,
        advice: Option<Advice>,
        lock: bool,
        exec: bool,
    },
    /// munmap(2) of the whole map, or of `range` repeated every `every` bytes
    Unmap {
        map: MapId,
        range: Option<Range>,
        every: Option<u64>,
    },
    /// madvise(DONTNEED) or hole punch of `range` repeated every `every` bytes
    Punch {
        map: MapId,
        range: Range,
        every: Option<u64>,
    },
    /// Loads or stores, one per `step` bytes
    Touch { map: MapId, what: Touch },
    /// Stores to every byte
    Memset { map: MapId, range: Option<Range> },
    /// madvise(2)
    Advise {
        map: MapId,
        advice: Advice,
        range: Option<Range>,
    },
    /// mincore(2) or pagemap at an offset; the answer labels the enclosing sample
    Probe {
        map: MapId,
        offset: u64,
        what: Probe,
    },
    /// mlock(2) (`true`) or munlock(2)
    Mlock {
        map: MapId,
        lock: bool,
        range: Option<Range>,
    },
    /// Memory policy: prefer a node
    Node { node: u32 },
    /// pread(2)
    Read(FileIo),
    /// pwrite(2)
    Write(FileIo),
    /// write(2) at the end
    Append(FileIo),
    /// fsync(2), or fdatasync(2) when `data_only`
    Fsync { file: FileRef, data_only: bool },
    /// sync_file_range(2)
    SyncRange { file: FileId, range: Range },
    /// sync(2)
    Sync,
    /// `/proc/sys/vm/drop_caches`
    DropCaches { what: u32 },
    /// Writes to the `memory.reclaim` of a memory cgroup; goes on as well if less can be reclaimed
    Reclaim { cgroup: CgroupId, size: u64 },
    /// creat(2)
    Create { file: FileRef },
    /// unlink(2)
    Delete { file: FileRef },
    /// ftruncate(2)
    Truncate { file: FileRef, size: u64 },
    /// stat(2) of every file of a set
    StatWalk { set: FileSetId },
    /// cp(1)
    Copy {
        from: FileId,
        to: FileId,
        block: u64,
    },
    /// Blocks of pages, held until `Free`
    Alloc(Alloc),
    /// Gives back all that the instance holds in a pool
    Free { pool: PoolId },
    /// nanosleep(2)
    Sleep(Duration),
    /// Sleep that stands for a user's thinking; the same as `Sleep` for the kernel
    Think(Duration),
    /// Busy loop in user mode
    Burn(Duration),
    /// pthread_barrier_wait(3)
    Barrier(usize),
    /// SIGSTOP to itself
    StopSelf,
    /// SIGCONT to every instance of a task
    Resume { task: TaskId },
    /// fork(2) or clone(2) of `count` instances of a task with [`Start::Spawned`], the next ones in order
    Spawn { task: TaskId, count: u64 },
    /// Waits for all running instances of a task
    Wait { task: TaskId },
    /// SIGKILL to all running instances of a task
    Kill { task: TaskId },
    /// Reader and writer joined by a bounded buffer, like `rsync` or `cat | dd`
    Pipe {
        read: FileIo,
        write: FileIo,
        chunk: u64,
        depth: u64,
    },
    /// Short-lived processes, one after the other, as make(1) starts compilers: `body` is what each does
    Build { times: Times, body: Vec<Stmt> },
    /// Loop
    Repeat { times: Times, body: Vec<Stmt> },
    /// Polls `condition` every `poll_ns` until it holds, doing `body` before each poll
    Until {
        condition: Condition,
        poll_ns: u64,
        body: Vec<Stmt>,
    },
    /// Bodies as threads of this task; goes on when all have ended
    Parallel { bodies: Vec<Vec<Stmt>> },
    /// Marks the time in the recording
    Phase(usize),
    /// Time of `body`, recorded in a series
    Sample { series: usize, body: Vec<Stmt> },
    /// Changes a setting while running
    Sysctl { name: String, value: String },
    /// The run fails its purpose if a metric is outside the closed range
    Expect {
        metric: String,
        min: Option<u64>,
        max: Option<u64>,
    },
}

impl Op {
    /// The statement's name in the language, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Map { .. } => "map",
            Op::Unmap { .. } => "unmap",
            Op::Punch { .. } => "punch",
            Op::Touch { .. } => "touch",
            Op::Memset { .. } => "memset",
            Op::Advise { .. } => "advise",
            Op::Probe { .. } => "probe",
            Op::Mlock { .. } => "mlock",
            Op::Node { .. } => "node",
            Op::Read(_) => "read",
            Op::Write(_) => "write",
            Op::Append(_) => "append",
            Op::Fsync {
                data_only: false, ..
            } => "fsync",
            Op::Fsync {
                data_only: true, ..
            } => "fdatasync",
            Op::SyncRange { .. } => "sync_range",
            Op::Sync => "sync",
            Op::DropCaches { .. } => "drop_caches",
            Op::Reclaim { .. } => "reclaim",
            Op::Create { .. } => "create",
            Op::Delete { .. } => "delete",
            Op::Truncate { .. } => "truncate",
            Op::StatWalk { .. } => "stat_walk",
            Op::Copy { .. } => "copy",
            Op::Alloc(_) => "alloc",
            Op::Free { .. } => "free",
            Op::Sleep(_) => "sleep",
            Op::Think(_) => "think",
            Op::Burn(_) => "burn",
            Op::Barrier(_) => "barrier",
            Op::StopSelf => "stop_self",
            Op::Resume { .. } => "resume",
            Op::Spawn { .. } => "spawn",
            Op::Wait { .. } => "wait",
            Op::Kill { .. } => "kill",
            Op::Pipe { .. } => "pipe",
            Op::Build { .. } => "build",
            Op::Repeat { .. } => "repeat",
            Op::Until { .. } => "until",
            Op::Parallel { .. } => "parallel",
            Op::Phase(_) => "phase",
            Op::Sample { .. } => "sample",
            Op::Sysctl { .. } => "sysctl",
            Op::Expect { .. } => "expect",
        }
    }

    /// The bodies nested in this statement.
    pub fn bodies(&self) -> Vec<&[Stmt]> {
        match self {
            Op::Repeat { body, .. }
            | Op::Until { body, .. }
            | Op::Sample { body, .. }
            | Op::Build { body, .. } => vec![body],
            Op::Parallel { bodies } => bodies.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_repeat_to_the_end() {
        let range = Range {
            offset: 4,
            length: 2,
        };
        let offsets = |every| {
            let ranges = range.repeated(every, 20);
            ranges.map(|range| range.offset).collect::<Vec<_>>()
        };
        assert_eq!(offsets(None), [4]);
        assert_eq!(offsets(Some(6)), [4, 10, 16]);
    }
}
