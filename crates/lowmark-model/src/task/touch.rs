//! Touching memory.
//!
//! Pages that are there are touched in one tight loop, as many as fit before anything else can happen;
//! a page that is not ends the loop and is faulted in.
//!
//! Where the next units do not follow from each other's place, a few of them are drawn ahead: their PTEs
//! can then be fetched all at once instead of one after the other.

use super::context::{Context, Stop, unmapped};
use crate::mm::Mm;
use crate::mm::fault::fetch::AHEAD;
use crate::mm::fault::memory::{FaultBy, Step, Tried, handle_mm_fault};
use crate::mm::frames::pte::Pte;
use crate::time::Mode;
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::pace::Pace;
use lowmark_spec::random::Stream;
use lowmark_spec::visit::{Touched, Visit};
use lowmark_spec::workload::{Access, Amount, Range, Touch};

/// A statement under way.
struct Walk<'a> {
    vma: u32,
    visit: Visit,
    units: u64,
    offset: u64,
    step: u64,
    stream: &'a mut Stream,
    /// Units not drawn yet: no more are drawn than are visited.
    undrawn: u64,
    /// Each unit is a whole page.
    whole_pages: bool,
    /// Pages of units drawn, of which those from `next` to `drawn` have not been visited.
    ahead: [u32; AHEAD],
    next: usize,
    drawn: usize,
}

impl<'a> Walk<'a> {
    /// A walk over `units` from the beginning of the range, of which `total` are visited.
    fn new(
        sys: &Sys,
        vma: u32,
        what: &Touch,
        units: u64,
        total: u64,
        stream: &'a mut Stream,
    ) -> Walk<'a> {
        let tables = &mut sys.world().workload.zipf_tables;
        let visit = Visit::new(what.order, units, stream, tables);
        let offset = what.range.as_ref().map_or(0, |range| range.offset);
        Walk {
            vma,
            visit,
            units,
            offset,
            step: what.step,
            stream,
            undrawn: total,
            whole_pages: what.step == PAGE_SIZE && offset.is_multiple_of(PAGE_SIZE),
            ahead: [0; AHEAD],
            next: 0,
            drawn: 0,
        }
    }

    /// Touches up to `limit` units. The number touched, and the page on which it stopped because that
    /// is not there: its unit has been visited but not touched.
    #[inline]
    fn run(&mut self, mm: &mut Mm, write: bool, limit: u64) -> (u64, Option<u32>) {
        match &mut self.visit {
            Visit::Seq { next } if self.whole_pages => {
                let first = self.offset / PAGE_SIZE;
                let ptes = &mut mm.vmas[self.vma as usize].ptes;
                run_in_order(ptes, write, limit, first, next, self.units)
            }
            _ => self.run_ahead(mm, write, limit),
        }
    }

    /// Touches the next unit. Its page if that is not there.
    #[inline]
    fn step(&mut self, mm: &mut Mm, write: bool) -> Option<u32> {
        let Visit::Seq { next } = &mut self.visit else {
            return self.run_ahead(mm, write, 1).1;
        };
        if !self.whole_pages {
            return self.run_ahead(mm, write, 1).1;
        }
        let page = self.offset / PAGE_SIZE + *next;
        *next += 1;
        if *next == self.units {
            *next = 0;
        }
        let pte = &mut mm.vmas[self.vma as usize].ptes[page as usize];
        (!pte.touch(write)).then_some(page as u32)
    }

    /// How many of the next units are there, up to `limit`: none where they have to be drawn.
    fn there_ahead(&self, mm: &Mm, write: bool, limit: u64) -> u64 {
        let Visit::Seq { next } = &self.visit else {
            return 0;
        };
        if !self.whole_pages {
            return 0;
        }
        let first = (self.offset / PAGE_SIZE + next) as usize;
        let count = limit.min(self.units - next) as usize;
        let ptes = &mm.vmas[self.vma as usize].ptes[first..first + count];
        let missing = ptes.iter().position(|pte| !pte.is_there_for(write));
        missing.unwrap_or(count) as u64
    }

    /// The page that was visited last.
    fn last_page(&self) -> u64 {
        match self.visit {
            Visit::Seq { next } if self.whole_pages => {
                let last = next.checked_sub(1).unwrap_or(self.units - 1);
                self.offset / PAGE_SIZE + last
            }
            _ => u64::from(self.ahead[self.next - 1]),
        }
    }

    fn run_ahead(&mut self, mm: &mut Mm, write: bool, limit: u64) -> (u64, Option<u32>) {
        let mut done = 0;
        // Nothing will be changed by the touches drawn, as long as nobody else gets his turn.
        let mut settled = false;
        while done < limit {
            if self.next == self.drawn {
                self.draw_ahead();
                let drawn = &self.ahead[..self.drawn];
                settled = mm.fetch_touches(self.vma, drawn, write);
            }
            let ptes = &mut mm.vmas[self.vma as usize].ptes;
            let rest = &self.ahead[self.next..self.drawn];
            let now = &rest[..rest.len().min((limit - done) as usize)];
            if settled {
                self.next += now.len();
                done += now.len() as u64;
                continue;
            }
            match now
                .iter()
                .position(|&page| !ptes[page as usize].touch(write))
            {
                Some(hit) => {
                    let page = now[hit];
                    self.next += hit + 1;
                    return (done + hit as u64, Some(page));
                }
                None => {
                    self.next += now.len();
                    done += now.len() as u64;
                }
            }
        }
        (done, None)
    }

    /// Draws the next units.
    fn draw_ahead(&mut self) {
        let count = self.undrawn.min(AHEAD as u64) as usize;
        self.undrawn -= count as u64;
        (self.next, self.drawn) = (0, count);
        let (offset, step, units) = (self.offset, self.step, self.units);
        let page = |unit: u64| ((offset + unit * step) / PAGE_SIZE) as u32;
        let ahead = &mut self.ahead[..count];
        match &mut self.visit {
            Visit::Random => ahead.fill_with(|| page(self.stream.below(units))),
            Visit::Zipf {
                ranks,
                factor,
                shift,
                modulus,
            } => {
                let mut drawn = [0; AHEAD];
                ranks.draw_all(self.stream, &mut drawn[..count]);
                for (place, rank) in ahead.iter_mut().zip(drawn) {
                    *place = page(modulus.of(rank * *factor + *shift));
                }
            }
            visit => ahead.fill_with(|| page(visit.next(units, self.stream))),
        }
    }
}

