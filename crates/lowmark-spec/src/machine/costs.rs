//! CPU costs of a machine, and those that follow from them.

use serde::{Deserialize, Serialize};

/// CPU time of elementary work, ns. A property of the machine: every workload on it pays the same, and every kernel, unless
/// it is put beside the very kernel ([`Machine::under_kernel`](super::Machine::under_kernel)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// User time of one touch of a resident page.
    pub touch_ns: u64,
    /// User time of stores to every byte of a resident page.
    pub memset_page_ns: u64,
    /// Entry to and exit from a page fault that finds its page without I/O.
    pub minor_fault_ns: u64,
    /// Page fault that reads from a device: block layer, interrupt, two context switches.
    pub major_fault_ns: u64,
    /// Allocation and clearing of one page.
    pub zero_page_ns: u64,
    /// Allocation and clearing of a huge page of 2 MiB.
    pub zero_huge_page_ns: u64,
    /// One page swapped out: slot, swap cache, bio, unmap, completion.
    pub swap_page_ns: u64,
    /// One huge page swapped out as a whole: slots, swap cache, splitting its mapping and unmapping its pages, bio, completion.
    pub swap_huge_page_ns: u64,
    /// One page read from swap: its frame, swap cache, bio, completion.
    pub swap_in_ns: u64,
    /// What a fault takes longer that maps a page of the swap cache: finding it there, and giving up its slot.
    pub swap_map_ns: u64,
    /// One page of a file read or written: page cache, bio, completion; what it takes over from memory
    /// is `copy_page_ns`.
    pub file_page_ns: u64,
    /// The same of each page of a large folio but the first.
    pub folio_page_ns: u64,
    /// What a page that is written by write(2) takes beside that: the file system's journal and reservation of space, the
    /// page's buffers, its marks as dirty.
    pub dirty_page_ns: u64,
    /// One request to a disk: its submission and what is done when it is done, beside its pages. The time that the
    /// disk takes, `command_read_ns` and `command_write_ns` of a device, comes on top.
    pub request_ns: u64,
    /// Giving one request to the driver and to the device, where that is not in `request_ns`: kblockd spends it where a
    /// request is left to it, else the task that submits the request.
    pub dispatch_ns: u64,
    /// One run of kblockd beside the requests that it dispatches: its work item, its wakeup, the elevator.
    pub kblockd_ns: u64,
    /// One look of a writer at the counters of dirty pages.
    pub balance_dirty_ns: u64,
    /// Time for which the lock over the lists of dirty inodes is held at least.
    pub list_lock_ns: u64,
    /// Under that lock, one inode moved to those that are written next.
    pub move_inode_ns: u64,
    /// A path walked whose names are in memory, by any statement on a file of a set: a fixed number of components.
    pub lookup_ns: u64,
    /// What a path takes longer whose last name and inode are not in memory, beside the reads of their blocks.
    pub read_inode_ns: u64,
    /// A file opened and closed again, beside the walk of its path.
    pub open_ns: u64,
    /// A file made: inode, directory, log.
    pub create_ns: u64,
    /// A file's name removed, and the file with it: inode, directory, log.
    pub unlink_ns: u64,
    /// The turn of an inode that is written, beside its pages and lists: allocation, inode, log.
    pub write_inode_ns: u64,
    /// One page scanned on an LRU list: isolation, its references, its way back to a list.
    pub scan_page_ns: u64,
    /// What a scan takes longer that unmaps the page, where that is not in `scan_page_ns`.
    pub unmap_page_ns: u64,
    /// What a scan takes longer that frees the page, where that is not in `scan_page_ns`.
    pub free_page_ns: u64,
    /// One page unmapped by munmap(2), MADV_DONTNEED or the end of a process, and freed if nothing else needs it.
    pub zap_page_ns: u64,
    /// The same of a huge page that is mapped as one.
    pub zap_huge_page_ns: u64,
    /// The same of an entry in swap: its slot given up.
    pub zap_swap_ns: u64,
    /// Asking all shrinkers of a node how much they have, at the end of a pass, for each memory cgroup of the system in turn
    /// (`shrink_slab`); what they then scan comes on top.
    pub shrink_slab_ns: u64,
    /// One object of a slab that a shrinker looks at: a dentry, an inode, an extent.
    pub scan_object_ns: u64,
    /// What a dentry or an inode takes longer that the shrinker frees.
    pub free_object_ns: u64,
    /// The same of an extent of a file or a node of shadows.
    pub free_extent_ns: u64,
    /// Switch from one task to another on a CPU.
    pub context_switch_ns: u64,
    /// What it takes longer if that is one of another process: its page tables, and what the TLB has lost.
    pub switch_mm_ns: u64,
    /// Copy of one page between user and kernel.
    pub copy_page_ns: u64,
    /// A page that nothing maps moved to another frame: isolated, copied, put on its list again.
    pub migrate_page_ns: u64,
    /// Entry to and exit from a system call.
    pub syscall_ns: u64,
}

