//! Block devices: physics, request queues, elevators.
//!
//! A page of I/O goes down like this:
//!
//! 1. Of a striped device it goes to the member that it lies on, which has a queue as any disk has.
//! 2. [`BlockLayer::submit`] merges it into a request of the submitter's plug, else into one of the
//!    elevator, else takes a new request; when the queue has no request left the submitter
//!    waits ([`tags`]).
//! 3. A plug is flushed into the elevator when its owner ends it, sleeps, or has too much in it; how much it may hold
//!    depends on the kernel and on the device ([`blk_mq`]).
//! 4. The elevator hands requests to the device ([`dispatch`]), which serves `parallelism` at a time.
//! 5. Drivers may need memory for what is under way ([`virtio`]).
//! 6. When one is done, its pages are given back and the next is dispatched.
//!
//! Positions and lengths are in pages of the device.

mod blk_mq;
mod cfq;
mod deadline;
mod disk;
mod dispatch;
mod elevator;
mod errors;
mod flash;
mod plug;
mod queue;
mod request;
mod stripes;
mod tags;
mod virtio;
mod waiting;

pub(crate) use disk::Disk;
pub(crate) use dispatch::kblockd;
pub(crate) use queue::{BlockLayer, Completed, Flush, Served, Submitted};
pub(crate) use request::{Dir, Io};
