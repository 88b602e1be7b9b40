//! Numbers of things, each with a type of its own, so that the number of a node is never taken for that of a list.
//!
//! A table that is indexed by one of them is a [`TiVec`](typed_index_collections::TiVec) of it.

macro_rules! ids {
    ($( $(#[doc = $doc:literal])* $name:ident )*) => { $(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(u32);

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name {
                debug_assert!(index <= u32::MAX as usize, "tables are shorter");
                $name(index as u32)
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> usize {
                id.0 as usize
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> u32 {
                id.0
            }
        }

        impl From<$name> for u64 {
            #[inline]
            fn from(id: $name) -> u64 {
                u64::from(id.0)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

ids! {
    /// A node, in `Mm::nodes`.
    NodeId
    /// A zone of any node, in `Mm::zones`.
    ZoneId
    /// A set of LRU lists, in `Mm::lruvecs`.
    LruvecId
    /// A device, or a memory cgroup's part of it, as writeback sees it (`struct bdi_writeback`), in `Mm::bdis`.
    WbId
    /// A device of the machine, by its place in the machine's file; a striped one has several queues.
    DeviceId
    /// A request queue of any device, in `BlockLayer::queues`.
    QueueId
    /// A file, in `Mm::inodes`; numbers are not used again.
    InodeId
}

impl NodeId {
    /// The node that has all memory where there is only one.
    pub(crate) const FIRST: NodeId = NodeId(0);
}

impl ZoneId {
    /// The lowest zone of the first node.
    pub(crate) const FIRST: ZoneId = ZoneId(0);
}

impl DeviceId {
    /// The first device of the machine's file.
    pub(crate) const FIRST: DeviceId = DeviceId(0);
}
