//! What lowmark changes in the system that it is on, and how that is undone, whatever becomes of lowmark.
//!
//! ```text
//! changes   every change that there is, one call each
//! journal   what was changed, on the disk before it is
//! steps     how each change is undone
//! lock      one run at a time
//! keeper    a process of its own that undoes them when lowmark ends, however it ends
//! ```

mod changes;
mod journal;
mod keeper;
mod lock;
mod steps;

pub use changes::{Changes, Real};
pub use journal::{Places, Process, Recovered, recover};
pub use steps::{Instances, Undo};

pub(crate) use journal::{Journal, instance_of};
pub(crate) use keeper::{KEEP_ARGUMENT, Keeper, keep};
pub(crate) use lock::{Lock, NoLock};
pub(crate) use steps::{OWN, read_setting};
