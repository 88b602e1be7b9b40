//! What a trace came to: sums over tasks, times, and where each figure comes from.
//!
//! 1. Pages scanned and reclaimed are those of `mm_vmscan_lru_shrink_inactive` if the trace has it: on
//!    the classic LRU they equal `pgscan_*` and `pgsteal_*` of `/proc/vmstat`. (With the multi-generational LRU
//!    pages scanned exceed it: `evict_folios` reports a batch again when it tries it again.)
//! 2. Otherwise (2.6.36, or the event was not recorded) pages scanned are those of isolations of inactive
//!    lists. What kswapd reclaimed the trace does not say then: it is taken from `/proc/vmstat`, if given, as
//!    mmtests does. Direct reclaim has `nr_reclaimed` of its ends, slab included.
//! 3. Pages written are events, `mm_vmscan_writepage` and `mm_vmscan_write_folio`.

use super::compat::CompatSummary;
use super::distribution::{Distribution, Quantiles};
use super::pages::{Actor, Pages, Writes};
use super::proc_vmstat::VmstatChange;
use super::sink::{Group, MEMCGS_MAX, PageCounts, ReclaimReport, Waits};
use super::slices::Slices;
use super::tasks::{Kswapd, ORDERS, Pairs, Span};
use lowmark_record::stream::Account;
use lowmark_record::{Kind, Recording, Tables};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is known of a run besides its trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunContext {
    /// Change of `/proc/vmstat`.
    pub vmstat: Option<VmstatChange>,
    /// Elapsed time, s, as `time(1)` has it.
    pub elapsed_s: Option<f64>,
    /// User time of the test, s.
    pub user_s: Option<f64>,
    /// System time of the test, s.
    pub system_s: Option<f64>,
}

impl RunContext {
    /// What a recording says of its run: its counters, and times as time(1) has them, without kernel threads.
    pub fn of(recording: &Recording) -> RunContext {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let tasks = || recording.tasks.iter().filter(|task| !task.kthread);
        RunContext {
            vmstat: Some(VmstatChange {
                counters: recording.counters.clone(),
                fell: Vec::new(),
            }),
            elapsed_s: Some(seconds(recording.elapsed_ns)),
            user_s: Some(seconds(tasks().map(|task| task.user_ns).sum())),
            system_s: Some(seconds(tasks().map(|task| task.system_ns).sum())),
        }
    }
}

/// Pages of one actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Totals {
    /// Pages scanned.
    pub scanned: u64,
    /// Pages reclaimed; none where nothing says it.
    pub reclaimed: Option<u64>,
    /// Pages written.
    pub written: u64,
    /// Pages written, by kind.
    pub writes: Writes,
    /// Pages scanned by isolations of inactive lists.
    pub isolated: u64,
    /// Pages scanned by isolations as the kernel's script would count them, were its formats right.
    pub isolated_script: u64,
    /// Pages freed as ends of reclaim say, slab included.
    pub freed: u64,
    /// Pages looked at and reclaimed by name (`mm_vmscan_reclaim_pages`), which are in no other figure.
    pub named_scanned: u64,
    /// See `named_scanned`.
    pub named_reclaimed: u64,
}

/// A process, that is, one task of the trace: a name and a process id. Lines in which the trace has no name for
/// it (`<...>-PID`) are counted for the one that had the id under a name before, else for the next that has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessFigures {
    /// `comm`.
    pub name: String,
    /// Process id, -1 where the trace has none.
    pub pid: i32,
    /// Direct reclaims begun.
    pub direct_reclaims: u64,
    /// The same by order.
    pub direct_by_order: BTreeMap<usize, u64>,
    /// Wakes of kswapd asked for.
    pub requests: u64,
    /// The same by order.
    pub requests_by_order: BTreeMap<usize, u64>,
    /// Pages, in whatever it did.
    pub scanned: u64,
    /// Pages reclaimed.
    pub reclaimed: u64,
    /// Pages written.
    pub writes: Writes,
    /// What it was as kswapd.
    pub kswapd: Option<KswapdFigures>,
    /// Durations by name of [`Span`].
    pub stalls: BTreeMap<&'static str, Quantiles>,
}

