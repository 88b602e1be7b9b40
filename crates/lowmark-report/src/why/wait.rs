//! A wait: what made a task wait, what it asked for, and what happened meanwhile.
//!
//! What a task asked for follows from its allocation flags:
//!
//! | flags | request |
//! |---|---|
//! | movable, `__GFP_NOMEMALLOC` and `__GFP_NOWARN` (`GFP_TRANSHUGE`) | a large folio of anonymous memory |
//! | movable, `__GFP_ZERO` | a new page of private memory (`do_anonymous_page`) |
//! | movable, `__GFP_WRITE` | a page of a file that is written (`grab_cache_page_write_begin`, 3.3) |
//! | movable, `__GFP_NORETRY` and `__GFP_NOWARN` (`readahead_gfp_mask`), or no `__GFP_FS` | a page of a file that is read |
//! | movable | any other page of a user: from swap, of shmem, a copy, a charge |
//! | not movable | memory of the kernel's own |
//!
//! Whoever asks for a block of a costly order, without `__GFP_NORETRY` and not for a large folio, takes nothing smaller in its place:
//! those who would, as folios of files that are read or written and `kvmalloc` do, set that flag. A charge asks for no block.
//!
//! Reclaim for a memory cgroup keeps of the flags only `GFP_RECLAIM_MASK`: `__GFP_ZERO` and `__GFP_WRITE` are not told.

use lowmark_record::event::gfp;
use serde::Serialize;

/// Largest order that is not costly (`PAGE_ALLOC_COSTLY_ORDER`).
pub(super) const COSTLY_ORDER: u8 = 3;

/// What made a task wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Memory of the machine: direct reclaim.
    Global,
    /// The limit of a memory cgroup.
    Memcg,
    /// Memory of one's own node (`zone_reclaim_mode`).
    Node,
    /// Dirty limits: a writer pauses.
    Dirty,
    /// Free memory is there, but not in blocks of the order asked for.
    Fragmentation,
}

impl Limit {
    /// All of them, in the order of tables.
    pub const ALL: [Limit; 5] = [
        Limit::Global,
        Limit::Memcg,
        Limit::Node,
        Limit::Dirty,
        Limit::Fragmentation,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Global => "global",
            Limit::Memcg => "memcg",
            Limit::Node => "node",
            Limit::Dirty => "dirty",
            Limit::Fragmentation => "fragmentation",
        }
    }

    /// What is said of it in tables.
    pub fn label(self) -> &'static str {
        match self {
            Limit::Global => "global reclaim",
            Limit::Memcg => "limit of a memory cgroup",
            Limit::Node => "reclaim of one node",
            Limit::Dirty => "dirty limits",
            Limit::Fragmentation => "fragmentation",
        }
    }
}

/// What a task that waits asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// A new page of private memory.
    Zeroed,
    /// Another page of a user: swapped in, shared memory, a copy, a charge.
    User,
    /// A page of a file, to be read.
    FileRead,
    /// A page of a file, to be written.
    FileWrite,
    /// A large folio of anonymous memory.
    Huge,
    /// A block of a costly order that nothing smaller can stand for, such as a page of hugetlbfs.
    Block,
    /// Memory of the kernel's own.
    Kernel,
    /// The trace does not say.
    Unknown,
}

impl Request {
    /// How many there are.
    pub(super) const COUNT: usize = 8;

    /// What is asked for with these flags.
    pub fn of(flags: Option<u64>) -> Request {
        let Some(flags) = flags else {
            return Request::Unknown;
        };
        let has = |all: u64| flags & all == all;
        match () {
            () if !has(gfp::MOVABLE) => Request::Kernel,
            () if has(gfp::NOMEMALLOC | gfp::NOWARN) => Request::Huge,
            () if has(gfp::ZERO) => Request::Zeroed,
            () if has(gfp::WRITE) => Request::FileWrite,
            () if has(gfp::NORETRY | gfp::NOWARN) || !has(gfp::FS) => Request::FileRead,
            () => Request::User,
        }
    }

