//! What is known of each task while events go by.
//!
//! Begin and end are paired by process id, not by name: `trace_pipe` names a process as it is called when the
//! line is printed, and one that executes a program changes its name in between. A process without an id is
//! alone.
//!
//!
//! 1. A begin opens its kind for the task. If it is open already, the end was lost: the older begin is
//!    dropped and counted as nested, and time runs from the newer.
//! 2. An end closes what is open, and its duration counts. The begin is forgotten.
//! 3. An end of what is not open is counted, and has no duration.
//! 4. What is open when the trace ends is counted, and its time so far is told apart.
//!
//! kswapd is awake from `mm_vmscan_kswapd_wake` to `mm_vmscan_kswapd_sleep`; a wake of one that is awake
//! counts as such. A kswapd that does something before its first wake was awake when the trace began: a
//! sleep that ends such a time has no duration.

use super::distribution::Distribution;
use super::pages::{Actor, Pages};

/// Orders that are told apart; the last stands for all from it on.
pub(super) const ORDERS: usize = 21;

/// What can begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Span {
    /// Direct reclaim.
    Direct,
    /// Reclaim for the limit of a memory cgroup.
    Memcg,
    /// Reclaim above a soft limit.
    MemcgSoftlimit,
    /// Reclaim of one's own node.
    NodeReclaim,
    /// A call of a shrinker.
    ShrinkSlab,
    /// Compaction of a zone.
    Compaction,
    /// A run of kswapd over a node (7.1 and later).
    BalancePgdat,
    /// `mm_vmscan_throttled`.
    Throttled,
    /// `writeback_congestion_wait`.
    CongestionWait,
    /// `writeback_wait_iff_congested`.
    WaitIffCongested,
}

impl Span {
    /// Those of a begin and an end.
    pub(super) const PAIRED: usize = 7;

    /// All of them.
    pub const ALL: [Span; 10] = [
        Span::Direct,
        Span::Memcg,
        Span::MemcgSoftlimit,
        Span::NodeReclaim,
        Span::ShrinkSlab,
        Span::Compaction,
        Span::BalancePgdat,
        Span::Throttled,
        Span::CongestionWait,
        Span::WaitIffCongested,
    ];

    /// Name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Span::Direct => "direct",
            Span::Memcg => "memcg",
            Span::MemcgSoftlimit => "memcg_softlimit",
            Span::NodeReclaim => "node_reclaim",
            Span::ShrinkSlab => "shrink_slab",
            Span::Compaction => "compaction",
            Span::BalancePgdat => "balance_pgdat",
            Span::Throttled => "throttled",
            Span::CongestionWait => "congestion_wait",
            Span::WaitIffCongested => "wait_iff_congested",
        }
    }

    /// Name in tables.
    pub fn label(self) -> &'static str {
        match self {
            Span::Direct => "Direct reclaim",
            Span::Memcg => "MemCG reclaim",
            Span::MemcgSoftlimit => "Soft limit reclaim",
            Span::NodeReclaim => "Node reclaim",
            Span::ShrinkSlab => "Shrinker",
            Span::Compaction => "Compaction",
            Span::BalancePgdat => "Kswapd run",
            Span::Throttled => "Throttled",
            Span::CongestionWait => "Congestion wait",
            Span::WaitIffCongested => "Conditional wait",
        }
    }
}

/// How begins and ends of one kind met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Pairs {
    /// Begins.
    pub begins: u64,
    /// Ends.
    pub ends: u64,
    /// Begins of what was open already.
    pub nested_begins: u64,
    /// Ends of what was not open.
    pub ends_without_begin: u64,
    /// Begins still open when the trace ended.
    pub open_at_end: u64,
    /// Time of these until then, ns.
    pub open_ns: u64,
}

/// Counts that few tasks have.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskCounts {
    /// Direct reclaims begun.
    pub(super) begins: u64,
    pub(super) begins_by_order: [u64; ORDERS],
    /// `mm_vmscan_wakeup_kswapd` of this task.
    pub(super) requests: u64,
    pub(super) requests_by_order: [u64; ORDERS],
    /// What a script that never forgets a begin would have measured too much, ns.
    pub(super) stale_ns: u64,
    /// The begin that such a script remembers.
    pub(super) stale_begin: Option<u64>,
    /// Ends before the first begin: they make that script lose the rest.
    pub(super) ends_before_begin: u64,
}