/// A kswapd, or all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KswapdFigures {
    /// Times that it woke.
    pub wakeups: u64,
    /// The same by order.
    pub wakeups_by_order: BTreeMap<usize, u64>,
    /// Times that it was woken while awake.
    pub rewakeups: u64,
    /// The same by order.
    pub rewakeups_by_order: BTreeMap<usize, u64>,
    /// Times that it slept.
    pub sleeps: u64,
    /// Time from wake to sleep, ns.
    pub awake_ns: u64,
    /// Instances awake when the trace began.
    pub awake_at_start: u64,
    /// Their time until they slept or were woken anew is not known; sleeps that ended it.
    pub sleeps_without_wake: u64,
    /// Instances awake when the trace ended.
    pub awake_at_end: u64,
    /// Time of these from their wake to the end of the trace, ns; not in `awake_ns`.
    pub open_ns: u64,
    /// Sum of the times of sleeps without a wake: what a script takes for time awake, ns.
    pub since_boot_ns: u64,
}

/// Reclaim for one order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderFigures {
    /// Order.
    pub order: usize,
    /// Stalls in direct reclaim.
    pub direct: Quantiles,
    /// Stalls in reclaim for a memory cgroup.
    pub memcg: Quantiles,
    /// Pages of both.
    #[serde(flatten)]
    pub pages: PageCounts,
    /// Wakes of kswapd asked for.
    pub requests: u64,
    /// Times that kswapd woke for it.
    pub kswapd_wakeups: u64,
    /// Times that it was woken for it while awake.
    pub kswapd_rewakeups: u64,
}

/// Reclaim for one memory cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemcgFigures {
    /// Its id; none for all beyond the limit.
    pub id: Option<u64>,
    /// Stalls in direct reclaim.
    pub direct: Quantiles,
    /// Stalls in reclaim for its limit.
    pub memcg: Quantiles,
    /// Pages of both.
    #[serde(flatten)]
    pub pages: PageCounts,
}

/// What a kernel's script does with the events, as far as one pass can tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Script {
    /// Time measured from begins that had ended already, ns.
    pub(super) stale_ns: u64,
    /// Stalls of processes whose first event is an end, ns.
    pub(super) lost_ns: u64,
    /// Such processes.
    pub(super) lost_processes: u64,
    /// Wakes asked for by processes that never reclaim directly.
    pub(super) requests_of_others: u64,
    /// Events with flag columns that it does not accept, by kind.
    pub(super) blind: BTreeMap<&'static str, u64>,
}

/// The figures of one trace.
#[derive(Debug, Clone)]
pub struct ReclaimFigures {
    /// What the source held.
    pub account: Account,
    /// Events by tracepoint.
    pub events: BTreeMap<&'static str, u64>,
    /// Pages by [`Actor`], in the order of [`Actor::ALL`].
    pub totals: [Totals; 4],
    /// Whether `totals` come from `mm_vmscan_lru_shrink_inactive`.
    pub by_shrink_inactive: bool,
    /// Whether it is known which isolations were of inactive lists.
    pub isolations_certain: bool,
    /// Durations, in the order of [`Span::ALL`].
    pub spans: [Distribution; 10],
    /// How begins and ends met, in the order of [`Span::ALL`].
    pub pairs: [Pairs; Span::PAIRED],
    /// Wakes of kswapd asked for.
    pub requests: u64,
    /// All kswapd together.
    pub kswapd: KswapdFigures,
    /// Instances of kswapd.
    pub kswapds: u64,
    /// Waits of others and of kswapd, in `congestion_wait` and `wait_iff_congested`.
    pub congestion: [[Waits; 2]; 2],
    /// Throttling of others and of kswapd: writeback, isolated, noprogress, congested, anything else.
    pub throttled: [[Waits; 5]; 2],
    /// Pages written by others and by kswapd.
    pub writes: [Writes; 2],
    /// Tasks that took part, those that stalled longest first.
    pub processes: Vec<ProcessFigures>,
    /// Whether there were too many tasks for a distribution each.
    pub distributions_short: bool,
    /// Orders that occurred.
    pub orders: Vec<OrderFigures>,
    /// Memory cgroups, as far as their ids are known.
    pub memcgs: Vec<MemcgFigures>,
    /// The course over time.
    pub slices: Slices,
    /// What is known besides.
    pub context: RunContext,
    /// What the kernel's script says, without and with `--ignore-pid`, if it was asked for.
    pub compat: Option<[CompatSummary; 2]>,
    pub(super) script: Script,
}

fn by_order(counts: &[u64; ORDERS]) -> BTreeMap<usize, u64> {
    let some = counts.iter().copied().enumerate().filter(|(_, n)| *n > 0);
    some.collect()
}

