//! What another setting would have done to a load that was recorded.
//!
//! A recording says what a kernel did, not what it was asked for. So the load is reconstructed first, and then run on the
//! model with the setting as it was and with the other one:
//!
//! 1. [`demand`] reads from the counters how much memory was touched, and of which kind; what counters do not tell apart is
//!    refused there.
//! 2. [`candidate`] says which loads come into question: each is a few lines of the workload language, which anyone can run,
//!    read and change.
//! 3. [`fit`] runs them on the model and changes how much they touch until the model swaps in what the kernel did. All that fit
//!    about as well are kept: an answer that only one of them gives is none.
//! 4. [`answer`] runs those with both settings. The measured figure times the model's ratio is what would have been.
//!    Where the model is off already with the setting as it was, or the reconstructions disagree, it says so in place of a number.
//!
//! Arithmetic is in integers, and everything is tried in a fixed order: the same recording gives the same answer anywhere.

mod answer;
mod candidate;
mod counters;
mod demand;
mod fit;
mod knobs;
mod loss;
mod refusal;
mod row;
mod text;

pub use answer::{Answer, Question, Reconstructed, Setting, ask};
pub use candidate::{Access, Candidate, Kind, Order};
pub use counters::{COUNTERS, Counter, Figures, Sort};
pub use demand::Demand;
pub use fit::{Fit, Fitted, Runner, fit};
pub use knobs::{Asked, Knobs};
pub use loss::{LOSS_MAX, LOSS_ROUGH};
pub use refusal::{Error, Refusal};
pub use row::{Row, Verdict};
