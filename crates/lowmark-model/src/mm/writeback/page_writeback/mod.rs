//! Dirty pages of files: who made them, how many there are, and how long writers wait for that
//! (`mm/page-writeback.c`).
//!
//! 1. A page becomes *dirty* ([`World::set_page_dirty`]), is taken for writing, is *under writeback* until
//!    the device has it, and is *clean* then. All are counted, for memory and for each device.
//! 2. Writers look every so many pages whether there are too many dirty ones, and wait ([`throttle`] since
//!    3.2, [`foreground`] before).
//! 3. Above half of what is allowed the device's flusher writes (`mm/fs_writeback`).

mod domains;
pub mod estimate;
mod foreground;
mod limits;
pub mod pause;
pub mod position;
mod proportions;
mod sampling;
pub mod thresholds;
mod throttle;

use crate::ids::{DeviceId, InodeId, WbId, ZoneId};
use crate::mm::Mm;
pub(crate) use limits::{DirtyLimits, throttle_vm_writeout};
use proportions::PropDescriptor;
pub(crate) use throttle::{Due, balance_dirty_pages, balance_dirty_pages_ratelimited};

use crate::kernel::ListLock;
use crate::mm::types::{Pfn, Tag, flag};
use crate::mm::writeback::backing_dev::Listed;
use crate::time::{Nanos, TaskId};
use crate::world::{Interrupt, World};
use lowmark_spec::machine::PAGE_SIZE;

/// What a task has dirtied (`struct task_struct`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskDirt {
    /// Pages since its last pause.
    pub(crate) nr_dirtied: u64,
    /// Pages at which it looks.
    pub(crate) nr_dirtied_pause: u64,
    /// When its last pause ended, jiffies; 0 if it never had one.
    pub(crate) paused_when: u64,
    /// Pages that it has dirtied, the older for less (to 3.1).
    pub(crate) recent: u64,
}

impl Default for TaskDirt {
    fn default() -> Self {
        TaskDirt {
            nr_dirtied: 0,
            nr_dirtied_pause: 32,
            paused_when: 0,
            recent: 0,
        }
    }
}

/// Who dirties: tasks by number, and CPUs.
#[derive(Debug, Default)]
pub(crate) struct Dirtying {
    tasks: Vec<TaskDirt>,
    /// Pages dirtied on each CPU since somebody looked there (`bdp_ratelimits`).
    cpus: Vec<u64>,
    /// Pages of tasks that ended before they looked (`dirty_throttle_leaks`).
    leaks: Vec<u64>,
    /// Device of the page dirtied last, by task.
    devices: Vec<DeviceId>,
    /// All pages, of which `recent` of a task is a part (`vm_dirties`).
    recent: PropDescriptor,
    /// Since when, as [`Self::recent`] goes down with all of its parts.
    pub(crate) ratelimit_pages: u64,
}

impl Dirtying {
    pub(crate) fn new(cpus: u32) -> Dirtying {
        Dirtying {
            cpus: vec![0; cpus as usize],
            leaks: vec![0; cpus as usize],
            ..Dirtying::default()
        }
    }

    fn task(&mut self, task: TaskId) -> &mut TaskDirt {
        let at = task.0 as usize;
        if self.tasks.len() <= at {
            self.tasks.resize(at + 1, TaskDirt::default());
            self.devices.resize(at + 1, DeviceId::FIRST);
        }
        &mut self.tasks[at]
    }

    /// A task is gone: what it has not answered for, others do (54848d73f9f2, 3.3).
    pub(crate) fn end(&mut self, task: TaskId, cpu: u32) {
        let left = std::mem::take(&mut self.task(task).nr_dirtied);
        self.leaks[cpu as usize] += left;
    }
}

impl Mm {
    /// A page has become dirty, or is neither that nor on its way any more.
    pub(crate) fn count_dirty_in_zone(&mut self, pfn: Pfn, change: i64) {
        let zone = self.pages.zone(pfn);
        let dirty = &mut self.zones[zone].dirty;
        *dirty = dirty.wrapping_add_signed(change);
    }

    /// Adds `change` to the zone's counts of dirty pages and of pages under writeback: a page that is being written counts in
    /// both.
    #[inline]
    pub(in crate::mm) fn count_written_in_zone(&mut self, zone: ZoneId, change: i64) {
        let zone = &mut self.zones[zone];
        zone.dirty = zone.dirty.wrapping_add_signed(change);
        zone.writeback = zone.writeback.wrapping_add_signed(change);
    }

