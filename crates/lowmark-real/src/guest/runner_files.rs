//! The runner as a guest needs it: the program without its symbols and, if it is linked dynamically, the
//! libraries that it maps.
//!
//! An ordinary `cargo build` makes a dynamic program, which therefore does; a static one (target-feature
//! `+crt-static`, or a musl target) is a file less.

use super::{GuestError, elf};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "lowmark-runner";
/// Environment variable that names the runner.
const VARIABLE: &str = "LOWMARK_RUNNER";

/// Finds the runner: `LOWMARK_RUNNER`, beside this program, one directory up (programs of tests).
pub(crate) fn find() -> Result<PathBuf, GuestError> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        return path.is_file().then_some(path).ok_or(GuestError::NoRunner);
    }
    let own = std::env::current_exe().map_err(|_| GuestError::NoRunner)?;
    let beside = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join(PROGRAM));
    beside
        .into_iter()
        .find(|path| path.is_file())
        .ok_or(GuestError::NoRunner)
}

/// Paths in the guest, without a slash in front, and contents.
pub(super) fn collect(runner: &Path) -> Result<Vec<(String, Vec<u8>)>, GuestError> {
    let read = |path: &Path| fs::read(path).map_err(|error| GuestError::io(path, error));
    let program = read(runner)?;
    let mut files = Vec::new();
    if let Some(interpreter) = elf::interpreter(&program) {
        let mut wanted = vec![(interpreter.clone(), PathBuf::from(&interpreter))];
        let libraries = libraries(runner)?.into_iter();
        // The loader looks for libraries in /lib, whatever directory they are from.
        wanted.extend(libraries.filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let is_loader = interpreter.ends_with(&format!("/{name}"));
            (!is_loader).then(|| (format!("/lib/{name}"), path))
        }));
        for (target, source) in wanted {
            files.push((
                target.trim_start_matches('/').to_owned(),
                elf::strip(read(&source)?),
            ));
        }
    }
    files.push(("init".into(), elf::strip(program)));
    Ok(files)
}

/// The libraries that the runner maps, as it says itself.
fn libraries(runner: &Path) -> Result<Vec<PathBuf>, GuestError> {
    let output = Command::new(runner).arg("--libraries").output();
    let output = output.map_err(|error| GuestError::io(runner, error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(PathBuf::from).collect())
}
