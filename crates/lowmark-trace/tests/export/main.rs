//! Exports, read back: by lowmark's own parsers, by the schemas' own readers, and against captures of real
//! kernels.
//!
//! What is not in the repository is named by the environment; without it a test says so and passes.
//!
//! | variable | what |
//! |---|---|
//! | `LOWMARK_CAPTURES` | directory with captures of real kernels, `*.trace.txt.xz` |
//! | `LOWMARK_PYTHON` | a Python that has the packages `pyarrow` and `perfetto` |
//! | `LOWMARK_TRACE_CMD` | `trace-cmd` |
//! | `LOWMARK_POSTPROCESS` | `trace-vmscan-postprocess.pl` of a kernel from 3.2 to 3.4 |

// Every format is exported.
#![cfg(feature = "parquet")]

mod files;
mod perfetto;
mod support;
mod tables;
mod text;
mod trace_dat;
