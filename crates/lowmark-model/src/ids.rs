//! Numbers of things, each with a type of its own, so that the number of a node is never taken for that of a list.
//! How wide a number is stands behind its name.
//!
//! A table that is indexed by one of them is a [`TiVec`](typed_index_collections::TiVec) of it.

macro_rules! ids {
    ($( $(#[doc = $doc:literal])* $name:ident($width:ident) )*) => { $(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name($width);

        impl From<usize> for $name {
            #[inline]
            fn from(index: usize) -> $name {
                debug_assert!(index <= $width::MAX as usize, "tables are shorter");
                $name(index as $width)
            }
        }

        impl From<$name> for usize {
            #[inline]
            fn from(id: $name) -> usize {
                id.0 as usize
            }
        }

        impl From<$name> for $width {
            #[inline]
            fn from(id: $name) -> $width {
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
    NodeId(u32)
    /// A zone of any node, in `Mm::zones`.
    ZoneId(u32)
    /// A set of LRU lists, in `Mm::lruvecs`.
    LruvecId(u32)
    /// A device, or a memory cgroup's part of it, as writeback sees it (`struct bdi_writeback`), in `Mm::bdis`.
    WbId(u32)
    /// A device of the machine, by its place in the machine's file; a striped one has several queues.
    DeviceId(u32)
    /// A request queue of any device, in `BlockLayer::queues`.
    QueueId(u32)
    /// A file, in `Mm::inodes`; numbers are not used again.
    InodeId(u32)
    /// A name that a file of the workload has or gets, in `Shrinkers::dentries`.
    NameId(u32)
    /// A memory cgroup, in `Memcontrol::groups`: one byte, as every frame and every swap slot has one.
    MemcgId(u8)
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

impl MemcgId {
    /// The group of all that are in no other: it is charged nothing.
    pub(crate) const ROOT: MemcgId = MemcgId(0);
}
