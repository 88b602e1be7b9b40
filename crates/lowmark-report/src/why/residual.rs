//! Waits that no event tells: for pages that come back. Pressure counts them (`psi_memstall_enter` in
//! `folio_wait_bit_common` and `swap_readpage`), so that they are what is left of it.
//!
//! 1. *Residual* = pressure of memory (`some`) - traced waits for room. Pressure is wall time with any waiter and
//!    traced times add up over tasks: with several waiters traced is the larger, and nothing is left.
//! 2. It is shared out by the time that disks spent reading: devices with swap to anonymous memory, others, as far as
//!    what they read came back, to files. Without disks, by pages that came back.
//! 3. kswapd and kcompactd count in pressure while they work (`balance_pgdat`, `kcompactd_do_work`) although no task
//!    waits. So no more is taken for waits than the time for which disks read what came back, and without disks than
//!    [`READ_MAX_NS`] for each page; the rest is theirs.
//! 4. Of pages from swap, pressure counts those alone that were in the working set when they went (`folio_test_workingset`).
//!    Waits for the others are *beside* it: they are in pressure of I/O (`io_schedule`), in the share that swap has in the
//!    time of reads, and no longer than swap devices were reading. They come on top of pressure.

use super::inflow::Inflow;
use super::split::share;
use super::surroundings::{Disk, Surroundings};

/// Longest time for which a task is taken to wait for one page that comes back, ns: a hard disk that seeks.
const READ_MAX_NS: u64 = 10_000_000;

/// What is left of pressure, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Residual {
    /// Pressure of memory.
    pub(super) pressure_ns: u64,
    /// Waits for pages that are read from swap.
    pub(super) swap_ns: u64,
    /// Waits for pages of files that came back.
    pub(super) file_ns: u64,
    /// Work of kernel threads.
    pub(super) threads_ns: u64,
    /// Waits for pages that are read from swap, beside pressure of memory.
    pub(super) beside_ns: u64,
    /// Whether disks told the shares.
    pub(super) by_disks: bool,
}

impl Residual {
    /// What is left of pressure beside so much traced time, ns; none without pressure.
    pub(super) fn of(
        surroundings: &Surroundings,
        traced_ns: u64,
        inflow: Option<&Inflow>,
    ) -> Option<Residual> {
        let pressure_ns = surroundings.memory_pressure?.some_ns;
        let left = pressure_ns.saturating_sub(traced_ns);
        let inflow = inflow.copied().unwrap_or_default();
        let pages = inflow.anon_back.saturating_add(inflow.file_back);
        let time = |swap: bool| {
            let disks = surroundings.disks.values();
            let read = disks.filter(|d: &&Disk| d.swap == swap).map(|d| d.read_ms);
            read.fold(0, u64::saturating_add)
        };
        let back = |time: u64| {
            let share = u128::from(time) * u128::from(inflow.file_back);
            (share / u128::from(inflow.file_in.max(1))) as u64
        };
        let by_disks = [time(true), 0, back(time(false)), 0];
        let by_pages = [inflow.anon_back, 0, inflow.file_back, 0];
        let read_ms = by_disks
            .iter()
            .fold(0, |sum: u64, ms| sum.saturating_add(*ms));
        let longest = match read_ms {
            0 => READ_MAX_NS,
            // Times of disks are rounded down to ms.
            ms => READ_MAX_NS.min(ms.saturating_add(1).saturating_mul(1_000_000) / pages.max(1)),
        };
        let waits = left.min(pages.saturating_mul(longest));
        let by_disks = share(waits, by_disks);
        let [swap_ns, _, file_ns, _] = by_disks
            .or_else(|| share(waits, by_pages))
            .unwrap_or_default();
        let beside_ns = match inflow.anon_back {
            0 => 0,
            _ => from_swap(surroundings, time(true), time(false)).saturating_sub(swap_ns),
        };
        Some(Residual {
            pressure_ns,
            beside_ns,
            swap_ns,
            file_ns,
            threads_ns: left - waits,
            by_disks: by_disks.is_some(),
        })
    }

