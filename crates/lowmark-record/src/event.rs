//! Tracepoint events.
//!
//! Names and fields are the kernel's (`include/trace/events/vmscan.h`). One declaration of each event
//! gives the type, its name, its list of fields and its serial form.

use serde::{Deserialize, Serialize};

macro_rules! events {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal { $( $(#[$fdoc:meta])* $field:ident : $ty:ty ),* $(,)? } )*) => {
        /// What happened, with the fields of its tracepoint.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub enum Payload {
            $( $(#[$doc])* #[serde(rename = $name)] $variant { $( $(#[$fdoc])* $field: $ty ),* }, )*
        }

        impl Payload {
            /// Every event's name with the names of its fields, in the kernel's order.
            pub const FIELDS: &'static [(&'static str, &'static [&'static str])] =
                &[ $( ($name, &[ $( stringify!($field) ),* ]) ),* ];

            /// Name of the tracepoint.
            pub fn name(&self) -> &'static str {
                match self { $( Payload::$variant { .. } => $name, )* }
            }
        }
    };
}

events! {
    /// kswapd goes fully to sleep (`kswapd_try_to_sleep`).
    KswapdSleep = "mm_vmscan_kswapd_sleep" {
        /// Node.
        nid: u32,
    }
    /// kswapd starts a balancing run (`kswapd`).
    KswapdWake = "mm_vmscan_kswapd_wake" {
        /// Node.
        nid: u32,
        /// Classzone index.
        zid: u32,
        /// Allocation order asked for.
        order: u32,
    }
    /// Somebody wakes kswapd (`wakeup_kswapd`).
    WakeupKswapd = "mm_vmscan_wakeup_kswapd" {
        /// Node.
        nid: u32,
        /// Zone index or classzone index, by era.
        zid: u32,
        /// Allocation order asked for.
        order: u32,
    }
    /// Direct reclaim begins (`try_to_free_pages`).
    DirectReclaimBegin = "mm_vmscan_direct_reclaim_begin" {
        /// Allocation order.
        order: u32,
        /// Whether dirty pages may be written.
        may_writepage: u32,
    }
    /// Direct reclaim ends.
    DirectReclaimEnd = "mm_vmscan_direct_reclaim_end" {
        /// Pages freed.
        nr_reclaimed: u64,
    }
    /// Pages were taken off an LRU list (`isolate_lru_pages`).
    LruIsolate = "mm_vmscan_lru_isolate" {
        /// 0 inactive, 1 active (as the era numbers it).
        isolate_mode: u32,
        /// Allocation order.
        order: u32,
        /// Pages wanted.
        nr_requested: u64,
        /// Pages looked at.
        nr_scanned: u64,
        /// Pages taken.
        nr_taken: u64,
        /// File list (1) or anon list (0).
        file: u32,
    }
    /// A batch of the inactive list was processed (`shrink_inactive_list`).
    LruShrinkInactive = "mm_vmscan_lru_shrink_inactive" {
        /// Node.
        nid: u32,
        /// Zone.
        zid: u32,
        /// Pages looked at.
        nr_scanned: u64,
        /// Pages freed.
        nr_reclaimed: u64,
        /// Scan priority, 12 down to 0.
        priority: u32,
        /// File list (1) or anon list (0).
        file: u32,
    }
    /// A batch of the active list was processed (`shrink_active_list`; tracepoint since 4.11).
    LruShrinkActive = "mm_vmscan_lru_shrink_active" {
        /// Node.
        nid: u32,
        /// Pages taken.
        nr_taken: u64,
        /// Pages that stay active.
        nr_active: u64,
        /// Pages moved to the inactive list.
        nr_deactivated: u64,
        /// Pages found referenced.
        nr_referenced: u64,
        /// Scan priority.
        priority: u32,
        /// File list (1) or anon list (0).
        file: u32,
    }
    /// Reclaim writes a page (`pageout`).
    Writepage = "mm_vmscan_writepage" {
        /// Page frame number.
        pfn: u64,
        /// File page (1) or anon page (0).
        file: u32,
        /// Synchronous (1) or not (0).
        sync: u32,
    }
    /// A task slept in `congestion_wait`.
    CongestionWait = "writeback_congestion_wait" {
        /// Longest sleep allowed, µs.
        usec_timeout: u64,
        /// Time slept, µs.
        usec_delayed: u64,
    }
    /// A task passed `wait_iff_congested`.
    WaitIffCongested = "writeback_wait_iff_congested" {
        /// Longest sleep allowed, µs.
        usec_timeout: u64,
        /// Time slept, µs.
        usec_delayed: u64,
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time since the run began, ns.
    #[serde(rename = "t")]
    pub time_ns: u64,
    /// CPU on which it happened.
    pub cpu: u32,
    /// Index into [`Recording::tasks`](crate::Recording::tasks).
    pub task: u32,
    /// What happened.
    #[serde(flatten)]
    pub payload: Payload,
}
