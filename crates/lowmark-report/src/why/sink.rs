//! The sink: makes waits of events, and keeps of them what the answer needs.
//!
//! 1. Begins and ends are paired by thread, see `threads.rs`; what happens inside goes to the wait.
//! 2. A wait goes to sums, to the slice of time, to an episode, and among the longest if it is one of them.
//! 3. With a window of time, waits count as far as they lie within it, and other events if they do.
//!
//! Memory is bounded by the number of tasks (which the source limits), of slices, of episodes and of the longest
//! waits.

use super::answer::Answer;
use super::awake::Awake;
use super::dirty::DirtyState;
use super::episodes::{Episodes, TaskSet};
use super::evidence::Evidence;
use super::surroundings::Surroundings;
use super::threads::{Open, Pair, Threads, Who, begun};
use super::wait::{COSTLY_ORDER, Inside, Limit, Request, Wait};
use crate::dirty::{is_impossible, pause_ms};
use crate::reclaim::distribution::microseconds;
use crate::reclaim::pages::count;
use crate::reclaim::slices::{Part, Slices};
use lowmark_record::event::{RECLAIM_WB_ANON, RECLAIM_WB_FILE};
use lowmark_record::{Account, Event, Field, Kind, Sink, Tables};
use std::collections::BTreeMap;

/// Longest waits that can be asked for.
pub const TOP_MAX: usize = 1000;

/// Most askers for large blocks that are told apart.
const ASKERS_MAX: usize = 256;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyOptions {
    /// Only what happens from this time on, ns by the clock of the trace.
    pub from_ns: Option<u64>,
    /// Only what happens until then.
    pub to_ns: Option<u64>,
    /// Only waits of tasks of this name, or of this name and process id (`cc1` or `cc1-4242`).
    pub task: Option<String>,
    /// How many of the longest waits are told, at most 1000.
    pub top: usize,
}

impl Default for WhyOptions {
    fn default() -> Self {
        WhyOptions {
            from_ns: None,
            to_ns: None,
            task: None,
            top: 10,
        }
    }
}

/// Time of waits in a slice, by limit and request, ns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moment {
    pub(super) time_ns: [[u64; Request::COUNT]; Limit::ALL.len()],
}

impl Part for Moment {
    fn join(&mut self, other: &Moment) {
        let sums = self.time_ns.as_flattened_mut().iter_mut();
        sums.zip(other.time_ns.as_flattened())
            .for_each(|(sum, part)| *sum = sum.saturating_add(*part));
    }
}

/// Pages as events count them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pages {
    pub(super) scanned: u64,
    pub(super) reclaimed: u64,
    /// Of these, of files.
    pub(super) reclaimed_file: u64,
}

/// Sums over all waits and events.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) waits: [u64; Limit::ALL.len()],
    pub(super) moment: Moment,
    pub(super) inside: Inside,
    /// Time in direct reclaim, and that of it with a kswapd awake, ns.
    pub(super) direct_ns: u64,
    pub(super) direct_awake_ns: u64,
    /// Time in direct reclaim for blocks of costly orders other than huge pages, ns.
    pub(super) high_orders_ns: u64,
    /// Time of reclaim that found used pages only, ns.
    pub(super) used_ns: u64,
    /// Waits still open at the end, and their time until then, ns.
    pub(super) open: (u64, u64),
    /// Pages by tasks, kswapd, and those who reclaim before anybody waits.
    pub(super) tasks_pages: Pages,
    pub(super) kswapd_pages: Pages,
    pub(super) proactive_pages: Pages,
    pub(super) kswapd_seen: bool,
    pub(super) oom_kills: u64,
    /// Time of reclaim from memory cgroups that somebody asked for (`memory.reclaim`), ns.
    pub(super) asked_ns: u64,
    /// Blocks of another migrate type that were broken up.
    pub(super) fragmenting: u64,
}

