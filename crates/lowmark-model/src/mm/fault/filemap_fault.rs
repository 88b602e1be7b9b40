//! Faults on mapped files (`filemap_fault` and, in `mm/memory.c`, what is around it).
//!
//! 1. From 3.15 on a read fault first maps whatever of the sixteen pages around it is in memory.
//! 2. A page that is there is mapped, once it has been read; one with the readahead mark starts the next
//!    window before that.
//! 3. For one that is not, the pages around it are read, or with advice what that says.
//! 4. A store to a shared mapping makes the page dirty at once (`page_mkwrite`); the PTE stays writable
//!    until the page is written.
//! 5. A store to a private mapping gets a copy, which is anonymous from then on.

use crate::ids::InodeId;
use crate::kernel::{FaultAround, NewAnon, StablePages};
use crate::mm::Mm;
use crate::mm::fault::memory::{Backing, Step};
use crate::mm::files::filemap::{OpenFile, page_cache_read};
use crate::mm::files::readahead::{self, Window};
use crate::mm::frames::pte::Pte;
use crate::mm::types::{Gfp, OutOfMemory, PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, Pfn, flag};
use crate::time::Nanos;
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;

/// What madvise(2) said of a mapping's reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReadAdvice {
    /// MADV_NORMAL
    #[default]
    Normal,
    /// MADV_RANDOM: no readahead.
    Random,
    /// MADV_SEQUENTIAL: as read(2).
    Sequential,
}

/// A fault on a file mapping: where it is, and how it came to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileFault {
    pub(crate) vma: u32,
    pub(crate) index: u32,
    pub(crate) write: bool,
    /// It waited, and looks again.
    pub(crate) replay: bool,
    pub(crate) inode: InodeId,
    pub(crate) shared: bool,
}

/// Pages that a read fault looks at (`fault_around_bytes`).
const FAULT_AROUND: u32 = (64 << 10) / PAGE_SIZE as u32;

impl Mm {
    /// `do_async_mmap_readahead`: true if the page had the readahead mark.
    fn fault_hit(&mut self, vma: u32, index: u32, pfn: Pfn) -> bool {
        let region = &mut self.vmas[vma as usize];
        let random = region.parts.at(index).reads == ReadAdvice::Random;
        let Some(file) = region.file.as_mut().filter(|_| !random) else {
            return false;
        };
        file.readahead.fault_hit();
        let head = self.pages.head(pfn);
        let page = &mut self.pages[head];
        !page.has(flag::WRITEBACK) && page.test_and_clear(flag::RECLAIM)
    }

    fn set_file_pte(&mut self, fault: FileFault, pfn: Pfn, write: bool, cost: Nanos) -> Step {
        let pte = &mut self.vmas[fault.vma as usize].ptes[fault.index as usize];
        let mapped = pte.frame() == Some(pfn);
        *pte = Pte::mapped(pfn, write, write);
        self.pages[pfn].mapcount += u16::from(!mapped);
        if write {
            Step::Dirtied { cost }
        } else {
            Step::Done { cost }
        }
    }

    /// `do_set_pmd`: a folio of the size of a huge page is mapped as a whole, where nothing of it is mapped yet and all
    /// of it lies in the region. False: it is not.
    fn map_huge(&mut self, fault: FileFault, pfn: Pfn) -> bool {
        if self.pages[pfn].order() != PAGEBLOCK_ORDER {
            return false;
        }
        let head = self.pages.head(pfn);
        let region = &mut self.vmas[fault.vma as usize];
        let vma = region.vma_around(fault.index);
        let first = fault.index.checked_sub(pfn - head);
        let Some(first) = first.filter(|&first| {
            vma.start <= first
                && u64::from(first) + u64::from(PAGEBLOCK_PAGES) <= u64::from(vma.end)
        }) else {
            return false;
        };
        let ptes = &mut region.ptes[first as usize..(first + PAGEBLOCK_PAGES) as usize];
        if ptes.iter().any(|&pte| pte != Pte::default()) {
            return false;
        }
        for (pte, pfn) in ptes.iter_mut().zip(self.pages.folio(head)) {
            *pte = Pte::mapped(pfn, false, false);
            self.pages[pfn].mapcount += 1;
        }
        self.stat.thp_file_mapped += 1;
        true
    }