impl ReclaimReport {
    /// Ends the report. `tables` and `account` are those of the source, `context` what else is known.
    pub fn finish(
        mut self,
        tables: &Tables,
        account: Account,
        context: RunContext,
    ) -> ReclaimFigures {
        self.close();
        let events = Kind::ALL.iter().zip(&self.kinds);
        let events: BTreeMap<_, _> = events
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| (kind.name(), *count))
            .collect();
        // Without an isolation nothing was taken off a list: what the ends of reclaim say is then hope
        // (`do_try_to_free_pages` returns 1) or slab.
        let by_shrink_inactive = self.kinds[Kind::LruShrinkInactive as usize] > 0
            || self.kinds[Kind::LruIsolate as usize] == 0;
        let mut by_actor: [Pages; 4] = Default::default();
        for task in &self.tasks {
            for (sum, pages) in by_actor.iter_mut().zip(&task.pages) {
                if let Some(pages) = pages {
                    sum.join(pages);
                }
            }
        }
        let plain = by_actor.iter().any(Pages::plain_modes);
        let isolations_certain = by_actor.iter().all(|p| p.isolated_inactive(plain).1);
        let mut totals = by_actor.map(|pages| totals(&pages, by_shrink_inactive, plain));
        if !by_shrink_inactive {
            reclaimed_elsewhere(&mut totals, &context);
        }
        let mut writes: [Writes; 2] = Default::default();
        for actor in Actor::ALL {
            let kswapd = usize::from(actor == Actor::Kswapd);
            writes[kswapd].join(&totals[actor as usize].writes);
        }
        let processes = self.processes(tables, by_shrink_inactive, plain);
        let kswapds = self.tasks.iter().filter_map(|t| t.kswapd.as_deref());
        let (mut kswapd, mut count) = (KswapdFigures::default(), 0);
        let end_ns = self.span_ns.map_or(0, |(_, last)| last);
        for one in kswapds {
            kswapd.join(&kswapd_figures(one, end_ns));
            count += 1;
        }
        let requests = self.tasks.iter().filter_map(|t| t.counts.as_deref());
        let mut requests_by_order = [0; ORDERS];
        for counts in requests {
            for (sum, n) in requests_by_order.iter_mut().zip(counts.requests_by_order) {
                *sum += n;
            }
        }
        let script = self.script();
        let compat = self.compat.take();
        ReclaimFigures {
            events,
            totals,
            by_shrink_inactive,
            isolations_certain,
            pairs: self.pairs,
            requests: requests_by_order.iter().sum(),
            orders: self.orders(&requests_by_order, &kswapd, by_shrink_inactive),
            memcgs: self.memcg_figures(by_shrink_inactive),
            kswapd,
            kswapds: count,
            congestion: self.congestion,
            throttled: self.throttled,
            writes,
            processes,
            distributions_short: self.distributions_short(),
            spans: self.spans,
            slices: self.slices,
            context,
            compat: compat.map(|c| [c.summary(false), c.summary(true)]),
            script,
            account,
        }
    }

    /// Accounts for what is open when the trace ends.
    fn close(&mut self) {
        let end_ns = self.span_ns.map_or(0, |(_, last)| last);
        for thread in &self.threads {
            for (open, pairs) in thread.open.iter().zip(&mut self.pairs) {
                if let Some(open) = open {
                    pairs.open_at_end += 1;
                    let so_far = end_ns.saturating_sub(open.begin_ns);
                    pairs.open_ns = pairs.open_ns.saturating_add(so_far);
                }
            }
            let spans = [Span::Direct, Span::Memcg];
            for span in spans {
                if let Some(open) = thread.open[span as usize] {
                    self.slices
                        .spread(open.begin_ns, end_ns, |slice| match span {
                            Span::Direct => &mut slice.direct_ns,
                            _ => &mut slice.memcg_ns,
                        });
                }
            }
        }
        for task in &self.tasks {
            if let Some(woke_ns) = task.kswapd.as_ref().and_then(|k| k.woke_ns) {
                self.slices.spread(woke_ns, end_ns, |s| &mut s.kswapd_ns);
            }
        }
    }

    fn processes(&self, tables: &Tables, by_shrink: bool, plain: bool) -> Vec<ProcessFigures> {
        let end_ns = self.span_ns.map_or(0, |(_, last)| last);
        let tasks = self.tasks.iter().enumerate();
        let mut processes: Vec<ProcessFigures> = tasks
            .filter(|(_, task)| task.took_part())
            .map(|(index, task)| {
                let task_index = u32::try_from(index).unwrap_or(0).wrapping_sub(1);
                let actor = tables.actor(task_index);
                let pages = task.all_pages();
                let totals = totals(&pages, by_shrink, plain);
                let counts = task.counts.as_deref().cloned().unwrap_or_default();
                let stalls = Span::ALL.iter().zip(&task.spans);
                ProcessFigures {
                    name: actor.map_or("<...>", |a| &a.name).to_owned(),
                    pid: actor.map_or(-1, |a| a.pid),
                    direct_reclaims: counts.begins,
                    direct_by_order: by_order(&counts.begins_by_order),
                    requests: counts.requests,
                    requests_by_order: by_order(&counts.requests_by_order),
                    scanned: totals.scanned,
                    reclaimed: totals.reclaimed.unwrap_or(totals.freed),
                    writes: totals.writes,
                    kswapd: task.kswapd.as_deref().map(|k| kswapd_figures(k, end_ns)),
                    stalls: stalls
                        .filter_map(|(span, d)| Some((span.name(), d.as_ref()?.quantiles())))
                        .collect(),
                }
            })
            .collect();
        // Equal ones stay in the order in which they appeared.
        processes.sort_by_key(|p| std::cmp::Reverse((p.stalled_us(), p.scanned)));
        processes
    }

    fn orders(
        &self,
        requests: &[u64; ORDERS],
        kswapd: &KswapdFigures,
        by_shrink: bool,
    ) -> Vec<OrderFigures> {
        let orders = self.orders.iter().enumerate().map(|(order, group)| {
            let of = |counts: &BTreeMap<usize, u64>| counts.get(&order).copied().unwrap_or(0);
            OrderFigures {
                order,
                direct: group.direct.quantiles(),
                memcg: group.memcg.quantiles(),
                pages: group.pages(by_shrink),
                requests: requests[order],
                kswapd_wakeups: of(&kswapd.wakeups_by_order),
                kswapd_rewakeups: of(&kswapd.rewakeups_by_order),
            }
        });
        let occurred = |o: &OrderFigures| {
            let stalls = o.direct.count + o.memcg.count;
            let wakes = o.requests + o.kswapd_wakeups + o.kswapd_rewakeups;
            stalls + wakes > 0 || o.pages != PageCounts::default()
        };
        orders.filter(occurred).collect()
    }

    fn memcg_figures(&self, by_shrink: bool) -> Vec<MemcgFigures> {
        let ids = self.memcg_ids().into_iter().zip(&self.memcgs);
        let figures = ids.enumerate().map(|(index, (id, group))| MemcgFigures {
            id: id.filter(|_| index < MEMCGS_MAX),
            direct: group.direct.quantiles(),
            memcg: group.memcg.quantiles(),
            pages: group.pages(by_shrink),
        });
        let mut figures: Vec<MemcgFigures> = figures.collect();
        figures.sort_by_key(|m| (m.id.is_none(), m.id));
        figures
    }

    fn script(&self) -> Script {
        let blind = Kind::ALL.iter().zip(&self.blind);
        let blind = blind.filter(|(_, n)| **n > 0);
        let mut script = Script {
            blind: blind.map(|(kind, n)| (kind.name(), *n)).collect(),
            ..Script::default()
        };
        for task in &self.tasks {
            let Some(counts) = &task.counts else {
                continue;
            };
            script.stale_ns = script.stale_ns.saturating_add(counts.stale_ns);
            if counts.ends_before_begin > 0 {
                let stalls = task.spans[Span::Direct as usize].as_ref();
                script.lost_processes += 1;
                let lost_ns = stalls.map_or(0, |d| (d.sum_s() * 1e9) as u64);
                script.lost_ns = script.lost_ns.saturating_add(lost_ns);
            }
            if counts.begins == 0 {
                script.requests_of_others += counts.requests;
            }
        }
        script
    }
}

