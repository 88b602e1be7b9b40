//! Blocks of pages as huge pages in the pool of hugetlbfs: `alloc` and `free`.
//!
//! User space has no way to ask for a block of pages, but a pool that grows by one asks for one, with
//! `GFP_HIGHUSER_MOVABLE`, and keeps it pinned and off all lists (Documentation/admin-guide/mm/hugetlbpage.rst). Whether it
//! got one, the size of the pool says.

use super::interpreter::{Context, Stop};
use super::report::now_ns;
use super::time;
use lowmark_spec::workload::{Alloc, PoolId, series_number};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read, Seek, Write};

/// Order of the huge pages of the default pool: 2 MiB.
pub(super) const HUGE_ORDER: u32 = 9;

/// Pages in the pool, as far as processes take turns.
const POOL: &str = "/proc/sys/vm/nr_hugepages";

/// The pool while no other process of the workload changes it.
struct Pool(File);

impl Pool {
    fn open() -> io::Result<Pool> {
        let file = File::options().read(true).write(true).open(POOL);
        let file = file.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot change {POOL}: {error}"))
        })?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Pool(file))
    }

    fn pages(&mut self) -> io::Result<u64> {
        let mut text = String::new();
        self.0.rewind()?;
        self.0.read_to_string(&mut text)?;
        let wrong = || io::Error::other(format!("{POOL} holds no number: {text:?}"));
        text.trim().parse().map_err(|_| wrong())
    }

    fn resize(&mut self, pages: u64) -> io::Result<()> {
        self.0.rewind()?;
        self.0.write_all(pages.to_string().as_bytes())
    }

    /// One more page; whether there was one.
    fn grow(&mut self) -> io::Result<bool> {
        let before = self.pages()?;
        self.resize(before + 1)?;
        Ok(self.pages()? > before)
    }

    fn shrink(&mut self, pages: u64) -> io::Result<()> {
        let before = self.pages()?;
        self.resize(before.saturating_sub(pages))
    }
}

/// Asks for the blocks one after the other, each at its time.
pub(super) fn alloc(context: &mut Context, what: &Alloc) -> Result<(), Stop> {
    for attempt in 1..=what.count {
        let began = now_ns();
        let success = Pool::open()?.grow()?;
        let now = now_ns();
        if success {
            *context.held.entry(what.pool).or_insert(0) += 1;
        }
        record(context, what, success, (began, now))?;
        if what.gives_up(success, now - began) {
            for _ in attempt..what.count {
                record(context, what, false, (now, now))?;
            }
            break;
        }
        if attempt == what.count {
            break;
        }
        let due = began.saturating_add(what.pace_ns);
        while what.busy && due > now_ns() {
            std::thread::yield_now();
        }
        if due > now_ns() {
            time::sleep_until(due);
        }
    }
    Ok(())
}

/// An attempt from `began` to `now` is over.
fn record(
    context: &mut Context,
    what: &Alloc,
    success: bool,
    (began, now): (u64, u64),
) -> Result<(), Stop> {
    let Some(series) = what.series else {
        return Ok(());
    };
    let series = if success {
        series.success
    } else {
        series.failed
    };
    let series = series_number(series, None) as usize;
    Ok(context.locked(|process| process.sample(series, now, now - began))?)
}

/// Gives back all that the instance holds in a pool.
pub(super) fn free(context: &mut Context, pool: PoolId) -> Result<(), Stop> {
    match context.held.remove(&pool) {
        None => Ok(()),
        Some(pages) => Ok(Pool::open()?.shrink(pages)?),
    }
}

/// The instance ends: so does what it holds.
pub(super) fn free_all(context: &mut Context) -> Result<(), Stop> {
    let pools: Vec<PoolId> = context.held.keys().copied().collect();
    pools.into_iter().try_for_each(|pool| free(context, pool))
}

/// The pool as it was before a workload, which is brought back whatever became of its processes.
#[derive(Debug)]
pub(super) struct Before(u64);

impl Before {
    /// Pages in the pool now.
    ///
    /// # Errors
    ///
    /// When the kernel has no such pool, or it may not be changed.
    pub(super) fn the_run() -> io::Result<Before> {
        Ok(Before(Pool::open()?.pages()?))
    }

    /// Brings it back.
    pub(super) fn restore(&self) -> io::Result<()> {
        Pool::open()?.resize(self.0)
    }
}