    /// `do_fault_around`: maps what is in memory of the pages around a read fault. True if its own page was
    /// among them.
    fn fault_around(&mut self, fault: FileFault) -> bool {
        let region = &self.vmas[fault.vma as usize];
        let offset = region.offset;
        let first = fault.index / FAULT_AROUND * FAULT_AROUND;
        let vma = region.vma_around(fault.index);
        for index in vma.start.max(first)..vma.end.min(first + FAULT_AROUND) {
            let file = &self.inodes[fault.inode];
            if u64::from(offset + index) >= file.len() {
                break;
            }
            let empty = self.vmas[fault.vma as usize].ptes[index as usize] == Pte::default();
            let Some(pfn) = file.pages.page(offset + index).filter(|_| empty) else {
                continue;
            };
            let page = &self.pages[self.pages.head(pfn)];
            let marked = page.has(flag::RECLAIM) && !page.has(flag::WRITEBACK);
            if page.has(flag::LOCKED) || marked {
                continue;
            }
            if self.map_huge(FileFault { index, ..fault }, pfn) {
                break;
            }
            self.set_file_pte(FileFault { index, ..fault }, pfn, false, 0);
            if let Some(file) = &mut self.vmas[fault.vma as usize].file {
                file.readahead.fault_hit();
            }
        }
        let pte = self.vmas[fault.vma as usize].ptes[fault.index as usize];
        pte.is_present()
    }
}

impl World {
    /// A fault where no PTE is (`do_linear_fault`).
    pub(super) fn file_fault(&mut self, fault: FileFault, page: &mut Option<Pfn>) -> Step {
        let FileFault { vma, index, .. } = fault;
        let offset = self.mm.vmas[vma as usize].offset + index;
        let around = self.mm.kernel.mechanisms.files.fault_around == FaultAround::On;
        if around && !fault.write && self.mm.fault_around(fault) {
            return Step::Done { cost: 0 };
        }
        let file = &self.mm.inodes[fault.inode];
        if u64::from(offset) >= file.len() {
            return Step::Sigbus;
        }
        let Some(pfn) = file.pages.page(offset) else {
            return self.fault_missed(fault, offset, page);
        };
        if !fault.replay {
            let marked = self.mm.fault_hit(vma, index, pfn);
            if marked {
                return Step::Marked;
            }
        }
        self.map_file_page(fault, pfn, page)
    }

    /// A page that is not in memory. A hole that nothing is read around is filled without I/O.
    fn fault_missed(&mut self, fault: FileFault, offset: u32, page: &mut Option<Pfn>) -> Step {
        let file = &self.mm.inodes[fault.inode];
        let region = &self.mm.vmas[fault.vma as usize];
        let advice = region.parts.at(fault.index).reads;
        if advice != ReadAdvice::Random || file.extents.find(offset).is_some() {
            return Step::Miss;
        }
        if self.mm.slub.needs_preload(self.mm.cpu) {
            return Step::Preload;
        }
        let Some(pfn) = self.fault_page(page) else {
            return Step::Allocate;
        };
        if !self.add_to_page_cache(fault.inode, offset, pfn) {
            *page = Some(pfn);
            return Step::Sigbus;
        }
        self.mm.stat.pgmajfault += 1;
        match self.map_file_page(fault, pfn, page) {
            Step::Done { cost } => Step::Done {
                cost: cost + self.memory_time(self.costs.zero_page_ns),
            },
            step => step,
        }
    }

    /// Maps a page that is there, as soon as it has been read.
    fn map_file_page(&mut self, fault: FileFault, pfn: Pfn, page: &mut Option<Pfn>) -> Step {
        let head = self.mm.pages.head(pfn);
        if self.mm.pages[head].has(flag::LOCKED) {
            return Step::Wait {
                pfn: head,
                flags: flag::LOCKED,
            };
        }
        if !fault.write && self.mm.map_huge(fault, pfn) {
            return Step::Done { cost: 0 };
        }
        match (fault.write, fault.shared) {
            (true, false) => self.copy_on_write(fault, page),
            (true, true) => match self.page_mkwrite(pfn) {
                Err(step) => step,
                Ok(cost) => self.mm.set_file_pte(fault, pfn, true, cost),
            },
            (false, _) => self.mm.set_file_pte(fault, pfn, false, 0),
        }
    }

    /// A store to a page that is mapped read-only (`do_wp_page`).
    pub(super) fn file_wp_fault(
        &mut self,
        fault: FileFault,
        pfn: Pfn,
        page: &mut Option<Pfn>,
    ) -> Step {
        if fault.shared {
            self.map_file_page(fault, pfn, page)
        } else {
            self.copy_on_write(fault, page)
        }
    }

