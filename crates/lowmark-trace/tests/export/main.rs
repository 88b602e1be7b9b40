//! Exports, read back: by lowmark's own parsers, by the schemas' own readers, and against captures of real
//! kernels.
//!
//! What is not in the repository is named by the environment; without it a test says that it judges nothing, which
//! `LOWMARK_CI=1` makes an error.
//!
//! | variable | what |
//! |---|---|
//! | `LOWMARK_CAPTURES` | directory with captures of real kernels, `*.trace.txt.xz` |
//! | `LOWMARK_PYTHON` | a Python that has the packages `pyarrow` and `perfetto` |
//! | `LOWMARK_TRACE_CMD` | `trace-cmd` |
//! | `LOWMARK_VMSCAN_SCRIPT` | `trace-vmscan-postprocess.pl` of 6.1 |

// Every format is exported.
#![cfg(feature = "parquet")]

#[path = "../../../../tests/needed.rs"]
mod needed;

mod files;
mod perfetto;
mod support;
mod tables;
mod text;
mod trace_dat;