impl Group {
    fn pages(&self, by_shrink: bool) -> PageCounts {
        PageCounts {
            scanned: if by_shrink {
                self.pages.scanned
            } else {
                self.isolated
            },
            ..self.pages
        }
    }
}

fn totals(pages: &Pages, by_shrink: bool, plain: bool) -> Totals {
    let (isolated, _) = pages.isolated_inactive(plain);
    Totals {
        scanned: if by_shrink {
            pages.shrink_scanned
        } else {
            isolated
        },
        reclaimed: by_shrink.then_some(pages.shrink_reclaimed),
        written: pages.writes.total(),
        writes: pages.writes,
        isolated,
        isolated_script: pages.isolated_script,
        freed: pages.freed,
        named_scanned: pages.named_scanned,
        named_reclaimed: pages.named_reclaimed,
    }
}

/// Pages reclaimed of a trace without `mm_vmscan_lru_shrink_inactive`.
fn reclaimed_elsewhere(totals: &mut [Totals; 4], context: &RunContext) {
    let vmstat = context.vmstat.as_ref();
    for actor in Actor::ALL {
        let totals = &mut totals[actor as usize];
        let row = match actor {
            Actor::Kswapd => Some("Kswapd pages reclaimed"),
            Actor::Direct => Some("Direct pages reclaimed"),
            _ => None,
        };
        let counted = row.and_then(|row| vmstat?.row(row)).map(|v| v as u64);
        let said = matches!(actor, Actor::Direct | Actor::Memcg).then_some(totals.freed);
        totals.reclaimed = counted.or(said);
    }
}