    /// `do_cow_fault`: a private page takes the place of the file's.
    fn copy_on_write(&mut self, fault: FileFault, page: &mut Option<Pfn>) -> Step {
        let Some(copy) = self.fault_page(page) else {
            return Step::Allocate;
        };
        let pte = &mut self.mm.vmas[fault.vma as usize].ptes[fault.index as usize];
        if let Some(old) = std::mem::take(pte).frame() {
            self.mm.pages[old].mapcount -= 1;
        }
        self.mm.map_anon(fault.vma, fault.index, copy, true, true);
        self.mm.pages[copy].set(flag::SWAPBACKED);
        if self.mm.kernel.mechanisms.reclaim.new_anon == NewAnon::Active {
            self.mm.pages[copy].set(flag::ACTIVE);
        }
        self.folio_add_lru(copy);
        Step::Done {
            cost: self.memory_time(self.costs.copy_page_ns),
        }
    }
}

/// What the fault reads when its page is missing.
enum Plan {
    Around(Window),
    InOrder,
    Alone,
}

/// `filemap_fault` of a page that is not in memory: reads it, and what readahead says, and counts a major
/// fault.
pub(super) async fn read_missing(
    sys: &Sys,
    vma: u32,
    index: u32,
    gfp: Gfp,
) -> Result<(), OutOfMemory> {
    let Some((inode, offset, mut open, plan)) = sys.world().plan_fault_read(vma, index) else {
        return Ok(());
    };
    match plan {
        Plan::Around(window) => readahead::read_window(sys, inode, window, gfp).await,
        Plan::InOrder => {
            let wanted = sys.world().ra_pages(inode);
            readahead::sync(sys, &mut open, offset, wanted, gfp).await;
            put_readahead(sys, vma, open);
        }
        Plan::Alone => {}
    }
    let missing = sys.world().mm.inodes[inode].pages.page(offset).is_none();
    if missing {
        page_cache_read(sys, inode, offset, gfp).await
    } else {
        Ok(())
    }
}

/// The next window, after a fault on a page with the readahead mark.
pub(super) async fn read_on(sys: &Sys, vma: u32, index: u32, gfp: Gfp) -> Result<(), OutOfMemory> {
    let state = {
        let world = sys.world();
        let region = &world.mm.vmas[vma as usize];
        let file = region.file.as_deref();
        file.map(|file| (file.clone(), region.offset + index))
    };
    let Some((mut open, offset)) = state else {
        return Ok(());
    };
    let wanted = sys.world().ra_pages(open.inode);
    readahead::marked(sys, &mut open, offset, wanted, gfp).await;
    put_readahead(sys, vma, open);
    Ok(())
}

fn put_readahead(sys: &Sys, vma: u32, open: OpenFile) {
    let world = &mut *sys.world();
    if let Some(file) = &mut world.mm.vmas[vma as usize].file {
        file.readahead = open.readahead;
    }
}

impl World {
    fn plan_fault_read(&mut self, vma: u32, index: u32) -> Option<(InodeId, u32, OpenFile, Plan)> {
        let Backing::File { inode, .. } = self.mm.vmas[vma as usize].backing else {
            return None;
        };
        let max = self.ra_pages(inode);
        let region = &mut self.mm.vmas[vma as usize];
        let offset = region.offset + index;
        let file = region.file.as_mut()?;
        let plan = match region.parts.at(index).reads {
            ReadAdvice::Random => Plan::Alone,
            ReadAdvice::Sequential => Plan::InOrder,
            ReadAdvice::Normal => match file.readahead.around(offset, max) {
                Some(window) => Plan::Around(window),
                None => Plan::Alone,
            },
        };
        Some((inode, offset, OpenFile::clone(file), plan))
    }
}

impl World {
    /// `page_mkwrite`: a fault is about to map a page of a file for stores. The time that making the page dirty takes, or
    /// the step that the fault has to take first.
    fn page_mkwrite(&mut self, pfn: Pfn) -> Result<Nanos, Step> {
        let page = &self.mm.pages[pfn];
        let stable = self.mm.kernel.mechanisms.writeback.stable_pages == StablePages::Always;
        if page.has(flag::WRITEBACK) && (stable || self.is_remote(pfn)) {
            return Err(Step::Wait {
                pfn,
                flags: flag::WRITEBACK,
            });
        }
        let (inode, index) = self.mm.file_of(page);
        if self.lacks_buffers(inode, pfn) && !self.create_buffers_at_once(pfn) {
            return Err(Step::Buffers { inode, index });
        }
        self.set_page_dirty(pfn).ok_or(Step::Sigbus)
    }

    /// Whether a page belongs to a file on a server.
    fn is_remote(&self, pfn: Pfn) -> bool {
        let (inode, _) = self.mm.file_of(&self.mm.pages[pfn]);
        self.nfs.is_remote(self.mm.inodes[inode].device)
    }
}
