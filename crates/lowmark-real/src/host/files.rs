//! The files of a workload.

use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::io;
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
