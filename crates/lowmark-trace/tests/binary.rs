//! The binary carriers and the kernel's format texts: files written here, and captures of real kernels.
//!
//! The captures are not carried. Where the environment variable `LOWMARK_CAPTURES` names their
//! directory they are read, else these tests say that they judge nothing, which `LOWMARK_CI=1` makes an error. Two small pieces of them stand in
//! `fixtures/`.

#[path = "../../../tests/needed.rs"]
mod needed;

#[path = "binary/captures.rs"]
mod captures;
#[path = "binary/damage.rs"]
mod damage;
#[path = "binary/fixtures.rs"]
mod fixtures;
#[path = "binary/perf.rs"]
mod perf;
#[path = "binary/trace.rs"]
mod trace;
#[path = "binary/writer.rs"]
mod writer;
