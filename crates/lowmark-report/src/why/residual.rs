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
        Some(Residual {
            pressure_ns,
            swap_ns,
            file_ns,
            threads_ns: left - waits,
            by_disks: by_disks.is_some(),
        })
    }

    /// Waits that are estimated, ns.
    pub(super) fn waits_ns(&self) -> u64 {
        self.swap_ns.saturating_add(self.file_ns)
    }
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
