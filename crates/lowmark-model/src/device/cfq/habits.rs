//! What the completely fair queueing elevator remembers of a process: how long the process thinks between its requests,
//! and how far they are apart.

use crate::time::{MSEC, Nanos};
use lowmark_spec::machine::PAGE_SIZE;

/// How long a process is waited for (`cfq_slice_idle`).
pub(super) const SLICE_IDLE: Nanos = 8 * MSEC;
/// `CFQQ_SEEK_THR`: 800 sectors, in pages.
const SEEK_THRESHOLD: u64 = 800 * 512 / PAGE_SIZE;
/// `CFQQ_SECT_THR_NONROT`: on a device that does not rotate, requests of fewer sectors count as seeks; 64, in pages.
const SMALL_REQUEST: u64 = 64 * 512 / PAGE_SIZE;
/// `CFQQ_SEEKY`: of the last 32 requests.
const SEEKS_MAX: u32 = 32 / 8;
/// `sample_valid`: the mean counts from the third request on.
const SAMPLES_MIN: u64 = 80;

/// Time from the completion of a request to the arrival of the next: an exponential average with weight 1/8
/// (`struct cfq_ttime`).
#[derive(Debug, Default)]
pub(super) struct ThinkTime {
    last_end: Nanos,
    total: Nanos,
    samples: u64,
}

impl ThinkTime {
    /// A request arrived (`__cfq_update_io_thinktime`).
    pub(super) fn arrived(&mut self, now: Nanos) {
        let elapsed = (now - self.last_end).min(2 * SLICE_IDLE);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * elapsed) / 8;
    }

    /// A request is done.
    pub(super) fn completed(&mut self, now: Nanos) {
        self.last_end = now;
    }

    /// None if there were too few requests to say.
    pub(super) fn mean(&self) -> Option<Nanos> {
        (self.samples > SAMPLES_MIN).then(|| (self.total + 128) / self.samples)
    }

    /// `cfq_io_thinktime_big`
    pub(super) fn is_big(&self) -> bool {
        self.mean().is_some_and(|mean| mean > SLICE_IDLE)
    }
}

/// Which of the last 32 requests of a process were far from the one before (`seek_history`).
#[derive(Debug, Default)]
pub(super) struct Seeks {
    history: u32,
    last_end: Option<u64>,
}

impl Seeks {
    /// A request of the pages from `start` to before `end` arrived (`cfq_update_io_seektime`).
    pub(super) fn arrived(&mut self, rotational: bool, start: u64, end: u64) {
        let far = if rotational {
            self.last_end
                .is_some_and(|last| last.abs_diff(start) > SEEK_THRESHOLD)
        } else {
            end - start < SMALL_REQUEST
        };
        self.history = self.history << 1 | u32::from(far);
        self.last_end = Some(end);
    }

    /// `CFQQ_SEEKY`
    pub(super) fn seeky(&self) -> bool {
        self.history.count_ones() > SEEKS_MAX
    }
}
