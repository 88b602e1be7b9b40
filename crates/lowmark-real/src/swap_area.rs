//! Swap areas: headers and files for swapon(2), and which areas of a system are files.

use lowmark_record::System;
use lowmark_spec::machine::{Machine, PAGE_SIZE};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The first page of a swap area, as mkswap(8) writes it (`union swap_header`, include/linux/swap.h).
pub(crate) fn header(size: u64) -> Vec<u8> {
    const SIGNATURE: &[u8] = b"SWAPSPACE2";
    let mut page = vec![0; PAGE_SIZE as usize];
    let last_page = u32::try_from(size / PAGE_SIZE)
        .unwrap_or(u32::MAX)
        .saturating_sub(1);
    page[1024..1028].copy_from_slice(&1u32.to_le_bytes());
    page[1028..1032].copy_from_slice(&last_page.to_le_bytes());
    let end = page.len();
    page[end - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    page
}

/// Makes a file that swapon(2) takes: of this size in bytes, without holes, nobody else's.
pub(crate) fn make_file(path: &Path, size: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, size)?;
    file.write_all(&header(size))?;
    file.sync_all()
}

/// Makes the swap areas of a machine files or partitions, as those of a system were when a run on it began. Where the system had
/// more or fewer areas, all are files if all of its own were.
pub fn observe(machine: &mut Machine, system: &System) {
    let kinds = system
        .before
        .get("proc/swaps")
        .map_or(Vec::new(), |text| are_files(text));
    if kinds.is_empty() {
        return;
    }
    let same = kinds.len() == machine.swap.len();
    let all = kinds.iter().all(|&file| file);
    for (at, area) in machine.swap.iter_mut().enumerate() {
        area.file = if same { kinds[at] } else { all };
    }
}

/// Whether each area of `/proc/swaps` is a file. Kernels write a space in its name as an octal number.
fn are_files(text: &str) -> Vec<bool> {
    let lines = text.lines().skip(1);
    let kinds = lines.filter_map(|line| line.split_whitespace().nth(1));
    kinds.map(|kind| kind == "file").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_swap_area() {
        let header = header(1 << 30);
        assert_eq!(header.len(), 4096);
        assert_eq!(&header[4086..], b"SWAPSPACE2");
        assert_eq!(header[1024..1028], [1, 0, 0, 0]);
        assert_eq!(header[1028..1032], ((1u32 << 18) - 1).to_le_bytes());
        assert!(header[1032..4086].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn areas_are_what_the_system_had() {
        const HEADER: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
        const DISK: &str =
            "/dev/vda                                partition\t1048572\t\t0\t\t-2\n";
        const FILE: &str = "/swap/a\\040b file\t\t4\t\t0\t\t-3\n";
        let mut machine = Machine::small(64 << 20, 1 << 20);
        machine.swap = vec![machine.swap[0].clone(), machine.swap[0].clone()];
        let mut seen = |areas: &str| {
            let mut system = System::default();
            let text = format!("{HEADER}{areas}");
            system.before.insert("proc/swaps".into(), text);
            observe(&mut machine, &system);
            [machine.swap[0].file, machine.swap[1].file]
        };
        assert_eq!(seen(&format!("{DISK}{FILE}")), [false, true]);
        // It says nothing of a system without swap.
        assert_eq!(seen(""), [false, true]);
        assert_eq!(seen(FILE), [true, true]);
        assert_eq!(seen(&format!("{DISK}{FILE}{FILE}")), [false, false]);
    }
}
