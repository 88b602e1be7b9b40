//! The blocks of metadata that a transaction holds, and how kjournald writes them to the journal.

use crate::device::{Dir, Io};
use crate::fs::metadata::Block;
use crate::ids::InodeId;
use crate::mm::files::buffer::getblk;
use crate::mm::io;
use crate::mm::types::{OutOfMemory, Pfn, flag};
use crate::world::{Sys, World};
use lowmark_spec::machine::PAGE_SIZE;
use std::ops::Range;

/// Blocks that a descriptor block of the journal tells the places of: tags of 8 bytes.
const TAGS: usize = PAGE_SIZE as usize / 8;

/// The blocks of a journal, which are written one after the other and once round.
#[derive(Debug)]
pub(super) struct Log {
    /// Where they lie; none is empty.
    runs: Vec<Range<Block>>,
    /// The next to be written (`j_head`): the run, and how far into it.
    head: (usize, Block),
}

impl Log {
    pub(super) fn new(runs: Vec<Range<Block>>) -> Log {
        Log { runs, head: (0, 0) }
    }

    /// `journal_next_log_block`; none if the file system is too small for a journal.
    fn next(&mut self) -> Option<Block> {
        let (number, offset) = self.head;
        let run = self.runs.get(number)?;
        self.head = if run.start + offset + 1 < run.end {
            (number, offset + 1)
        } else {
            ((number + 1) % self.runs.len(), 0)
        };
        Some(run.start + offset)
    }
}

impl World {
    /// `journal_dirty_metadata`: a block, which is in memory, has changed in the running transaction; it begins now if there is
    /// none. A flusher that comes to the block afterwards finds nothing to write, as the journal has it.
    pub(crate) fn journal_dirty_metadata(&mut self, fs: usize, block: Block) {
        let Some(device) = self.block_device(fs) else {
            return;
        };
        self.begin_transaction(fs);
        let file = &mut self.mm.inodes[device];
        if let Some(buffers) = &mut file.buffers
            && buffers.running.insert(block)
            && let Some(pfn) = file.pages.page(block)
            && self.mm.pages[pfn].has(flag::DIRTY)
        {
            self.mm.pages[pfn].set(flag::BUFFERS_CLEAN);
        }
    }

    /// The metadata of the transaction that has just ended is committed from now on.
    pub(super) fn take_metadata(&mut self, fs: usize) {
        if let Some(device) = self.block_device(fs)
            && let Some(buffers) = &mut self.mm.inodes[device].buffers
        {
            buffers.committing = std::mem::take(&mut buffers.running);
        }
    }

    /// The next block of the journal.
    fn next_log_block(&mut self, fs: usize) -> Option<Block> {
        let journal = self.mounts.get(fs).journal.as_mut()?;
        journal.log.as_mut()?.next()
    }

    /// The write of a page into a block of the journal.
    fn log_write(&mut self, device: InodeId, pfn: Pfn, at: Block) -> Io {
        self.mm.pages[pfn].set(flag::BUFFERS_LOCKED);
        self.mm.stat.pgpgout += PAGE_SIZE / 1024;
        Io {
            device: self.mm.inodes[device].device,
            dir: Dir::Write,
            sync: true,
            position: at.into(),
            pfn,
            in_folio: false,
            own_bio: false,
            needs_bio: false,
        }
    }

    /// A block is committed: a flusher is to write it to its place, unless the running transaction has changed it again
    /// (`__journal_refile_buffer`).
    fn end_commit_of(&mut self, device: InodeId, block: Block) -> u64 {
        if let Some(buffers) = &mut self.mm.inodes[device].buffers {
            buffers.committing.remove(&block);
        }
        if self.mm.is_in_transaction(device, block) {
            return 0;
        }
        let pfn = self.mm.inodes[device].pages.page(block);
        pfn.and_then(|pfn| self.set_page_dirty(pfn)).unwrap_or(0)
    }
}

/// Writes the metadata of the transaction that is being committed.
pub(super) async fn write_metadata(sys: &Sys, fs: usize) {
    let (device, blocks) = {
        let world = &mut *sys.world();
        let Some(device) = world.block_device(fs) else {
            return;
        };
        let buffers = world.mm.inodes[device].buffers.iter();
        let committing = buffers.flat_map(|buffers| buffers.committing.iter().copied());
        (device, committing.collect::<Vec<Block>>())
    };
    let mut written = Vec::new();
    sys.start_plug();
    for blocks in blocks.chunks(TAGS) {
        written.extend(write_own(sys, fs, device).await);
        for &block in blocks {
            let page = sys.world().mm.inodes[device].pages.page(block);
            let at = sys.world().next_log_block(fs);
            if let Some((pfn, at)) = page.zip(at) {
                write_block(sys, device, pfn, at).await;
                written.push(pfn);
            }
        }
    }
    sys.finish_plug();
    wait_for(sys, &written).await;
    if !blocks.is_empty() {
        let record = write_own(sys, fs, device).await;
        wait_for(sys, record.as_slice()).await;
    }
    let mut cost = 0;
    for block in blocks {
        cost += sys.world().end_commit_of(device, block);
    }
    sys.charge_kernel(cost).await;
}

/// Writes a block of the journal's own, a descriptor or a commit record; none if memory has run out, with which the run is over.
async fn write_own(sys: &Sys, fs: usize, device: InodeId) -> Option<Pfn> {
    let at = sys.world().next_log_block(fs)?;
    let pfn: Result<Pfn, OutOfMemory> = getblk(sys, device, at).await;
    let pfn = pfn.ok()?;
    write_block(sys, device, pfn, at).await;
    Some(pfn)
}

async fn write_block(sys: &Sys, device: InodeId, pfn: Pfn, at: Block) {
    let io = sys.world().log_write(device, pfn, at);
    io::submit(sys, io).await;
    sys.charge_kernel(sys.costs.file_page_ns).await;
}

async fn wait_for(sys: &Sys, pages: &[Pfn]) {
    for &pfn in pages {
        loop {
            let busy = sys.world().mm.pages[pfn].has(flag::BUFFERS_LOCKED);
            if !busy {
                break;
            }
            io::wait_on_page(sys, pfn, flag::BUFFERS_LOCKED).await;
        }
    }
}
