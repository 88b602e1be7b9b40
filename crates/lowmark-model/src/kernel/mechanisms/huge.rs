//! Huge pages of private memory.

macro_rules! huge {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Huge pages of private memory.
            huge: Huge {
                /// What a fault may do for a huge page, by `thp.defrag` (`alloc_hugepage_direct_gfpmask`,
                /// `vma_thp_gfp_mask`).
                thp_gfp: ThpGfp within huge_pages {
                    /// It reclaims and compacts by `always`, and by `madvise` in regions that asked for huge pages, but
                    /// gives up soon. kswapd is never woken.
                    NoRetry = "no-retry",
                    /// The same, with `defer`, which wakes kswapd and does nothing else.
                    Modes = "modes",
                    /// In regions that asked for huge pages a fault does not give up soon.
                    Madvised = "madvised",
                }
                /// From which node a huge page comes (`alloc_pages_vma`).
                thp_node: ThpNode within huge_pages {
                    /// From the first one that has a block, as any page does.
                    Any = "any",
                    /// From the task's own, or there is none.
                    Local = "local",
                    /// From the task's own without reclaim; then, if the fault may reclaim, from any.
                    LocalFirst = "local-first",
                }
                /// What becomes of a huge page of which a part is unmapped (`split_huge_page`).
                thp_split: ThpSplit within huge_pages {
                    /// It is split at once, and the part is free.
                    AtOnce = "at-once",
                    /// Its page table entry is split; the page waits on a list for a shrinker that splits it when memory is
                    /// short (`deferred_split_scan`).
                    Deferred = "deferred",
                    /// Every new huge page is on that list, and the shrinker also splits those that are hardly used
                    /// (`thp_underused`).
                    Underused = "underused",
                }
                /// How its entry in a page table is taken away while it is split (`__split_huge_pmd_locked`,
                /// `deferred_split_huge_page`).
                thp_unmap: ThpUnmap within huge_pages {
                    /// Page by page, so that the huge page counts as partly mapped for a moment.
                    Pages = "pages",
                    /// The same, unless it is in the swap cache.
                    SwapCacheSpared = "swap-cache-spared",
                    /// As a whole.
                    Whole = "whole",
                }
                /// What becomes of a huge page that is unmapped as a whole (`page_remove_anon_compound_rmap`).
                thp_zap: ThpZap within huge_pages {
                    /// It is freed.
                    Freed = "freed",
                    /// It goes on the list of those that wait to be split, counts as one of them, and is freed.
                    Queued = "queued",
                }
                /// In which order the pages of one that is split come to the LRU lists or to the reclaimer
                /// (`__split_huge_page`, `__split_unmapped_folio`).
                thp_tails: ThpTails within huge_pages {
                    /// As they lie in memory.
                    Ascending = "ascending",
                    /// The first one, then the others from the end.
                    Descending = "descending",
                }
                /// Whether khugepaged makes a huge page of pages none of which can be written.
                thp_read_only: ThpReadOnly within huge_pages {
                    /// No: one at least has to be writable.
                    Left = "left",
                    /// Yes.
                    Collapsed = "collapsed",
                }
                /// How a huge page is swapped out (`add_to_swap`).
                thp_swap: ThpSwap within huge_pages {
                    /// It is split before it gets slots.
                    Split = "split",
                    /// It gets a cluster of slots where there is a free one, and is split then.
                    Cluster = "cluster" needs(swap.swap_allocator = SwapAllocator::ClusterList | SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst),
                    /// It is written as it is where there is a free cluster of slots.
                    Whole = "whole" needs(swap.swap_allocator = SwapAllocator::ClusterList | SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst),
                }
                /// Which swap areas a huge page is swapped out to as it is (`get_swap_pages`).
                thp_swap_area: ThpSwapArea within huge_pages {
                    /// All that have clusters, files as well.
                    Any = "any",
                    /// Partitions: it is split before its pages go to a file.
                    Partition = "partition",
                }
                /// What a huge page counts for in `pgscan` and `pgsteal` (`isolate_lru_pages`).
                thp_scan: ThpScan within huge_pages {
                    /// One page.
                    One = "one",
                    /// The pages that it has.
                    Pages = "pages",
                }
                /// What a store to the huge page of zeroes gets (`do_huge_pmd_wp_page`).
                thp_zero: ThpZero within huge_pages {
                    /// There is no such page: what is read gets a huge page of its own.
                    None = "none",
                    /// A huge page.
                    Huge = "huge",
                    /// Its entry is split, and the store gets a page.
                    Page = "page",
                }
            }
        }
    };
}

pub(super) use huge;
