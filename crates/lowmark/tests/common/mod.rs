//! What the tests of the command line share: small workloads and ways to run lowmark.
#![allow(dead_code, reason = "every test file uses a part")]

pub(crate) mod kept_runs;
pub(crate) mod pages;

use assert_cmd::Command;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A process that goes round 40 MB in a machine of 32 MB: over in a few milliseconds.
pub(crate) const SMALL: &str = r#"
lowmark = 1

[workload]
name = "small"
title = "40 MB in 32 MB"

[for]
order = ["seq", "random"]

[let]
size = "40M"

[machine]
use = "small-512m-ssd"
ram = "32M"
occupied = "1M"
reserved = "1M"

[kernel]
use = "v3.6"

[task.main]
run = [
  { map = "m", kind = "anon-private", size = "size" },
  { touch = "m", access = "write" },
  { sample = "again", unit = "ms", do = [
    { touch = "m", access = "write", order = "$order", count = 3000 },
  ] },
]
"#;

/// A directory of its own with `small.toml` in it.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place {
            directory: TempDir::new().expect("a directory"),
        };
        place.write("small.toml", SMALL);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Runs lowmark here.
    pub(crate) fn lowmark(&self, args: &[&str]) -> Done {
        self.lowmark_with(args, &[])
    }

    /// The same with environment variables.
    pub(crate) fn lowmark_with(&self, args: &[&str], variables: &[(&str, String)]) -> Done {
        let mut command = Command::cargo_bin("lowmark").expect("the program is built");
        command.env_remove("NO_COLOR");
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(self.directory.path()).args(args);
        let output = command.output().expect("it starts");
        Done {
            status: output.status.code().expect("it ends by itself"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// A terminal with this number of columns: our end, and that of a program.
pub(crate) fn terminal(columns: u16) -> (std::fs::File, std::fs::File) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("granted");
    unlockpt(&ours).expect("unlocked");
    let name = ptsname(&ours, Vec::new()).expect("a name");
    let theirs =
        rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened");
    let size = Winsize {
        ws_row: 24,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).expect("a size");
    (ours.into(), theirs.into())
}

/// Runs a command with its output on a terminal with this number of columns; of its errors the text is kept.
pub(crate) fn on_terminal(mut command: std::process::Command, columns: u16) -> Done {
    use std::io::Read;
    let (mut ours, theirs) = terminal(columns);
    command
        .stdin(std::process::Stdio::null())
        .stdout(theirs)
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    // Its ends of the terminal are closed with it, and only then does reading end.
    drop(command);
    let screen = std::thread::spawn(move || {
        let mut screen = Vec::new();
        // Linux reports the end as an error.
        let _ = ours.read_to_end(&mut screen);
        screen
    });
    let output = child.wait_with_output().expect("it ends");
    let screen = screen.join().expect("read");
    Done {
        status: output.status.code().expect("it ends by itself"),
        stdout: String::from_utf8(screen)
            .expect("text")
            .replace("\r\n", "\n"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// What a run of lowmark left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The output of a run that went well.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.status, 0, "{}", self.stderr);
        self.stdout
    }

    /// The message of a run that is an error: all of `parts` are in it, and stdout is empty.
    #[track_caller]
    pub(crate) fn error(self, parts: &[&str]) {
        self.failed(2, parts);
    }

    /// The same with another exit status.
    #[track_caller]
    pub(crate) fn failed(self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.stdout, "");
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "{part:?} is not in {}",
                self.stderr
            );
        }
    }

    /// The JSON document of a run that went well.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.good()).expect("JSON")
    }
}

/// Every file below a directory with its bytes.
pub(crate) fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).expect("below").to_owned();
                files.insert(name, std::fs::read(&path).expect("readable"));
            }
        }
    }
    files
}
