//! Memory that drivers of virtio disks need for requests under way (`drivers/block/virtio_blk.c`,
//! `drivers/virtio/virtio_ring.c`).
//!
//! 1. The pages of a request are listed (`virtblk_map_data`): two of them in the request itself, more in chunks of up
//!    to 128 pieces, of which the last one leads to the next chunk.
//! 2. What the device reads is a table with a descriptor for each stretch of memory, one for the header and one for the
//!    status (`alloc_indirect_split`). Pages that lie side by side are one stretch.
//! 3. All of it is asked for without waiting, and given back when the request is done.
//!
//! Where there is no memory, a request goes without, as those do for which the kernel keeps two lists or which find
//! descriptors in the ring. Of a large folio each page is taken to be a piece, up to as many as a request can have.

use super::request::{Request, RequestId};
use crate::ids::QueueId;
use crate::kernel::{Kernel, VirtioMemory};
use crate::mm::alloc::slub::{Cache, NO_OBJECT};
use crate::mm::alloc::xarray::Object;
use crate::mm::types::{Pfn, Reserves};
use crate::world::World;
use lowmark_spec::machine::{Device, Driver};

/// Objects of a request, as they were allocated.
#[derive(Debug, Default)]
pub(crate) struct Tables(Vec<(Cache, Object)>);

impl Tables {
    /// How many objects of a kind there is memory for.
    pub(crate) fn count(&self, cache: Cache) -> u64 {
        let alike = |&&(kind, object): &&(Cache, Object)| kind == cache && object != NO_OBJECT;
        self.0.iter().filter(alike).count() as u64
    }
}

/// How much memory a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Virtio {
    memory: VirtioMemory,
    max_segments: u64,
}

/// `VIRTIO_BLK_INLINE_SG_CNT`, `SG_CHUNK_SIZE`
const INLINE_PIECES: u64 = 2;
const CHUNK_PIECES: u64 = 128;
/// `sizeof(struct vring_desc)`, `sizeof(struct vring_desc_extra)`
const DESCRIPTOR: u64 = 16;
const EXTRA: u64 = 16;

impl Virtio {
    /// None: the driver is another one, or what it needs is left out.
    pub(super) fn new(device: &Device, kernel: &Kernel) -> Option<Virtio> {
        let virtio = device.driver == Some(Driver::VirtioBlk);
        (virtio && kernel.coverage.virtio_memory).then_some(Virtio {
            memory: kernel.mechanisms.zones.virtio_memory,
            max_segments: u64::from(device.max_segments),
        })
    }

    /// The chunks of the list of so many pieces (`sg_alloc_table_chained`).
    fn chunks(self, pieces: u64) -> impl Iterator<Item = Cache> {
        let chained = !matches!(self.memory, VirtioMemory::Descriptors) && pieces > INLINE_PIECES;
        let mut left = if chained {
            pieces - (INLINE_PIECES - 1)
        } else {
            0
        };
        std::iter::from_fn(move || {
            let chunk = left.min(CHUNK_PIECES);
            left -= if left > CHUNK_PIECES {
                chunk - 1
            } else {
                chunk
            };
            (chunk > 0).then(|| Cache::scatterlist(chunk))
        })
    }

    /// The table of so many stretches.
    fn table(self, stretches: u64) -> Cache {
        let extra = match self.memory {
            VirtioMemory::Extras => EXTRA,
            _ => 0,
        };
        Cache::kmalloc((stretches + 2) * (DESCRIPTOR + extra))
    }
}

/// Stretches of memory that pages are (`blk_rq_map_sg`).
fn stretches(pages: &[Pfn]) -> u64 {
    let breaks = pages.windows(2).filter(|pair| pair[0] + 1 != pair[1]);
    1 + breaks.count() as u64
}

impl World {
    /// Drivers get memory for the requests that their devices have just taken.
    #[inline]
    pub(crate) fn map_requests(&mut self) {
        if self.mm.slub.is_of_drivers() {
            self.map_taken();
        }
    }

    #[inline(never)]
    fn map_taken(&mut self) {
        for (queue, id) in self.block.take_unmapped() {
            self.map_request(queue, id);
        }
    }

    /// `virtblk_prep_rq`, `virtblk_add_req`
    fn map_request(&mut self, queue: QueueId, id: RequestId) {
        let Some((virtio, Request { pages, .. })) = self.block.driven(queue, id) else {
            return;
        };
        let Some(&first) = pages.first() else {
            return;
        };
        let most = |pieces: u64| pieces.min(virtio.max_segments);
        let (pieces, stretches) = (most(pages.len() as u64), most(stretches(pages)));
        let node = self.mm.node_of(first);
        let lists = virtio.chunks(pieces).map(|list| (list, Reserves::High));
        let tables = lists.chain([(virtio.table(stretches), Reserves::Atomic)]);
        for (cache, reserves) in tables {
            let object = self.alloc_object(cache, node, reserves);
            self.block.tables(queue, id).0.push((cache, object));
        }
    }

    /// `detach_buf_split`, `virtblk_unmap_data`: a request is done.
    #[inline]
    pub(crate) fn unmap_request(&mut self, queue: QueueId, id: RequestId) {
        if !self.mm.slub.is_of_drivers() {
            return;
        }
        let mut tables = std::mem::take(self.block.tables(queue, id));
        while let Some((cache, object)) = tables.0.pop() {
            self.mm.free_object(cache, object);
        }
        *self.block.tables(queue, id) = tables;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtio(memory: VirtioMemory) -> Virtio {
        Virtio {
            memory,
            max_segments: 254,
        }
    }

    /// What `kmem_cache_alloc` and `kmalloc` traced in a guest of 6.18: 235 pages in five stretches, and 26 in one.
    #[test]
    fn requests_take_what_guests_trace() {
        let extras = virtio(VirtioMemory::Extras);
        let chunk = Cache::ScatterList(7);
        let lists = |pieces| extras.chunks(pieces).collect::<Vec<Cache>>();
        assert_eq!(lists(235), [chunk, chunk]);
        assert_eq!(extras.table(5), Cache::kmalloc(256));
        assert_eq!(lists(26), [Cache::ScatterList(5)]);
        assert_eq!(extras.table(1), Cache::kmalloc(96));
        assert_eq!(lists(162), [chunk, Cache::ScatterList(6)]);
        assert_eq!(lists(2), []);
        assert_eq!(
            (lists(3), lists(129)),
            (vec![Cache::ScatterList(3)], vec![chunk])
        );
        assert_eq!(lists(130), [chunk, Cache::ScatterList(3)]);
        assert_eq!(extras.table(254), Cache::kmalloc(8192));
    }

    #[test]
    fn older_kernels_take_less() {
        let chunks = virtio(VirtioMemory::Chunks);
        assert_eq!(chunks.table(254), Cache::kmalloc(4096));
        assert_eq!(chunks.chunks(254).count(), 2);
        assert_eq!(virtio(VirtioMemory::Descriptors).chunks(254).count(), 0);
    }

    #[test]
    fn neighbours_in_memory_are_one_stretch() {
        assert_eq!(stretches(&[7, 8, 9, 11, 10, 12]), 4);
    }
}
