//! `balance_dirty_pages`: how long a writer waits (3.2 and later; before, see [`super::foreground`]).
//!
//! 1. A writer looks when it has dirtied so many pages, or its CPU very many.
//! 2. Below half way between the two thresholds it goes on at once (*freerun*).
//! 3. Otherwise it is told a rate, the device's base rate times the position ratio, and pauses for as
//!    long as the pages it has dirtied take at that rate, within bounds. It writes nothing itself.
//! 4. The pages until its next look follow from the pause: steered (3.2), or computed (3.3). Since 3.3 the
//!    time that it spent elsewhere is taken off the pause.

use super::domains::Domains;
use super::position::{Position, RATELIMIT_CALC_SHIFT};
use super::{foreground, pause};
use crate::ids::{MemcgId, WbId};
use crate::kernel::{BalanceLoop, DirtyExceeded, PositionTime, Throttle};
use crate::mm::Mm;
use crate::time::expiry;
use crate::world::{Sys, World};
use lowmark_record::{Field, Kind};
use lowmark_spec::machine::PAGE_SIZE;

/// Pages between looks while a device has too many (32 KiB).
const EXCEEDED_PAGES: u64 = (32 << 10) / PAGE_SIZE;

/// A look that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due {
    pub(super) wb: WbId,
    /// Pages since the last one.
    pub(super) pages: u64,
}

impl World {
    /// `balance_dirty_pages_ratelimited`, after each page: whether the current task has to look now.
    pub(crate) fn dirty_check(&mut self) -> Option<Due> {
        let (task, cpu) = (self.sched.current(), self.sched.current_cpu() as usize);
        let dirt = *self.dirtying.task(task);
        let device = self.dirtying.devices[task.0 as usize];
        let wb = self.mm.wb_of(device, self.current_memcg());
        let exceeded = self.mm.bdis[wb].dirty_exceeded;
        let throttle = self.mm.kernel.mechanisms.writeback.throttle;
        let on_cpu = self.dirtying.cpus[cpu];
        if throttle.writers_write() {
            let limit = if exceeded {
                EXCEEDED_PAGES
            } else {
                self.dirtying.ratelimit_pages
            };
            if on_cpu < limit {
                return None;
            }
            self.dirtying.cpus[cpu] = 0;
            self.dirtying.task(task).nr_dirtied = 0;
            return Some(Due { wb, pages: on_cpu });
        }
        let mut limit = dirt.nr_dirtied_pause;
        if exceeded {
            limit = limit.min(EXCEEDED_PAGES);
        }
        let mut dirtied = dirt.nr_dirtied;
        if dirtied >= limit {
            self.dirtying.cpus[cpu] = 0;
        } else if on_cpu >= self.dirtying.ratelimit_pages {
            self.dirtying.cpus[cpu] = 0;
            limit = 0;
        }
        if throttle == Throttle::ThinkTime && self.dirtying.leaks[cpu] > 0 && dirtied < limit {
            let leaked = self.dirtying.leaks[cpu].min(limit - dirtied);
            self.dirtying.leaks[cpu] -= leaked;
            dirtied += leaked;
            self.dirtying.task(task).nr_dirtied = dirtied;
        }
        (dirtied >= limit).then_some(Due { wb, pages: dirtied })
    }
}

/// Looks if it is time, and waits as long as it takes.
pub(crate) async fn balance_dirty_pages_ratelimited(sys: &Sys) {
    let due = sys.world().dirty_check();
    if let Some(due) = due {
        balance_dirty_pages(sys, due).await;
    }
}

/// A look that is due, and the wait that follows from it.
pub(crate) async fn balance_dirty_pages(sys: &Sys, due: Due) {
    let throttle = sys.world().mm.kernel.mechanisms.writeback.throttle;
    if throttle.writers_write() {
        foreground::balance_dirty_pages(sys, due).await
    } else {
        pause_if_needed(sys, due).await
    }
}

/// What a round came to.
enum Round {
    /// No waiting, or no more.
    Leave,
    /// Sleep; go round again after it if `again`.
    Sleep { jiffies: u64, again: bool },
}

/// A call of `balance_dirty_pages`.
struct Call {
    due: Due,
    /// When it began, jiffies.
    start: u64,
}

async fn pause_if_needed(sys: &Sys, due: Due) {
    let call = Call {
        due,
        start: sys.world().jiffies_now(),
    };
    loop {
        let round = sys.world().balance_round(&call);
        sys.charge_kernel(sys.costs.balance_dirty_ns).await;
        let Round::Sleep { jiffies, again } = round else {
            break;
        };
        sleep(sys, jiffies).await;
        if !again || sys.world().sched.current_killed() {
            break;
        }
    }
    let world = &mut *sys.world();
    if world.mm.kernel.mechanisms.writeback.balance_loop == BalanceLoop::AtEnd {
        world.start_background_if_due(due.wb);
    }
}

