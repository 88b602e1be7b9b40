//! Files: readahead, faults around a page, allocation ahead of writes.

macro_rules! files {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Files: readahead, faults around a page, allocation ahead of writes.
            files: Files {
                /// How much XFS allocates behind the end of a file that grows (`xfs_iomap_prealloc_size`).
                xfs_ahead: XfsAhead {
                    /// 64 KiB (before 055388a3188f, 2.6.38).
                    Fixed = "fixed",
                    /// As much again as the file has, to 8 GiB.
                    FileSize = "file-size",
                }
                /// What XFS does with a dirty page that reclaim wants written (`xfs_vm_writepage`).
                xfs_writepage: XfsWritepage {
                    /// It writes for kswapd, and leaves the page dirty for tasks.
                    Kswapd = "kswapd",
                    /// Nothing: there is no such function.
                    None = "none",
                }
                /// What ext4 does with a dirty page that reclaim wants written (`ext4_writepage`).
                ext4_writepage: Ext4Writepage {
                    /// It writes a page that has blocks, and leaves one dirty that waits for them (delayed allocation).
                    Allocated = "allocated",
                    /// Nothing: there is no such function.
                    None = "none",
                }
                /// How far ahead a file is read at most (`blk_apply_bdi_limits`).
                readahead_size: ReadaheadSize {
                    /// 128 KiB.
                    Fixed = "128k",
                    /// On rotating disks, as which virtio disks count, two requests of the largest size, 8 MiB.
                    TwoRequests = "two-requests",
                }
                /// How much of a file one call reads that asks for it ahead (`force_page_cache_readahead`).
                forced_readahead: ForcedReadahead {
                    /// Half of the pages that are free or inactive on the node (`max_sane_readahead`).
                    HalfOfNode = "half-of-node",
                    /// 2 MiB.
                    TwoMiB = "2m",
                    /// As much as is read ahead at most.
                    ReadaheadSize = "readahead-size",
                    /// The same, or as much as a request takes if that is more.
                    RequestSize = "request-size",
                }
                /// How far a read reaches at once that wants more pages than are read ahead (`ondemand_readahead`).
                long_reads: LongReads {
                    /// As far as is read ahead.
                    ReadaheadSize = "readahead-size",
                    /// As far as it wants, or as a request does if that is less.
                    RequestSize = "request-size",
                }
                /// What is read with a window whose first page has the mark that asks for the next one (`ondemand_readahead`).
                own_mark: OwnMark {
                    /// The next one as well.
                    NextWindow = "next-window",
                    /// The next one if both are not longer than a window may be; or else the mark is in the middle.
                    WithinWindow = "within-window",
                }
                /// Which pages before a miss are taken for a stream (`try_context_readahead`).
                context_readahead: ContextReadahead {
                    /// Any.
                    AnyPage = "any-page",
                    /// More than are wanted; the window is then no longer than what is there.
                    MoreThanWanted = "more-than-wanted",
                }
                /// Which allocations of page cache lack `__GFP_FS`, so that their reclaim calls no shrinkers of file systems.
                page_cache_gfp: PageCacheGfp {
                    /// None.
                    Mapping = "mapping",
                    /// Those for files on XFS (`xfs_setup_inode`).
                    XfsNoFs = "xfs-nofs",
                    /// Those for files on XFS, and those of readahead (`page_cache_ra_unbounded`).
                    ReadaheadNoFs = "readahead-nofs",
                }
                /// Who allocates the nodes of the tree in which a file finds its pages.
                tree_nodes: TreeNodes within slab_pages {
                    /// Whoever adds a page first fills a store of its CPU, and may wait for memory (`radix_tree_preload`).
                    Preloaded = "preloaded",
                    /// Whoever adds a page takes them without waiting (`xas_store`, `xas_nomem`).
                    AsNeeded = "as-needed",
                }
                /// What XFS has of each block of a page that is written, where a block is as large as a page.
                xfs_buffers: XfsBuffers within buffer_heads {
                    /// A buffer head.
                    Heads = "heads",
                    /// Nothing (`iomap`).
                    Iomap = "iomap",
                }
                /// Whether a read fault on a file maps the pages around it (`do_fault_around`).
                fault_around: FaultAround {
                    /// Its own page only.
                    Off = "off",
                    /// Sixteen, if they are in memory.
                    On = "on",
                }
            }
        }
    };
}

pub(super) use files;