    /// What allocations ask for, charges of groups apart, with an order and flags.
    pub fn of_order(order: u8, flags: Option<u64>) -> Request {
        let retries = flags.is_some_and(|flags| flags & gfp::NORETRY == 0);
        match Request::of(flags) {
            Request::Huge => Request::Huge,
            _ if retries && order > COSTLY_ORDER => Request::Block,
            other => other,
        }
    }

    /// What is said of it in tables.
    pub fn label(self) -> &'static str {
        match self {
            Request::Zeroed => "a new page of private memory",
            Request::User => "a page of a user",
            Request::FileRead => "a page of a file to read",
            Request::FileWrite => "a page of a file to write",
            Request::Huge => "a huge page",
            Request::Block => "a large block",
            Request::Kernel => "memory of the kernel",
            Request::Unknown => "not told",
        }
    }
}

/// What happened inside a wait, ns: parts of it, none counted twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Inside {
    /// Throttled until pages under writeback are written (`VMSCAN_THROTTLE_WRITEBACK`).
    pub writeback_ns: u64,
    /// Throttled as too many pages are isolated (`VMSCAN_THROTTLE_ISOLATED`).
    pub isolated_ns: u64,
    /// Throttled as nothing could be reclaimed (`VMSCAN_THROTTLE_NOPROGRESS`).
    pub noprogress_ns: u64,
    /// Throttled for another reason, or for several.
    pub throttled_ns: u64,
    /// Waits for congested devices (`congestion_wait`, `wait_iff_congested`).
    pub congestion_ns: u64,
    /// In shrinkers.
    pub slab_ns: u64,
    /// In compaction.
    pub compaction_ns: u64,
}

impl Inside {
    /// Every part.
    pub(super) fn parts(&mut self) -> [&mut u64; 7] {
        [
            &mut self.writeback_ns,
            &mut self.isolated_ns,
            &mut self.noprogress_ns,
            &mut self.throttled_ns,
            &mut self.congestion_ns,
            &mut self.slab_ns,
            &mut self.compaction_ns,
        ]
    }

    /// The part of a reason of throttling, by its bit in the event.
    pub(super) fn throttled(&mut self, reason: u64) -> &mut u64 {
        match reason {
            1 | 8 => &mut self.writeback_ns,
            2 => &mut self.isolated_ns,
            4 => &mut self.noprogress_ns,
            _ => &mut self.throttled_ns,
        }
    }

    /// All parts together, ns.
    pub fn total_ns(mut self) -> u64 {
        self.parts()
            .into_iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Adds those of another wait.
    pub(super) fn add(&mut self, mut other: Inside) {
        for (sum, part) in self.parts().into_iter().zip(other.parts()) {
            *sum = sum.saturating_add(*part);
        }
    }

    /// Takes away what does not fit into a wait of so many ns, so that parts are never more than the whole.
    pub(super) fn fit(&mut self, mut room_ns: u64) {
        for part in self.parts() {
            *part = (*part).min(room_ns);
            room_ns -= *part;
        }
    }
}

/// One wait of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Index of the task in the source's tables.
    pub task: u32,
    /// When it began, ns by the clock of the trace.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What made the task wait.
    pub limit: Limit,
    /// What the task asked for.
    pub request: Request,
    /// Order asked for.
    pub order: u8,
    /// Allocation flags, as events hold them; none if the trace does not say.
    pub gfp: Option<u64>,
    /// Memory cgroup by number (7.1 and later).
    pub memcg: Option<u64>,
    /// What happened inside.
    pub inside: Inside,
    /// Pages that the task scanned meanwhile.
    pub scanned: u64,
    /// Those kept as they were in use.
    pub kept: u64,
    /// Those reclaimed.
    pub reclaimed: u64,
    /// Time of it in which a kswapd was awake, ns.
    pub kswapd_ns: u64,
}

impl Wait {
    /// Its length, ns.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }

    /// Whether reclaim found hardly any page but such as are in use: four fifths kept, less than a twentieth reclaimed.
    pub(super) fn finds_used_pages(&self) -> bool {
        self.scanned > 0
            && self.kept.saturating_mul(5) >= self.scanned.saturating_mul(4)
            && self.reclaimed.saturating_mul(20) < self.scanned
    }
}
