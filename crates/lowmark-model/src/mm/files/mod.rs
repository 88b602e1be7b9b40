//! Files in memory: inodes, the page cache, read(2) and write(2), readahead, truncation.

pub(crate) mod buffer;
pub(crate) mod buffer_head;
pub(crate) mod errseq;
pub(crate) mod filemap;
pub(crate) mod filemap_write;
pub(crate) mod inode;
pub(crate) mod page_tree;
pub(crate) mod readahead;
pub(crate) mod truncate;