    /// A page is on its way to a device, or is no more.
    pub(crate) fn count_writeback_in_zone(&mut self, pfn: Pfn, change: i64) {
        let zone = self.pages.zone(pfn);
        let writeback = &mut self.zones[zone].writeback;
        *writeback = writeback.wrapping_add_signed(change);
    }

    /// Whether a journal has written all that is in a dirty page. The kernel learns of later stores through a mapping when it
    /// takes the page for writing (`page_mkclean`); here a page that is mapped is written again.
    pub(crate) fn is_written_by_journal(&self, pfn: Pfn) -> bool {
        let page = &self.pages[pfn];
        page.has(flag::BUFFERS_CLEAN) && !page.has(flag::BUFFERS_LOCKED) && !page.is_mapped()
    }

    /// A page is taken for writing, and is on its way to its device.
    pub(crate) fn begin_page_writeback(&mut self, pfn: Pfn) {
        self.set_page_writeback(pfn);
        self.stat.pgpgout += PAGE_SIZE / 1024;
    }

    /// `clear_page_dirty_for_io` and `set_page_writeback`: the page is taken for writing, and stores to it
    /// fault again.
    pub(crate) fn set_page_writeback(&mut self, pfn: Pfn) {
        let page = self.pages[pfn];
        debug_assert!(page.has(flag::DIRTY));
        debug_assert!(!page.has_any(flag::WRITEBACK | flag::BUFFERS_LOCKED));
        if page.is_mapped() {
            // page_mkclean
            self.for_each_file_pte(pfn, page, |pte| pte.mkclean());
        }
        let (inode, index) = self.file_of(&page);
        self.count_writeback_in_zone(pfn, 1);
        self.pages[pfn].clear(flag::DIRTY | flag::BUFFERS_CLEAN);
        self.pages[pfn].set(flag::WRITEBACK);
        let file = &mut self.inodes[inode];
        file.pages.clear_tag(index, Tag::Dirty);
        file.pages.clear_tag(index, Tag::Towrite);
        let first = file.pages.tagged(Tag::Writeback) == 0;
        file.pages.set_tag(index, Tag::Writeback);
        file.extents.note_written(index);
        self.nr_dirty -= 1;
        self.memcontrol.uncount_dirty(pfn);
        self.nr_writeback += 1;
        self.memcontrol.count_writeback(pfn, 1);
        let bdi = &mut self.bdis[file.wb()];
        bdi.writeback_inodes += u64::from(first);
        bdi.reclaimable -= 1;
        bdi.writeback += 1;
    }
}

impl World {
    /// Jiffies since the run began.
    pub(crate) fn jiffies_now(&self) -> u64 {
        self.sched.now() / self.jiffy()
    }

    /// `set_page_dirty` of a page of a file, for the current task: the time for which that needs a lock. None: its
    /// file system has no room for it.
    pub(crate) fn set_page_dirty(&mut self, pfn: Pfn) -> Option<Nanos> {
        if self.mm.pages[pfn].has(flag::DIRTY) {
            self.mm.pages[pfn].clear(flag::BUFFERS_CLEAN);
            return Some(0);
        }
        self.mm.split_folio(pfn);
        let (inode, index) = self.mm.file_of(&self.mm.pages[pfn]);
        let file = &mut self.mm.inodes[inode];
        let placed = file.extents.find(index).is_some();
        if !placed && !self.mounts.get(file.fs).reserve() {
            return None;
        }
        file.pages.set_tag(index, Tag::Dirty);
        let device = file.device;
        // NFS has no writeback by groups (SB_I_CGROUPWB).
        let wb = if self.nfs.is_remote(device) {
            WbId::of_root(device)
        } else {
            self.mm.attach_wb(inode, pfn)
        };
        self.mm.nfs_clear_commit(inode, index);
        self.mm.pages[pfn].set(flag::DIRTY);
        self.mm.nr_dirty += 1;
        self.mm.count_dirty_in_zone(pfn, 1);
        self.mm.memcontrol.count_dirty(pfn);
        self.mm.stat.nr_dirtied += 1;
        let bdi = &mut self.mm.bdis[wb];
        bdi.reclaimable += 1;
        bdi.dirtied += 1;
        self.count_dirtied(device);
        let fs = self.mm.inodes[inode].fs;
        if !placed && self.mounts.get(fs).allocates_at_once() {
            self.place_of(inode, index);
        }
        Some(self.mark_inode_dirty(inode))
    }

