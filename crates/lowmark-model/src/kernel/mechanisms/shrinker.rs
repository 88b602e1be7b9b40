//! Shrinkers: how much of a cache is scanned, by whom, and what becomes of dentries and inodes.

macro_rules! shrinker {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Shrinkers: how much of a cache is scanned, by whom, and what becomes of dentries and inodes.
            shrinker: Shrinkers {
                /// What part of a cache one call of its shrinker is to scan (`do_shrink_slab`).
                slab_pressure: SlabPressure within shrinkers {
                    /// The part of the LRU pages that was scanned, four times divided by the cost of an object.
                    Scanned = "scanned",
                    /// What the priority says, four times divided by the cost of an object.
                    Priority = "priority",
                }
                /// What becomes of objects that were to be scanned and were not (`nr_deferred`, to 3.11 `nr`).
                slab_deferred: SlabDeferred within shrinkers {
                    /// All of them are due with the next call; twice the cache at most.
                    All = "all",
                    /// A call whose own part is small scans half of the cache at most, and forgets the rest.
                    Half = "half",
                    /// The same, but the rest is remembered.
                    Kept = "kept",
                    /// Of what was put off a call does the part that its priority says.
                    Priority = "priority",
                }
                /// Whether a call scans less than a batch.
                slab_batch: SlabBatch within shrinkers {
                    /// It does not.
                    Whole = "whole",
                    /// It does if it is to scan no less than there is.
                    Rest = "rest",
                }
                /// What a call is to scan at least (`do_shrink_slab`).
                slab_least: SlabLeast within shrinkers {
                    /// Nothing.
                    None = "none",
                    /// A batch, or all that there is: 4.19 and 4.20 alone.
                    Batch = "batch",
                }
                /// When a reclaimer calls the shrinkers (`shrink_slab`).
                slab_caller: SlabCaller within shrinkers {
                    /// Direct reclaim after all zones of a priority, kswapd after each zone.
                    AfterZones = "after-zones",
                    /// As a part of the pass over the highest zone that the allocation could use, or over the node
                    /// (`shrink_zone`, `shrink_node`).
                    InPass = "in-pass",
                }
                /// Whether kswapd calls the shrinkers after a zone that it left alone (`balance_pgdat`).
                kswapd_slab: KswapdSlab within shrinkers {
                    /// It does.
                    EveryZone = "every-zone",
                    /// It does not.
                    ShrunkZone = "shrunk-zone",
                }
                /// What a shrinker of dentries and inodes goes through.
                vfs_shrinkers: VfsShrinkers within shrinkers {
                    /// The dentries of all file systems, and apart from them all inodes (`shrink_dcache_memory`,
                    /// `shrink_icache_memory`).
                    Global = "global",
                    /// Dentries and inodes of one file system, in proportion (`prune_super`).
                    SuperBlock = "super-block",
                    /// Those of one file system that lie on one node (`super_cache_scan`).
                    Node = "node",
                }
                /// What becomes of a dentry or an inode when its last user lets go of it (`dput`, `iput_final`).
                first_use: FirstUse within shrinkers {
                    /// A dentry is marked as referenced, so that the shrinker goes past it once. An inode is put at the end of the
                    /// list to which the shrinker comes last, wherever it was.
                    Moves = "moves",
                    /// Both are marked, and stay where they are if they are on the list.
                    Marks = "marks",
                    /// Both are put on the list without a mark, which they get if they are used once more.
                    Lists = "lists",
                }
                /// Whether a call for a file system may leave its dentries or its inodes alone (`super_cache_scan`).
                super_scan: SuperScan within shrinkers {
                    /// If their part is less than one.
                    Share = "share",
                    /// It may not: it looks at one more of each.
                    OneMore = "one-more",
                }
                /// What reclaim does with inodes that XFS keeps and that have changed (`xfs_reclaim_inodes_nr`).
                xfs_inodes: XfsInodes within shrinkers {
                    /// They are to be written, and reclaim leaves them.
                    Queued = "queued",
                    /// Reclaim waits until the log has them and their clusters are written.
                    Awaited = "awaited",
                    /// As before, and their clusters stay in memory for that.
                    Pushed = "pushed",
                }
                /// Which buffers the shrinker of XFS takes off its list (`xfs_buftarg_isolate`); of the others it goes past the oldest.
                /// Each time it spares a buffer once less.
                xfs_isolate: XfsIsolate within shrinkers {
                    /// Those that it is to spare: they go back if it is to spare them even then.
                    Spared = "spared",
                    /// Those that it is to spare no more.
                    Unspared = "unspared",
                }
                /// What the shrinker does with an unused inode that has pages (`inode_lru_isolate`).
                inode_pages: InodePages within shrinkers {
                    /// It drops the pages, and frees the inode if it is the oldest still.
                    DropAndFree = "drop-and-free",
                    /// It drops the pages, by which the inode counts as used: it goes when its turn comes again.
                    Drop = "drop",
                    /// An inode with more than one page gets another round: 4.20 alone.
                    Rotate = "rotate",
                    /// No inode with pages is on the list; it comes there when its last page has gone
                    /// (`mapping_shrinkable`).
                    OffList = "off-list",
                    /// The same; of a single shadow that it had it is rid at once, and goes.
                    OffListAndFree = "off-list-and-free",
                }
                /// Whether the pages that went with an inode count as reclaimed (`reclaim_state`).
                inode_credit: InodeCredit within shrinkers {
                    /// They do not.
                    None = "none",
                    /// They do.
                    Counted = "counted",
                }
                /// Whether shadows that go with an inode count as stolen pages (`invalidate_mapping_pages`), and whether
                /// `drop_caches` comes to inodes that have nothing else.
                inode_shadows: InodeShadows within shrinkers {
                    /// No.
                    Ignored = "ignored",
                    /// Yes.
                    Counted = "counted",
                }
                /// When dropping slabs is over (`drop_slab_node`).
                drop_rounds: DropRounds within shrinkers {
                    /// When a round frees ten objects or less.
                    Ten = "ten",
                    /// When a round frees less than two to the power of its number plus one; the first is 0.
                    Doubling = "doubling",
                }
                /// How many nodes of trees with shadows alone are kept (`count_shadow_nodes`).
                shadow_nodes: ShadowNodes within shrinkers {
                    /// All of them.
                    All = "all",
                    /// One for sixteen pages of the node.
                    NodePages = "node-pages",
                    /// One for eight pages of files on LRU lists.
                    FilePages = "file-pages",
                    /// One for eight pages on LRU lists and in slabs.
                    LruPages = "lru-pages",
                }
                /// What it costs to make a shadow's node again (`seeks`).
                shadow_seeks: ShadowSeeks within shrinkers {
                    /// As much as a dentry or an inode.
                    Default = "default",
                    /// Nothing: half of what is too much goes with every call.
                    Zero = "zero",
                }
            }
        }
    };
}

pub(super) use shrinker;