/// `io_schedule_timeout`; a kill ends it in the kernels in which it is killable, which 143dfe8611a6 alone
/// is not.
async fn sleep(sys: &Sys, jiffies: u64) {
    let (killable, end) = {
        let world = sys.world();
        let mechanisms = &world.mm.kernel.mechanisms;
        let now = world.sched.now();
        let end = expiry(now, jiffies, world.jiffy(), mechanisms.sched.timer_wheel);
        (mechanisms.writeback.throttle != Throttle::IoLess, end)
    };
    loop {
        let left = end.saturating_sub(sys.world().sched.now());
        if left == 0 || (sys.sleep(left).await || killable) {
            return;
        }
    }
}

impl Mm {
    /// Whether a device, or all of memory, has too many dirty pages for its writers to look as seldom as
    /// usual.
    fn dirty_exceeded(&self, at: &Position) -> bool {
        let (device, all) = (at.bdi_dirty > at.bdi_thresh, at.dirty > at.thresh);
        if at.strict {
            return device;
        }
        match self.kernel.mechanisms.writeback.dirty_exceeded {
            DirtyExceeded::Either => device || all,
            DirtyExceeded::Both => device && all,
        }
    }

    pub(super) fn position_ratio(&self, wb: WbId, at: &Position) -> u64 {
        let bandwidth = self.bdis[wb].estimate.avg_write_bandwidth;
        at.ratio(bandwidth, &self.kernel.mechanisms)
    }

    /// The domain that holds a writer back more, and its position ratio.
    fn stricter(&self, wb: WbId, domains: &Domains) -> (Position, u64) {
        let (global, ratio) = (domains.global, self.position_ratio(wb, &domains.global));
        let memcg = domains.memcg.map(|at| (at, self.position_ratio(wb, &at)));
        memcg
            .filter(|&(_, lower)| lower < ratio)
            .unwrap_or((global, ratio))
    }
}

impl World {
    /// One look.
    fn balance_round(&mut self, call: &Call) -> Round {
        let wb = call.due.wb;
        let domains = self.domains(wb);
        let task = self.sched.current();
        let order = self.mm.kernel.mechanisms.writeback.balance_loop;
        if order == BalanceLoop::AtBegin && self.mm.nr_reclaimable() > domains.global.bg_thresh {
            self.start_background_writeback(wb);
        }
        let exceeded = domains.iter().any(|at| self.mm.dirty_exceeded(at));
        if domains.iter().all(Position::is_freerun) {
            let now = self.jiffies_now();
            let intervals = domains.iter().map(|at| {
                let (dirty, thresh) = at.poll();
                pause::dirty_poll_interval(dirty, thresh)
            });
            let dirt = self.dirtying.task(task);
            dirt.nr_dirtied = 0;
            dirt.nr_dirtied_pause = intervals.min().unwrap_or(1);
            dirt.paused_when = now;
            if order == BalanceLoop::AtEnd {
                self.mm.bdis[wb].dirty_exceeded &= exceeded;
            }
            return Round::Leave;
        }
        self.start_background_writeback(wb);
        self.mm.bdis[wb].dirty_exceeded |= exceeded;
        let before = self.mm.stricter(wb, &domains);
        self.balance_update_bandwidth(wb, &domains, call.start);
        let (at, ratio) = match self.mm.kernel.mechanisms.writeback.position_time {
            PositionTime::AfterSample => self.mm.stricter(wb, &domains),
            PositionTime::BeforeSample => before,
        };
        let estimate = &self.mm.bdis[wb].estimate;
        let rate = (estimate.dirty_ratelimit * ratio) >> RATELIMIT_CALC_SHIFT;
        let round = match self.mm.kernel.mechanisms.writeback.throttle {
            Throttle::ThinkTime => self.round_of_3_3(call, &at, rate),
            Throttle::PauseControl => self.round_of_3_2(call, &at, rate),
            Throttle::IoLess => self.round_of_the_commit(call, &at, rate),
            // Writers that write have their rounds in `foreground`.
            Throttle::Foreground | Throttle::ForegroundBounded => Round::Leave,
        };
        let leaves = !matches!(round, Round::Sleep { again: true, .. });
        if (leaves || order == BalanceLoop::AtBegin) && !exceeded {
            self.mm.bdis[wb].dirty_exceeded = false;
        }
        round
    }

    /// 143dfe8611a6 alone.
    fn round_of_the_commit(&mut self, call: &Call, at: &Position, rate: u64) -> Round {
        let hz = self.hz();
        let longest = pause::max_pause_of(hz);
        let jiffies = match rate {
            0 => longest,
            rate => (hz * call.due.pages / (rate | 1)).min(longest),
        };
        self.trace_pause(call, at, rate, jiffies as i64, None);
        let again = at.dirty >= at.limit;
        if !again {
            let dirt = self.dirtying.task(self.sched.current());
            dirt.nr_dirtied = 0;
            dirt.nr_dirtied_pause = pause::dirty_poll_interval(at.dirty, at.thresh);
        }
        Round::Sleep { jiffies, again }
    }