fn kswapd_figures(kswapd: &Kswapd, end_ns: u64) -> KswapdFigures {
    let open = kswapd.woke_ns.map(|woke| end_ns.saturating_sub(woke));
    KswapdFigures {
        wakeups: kswapd.wakes,
        wakeups_by_order: by_order(&kswapd.wakes_by_order),
        rewakeups: kswapd.rewakes,
        rewakeups_by_order: by_order(&kswapd.rewakes_by_order),
        sleeps: kswapd.sleeps,
        awake_ns: kswapd.awake_ns,
        awake_at_start: u64::from(kswapd.awake_at_start.is_some()),
        sleeps_without_wake: kswapd.sleeps_without_wake,
        awake_at_end: u64::from(open.is_some()),
        open_ns: open.unwrap_or(0),
        since_boot_ns: kswapd.since_boot_ns,
    }
}

impl KswapdFigures {
    fn join(&mut self, other: &KswapdFigures) {
        self.wakeups += other.wakeups;
        self.rewakeups += other.rewakeups;
        for (sums, parts) in [
            (&mut self.wakeups_by_order, &other.wakeups_by_order),
            (&mut self.rewakeups_by_order, &other.rewakeups_by_order),
        ] {
            for (order, count) in parts {
                *sums.entry(*order).or_default() += count;
            }
        }
        self.sleeps += other.sleeps;
        self.awake_ns = self.awake_ns.saturating_add(other.awake_ns);
        self.awake_at_start += other.awake_at_start;
        self.sleeps_without_wake += other.sleeps_without_wake;
        self.awake_at_end += other.awake_at_end;
        self.open_ns = self.open_ns.saturating_add(other.open_ns);
        self.since_boot_ns = self.since_boot_ns.saturating_add(other.since_boot_ns);
    }
}

impl ProcessFigures {
    /// Time in direct and memory cgroup reclaim, µs.
    pub fn stalled_us(&self) -> u64 {
        let of = |span: Span| self.stalls.get(span.name()).map_or(0, |q| q.sum_us);
        of(Span::Direct).saturating_add(of(Span::Memcg))
    }
}

impl ReclaimFigures {
    /// Pages of an actor.
    pub fn totals(&self, actor: Actor) -> &Totals {
        &self.totals[actor as usize]
    }

    /// Durations of a kind.
    pub fn span(&self, span: Span) -> &Distribution {
        &self.spans[span as usize]
    }

    /// Reclaimed per scanned, percent; none if nothing was scanned or nothing says what was reclaimed. With
    /// no actor, of all.
    pub fn efficiency(&self, actor: Option<Actor>) -> Option<f64> {
        let actors: &[Actor] = match &actor {
            Some(actor) => std::slice::from_ref(actor),
            None => &Actor::ALL,
        };
        let (mut scanned, mut reclaimed) = (0u64, 0u64);
        for totals in actors.iter().map(|a| self.totals(*a)) {
            if totals.scanned > 0 {
                scanned = scanned.saturating_add(totals.scanned);
                reclaimed = reclaimed.saturating_add(totals.reclaimed?);
            }
        }
        (scanned > 0).then(|| 100.0 * reclaimed as f64 / scanned as f64)
    }
}
