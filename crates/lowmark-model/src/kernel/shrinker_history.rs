//! The changes of shrinkers, and of the objects that shrinkers or their pages free, as in [`history`](super::history).

use super::change::{Change, v, v2_6};
use super::mechanisms::*;

/// Every change of the shrinkers, oldest first.
pub(super) const SHRINKERS: &[Change] = &[
    Change {
        name: "lazy-inode-lru",
        version: v2_6(37),
        commit: "9e38d86ff2d8",
        summary: "an inode that is used stays where it is on the list, and is marked; one whose pages the shrinker has dropped is freed when its turn comes again",
        effect: |m| {
            m.shrinker.first_use = FirstUse::Marks;
            m.shrinker.inode_pages = InodePages::Drop;
        },
    },
    Change {
        name: "wait-for-xfs-inodes",
        version: v2_6(39),
        commit: "a7b339f1b869",
        summary: "reclaim waits until inodes that XFS keeps are in the log and at their places",
        effect: |m| {
            m.shrinker.xfs_inodes = XfsInodes::Awaited;
        },
    },
    Change {
        name: "leave-slab-of-full-zones-alone",
        version: v(3, 0),
        commit: "d7868dae893c",
        summary: "kswapd calls the shrinkers only after a zone that it shrank",
        effect: |m| {
            m.shrinker.kswapd_slab = KswapdSlab::ShrunkZone;
        },
    },
    Change {
        name: "less-wind-up-of-shrinkers",
        version: v(3, 1),
        commit: "3567b59aa80a",
        summary: "a shrinker that could not work for a while does not empty its cache afterwards",
        effect: |m| {
            m.shrinker.slab_deferred = SlabDeferred::Half;
        },
    },
    Change {
        name: "shrinker-of-super-block",
        version: v(3, 1),
        commit: "b0d40c92adaf",
        summary: "each file system has a shrinker for its dentries and inodes, in batches of 1024 (8ab47664d51a)",
        effect: |m| {
            m.shrinker.vfs_shrinkers = VfsShrinkers::SuperBlock;
        },
    },
    Change {
        name: "cpu-partial-slabs",
        version: v(3, 2),
        commit: "49e2258586b4",
        summary: "a CPU sets a full slab aside when it frees an object of it",
        effect: |m| {
            m.blocks.cpu_slabs = CpuSlabs::Objects;
        },
    },
    Change {
        name: "credit-for-stolen-pages",
        version: v(3, 3),
        commit: "5f8aefd44b9d",
        summary: "pages that go with their inode count as reclaimed",
        effect: |m| {
            m.shrinker.inode_credit = InodeCredit::Counted;
        },
    },
    Change {
        name: "shrinkers-by-node",
        version: v(3, 12),
        commit: "9b17c62382dd",
        summary: "dentries and inodes of each node are shrunk apart, and what was put off is counted for each (1d3d4437eae1)",
        effect: |m| {
            m.shrinker.vfs_shrinkers = VfsShrinkers::Node;
        },
    },
    Change {
        name: "scan-small-slabs-whole",
        version: v(3, 15),
        commit: "0b1fb40a3b12",
        summary: "a cache smaller than a batch is scanned when all of it is due",
        effect: |m| {
            m.shrinker.slab_batch = SlabBatch::Rest;
        },
    },
    Change {
        name: "shadow-shrinker",
        version: v(3, 15),
        commit: "449dd6984d0e",
        summary: "nodes of trees with shadows alone are dropped when there are too many",
        effect: |m| {
            m.shrinker.shadow_nodes = ShadowNodes::NodePages;
        },
    },
    Change {
        name: "xfs-page-cache-nofs",
        version: v(3, 15),
        commit: "ad22c7a043c2",
        summary: "an allocation of page cache for a file on XFS calls no shrinkers of file systems",
        effect: |m| {
            m.files.page_cache_gfp = PageCacheGfp::XfsNoFs;
        },
    },
    Change {
        name: "slab-in-shrink-zone",
        version: v(3, 19),
        commit: "6b4f7799c6a5",
        summary: "slab is shrunk within the pass over a zone",
        effect: |m| {
            m.shrinker.slab_caller = SlabCaller::InPass;
        },
    },
    Change {
        name: "one-of-each-type",
        version: v(4, 0),
        commit: "49e7e7ff8d9e",
        summary: "a call for a file system looks at one dentry and one inode at least",
        effect: |m| {
            m.shrinker.super_scan = SuperScan::OneMore;
        },
    },
    Change {
        name: "keep-clipped-deferral",
        version: v(4, 10),
        commit: "5f33a0803bbd",
        summary: "what a call may not scan at once is remembered",
        effect: |m| {
            m.shrinker.slab_deferred = SlabDeferred::Kept;
        },
    },
    Change {
        name: "larger-shadow-limit",
        version: v(4, 10),
        commit: "b53889543200",
        summary: "one node of shadows is kept for eight pages of files",
        effect: |m| {
            m.shrinker.shadow_nodes = ShadowNodes::FilePages;
        },
    },
    Change {
        name: "single-use-objects",
        version: v(4, 12),
        commit: "563f4001dbe8",
        summary: "a dentry or an inode that was used once is freed when the shrinker comes to it for the first time",
        effect: |m| {
            m.shrinker.first_use = FirstUse::Lists;
        },
    },
    Change {
        name: "slab-by-priority",
        version: v(4, 16),
        commit: "9092c71bb724",
        summary: "the priority says how much of a cache is scanned, not what was scanned of the LRU lists",
        effect: |m| {
            m.shrinker.slab_pressure = SlabPressure::Priority;
        },
    },
    Change {
        name: "invert-xfs-isolate",
        version: v(4, 17),
        commit: "19957a181608",
        summary: "XFS's shrinker spares the buffers that it is to spare, not the others",
        effect: |m| {
            m.shrinker.xfs_isolate = XfsIsolate::Unspared;
        },
    },
    Change {
        name: "scan-small-slabs-slowly",
        version: v(4, 19),
        commit: "172b06c32b94",
        summary: "of a small cache a batch is due with every call",
        effect: |m| {
            m.shrinker.slab_least = SlabLeast::Batch;
        },
    },
    Change {
        name: "xfs-iomap",
        version: v(4, 19),
        commit: "82cb14175e7d",
        summary: "pages of XFS have no buffer heads",
        effect: |m| {
            m.files.xfs_buffers = XfsBuffers::Iomap;
        },
    },
    Change {
        name: "shadows-for-all-memory",
        version: v(4, 20),
        commit: "95f9ab2d596e",
        summary: "nodes of shadows are kept by all LRU lists and slabs",
        effect: |m| {
            m.shrinker.shadow_nodes = ShadowNodes::LruPages;
        },
    },
    Change {
        name: "zero-seek-shadows",
        version: v(4, 20),
        commit: "4b85afbdacd2",
        summary: "half of the nodes of shadows that are too many goes with every call",
        effect: |m| {
            m.shrinker.shadow_seeks = ShadowSeeks::Zero;
        },
    },
    Change {
        name: "rotate-inodes-with-pages",
        version: v(4, 20),
        commit: "a76cf1a474d7",
        summary: "inodes with more than one page are spared",
        effect: |m| {
            m.shrinker.inode_pages = InodePages::Rotate;
        },
    },
    Change {
        name: "page-cache-xarray",
        version: v(4, 20),
        commit: "74d609585d8b",
        summary: "no nodes of trees are kept for pages that are added to files",
        effect: |m| {
            m.files.tree_nodes = TreeNodes::AsNeeded;
        },
    },
    Change {
        name: "do-not-scan-small-slabs-slowly",
        version: v(5, 0),
        commit: "a9a238e83fbb",
        summary: "small caches are scanned as others are again",
        effect: |m| {
            m.shrinker.slab_least = SlabLeast::None;
        },
    },
    Change {
        name: "do-not-rotate-inodes",
        version: v(5, 0),
        commit: "69056ee6a8a3",
        summary: "inodes with pages lose these again",
        effect: |m| {
            m.shrinker.inode_pages = InodePages::Drop;
        },
    },
    Change {
        name: "readahead-nofs",
        version: v(5, 8),
        commit: "f2c817bed58d",
        summary: "readahead calls no shrinkers of file systems",
        effect: |m| {
            m.files.page_cache_gfp = PageCacheGfp::ReadaheadNoFs;
        },
    },
    Change {
        name: "push-xfs-inodes",
        version: v(5, 9),
        commit: "4d0bab3a4468",
        summary: "reclaim leaves inodes of XFS that have changed, and has them written (298f7bec503f)",
        effect: |m| {
            m.shrinker.xfs_inodes = XfsInodes::Pushed;
        },
    },
    Change {
        name: "deferral-by-priority",
        version: v(5, 13),
        commit: "18bb473e5031",
        summary: "of what was put off a call does the part that its priority says",
        effect: |m| {
            m.shrinker.slab_deferred = SlabDeferred::Priority;
        },
    },
    Change {
        name: "count-stolen-shadows",
        version: v(5, 15),
        commit: "7ae12c809f6a",
        summary: "shadows that go with their inode are counted as stolen pages, and drop_caches finds them",
        effect: |m| {
            m.shrinker.inode_shadows = InodeShadows::Counted;
        },
    },
    Change {
        name: "drop-slab-ends",
        version: v(5, 15),
        commit: "1399af7e5489",
        summary: "dropping slabs goes on only while the rounds free more and more",
        effect: |m| {
            m.shrinker.drop_rounds = DropRounds::Doubling;
        },
    },
    Change {
        name: "inodes-with-pages-off-list",
        version: v(5, 16),
        commit: "51b8c1fe250d",
        summary: "inodes with pages stay off the list of unused ones",
        effect: |m| {
            m.shrinker.inode_pages = InodePages::OffList;
        },
    },
    Change {
        name: "cpu-partial-in-slabs",
        version: v(5, 16),
        commit: "b47291ef02b0",
        summary: "CPUs limit the number of slabs that they set aside, not that of free objects in them",
        effect: |m| {
            m.blocks.cpu_slabs = CpuSlabs::Slabs;
        },
    },
    Change {
        name: "groups-get-no-slab-credit",
        version: v(6, 4),
        commit: "583c27a167c2",
        summary: "what shrinkers free does not count as reclaimed for a memory cgroup at its limit",
        effect: |m| {
            m.memcg.group_slab_credit = GroupSlabCredit::None;
        },
    },
    Change {
        name: "free-inode-at-once",
        version: v(6, 11),
        commit: "2a0629834cd8",
        summary: "an inode that has lost its last shadow is freed at once",
        effect: |m| {
            m.shrinker.inode_pages = InodePages::OffListAndFree;
        },
    },
];
