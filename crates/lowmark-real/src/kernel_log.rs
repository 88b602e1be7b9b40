//! What the kernel said of memory while it booted: where its initial file system lay, and what it freed when it needed no
//! more of it.

use crate::protocol::KERNEL_LOG;
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Longest record of the kernel's log (`PRINTKRB_RECORD_MAX` and less before).
const RECORD_MAX: usize = 8 << 10;
/// How the lines begin that are kept.
const OF_MEMORY: [&str; 3] = ["Memory: ", "RAMDISK: ", "Freeing "];

/// The lines about memory that the log still holds; none of a kernel without printk, nor of one whose log has no records
/// (before 3.5).
pub(crate) fn of_memory() -> io::Result<Option<String>> {
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nonblocking);
    let mut log = match options.open(format!("/{KERNEL_LOG}")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        log => log?,
    };
    let (mut said, mut record) = (String::new(), [0; RECORD_MAX]);
    loop {
        let length = match log.read(&mut record) {
            Ok(length) => length,
            // So much was said that the oldest is gone: what is left goes on.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Some(said)),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            Err(error) => {
                let problem = format!("cannot read /{KERNEL_LOG}: {error}");
                return Err(io::Error::new(error.kind(), problem));
            }
        };
        let text = String::from_utf8_lossy(&record[..length]);
        // `level,number,time,flags;text`, and lines about devices.
        let line = text.lines().next().and_then(|line| line.split_once(';'));
        if let Some((_, line)) = line
            && OF_MEMORY.iter().any(|begin| line.starts_with(begin))
        {
            said.push_str(line);
            said.push('\n');
        }
    }
}