    /// Waits that are estimated, ns.
    pub(super) fn waits_ns(&self) -> u64 {
        self.anon_ns().saturating_add(self.file_ns)
    }

    /// Of these, waits for pages that are read from swap.
    pub(super) fn anon_ns(&self) -> u64 {
        self.swap_ns.saturating_add(self.beside_ns)
    }
}

/// Waits for pages that are read from swap as pressure of I/O has them, ns; times of disks are ms.
fn from_swap(surroundings: &Surroundings, swap_ms: u64, others_ms: u64) -> u64 {
    let io_ns = surroundings.io_pressure.map_or(0, |io| io.some_ns);
    let all_ms = u128::from(swap_ms) + u128::from(others_ms);
    let share = u128::from(io_ns) * u128::from(swap_ms) / all_ms.max(1);
    (share as u64).min(swap_ms.saturating_mul(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Pressure;

    fn surroundings(some_ns: u64, disks: &[(&str, bool, u64)]) -> Surroundings {
        let disks = disks.iter().map(|(name, swap, read_ms)| {
            let disk = Disk {
                swap: *swap,
                read_ms: *read_ms,
                ..Disk::default()
            };
            ((*name).to_owned(), disk)
        });
        Surroundings {
            memory_pressure: Some(Pressure { some_ns }),
            disks: disks.collect(),
            ..Surroundings::default()
        }
    }

    const BACK: Inflow = Inflow {
        anon_back: 300,
        anon_new: 0,
        file_back: 100,
        file_new: 100,
        file_in: 200,
        stolen: 500,
        counts_file_refaults: true,
    };

    #[test]
    fn disks_tell_before_pages_do() {
        let pages = Residual::of(&surroundings(5000, &[]), 1000, Some(&BACK)).expect("pressure");
        assert_eq!(
            (pages.swap_ns, pages.file_ns, pages.by_disks),
            (3000, 1000, false)
        );
        let disks = [("vda", true, 10), ("vdb", false, 20)];
        let disks = surroundings(5000, &disks);
        let disks = Residual::of(&disks, 1000, Some(&BACK)).expect("pressure");
        assert_eq!(
            (disks.swap_ns, disks.file_ns, disks.by_disks),
            (2000, 2000, true)
        );
    }

    #[test]
    fn pages_that_were_not_in_the_working_set_are_in_pressure_of_io() {
        let disks = [("vda", true, 30), ("vdb", false, 10)];
        let mut known = surroundings(0, &disks);
        let of = |known: &Surroundings, inflow| {
            let residual = Residual::of(known, 0, inflow).expect("pressure");
            (residual.swap_ns, residual.beside_ns)
        };
        assert_eq!(of(&known, Some(&BACK)), (0, 0));
        known.io_pressure = Some(Pressure {
            some_ns: 20_000_000,
        });
        assert_eq!(of(&known, Some(&BACK)), (0, 15_000_000));
        assert_eq!(of(&known, None), (0, 0), "nothing came back");
        // What pressure of memory has is not counted again.
        known.memory_pressure = Some(Pressure { some_ns: 8_000_000 });
        let (swap_ns, beside_ns) = of(&known, Some(&BACK));
        assert_eq!(swap_ns + beside_ns, 15_000_000);
        known.io_pressure = Some(Pressure { some_ns: u64::MAX });
        let (swap_ns, beside_ns) = of(&known, Some(&BACK));
        assert_eq!(swap_ns + beside_ns, 30_000_000);
    }

    #[test]
    fn what_no_page_explains_is_work_of_kernel_threads() {
        let few = Inflow {
            anon_back: 1,
            ..Inflow::default()
        };
        let left = Residual::of(&surroundings(50_000_000, &[]), 0, Some(&few)).expect("pressure");
        assert_eq!((left.swap_ns, left.threads_ns), (10_000_000, 40_000_000));
        let more = Residual::of(&surroundings(5, &[]), 9, None).expect("pressure");
        assert_eq!((more.waits_ns(), more.threads_ns), (0, 0));
        assert_eq!(Residual::of(&Surroundings::default(), 9, None), None);
    }
}
