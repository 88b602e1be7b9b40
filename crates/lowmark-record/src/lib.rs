//! Recordings: what one run showed, whatever ran it.
//!
//! Model, guest, host and trace files all end here, and everything that lowmark prints begins here.

pub mod event;
mod layout;
pub mod recording;
pub mod store;

pub use event::{Event, Payload};
pub use recording::{Outcome, Phase, Recording, RunInfo, Series, TaskTimes, Unit};
pub use store::{EventReader, StoreError, check_writable};