/// What kswapd did.
#[derive(Debug, Clone, Default)]
pub(super) struct Kswapd {
    /// When it woke, ns; none while it sleeps, or nothing is known.
    pub(super) woke_ns: Option<u64>,
    /// Whether it woke or slept already.
    pub(super) known: bool,
    /// First event before that, ns.
    pub(super) awake_at_start: Option<u64>,
    pub(super) wakes: u64,
    pub(super) wakes_by_order: [u64; ORDERS],
    pub(super) rewakes: u64,
    pub(super) rewakes_by_order: [u64; ORDERS],
    pub(super) sleeps: u64,
    /// Sleeps without a wake, and when they were: to a script, times since boot.
    pub(super) sleeps_without_wake: u64,
    pub(super) since_boot_ns: u64,
    pub(super) awake_ns: u64,
}

/// What is open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) begin_ns: u64,
    /// Order, already an index.
    pub(super) order: u8,
    /// Index of the memory cgroup.
    pub(super) memcg: u32,
}

/// No memory cgroup is known.
pub(super) const NO_MEMCG: u32 = u32::MAX;

/// What is open for one process id, by [`Span`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Thread {
    pub(super) open: [Option<Open>; Span::PAIRED],
}

impl Thread {
    fn has(&self, span: Span) -> bool {
        self.open[span as usize].is_some()
    }

    /// Who it is right now, if it is no kswapd.
    #[inline]
    pub(super) fn actor(&self) -> Actor {
        if self.has(Span::Direct) {
            Actor::Direct
        } else if self.has(Span::Memcg) || self.has(Span::MemcgSoftlimit) {
            Actor::Memcg
        } else {
            Actor::Other
        }
    }

    /// The reclaim that is open, of direct or of a memory cgroup.
    #[inline]
    pub(super) fn reclaim(&self) -> Option<Open> {
        self.open[Span::Direct as usize]
            .or(self.open[Span::Memcg as usize])
            .or(self.open[Span::MemcgSoftlimit as usize])
    }
}

/// One task: a name and a process id.
#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    pub(super) seen: bool,
    /// Index of what is open for its process id.
    pub(super) thread: u32,
    pub(super) kswapd: Option<Box<Kswapd>>,
    pub(super) counts: Option<Box<TaskCounts>>,
    pub(super) pages: [Option<Box<Pages>>; 4],
    pub(super) spans: [Option<Box<Distribution>>; 10],
}

impl Task {
    /// Its pages as `actor`.
    #[inline]
    pub(super) fn pages(&mut self, actor: Actor) -> &mut Pages {
        self.pages[actor as usize].get_or_insert_default()
    }

    pub(super) fn counts(&mut self) -> &mut TaskCounts {
        self.counts.get_or_insert_default()
    }

    /// Takes over what was known of it while the trace had no name for it.
    pub(super) fn adopt(&mut self, before: Task, time_ns: u64) {
        let took_part = before.took_part();
        let named_kswapd = self.kswapd.take();
        *self = Task {
            seen: self.seen,
            thread: self.thread,
            ..before
        };
        let Some(mut kswapd) = named_kswapd else {
            return;
        };
        if self.kswapd.is_none() {
            kswapd.awake_at_start = took_part.then_some(time_ns);
            self.kswapd = Some(kswapd);
        }
        // What it did as somebody it did as kswapd.
        if let Some(pages) = self.pages[Actor::Other as usize].take() {
            self.pages(Actor::Kswapd).join(&pages);
        }
    }

    /// Whether there is anything to tell of it.
    pub(super) fn took_part(&self) -> bool {
        self.kswapd.is_some()
            || self.counts.is_some()
            || self.pages.iter().any(Option::is_some)
            || self.spans.iter().any(Option::is_some)
    }

    /// Pages of all that it was.
    pub(super) fn all_pages(&self) -> Pages {
        let mut sum = Pages::default();
        for pages in self.pages.iter().flatten() {
            sum.join(pages);
        }
        sum
    }
}

/// Whether `name` is that of a kswapd: `kswapd` and a number. (The classic script's pattern
/// `kswapd[0-9]*` also takes `kswapd_helper`; no kernel has such a thread.)
pub(crate) fn is_kswapd(name: &str) -> bool {
    name.strip_prefix("kswapd")
        .is_some_and(|node| !node.is_empty() && node.bytes().all(|b| b.is_ascii_digit()))
}

/// Index of an order.
#[inline]
pub(super) fn order_index(order: i64) -> u8 {
    order.clamp(0, ORDERS as i64 - 1) as u8
}
