//! Flash with few open erase blocks: memory sticks and cards.
//!
//! 1. A stick writes into erase blocks of some MiB, of which it keeps a few *open*. Pages that go on where an
//!    open block stands, or skip ahead in it, cost their transfer.
//! 2. To open one more it closes the one used longest ago: what that lacks is copied from where it was.
//! 3. So does a page behind the place where its block stands: the block is closed and opened again.
//! 4. A block that was written from end to end lacks nothing.

use lowmark_spec::machine::{Device, PAGE_SIZE};

/// An erase block that is being filled.
#[derive(Debug)]
struct Open {
    block: u64,
    /// Page at which it stands.
    next: u64,
    /// Pages written since it was opened.
    written: u64,
}

/// The erase blocks of a device.
#[derive(Debug)]
pub(super) struct Flash {
    /// Pages of a block; 0 for a device that hides them.
    pages: u64,
    limit: usize,
    /// Open blocks, the one used last at the end.
    open: Vec<Open>,
}

impl Flash {
    pub(super) fn new(spec: &Device) -> Flash {
        Flash {
            pages: spec.erase_block / PAGE_SIZE,
            limit: spec.open_blocks.max(1) as usize,
            open: Vec::new(),
        }
    }

    /// Writes pages: how many others have to be copied for that.
    pub(super) fn write(&mut self, start: u64, pages: u64) -> u64 {
        if self.pages == 0 {
            return 0;
        }
        let (mut at, end) = (start, start + pages);
        let mut copied = 0;
        while at < end {
            let stop = end.min((at / self.pages + 1) * self.pages);
            copied += self.write_in_block(at, stop);
            at = stop;
        }
        copied
    }

    fn write_in_block(&mut self, at: u64, stop: u64) -> u64 {
        let block = at / self.pages;
        let found = self.open.iter().position(|open| open.block == block);
        let mut copied = 0;
        let mut open = match found.map(|found| self.open.remove(found)) {
            Some(open) if open.next <= at => open,
            known => {
                if let Some(closed) = known {
                    copied += self.pages - closed.written;
                } else if self.open.len() == self.limit {
                    copied += self.pages - self.open.remove(0).written;
                }
                Open {
                    block,
                    next: at,
                    written: 0,
                }
            }
        };
        open.written += stop - at;
        open.next = stop;
        // A full one is closed at no cost.
        if open.written < self.pages {
            self.open.push(open);
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 256 pages, two of them open.
    fn stick() -> Flash {
        Flash::new(&Device {
            erase_block: 256 * PAGE_SIZE,
            open_blocks: 2,
            ..Device::ssd("sda", 1 << 30)
        })
    }

    #[test]
    fn a_stream_copies_nothing() {
        let mut flash = stick();
        assert_eq!(flash.write(0, 1000), 0);
        assert_eq!(flash.write(1000, 24), 0);
        assert!(flash.open.is_empty(), "all four blocks are full");
    }

    #[test]
    fn as_many_streams_as_open_blocks_copy_nothing() {
        let mut flash = stick();
        for page in 0..256 {
            assert_eq!(flash.write(page, 1) + flash.write(2560 + page, 1), 0);
        }
        assert!(flash.open.is_empty());
    }

    #[test]
    fn one_stream_more_copies_a_block_each_time() {
        let mut flash = stick();
        let copied: Vec<u64> = [0, 2560, 5120, 1, 2561]
            .map(|page| flash.write(page, 1))
            .to_vec();
        assert_eq!(copied, [0, 0, 255, 255, 255]);
    }

    #[test]
    fn a_page_behind_where_its_block_stands_costs_a_copy() {
        let mut flash = stick();
        assert_eq!(flash.write(10, 6), 0);
        assert_eq!(flash.write(20, 4), 0, "ahead: the gap is filled at the end");
        assert_eq!(flash.write(10, 1), 256 - 10);
    }

    #[test]
    fn a_disk_that_hides_its_blocks_copies_nothing() {
        let mut flash = Flash::new(&Device::ssd("sda", 1 << 30));
        assert_eq!((0..100).map(|n| flash.write(n * 7919, 1)).sum::<u64>(), 0);
    }
}
