//! The changes of kswapd and of those that wait for it to 4.7, one row each.

use super::change::{Change, v, v2_6};
use super::mechanisms::*;

/// Every such change, oldest first.
pub(super) const KSWAPD: &[Change] = &[
    Change {
        name: "wake-only-asleep",
        version: v2_6(38),
        commit: "88f5acf88ae6",
        summary: "an allocation that finds kswapd awake does not check the watermarks",
        effect: |m| {
            m.kswapd.kswapd_wake = KswapdWake::BelowLow;
        },
    },
    Change {
        name: "balance-gap",
        version: v2_6(39),
        commit: "8afdcece4911",
        summary: "kswapd leaves a zone a little above its high watermark, not at eight times of it",
        effect: |m| {
            m.kswapd.balance_gap = BalanceGap::LowOrPercent;
        },
    },
    Change {
        name: "direct-throttle",
        version: v(3, 6),
        commit: "5515061d22f0",
        summary: "direct reclaimers wait for kswapd while less than half of the min watermarks is free",
        effect: |m| {
            m.kswapd.direct_throttle = DirectThrottle::KeepsAwake;
        },
    },
    Change {
        name: "no-wait-in-balance-pgdat",
        version: v(3, 9),
        commit: "258401a60c4d",
        summary: "kswapd no longer waits on congestion",
        effect: |m| {
            m.kswapd.kswapd_wait = KswapdWait::None;
        },
    },
    Change {
        name: "balanced-zones-of-the-request",
        version: v(3, 9),
        commit: "4ae0a48b5efc",
        summary: "kswapd is done when the zones of the request are balanced, each for its own class",
        effect: |m| {
            m.kswapd.balanced_zones = BalancedZones::Request;
        },
    },
    Change {
        name: "flatten-kswapd-priority-loop",
        version: v(3, 11),
        commit: "b8e83b942a16",
        summary: "kswapd raises its priority only when it did not scan enough",
        effect: |m| {
            m.kswapd.balance_pgdat = BalancePgdat::ScannedTarget;
        },
    },
    Change {
        name: "numa-reclaim-balance",
        version: v(3, 12),
        commit: "892f795df1eb",
        summary: "kswapd is woken below the high watermark",
        effect: |m| {
            m.kswapd.kswapd_wake = KswapdWake::NotBalanced;
        },
    },
    Change {
        name: "kswapd-sleeps-after-throttled",
        version: v(3, 19),
        commit: "9e5e3661727e",
        summary: "kswapd goes to sleep although reclaimers waited for it, which it wakes",
        effect: |m| {
            m.kswapd.direct_throttle = DirectThrottle::On;
        },
    },
    Change {
        name: "throttle-reclaimable-zones",
        version: v(4, 2),
        commit: "f012a84aff9b",
        summary: "reclaimers do not wait for free pages of zones with nothing to reclaim",
        effect: |m| {
            m.kswapd.direct_throttle = DirectThrottle::Reclaimable;
        },
    },
];
