//! The sink: takes events one by one and keeps what the report needs.
//!
//! 1. The task of an event is looked up by its index; what it is (kswapd or not) was decided when it was
//!    first seen, so that no text is looked at per event. A task that the trace names in some lines only is one,
//!    see [`namesakes`](super::namesakes).
//! 2. Begins and ends are paired by task, see [`tasks`](super::tasks).
//! 3. Pages go to the task under what it is at that moment, to the order and the memory cgroup of the
//!    reclaim that is open, and to the slice of time.
//! 4. Durations go to the whole, to the task, and to order and memory cgroup.
//!
//! Memory is bounded by the number of tasks (which the source limits), of [`MEMCGS_MAX`] memory cgroups, of
//! [`DISTRIBUTIONS_MAX`] tasks with distributions of their own, and of slices. It takes about 50 ns an event.

use super::compat::CompatReport;
use super::distribution::{Distribution, microseconds};
use super::namesakes::{Namesakes, Owner};
use super::pages::{Actor, Pages, count};
use super::slices::Slices;
use super::tasks::{NO_MEMCG, ORDERS, Open, Pairs, Span, Task, Thread, is_kswapd, order_index};
use lowmark_record::{Event, Field, Kind, Release, Sink, Tables};
use std::collections::HashMap;

/// Most memory cgroups that are told apart; all beyond are one.
pub(super) const MEMCGS_MAX: usize = 4096;

/// Most tasks that have distributions of their own.
const DISTRIBUTIONS_MAX: usize = 4096;

/// Reasons of throttling that exist, one bit each, and one more for none or several.
pub(super) const REASONS: usize = 5;

/// Pages of one order or memory cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct PageCounts {
    /// Pages scanned, by `mm_vmscan_lru_shrink_inactive`, else by isolations.
    pub scanned: u64,
    /// Pages reclaimed.
    pub reclaimed: u64,
    /// Pages written.
    pub written: u64,
}

/// What is kept by order and by memory cgroup.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) pages: PageCounts,
    pub(super) isolated: u64,
    pub(super) direct: Distribution,
    pub(super) memcg: Distribution,
}

/// Waits: number, time and how many were as long as they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Waits {
    /// How many.
    pub number: u64,
    /// Their time, µs.
    pub time_us: u64,
    /// Those that lasted at least as long as allowed.
    pub full: u64,
}

impl Waits {
    fn add(&mut self, delayed_us: u64, timeout_us: u64) {
        self.number += 1;
        self.time_us = self.time_us.saturating_add(delayed_us);
        self.full += u64::from(delayed_us >= timeout_us);
    }
}

/// How a report is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReclaimOptions {
    /// Also finds out what the kernel's script would say, so that the report can show both.
    pub compare_script: bool,
    /// See [`CompatReport::new`].
    pub release: Option<Release>,
}

/// Collects what the reports on reclaim need: a [`Sink`]. Ends with
/// [`finish`](ReclaimReport::finish).
#[derive(Debug, Clone)]
pub struct ReclaimReport {
    pub(super) kinds: Vec<u64>,
    /// By index of the task plus one; the first stands for tasks that are not known.
    pub(super) tasks: Vec<Task>,
    /// By index of the thread; the first is that of tasks that are not known.
    pub(super) threads: Vec<Thread>,
    threads_by_pid: HashMap<i32, u32>,
    namesakes: Namesakes,
    with_distributions: usize,
    pub(super) pairs: [Pairs; Span::PAIRED],
    pub(super) spans: [Distribution; 10],
    pub(super) orders: Vec<Group>,
    pub(super) memcgs: Vec<Group>,
    memcg_indices: HashMap<u64, u32>,
    /// Waits of others and of kswapd, in `congestion_wait` and `wait_iff_congested`.
    pub(super) congestion: [[Waits; 2]; 2],
    /// Throttling of others and of kswapd, by reason.
    pub(super) throttled: [[Waits; REASONS]; 2],
    pub(super) slices: Slices,
    pub(super) span_ns: Option<(u64, u64)>,
    /// Events whose flag columns the kernel's script does not accept, by kind.
    pub(super) blind: Vec<u64>,
    pub(super) compat: Option<Box<CompatReport>>,
}

