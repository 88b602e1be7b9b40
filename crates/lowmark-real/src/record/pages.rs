//! Pages of events as they come from the kernel: all of them in a file, or the last minutes of them in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

/// Most bytes that are kept in memory. An event has some 40: that is more than a million of them.
const RING_BYTES: usize = 64 << 20;
/// Most bytes that are kept in a file.
const FILE_BYTES: u64 = 256 << 20;
/// Bytes behind the events of a page: how many were lost before it.
const LOST_BYTES: usize = 8;

/// A page, without what is unused of it.
#[derive(Debug, Clone)]
struct Page {
    cpu: u32,
    /// When it was read.
    time_ns: u64,
    bytes: Vec<u8>,
}

/// Where a page stands in the file.
#[derive(Debug, Clone, Copy)]
struct Place {
    cpu: u32,
    offset: u64,
    length: u32,
}

/// Where the pages are.
#[derive(Debug)]
enum Store {
    Ring(VecDeque<Page>),
    File(File, Vec<Place>),
}

/// The pages that are kept.
#[derive(Debug)]
pub(super) struct Pages {
    store: Store,
    bytes: u64,
    /// Whether there were more than are kept.
    pub(super) full: bool,
}

impl Pages {
    /// Keeps the last ones in memory.
    pub(super) fn ring() -> Pages {
        Pages::new(Store::Ring(VecDeque::new()))
    }

    /// Keeps all of them in a file.
    pub(super) fn in_file(file: File) -> Pages {
        Pages::new(Store::File(file, Vec::new()))
    }

    fn new(store: Store) -> Pages {
        Pages {
            store,
            bytes: 0,
            full: false,
        }
    }

    /// Adds a page that was read at a time. Of a full file nothing more is kept, of a full ring the oldest goes.
    pub(super) fn add(&mut self, cpu: u32, time_ns: u64, page: &[u8]) -> io::Result<()> {
        let page = used(page);
        match &mut self.store {
            Store::Ring(pages) => {
                self.bytes += page.len() as u64;
                pages.push_back(Page {
                    cpu,
                    time_ns,
                    bytes: page.to_vec(),
                });
                while self.bytes > RING_BYTES as u64
                    && let Some(oldest) = pages.pop_front()
                {
                    self.bytes -= oldest.bytes.len() as u64;
                    self.full = true;
                }
            }
            Store::File(..) if self.full || self.bytes + page.len() as u64 > FILE_BYTES => {
                self.full = true
            }
            Store::File(file, places) => {
                places.push(Place {
                    cpu,
                    offset: self.bytes,
                    length: page.len() as u32,
                });
                file.write_all(page)?;
                self.bytes += page.len() as u64;
            }
        }
        Ok(())
    }

    /// Forgets pages that were read before a time.
    pub(super) fn forget_before(&mut self, time_ns: u64) {
        let Store::Ring(pages) = &mut self.store else {
            return;
        };
        while let Some(oldest) = pages.front()
            && oldest.time_ns < time_ns
        {
            self.bytes -= oldest.bytes.len() as u64;
            pages.pop_front();
        }
    }

    /// The same pages once more: those of a file are read by both.
    pub(super) fn duplicate(&self) -> io::Result<Pages> {
        let store = match &self.store {
            Store::Ring(pages) => Store::Ring(pages.clone()),
            Store::File(file, places) => Store::File(file.try_clone()?, places.clone()),
        };
        Ok(Pages { store, ..*self })
    }

    /// How many pages each CPU has.
    pub(super) fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0];
        let mut count = |cpu: u32| {
            let cpu = cpu as usize;
            if counts.len() <= cpu {
                counts.resize(cpu + 1, 0);
            }
            counts[cpu] += 1;
        };
        match &self.store {
            Store::Ring(pages) => pages.iter().for_each(|page| count(page.cpu)),
            Store::File(_, places) => places.iter().for_each(|place| count(place.cpu)),
        }
        counts
    }

    /// Writes the pages of one CPU in order, each filled up to `page_size` bytes.
    pub(super) fn write(&self, cpu: u32, page_size: usize, out: &mut dyn Write) -> io::Result<()> {
        let mut page = Vec::new();
        let mut put = |bytes: &mut Vec<u8>| {
            bytes.resize(page_size, 0);
            out.write_all(bytes)
        };
        match &self.store {
            Store::Ring(pages) => {
                for kept in pages.iter().filter(|page| page.cpu == cpu) {
                    page.clone_from(&kept.bytes);
                    put(&mut page)?;
                }
            }
            Store::File(file, places) => {
                for place in places.iter().filter(|place| place.cpu == cpu) {
                    page.resize(place.length as usize, 0);
                    file.read_exact_at(&mut page, place.offset)?;
                    put(&mut page)?;
                }
            }
        }
        Ok(())
    }
}

/// The part of a page that says something: head, events, and how many were lost before.
fn used(page: &[u8]) -> &[u8] {
    // `header_page` of every kernel: time, a long with the bytes of events in its low 20 bits, events.
    const HEAD: usize = 8 + size_of::<usize>();
    const COMMIT_BYTES: usize = (1 << 20) - 1;
    let commit = page.get(8..HEAD).and_then(|bytes| bytes.first_chunk());
    let commit = commit.map_or(0, |bytes| usize::from_ne_bytes(*bytes) & COMMIT_BYTES);
    &page[..(HEAD + commit + LOST_BYTES).min(page.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with so many bytes of events, each of them `fill`.
    fn page(fill: u8, commit: u32) -> Vec<u8> {
        let mut page = vec![0; 4096];
        page[8..16].copy_from_slice(&(commit as usize).to_ne_bytes());
        page[16..16 + commit as usize].fill(fill);
        page
    }

    fn written(pages: &Pages, cpu: u32) -> Vec<u8> {
        let mut out = Vec::new();
        pages.write(cpu, 4096, &mut out).expect("memory");
        out
    }

    #[test]
    fn both_stores_give_the_pages_of_a_cpu_in_order() {
        let file = tempfile::tempfile().expect("a file");
        for mut pages in [Pages::ring(), Pages::in_file(file)] {
            for (cpu, fill) in [(0, 1), (2, 2), (0, 3)] {
                pages.add(cpu, 7, &page(fill, 40)).expect("added");
            }
            assert_eq!(pages.counts(), [2, 0, 1]);
            assert_eq!(pages.bytes, 3 * (16 + 40 + 8));
            assert_eq!(written(&pages, 0), [page(1, 40), page(3, 40)].concat());
            assert!(written(&pages, 1).is_empty());
            let copy = pages.duplicate().expect("copied");
            assert_eq!(written(&copy, 2), page(2, 40));
        }
    }

    #[test]
    fn a_ring_keeps_the_last_ones_and_is_bounded() {
        let mut pages = Pages::ring();
        for time in 0..40_000u64 {
            pages.add(0, time, &page(1, 4000)).expect("added");
        }
        assert!(pages.full);
        assert!(pages.bytes <= RING_BYTES as u64);
        let kept = pages.counts()[0];
        assert_eq!(kept, RING_BYTES as u64 / 4024);
        pages.forget_before(39_999);
        assert_eq!((pages.counts(), pages.bytes), (vec![1], 4024));
    }

    #[test]
    fn a_length_that_cannot_be_is_cut() {
        assert_eq!(used(&page(1, 40)).len(), 64);
        let mut wrong = page(1, 40);
        wrong[8..16].fill(0xff);
        assert_eq!(used(&wrong).len(), 4096);
        assert_eq!(used(&[1, 2]).len(), 2);
    }
}
