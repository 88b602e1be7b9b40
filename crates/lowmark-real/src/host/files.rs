//! The files of a workload, and its swap file.

use crate::guest::swap_header;
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Takes all files below a directory, which are on the disk, out of the page cache.
pub(super) fn leave_page_cache(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            leave_page_cache(&entry.path())?;
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Makes a file that swapon(2) takes: of this size, without holes, nobody else's.
pub(super) fn make_swap(path: &Path, size: u64) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    fallocate(&file, FallocateFlags::empty(), 0, size)?;
    file.write_all(&swap_header(size))?;
    file.sync_all()
}