impl Default for ReclaimReport {
    fn default() -> Self {
        ReclaimReport::new(ReclaimOptions::default())
    }
}

impl ReclaimReport {
    /// A report without events.
    pub fn new(options: ReclaimOptions) -> ReclaimReport {
        let compat = options
            .compare_script
            .then(|| Box::new(CompatReport::new(options.release)));
        ReclaimReport {
            kinds: vec![0; Kind::ALL.len()],
            tasks: vec![Task::default()],
            threads: vec![Thread::default()],
            threads_by_pid: HashMap::new(),
            namesakes: Namesakes::default(),
            with_distributions: 0,
            pairs: Default::default(),
            spans: Default::default(),
            orders: vec![Group::default(); ORDERS],
            memcgs: Vec::new(),
            memcg_indices: HashMap::new(),
            congestion: Default::default(),
            throttled: Default::default(),
            slices: Slices::default(),
            span_ns: None,
            blind: vec![0; Kind::ALL.len()],
            compat,
        }
    }

    /// Ids of the memory cgroups by index; the last index may stand for all beyond the limit.
    pub(super) fn memcg_ids(&self) -> Vec<Option<u64>> {
        let mut ids = vec![None; self.memcgs.len()];
        for (&id, &index) in &self.memcg_indices {
            if let Some(place) = ids.get_mut(index as usize) {
                *place = Some(id);
            }
        }
        ids
    }

    /// Index of the task in `tasks`.
    #[inline]
    fn task(&mut self, event: &Event, tables: &Tables) -> usize {
        let owner = self.namesakes.owner(event.task, tables);
        let index = (owner.task as usize).saturating_add(1);
        match self.tasks.get(index) {
            Some(task) if task.seen => index,
            _ => self.meet(owner, event.time_ns, tables),
        }
    }

    #[cold]
    fn meet(&mut self, owner: Owner, time_ns: u64, tables: &Tables) -> usize {
        let Some(actor) = tables.actor(owner.task) else {
            return 0;
        };
        let index = owner.task as usize + 1;
        if self.tasks.len() <= index {
            self.tasks.resize_with(index + 1, Task::default);
        }
        let next = self.threads.len() as u32;
        let thread = if actor.pid > 0 {
            *self.threads_by_pid.entry(actor.pid).or_insert(next)
        } else {
            next
        };
        if thread == next {
            self.threads.push(Thread::default());
        }
        let task = &mut self.tasks[index];
        task.seen = true;
        task.thread = thread;
        if is_kswapd(&actor.name) {
            task.kswapd = Some(Box::default());
        }
        let waiting = owner.adopts.and_then(|waiting| {
            let waiting = self.tasks.get_mut(waiting as usize + 1)?;
            Some(std::mem::take(waiting))
        });
        if let Some(before) = waiting {
            self.tasks[index].adopt(before, time_ns);
        }
        index
    }

    #[inline]
    fn thread(&self, task: usize) -> &Thread {
        &self.threads[self.tasks[task].thread as usize]
    }

    #[inline]
    fn open(&mut self, task: usize, span: Span) -> &mut Option<Open> {
        &mut self.threads[self.tasks[task].thread as usize].open[span as usize]
    }

    /// Who a task is right now.
    #[inline]
    fn actor(&self, task: usize) -> Actor {
        if self.tasks[task].kswapd.is_some() {
            Actor::Kswapd
        } else {
            self.thread(task).actor()
        }
    }

    fn memcg(&mut self, event: &Event) -> u32 {
        let Some(id) = event.get(Field::MemcgId) else {
            return NO_MEMCG;
        };
        if let Some(&index) = self.memcg_indices.get(&id) {
            return index;
        }
        let index = self.memcgs.len().min(MEMCGS_MAX);
        if index == self.memcgs.len() {
            self.memcgs.push(Group::default());
        }
        if index < MEMCGS_MAX {
            self.memcg_indices.insert(id, index as u32);
        }
        index as u32
    }

