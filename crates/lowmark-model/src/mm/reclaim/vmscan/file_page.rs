//! What becomes of a page of a file at the end of its list: steps 3 and 5 to 7 of
//! [`shrink_page_list`](super::page_list).

use super::page_list::{Fate, Outcome, writepage_flags};
use super::{ScanControl, Target};
use crate::device::{Dir, Io};
use crate::fs::Writepage;
use crate::ids::InodeId;
use crate::kernel::{CongestedZone, DirtyCount, FlusherWakeup, ReclaimFileWrites};
use crate::mm::Mm;
use crate::mm::types::{DEF_PRIORITY, Pfn, UNMAPPED, flag};
use crate::world::World;
use lowmark_record::event::RECLAIM_WB_FILE;

impl Mm {
    /// A dirty page that this reclaimer does not write: it is marked, so that the end of its writeback moves
    /// it to where reclaim finds it first.
    fn left_to_flusher(&mut self, pfn: Pfn, sc: &ScanControl) -> Option<Fate> {
        let page = &self.pages[pfn];
        let lists = &self.lruvecs[self.zones[self.pages.zone(pfn)].lruvec];
        let seen = page.has(flag::RECLAIM);
        let met_again = sc.kswapd && lists.tail_dirty && seen;
        let (writes, fate) = match self.kernel.mechanisms.writeback.reclaim_file_writes {
            ReclaimFileWrites::Anybody => (true, Fate::Keep),
            // There was no mark for such pages yet.
            ReclaimFileWrites::Kswapd if !sc.kswapd => return Some(Fate::Keep),
            ReclaimFileWrites::Kswapd => (true, Fate::Keep),
            ReclaimFileWrites::KswapdLate => {
                (sc.kswapd && sc.priority < DEF_PRIORITY - 2, Fate::Keep)
            }
            ReclaimFileWrites::TailDirty => (sc.kswapd && lists.tail_dirty, Fate::Keep),
            ReclaimFileWrites::SeenTwice => (met_again, Fate::Activate),
            // pageout() turns it away.
            ReclaimFileWrites::Nobody if met_again => return Some(Fate::Activate),
            ReclaimFileWrites::Nobody => (false, Fate::Activate),
        };
        if writes {
            return None;
        }
        self.stat.nr_vmscan_immediate_reclaim += 1;
        self.pages[pfn].set(flag::RECLAIM);
        Some(fate)
    }

    /// `writepage` of a page of a file that is marked as under writeback.
    pub(super) fn file_write(&mut self, pfn: Pfn) -> Io {
        let (inode, index) = self.file_of(&self.pages[pfn]);
        let file = &self.inodes[inode];
        let position = file.extents.find(index);
        Io {
            device: file.device,
            dir: Dir::Write,
            sync: false,
            position: position.expect("a page that is written has a place"),
            pfn,
            in_folio: false,
            own_bio: true,
            needs_bio: false,
        }
    }
}

impl World {
    pub(super) fn shrink_file_page(
        &mut self,
        pfn: Pfn,
        sc: &ScanControl,
        outcome: &mut Outcome,
    ) -> Fate {
        // Truncated while it was isolated.
        if self.mm.pages[pfn].owner == UNMAPPED {
            return Fate::Free;
        }
        self.count_file_page(pfn, outcome);
        // PAGEREF_RECLAIM_CLEAN: it was used, long enough ago for a clean page.
        let marked = self.mm.pages[pfn].has(flag::REFERENCED)
            && !sc.mode.is_lumpy()
            && !self.mm.counts_looks();
        if let Some(fate) = self.mm.check_references(pfn, sc) {
            outcome.note_kept(&fate, self.mm.pages[pfn].folio_nr_pages());
            return fate;
        }
        if self.mm.is_folio_mapped(pfn) {
            outcome.cost += self.costs.unmap_page_ns;
        }
        for page in self.mm.pages.folio(pfn) {
            if self.mm.pages[page].is_mapped() {
                self.mm.try_to_unmap(page);
            }
        }
        if !self.mm.pages[pfn].has(flag::DIRTY) {
            if self.is_unstable(pfn) {
                self.nfs_release_page(pfn);
                return Fate::Activate;
            }
            if self.mm.has_busy_buffers(pfn) {
                return Fate::Activate;
            }
            return self.remove_clean(pfn, sc);
        }
        if self.mm.kernel.mechanisms.reclaim.dirty_count == DirtyCount::Writable {
            outcome.dirty += 1;
        }
        if let Some(fate) = self.mm.left_to_flusher(pfn, sc) {
            return fate;
        }
        if marked {
            Fate::Keep
        } else {
            self.pageout_file(pfn, sc, outcome)
        }
    }