/// Touches up to `limit` whole pages in order, as [`Walk::run`] does: `next` of `units` that begin at
/// page `first`.
fn run_in_order(
    ptes: &mut [Pte],
    write: bool,
    limit: u64,
    first: u64,
    next: &mut u64,
    units: u64,
) -> (u64, Option<u32>) {
    let mut done = 0;
    while done < limit {
        let end = units.min(*next + (limit - done));
        let slice = &mut ptes[(first + *next) as usize..(first + end) as usize];
        match Pte::touch_all(slice, write) {
            Some(hit) => {
                done += hit as u64;
                let page = (first + *next + hit as u64) as u32;
                *next += hit as u64 + 1;
                if *next == units {
                    *next = 0;
                }
                return (done, Some(page));
            }
            None => {
                done += end - *next;
                *next = if end == units { 0 } else { end };
            }
        }
    }
    (done, None)
}

/// Carries out a touch statement on a mapped region. A touch of a resident page takes `touch_ns`, at least 1.
pub(super) async fn touch(
    context: &mut Context,
    vma: u32,
    what: Touch,
    touch_ns: u64,
) -> Result<(), Stop> {
    let sys = context.sys.clone();
    let length = sys.world().mm.vmas[vma as usize].ptes.len() as u64 * PAGE_SIZE;
    let range = what.range.unwrap_or(Range { offset: 0, length });
    let units = range.length.min(length.saturating_sub(range.offset)) / what.step;
    if units == 0 {
        return Ok(());
    }
    let total = match what.amount {
        Amount::Passes(passes) => passes.saturating_mul(units),
        Amount::Count(count) => count,
    };
    let write = what.access == Access::Write;
    let here = Touched {
        task: context.task,
        instance: context.instance,
        thread: context.thread,
        page: 0,
    };
    let mut walk = Walk::new(&sys, vma, &what, units, total, &mut context.stream);
    let mut pace = (what.rate).map(|rate| Pace::new(rate, sys.world().sched.now()));
    let mut left = total;
    // Whether the task has only touched pages since it last went on.
    let mut quiet = false;
    while left > 0 {
        if let Some(pace) = &mut pace {
            sys.sleep_until(pace.next(1)).await;
        }
        let singly = what.rate.is_some() || sys.world().workload.touched.is_some();
        let (visited, stopped, touched_only) = {
            let world = &mut *sys.world();
            may_go_on(world, vma, length)?;
            let turn = Turn {
                vma,
                write,
                touch_ns,
                limit: if singly { 1 } else { left },
                quiet: quiet && !singly,
            };
            touch_until_stopped(world, &mut walk, turn)
        };
        left -= visited;
        quiet &= touched_only;
        if let Some(touched) = &mut sys.world().workload.touched {
            let page = walk.last_page();
            touched.push(Touched { page, ..here });
        }
        match stopped {
            Stopped::Done => {}
            Stopped::Time => {
                if !singly {
                    let few = left.min(2 * visited + AHEAD as u64);
                    let ahead = walk.there_ahead(&sys.world().mm, write, few);
                    let sched = &mut sys.world().sched;
                    sched.promise(ahead * sched.memory_time(touch_ns), quiet);
                }
                sys.suspend().await;
                quiet = true;
                continue;
            }
            Stopped::Fault {
                page,
                begun,
                passed,
            } => {
                if !passed {
                    sys.suspend().await;
                }
                handle_mm_fault(&sys, vma, page, write, begun, FaultBy::Task).await?;
            }
        }
        quiet = false;
    }
    Ok(())
}

