//! Why tasks waited for memory: what made them wait, what needed the room, and what would help.
//!
//! Two answers are kept apart. The **limit** is what made a task wait: global reclaim, the limit of a memory
//! cgroup, dirty limits, or free memory that lies in pieces. The **demand** is what needed room: pages that come
//! back, pages that are new, of anonymous memory and of files.
//!
//! 1. A [`WhyReport`] is a [`Sink`](lowmark_record::Sink): events go by, memory stays bounded. A begin and its end
//!    are a [`Wait`]; what happens inside one is nested, and subtracted where time is told by what it went into.
//! 2. [`WhyReport::finish`] puts beside it what else is known ([`Surroundings`]: counters, series of them, pressure,
//!    zones, disks), which makes the [`Evidence`].
//! 3. Causes are declared one a file below `causes/`: each has the evidence that it needs, and its arithmetic as a
//!    function of it. All arithmetic is on integers, ns and pages.
//! 4. The [`Answer`] is text, JSON, or the short form at the head of a report. `docs/causes.md` comes from the
//!    same declarations ([`documentation`]).
//!
//! ```text
//! wait.rs threads.rs awake.rs episodes.rs dirty.rs asked.rs sink.rs   while events go by
//! surroundings.rs series.rs                what is known besides
//! inflow.rs split.rs residual.rs evidence.rs   how time is shared out
//! cause.rs causes/ faults.rs               what it can come from
//! account.rs answer.rs                     what it comes to
//! text.rs words.rs json.rs documentation.rs    what is printed
//! ```

mod account;
mod answer;
mod asked;
mod awake;
mod cause;
mod causes;
mod course;
mod dirty;
mod documentation;
mod episodes;
mod evidence;
mod faults;
mod inflow;
mod json;
mod residual;
mod series;
mod sink;
mod split;
mod surroundings;
mod text;
mod threads;
mod wait;
mod words;

pub use account::{Account, Gap, LimitRow, Row};
pub use answer::{Advised, Answer, EpisodeRow, Stall};
pub use cause::{Cause, Confidence, Finding, Knob, Role, Test};
pub use causes::CAUSES;
pub use documentation::documentation;
pub use episodes::Episode;
pub use evidence::Evidence;
pub use faults::{Fault, KNOWN_FAULTS};
pub use inflow::Inflow;
pub use series::CounterSeries;
pub use sink::{TOP_MAX, WhyOptions, WhyReport};
pub use surroundings::{Disk, Pressure, Surroundings, SurroundingsError};
pub use wait::{Inside, Limit, Request, Wait};

#[cfg(test)]
mod tests;
