//! Invariants of the page cache, of dirty pages and of places on devices.

use crate::ids::{DeviceId, InodeId, MemcgId, WbId};
use crate::kernel::NfsUnstable;
use crate::mm::Mm;
use crate::mm::files::inode::Inode;
use crate::mm::frames::page::Page;
use crate::mm::types::{Pfn, Tag, flag};
use crate::mm::writeback::backing_dev::Listed;
use crate::world::World;
use typed_index_collections::TiVec;

/// Checks everything; a panic names what is broken.
pub(super) fn check(world: &World) {
    pages_know_their_files(world);
    dirty_pages_are_counted(world);
    groups_count_their_dirty_pages(world);
    unstable_pages_are_kept(world);
    held_blocks_are_in_memory(world);
    for xfs in world.mounts.all_xfs() {
        let lost = xfs.lost_buffers();
        assert!(
            lost.is_empty(),
            "buffers {lost:?} have changed and are not in memory"
        );
    }
    dirty_inodes_are_listed(world);
    places_belong_to_one(world);
}

/// Every page of a file leads back to where it is, and its flags are those of its tags.
fn pages_know_their_files(world: &World) {
    let mm = &world.mm;
    let mut pages = 0;
    for (number, inode) in mm.inodes.iter_enumerated() {
        for (index, pfn) in inode.pages.iter() {
            let page = &mm.pages[pfn];
            assert!(
                !page.has(flag::SWAPBACKED) && !page.has(flag::BUDDY),
                "page {pfn} is no page of a file"
            );
            assert_eq!(mm.file_of(page), (number, index), "owner of page {pfn}");
            folio_is_whole(mm, pfn);
            for (tag, flag) in [(Tag::Dirty, flag::DIRTY), (Tag::Writeback, flag::WRITEBACK)] {
                assert_eq!(
                    inode.pages.has_tag(index, tag),
                    page.has(flag),
                    "{tag:?} of page {index} of file {number}"
                );
            }
            assert!(
                page.has_any(flag::DIRTY)
                    || !page.has(flag::WRITEBACK)
                    || inode.extents.find(index).is_some(),
                "page {index} of file {number} is written to nowhere"
            );
            pages += 1;
        }
        assert!(
            inode
                .pages
                .next_page(inode.len().min(u64::from(u32::MAX)) as u32)
                .is_none()
                || world.sched.live() > 0,
            "file {number} has pages behind its end"
        );
    }
    assert_eq!(pages, mm.nr_file_pages, "pages of files");
}

/// The pages of a folio are those of a file one after the other, and nothing is known of them but by its head.
fn folio_is_whole(mm: &Mm, pfn: Pfn) {
    let (page, head) = (&mm.pages[pfn], mm.pages.head(pfn));
    if head == pfn {
        return;
    }
    let first = &mm.pages[head];
    let (file, index) = mm.file_of(first);
    assert_eq!(page.order(), first.order(), "order of page {pfn}");
    assert_eq!(
        mm.file_of(page),
        (file, index + (pfn - head)),
        "place of page {pfn}"
    );
    assert_eq!(
        mm.pages.zone(pfn),
        mm.pages.zone(head),
        "zone of page {pfn}"
    );
    assert!(!page.has_any(TAILS_LACK), "page {pfn} is no head");
    let group = |pfn| mm.memcontrol.of_page(pfn);
    assert_eq!(group(pfn), group(head), "group of page {pfn}");
}

/// Flags of heads.
const TAILS_LACK: u16 = flag::REFERENCED
    | flag::ACTIVE
    | flag::LRU
    | flag::DIRTY
    | flag::WRITEBACK
    | flag::RECLAIM
    | flag::LOCKED
    | flag::WAITERS
    | flag::WORKINGSET;

/// Pages that wait for a COMMIT.
pub(super) fn unstable(mm: &Mm) -> u64 {
    let pages = |inode: &Inode| inode.commit_info.pages().len() as u64;
    mm.inodes.iter().map(pages).sum()
}

/// Whether a page belongs to a block device, whose journal also writes pages that are clean.
fn is_of_device(mm: &Mm, page: &Page) -> bool {
    let (inode, _) = mm.file_of(page);
    mm.inodes[inode].is_device()
}

