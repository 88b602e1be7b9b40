//! Virtual time.
//!
//! Tasks and kernel threads are `async fn`s that run on simulated CPUs. Time moves in two ways: a task
//! on a CPU *spends* time ([`Sched::spend`]), and timers fire. A task that spends time runs ahead
//! without giving up control as long as nothing else could happen before it arrives (the *horizon*:
//! the next timer, or the tick that ends its time when others wait for a CPU). That makes long stretches
//! of undisturbed work one tight loop, and still gives exactly the order of events that one event per
//! step would give. Tasks that touch pages which are there run ahead of each other as well
//! ([`Sched::undisturbed_by_touches`]).
//!
//! Everything that happens at the same time happens in the order in which it was asked for.

mod executor;
mod fair;
mod rwsem;
mod sched;
mod spinlock;
mod timer;
mod wait;

pub(crate) use executor::{Suspend, run_until_idle};
pub(crate) use rwsem::RwSem;
pub(crate) use sched::{BoxFuture, Mode, Sched, SwitchCosts, TaskId, TaskState};
pub(crate) use spinlock::{LockStat, SpinLock};
pub(crate) use timer::expiry;
pub(crate) use wait::WaitQueue;

/// Nanoseconds of virtual time since the run began.
pub(crate) type Nanos = u64;

/// Virtual time ends here, after 292 years: the largest time of the workload language, and `KTIME_MAX`. What is due
/// later never happens, and the sum of two times fits all the same.
pub(crate) const TIME_MAX: Nanos = i64::MAX as Nanos;
/// Nanoseconds in a second.
pub(crate) const SECOND: Nanos = 1_000_000_000;
/// Nanoseconds in a millisecond.
pub(crate) const MSEC: Nanos = 1_000_000;
