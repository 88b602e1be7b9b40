//! Directories of a file system, as far as their blocks on the device matter.

use super::metadata::Block;

/// Names in a block of a directory: entries of 32 bytes, and blocks three quarters full as splitting leaves them.
const NAMES_PER_BLOCK: u64 = 100;

/// Which directory of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Folder {
    /// Which of those that begin apart it is: where the files in it should lie.
    pub(crate) number: u64,
    /// What tells it from directories of other sets; 0 for the root.
    pub(crate) key: u64,
}

/// A directory on the device.
#[derive(Debug)]
pub(super) struct Directory {
    /// The number of its inode.
    pub(super) ino: u64,
    blocks: Vec<Block>,
    names: u64,
}

impl Directory {
    /// An empty directory, with its first block.
    pub(super) fn new(ino: u64, block: Block) -> Directory {
        Directory {
            ino,
            blocks: vec![block],
            names: 0,
        }
    }

    /// The last of its blocks.
    pub(super) fn last(&self) -> Option<Block> {
        self.blocks.last().copied()
    }

    /// A name more. Whether that needs another block ([`Self::add_block`]).
    pub(super) fn add_name(&mut self) -> bool {
        self.names += 1;
        self.names > self.blocks.len() as u64 * NAMES_PER_BLOCK
    }

    pub(super) fn add_block(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The blocks through which a name is found: the index, if there is more than one block, and the block that has the name
    /// or would have it.
    pub(super) fn entry_blocks(&self, name: u64) -> Vec<Block> {
        match &self.blocks[..] {
            [] => Vec::new(),
            [only] => vec![*only],
            [index, leaves @ ..] => {
                // Multiplied by the golden ratio, of which the upper half is the hash.
                let hash = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                vec![*index, leaves[(hash % leaves.len() as u64) as usize]]
            }
        }
    }
}