/// Collects what the answer needs: a [`Sink`]. Ends with [`finish`](WhyReport::finish).
#[derive(Debug, Clone, Default)]
pub struct WhyReport {
    pub(super) options: WhyOptions,
    pub(super) threads: Threads,
    pub(super) awake: Awake,
    pub(super) sums: Sums,
    pub(super) course: Slices<Moment>,
    pub(super) episodes: Episodes,
    pub(super) longest: Vec<Wait>,
    pub(super) waiters: TaskSet,
    pub(super) dirty: DirtyState,
    /// Who woke kswapd for costly orders: task, order and flags.
    pub(super) askers: BTreeMap<(u32, u8, u64), u64>,
    pub(super) span_ns: Option<(u64, u64)>,
    pub(super) kswapd_awake_ns: u64,
    impossible: u64,
}

impl WhyReport {
    /// A report without events.
    pub fn new(options: WhyOptions) -> WhyReport {
        WhyReport {
            options,
            ..WhyReport::default()
        }
    }

    /// The answer, with what else is known of the time that the events are from.
    pub fn finish(
        mut self,
        tables: &Tables,
        account: &Account,
        surroundings: &Surroundings,
    ) -> Answer {
        let last_ns = self.span_ns.map_or(0, |(_, last)| last);
        self.kswapd_awake_ns = self.awake.until(last_ns);
        for thread in self.threads.all() {
            if let Some(open) = thread.open.filter(|open| open.counts) {
                let (number, ns) = self.sums.open;
                let so_far = last_ns.saturating_sub(open.wait.begin_ns);
                self.sums.open = (number + 1, ns.saturating_add(so_far));
            }
        }
        if surroundings.no_group_at_limit {
            self.disown_memcg();
        }
        let evidence = Evidence::new(&self, surroundings);
        Answer::new(self, evidence, tables, account)
    }

    /// Events of dirty throttling that were left out: no kernel has such values.
    pub fn impossible(&self) -> u64 {
        self.impossible
    }

    fn within(&self, time_ns: u64) -> bool {
        self.options.from_ns.is_none_or(|from| time_ns >= from)
            && self.options.to_ns.is_none_or(|to| time_ns <= to)
    }

    fn begin(&mut self, at: (usize, u32), who: Who, pair: Pair, limit: Limit, event: &Event) {
        let order = order_of(event);
        let mut wait = begun(
            at.1,
            event.time_ns,
            limit,
            order,
            event.get(Field::GfpFlags),
        );
        wait.memcg = event.get(Field::MemcgId).filter(|id| *id > 1);
        let awake_ns = self.awake.until(event.time_ns);
        self.threads.thread(at.0).begin(Open {
            pair,
            wait,
            awake_ns,
            counts: who == Who::Task,
        });
    }

    fn end(&mut self, at: (usize, u32), pair: Pair, event: &Event, who: Who) {
        let Some(open) = self.threads.thread(at.0).end(pair, event.time_ns) else {
            return;
        };
        let mut wait = open.wait;
        let awake_ns = self.awake.until(event.time_ns);
        wait.kswapd_ns = awake_ns.saturating_sub(open.awake_ns).min(wait.length_ns());
        wait.inside.fit(wait.length_ns());
        if who == Who::Task {
            self.note(wait);
        }
    }

    /// What of a wait lies within the window of time.
    fn cut(&self, mut wait: Wait) -> Option<Wait> {
        let length = wait.length_ns();
        wait.begin_ns = wait.begin_ns.max(self.options.from_ns.unwrap_or(0));
        wait.end_ns = wait.end_ns.min(self.options.to_ns.unwrap_or(u64::MAX));
        let outside = wait.end_ns < wait.begin_ns || length > 0 && wait.length_ns() == 0;
        (!outside).then_some(wait)
    }