/// Nothing is lost: what became dirty is dirty, on its way, written, or was given up.
fn dirty_pages_are_counted(world: &World) {
    let mm = &world.mm;
    let tagged = |tag| {
        mm.inodes
            .iter()
            .map(|inode| inode.pages.tagged(tag))
            .sum::<u64>()
    };
    let (dirty, writeback) = (tagged(Tag::Dirty), tagged(Tag::Writeback));
    assert_eq!(dirty, mm.nr_dirty, "dirty pages");
    let written: u64 = mm.bdis.iter().map(|bdi| bdi.written).sum();
    assert_eq!(
        mm.stat.nr_dirtied,
        written + dirty + writeback + mm.nr_cancelled,
        "pages that became dirty"
    );
    let swap_begun = mm.nr_writeback - writeback - (unstable(mm) - mm.nr_unstable);
    assert_eq!(
        mm.stat.nr_written + swap_begun,
        written + mm.stat.pswpout,
        "pages written, of files and to swap"
    );
    let reclaimable: u64 = mm.bdis.iter().map(|bdi| bdi.reclaimable).sum();
    let on_the_way: u64 = mm.bdis.iter().map(|bdi| bdi.writeback).sum();
    let unstable = unstable(mm);
    let apart = match world.mm.kernel.mechanisms.nfs.nfs_unstable {
        NfsUnstable::Reclaimable => unstable,
        NfsUnstable::Writeback => 0,
    };
    assert_eq!(mm.nr_unstable, apart, "unstable pages");
    let mut by_zone = vec![0_u64; mm.zones.len()];
    let mut writeback_by_zone = vec![0_u64; mm.zones.len()];
    for pfn in 0..mm.pages.len() {
        let page = &mm.pages[pfn];
        if page.has(flag::BUDDY) {
            continue;
        }
        let journalled = page.has_any(flag::BUFFERS_CLEAN | flag::BUFFERS_LOCKED);
        assert!(
            !journalled || page.has(flag::DIRTY) || mm.held.begins(pfn) || is_of_device(mm, page),
            "page {pfn}: a journal writes what is dirty"
        );
        // A page that was written to while it is on its way is both.
        let dirty = page.has(flag::DIRTY) && !page.has(flag::SWAPBACKED);
        let on_the_way = match page.has(flag::WRITEBACK) {
            true if mm.is_huge(pfn) => mm.huge.writes(pfn).into(),
            on_the_way => u64::from(on_the_way),
        };
        by_zone[usize::from(mm.pages.zone(pfn))] += u64::from(dirty) + on_the_way;
        writeback_by_zone[usize::from(mm.pages.zone(pfn))] += on_the_way;
    }
    for inode in &mm.inodes {
        let unstable = inode.commit_info.pages();
        for pfn in unstable.filter_map(|page| inode.pages.page(page)) {
            by_zone[usize::from(mm.pages.zone(pfn))] += 1;
        }
    }
    let counted: Vec<u64> = mm.zones.iter().map(|zone| zone.dirty).collect();
    assert_eq!(counted, by_zone, "dirty pages by zone");
    let counted: Vec<u64> = mm.zones.iter().map(|zone| zone.writeback).collect();
    assert_eq!(counted, writeback_by_zone, "pages under writeback by zone");
    assert_eq!(
        (reclaimable, on_the_way),
        (dirty + apart, writeback + unstable - apart),
        "pages by device"
    );
    let homeless = mm.inodes.iter().flat_map(|inode| {
        let pages = inode.pages.iter();
        pages.filter(|&(index, _)| {
            inode.pages.has_tag(index, Tag::Dirty) && inode.extents.find(index).is_none()
        })
    });
    assert_eq!(
        homeless.count() as u64,
        world.mounts.reserved(),
        "room that is kept"
    );
}

/// Blocks of a device that a transaction holds are in memory, and flushers do not write them to their places meanwhile.
fn held_blocks_are_in_memory(world: &World) {
    let mm = &world.mm;
    for inode in &mm.inodes {
        let buffers = inode.buffers.iter();
        let held = buffers.flat_map(|buffers| buffers.running.iter().chain(&buffers.committing));
        for &block in held {
            let pfn = inode.pages.page(block);
            let page = pfn.map(|pfn| &mm.pages[pfn]);
            let kept =
                page.is_some_and(|page| !page.has(flag::WRITEBACK) && !page.has_dirty_buffers());
            assert!(kept, "block {block} is held by a journal: {page:?}");
        }
    }
}