    fn begin(&mut self, task: usize, span: Span, event: &Event) {
        let open = Open {
            begin_ns: event.time_ns,
            order: order_index(event.signed(Field::Order).unwrap_or(0)),
            memcg: if matches!(span, Span::Direct | Span::Memcg | Span::MemcgSoftlimit) {
                self.memcg(event)
            } else {
                NO_MEMCG
            },
        };
        let nested = self.open(task, span).replace(open).is_some();
        let pairs = &mut self.pairs[span as usize];
        pairs.begins += 1;
        pairs.nested_begins += u64::from(nested);
        if span == Span::Direct {
            let counts = self.tasks[task].counts();
            counts.begins += 1;
            counts.begins_by_order[usize::from(open.order)] += 1;
            counts.stale_begin = Some(open.begin_ns);
        }
    }

    fn end(&mut self, task: usize, span: Span, event: &Event) {
        let open = self.open(task, span).take();
        let pairs = &mut self.pairs[span as usize];
        pairs.ends += 1;
        let Some(open) = open else {
            pairs.ends_without_begin += 1;
            if span == Span::Direct {
                let counts = self.tasks[task].counts();
                match counts.stale_begin {
                    Some(begin) => {
                        let stale = event.time_ns.saturating_sub(begin);
                        counts.stale_ns = counts.stale_ns.saturating_add(stale);
                    }
                    None => counts.ends_before_begin += 1,
                }
            }
            return;
        };
        let (begin_ns, end_ns) = (open.begin_ns, event.time_ns);
        let duration = end_ns.saturating_sub(begin_ns);
        self.duration(task, span, duration);
        match span {
            Span::Direct => {
                self.slices.spread(begin_ns, end_ns, |s| &mut s.direct_ns);
            }
            Span::Memcg => {
                self.slices.spread(begin_ns, end_ns, |s| &mut s.memcg_ns);
            }
            _ => return,
        }
        let by_order = self.orders.get_mut(usize::from(open.order));
        let by_memcg = self.memcgs.get_mut(open.memcg as usize);
        for group in [by_order, by_memcg].into_iter().flatten() {
            let distribution = match span {
                Span::Direct => &mut group.direct,
                _ => &mut group.memcg,
            };
            distribution.record_ns(duration);
        }
    }

    fn duration(&mut self, task: usize, span: Span, duration_ns: u64) {
        self.spans[span as usize].record_ns(duration_ns);
        let task = &mut self.tasks[task];
        if task.spans[span as usize].is_none() {
            if task.spans.iter().all(Option::is_none) {
                self.with_distributions += 1;
            }
            if self.with_distributions > DISTRIBUTIONS_MAX {
                self.with_distributions = DISTRIBUTIONS_MAX + 1;
                return;
            }
        }
        task.spans[span as usize]
            .get_or_insert_default()
            .record_ns(duration_ns);
    }

    /// Whether tasks had no distributions of their own because there are too many.
    pub(super) fn distributions_short(&self) -> bool {
        self.with_distributions > DISTRIBUTIONS_MAX
    }

    fn wait(&mut self, task: usize, span: Span, event: &Event) {
        let delayed = count(event, Field::UsecDelayed);
        let timeout = count(event, Field::UsecTimeout);
        let kswapd = usize::from(self.tasks[task].kswapd.is_some());
        let waits = match span {
            Span::CongestionWait => &mut self.congestion[kswapd][0],
            Span::WaitIffCongested => &mut self.congestion[kswapd][1],
            _ => {
                let reason = event.get(Field::ThrottleReason).unwrap_or(0);
                let index = match reason {
                    1 => 0,
                    2 => 1,
                    4 => 2,
                    8 => 3,
                    _ => REASONS - 1,
                };
                &mut self.throttled[kswapd][index]
            }
        };
        waits.add(delayed, timeout);
        let delayed_ns = delayed.saturating_mul(1000);
        self.duration(task, span, delayed_ns);
        let end_ns = event.time_ns;
        let begin_ns = end_ns.saturating_sub(delayed_ns);
        self.slices
            .spread(begin_ns, end_ns, |s| &mut s.throttled_ns);
    }

