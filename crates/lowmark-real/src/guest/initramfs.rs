//! The initial file system of a guest: a cpio archive in the "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! It is not compressed: every kernel takes it so, and unpacking takes a guest longer than copying.

use std::collections::BTreeSet;

const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const TRAILER: &str = "TRAILER!!!";

/// An archive that grows.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    inodes: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    /// Adds an executable file, and the directories above it. Paths have no slash in front.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.parents(path);
        self.entry(path, REGULAR | 0o755, content, (0, 0));
    }

    /// Adds `/dev/console`, which the kernel opens for PID 1 before anything is mounted.
    pub(super) fn console(&mut self) {
        self.parents("dev/console");
        self.entry("dev/console", CHARACTER_DEVICE | 0o600, &[], (5, 1));
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            let parent = path[..at].to_owned();
            if self.directories.insert(parent.clone()) {
                self.entry(&parent, DIRECTORY | 0o755, &[], (0, 0));
            }
        }
    }

    /// The archive with its end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry(TRAILER, 0, &[], (0, 0));
        // As cpio(1) does: whole blocks.
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8], device: (u32, u32)) {
        self.inodes += 1;
        let inode = if path == TRAILER { 0 } else { self.inodes };
        // A file of 4 GiB cannot be written; nothing here comes near.
        let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let fields = [
            inode,
            mode,
            0, // uid
            0, // gid
            1, // links
            0, // mtime
            size,
            0, // device of the file itself
            0,
            device.0,
            device.1,
            path.len() as u32 + 1,
            0, // checksum, unused
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(&content[..size as usize]);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names, modes and contents of an archive, read by the rules of the format.
    fn entries(archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        let mut at = 0;
        loop {
            let field = |index: usize| {
                let start = at + 6 + 8 * index;
                let text = std::str::from_utf8(&archive[start..start + 8]).expect("digits");
                u32::from_str_radix(text, 16).expect("a number")
            };
            assert_eq!(&archive[at..at + 6], b"070701");
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = &archive[at + 110..at + 110 + name_size - 1];
            let name = String::from_utf8(name.to_vec()).expect("a name");
            let data = (at + 110 + name_size).next_multiple_of(4);
            if name == TRAILER {
                return entries;
            }
            entries.push((name, mode, archive[data..data + size].to_vec()));
            at = (data + size).next_multiple_of(4);
        }
    }

    #[test]
    fn directories_come_before_their_files_and_once() {
        let mut archive = Archive::default();
        archive.console();
        archive.file("init", b"#!");
        archive.file("lib/a/b.ko", b"12345");
        archive.file("lib/a/c.ko", b"");
        let bytes = archive.finish();
        assert!(bytes.len().is_multiple_of(512));
        let entries = entries(&bytes);
        let names: Vec<&str> = entries.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "dev",
                "dev/console",
                "init",
                "lib",
                "lib/a",
                "lib/a/b.ko",
                "lib/a/c.ko"
            ]
        );
        assert_eq!(entries[2], ("init".into(), 0o100_755, b"#!".to_vec()));
        assert_eq!((entries[1].1, entries[3].1), (0o020_600, 0o040_755));
        assert_eq!(entries[5].2, b"12345");
    }
}