    /// `__remove_mapping` of a clean page that nobody maps.
    fn remove_clean(&mut self, pfn: Pfn, sc: &ScanControl) -> Fate {
        let shadow = self.mm.workingset_eviction(pfn, sc.memcg);
        self.mm.delete_from_page_cache(pfn, shadow);
        Fate::Free
    }

    /// `page_check_dirty_writeback` from 3.11 on; before, only the dirty pages that reach step 6 count, there.
    pub(super) fn count_file_page(&mut self, pfn: Pfn, outcome: &mut Outcome) {
        let page = &self.mm.pages[pfn];
        let writeback = page.has(flag::WRITEBACK);
        let counts = self.mm.kernel.mechanisms.reclaim.dirty_count == DirtyCount::All;
        if !counts || !page.has_any(flag::DIRTY | flag::WRITEBACK) || page.owner == UNMAPPED {
            return;
        }
        outcome.dirty += 1;
        outcome.unqueued += u64::from(!writeback);
        let again = writeback && page.has(flag::RECLAIM);
        let device = self.mm.inodes[self.mm.file_of(page).0].device;
        // The queues of kernels that throttle do not know of congestion.
        let queue = || !self.mm.throttles() && self.block.is_congested(device, false);
        outcome.congested += u64::from(again || queue());
    }

    /// `pageout` of one page of a file. kswapd writes to congested devices too, and so do some others.
    fn pageout_file(&mut self, pfn: Pfn, sc: &ScanControl, outcome: &mut Outcome) -> Fate {
        let (inode, index) = self.mm.file_of(&self.mm.pages[pfn]);
        let device = self.mm.inodes[inode].device;
        if !sc.may_writepage {
            return Fate::Keep;
        }
        let writepage = self.writepage_of(inode, index, sc);
        if writepage == Writepage::Missing {
            return Fate::Activate;
        }
        if !self.mm.writes_to_congested(sc) && self.block.is_congested(device, false) {
            outcome.congested += 1;
            return Fate::Keep;
        }
        let writes = writepage == Writepage::Write;
        if writes && self.place_of(inode, index).is_none() {
            return Fate::Activate;
        }
        // A page that its file system leaves dirty counts as written, too.
        self.mm.stat.nr_vmscan_write += 1;
        self.trace_writepage(pfn, writepage_flags(RECLAIM_WB_FILE, sc));
        // A page that the journal is writing stays dirty, too (trylock_buffer).
        if !writes || self.mm.pages[pfn].has(flag::BUFFERS_LOCKED) {
            return Fate::Keep;
        }
        if self.mm.is_written_by_journal(pfn) {
            self.write_nothing(pfn);
            return if self.mm.has_busy_buffers(pfn) {
                Fate::Activate
            } else {
                self.remove_clean(pfn, sc)
            };
        }
        self.mm.begin_page_writeback(pfn);
        self.mm.pages[pfn].set(flag::RECLAIM);
        Fate::Write
    }

    /// What the file system of a dirty page does with it.
    fn writepage_of(&mut self, inode: InodeId, index: u32, sc: &ScanControl) -> Writepage {
        let file = &self.mm.inodes[inode];
        if self.nfs.is_remote(file.device) {
            return Writepage::Write;
        }
        let has_blocks = file.extents.has_blocks(index);
        if file.is_device() {
            return Writepage::Write;
        }
        let files = &self.mm.kernel.mechanisms.files;
        self.mounts
            .get(file.fs)
            .writepage(files, has_blocks, sc.kswapd)
    }

