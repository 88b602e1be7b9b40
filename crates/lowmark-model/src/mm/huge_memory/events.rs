//! Events of khugepaged.

use super::khugepaged::{Look, SUCCEEDED};
use crate::mm::types::Pfn;
use crate::world::World;
use lowmark_record::{Field, Kind, Release};

/// The frame of a page, −1 without one.
fn frame(page: Option<Pfn>) -> u64 {
    page.map_or(u64::MAX, u64::from)
}

impl World {
    /// Number of the process that a region belongs to, for want of an address.
    fn process_of(&self, vma: u32) -> u64 {
        self.mm.vmas[vma as usize].space as u64
    }

    /// An extent was looked at (`hpage_collapse_scan_pmd`). That it could not be collapsed then is said from 6.1 on.
    pub(super) fn trace_scan(&mut self, vma: u32, look: &Look, status: &'static str) {
        if !self.trace.enabled() {
            return;
        }
        let release = self.mm.kernel.version.release();
        let status = if release >= Release::new(6, 1) {
            status
        } else {
            look.status
        };
        let status = self.trace.name(status);
        self.trace(Kind::KhugepagedScanPmd, |world| {
            vec![
                (Field::Mm, world.process_of(vma)),
                (Field::ScanPfn, frame(look.page)),
                (Field::Writable, u64::from(look.writable)),
                (Field::Referenced, u64::from(look.referenced)),
                (Field::NoneOrZero, look.none),
                (Field::Status, status),
                (Field::Unmapped, look.swapped.len() as u64),
            ]
        });
    }

    /// It was tried to collapse one (`collapse_huge_page`).
    pub(super) fn trace_collapse(&mut self, vma: u32, status: &'static str) {
        if !self.trace.enabled() {
            return;
        }
        let name = self.trace.name(status);
        self.trace(Kind::CollapseHugePage, |world| {
            vec![
                (Field::Mm, world.process_of(vma)),
                (Field::Isolated, u64::from(status == SUCCEEDED)),
                (Field::Status, name),
            ]
        });
    }

    /// The last look before that (`__collapse_huge_page_isolate`).
    pub(super) fn trace_isolate(&mut self, look: &Look) {
        if !self.trace.enabled() {
            return;
        }
        let status = self.trace.name(look.status);
        self.trace(Kind::CollapseHugePageIsolate, |_| {
            vec![
                (Field::ScanPfn, frame(look.page)),
                (Field::NoneOrZero, look.none),
                (Field::Referenced, u64::from(look.referenced)),
                (Field::Writable, u64::from(look.writable)),
                (Field::Status, status),
            ]
        });
    }

    /// Pages of it were read from swap (`__collapse_huge_page_swapin`).
    pub(super) fn trace_swapin(&mut self, vma: u32, read: u64, referenced: u32, succeeded: bool) {
        self.trace(Kind::CollapseHugePageSwapin, |world| {
            vec![
                (Field::Mm, world.process_of(vma)),
                (Field::SwappedIn, read),
                (Field::Referenced, u64::from(referenced)),
                (Field::Retval, u64::from(succeeded)),
            ]
        });
    }
}