/// Whether the current task has not been killed, and the region still has this length in bytes.
fn may_go_on(world: &World, vma: u32, length: u64) -> Result<(), Stop> {
    if world.sched.current_killed() {
        return Err(Stop::Killed);
    }
    if (world.mm.vmas[vma as usize].ptes.len() as u64) * PAGE_SIZE < length {
        Err(unmapped())
    } else {
        Ok(())
    }
}

/// Why a burst of touches ended.
enum Stopped {
    /// All touched.
    Done,
    /// Something else happens before the time that was spent has passed.
    Time,
    /// A page is not there and its fault has to sleep, or has to wait until the time spent before it has
    /// `passed`.
    Fault {
        page: u32,
        begun: Option<Step>,
        passed: bool,
    },
}

/// What a task may touch before it looks up.
struct Turn {
    vma: u32,
    write: bool,
    /// Time of a touch by a task that has memory for itself.
    touch_ns: u64,
    /// Units, at most.
    limit: u64,
    /// It has done nothing else since it went on.
    quiet: bool,
}

/// Touches units and resolves the faults that need not sleep, as long as nothing else can happen meanwhile. The units
/// visited, the one that faults included; and whether all were there.
fn touch_until_stopped(world: &mut World, walk: &mut Walk<'_>, turn: Turn) -> (u64, Stopped, bool) {
    let Turn {
        vma,
        write,
        touch_ns,
        limit,
        mut quiet,
    } = turn;
    let touch_ns = world.memory_time(touch_ns);
    let mut touched_only = true;
    let mut visited = 0;
    let stopped = loop {
        if visited == limit {
            break Stopped::Done;
        }
        // One touch at least; most that fault need not know how many more there was time for.
        let mut missing = walk.step(&mut world.mm, write);
        let mut units = 1;
        if missing.is_none() {
            let undisturbed = if quiet {
                world.sched.undisturbed_by_touches()
            } else {
                world.sched.undisturbed()
            };
            let undisturbed = (undisturbed / touch_ns).max(1);
            let more = undisturbed.min(limit - visited) - 1;
            let touched;
            (touched, missing) = walk.run(&mut world.mm, write, more);
            units += touched + u64::from(missing.is_some());
        }
        visited += units;
        let passed = world.sched.spend(Mode::User, units * touch_ns);
        let Some(page) = missing else {
            if passed {
                continue;
            }
            break Stopped::Time;
        };
        if !passed {
            break Stopped::Fault {
                page,
                begun: None,
                passed,
            };
        }
        (touched_only, quiet) = (false, false);
        match world.try_fault(vma, page, write) {
            Tried::Sleeps(begun) => {
                break Stopped::Fault {
                    page,
                    begun,
                    passed,
                };
            }
            Tried::Done(cost) => {
                if !world.sched.spend(Mode::System, cost) {
                    break Stopped::Time;
                }
            }
        }
    };
    world.workload.touches += visited;
    (visited, stopped, touched_only)
}