    /// What a batch says of the device behind its pages: that it is congested, or that flushers do not keep
    /// up (`shrink_inactive_list`).
    pub(super) fn note_dirty_pages(&mut self, target: Target, taken: u64, outcome: &Outcome) {
        let by_batch = !self.mm.judges_passes();
        let marks = match self.mm.kernel.mechanisms.reclaim.congested_zone {
            CongestedZone::Never => false,
            CongestedZone::NoneLeft => true,
            CongestedZone::Dirty => outcome.dirty > 0,
        };
        if by_batch && marks && outcome.dirty == outcome.congested {
            self.mm.zones[target.zone].congested = true;
        }
        if outcome.dirty == 0 {
            return;
        }
        if self.mm.kernel.mechanisms.writeback.flusher_wakeup == FlusherWakeup::ScannedOrDirty {
            self.wakeup_flusher_threads(Some((32 * outcome.dirty).min(1024)));
        }
        if outcome.unqueued == taken {
            let node = self.mm.root_lruvec(target.lruvec);
            self.mm.lruvecs[node].tail_dirty |= by_batch;
            if self.mm.kernel.mechanisms.writeback.flusher_wakeup == FlusherWakeup::DirtyBatch {
                self.wakeup_flusher_threads(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LruvecId, NodeId, ZoneId};
    use crate::kernel::Kernel;
    use crate::mm::types::{Gfp, SWAP_CLUSTER_MAX, ZoneType};
    use crate::trace::Trace;
    use lowmark_spec::Machine;

    /// Whether a batch with `dirty` dirty pages, `congested` of which it could not write, marks its zone as congested.
    fn marks(text: &str, dirty: u64, congested: u64) -> bool {
        let machine = Machine::small(64 << 20, 64 << 20);
        let mut world = World::new(&machine, Kernel::named(text), Trace::new(None));
        let target = Target {
            lruvec: LruvecId::from(0),
            zone: ZoneId::FIRST,
        };
        let mut outcome = Outcome::default();
        (outcome.dirty, outcome.congested) = (dirty, congested);
        world.note_dirty_pages(target, 32, &outcome);
        world.mm.zones[ZoneId::FIRST].congested
    }

    #[test]
    fn a_batch_without_dirty_pages_marks_its_zone_as_patch_8_was_posted() {
        let posted = "v2.6.37+direct_wait=busiest-zone+congested_zone=none-left";
        for (text, expected) in [
            ("v2.6.36", [false, false, false]),
            (posted, [true, true, false]),
            ("v2.6.37", [false, true, false]),
            ("v4.7", [false, true, false]),
        ] {
            let found =
                [(0, 0), (8, 8), (8, 7)].map(|(dirty, refused)| marks(text, dirty, refused));
            assert_eq!(found, expected, "{text}");
        }
    }

    /// Patch 9 of the series that was tested in September 2010, beside 2.6.36 and 3.2.
    #[test]
    fn kswapd_alone_writes_pages_of_files_with_nodirect() {
        let nodirect = "v2.6.36+reclaim_file_writes=kswapd+flusher_wakeup=scanned-or-dirty";
        for (text, direct, kswapd) in [
            ("v2.6.36", [true, true], [true, true]),
            (nodirect, [false, false], [true, true]),
            ("v3.2", [false, false], [false, true]),
        ] {
            let machine = Machine::small(64 << 20, 64 << 20);
            let mut world = World::new(&machine, Kernel::named(text), Trace::new(None));
            let pfn = world.alloc_page_fast(Gfp::user(NodeId::FIRST)).unwrap();
            world.mm.pages[pfn].set(flag::DIRTY);
            let mut writes = |by_kswapd| {
                [DEF_PRIORITY, 1].map(|priority| {
                    let mut sc = ScanControl::new(by_kswapd, SWAP_CLUSTER_MAX, 0, ZoneType::High);
                    sc.priority = priority;
                    world.mm.left_to_flusher(pfn, &sc).is_none()
                })
            };
            assert_eq!((writes(false), writes(true)), (direct, kswapd), "{text}");
            // The posted patch neither marks pages nor counts them.
            let marked = world.mm.stat.nr_vmscan_immediate_reclaim > 0;
            assert_eq!(marked, text == "v3.2", "{text}");
        }
    }

    /// What kswapd does with a dirty page of a file that it meets for the second time where all is dirty: `None` is to
    /// write it.
    #[test]
    fn nobody_writes_pages_of_files_from_6_16_on() {
        for (version, writes) in [("v4.10", true), ("v6.15", true), ("v6.16", false)] {
            let mut world = World::of_version(version);
            let pfn = world.alloc_page_fast(Gfp::user(NodeId::FIRST)).unwrap();
            world.mm.pages[pfn].set(flag::DIRTY | flag::RECLAIM);
            world.mm.lruvecs[LruvecId::from(0)].tail_dirty = true;
            let sc = ScanControl::new(true, SWAP_CLUSTER_MAX, 0, ZoneType::High);
            let fate = world.mm.left_to_flusher(pfn, &sc);
            assert_eq!(fate.is_none(), writes, "{version}");
            assert!(writes || matches!(fate, Some(Fate::Activate)));
            assert_eq!(world.mm.stat.nr_vmscan_immediate_reclaim, 0);
            // The first time it is marked and left.
            world.mm.pages[pfn].clear(flag::RECLAIM);
            let marked = world.mm.left_to_flusher(pfn, &sc).is_some();
            assert_eq!(marked, version != "v4.10", "{version}");
            assert_eq!(world.mm.pages[pfn].has(flag::RECLAIM), marked);
        }
    }
}
