//! Where extents of files lie, as far as ext4 remembers that in memory (`fs/ext4/extents_status.c`).
//!
//! 1. When a page of a file is read, or gets its place, ext4 remembers the extents of the file, each in an object. When
//!    that is asked for again they are marked.
//! 2. The shrinker visits files with remembered extents in turn: it takes the mark from marked extents, and the others are
//!    forgotten (edaa53cac8fd, dd4759255188, 2be12de98a1c, 3.19). It knows no nodes and no memory cgroups.
//! 3. They go with the inode, and with what is cut off the file.
//!
//! Simplified: all extents of a file are remembered at once and have one mark; extents of pages that have no place yet, which
//! the shrinker could not forget, take no memory; those of a file that was just made are on no list before they are written.

use super::Scanned;
use super::list_lru::ListLru;
use crate::ids::InodeId;
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, NO_OBJECT};
use crate::mm::types::Reserves;
use crate::world::World;

/// Files of a file system of which extents are remembered.
#[derive(Debug, Default)]
pub(super) struct ExtentList {
    /// The files (`s_es_list`).
    pub(super) files: ListLru<InodeId>,
    /// Their extents (`es_stats_shk_cnt`).
    extents: u64,
}

impl World {
    /// `ext4_map_blocks`: where pages of a file lie is looked up. An extent for which there is no memory is not remembered.
    pub(crate) fn map_blocks(&mut self, inode: InodeId) {
        let file = &self.mm.inodes[inode];
        let fs = file.fs;
        if !self.mm.remembers_extents(inode) {
            return;
        }
        let extents = file.extents.iter().count();
        if !file.status.objects.is_empty() {
            self.mm.inodes[inode].status.referenced = true;
        }
        let node = self.sched.current_node();
        while self.mm.inodes[inode].status.objects.len() < extents {
            let object = if self.mm.slub.has_slabs() {
                self.alloc_object(Cache::ExtentStatus, node, Reserves::Atomic)
            } else {
                NO_OBJECT
            };
            if object == NO_OBJECT && self.mm.slub.has_slabs() {
                break;
            }
            let (status, list) = (
                &mut self.mm.inodes[inode].status,
                &mut self.mm.shrinkers.extents[fs],
            );
            status.objects.push(object);
            list.extents += 1;
            if status.age == 0 {
                status.age = list.files.push(inode);
            }
        }
    }
}

impl Mm {
    /// Whether extents of a file are remembered: of an inode in memory, on ext4.
    fn remembers_extents(&self, inode: InodeId) -> bool {
        let file = &self.inodes[inode];
        self.kernel.coverage.extent_status
            && file.cached.present
            && self.shrinkers.inode_cache(file.fs) == Cache::Ext4Inode
    }

    /// `ext4_es_remove_extent`: ext4 forgets extents of a file until `left` remain.
    pub(crate) fn forget_extents(&mut self, inode: InodeId, left: usize) {
        let file = &mut self.inodes[inode];
        let status = &mut file.status;
        if status.objects.len() <= left {
            return;
        }
        let gone = status.objects.split_off(left);
        let list = &mut self.shrinkers.extents[file.fs];
        list.extents -= gone.len() as u64;
        if left == 0 {
            list.files.remove(std::mem::take(&mut status.age));
            status.referenced = false;
        }
        for object in gone {
            self.free_object(Cache::ExtentStatus, object);
        }
    }

    /// `ext4_es_count`
    pub(super) fn count_extents(&self, fs: usize) -> u64 {
        self.shrinkers.extents[fs].extents
    }

    /// `ext4_es_scan`: the shrinker looks at `nr` extents, file after file; a file that was visited goes to the end of the list.
    pub(super) fn scan_extents(&mut self, fs: usize, nr: u64) -> Scanned {
        let end = self.shrinkers.extents[fs].files.end();
        let mut scanned = Scanned::default();
        while scanned.looked < nr
            && let Some((age, inode)) = self.shrinkers.extents[fs].files.oldest_before(end)
        {
            let files = &mut self.shrinkers.extents[fs].files;
            files.remove(age);
            let age = files.push(inode);
            let status = &mut self.inodes[inode].status;
            status.age = age;
            let all = status.objects.len();
            let looked = all.min((nr - scanned.looked) as usize);
            scanned.looked += looked as u64;
            if !std::mem::take(&mut status.referenced) {
                scanned.freed += looked as u64;
                self.forget_extents(inode, all - looked);
            }
        }
        scanned
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::Extent;
    use crate::ids::DeviceId;
    use crate::kernel::Kernel;
    use crate::mm::files::inode::Inode;
    use crate::trace::Trace;
    use lowmark_spec::Machine;
    use lowmark_spec::machine::{Atime, Device, FileSystem, FsKind, INODE_RATIO};

    /// A world with files of ext4 in memory; `files` are the extents of each.
    fn world(files: &[u32]) -> World {
        let mut machine = Machine::small(64 << 20, 0);
        machine.devices = vec![Device::ssd("sda", 1 << 30)];
        machine.filesystems = vec![FileSystem {
            name: "data".into(),
            kind: FsKind::Ext4,
            device: Some(0),
            inode_ratio: INODE_RATIO,
            atime: Atime::Relatime,
        }];
        let mut world = World::new(&machine, Kernel::named("v6.1"), Trace::new(None));
        for &extents in files {
            let mut file = Inode::new(0, DeviceId::FIRST, 0);
            file.cached.present = true;
            for number in 0..extents {
                file.extents.add(Extent {
                    page: 2 * number,
                    start: u64::from(1000 * number),
                    length: 1,
                });
            }
            let inode = world.mm.inodes.push_and_get_key(file);
            world.map_blocks(inode);
        }
        world
    }

    /// Of three files with two extents each the second is asked for again.
    #[test]
    fn what_was_asked_for_again_is_spared_once() {
        let mut world = world(&[2, 2, 2]);
        assert_eq!(world.mm.count_extents(0), 6);
        assert_eq!(world.mm.slub.in_use(Cache::ExtentStatus), 6);
        world.map_blocks(InodeId::from(1));
        let mut scan = |nr| {
            let scanned = world.mm.scan_extents(0, nr);
            (scanned.looked, scanned.freed, world.mm.count_extents(0))
        };
        // One of the first file's, whose turn is over; then the marked ones, and the third file.
        assert_eq!(scan(1), (1, 1, 5));
        assert_eq!(scan(3), (3, 1, 4));
        // The third file has one left, the first has one, the second lost its mark.
        assert_eq!(scan(128), (4, 4, 0));
        assert_eq!(world.mm.slub.in_use(Cache::ExtentStatus), 0);
    }

    #[test]
    fn extents_go_with_what_is_cut_off_and_with_the_inode() {
        let mut world = world(&[3, 1]);
        world.mm.forget_extents(InodeId::from(0), 1);
        assert_eq!(world.mm.count_extents(0), 2);
        world.mm.destroy_inode(InodeId::from(0));
        assert_eq!(world.mm.count_extents(0), 1);
    }
}
