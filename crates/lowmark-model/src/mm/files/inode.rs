//! Files in memory (`struct inode` with its `struct address_space`).

use crate::fs::Extents;
use crate::fs::metadata::Place;
use crate::ids::{DeviceId, InodeId, NameId, WbId};
use crate::mm::Mm;
use crate::mm::alloc::slub::NO_OBJECT;
use crate::mm::alloc::xarray::{Nodes, Object};
use crate::mm::files::buffer::Buffers;
use crate::mm::files::errseq::WritebackError;
use crate::mm::files::page_tree::PageTree;
use crate::mm::frames::page::Page;
use crate::mm::frames::pte::Pte;
use crate::mm::types::Pfn;
use crate::mm::writeback::backing_dev::InodeWriteback;
use crate::nfs::CommitInfo;
use lowmark_spec::machine::PAGE_SIZE;

/// Most pages of a file: 16 TiB, as with 32-bit page offsets.
pub(crate) const MAX_FILE_PAGES: u64 = u32::MAX as u64;

/// A dentry or an inode as a cache has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cached {
    /// It is in memory.
    pub(crate) present: bool,
    /// Where; none where slabs are left out.
    pub(crate) object: Object,
    /// Its place on the list of those that nobody uses, from 1 on; 0 if it is not there.
    pub(crate) age: u64,
    /// It was used, from 2.6.37 to 4.11 or while it was on the list (`DCACHE_REFERENCED`, `I_REFERENCED`).
    pub(crate) referenced: bool,
}

impl Default for Cached {
    fn default() -> Self {
        Cached {
            present: false,
            object: NO_OBJECT,
            age: 0,
            referenced: false,
        }
    }
}

/// The extents of a file that ext4 remembers (`i_es_tree`).
#[derive(Debug, Clone, Default)]
pub(crate) struct ExtentStatus {
    /// One for each; none where slabs are left out.
    pub(in crate::mm) objects: Vec<Object>,
    /// They were asked for again (EXTENT_STATUS_REFERENCED).
    pub(in crate::mm) referenced: bool,
    /// Its place on the list of its file system; 0 if it is not there.
    pub(in crate::mm) age: u64,
}

impl ExtentStatus {
    /// Its place on the list, and how many there are.
    pub(crate) fn listed(&self) -> (u64, usize) {
        (self.age, self.objects.len())
    }
}

/// A file.
#[derive(Debug)]
pub(crate) struct Inode {
    /// Its name. A file that never had one is no object of a cache.
    pub(crate) name: Option<NameId>,
    /// Its object in the cache of inodes.
    pub(crate) cached: Cached,
    /// Its file system.
    pub(crate) fs: usize,
    /// The device of that.
    pub(crate) device: DeviceId,
    /// Where its first page should lie.
    pub(crate) home: u64,
    /// Bytes (`i_size`).
    pub(crate) size: u64,
    /// Where its pages lie.
    pub(crate) extents: Extents,
    /// Its pages in memory (`i_pages`).
    pub(crate) pages: PageTree,
    /// What these take themselves.
    pub(crate) nodes: Nodes,
    /// VMAs that map it (`i_mmap`).
    pub(crate) mappers: Vec<u32>,
    /// It has a name.
    pub(crate) linked: bool,
    /// Who holds it open.
    pub(crate) users: u32,
    /// Its part in writeback.
    pub(crate) writeback: InodeWriteback,
    /// What of it a server may still lose.
    pub(crate) commit_info: CommitInfo,
    /// Where the file system has it, and when it last changed there.
    pub(crate) place: Place,
    /// What a journal holds of it, of a block device; none of other files.
    pub(crate) buffers: Option<Box<Buffers>>,
    /// Extents of it that ext4 remembers.
    pub(crate) status: ExtentStatus,
    /// What went wrong with it.
    pub(crate) error: WritebackError,
}

impl Inode {
    /// A file of a file system on a device, without a name and with nothing in it. Its first page should lie at `home`.
    pub(crate) fn new(fs: usize, device: DeviceId, home: u64) -> Inode {
        Inode {
            name: None,
            cached: Cached::default(),
            fs,
            device,
            home,
            size: 0,
            extents: Extents::default(),
            pages: PageTree::default(),
            nodes: Nodes::default(),
            mappers: Vec::new(),
            linked: true,
            users: 0,
            writeback: InodeWriteback::default(),
            commit_info: CommitInfo::default(),
            place: Place::default(),
            buffers: None,
            status: ExtentStatus::default(),
            error: WritebackError::default(),
        }
    }

    /// The part of writeback that its dirty pages belong to (`inode_to_wb`).
    pub(crate) fn wb(&self) -> WbId {
        self.writeback.wb.unwrap_or(WbId::of_root(self.device))
    }

    /// Whether it is a block device (`S_ISBLK`).
    pub(crate) fn is_device(&self) -> bool {
        self.buffers.is_some()
    }

    /// Pages up to its end.
    pub(crate) fn len(&self) -> u64 {
        self.size.div_ceil(PAGE_SIZE)
    }
}

impl Mm {
    /// The file that a page of the page cache belongs to, and its offset there.
    #[inline]
    pub(crate) fn file_of(&self, page: &Page) -> (InodeId, u32) {
        self.mappings.file_of(page.owner)
    }

    /// Calls `f` for every PTE that maps a page of a file.
    pub(crate) fn for_each_file_pte(&mut self, pfn: Pfn, page: Page, mut f: impl FnMut(&mut Pte)) {
        let (inode, index) = self.file_of(&page);
        for &vma in &self.inodes[inode].mappers {
            let region = &mut self.vmas[vma as usize];
            let at = index.wrapping_sub(region.offset) as usize;
            if let Some(pte) = region.ptes.get_mut(at)
                && pte.frame() == Some(pfn)
            {
                f(pte);
            }
        }
    }
}
