//! What the runner says, one JSON object a line.
//!
//! Every process of a run writes to the same pipe. A line is at most [`LINE_BYTES_MAX`] long and written
//! at once, so that lines of different processes do not mix (`PIPE_BUF`, pipe(7)).

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;

/// Longest line that a process of the workload writes.
pub const LINE_BYTES_MAX: usize = 4096;

/// A line of the runner. Times are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// Files are ready, the tasks start.
    Start {
        /// When.
        time_ns: u64,
    },
    /// A phase began.
    Phase {
        /// Index of its label.
        phase: usize,
        /// Task that said so.
        task: usize,
        /// When.
        time_ns: u64,
    },
    /// Samples of one process.
    Samples {
        /// Number of the process in the run.
        process: usize,
        /// Number of the batch in the process. A process killed at the wrong moment leaves its last batch
        /// twice.
        batch: u32,
        /// Series, time of completion, value.
        samples: Vec<(u64, u64, u64)>,
    },
    /// Pages that a touch statement came to, in order.
    Touches {
        /// Index of the task.
        task: usize,
        /// Instance of it.
        instance: usize,
        /// Thread of the instance, from 1; 0 if it has not been parted.
        thread: u64,
        /// Pages of the map.
        pages: Vec<u64>,
    },
    /// A process or thread of a task ended.
    Task {
        /// Index of the task.
        task: usize,
        /// Process or thread id.
        pid: u32,
        /// User time.
        user_ns: u64,
        /// System time.
        system_ns: u64,
        /// Faults without I/O.
        minor_faults: u64,
        /// Faults with I/O.
        major_faults: u64,
        /// Start.
        start_ns: u64,
        /// End.
        end_ns: u64,
    },
    /// A statement could not be carried out; the run ends.
    Fault {
        /// Index of the task.
        task: usize,
        /// Line of the workload file.
        line: u32,
        /// What went wrong.
        problem: String,
    },
    /// A process was killed, and not by the workload; the run ends.
    Died {
        /// Index of the task.
        task: usize,
        /// Process id.
        pid: u32,
        /// By which signal.
        signal: i32,
    },
    /// All is over.
    End {
        /// When.
        time_ns: u64,
    },
    /// The runner itself failed.
    Failed {
        /// What went wrong.
        problem: String,
    },
}

impl Line {
    /// The line with its line feed. One that is too long loses the end of its text.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.json();
        if bytes.len() > LINE_BYTES_MAX {
            let shorter = match self.clone() {
                Line::Fault {
                    task,
                    line,
                    problem,
                } => Line::Fault {
                    task,
                    line,
                    problem: cut(&problem),
                },
                Line::Failed { problem } => Line::Failed {
                    problem: cut(&problem),
                },
                other => other,
            };
            bytes = shorter.json();
        }
        bytes
    }

    fn json(&self) -> Vec<u8> {
        // Plain data of known types: this cannot fail, and a line less is better than no run.
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LINE_BYTES_MAX / 8).collect()
}

/// CLOCK_MONOTONIC, ns: the clock of every line, and of the trace.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Writes lines to the standard output of the process, which all processes of a run share.
pub(super) fn write(line: &Line) -> io::Result<()> {
    let bytes = line.to_bytes();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(io::stdout(), rest)?;
        rest = &rest[written..];
    }
    Ok(())
}
