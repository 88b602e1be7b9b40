//! Dentries: names that have been looked up (`fs/dcache.c`).
//!
//! 1. A name that is opened, made, removed or asked about gets a dentry, and its file an inode in memory.
//! 2. A dentry that nobody uses any more is put on the list of its file system; if it is there still, it is marked, and
//!    to 4.11 in any case. It holds the inode of its file.
//! 3. The shrinker takes the oldest: those in use come off the list, those that are marked get another round, all
//!    others are freed.
//! 4. When a file is removed, its name stays as a *negative* dentry, without inode.

use super::Scanned;
use crate::fs::Folder;
use crate::fs::metadata::{read_entry, read_inode};
use crate::ids::{InodeId, NameId, NodeId};
use crate::kernel::{FirstUse, VfsShrinkers};
use crate::mm::Mm;
use crate::mm::alloc::slub::{Cache, group_of};
use crate::mm::alloc::xarray::Object;
use crate::mm::files::inode::Cached;
use crate::mm::memcontrol::alloc_charged_object_waiting;
use crate::mm::types::OutOfMemory;
use crate::world::Sys;

/// A name, and its dentry if it has one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dentry {
    pub(crate) cached: Cached,
    /// Its file system.
    fs: usize,
    /// Its directory there.
    directory: Folder,
    /// The file that has the name.
    pub(crate) inode: Option<InodeId>,
}

impl Mm {
    /// A name that a file has or gets in a directory of a file system; none if shrinkers are left out of this kernel.
    pub(crate) fn add_name(&mut self, fs: usize, directory: Folder) -> Option<NameId> {
        let dentry = Dentry {
            cached: Cached::default(),
            fs,
            directory,
            inode: None,
        };
        let dentries = &mut self.shrinkers.dentries;
        (self.kernel.coverage.shrinkers).then(|| dentries.push_and_get_key(dentry))
    }

    /// The file system of a name, and its directory there.
    pub(crate) fn directory_of(&self, name: NameId) -> (usize, Folder) {
        let dentry = &self.shrinkers.dentries[name];
        (dentry.fs, dentry.directory)
    }

    /// `d_instantiate`: a file has a name from now on.
    pub(crate) fn d_instantiate(&mut self, name: Option<NameId>, inode: InodeId) {
        self.inodes[inode].name = name;
        if let Some(name) = name {
            self.shrinkers.dentries[name].inode = Some(inode);
        }
    }

    /// `d_delete`: a file loses its name. The dentry stays, without a file; if the file is open, it is the open file's
    /// and goes.
    pub(crate) fn d_delete(&mut self, inode: InodeId) {
        let file = &mut self.inodes[inode];
        let (open, name) = (file.users > 0, file.name.take());
        let Some(name) = name else {
            return;
        };
        self.shrinkers.dentries[name].inode = None;
        if open {
            self.d_free(name)
        } else {
            self.dput(name)
        }
    }

    /// `dput` by the last who used a name, if it was the last.
    pub(crate) fn dput(&mut self, name: NameId) {
        if self.is_used(name) || !self.shrinkers.dentries[name].cached.present {
            return;
        }
        let (number, place) = self.dentry_list(name);
        let marks = self.kernel.mechanisms.shrinker.first_use != FirstUse::Lists;
        let cached = &mut self.shrinkers.dentries[name].cached;
        cached.referenced |= marks || cached.age > 0;
        if cached.age == 0 {
            cached.age = self.shrinkers.supers[number].dentries[place].push(name);
        }
    }

    /// Whether a file of this name is open.
    fn is_used(&self, name: NameId) -> bool {
        let inode = self.shrinkers.dentries[name].inode;
        inode.is_some_and(|inode| self.inodes[inode].users > 0)
    }

    /// The list that a dentry belongs on: of its file system, and its place there.
    fn dentry_list(&self, name: NameId) -> (usize, usize) {
        let Dentry { fs, cached, .. } = self.shrinkers.dentries[name];
        (
            self.lists_of(fs),
            self.object_place(Cache::Dentry, cached.object),
        )
    }

    /// The place of the list that an object is on, by its node and memory cgroup; to 3.11 there is one list for all nodes.
    pub(super) fn object_place(&self, cache: Cache, object: Object) -> usize {
        match self.kernel.mechanisms.shrinker.vfs_shrinkers {
            VfsShrinkers::Global | VfsShrinkers::SuperBlock => 0,
            VfsShrinkers::Node => {
                let pfn = self.slub.pfn_of(cache, object);
                let node = pfn.map_or(NodeId::FIRST, |pfn| self.node_of(pfn));
                self.cache_place(node, group_of(object))
            }
        }
    }

