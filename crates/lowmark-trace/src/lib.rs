//! Trace files in and out.
//!
//! ```text
//!   file or pipe ── input ──> text/       ftrace, perf script, trace-cmd report ──┐
//!                         ──> trace_dat/  trace.dat 6 and 7                      ──┼─> events
//!                         ──> perf_data/  perf.data                              ──┘
//!
//!   events ── export ──> ftrace text, Perfetto, JSON lines, CSV, Parquet
//! ```

mod actors;
mod decode;
pub mod export;
pub mod format;
pub mod input;
pub mod perf_data;
mod reader;
pub mod record;
pub mod ring_buffer;
pub mod text;
pub mod trace_dat;

pub use reader::{ReadError, read};
