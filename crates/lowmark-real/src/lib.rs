//! Workloads on real kernels.
//!
//! ```text
//! runner/   carries out a workload on real memory and files: one process per task, results as JSON lines
//! init/     the runner as PID 1 of a guest: mounts, swap, knobs, tracing, snapshots
//! guest/    boots a kernel image in QEMU with that PID 1 and makes a recording of what comes out
//! host/     runs the workload in a memory cgroup of the system that this is on
//! protocol  what the host and PID 1 say to each other
//! ran       what came of a workload, from the lines of the runner
//! calibrate makes a machine file of small probes
//! doctor    says what is missing for guests
//! record/   records the system that it is on: counters, and trace events in a buffer of its own
//! swap_area what swapon(2) takes, and what areas a system had
//! tracefs   where it is
//! undo      what is changed in the system that it is on, and how that is undone
//! zoneinfo  reads what a kernel says of its memory
//! ```
//!
//! The runner is a program of its own, `lowmark-runner` of the package `lowmark`, so that nothing but the workload and itself is in
//! a guest's memory. This is the only crate that touches the system; its `unsafe` code is in
//! `runner/sys.rs`.

pub mod calibrate;
mod cgroup_counters;
pub mod doctor;
pub mod guest;
pub mod host;
pub mod init;
mod kernel_log;
pub mod protocol;
mod ran;
pub mod record;
pub mod runner;
mod settings;
pub mod swap_area;
pub mod tracefs;
pub mod undo;
pub mod zoneinfo;