    fn leave_list(&mut self, name: NameId) {
        let (number, place) = self.dentry_list(name);
        let age = std::mem::take(&mut self.shrinkers.dentries[name].cached.age);
        self.shrinkers.supers[number].dentries[place].remove(age);
    }

    /// `d_free`: the dentry is gone, and lets go of the inode.
    fn d_free(&mut self, name: NameId) {
        self.leave_list(name);
        let dentry = &mut self.shrinkers.dentries[name];
        let (cached, inode) = (std::mem::take(&mut dentry.cached), dentry.inode);
        self.free_object(Cache::Dentry, cached.object);
        if let Some(inode) = inode {
            self.inode_add_lru(inode, true);
        }
    }

    /// `prune_dcache_sb`: the oldest unused dentries. To 3.11 those that are marked do not count.
    pub(super) fn prune_dcache(&mut self, number: usize, place: usize, nr: u64) -> Scanned {
        let counts_all = self.kernel.mechanisms.shrinker.vfs_shrinkers == VfsShrinkers::Node;
        let list = |mm: &Mm, end| mm.shrinkers.supers[number].dentries[place].oldest_before(end);
        let end = self.shrinkers.supers[number].dentries[place].end();
        let mut scanned = Scanned::default();
        let mut left = nr;
        while left > 0
            && let Some((_, name)) = list(self, end)
        {
            scanned.looked += 1;
            let marked = self.shrinkers.dentries[name].cached.referenced;
            if self.is_used(name) {
                self.leave_list(name);
                scanned.freed += 1;
            } else if marked {
                scanned.rotated += 1;
                self.leave_list(name);
                let age = self.shrinkers.supers[number].dentries[place].push(name);
                let cached = &mut self.shrinkers.dentries[name].cached;
                (cached.age, cached.referenced) = (age, false);
            } else {
                self.d_free(name);
                scanned.freed += 1;
            }
            left -= u64::from(counts_all || !marked);
        }
        scanned
    }

    /// What of a name, and of the file that has it, is not in memory; the dentry comes first.
    fn missing_object(&self, name: NameId) -> Option<Cache> {
        let Dentry {
            cached, fs, inode, ..
        } = self.shrinkers.dentries[name];
        if !cached.present {
            return Some(Cache::Dentry);
        }
        let there = inode.is_none_or(|inode| self.inodes[inode].cached.present);
        (!there).then(|| self.shrinkers.inode_caches[fs])
    }

    /// A name or its file is in memory, unless somebody else was faster.
    fn add_object(&mut self, name: NameId, cache: Cache, object: Object) {
        if self.missing_object(name) != Some(cache) {
            self.free_object(cache, object);
            return;
        }
        let dentry = &mut self.shrinkers.dentries[name];
        let cached = match (cache, dentry.inode) {
            (Cache::Dentry, _) | (_, None) => &mut dentry.cached,
            (_, Some(inode)) => &mut self.inodes[inode].cached,
        };
        *cached = Cached {
            present: true,
            object,
            ..Cached::default()
        };
    }
}

/// `d_lookup`, `d_alloc`, `iget`: a name is looked up. From then on its dentry and its file's inode
/// are in memory, and off all lists or held, until the name is put ([`Mm::dput`]). Nothing without a name. Returns whether
/// the inode had not been in memory.
///
/// # Errors
///
/// When there is no memory for them, and nothing left to reclaim.
pub(crate) async fn d_lookup(sys: &Sys, name: Option<NameId>) -> Result<bool, OutOfMemory> {
    let Some(name) = name else {
        return Ok(false);
    };
    let mut missed = false;
    loop {
        let (missing, inode) = {
            let mm = &sys.world().mm;
            (mm.missing_object(name), mm.shrinkers.dentries[name].inode)
        };
        let Some(cache) = missing else {
            return Ok(missed);
        };
        // The kernel has the object first, and reads then.
        match (cache, inode) {
            (Cache::Dentry, _) => read_entry(sys, name).await?,
            (_, Some(inode)) => read_inode(sys, inode).await?,
            (_, None) => {}
        }
        let evicted = match (cache, inode) {
            (Cache::Dentry, _) | (_, None) => None,
            (_, Some(inode)) => sys.world().mm.recycle(inode),
        };
        let object = match evicted {
            Some(object) => object,
            None => {
                let node = sys.world().sched.current_node();
                alloc_charged_object_waiting(sys, cache, node).await?
            }
        };
        sys.world().mm.add_object(name, cache, object);
        missed |= cache != Cache::Dentry;
    }
}
