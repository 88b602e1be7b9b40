//! Recordings: what one run showed, whatever ran it.
//!
//! Model, guest, host and trace files all end here, and everything that lowmark prints begins here.

pub mod counter_log;
pub mod event;
mod layout;
pub mod recording;
pub mod release;
pub mod store;
pub mod stream;
pub mod vmstat;

pub use counter_log::{CounterLog, Look};
pub use event::{Event, EventLog, Field, Kind, Names};
pub use recording::{
    Gauges, Outcome, Phase, Recorder, Recording, Remark, RunInfo, Series, System, TaskTimes, Unit,
};
pub use release::{NoRelease, Release};
pub use store::{EventReader, StoreError, check_writable};
pub use stream::{Account, Actor, Flaw, Passing, Sink, Source, Tables};