    /// A wait is over.
    fn note(&mut self, wait: Wait) {
        let Some(mut wait) = self.cut(wait) else {
            return;
        };
        wait.inside.fit(wait.length_ns());
        wait.kswapd_ns = wait.kswapd_ns.min(wait.length_ns());
        let (limit, request) = (wait.limit as usize, wait.request as usize);
        let length = wait.length_ns();
        let sums = &mut self.sums;
        sums.waits[limit] += 1;
        let add = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part);
        add(&mut sums.moment.time_ns[limit][request], length);
        sums.inside.add(wait.inside);
        if wait.limit == Limit::Global {
            add(&mut sums.direct_ns, length);
            add(&mut sums.direct_awake_ns, wait.kswapd_ns);
            self.awake.waited(wait.kswapd_ns);
            if wait.order > COSTLY_ORDER {
                add(&mut sums.high_orders_ns, length);
            }
        }
        if wait.finds_used_pages() {
            add(&mut sums.used_ns, length);
        }
        self.course.spread(wait.begin_ns, wait.end_ns, |m| {
            &mut m.time_ns[limit][request]
        });
        self.episodes.add(&wait);
        self.waiters.add(wait.task);
        let top = self.options.top.min(TOP_MAX);
        let at = self
            .longest
            .partition_point(|known| known.length_ns() >= length);
        if at < top {
            self.longest.insert(at, wait);
            self.longest.truncate(top);
        }
    }

    fn throttled(&mut self, at: (usize, u32), event: &Event, who: Who) {
        let delayed_ns = count(event, Field::UsecDelayed).saturating_mul(1000);
        let reason = event.get(Field::ThrottleReason).unwrap_or(0);
        let add = |inside: &mut Inside| {
            let part = match event.kind {
                Kind::Throttled => inside.throttled(reason),
                _ => &mut inside.congestion_ns,
            };
            *part = part.saturating_add(delayed_ns);
        };
        if let Some(open) = &mut self.threads.thread(at.0).open {
            add(&mut open.wait.inside);
        } else if event.kind == Kind::Throttled && who == Who::Task {
            // Compaction throttles as well (`too_many_isolated`), and its begin may not be in the trace.
            let begin_ns = event.time_ns.saturating_sub(delayed_ns);
            let mut wait = begun(at.1, begin_ns, Limit::Global, 0, None);
            wait.end_ns = event.time_ns;
            add(&mut wait.inside);
            wait.inside.fit(wait.length_ns());
            self.note(wait);
        }
    }

    /// A batch of a list was gone through.
    fn shrink(&mut self, at: (usize, u32), event: &Event, who: Who) {
        let [scanned, reclaimed] = [Field::NrScanned, Field::NrReclaimed].map(|f| count(event, f));
        let kept = [
            Field::NrActivate,
            Field::NrActivateAnon,
            Field::NrActivateFile,
            Field::NrRefKeep,
        ];
        let add = |sum: &mut u64, part: u64| *sum = sum.saturating_add(part);
        if let Some(open) = &mut self.threads.thread(at.0).open {
            add(&mut open.wait.scanned, scanned);
            add(&mut open.wait.reclaimed, reclaimed);
            for field in kept {
                add(&mut open.wait.kept, count(event, field));
            }
        }
        let pages = match who {
            Who::Kswapd => &mut self.sums.kswapd_pages,
            Who::Proactive => &mut self.sums.proactive_pages,
            Who::Task | Who::Unwanted => &mut self.sums.tasks_pages,
        };
        add(&mut pages.scanned, scanned);
        add(&mut pages.reclaimed, reclaimed);
        self.awake.reclaimed(reclaimed);
        let flags = event.get(Field::Flags).unwrap_or(0);
        if flags & RECLAIM_WB_FILE != 0 && flags & RECLAIM_WB_ANON == 0 {
            add(&mut pages.reclaimed_file, reclaimed);
        }
    }

    /// A writer looks at the limits, and pauses or not.
    fn balance_dirty(&mut self, at: (usize, u32), event: &Event, who: Who) {
        self.dirty.look(event);
        let pause = pause_ms(event);
        if pause == 0 || who != Who::Task {
            return;
        }
        let mut wait = begun(at.1, event.time_ns, Limit::Dirty, 0, None);
        wait.request = Request::FileWrite;
        wait.end_ns = event.time_ns.saturating_add(pause * 1_000_000);
        if let Some(wait) = self.cut(wait) {
            self.dirty.pause(event, wait.begin_ns..wait.end_ns);
            self.note(wait);
        }
    }

    /// Kernels before 3.2 tell both ends of a writer's wait.
    fn balance_dirty_ends(&mut self, at: (usize, u32), begins: bool, event: &Event, who: Who) {
        let since = &mut self.threads.thread(at.0).dirty_since;
        if begins {
            since.get_or_insert(event.time_ns);
            return;
        }
        if let Some(since) = since.take().filter(|_| who == Who::Task) {
            let mut wait = begun(at.1, since, Limit::Dirty, 0, None);
            wait.request = Request::FileWrite;
            wait.end_ns = event.time_ns;
            self.note(wait);
        }
    }

    fn compaction(&mut self, at: (usize, u32), begins: bool, event: &Event, who: Who) {
        let awake_ns = self.awake.until(event.time_ns);
        let thread = self.threads.thread(at.0);
        let inside = thread.open.filter(|open| open.pair != Pair::Compaction);
        match (inside.is_some(), begins) {
            (true, true) => thread.compaction_since = Some(event.time_ns),
            (true, false) => {
                let since = thread.compaction_since.take();
                if let (Some(since), Some(open)) = (since, &mut thread.open) {
                    let part = &mut open.wait.inside.compaction_ns;
                    *part = part.saturating_add(event.time_ns.saturating_sub(since));
                }
            }
            (false, true) => {
                let (order, gfp) = thread.asked.unwrap_or((0, None));
                let wait = begun(at.1, event.time_ns, Limit::Fragmentation, order, gfp);
                thread.begin(Open {
                    pair: Pair::Compaction,
                    wait,
                    awake_ns,
                    counts: who == Who::Task,
                });
            }
            (false, false) => self.end(at, Pair::Compaction, event, who),
        }
    }

    fn slab(&mut self, at: (usize, u32), begins: bool, event: &Event) {
        let thread = self.threads.thread(at.0);
        let Some(open) = &mut thread.open else {
            return;
        };
        if begins {
            thread.slab_since = Some(event.time_ns);
        } else if let Some(since) = thread.slab_since.take() {
            let part = &mut open.wait.inside.slab_ns;
            *part = part.saturating_add(event.time_ns.saturating_sub(since));
        }
    }

    fn wakeup(&mut self, task: u32, event: &Event) {
        let order = order_of(event);
        if order > COSTLY_ORDER {
            let key = (task, order, event.get(Field::GfpFlags).unwrap_or(0));
            if self.askers.len() < ASKERS_MAX || self.askers.contains_key(&key) {
                *self.askers.entry(key).or_default() += 1;
            }
        }
    }

    /// What reclaim of a begin is limited by. For a huge page, or another block that nothing smaller can stand for, it makes
    /// room for compaction; whoever else asks for a block of a costly order would as well take small pages, and waits as
    /// memory is short.
    fn limit_of(event: &Event) -> Limit {
        let order = order_of(event);
        let request = Request::of_order(order, event.get(Field::GfpFlags));
        let block = matches!(request, Request::Huge | Request::Block);
        if order > COSTLY_ORDER && block {
            Limit::Fragmentation
        } else {
            Limit::Global
        }
    }

    fn kswapd(&mut self, thread: usize, event: &Event) {
        let first_ns = self.span_ns.map_or(event.time_ns, |(first, _)| first);
        self.sums.kswapd_seen = true;
        match event.kind {
            Kind::KswapdWake => self.awake.wake(thread, event.time_ns),
            Kind::KswapdSleep => {
                self.awake.works(thread, first_ns);
                self.awake.sleep(thread, event.time_ns);
            }
            _ => self.awake.works(thread, first_ns),
        }
    }

    fn take(&mut self, at: (usize, u32), event: &Event, who: Who) {
        match event.kind {
            Kind::DirectReclaimBegin => {
                self.begin(at, who, Pair::Direct, WhyReport::limit_of(event), event);
            }
            Kind::DirectReclaimEnd => self.end(at, Pair::Direct, event, who),
            Kind::MemcgReclaimBegin => self.begin(at, who, Pair::Memcg, Limit::Memcg, event),
            Kind::MemcgReclaimEnd => self.end(at, Pair::Memcg, event, who),
            Kind::MemcgSoftlimitReclaimBegin => {
                self.begin(at, who, Pair::Softlimit, Limit::Memcg, event);
            }
            Kind::MemcgSoftlimitReclaimEnd => self.end(at, Pair::Softlimit, event, who),
            Kind::NodeReclaimBegin => self.begin(at, who, Pair::Node, Limit::Node, event),
            Kind::NodeReclaimEnd => self.end(at, Pair::Node, event, who),
            Kind::TryToCompactPages => {
                let order = order_of(event);
                self.threads.thread(at.0).asked = Some((order, event.get(Field::GfpFlags)));
            }
            Kind::CompactionBegin => self.compaction(at, true, event, who),
            Kind::CompactionEnd => self.compaction(at, false, event, who),
            Kind::ShrinkSlabStart => self.slab(at, true, event),
            Kind::ShrinkSlabEnd => self.slab(at, false, event),
            Kind::Throttled | Kind::CongestionWait | Kind::WaitIffCongested => {
                self.throttled(at, event, who);
            }
            Kind::LruShrinkInactive | Kind::ReclaimPages => self.shrink(at, event, who),
            Kind::WakeupKswapd => self.wakeup(at.1, event),
            Kind::BalanceDirtyPages => self.balance_dirty(at, event, who),
            Kind::BalanceDirtyStart | Kind::WbcBalanceDirtyStart => {
                self.balance_dirty_ends(at, true, event, who);
            }
            Kind::BalanceDirtyWait | Kind::WbcBalanceDirtyWait => {
                self.balance_dirty_ends(at, false, event, who);
            }
            Kind::GlobalDirtyState => self.dirty.thresholds(event),
            Kind::BdiDirtyRatelimit => {
                let told = event.get(Field::WriteBw).filter(|rate| *rate > 0);
                if let Some(rate) = told {
                    self.dirty.bandwidth.0 += u128::from(rate);
                    self.dirty.bandwidth.1 += 1;
                }
            }
            Kind::MarkVictim => self.sums.oom_kills += 1,
            Kind::MmPageAllocExtfrag => {
                let fragmenting = event.signed(Field::Fragmenting).unwrap_or(0) > 0;
                self.sums.fragmenting += u64::from(fragmenting);
            }
            _ => {}
        }
    }
}

