//! Trace events by perf(1), where tracefs gives no buffer of one's own: without root perf may be allowed to record them all the
//! same (CAP_PERFMON, `kernel.perf_event_paranoid` of -1).
//!
//! 1. perf writes into a file without a name, by its standard output, and records until the program that it runs ends: `cat`,
//!    which ends when its input does.
//! 2. The input is a pipe of the recorder's. So whatever becomes of the recorder, SIGKILL too, perf ends, and its file is gone.
//! 3. What it wrote is read as any perf.data, at the end only: there is no ring.

use super::events::Into;
use crate::guest::trace_notes;
use lowmark_record::{Kind, Recording};
use lowmark_trace::input::Input;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time until perf records, and until it has written what it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at it.
const LOOK: Duration = Duration::from_millis(20);

/// perf at work.
#[derive(Debug)]
pub(super) struct Perf {
    child: Child,
    file: File,
    /// Kinds of events that it records.
    pub(super) events: usize,
}

impl Perf {
    /// Has a program of that name record events, and waits until it does.
    ///
    /// # Errors
    ///
    /// There is no such program, or it does not record; then with what it says last.
    pub(super) fn begin(program: &OsStr, kinds: &[Kind], spool: &Path) -> io::Result<Perf> {
        let file = tempfile::tempfile_in(spool)?;
        let mut command = Command::new(program);
        command.args(["record", "-q", "-a", "-k", "CLOCK_MONOTONIC"]);
        for kind in kinds {
            command.args(["-e", &format!("{}:{}", kind.spec().group, kind.name())]);
        }
        command.args(["-o", "/proc/self/fd/1", "--", "cat"]);
        let child = command
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run perf: {error}")))?;
        let events = kinds.len();
        let mut perf = Perf {
            child,
            file,
            events,
        };
        let start = Instant::now();
        // The head of the file is written when everything is open.
        while perf.file.metadata()?.len() == 0 {
            if perf.child.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                return Err(perf.failed());
            }
            std::thread::sleep(LOOK);
        }
        Ok(perf)
    }

    /// Why it does not record: the last line that it says.
    fn failed(&mut self) -> io::Error {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            // What it says need not be text.
            let _ = stderr.read_to_string(&mut said);
        }
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        io::Error::other(format!(
            "perf does not record: {}",
            last.unwrap_or("it says nothing").trim()
        ))
    }

    /// Ends it: its file.
    pub(super) fn finish(mut self) -> io::Result<File> {
        drop(self.child.stdin.take());
        let start = Instant::now();
        while self.child.try_wait()?.is_none() {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other("perf does not end"));
            }
            std::thread::sleep(LOOK);
        }
        self.file.try_clone()
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // Of one that has ended nothing is left to do.
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gives a recording the events of a file from `from_ns` on: how many were lost, and what its reader should know of them.
pub(super) fn read_into(
    file: &File,
    from_ns: u64,
    recording: &mut Recording,
) -> io::Result<(u64, Vec<String>)> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let mut into = Into::new(from_ns, recording);
    let source = Input::open(&path)
        .map_err(lowmark_trace::ReadError::from)
        .and_then(|input| lowmark_trace::read(input, &mut into))
        .map_err(|error| io::Error::other(format!("what perf wrote cannot be read: {error}")))?;
    Ok((source.account.lost, trace_notes(&source)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    /// A program in the place of perf.
    fn fake(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("perf");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("allowed");
        path
    }

    fn begin(directory: &Path, script: &str) -> io::Result<Perf> {
        let program = fake(directory, script);
        Perf::begin(program.as_os_str(), &[Kind::KswapdWake], directory)
    }

    #[test]
    fn it_records_until_its_input_ends_and_leaves_no_file() {
        let place = tempfile::tempdir().expect("a directory");
        let told = place.path().join("told");
        let script = format!("echo \"$@\" > {}; echo head; exec cat", told.display());
        let perf = begin(place.path(), &script).expect("begun");
        assert_eq!(perf.events, 1);
        let file = perf.finish().expect("ended");
        assert_eq!(file.metadata().expect("known").len(), 5);
        let told = std::fs::read_to_string(told).expect("told");
        assert_eq!(
            told.trim(),
            "record -q -a -k CLOCK_MONOTONIC -e vmscan:mm_vmscan_kswapd_wake -o /proc/self/fd/1 -- cat"
        );
        let names = std::fs::read_dir(place.path()).expect("listed").count();
        assert_eq!(names, 2, "the program and what it was told");
    }

    #[test]
    fn it_ends_when_nobody_holds_its_input_any_more() {
        let place = tempfile::tempdir().expect("a directory");
        let mut perf = begin(place.path(), "echo head; exec cat").expect("begun");
        // That is all that is left of a recorder that was killed.
        drop(perf.child.stdin.take());
        let status = perf.child.wait().expect("ended");
        assert_eq!((status.code(), status.signal()), (Some(0), None));
    }

    /// The real one, where there is one that may.
    #[test]
    fn what_perf_writes_is_read() {
        let place = tempfile::tempdir().expect("a directory");
        let perf = match Perf::begin(OsStr::new("perf"), &[Kind::ProcessExec], place.path()) {
            Ok(perf) => perf,
            Err(error) => return eprintln!("not tested: {error}"),
        };
        let from_ns = crate::runner::now_ns();
        let ran = Command::new("true").status().expect("run");
        assert!(ran.success());
        let file = perf.finish().expect("ended");
        let mut recording = empty();
        let (lost, _) = read_into(&file, from_ns, &mut recording).expect("read");
        assert_eq!(lost, 0);
        let events: Vec<_> = recording.events.iter().collect();
        assert!(events.iter().any(|event| event.kind == Kind::ProcessExec));
        let minute_ns = 60_000_000_000;
        assert!(
            events.iter().all(|event| event.time_ns < minute_ns),
            "its clock is the counters'"
        );
    }

    fn empty() -> Recording {
        Recording {
            run: lowmark_record::RunInfo {
                workload: String::new(),
                params: Vec::new(),
                machine: String::new(),
                kernel: String::new(),
                backend: String::new(),
                lowmark: String::new(),
                seed: 0,
                left_out: Vec::new(),
            },
            outcome: lowmark_record::Outcome::Completed,
            not_modelled: Vec::new(),
            elapsed_ns: 0,
            counters: Default::default(),
            state: Default::default(),
            tasks: Vec::new(),
            phases: Vec::new(),
            series: Vec::new(),
            gauges: Default::default(),
            history: Vec::new(),
            system: None,
            events: Default::default(),
        }
    }

    #[test]
    fn what_keeps_it_from_recording_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let error = begin(place.path(), "echo No permission >&2; exit 255").expect_err("not begun");
        assert_eq!(error.to_string(), "perf does not record: No permission");
        let nowhere = place.path().join("nowhere");
        let error = Perf::begin(nowhere.as_os_str(), &[], place.path()).expect_err("not there");
        assert!(error.to_string().starts_with("cannot run perf"), "{error}");
    }
}
