//! The files of a workload: which there are before it begins, and their names.

use crate::fs::Folder;
use crate::fs::{Extent, Request};
use crate::ids::{InodeId, NameId};
use crate::mm::files::inode::Inode;
use crate::world::World;
use lowmark_spec::machine::{Machine, PAGE_SIZE};
use lowmark_spec::random::Stream;
use lowmark_spec::workload::{FileKind, FileSet, SizeDist, Workload};
use std::collections::BTreeMap;

/// Whose turn through a set: task, line, statement, set.
pub(super) type Turn = (usize, u32, &'static str, usize);

/// One file of the workload.
#[derive(Debug, Clone)]
struct Named {
    fs: usize,
    directory: Folder,
    /// Size that it has or gets.
    size: u64,
    inode: Option<InodeId>,
    /// Its place in the cache of dentries; none for a file that never has a name, or if that cache is left out.
    name: Option<NameId>,
}

/// A set of files.
#[derive(Debug)]
struct Set {
    first: usize,
    count: u64,
}

/// All files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    files: Vec<Named>,
    sets: Vec<Set>,
    /// Files without a name, which are kept until the last task ends.
    pub(super) kept: Vec<InodeId>,
    /// Turns that the statements of tasks have taken through sets.
    pub(super) turns: BTreeMap<Turn, u64>,
}

impl Files {
    /// Makes what exists before the run.
    pub(crate) fn prepare(
        world: &mut World,
        machine: &Machine,
        workload: &Workload,
        seed: u64,
    ) -> Files {
        let mut files = Files::default();
        for fs in world.mounts.to_be_opened() {
            world.open_block_device(fs);
        }
        let fs = |name: &str| {
            let mut all = machine.filesystems.iter();
            all.position(|fs| fs.name == name || name.is_empty())
                .unwrap_or(0)
        };
        for (number, file) in workload.files.iter().enumerate() {
            let mut named = Named {
                fs: fs(&file.fs),
                directory: Folder::default(),
                size: file.size,
                inode: None,
                name: None,
            };
            if !file.unlinked {
                named.name = world.mm.add_name(named.fs, named.directory);
            }
            if file.exists || file.unlinked {
                let inode = world.new_inode(named.fs, named.directory, named.name);
                let size = if file.exists { file.size } else { 0 };
                world.fill(inode, size, file.kind);
                named.inode = Some(inode);
                world.mm.d_instantiate(named.name, inode);
                if file.unlinked {
                    let unnamed = &mut world.mm.inodes[inode];
                    (unnamed.linked, unnamed.users) = (false, 1);
                    files.kept.push(inode);
                }
            }
            debug_assert_eq!(files.files.len(), number);
            files.files.push(named);
        }
        for set in &workload.filesets {
            files.add_set(world, set, fs(&set.fs), seed);
        }
        world.load_metadata();
        files
    }

    fn add_set(&mut self, world: &mut World, set: &FileSet, fs: usize, seed: u64) {
        let count = set.directories.saturating_mul(set.files);
        self.sets.push(Set {
            first: self.files.len(),
            count,
        });
        for at in 0..count {
            let size = size_in(set, at, seed);
            // The root has the number 0.
            let number = at / set.files.max(1);
            let directory = Folder {
                number: 1 + number,
                key: 1 + self.files.len() as u64 - at % set.files.max(1),
            };
            let name = world.mm.add_name(fs, directory);
            let inode = set.exists.then(|| {
                let inode = world.new_inode(fs, directory, name);
                world.fill(inode, size, set.kind);
                world.mm.d_instantiate(name, inode);
                inode
            });
            self.files.push(Named {
                fs,
                directory,
                size,
                inode,
                name,
            });
        }
    }

    /// Files in a set.
    pub(super) fn set_len(&self, set: usize) -> u64 {
        self.sets[set].count
    }

    /// Number of a file of a set.
    pub(super) fn of_set(&self, set: usize, at: u64) -> usize {
        self.sets[set].first + at as usize
    }

    /// The file of this number, if there is one now.
    pub(super) fn inode(&self, file: usize) -> Option<InodeId> {
        self.files[file].inode
    }

