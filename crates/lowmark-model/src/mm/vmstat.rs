//! `/proc/vmstat`.

macro_rules! counters {
    ($( $(#[$doc:meta])* $field:ident )*) => {
        /// Event counters (`enum vm_event_item`), summed over CPUs and zones.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub(crate) struct VmStat { $( $(#[$doc])* pub(crate) $field: u64, )*
            /// pgalloc_*, by zone type
            pub(crate) pgalloc: [u64; super::mmzone::MAX_NR_ZONES],
        }

        impl VmStat {
            /// Name and value of every counter that is not kept per zone type.
            pub(crate) fn named(&self) -> Vec<(&'static str, u64)> {
                vec![ $( (stringify!($field), self.$field) ),* ]
            }
        }
    };
}

counters! {
    /// Page faults
    pgfault
    /// Page faults that waited for I/O
    pgmajfault
    /// Pages read from swap
    pswpin
    /// Pages written to swap
    pswpout
    /// Kilobytes read from devices
    pgpgin
    /// Kilobytes written to devices
    pgpgout
    /// Pages freed
    pgfree
    /// Pages moved to an active list
    pgactivate
    /// Pages moved to an inactive list
    pgdeactivate
    /// Pages put at the inactive tail when their writeback ended
    pgrotated
    /// Active pages scanned
    pgrefill
    /// Inactive pages scanned by kswapd
    pgscan_kswapd
    /// Inactive pages scanned by direct reclaim
    pgscan_direct
    /// Pages reclaimed by kswapd
    pgsteal_kswapd
    /// Pages reclaimed by direct reclaim
    pgsteal_direct
    /// Direct reclaims
    allocstall
    /// Balancing runs of kswapd
    pageoutrun
    /// kswapd slept less than a full nap because the low watermark was hit
    kswapd_low_wmark_hit_quickly
    /// kswapd found a zone below high right after its nap
    kswapd_high_wmark_hit_quickly
    /// kswapd did not wait although it made no progress, because a zone was below min
    kswapd_skip_congestion_wait
    /// Pages set aside because their zone is above the one asked for
    pgskip
    /// Pages written by reclaim
    nr_vmscan_write
    /// Dirty pages marked for reclaim as soon as they are clean
    nr_vmscan_immediate_reclaim
    /// Swap-in neighbours read (an extension before 4.14)
    swap_ra
    /// Swap-in neighbours touched (an extension before 4.14)
    swap_ra_hit
}
