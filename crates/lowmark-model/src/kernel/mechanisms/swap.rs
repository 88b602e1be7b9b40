//! Swap: slots, and what is read with a page.

macro_rules! swap {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Swap: slots, and what is read with a page.
            swap: Swap {
                /// How many pages around a swapped-out one are read with it (`swapin_readahead`).
                swapin_readahead: SwapinReadahead {
                    /// Always the aligned block of 2^page_cluster slots (up to 3.13).
                    Vanilla = "vanilla",
                    /// One global score moved by hits, swap-ins and swap-outs scales page_cluster. Konstantin
                    /// Khlebnikov, linux-mm, 6 September 2012; never merged.
                    Konstantin = "konstantin",
                    /// Misses and hits counted per anon_vma; above 100 the window is one page. Shaohua Li, linux-mm,
                    /// 3 September 2012 (v4); in linux-next, never merged.
                    Shaohua = "shaohua",
                    /// Window halved or doubled by hits of the last one, the target counted as a hit. Hugh Dickins,
                    /// linux-mm, 1 October 2012; found defective: the window cannot fall below two pages.
                    HughOld = "hugh-old",
                    /// Window from the hits since the last swap-in. Hugh Dickins, linux-mm, 14 November 2012.
                    HughNew = "hugh-new",
                    /// As hugh-new, but never less than half the window before (`swapin_nr_pages`).
                    SwapinNrPages = "swapin-nr-pages",
                    /// The same by neighbouring pages of the region, wherever their slots are, with hits counted per
                    /// region; by slots still for shmem, and where any swap area rotates.
                    Vma = "vma",
                }
                /// What MADV_WILLNEED does for pages that are in swap (`madvise_willneed`).
                willneed_swap: WillneedSwap {
                    /// Nothing: it is for files.
                    Ignored = "ignored",
                    /// It reads them.
                    Read = "read",
                }
                /// How a free slot is found on a solid-state swap area (`scan_swap_map`, `cluster_alloc_swap_entry`).
                swap_allocator: SwapAllocator {
                    /// First run of 256 free slots from the current position on, else next fit.
                    ScanSwapMap = "scan-swap-map",
                    /// Aligned clusters of 256 slots from a free list, one current cluster per CPU.
                    ClusterList = "cluster-list",
                    /// Aligned clusters of 512 slots; when none is free those that are partly used, before any slot is
                    /// searched for.
                    FreeFirst = "free-first",
                    /// The same, but those of which slots have been given up come before free ones.
                    NonfullFirst = "nonfull-first",
                }
                /// How a free slot is found on a rotating swap area.
                rotating_swap: RotatingSwap {
                    /// In runs of 256 free slots from the lowest one on, else the lowest one.
                    LowestFree = "lowest-free",
                    /// As on a solid-state one, with one current cluster for all CPUs.
                    Clusters = "clusters" needs(swap.swap_allocator = SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst),
                }
                /// Whether each CPU takes slots 64 at a time (`get_swap_page`).
                swap_slots: SwapSlots {
                    /// One by one.
                    Single = "single",
                    /// 64 at a time while there are plenty. Slots that are given up go back at once; the kernel keeps up
                    /// to 64 of them back, too.
                    Cache = "cache",
                }
                /// When swap areas of one priority take turns (`get_swap_pages`, `swap_alloc_slow`).
                swap_turns: SwapTurns {
                    /// After each slot, or after 64 where as many are taken at once.
                    Allocation = "allocation",
                    /// On solid-state areas when a CPU has filled its cluster, of which it has one at a time.
                    Cluster = "cluster" needs(swap.swap_allocator = SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst),
                }
                /// In what memory the swap cache's pages are found (`swap_address_space`, `swap_table_alloc`).
                swap_cache_index: SwapCacheIndex within slab_pages {
                    /// A tree for each 64 MiB of swap.
                    Trees = "trees",
                    /// A page for each cluster of 512 slots that is in use.
                    Tables = "tables" needs(swap.swap_allocator = SwapAllocator::FreeFirst | SwapAllocator::NonfullFirst),
                }
                /// Block plug around the reads of a swap-in window.
                swapin_plug: SwapinPlug {
                    /// None: neighbours merge only when the queue is busy.
                    Off = "off",
                    /// Held over the window.
                    On = "on" needs(block.plug = Plug::Task),
                }
            }
        }
    };
}

pub(super) use swap;