    /// Its place in the cache of dentries.
    pub(super) fn name(&self, file: usize) -> Option<NameId> {
        self.files[file].name
    }

    /// The size that it is planned to have.
    pub(super) fn planned(&self, file: usize) -> u64 {
        self.files[file].size
    }

    /// Its name goes; the file that had it.
    pub(super) fn unname(&mut self, file: usize) -> Option<InodeId> {
        self.files[file].inode.take()
    }
}

/// Size of a file of a set: drawn by its number, so that it is the same whoever asks.
fn size_in(set: &FileSet, at: u64, seed: u64) -> u64 {
    match set.size {
        SizeDist::Fixed(size) | SizeDist::LogNormal(size, _) => size,
        SizeDist::Uniform(low, high) => Stream::new(seed, &set.name, at).between(low, high),
    }
}

impl World {
    /// A file in a directory, and nothing in it.
    fn new_inode(&mut self, fs: usize, directory: Folder, name: Option<NameId>) -> InodeId {
        let mount = self.mounts.get(fs);
        let home = mount.home(directory.number);
        let device = mount.device;
        let inode = self
            .mm
            .inodes
            .push_and_get_key(Inode::new(fs, device, home));
        let name = name.map_or(0, |name| usize::from(name) as u64);
        let place = self.mounts.get(fs).add_file(inode, directory, name);
        self.mm.inodes[inode].place = place;
        inode
    }

    /// The block device of a file system, as a file with all of its pages.
    fn open_block_device(&mut self, fs: usize) {
        let device = self.mounts.get(fs).device;
        let inode = self.mm.inodes.push_and_get_key(Inode::new(fs, device, 0));
        let pages = self.mounts.get(fs).open_device(inode);
        let file = &mut self.mm.inodes[inode];
        file.size = pages.end * PAGE_SIZE;
        file.users = 1;
        file.buffers = Some(Box::default());
        file.extents.add(Extent {
            page: pages.start as u32,
            start: pages.start,
            length: (pages.end - pages.start) as u32,
        });
        file.extents.note_written(pages.end as u32 - 1);
    }

    /// Makes the file of this number. Its file system.
    pub(super) fn create(&mut self, file: usize) -> usize {
        let Named {
            fs,
            directory,
            name,
            ..
        } = self.workload.files.files[file];
        let inode = self.new_inode(fs, directory, name);
        self.mm.d_instantiate(name, inode);
        self.workload.files.files[file].inode = Some(inode);
        fs
    }

    /// Gives a new file its size, and unless it is sparse its places, as long as there is room.
    fn fill(&mut self, inode: InodeId, size: u64, kind: FileKind) {
        let file = &mut self.mm.inodes[inode];
        file.size = size;
        if kind == FileKind::Sparse {
            return;
        }
        let pages = file.len() as u32;
        let mut page = 0;
        while page < pages {
            let request = Request {
                page,
                need: pages - page,
                hole: pages - page,
                extends: false,
                goal: file.extents.goal(page).unwrap_or(file.home),
            };
            let Some(extent) = self.mounts.get(file.fs).allocate(&request) else {
                return;
            };
            page += extent.length;
            file.extents.add(extent);
            file.extents.note_written(page - 1);
        }
    }
}

/// Bytes that the files of a workload have before it begins, on each file system.
pub(crate) fn bytes_before(machine: &Machine, workload: &Workload, seed: u64) -> Vec<u64> {
    let mut bytes = vec![0u64; machine.filesystems.len()];
    let mut add = |fs: &str, kind: FileKind, size: u64| {
        let at = machine
            .filesystems
            .iter()
            .position(|f| f.name == fs || fs.is_empty());
        if let Some(at) = at.filter(|_| kind != FileKind::Sparse) {
            let whole = size.div_ceil(PAGE_SIZE).saturating_mul(PAGE_SIZE);
            bytes[at] = bytes[at].saturating_add(whole);
        }
    };
    for file in workload.files.iter().filter(|file| file.exists) {
        add(&file.fs, file.kind, file.size);
    }
    for set in workload.filesets.iter().filter(|set| set.exists) {
        for at in 0..set.directories.saturating_mul(set.files) {
            add(&set.fs, set.kind, size_in(set, at, seed));
        }
    }
    bytes
}