impl Default for Costs {
    /// A 3 GHz x86-64 of the early 2010s, on which requests, asking shrinkers, unmapping, what a file system does for a page that
    /// is written, walking paths, opening files, and reading, making, writing and removing inodes, cost nothing.
    ///
    /// `list_lock` and `move_inode` are what `/proc/lock_stat` said of 2.6.39-rc3 with 8 CPUs, its own overhead
    /// included: 0.49 to 0.53 us a hold in three runs of dd and tar, and 2.70 ms for the longest, in which 18,938
    /// inodes were moved (Wu Fengguang, linux-mm, 6 May 2011).
    fn default() -> Self {
        Costs {
            touch_ns: 100,
            memset_page_ns: 500,
            minor_fault_ns: 500,
            major_fault_ns: 10_000,
            zero_page_ns: 1_000,
            zero_huge_page_ns: 100_000,
            swap_page_ns: 2_500,
            swap_huge_page_ns: 250_000,
            swap_in_ns: 2_500,
            swap_map_ns: 0,
            file_page_ns: 500,
            folio_page_ns: 500,
            dirty_page_ns: 0,
            request_ns: 0,
            dispatch_ns: 0,
            kblockd_ns: 0,
            balance_dirty_ns: 1_000,
            list_lock_ns: 500,
            move_inode_ns: 140,
            lookup_ns: 0,
            read_inode_ns: 0,
            open_ns: 0,
            create_ns: 0,
            unlink_ns: 0,
            write_inode_ns: 0,
            scan_page_ns: 200,
            unmap_page_ns: 0,
            free_page_ns: 0,
            zap_page_ns: 0,
            zap_huge_page_ns: 0,
            zap_swap_ns: 0,
            shrink_slab_ns: 0,
            scan_object_ns: 50,
            free_object_ns: 150,
            free_extent_ns: 150,
            context_switch_ns: 2_000,
            switch_mm_ns: 0,
            copy_page_ns: 500,
            migrate_page_ns: 2_000,
            syscall_ns: 200,
        }
    }
}

/// CPU times that follow from those that a machine gives.
impl Costs {
    /// A clean page that is mapped, scanned, unmapped and freed.
    pub fn reclaim_clean_ns(&self) -> u64 {
        self.scan_page_ns + self.unmap_page_ns + self.free_page_ns
    }

    /// What moving a mapped page takes longer than moving one that nothing maps: the kernel unmaps the page, and maps it again where it is
    /// then, which is assumed to take as long. In guests of 6.1, 6.12 and 6.18 a mapped page took 2.5, 3.3 and 4.5 us longer (medians of
    /// three), where unmapping takes 3.2, 1.5 and 1.4: on 6.1 this is twice too much.
    pub fn remap_page_ns(&self) -> u64 {
        2 * self.unmap_page_ns
    }

    /// Frames looked at one after another, by compaction or in a block that reclaim goes through: 512 took 60 us in a guest of 6.1,
    /// where a clean page that is scanned and freed takes 5.5 us.
    pub fn frames_ns(&self, frames: u64) -> u64 {
        frames * self.reclaim_clean_ns() / 48
    }

    /// Pageblocks that compaction comes to: it looks at `frames` of each, and at its bits. A frame out of turn takes as long as
    /// touching a page, bits, which lie close together, half of that. (In a guest of 4.4 that looks at two, and on which `touch` is
    /// 155 ns, 765 pageblocks that were passed over took 395 ns each; kernels that look at one frame were not measured.)
    pub fn pageblocks_ns(&self, pageblocks: u64, frames: u64) -> u64 {
        pageblocks * (2 * frames + 1) * self.touch_ns / 2
    }

    /// What giving up a slot of swap takes longer where the swap cache has a page of it: munmap(2) finds the page as a fault does, and
    /// frees it. Nothing on a machine that says nothing of unmapping. In guests of 6.18 it is 8 to 9 us, where a slot alone is 1 us, a
    /// page 2 to 3, and `swap_map` 3.6.
    pub fn zap_cached_ns(&self) -> u64 {
        match self.zap_page_ns {
            0 => 0,
            _ => self.swap_map_ns + self.zap_page_ns,
        }
    }

    /// Dropping a clean page from the page cache with its neighbours in the file (`invalidate_mapping_pages`): half the time of
    /// reading a page. In guests on which `file_page` is 3.6 us, `drop_caches` takes 0.8 to 1.0 us a page on 3.3 and 3.4, 1.9 us on
    /// 4.11, 2.1 to 2.4 us on 6.1 and 6.12.
    pub fn drop_page_ns(&self) -> u64 {
        self.file_page_ns / 2
    }
}