    /// Counts a page for the task and its CPU (`account_page_dirtied`).
    fn count_dirtied(&mut self, device: DeviceId) {
        let (task, cpu) = (self.sched.current(), self.sched.current_cpu());
        let dirt = self.dirtying.task(task);
        dirt.nr_dirtied += 1;
        dirt.recent += 1;
        self.dirtying.devices[task.0 as usize] = device;
        self.dirtying.cpus[cpu as usize] += 1;
        // task_dirty_inc
        if self.dirtying.recent.count() {
            for dirt in &mut self.dirtying.tasks {
                dirt.recent /= 2;
            }
        }
    }

    /// `__mark_inode_dirty(inode, I_DIRTY_DATASYNC)`: `write_inode` is to be asked. It is a reply that says so, and
    /// replies cost nobody time.
    pub(crate) fn mark_inode_datasync(&mut self, inode: InodeId) {
        self.mm.inodes[inode].writeback.datasync = true;
        self.list_dirty_inode(inode);
    }

    /// `__mark_inode_dirty(inode, I_DIRTY_PAGES)`: the time for which that needs the lock over the lists.
    fn mark_inode_dirty(&mut self, inode: InodeId) -> Nanos {
        let writeback = &mut self.mm.inodes[inode].writeback;
        let known = std::mem::replace(&mut writeback.pages, true);
        let listed = self.list_dirty_inode(inode);
        // Up to 2.6.38 the lock protects the inode's state as well.
        let locks = match self.mm.kernel.mechanisms.writeback.list_lock {
            ListLock::Inode => !known,
            ListLock::InodeWbList | ListLock::Wb => listed,
        };
        if locks {
            self.hold_list_lock(self.mm.inodes[inode].wb(), 0)
        } else {
            0
        }
    }

    /// An inode that was clean goes on its device's list. Whether it was.
    fn list_dirty_inode(&mut self, inode: InodeId) -> bool {
        let now = self.sched.now();
        let file = &mut self.mm.inodes[inode];
        if file.writeback.listed != Listed::Clean || file.writeback.sync {
            return false;
        }
        file.writeback.listed = Listed::Dirty;
        file.writeback.dirtied_when = now;
        let wb = file.wb();
        let bdi = &mut self.mm.bdis[wb];
        let first = !bdi.has_dirty_io();
        bdi.b_dirty.push_back(inode);
        // bdi_wakeup_thread_delayed
        if first && self.mm.kernel.sysctl.dirty_writeback_centisecs > 0 {
            let after = self.mm.kernel.sysctl.dirty_writeback();
            self.sched
                .interrupt_after(after, Interrupt::WakeFlusher { wb });
        }
        true
    }
}

impl World {
    /// `test_clear_page_writeback` of a page of a file whose flag is cleared already: the device has it.
    pub(crate) fn end_file_writeback(&mut self, pfn: Pfn) {
        let (inode, index) = self.mm.file_of(&self.mm.pages[pfn]);
        let file = &mut self.mm.inodes[inode];
        file.pages.clear_tag(index, Tag::Writeback);
        let (wb, last) = (file.wb(), file.pages.tagged(Tag::Writeback) == 0);
        let bdi = &mut self.mm.bdis[wb];
        bdi.writeback -= 1;
        bdi.written += 1;
        let shares = self.mm.kernel.mechanisms.writeback.proportions;
        self.mm.count_completion(wb, shares);
        if last {
            self.inode_writeback_end(wb);
        }
    }

    /// `cancel_dirty_page`: what is in the page is not wanted any more.
    pub(crate) fn cancel_dirty_page(&mut self, pfn: Pfn) {
        if !self.mm.pages[pfn].test_and_clear(flag::DIRTY) {
            return;
        }
        self.mm.pages[pfn].clear(flag::BUFFERS_CLEAN);
        let (inode, index) = self.mm.file_of(&self.mm.pages[pfn]);
        let file = &mut self.mm.inodes[inode];
        if file.extents.find(index).is_none() {
            self.mounts.get(file.fs).unreserve(1);
        }
        file.pages.clear_tag(index, Tag::Dirty);
        let wb = file.wb();
        self.mm.nr_dirty -= 1;
        self.mm.count_dirty_in_zone(pfn, -1);
        self.mm.memcontrol.uncount_dirty(pfn);
        self.mm.nr_cancelled += 1;
        self.mm.bdis[wb].reclaimable -= 1;
    }
}