/// The order that an event tells; 0 if it tells none.
fn order_of(event: &Event) -> u8 {
    let order = event.signed(Field::Order);
    order.map_or(0, |order| order.clamp(0, 255) as u8)
}

/// Whether an event begins or ends something that may reach into a window.
fn is_paired(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::DirectReclaimBegin
            | Kind::DirectReclaimEnd
            | Kind::MemcgReclaimBegin
            | Kind::MemcgReclaimEnd
            | Kind::MemcgSoftlimitReclaimBegin
            | Kind::MemcgSoftlimitReclaimEnd
            | Kind::NodeReclaimBegin
            | Kind::NodeReclaimEnd
            | Kind::TryToCompactPages
            | Kind::CompactionBegin
            | Kind::CompactionEnd
            | Kind::ShrinkSlabStart
            | Kind::ShrinkSlabEnd
            | Kind::BalanceDirtyPages
            | Kind::BalanceDirtyStart
            | Kind::BalanceDirtyWait
            | Kind::WbcBalanceDirtyStart
            | Kind::WbcBalanceDirtyWait
    )
}

impl Sink for WhyReport {
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        // Text has microseconds: all carriers of one run are to give the same answer.
        let mut event = *event;
        event.time_ns = microseconds(event.time_ns).saturating_mul(1000);
        let (first, last) = self.span_ns.unwrap_or((event.time_ns, event.time_ns));
        self.span_ns = Some((first.min(event.time_ns), last.max(event.time_ns)));
        if is_impossible(&event) {
            self.impossible += 1;
            return;
        }
        let wanted = self.options.task.as_deref();
        let Some((thread, task, who)) = self.threads.find(event.task, tables, wanted) else {
            return;
        };
        if who == Who::Kswapd {
            self.kswapd(thread, &event);
        }
        self.course.at(event.time_ns);
        // A wait may end after the window: begins and ends are always taken, and cut to it.
        if is_paired(event.kind) || self.within(event.time_ns) {
            self.take((thread, task), &event, who);
        }
    }
}
