//! What guests and runs on this system need, and what of it is here.

use crate::guest::{self, GuestError, kernels};
use crate::host;
use crate::tracefs::{Tracefs, locked_down};
use std::process::Command;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is here.
    Good,
    /// Runs go without it, but not as well or not with everything.
    Lacking,
    /// Nothing runs without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found, or what to do.
    pub detail: String,
}

fn check(name: &'static str, state: State, detail: impl Into<String>) -> Check {
    Check {
        name,
        state,
        detail: detail.into(),
    }
}

/// Looks at everything that guests need. Nothing is started but `qemu --version`.
pub fn guests() -> Vec<Check> {
    vec![qemu(), runner(), kernels(), kvm(), mke2fs(), mkfs_xfs()]
}

/// Looks at what runs on this system need (`--on host`).
pub fn host() -> Vec<Check> {
    vec![cgroups(), trace_events()]
}

fn cgroups() -> Check {
    const NAME: &str = "memory cgroups";
    match host::cgroups() {
        Ok((version, place)) => {
            let detail = format!("version {version}, made in {}", place.display());
            check(NAME, State::Good, detail)
        }
        Err(why) => check(NAME, State::Missing, why),
    }
}

fn trace_events() -> Check {
    const NAME: &str = "trace events";
    match (locked_down(), Tracefs::find()) {
        (Some(why), _) => check(NAME, State::Lacking, why),
        (None, Ok(_)) => check(NAME, State::Good, "tracefs"),
        (None, Err(error)) => check(NAME, State::Lacking, error.to_string()),
    }
}

fn qemu() -> Check {
    const NAME: &str = "QEMU";
    let path = match guest::find_qemu() {
        Ok(path) => path,
        Err(error) => return check(NAME, State::Missing, error.to_string()),
    };
    let output = Command::new(&path).arg("--version").output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            let version = text
                .lines()
                .next()
                .unwrap_or("")
                .replace("QEMU emulator version ", "");
            check(NAME, State::Good, format!("{version}, {}", path.display()))
        }
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let problem = format!("{} does not start: {}", path.display(), text.trim());
            check(NAME, State::Missing, problem)
        }
        Err(error) => check(NAME, State::Missing, format!("{}: {error}", path.display())),
    }
}

fn runner() -> Check {
    const NAME: &str = "runner";
    match guest::find_runner() {
        Ok(path) => check(NAME, State::Good, path.display().to_string()),
        Err(error) => check(NAME, State::Missing, error.to_string()),
    }
}

fn kernels() -> Check {
    const NAME: &str = "kernels";
    let versions = kernels::fetched();
    if versions.is_empty() {
        let detail = "none in the cache; `lowmark kernels fetch 6.18`, or give --image";
        return check(NAME, State::Lacking, detail);
    }
    let found = |version: &String| match guest::KernelImage::find(version) {
        Ok(image) => format!("{version} ({})", image.release),
        Err(error) => format!("{version} ({error})"),
    };
    check(
        NAME,
        State::Good,
        versions.iter().map(found).collect::<Vec<_>>().join(", "),
    )
}

fn kvm() -> Check {
    const NAME: &str = "KVM";
    match guest::kvm_known() {
        (false, _) => {
            let detail =
                "/dev/kvm cannot be used; guests run in QEMU's translator, some ten times slower";
            check(NAME, State::Lacking, detail)
        }
        (true, Some(true)) => check(NAME, State::Good, "a guest boots with it"),
        (true, Some(false)) => {
            let detail = "/dev/kvm is there, but no guest boots with it; QEMU's translator is used";
            check(NAME, State::Lacking, detail)
        }
        (true, None) => check(
            NAME,
            State::Good,
            "/dev/kvm is there; the first guest tries it",
        ),
    }
}

fn mke2fs() -> Check {
    const NAME: &str = "mke2fs";
    match guest::mke2fs() {
        Some(path) => check(NAME, State::Good, path.display().to_string()),
        None => {
            let problem = GuestError::NoFileSystem {
                problem: "no mke2fs here; install e2fsprogs to run workloads with files".into(),
            };
            check(NAME, State::Lacking, problem.to_string())
        }
    }
}

fn mkfs_xfs() -> Check {
    const NAME: &str = "mkfs.xfs";
    match guest::mkfs_xfs() {
        Some(path) => check(NAME, State::Good, path.display().to_string()),
        None => {
            let detail =
                "no mkfs.xfs here; install xfsprogs, or machines with XFS have ext4 in guests";
            check(NAME, State::Lacking, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_says_something() {
        for check in guests().into_iter().chain(host()) {
            assert!(!check.detail.is_empty(), "{}", check.name);
        }
    }
}