    fn isolate(&mut self, task: usize, event: &Event) {
        let actor = self.actor(task);
        let scanned = self.tasks[task].pages(actor).isolate(event);
        let slice = self.slices.at(event.time_ns);
        slice.isolated[actor as usize] = slice.isolated[actor as usize].saturating_add(scanned);
        self.grouped(task, |group| {
            group.isolated = group.isolated.saturating_add(scanned);
        });
    }

    fn shrink(&mut self, task: usize, event: &Event) {
        let actor = self.actor(task);
        let (scanned, reclaimed) = self.tasks[task].pages(actor).shrink(event);
        let slice = self.slices.at(event.time_ns);
        let at = actor as usize;
        slice.scanned[at] = slice.scanned[at].saturating_add(scanned);
        slice.reclaimed[at] = slice.reclaimed[at].saturating_add(reclaimed);
        self.grouped(task, |group| {
            group.pages.scanned = group.pages.scanned.saturating_add(scanned);
            group.pages.reclaimed = group.pages.reclaimed.saturating_add(reclaimed);
        });
    }

    fn written(&mut self, task: usize, event: &Event) {
        let actor = self.actor(task);
        let flags = event.get(Field::Flags).unwrap_or(0);
        self.tasks[task].pages(actor).writes.add(flags);
        self.slices.at(event.time_ns).written[actor as usize] += 1;
        self.grouped(task, |group| group.pages.written += 1);
    }

    /// Applies `change` to the order and the memory cgroup of the reclaim that is open.
    #[inline]
    fn grouped(&mut self, task: usize, change: impl Fn(&mut Group)) {
        if let Some(open) = self.thread(task).reclaim() {
            let by_order = self.orders.get_mut(usize::from(open.order));
            let by_memcg = self.memcgs.get_mut(open.memcg as usize);
            by_order.into_iter().chain(by_memcg).for_each(change);
        }
    }

    fn freed(&mut self, task: usize, event: &Event) {
        let actor = self.actor(task);
        let freed = count(event, Field::NrReclaimed);
        let pages: &mut Pages = self.tasks[task].pages(actor);
        pages.freed = pages.freed.saturating_add(freed);
    }

    fn kswapd_wake(&mut self, task: usize, event: &Event) {
        // A trace may know the thread by another name; what wakes as kswapd is one.
        let kswapd = self.tasks[task].kswapd.get_or_insert_default();
        let order = usize::from(order_index(event.signed(Field::Order).unwrap_or(0)));
        kswapd.known = true;
        if kswapd.woke_ns.is_none() {
            kswapd.woke_ns = Some(event.time_ns);
            kswapd.wakes += 1;
            kswapd.wakes_by_order[order] += 1;
        } else {
            kswapd.rewakes += 1;
            kswapd.rewakes_by_order[order] += 1;
        }
    }

    fn kswapd_sleep(&mut self, task: usize, event: &Event) {
        let kswapd = self.tasks[task].kswapd.get_or_insert_default();
        kswapd.sleeps += 1;
        let Some(woke_ns) = kswapd.woke_ns.take() else {
            kswapd.sleeps_without_wake += 1;
            kswapd.since_boot_ns = kswapd.since_boot_ns.saturating_add(event.time_ns);
            if !kswapd.known {
                kswapd.awake_at_start.get_or_insert(event.time_ns);
            }
            kswapd.known = true;
            return;
        };
        let awake = event.time_ns.saturating_sub(woke_ns);
        kswapd.awake_ns = kswapd.awake_ns.saturating_add(awake);
        self.slices
            .spread(woke_ns, event.time_ns, |s| &mut s.kswapd_ns);
    }

    fn wakeup_kswapd(&mut self, task: usize, event: &Event) {
        let order = order_index(event.signed(Field::Order).unwrap_or(0));
        let counts = self.tasks[task].counts();
        counts.requests += 1;
        counts.requests_by_order[usize::from(order)] += 1;
    }

