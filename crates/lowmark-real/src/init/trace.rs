//! The trace, through tracefs.
//!
//! 1. The buffer gets its size, the clock is CLOCK_MONOTONIC (that of the runner's lines; before 3.17 the
//!    scheduler's clock, which also begins at boot), the events that this kernel has are switched on,
//!    recording is off.
//! 2. Recording begins; a thread reads `trace_pipe` every few milliseconds and writes it to a port.
//!    Reading in batches disturbs the workload less than waking up for every event.
//! 3. Recording ends, the thread reads what is left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where tracefs lies, and where the trace lies in debugfs before 4.1.
const ROOTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Bytes read at once.
const CHUNK: usize = 64 << 10;
/// Time between two readings that find nothing.
const PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Tracing {
    stopped: AtomicBool,
    root: &'static str,
    /// What this kernel does not have of what was asked for.
    pub(super) notes: Vec<String>,
}

impl Tracing {
    pub(super) fn prepare(events: &[String], buffer_kb: u64) -> io::Result<Tracing> {
        let has_trace = |root: &&str| Path::new(root).join("trace").exists();
        let root = ROOTS.into_iter().find(has_trace).unwrap_or(ROOTS[0]);
        let mut tracing = Tracing {
            stopped: AtomicBool::new(false),
            root,
            notes: Vec::new(),
        };
        tracing.write("tracing_on", "0")?;
        if tracing.write("trace_clock", "mono").is_err() {
            tracing.write("trace_clock", "global")?;
            let text =
                "this kernel's trace has no clock mono: times of events are of the clock global";
            tracing.notes.push(text.to_owned());
        }
        tracing.write("buffer_size_kb", &buffer_kb.to_string())?;
        // The kernel keeps the names of this many tasks; a task whose name is lost shows as `<...>`. Before 3.16 the
        // number is fixed.
        if tracing.path("saved_cmdlines_size").exists() {
            tracing.write("saved_cmdlines_size", "4096")?;
        }
        tracing.write("trace", "")?;
        for event in events {
            let file = match event.split_once(':') {
                Some((group, "*" | "")) => format!("events/{group}/enable"),
                Some((group, event)) => format!("events/{group}/{event}/enable"),
                None => format!("events/{event}/enable"),
            };
            if tracing.path(&file).exists() {
                tracing.write(&file, "1")?;
            } else {
                tracing
                    .notes
                    .push(format!("this kernel has no event {event}"));
            }
        }
        Ok(tracing)
    }

    fn path(&self, file: &str) -> PathBuf {
        Path::new(self.root).join(file)
    }

    fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let path = self.path(file);
        fs::write(&path, value).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot write {value} to {}: {error}", path.display()),
            )
        })
    }

    pub(super) fn begin(&self) -> io::Result<()> {
        self.write("tracing_on", "1")
    }

    pub(super) fn end(&self) -> io::Result<()> {
        self.write("tracing_on", "0")
    }

    /// The thread that streams may end when it has read everything.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    /// Streams the trace until it has ended; how many bytes.
    pub(super) fn stream(&self, mut destination: File) -> io::Result<u64> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut source = options.open(self.path("trace_pipe"))?;
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
        crate::tracefs::lost(Path::new(self.root))
    }
}
