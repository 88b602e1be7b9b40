//! What the console of a guest says about its end.

use super::GuestError;
use crate::protocol::{CONSOLE_PREFIX, NO_DEVICE};

/// Lines of the console in a message.
const TAIL: usize = 12;

/// The last lines, for people.
pub(super) fn tail(console: &[String]) -> String {
    let last = console
        .iter()
        .filter(|line| !line.trim().is_empty())
        .rev()
        .take(TAIL);
    let last: Vec<String> = last.map(|line| format!("  {line}")).collect();
    if last.is_empty() {
        "  (nothing)".into()
    } else {
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// The error of a guest that misses a device, if that is its problem.
pub(super) fn no_virtio(problem: &str, console: &[String]) -> Option<GuestError> {
    let device = problem.strip_suffix(NO_DEVICE)?.replace(CONSOLE_PREFIX, "");
    Some(GuestError::NoVirtio {
        what: format!("a virtio driver ({device} did not appear)"),
        console: format!("; last console output:\n{}", tail(console)),
    })
}

/// The first line that tells of a request that a disk did not serve. QEMU passes the host's errors on
/// (`werror=report`), and a guest's disks have no others.
pub(super) fn disk_error(console: &[String]) -> Option<&str> {
    let told = |line: &&String| line.contains("I/O error, dev vd");
    console.iter().find(told).map(|line| line.trim())
}

/// Texts of the kernel when there is not even memory to start in.
const TOO_SMALL: [&str; 6] = [
    "System is deadlocked on memory",
    "Initramfs unpacking failed",
    "not enough memory",
    "Out of memory and no killable processes",
    "No working init found",
    "initrd overwritten",
];
/// Texts of a kernel that breaks.
const CRASHES: [&str; 6] = [
    "Oops: ",
    "kernel BUG at",
    "BUG: ",
    "general protection fault",
    "Kernel panic",
    "#PF:",
];

/// Why a guest that said no last word has ended; `started` if PID 1 had begun.
pub(super) fn diagnose(console: &[String], started: bool, ram: u64) -> GuestError {
    let find = |texts: &[&str]| {
        let mut lines = console.iter();
        lines
            .find(|line| texts.iter().any(|text| line.contains(text)))
            .cloned()
    };
    let tail = tail(console);
    if let Some(error) = find(&[CONSOLE_PREFIX]).and_then(|line| no_virtio(&line, console)) {
        return error;
    }
    let panic = find(&["Kernel panic"]);
    let out_of_memory = find(&[
        "Out of memory",
        "System is deadlocked on memory",
        "oom-kill:",
    ]);
    if !started && find(&TOO_SMALL).or(out_of_memory.clone()).is_some() {
        return GuestError::RamTooSmall {
            ram_mb: ram >> 20,
            console: tail,
        };
    }
    if out_of_memory.is_some() && panic.is_some() {
        return GuestError::OutOfMemory { console: tail };
    }
    if let Some(what) = find(&CRASHES) {
        return GuestError::Crashed {
            what: what.trim().to_owned(),
            console: tail,
        };
    }
    // A kernel that does not even fit says nothing at all.
    const SURELY_ENOUGH: u64 = 96 << 20;
    if !started && ram < SURELY_ENOUGH {
        return GuestError::RamTooSmall {
            ram_mb: ram >> 20,
            console: tail,
        };
    }
    let problem = match find(&[CONSOLE_PREFIX]) {
        Some(line) => line.replace(CONSOLE_PREFIX, ""),
        None if started => "it stopped while it ran".into(),
        None => "it never started its first program".into(),
    };
    GuestError::NoResult {
        problem,
        console: tail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnose_text(text: &str, started: bool) -> String {
        let console: Vec<String> = text.lines().map(str::to_owned).collect();
        diagnose(&console, started, 512 << 20).to_string()
    }

    #[test]
    fn ends_have_their_names() {
        let oops =
            "[ 3.0] BUG: kernel NULL pointer dereference\n[ 3.1] Kernel panic - not syncing: Fatal";
        assert!(diagnose_text(oops, true).contains("crashed: [ 3.0] BUG: kernel NULL"));
        let oom =
            "[ 1.0] Out of memory: Killed process 1\n[ 1.1] Kernel panic - not syncing: Attempted";
        assert!(diagnose_text(oom, true).contains("ran out of memory"));
        assert!(diagnose_text(oom, false).contains("did not start with 512 MB"));
        let virtio = format!("{CONSOLE_PREFIX}the disk swap0{NO_DEVICE}");
        let virtio = diagnose_text(&virtio, false);
        assert!(
            virtio.contains("lacks a virtio driver (the disk swap0 did not appear)"),
            "{virtio}"
        );
        assert!(diagnose_text("", false).contains("never started its first program"));
        assert!(diagnose_text("", true).contains("(nothing)"));
    }

    #[test]
    fn errors_of_disks_are_found() {
        // 6.x, and as blk_update_request said it before.
        for line in [
            "[   12.3] I/O error, dev vda, sector 8 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
            "[   12.3] blk_update_request: I/O error, dev vdb, sector 8 op 0x1:(WRITE)",
        ] {
            let console = ["[ 1.0] fine".to_owned(), line.to_owned()];
            assert_eq!(disk_error(&console), Some(line));
        }
        assert_eq!(disk_error(&["[ 1.0] I/O error, dev sr0".to_owned()]), None);
    }

    #[test]
    fn the_tail_is_short() {
        let console: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let tail = tail(&console);
        assert_eq!(tail.lines().count(), TAIL);
        assert!(tail.ends_with("  99"));
    }
}
