//! Touching memory, unit by unit, in the order that the model has too.

use super::interpreter::{Context, Program, Region, Stop};
use super::report::{self, Line, now_ns};
use super::time;
use lowmark_spec::machine::PAGE_SIZE;
use lowmark_spec::pace::Pace;
use lowmark_spec::random::{Stream, ZipfTables};
use lowmark_spec::visit::Visit;
use lowmark_spec::workload::{Access, Amount, FileKind, MapKind, Range, Touch};

/// The byte that every store to a page writes: from it, `verify` knows what must be there. Never zero,
/// because pages of zeroes do not reach swap (since 6.12: `swap_zeromap`, 0ca0c24e3211).
pub(super) fn content(offset: u64) -> u8 {
    (offset / PAGE_SIZE) as u8 | 1
}

/// Bytes of a map in the order in which a statement touches them.
struct Offsets<'a> {
    visit: Visit,
    units: u64,
    first: u64,
    step: u64,
    /// Touches in all.
    total: u64,
    stream: &'a mut Stream,
}

impl<'a> Offsets<'a> {
    /// None if the range holds no unit.
    fn new(what: &Touch, length: u64, stream: &'a mut Stream) -> Option<Offsets<'a>> {
        let range = what.range.unwrap_or(Range { offset: 0, length });
        let step = what.step.max(1);
        let units = range.length.min(length.saturating_sub(range.offset)) / step;
        if units == 0 {
            return None;
        }
        Some(Offsets {
            visit: Visit::new(what.order, units, stream, &mut ZipfTables::default()),
            units,
            first: range.offset,
            step,
            total: match what.amount {
                Amount::Passes(passes) => passes.saturating_mul(units),
                Amount::Count(count) => count,
            },
            stream,
        })
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.first + self.visit.next(self.units, self.stream) * self.step
    }
}

/// Carries out a touch statement.
pub(super) fn touch(context: &mut Context, region: &Region, what: &Touch) -> Result<(), Stop> {
    let length = region.mapping.length();
    let mut pages = context.program.touches.then(|| Pages::of(context));
    let Some(mut offsets) = Offsets::new(what, length, &mut context.stream) else {
        return Ok(());
    };
    let mut pace = what.rate.map(|rate| Pace::new(rate, now_ns()));
    match (what.access, &mut pace) {
        (Access::Read, None) if pages.is_none() => (0..offsets.total).for_each(|_| {
            region.mapping.load(offsets.next());
        }),
        (Access::Write, None) if pages.is_none() => (0..offsets.total).for_each(|_| {
            let offset = offsets.next();
            region.mapping.store(offset, content(offset));
        }),
        _ => {
            for _ in 0..offsets.total {
                pace.iter_mut().for_each(|pace| time::wait(pace, 1));
                let offset = offsets.next();
                one(region, what.access, &context.program, offset)?;
                if let Some(pages) = &mut pages {
                    pages.push(offset / PAGE_SIZE)?;
                }
            }
        }
    }
    match pages {
        Some(mut pages) => pages.flush(),
        None => Ok(()),
    }
}

/// Pages on their way to whoever compares them.
struct Pages {
    task: usize,
    instance: usize,
    thread: u64,
    pages: Vec<u64>,
}

impl Pages {
    /// Pages of a line: numbers have twenty digits at most.
    const LINE_MAX: usize = 128;

    fn of(context: &Context) -> Pages {
        Pages {
            task: context.task,
            instance: context.instance,
            thread: context.thread,
            pages: Vec::with_capacity(Pages::LINE_MAX),
        }
    }

    fn push(&mut self, page: u64) -> Result<(), Stop> {
        self.pages.push(page);
        if self.pages.len() < Pages::LINE_MAX {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let line = Line::Touches {
            task: self.task,
            instance: self.instance,
            thread: self.thread,
            pages: std::mem::take(&mut self.pages),
        };
        Ok(report::write(&line)?)
    }
}

fn one(region: &Region, access: Access, program: &Program, offset: u64) -> Result<(), Stop> {
    match access {
        Access::Read => {
            region.mapping.load(offset);
        }
        Access::Write => region.mapping.store(offset, content(offset)),
        Access::Verify => {
            let (found, stored) = (region.mapping.load(offset), content(offset));
            // What was never stored, or punched out, is zero; a file of random content holds anything.
            let anything = match region.kind {
                MapKind::FileShared(file) | MapKind::FilePrivate(file) => {
                    program.files.kind(file) == FileKind::Random
                }
                MapKind::AnonPrivate | MapKind::AnonShared => false,
            };
            if found != stored && found != 0 && !anything {
                return Err(Stop::Failed(format!(
                    "byte {offset} of the map was stored as {stored} and is now {found}"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_spec::workload::Order;

    fn offsets(what: &Touch, length: u64) -> Vec<u64> {
        let mut stream = Stream::new(7, "main", 2);
        let Some(mut offsets) = Offsets::new(what, length, &mut stream) else {
            return Vec::new();
        };
        (0..offsets.total).map(|_| offsets.next()).collect()
    }

    const WHAT: Touch = Touch {
        access: Access::Read,
        order: Order::Seq,
        step: 4096,
        amount: Amount::Passes(2),
        range: None,
        rate: None,
    };

    #[test]
    fn units_are_counted_as_on_the_model() {
        assert_eq!(offsets(&WHAT, 3 * 4096), [0, 4096, 8192, 0, 4096, 8192]);
        let range = Some(Range {
            offset: 100,
            length: 10_000,
        });
        let part = Touch { range, ..WHAT };
        // A last unit that is not whole is none.
        assert_eq!(offsets(&part, 1 << 20), [100, 4196, 100, 4196]);
        assert_eq!(offsets(&part, 4100), Vec::<u64>::new());
        let count = Amount::Count(2);
        assert_eq!(
            offsets(
                &Touch {
                    amount: count,
                    ..WHAT
                },
                1 << 20
            ),
            [0, 4096]
        );
    }

    /// The stream is that of the task's instance, and nothing else is drawn from it.
    #[test]
    fn random_touches_draw_from_the_instance() {
        let random = Touch {
            order: Order::Random,
            amount: Amount::Count(100),
            ..WHAT
        };
        let mut stream = Stream::new(7, "main", 2);
        let expected: Vec<u64> = (0..100).map(|_| stream.below(256) * 4096).collect();
        assert_eq!(offsets(&random, 1 << 20), expected);
    }
}