    /// Whether a device that is well lets its writers go although another one is stuck (c5c6343c4d75, 3.2).
    fn is_well(&self, at: &Position) -> bool {
        let cpus = self.sched.cpus();
        at.bdi_dirty <= cpus * 8 * (1 + u64::from(cpus.ilog2()))
    }

    fn round_of_3_2(&mut self, call: &Call, at: &Position, rate: u64) -> Round {
        let hz = self.hz();
        let estimate = self.mm.bdis[call.due.wb].estimate.clone();
        let longest = pause::bdi_max_pause(&estimate, at.bdi_dirty, hz);
        let jiffies = match rate {
            0 => longest,
            rate => (hz * call.due.pages / rate).min(longest),
        };
        self.trace_pause(call, at, rate, jiffies as i64, None);
        let again = rate == 0 && !self.is_well(at);
        if !again {
            let pages = call.due.pages;
            let dirt = self.dirtying.task(self.sched.current());
            dirt.nr_dirtied = 0;
            dirt.nr_dirtied_pause = pause::next_dirtied_pause(
                dirt.nr_dirtied_pause,
                pages,
                jiffies,
                longest,
                &estimate,
                hz,
            );
        }
        match jiffies {
            0 => Round::Leave,
            jiffies => Round::Sleep { jiffies, again },
        }
    }

    fn round_of_3_3(&mut self, call: &Call, at: &Position, rate: u64) -> Round {
        let (hz, mut now) = (self.hz(), self.jiffies_now());
        let estimate = &self.mm.bdis[call.due.wb].estimate;
        let longest = pause::think_max_pause(estimate, at.bdi_dirty, hz);
        let target = pause::think_min_pause(estimate, rate, longest, hz);
        let pages = call.due.pages;
        let paused_when = self.dirtying.task(self.sched.current()).paused_when;
        let (period, mut pause) = match rate {
            0 => (longest, longest as i64),
            rate => {
                let period = hz * pages / rate;
                let think = match paused_when {
                    0 => 0,
                    when => now as i64 - when as i64,
                };
                (period, period as i64 - think)
            }
        };
        if pause < target.min_pause as i64 && rate > 0 {
            self.trace_pause(call, at, rate, pause.min(0), Some(period));
            let dirt = self.dirtying.task(self.sched.current());
            if pause < -(hz as i64) {
                (dirt.paused_when, dirt.nr_dirtied) = (now, 0);
            } else if period > 0 {
                dirt.paused_when += period;
                dirt.nr_dirtied = 0;
            } else if dirt.nr_dirtied_pause <= pages {
                dirt.nr_dirtied_pause += pages;
            }
            return Round::Leave;
        }
        if pause > longest as i64 {
            now += ((pause - longest as i64) as u64).min(longest);
            pause = longest as i64;
        }
        self.trace_pause(call, at, rate, pause, Some(period));
        let dirt = self.dirtying.task(self.sched.current());
        dirt.paused_when = now + pause as u64;
        dirt.nr_dirtied = 0;
        dirt.nr_dirtied_pause = target.pages;
        Round::Sleep {
            jiffies: pause as u64,
            again: rate == 0 && !self.is_well(at),
        }
    }

    fn trace_pause(
        &mut self,
        call: &Call,
        at: &Position,
        rate: u64,
        pause: i64,
        period: Option<u64>,
    ) {
        let task = self.sched.current();
        let dirt = *self.dirtying.task(task);
        self.trace_bdi(Kind::BalanceDirtyPages, call.due.wb, |world| {
            let (hz, now) = (world.hz(), world.jiffies_now());
            let ms = |jiffies: u64| jiffies * 1000 / hz;
            let signed_ms = |jiffies: i64| (jiffies * 1000 / hz as i64) as u64;
            // Below 0 where it has been let go although it was early.
            let think = match dirt.paused_when {
                0 => 0,
                when => now as i64 - when as i64,
            };
            let limit = match world.mm.whose_wb(call.due.wb) {
                (_, MemcgId::ROOT) => world.mm.limits[MemcgId::ROOT].limit,
                // That of the group, where it is the stricter one (since 6.15; before it was that of all memory).
                _ => at.limit,
            };
            vec![
                (Field::Limit, limit),
                (Field::Setpoint, (limit + at.freerun()) / 2),
                (Field::Dirty, at.dirty),
                (Field::BdiSetpoint, at.bdi_setpoint()),
                (Field::BdiDirty, at.bdi_dirty),
                (
                    Field::DirtyRatelimit,
                    kilobytes(world.mm.bdis[call.due.wb].estimate.dirty_ratelimit),
                ),
                (Field::TaskRatelimit, kilobytes(rate)),
                (Field::Dirtied, call.due.pages),
                (Field::DirtiedPause, dirt.nr_dirtied_pause),
                (Field::Paused, ms(now - call.start)),
                (Field::Pause, signed_ms(pause)),
                (Field::Period, ms(period.unwrap_or(0))),
                (Field::Think, signed_ms(think)),
            ]
        });
    }
}

/// Pages to KiB.
pub(super) fn kilobytes(pages: u64) -> u64 {
    pages * (PAGE_SIZE / 1024)
}
