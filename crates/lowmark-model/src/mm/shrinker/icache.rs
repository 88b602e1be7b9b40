//! Inodes in memory that nobody uses, and their page cache (`fs/inode.c`).
//!
//! 1. An inode is used while its file is open or its name has a dentry. When neither is so and it is clean, it is put on
//!    the list of its file system; if it is there still, it is marked, and from 2.6.37 to 4.11 in any case.
//! 2. The shrinker takes the oldest: those that are used or dirty come off the list, those that are marked get another
//!    round.
//! 3. An inode with pages loses the clean ones, which are *stolen*, and goes when it has none; from 5.16 on inodes with
//!    pages are not on the list at all.

use super::Scanned;
use crate::ids::{InodeId, NameId};
use crate::kernel::{FirstUse, InodePages, InodeShadows};
use crate::mm::Mm;
use crate::mm::files::inode::Cached;
use crate::mm::types::Tag;
use crate::mm::writeback::backing_dev::Listed;
use crate::world::World;

/// What becomes of an inode that the shrinker comes to.
enum Fate {
    /// Off the list, until somebody has done with it.
    Remove,
    /// Another round.
    Rotate,
    /// It loses its pages first.
    Invalidate,
    /// It is freed.
    Free,
}

impl Mm {
    /// Whether its file is open, or has a dentry (`i_count`).
    fn is_inode_used(&self, inode: InodeId) -> bool {
        let file = &self.inodes[inode];
        let named = |name: NameId| self.shrinkers.dentries[name].cached.present;
        file.users > 0 || file.name.is_some_and(named)
    }

    /// Whether it has something to be written, or is being written (`I_DIRTY_ALL`, `I_SYNC`).
    fn is_inode_dirty(&self, inode: InodeId) -> bool {
        let file = &self.inodes[inode];
        let writeback = &file.writeback;
        writeback.listed != Listed::Clean || writeback.sync || file.pages.tagged(Tag::Dirty) > 0
    }

    /// Whether inodes with pages stay off the list.
    fn are_pages_off_list(&self) -> bool {
        match self.kernel.mechanisms.shrinker.inode_pages {
            InodePages::OffList | InodePages::OffListAndFree => true,
            InodePages::DropAndFree | InodePages::Drop | InodePages::Rotate => false,
        }
    }

    /// `mapping_shrinkable`: it has no pages, and no shadows but one that lies in no node.
    fn is_shrinkable(&self, inode: InodeId) -> bool {
        let pages = &self.inodes[inode].pages;
        pages.len() == 0 && (pages.shadows() == 0 || pages.is_single_shadow())
    }

    /// The list that an inode belongs on: of its file system, and its place there.
    fn inode_list(&self, inode: InodeId) -> (usize, usize) {
        let file = &self.inodes[inode];
        let cache = self.shrinkers.inode_caches[file.fs];
        (
            self.lists_of(file.fs),
            self.object_place(cache, file.cached.object),
        )
    }

    /// Whether an inode in memory is one that the shrinker could free, as far as pages do not keep it from that.
    pub(crate) fn belongs_on_list(&self, inode: InodeId) -> bool {
        let file = &self.inodes[inode];
        // A file without a name goes with its last user.
        file.cached.present
            && file.linked
            && !self.is_inode_used(inode)
            && !self.is_inode_dirty(inode)
            && (!self.are_pages_off_list() || self.is_shrinkable(inode))
    }

    /// `inode_add_lru`: puts an unused, clean inode on the list. An inode that a task has just used (`iput_final`) is marked as
    /// referenced: from 2.6.37 to 4.11 even if it is dirty and comes to the list later, from 4.12 on if it is on the list already.
    pub(crate) fn inode_add_lru(&mut self, inode: InodeId, used: bool) {
        let Cached { present, age, .. } = self.inodes[inode].cached;
        let rule = self.kernel.mechanisms.shrinker.first_use;
        let marks = match rule {
            FirstUse::Moves => false,
            FirstUse::Marks => present && !self.is_inode_used(inode),
            FirstUse::Lists => age > 0 && self.belongs_on_list(inode),
        };
        self.inodes[inode].cached.referenced |= used && marks;
        if age > 0 && rule == FirstUse::Moves && used {
            self.leave_inode_list(inode);
        } else if age > 0 {
            return;
        }
        if !self.belongs_on_list(inode) {
            return;
        }
        let (number, place) = self.inode_list(inode);
        self.inodes[inode].cached.age = self.shrinkers.supers[number].inodes[place].push(inode);
    }

