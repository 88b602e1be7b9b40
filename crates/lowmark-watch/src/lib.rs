//! What memory management does, look by look.
//!
//! ```text
//!   a recording ── look ──┐
//!                         ├── timeline ── rates ── story ──┬── lines    one for each look
//!   a system, live ───────┘                    player ─────┴── screen   of a terminal
//! ```
//!
//! A look is what files under `/proc` said at one time, whether those of a real kernel or those that the model would
//! have. From two looks follow rates, and from these the sentence that says what goes on. Nothing here reads files, keys or
//! clocks: who watches brings looks, and what time it is.

pub mod lines;
pub mod look;
pub mod player;
pub mod rates;
pub mod screen;
pub mod story;
pub mod timeline;
