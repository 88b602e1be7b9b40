//! Writes that fail, as the machine says.

use lowmark_spec::machine::{PAGE_SIZE, WriteErrors};
use std::ops::Range;

/// What a device has taken so far, and what of it failed.
#[derive(Debug)]
pub(super) struct Failing {
    spec: WriteErrors,
    written: u64,
    /// Requests that might have failed.
    candidates: u64,
    /// Requests that did.
    pub(super) failed: u64,
}

impl Failing {
    pub(super) fn new(spec: WriteErrors) -> Failing {
        Failing {
            spec,
            written: 0,
            candidates: 0,
            failed: 0,
        }
    }

    /// A write is done: which of its pages failed, the first of them being 0.
    pub(super) fn write(&mut self, start: u64, pages: u64) -> Range<usize> {
        let spec = &self.spec;
        let before = self.written;
        self.written += pages * PAGE_SIZE;
        let first = start.max(spec.start / PAGE_SIZE);
        let region_end = spec.start.saturating_add(spec.size).div_ceil(PAGE_SIZE);
        let end = (start + pages).min(region_end);
        if first >= end || before < spec.after || self.failed == spec.count {
            return 0..0;
        }
        self.candidates += 1;
        if !self.candidates.is_multiple_of(spec.every) {
            return 0..0;
        }
        self.failed += 1;
        (first - start) as usize..(end - start) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: WriteErrors = WriteErrors {
        start: 0,
        size: u64::MAX,
        after: 0,
        every: 1,
        count: u64::MAX,
    };

    #[test]
    fn a_bad_region_fails_the_pages_in_it() {
        let mut failing = Failing::new(WriteErrors {
            start: 10 * PAGE_SIZE,
            size: 5 * PAGE_SIZE,
            ..ALL
        });
        assert_eq!(failing.write(0, 10), 0..0);
        assert_eq!(failing.write(8, 4), 2..4);
        assert_eq!(failing.write(12, 8), 0..3);
        assert_eq!(failing.write(15, 1), 0..0);
        assert_eq!(failing.failed, 2);
    }

    #[test]
    fn errors_begin_after_so_much_and_come_every_so_often() {
        let mut failing = Failing::new(WriteErrors {
            after: 4 * PAGE_SIZE,
            every: 2,
            count: 2,
            ..ALL
        });
        let failed: Vec<usize> = (0..8).map(|n| failing.write(n * 2, 2).len()).collect();
        assert_eq!(failed, [0, 0, 0, 2, 0, 2, 0, 0]);
    }
}
