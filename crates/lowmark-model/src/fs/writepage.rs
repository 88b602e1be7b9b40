//! What a file system does with one dirty page that reclaim wants written (`->writepage`).

use super::Mount;
use crate::kernel::{Ext4Writepage, Files, XfsWritepage};
use lowmark_spec::machine::FsKind;

/// What becomes of a dirty page that `pageout` brings to its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writepage {
    /// It is written.
    Write,
    /// It stays dirty, and reclaim takes it for written all the same (`redirty_page_for_writepage`).
    Redirty,
    /// The file system has no such function: `pageout` tells reclaim to activate the page.
    Missing,
}

impl Mount {
    /// For a page that has blocks or not, brought by kswapd or by a task that reclaims.
    pub(crate) fn writepage(&self, files: &Files, has_blocks: bool, kswapd: bool) -> Writepage {
        match self.kind {
            FsKind::Ext4 => match files.ext4_writepage {
                Ext4Writepage::Allocated if has_blocks => Writepage::Write,
                Ext4Writepage::Allocated => Writepage::Redirty,
                Ext4Writepage::None => Writepage::Missing,
            },
            FsKind::Xfs => match files.xfs_writepage {
                XfsWritepage::Kswapd if kswapd => Writepage::Write,
                XfsWritepage::Kswapd => Writepage::Redirty,
                XfsWritepage::None => Writepage::Missing,
            },
            FsKind::Ext3 | FsKind::Tmpfs => Writepage::Write,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Mounts;
    use crate::kernel::Kernel;
    use lowmark_spec::Machine;
    use lowmark_spec::machine::{Atime, Device, FileSystem, INODE_RATIO};

    /// For a page with and without blocks, brought by kswapd and by a task.
    fn of(kind: FsKind, version: &str) -> [Writepage; 4] {
        let mut machine = Machine::small(64 << 20, 0);
        machine.devices = vec![Device::hdd("sda", 40 << 30)];
        machine.filesystems = vec![FileSystem {
            name: "data".into(),
            kind,
            device: Some(0),
            inode_ratio: INODE_RATIO,
            atime: Atime::default(),
        }];
        let kernel = Kernel::named(version);
        let mut mounts = Mounts::new(&machine, &kernel);
        [(true, true), (false, true), (true, false), (false, false)].map(|(blocks, kswapd)| {
            let files = &kernel.mechanisms.files;
            mounts.get(0).writepage(files, blocks, kswapd)
        })
    }

    #[test]
    fn ext4_allocates_nothing_for_reclaim() {
        use Writepage::{Missing, Redirty, Write};
        for version in ["v2.6.36", "v3.3", "v6.1"] {
            assert_eq!(of(FsKind::Ext4, version), [Write, Redirty, Write, Redirty]);
        }
        assert_eq!(of(FsKind::Ext4, "v6.2"), [Missing; 4]);
    }

    #[test]
    fn xfs_writes_for_kswapd_alone() {
        use Writepage::{Missing, Redirty, Write};
        for version in ["v2.6.36", "v4.11", "v5.14"] {
            assert_eq!(of(FsKind::Xfs, version), [Write, Write, Redirty, Redirty]);
        }
        assert_eq!(of(FsKind::Xfs, "v5.15"), [Missing; 4]);
    }
}
