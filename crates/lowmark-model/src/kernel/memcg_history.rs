//! The changes of memory cgroups, as in [`history`](super::history).

use super::change::{Change, v};
use super::mechanisms::*;

/// Every change of memory cgroups, oldest first.
pub(super) const MEMCG: &[Change] = &[
    Change {
        name: "fruitless-reclaim-repeats",
        version: v(4, 0),
        commit: "241994ed8649",
        summary: "direct reclaim that freed nothing goes through all priorities again, whether memory.low protects anything or not",
        effect: |m| {
            m.reclaim.fruitless_round = FruitlessRound::Repeats;
        },
    },
    Change {
        name: "repeats-for-low-alone",
        version: v(4, 12),
        commit: "d6622f6365db",
        summary: "direct reclaim that freed nothing goes through all priorities again only if memory.low protected something",
        effect: |m| {
            m.reclaim.fruitless_round = FruitlessRound::RepeatsForLow;
        },
    },
    Change {
        name: "shares-of-low",
        version: v(4, 18),
        commit: "230671533d64",
        summary: "sibling groups share the memory.low of the group above them; before, a group beyond its own had none, nor had those in it",
        effect: |m| {
            m.memcg.protection_shares = ProtectionShares::Within;
        },
    },
    Change {
        name: "stop-between-groups",
        version: v(5, 1),
        commit: "2bb0f34fe3c1",
        summary: "direct reclaim leaves the other groups alone when it has enough, not only that for a group at its limit",
        effect: |m| {
            m.memcg.memcg_walk = MemcgWalk::DirectStops;
        },
    },
    Change {
        name: "walks-of-ones-own",
        version: v(5, 4),
        commit: "1ba6fc9af35b",
        summary: "each reclaimer goes through all groups for itself",
        effect: |m| {
            m.memcg.memcg_walk = MemcgWalk::Whole;
        },
    },
    Change {
        name: "proportional-protection",
        version: v(5, 4),
        commit: "9783aa9917f8",
        summary: "of a group that is protected in part less is scanned",
        effect: |m| {
            m.memcg.partly_protected = PartlyProtected::Proportional;
        },
    },
    Change {
        name: "memory-high-delays",
        version: v(5, 4),
        commit: "0e4b01df8659",
        summary: "a task that has charged pages beyond memory.high waits if reclaim does not help",
        effect: |m| {
            m.memcg.high_delay = HighDelay::Own;
        },
    },
    Change {
        name: "claims-of-all-siblings",
        version: v(5, 7),
        commit: "503970e42325",
        summary: "a group that uses more than its memory.low claims it, too, when siblings share that of the group above",
        effect: |m| {
            m.memcg.protection_shares = ProtectionShares::Claims;
        },
    },
    Change {
        name: "recursive-protection",
        version: v(5, 7),
        commit: "8a931f801340",
        summary: "what of memory.min and memory.low nobody claims can be shared out (memory_recursiveprot)",
        effect: |m| {
            m.memcg.protection_shares = ProtectionShares::Recursive;
        },
    },
    Change {
        name: "memory-high-above-delays",
        version: v(5, 7),
        commit: "e26733e0d0ec",
        summary: "a task waits because of the memory.high of groups above its own, too; stable kernels of 5.4 have this, too",
        effect: |m| {
            m.memcg.high_delay = HighDelay::Ancestors;
        },
    },
    Change {
        name: "swapins-are-charged",
        version: v(5, 8),
        commit: "4c6355b25e8b",
        summary: "a page is charged to a memory cgroup before it is read from swap",
        effect: |m| {
            m.memcg.swapin_charge = SwapinCharge::Read;
        },
    },
    Change {
        name: "limits-ignore-old-protection",
        version: v(5, 9),
        commit: "22f7496f0b90",
        summary: "a reclaimer for a group at its own limit does not scan less of it for what it once had of memory.low",
        effect: |m| {
            m.memcg.target_protection = TargetProtection::Stale;
        },
    },
    Change {
        name: "charges-retry-longer",
        version: v(5, 9),
        commit: "d977aa939fca",
        summary: "a charge that meets a limit is tried 16 times, not 5, before the group is out of memory",
        effect: |m| {
            m.memcg.charge_retries = ChargeRetries::Many;
        },
    },
    Change {
        name: "memory-high-reclaims-longer",
        version: v(5, 9),
        commit: "b3ff92916af3",
        summary: "a task beyond memory.high reclaims as long as that helps before it waits",
        effect: |m| {
            m.memcg.high_retries = HighRetries::Progress;
        },
    },
    Change {
        name: "partly-low-has-a-second-round",
        version: v(5, 14),
        commit: "f56ce412a59d",
        summary: "reclaim that finds nothing comes back for what memory.low protected in part; stable kernels have this, too",
        effect: |m| {
            m.memcg.partly_protected = PartlyProtected::SecondRound;
        },
    },
    Change {
        name: "memory-high-at-once",
        version: v(5, 18),
        commit: "c9afe31ec443",
        summary: "a task reclaims at once when it has charged more than a batch beyond memory.high",
        effect: |m| {
            m.memcg.large_overcharge = LargeOvercharge::AtOnce;
        },
    },
    Change {
        name: "larger-charges",
        version: v(6, 1),
        commit: "1813e51eece0",
        summary: "a CPU charges 64 pages to a memory cgroup at once, not 32",
        effect: |m| {
            m.memcg.charge_batch = ChargeBatch::Large;
        },
    },
    Change {
        name: "reclaim-target-is-unprotected",
        version: v(6, 3),
        commit: "adb8213014b2",
        summary: "a memory cgroup for whose sake memory is reclaimed is not protected by old values",
        effect: |m| {
            m.memcg.target_protection = TargetProtection::None;
        },
    },
    Change {
        name: "small-proactive-batches",
        version: v(6, 6),
        commit: "0388536ac291",
        summary: "memory.reclaim reclaims 32 pages at a time, and no more than it was asked for",
        effect: |m| {
            m.memcg.proactive_batch = ProactiveBatch::Cluster;
        },
    },
    Change {
        name: "larger-proactive-batches",
        version: v(6, 9),
        commit: "287d5fedb377",
        summary: "a task that writes to memory.reclaim reclaims a quarter of what is left at a time",
        effect: |m| {
            m.memcg.proactive_batch = ProactiveBatch::Quarter;
        },
    },
    Change {
        name: "shared-memcg-walks",
        version: v(6, 11),
        commit: "6be5e186fd65",
        summary: "direct reclaim that has enough leaves the other memory cgroups to the next one",
        effect: |m| {
            m.memcg.memcg_walk = MemcgWalk::Shared;
        },
    },
    Change {
        name: "counters-of-proactive-reclaim",
        version: v(6, 15),
        commit: "e452872b40e3",
        summary: "memory.reclaim has counters of its own in memory.stat",
        effect: |m| {
            m.memcg.proactive_counters = ProactiveCounters::Own;
        },
    },
];
