//! `lowmark-runner`: carries out a workload on the kernel that runs: as PID 1 of a guest, or as a child of lowmark.

use std::process::ExitCode;

fn main() -> ExitCode {
    lowmark_real::init::main()
}
