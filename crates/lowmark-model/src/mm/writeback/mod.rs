//! Dirty pages: limits and throttling of writers, and the flushers.

pub(crate) mod backing_dev;
pub(crate) mod fs_writeback;
pub(crate) mod page_writeback;
