//! Where the pages of a file lie on its device.

/// Contiguous pages of a file that lie contiguously on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First page of the file.
    pub(crate) page: u32,
    /// Where it lies, in pages of the device.
    pub(crate) start: u64,
    /// Pages.
    pub(crate) length: u32,
}

impl Extent {
    fn end(&self) -> u64 {
        u64::from(self.page) + u64::from(self.length)
    }
}

/// The extents of a file in order of its pages; what is between them is a hole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extents {
    runs: Vec<Extent>,
    /// Pages up to the last one that was ever there to be written: what extents have behind it is allocated ahead.
    written: u32,
}

impl Extents {
    /// Where a page lies.
    pub(crate) fn find(&self, page: u32) -> Option<u64> {
        let at = self.runs.partition_point(|extent| extent.page <= page);
        let extent = self.runs[..at].last()?;
        let offset = page - extent.page;
        (offset < extent.length).then(|| extent.start + u64::from(offset))
    }

    /// A page is about to be written, or was there before the run.
    pub(crate) fn note_written(&mut self, page: u32) {
        self.written = self.written.max(page.saturating_add(1));
    }

    /// Whether a dirty page has blocks of its own, and is none for which they are yet to be allocated
    /// (`ext4_bh_delay_or_unwritten`). Blocks that were allocated ahead are not the page's before it is written.
    pub(crate) fn has_blocks(&self, page: u32) -> bool {
        page < self.written && self.find(page).is_some()
    }

    /// The end of the last extent that begins before `page`, in pages of the device.
    pub(crate) fn goal(&self, page: u32) -> Option<u64> {
        let at = self.runs.partition_point(|extent| extent.page <= page);
        let extent = self.runs[..at].last()?;
        Some(extent.start + u64::from(extent.length))
    }

    /// Pages from `page` on, which is in a hole, up to the next extent.
    pub(crate) fn hole(&self, page: u32) -> u32 {
        let at = self.runs.partition_point(|extent| extent.page <= page);
        self.runs.get(at).map_or(u32::MAX, |next| next.page) - page
    }

    /// Fills a hole or part of one.
    pub(crate) fn add(&mut self, extent: Extent) {
        let at = self.runs.partition_point(|other| other.page <= extent.page);
        if let Some(before) = at.checked_sub(1).map(|at| &mut self.runs[at]) {
            let joins = before.end() == u64::from(extent.page)
                && before.start + u64::from(before.length) == extent.start;
            if let Some(length) = before.length.checked_add(extent.length).filter(|_| joins) {
                before.length = length;
                return;
            }
        }
        self.runs.insert(at, extent);
    }

    /// Takes away what lies at `page` and after it: (start, length) on the device, for each piece.
    pub(crate) fn cut(&mut self, page: u32) -> Vec<(u64, u64)> {
        let mut cut = Vec::new();
        self.written = self.written.min(page);
        while let Some(last) = self
            .runs
            .last_mut()
            .filter(|last| last.end() > u64::from(page))
        {
            let keep = page.saturating_sub(last.page);
            cut.push((last.start + u64::from(keep), u64::from(last.length - keep)));
            last.length = keep;
            if keep > 0 {
                break;
            }
            self.runs.pop();
        }
        cut
    }

    /// Extents, first page first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.runs.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(page: u32, start: u64, length: u32) -> Extent {
        Extent {
            page,
            start,
            length,
        }
    }

    #[test]
    fn pages_are_found_and_holes_are_not() {
        let mut extents = Extents::default();
        extents.add(extent(10, 1000, 5));
        extents.add(extent(0, 500, 5));
        extents.add(extent(15, 1005, 5));
        assert_eq!(extents.iter().count(), 2, "neighbours are one");
        assert_eq!(extents.find(19), Some(1009));
        assert_eq!((extents.find(5), extents.find(20)), (None, None));
        assert_eq!((extents.hole(5), extents.hole(20)), (5, u32::MAX - 20));
        assert_eq!(extents.goal(7), Some(505));
    }

    #[test]
    fn what_is_allocated_ahead_belongs_to_no_page() {
        let mut extents = Extents::default();
        extents.add(extent(0, 500, 16));
        assert!(!extents.has_blocks(0));
        extents.note_written(3);
        assert_eq!([3, 4].map(|page| extents.has_blocks(page)), [true, false]);
        extents.cut(2);
        assert_eq!([1, 2].map(|page| extents.has_blocks(page)), [true, false]);
    }

    #[test]
    fn a_cut_gives_back_every_page_behind_it() {
        let mut extents = Extents::default();
        extents.add(extent(0, 500, 5));
        extents.add(extent(10, 1000, 10));
        assert_eq!(extents.cut(12), [(1002, 8)]);
        assert_eq!(extents.cut(2), [(1000, 2), (502, 3)]);
        assert_eq!(extents.find(1), Some(501));
        assert_eq!(extents.cut(0), [(500, 2)]);
        assert_eq!(extents.iter().count(), 0);
    }
}