    /// Pages or shadows have left a file (`mapping_shrinkable` at the end of `__remove_mapping`): where inodes with pages
    /// are off the list, the last of them puts the inode on it.
    #[inline]
    pub(in crate::mm) fn mapping_lost_pages(&mut self, inode: InodeId) {
        if self.inodes[inode].pages.len() == 0 && self.are_pages_off_list() {
            self.inode_add_lru(inode, false);
        }
    }

    fn leave_inode_list(&mut self, inode: InodeId) {
        let (number, place) = self.inode_list(inode);
        let age = std::mem::take(&mut self.inodes[inode].cached.age);
        self.shrinkers.supers[number].inodes[place].remove(age);
    }

    /// `destroy_inode`: its object is freed, or XFS keeps it for a while.
    pub(crate) fn destroy_inode(&mut self, inode: InodeId) {
        if !self.inodes[inode].cached.present {
            return;
        }
        self.leave_inode_list(inode);
        self.forget_extents(inode, 0);
        let cached = std::mem::take(&mut self.inodes[inode].cached);
        self.evict(inode, cached.object);
    }

    /// `inode_lru_isolate`
    fn fate_of_inode(&self, inode: InodeId) -> Fate {
        let file = &self.inodes[inode];
        if !self.belongs_on_list(inode) {
            return Fate::Remove;
        }
        if file.cached.referenced {
            return Fate::Rotate;
        }
        let rotates = self.kernel.mechanisms.shrinker.inode_pages == InodePages::Rotate;
        match (file.pages.len(), file.pages.shadows()) {
            (2.., _) if rotates => Fate::Rotate,
            (1.., _) => Fate::Invalidate,
            (0, 1..) if self.are_pages_off_list() => Fate::Invalidate,
            (0, _) => Fate::Free,
        }
    }
}

impl World {
    /// `prune_icache_sb`: the oldest unused inodes.
    pub(super) fn prune_icache(
        &mut self,
        number: usize,
        place: usize,
        nr: u64,
        kswapd: bool,
    ) -> Scanned {
        let list = |mm: &Mm, end| mm.shrinkers.supers[number].inodes[place].oldest_before(end);
        let end = self.mm.shrinkers.supers[number].inodes[place].end();
        let mut scanned = Scanned::default();
        while scanned.looked < nr
            && let Some((_, inode)) = list(&self.mm, end)
        {
            scanned.looked += 1;
            match self.mm.fate_of_inode(inode) {
                Fate::Remove => {
                    self.mm.leave_inode_list(inode);
                    scanned.freed += 1;
                }
                Fate::Rotate => {
                    scanned.rotated += 1;
                    self.mm.leave_inode_list(inode);
                    let age = self.mm.shrinkers.supers[number].inodes[place].push(inode);
                    let cached = &mut self.mm.inodes[inode].cached;
                    (cached.age, cached.referenced) = (age, false);
                }
                Fate::Invalidate => self.steal_pages(inode, kswapd, &mut scanned),
                Fate::Free => self.dispose(inode, &mut scanned),
            }
        }
        scanned
    }

    /// Drops the clean pages of an unused inode. From 2.6.37 to 6.10 that counts as a use of it; before, it goes at once
    /// if it can; after, when the walk comes to it again, which is at once as well.
    fn steal_pages(&mut self, inode: InodeId, kswapd: bool, scanned: &mut Scanned) {
        let before = self.mm.inodes[inode].pages.len();
        let invalidated = self.invalidate_mapping_pages(inode);
        let dropped = before - self.mm.inodes[inode].pages.len();
        let shrinkers = &self.mm.kernel.mechanisms.shrinker;
        let (pages, shadows) = (shrinkers.inode_pages, shrinkers.inode_shadows);
        let stolen = match shadows {
            InodeShadows::Ignored => dropped,
            InodeShadows::Counted => invalidated,
        };
        scanned.dropped += dropped;
        scanned.kept += self.mm.inodes[inode].pages.len();
        scanned.stolen += stolen;
        let stat = &mut self.mm.shrinkers.stat;
        if kswapd {
            stat.kswapd_inodesteal += stolen
        } else {
            stat.pginodesteal += stolen
        }
        match pages {
            InodePages::DropAndFree if self.mm.inodes[inode].pages.len() == 0 => {
                self.dispose(inode, scanned);
            }
            InodePages::OffListAndFree => {}
            _ => self.mm.inode_add_lru(inode, true),
        }
    }

    /// `dispose_list`: an inode without pages is freed, with its shadows.
    fn dispose(&mut self, inode: InodeId, scanned: &mut Scanned) {
        self.mm.forget_shadows(inode, 0);
        self.mm.destroy_inode(inode);
        scanned.freed += 1;
    }
}
