//! Block devices: physics, request queues, elevators.
//!
//! A page of I/O goes down like this:
//!
//! 1. [`BlockLayer::submit`] merges it into a request of the submitter's plug, else into one of the
//!    elevator, else takes a new request; when the queue has no request left for its class the
//!    submitter waits.
//! 2. A plug is flushed into the elevator when its owner ends it, sleeps, or has 16 requests.
//! 3. The elevator hands requests to the device, which serves `parallelism` at a time.
//! 4. When one is done, its pages are given back and the next is dispatched.
//!
//! Positions and lengths are in pages of the device.

mod cfq;
mod deadline;
mod disk;
mod elevator;
mod queue;
mod request;
mod waiting;

pub(crate) use queue::{BlockLayer, Submitted};
pub(crate) use request::{Dir, Io};