    /// The pair that an event opens or closes, and whether it opens it.
    #[inline]
    fn pair(kind: Kind) -> Option<(Span, bool)> {
        let pair = match kind {
            Kind::DirectReclaimBegin => (Span::Direct, true),
            Kind::DirectReclaimEnd => (Span::Direct, false),
            Kind::MemcgReclaimBegin => (Span::Memcg, true),
            Kind::MemcgReclaimEnd => (Span::Memcg, false),
            Kind::MemcgSoftlimitReclaimBegin => (Span::MemcgSoftlimit, true),
            Kind::MemcgSoftlimitReclaimEnd => (Span::MemcgSoftlimit, false),
            Kind::NodeReclaimBegin => (Span::NodeReclaim, true),
            Kind::NodeReclaimEnd => (Span::NodeReclaim, false),
            Kind::ShrinkSlabStart => (Span::ShrinkSlab, true),
            Kind::ShrinkSlabEnd => (Span::ShrinkSlab, false),
            Kind::CompactionBegin => (Span::Compaction, true),
            Kind::CompactionEnd => (Span::Compaction, false),
            Kind::BalancePgdatBegin => (Span::BalancePgdat, true),
            Kind::BalancePgdatEnd => (Span::BalancePgdat, false),
            _ => return None,
        };
        Some(pair)
    }
}

impl Sink for ReclaimReport {
    #[inline]
    fn event(&mut self, event: &Event, tables: &Tables) {
        if let Some(compat) = &mut self.compat {
            let read = compat.take(event, tables);
            self.blind[event.kind as usize] += u64::from(!read);
        }
        self.kinds[event.kind as usize] += 1;
        // Text has microseconds: all carriers of one run are to give the same report.
        let time_ns = microseconds(event.time_ns).saturating_mul(1000);
        let mut rounded;
        let event = if event.time_ns == time_ns {
            event
        } else {
            rounded = *event;
            rounded.time_ns = time_ns;
            &rounded
        };
        let (first, last) = self.span_ns.unwrap_or((event.time_ns, event.time_ns));
        self.span_ns = Some((first.min(event.time_ns), last.max(event.time_ns)));
        self.slices.at(event.time_ns).events += 1;
        let task = self.task(event, tables);
        if let Some(kswapd) = &mut self.tasks[task].kswapd {
            let begins = matches!(event.kind, Kind::KswapdWake | Kind::KswapdSleep);
            if !kswapd.known && !begins {
                kswapd.awake_at_start.get_or_insert(event.time_ns);
            }
        }
        match event.kind {
            Kind::LruIsolate | Kind::MemcgIsolate => self.isolate(task, event),
            Kind::LruShrinkInactive => self.shrink(task, event),
            Kind::Writepage | Kind::WriteFolio => self.written(task, event),
            Kind::KswapdWake => self.kswapd_wake(task, event),
            Kind::KswapdSleep => self.kswapd_sleep(task, event),
            Kind::WakeupKswapd => self.wakeup_kswapd(task, event),
            Kind::Throttled => self.wait(task, Span::Throttled, event),
            Kind::CongestionWait => self.wait(task, Span::CongestionWait, event),
            Kind::WaitIffCongested => self.wait(task, Span::WaitIffCongested, event),
            Kind::ReclaimPages => {
                let actor = self.actor(task);
                let pages = self.tasks[task].pages(actor);
                let add = |sum: &mut u64, field| *sum = sum.saturating_add(count(event, field));
                add(&mut pages.named_scanned, Field::NrScanned);
                add(&mut pages.named_reclaimed, Field::NrReclaimed);
            }
            kind => match Self::pair(kind) {
                Some((span, true)) => self.begin(task, span, event),
                Some((span, false)) => {
                    let reclaim = matches!(span, Span::Direct | Span::Memcg);
                    if reclaim && self.open(task, span).is_some() {
                        self.freed(task, event);
                    }
                    self.end(task, span, event);
                }
                None => {}
            },
        }
    }
}