/// A group counts those of its pages that are dirty or being written, and a part of a device the dirty pages of its
/// inodes.
fn groups_count_their_dirty_pages(world: &World) {
    let mm = &world.mm;
    let mut groups: TiVec<MemcgId, (u64, u64)> = vec![(0, 0); mm.memcontrol.len()].into();
    for pfn in 0..mm.pages.len() {
        let page = &mm.pages[pfn];
        let file = !page.has(flag::SWAPBACKED) && !page.has(flag::BUDDY);
        let group = &mut groups[mm.memcontrol.of_page(pfn)];
        group.0 += u64::from(file && page.has(flag::DIRTY));
        // The flag of a huge page that is written is its head's.
        if page.has(flag::WRITEBACK) && !page.has(flag::BUDDY) {
            group.1 += if mm.is_huge(pfn) {
                u64::from(mm.huge.writes(pfn))
            } else {
                1
            };
        }
    }
    for (memcg, &counted) in groups.iter_enumerated().skip(1) {
        let found = mm.memcontrol.dirty_and_writeback(memcg);
        assert_eq!(found, counted, "dirty pages of memory cgroup {memcg}");
    }
    let mut wbs: TiVec<WbId, (u64, u64)> = vec![(0, 0); mm.bdis.len()].into();
    for inode in &mm.inodes {
        let wb = &mut wbs[inode.wb()];
        wb.0 += inode.pages.tagged(Tag::Dirty);
        wb.1 += inode.pages.tagged(Tag::Writeback);
        let unstable = inode.commit_info.pages().len() as u64;
        match world.mm.kernel.mechanisms.nfs.nfs_unstable {
            NfsUnstable::Reclaimable => wb.0 += unstable,
            NfsUnstable::Writeback => wb.1 += unstable,
        }
    }
    let counted = mm.bdis.iter().map(|bdi| (bdi.reclaimable, bdi.writeback));
    assert!(counted.eq(wbs), "pages by flusher");
}

/// What a server may still lose is in memory: unstable, on its way there, dirty again, or of a file cut short.
/// And unstable pages are clean pages of the page cache.
fn unstable_pages_are_kept(world: &World) {
    let mm = &world.mm;
    for (number, inode) in mm.inodes.iter_enumerated() {
        for index in inode.commit_info.pages() {
            let pfn = inode.pages.page(index);
            let clean = |pfn: u32| !mm.pages[pfn].has_any(flag::DIRTY | flag::WRITEBACK);
            assert!(
                pfn.is_some_and(clean),
                "page {index} of file {number} is unstable"
            );
        }
    }
    let (volatile, dirty) = world.nfs.volatile();
    assert_eq!(volatile.len() as u64, dirty, "dirty pages of servers");
    for (number, index) in volatile {
        let inode = &mm.inodes[number];
        let again = |pfn: u32| mm.pages[pfn].has_any(flag::DIRTY | flag::WRITEBACK);
        assert!(
            inode.commit_info.has(index)
                || inode.pages.page(index).is_some_and(again)
                || u64::from(index) >= inode.len(),
            "page {index} of file {number} is on no disk"
        );
    }
}

/// An inode with dirty pages is on one list of its device, or being written.
fn dirty_inodes_are_listed(world: &World) {
    let mm = &world.mm;
    let mut listed: TiVec<InodeId, Listed> = vec![Listed::Clean; mm.inodes.len()].into();
    for bdi in &mm.bdis {
        let lists = [
            (Listed::Dirty, &bdi.b_dirty),
            (Listed::Io, &bdi.b_io),
            (Listed::MoreIo, &bdi.b_more_io),
        ];
        for (list, inodes) in lists {
            for &inode in inodes {
                let before = std::mem::replace(&mut listed[inode], list);
                assert_eq!(before, Listed::Clean, "file {inode} is on two lists");
            }
        }
    }
    for (number, inode) in mm.inodes.iter_enumerated() {
        assert_eq!(
            inode.writeback.listed, listed[number],
            "list of file {number}"
        );
        assert!(
            (inode.pages.tagged(Tag::Dirty) == 0 && !inode.writeback.datasync)
                || listed[number] != Listed::Clean
                || inode.writeback.sync,
            "nobody will write file {number}"
        );
    }
}

/// No place on a device belongs to two files.
fn places_belong_to_one(world: &World) {
    let mut places: Vec<(DeviceId, u64, u64)> = Vec::new();
    for inode in world.mm.inodes.iter().filter(|inode| !inode.is_device()) {
        let device = inode.device;
        places.extend(inode.extents.iter().map(|extent| {
            (
                device,
                extent.start,
                extent.start + u64::from(extent.length),
            )
        }));
    }
    places.sort_unstable();
    for pair in places.windows(2) {
        let [(device, _, end), (next_device, next, _)] = pair else {
            continue;
        };
        assert!(
            device != next_device || end <= next,
            "two files have the same place"
        );
    }
}
