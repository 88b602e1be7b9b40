//! Changes of kernels from 6.6 on, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change from 6.6 on, oldest first.
pub(super) const SINCE_6_6: &[Change] = &[
    Change {
        name: "large-folios-in-writes",
        version: v(6, 6),
        commit: "d6bb59a9444d",
        summary: "XFS writes in large folios (5d8edfb900d5; it has had them since 6795801366da, 5.18)",
        effect: |m| {
            m.writeback.write_folios = WriteFolios::Xfs;
        },
    },
    Change {
        name: "eevdf",
        version: v(6, 6),
        commit: "147f3efaa241",
        summary: "of the tasks that are owed CPU time the one with the earliest deadline runs (86bfbb7ce4f6)",
        effect: |m| {
            m.sched.fair_class = FairClass::Eevdf;
        },
    },
    Change {
        name: "writers-read-old-counters",
        version: v(6, 9),
        commit: "d9b3ce8769e3",
        summary: "writers of a memory cgroup do not bring its counters up to date",
        effect: |m| {
            m.writeback.group_dirty_stats = GroupDirtyStats::Periodic;
        },
    },
    Change {
        name: "cache-trim-retry",
        version: v(6, 9),
        commit: "d221dd5fea64",
        summary: "kswapd that freed nothing from files alone runs once more with anonymous pages",
        effect: |m| {
            m.kswapd.cache_trim_retry = CacheTrimRetry::On;
        },
    },
    Change {
        name: "swap-clusters-free-first",
        version: v(6, 12),
        commit: "5f843a9a3a1e",
        summary: "solid-state swap is allocated by clusters alone, free ones first (d07a46a4ac18)",
        effect: |m| {
            m.swap.swap_allocator = SwapAllocator::FreeFirst;
        },
    },
    Change {
        name: "reclaim-reads-old-counters",
        version: v(6, 12),
        commit: "90a6f2a8f442",
        summary: "reclaim does not bring the counters of memory cgroups up to date either",
        effect: |m| {
            m.reclaim.lruvec_stats = LruvecStats::Periodic;
        },
    },
    Change {
        name: "delayed-dequeue",
        version: v(6, 12),
        commit: "152e11f6df29",
        summary: "a task that had more CPU time than others makes up for it before it sleeps (54a58a787791)",
        effect: |m| {
            m.sched.fair_class = FairClass::EevdfDelayed;
        },
    },
    Change {
        name: "reserves-follow-managed-pages",
        version: v(6, 13),
        commit: "9726891fe753",
        summary: "lowmem reserves are computed again when init memory is freed",
        effect: |m| {
            m.zones.reserve_update = ReserveUpdate::ManagedPages;
        },
    },
    Change {
        name: "free-pages-of-empty-zones",
        version: v(6, 13),
        commit: "6aaced5abd32",
        summary: "a zone without pages on its lists has its free ones to reclaim; stable kernels of 6.1, 6.6 and 6.12 have this, too",
        effect: |m| {
            m.zones.empty_zone = EmptyZone::FreePages;
        },
    },
    Change {
        name: "plugs-in-order",
        version: v(6, 13),
        commit: "e70c301faece",
        summary: "requests are added at the end of a plug, whose oldest is asked for its size and for merges (a3396b99990d)",
        effect: |m| {
            m.block.plug_flush = PlugFlush::OldestRequest;
            m.block.plug_merge = PlugMerge::Oldest;
        },
    },
    Change {
        name: "virtio-extras",
        version: v(6, 13),
        commit: "bc2b4c3401c6",
        summary: "virtio keeps what else it knows of an indirect descriptor beside it",
        effect: |m| {
            m.zones.virtio_memory = VirtioMemory::Extras;
        },
    },
    Change {
        name: "threshold-of-idle-devices",
        version: v(6, 14),
        commit: "6aeb991c54b2",
        summary: "room for the first pages of an idle device is part of its threshold",
        effect: |m| {
            m.writeback.idle_devices = IdleDevices::Threshold;
        },
    },
    Change {
        name: "clusters-on-rotating-swap",
        version: v(6, 14),
        commit: "bae8a4ef3efb",
        summary: "rotating swap is allocated by clusters, too, one for all CPUs",
        effect: |m| {
            m.swap.rotating_swap = RotatingSwap::Clusters;
        },
    },
    Change {
        name: "skipped-pages-bounded",
        version: v(6, 14),
        commit: "1c7b17cf0594",
        summary: "at most 32,768 pages of zones above the request's are skipped in one pass",
        effect: |m| {
            m.zones.skipped_pages = SkippedPages::Bounded;
        },
    },
    Change {
        name: "shorter-slices",
        version: v(6, 15),
        commit: "2ae891b82695",
        summary: "slices are 0.7 ms, so that a tick does not come just before their end",
        effect: |m| {
            m.sched.base_slice = BaseSlice::Short;
        },
    },
    Change {
        name: "no-swap-slot-cache",
        version: v(6, 15),
        commit: "0ff67f990bd4",
        summary: "swap slots are taken one by one again",
        effect: |m| {
            m.swap.swap_slots = SwapSlots::Single;
        },
    },
    Change {
        name: "one-cluster-of-a-cpu",
        version: v(6, 15),
        commit: "1b7e90020eb7",
        summary: "swap areas of one priority take turns when a CPU has filled its cluster",
        effect: |m| {
            m.swap.swap_turns = SwapTurns::Cluster;
        },
    },
    Change {
        name: "no-file-writes-by-reclaim",
        version: v(6, 16),
        commit: "84798514db50",
        summary: "reclaim writes shared and anonymous pages alone, never those of files",
        effect: |m| {
            m.writeback.reclaim_file_writes = ReclaimFileWrites::Nobody;
        },
    },
    Change {
        name: "large-folios-in-ext4",
        version: v(6, 16),
        commit: "7ac67301e82f",
        summary: "ext4 writes in large folios, too (9aac777aaf94, 6.11)",
        effect: |m| {
            m.writeback.write_folios = WriteFolios::XfsAndExt4;
        },
    },
    Change {
        name: "merge-with-last-plugged",
        version: v(6, 16),
        commit: "961296e89dc3",
        summary: "bios are merged with the last request of a plug again",
        effect: |m| {
            m.block.plug_merge = PlugMerge::Last;
        },
    },
    Change {
        name: "requests-of-4m",
        version: v(6, 17),
        commit: "9b8b84879d4a",
        summary: "requests of large folios grow to 4 MiB",
        effect: |m| {
            m.block.max_sectors = MaxSectors::Sectors8192;
        },
    },
    Change {
        name: "windows-of-two-requests",
        version: v(6, 17),
        commit: "459779d04ae8",
        summary: "files on rotating disks are read ahead by two requests of the largest size",
        effect: |m| {
            m.files.readahead_size = ReadaheadSize::TwoRequests;
        },
    },
    Change {
        name: "lazy-preemption",
        version: v(6, 18),
        commit: "7c70cb94d29c",
        summary: "tasks in the kernel are preempted at the next tick only; possible from 6.13 on, and Debian's choice for 6.18",
        effect: |m| {
            m.sched.preemption = Preemption::Lazy;
        },
    },
    Change {
        name: "free-pages-counted-once",
        version: v(6, 18),
        commit: "4bd22a7ae574",
        summary: "a zone without pages on its lists has nothing to reclaim again, so that its free pages count once",
        effect: |m| {
            m.zones.empty_zone = EmptyZone::Nothing;
        },
    },
    Change {
        name: "nonfull-clusters-first",
        version: v(6, 18),
        commit: "9a42aed48421",
        summary: "swap clusters with slots that were given up are filled before free ones are begun",
        effect: |m| {
            m.swap.swap_allocator = SwapAllocator::NonfullFirst;
        },
    },
    Change {
        name: "swap-tables",
        version: v(6, 18),
        commit: "8578e0c00dcf",
        summary: "the swap cache is a table for each cluster that is in use (07adc4cf1ecd, f83938e4188c)",
        effect: |m| {
            m.swap.swap_cache_index = SwapCacheIndex::Tables;
        },
    },
];
