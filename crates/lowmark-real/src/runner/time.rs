//! Sleeping, spinning and keeping a pace.

use super::report::now_ns;
use lowmark_spec::pace::Pace;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

const SECOND: u64 = 1_000_000_000;

/// Sleeps until this time of CLOCK_MONOTONIC.
pub(super) fn sleep_until(time_ns: u64) {
    let time = Timespec {
        tv_sec: i64::try_from(time_ns / SECOND).unwrap_or(i64::MAX),
        tv_nsec: (time_ns % SECOND) as _,
    };
    // A signal ends it early; then it goes on.
    while clock_nanosleep_absolute(ClockId::Monotonic, &time) == Err(rustix::io::Errno::INTR) {}
}

/// nanosleep(2).
pub(super) fn sleep(time_ns: u64) {
    sleep_until(now_ns().saturating_add(time_ns));
}

/// Uses this much CPU time in user mode.
pub(super) fn burn(time_ns: u64) {
    // The clock of the thread's CPU time takes a system call, so it is asked once in a while only.
    const SPELL_NS: u64 = 1_000_000;
    let used = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec.unsigned_abs() * SECOND + time.tv_nsec.unsigned_abs()
    };
    let end = used().saturating_add(time_ns);
    loop {
        let left = end.saturating_sub(used());
        if left == 0 {
            return;
        }
        let until = now_ns() + left.min(SPELL_NS);
        while now_ns() < until {
            std::hint::spin_loop();
        }
    }
}

/// Sleeps until the next `units` units of a paced series may begin.
pub(super) fn wait(pace: &mut Pace, units: u64) {
    let due = pace.next(units);
    if due > now_ns() {
        sleep_until(due);
    }
}
