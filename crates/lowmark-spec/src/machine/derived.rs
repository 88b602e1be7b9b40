//! CPU times that follow from those that a machine gives.

use super::Costs;

impl Costs {
    /// A clean page that is mapped, scanned, unmapped and freed.
    pub fn reclaim_clean_ns(&self) -> u64 {
        self.scan_page_ns + self.unmap_page_ns + self.free_page_ns
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

    /// Dropping a clean page from the page cache with its neighbours in the file (`invalidate_mapping_pages`): half the time of
    /// reading a page. In guests on which `file_page` is 3.6 us, `drop_caches` takes 0.8 to 1.0 us a page on 3.3 and 3.4, 1.9 us on
    /// 4.11, 2.1 to 2.4 us on 6.1 and 6.12.
    pub fn drop_page_ns(&self) -> u64 {
        self.file_page_ns / 2
    }
}
