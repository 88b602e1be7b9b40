//! A file under `/proc`, `/sys` or a cgroup that is read again and again: opened once, read into one buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a buffer at first: most files fit.
const BUFFER: usize = 8 << 10;

/// An open file and the buffer of its last reading.
#[derive(Debug)]
pub(super) struct ProcFile {
    file: File,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens a file.
    pub(super) fn open(path: &Path) -> io::Result<ProcFile> {
        Ok(ProcFile {
            file: File::open(path)?,
            buffer: vec![0; BUFFER],
        })
    }

    /// The whole file as it is now.
    pub(super) fn read(&mut self) -> io::Result<&[u8]> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(2 * length, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(&self.buffer[..length]),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_anew_each_time_and_whole() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "one").expect("written");
        let mut file = ProcFile::open(&path).expect("opened");
        assert_eq!(file.read().expect("read"), b"one");
        let long = "0123456789".repeat(3_000);
        std::fs::write(&path, &long).expect("written");
        assert_eq!(file.read().expect("read"), long.as_bytes());
        std::fs::write(&path, "").expect("written");
        assert_eq!(file.read().expect("read"), b"");
    }

    #[test]
    fn vmstat_comes_in_several_parts() {
        let mut file = ProcFile::open(Path::new("/proc/vmstat")).expect("opened");
        let text = file.read().expect("read").to_vec();
        assert!(text.starts_with(b"nr_free_pages ") && text.ends_with(b"\n"));
        assert!(text.windows(8).any(|bytes| bytes == b"\npgfault"));
    }
}
