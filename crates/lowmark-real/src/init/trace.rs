//! The trace, through tracefs.
//!
//! 1. The buffer gets its size, the clock is CLOCK_MONOTONIC (that of the runner's lines), the events that
//!    this kernel has are switched on, recording is off.
//! 2. Recording begins; a thread reads `trace_pipe` every few milliseconds and writes it to a port.
//!    Reading in batches disturbs the workload less than waking up for every event.
//! 3. Recording ends, the thread reads what is left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROOT: &str = "/sys/kernel/tracing";
/// Bytes read at once.
const CHUNK: usize = 64 << 10;
/// Time between two readings that find nothing.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Tracing {
    stopped: AtomicBool,
    /// Events that were asked for and that this kernel does not have.
    pub(super) missing: Vec<String>,
}

fn write(file: &str, value: &str) -> io::Result<()> {
    let path = format!("{ROOT}/{file}");
    fs::write(&path, value).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot write {value} to {path}: {error}"),
        )
    })
}

impl Tracing {
    pub(super) fn prepare(events: &[String], buffer_kb: u64) -> io::Result<Tracing> {
        write("tracing_on", "0")?;
        write("trace_clock", "mono")?;
        write("buffer_size_kb", &buffer_kb.to_string())?;
        // Names of tasks are kept for so many only, and `<...>` is nobody's name.
        write("saved_cmdlines_size", "4096")?;
        write("trace", "")?;
        let mut missing = Vec::new();
        for event in events {
            let path = match event.split_once(':') {
                Some((group, "*" | "")) => format!("events/{group}/enable"),
                Some((group, event)) => format!("events/{group}/{event}/enable"),
                None => format!("events/{event}/enable"),
            };
            if Path::new(ROOT).join(&path).exists() {
                write(&path, "1")?
            } else {
                missing.push(event.clone())
            }
        }
        Ok(Tracing {
            stopped: AtomicBool::new(false),
            missing,
        })
    }

    pub(super) fn begin(&self) -> io::Result<()> {
        write("tracing_on", "1")
    }

    pub(super) fn end(&self) -> io::Result<()> {
        write("tracing_on", "0")
    }

    /// The thread that streams may end when it has read everything.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Streams the trace until it has ended; how many bytes.
    pub(super) fn stream(&self, mut destination: File) -> io::Result<u64> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut source = options.open(format!("{ROOT}/trace_pipe"))?;
        let mut chunk = vec![0; CHUNK];
        let mut bytes = 0;
        loop {
            // Asked before reading: what was recorded before the end is then read after it.
            let stopped = self.stopped.load(Ordering::Acquire);
            match source.read(&mut chunk) {
                Ok(read) if read > 0 => {
                    destination.write_all(&chunk[..read])?;
                    bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ if stopped => return Ok(bytes),
                _ => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Events that the ring buffers lost.
    pub(super) fn lost(&self) -> io::Result<u64> {
        crate::record::lost(Path::new(ROOT))
    }
}
