//! Memory cgroups: who reclaims from which.

macro_rules! memcg {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Memory cgroups: who reclaims from which.
            memcg: MemcgRules {
                /// Pages that a CPU charges to a group ahead (`MEMCG_CHARGE_BATCH`).
                charge_batch: ChargeBatch within memory_cgroups {
                    /// 32.
                    Small = "32",
                    /// 64.
                    Large = "64",
                }
                /// How often a charge that meets a limit is tried again after reclaim that freed nothing (`try_charge_memcg`).
                charge_retries: ChargeRetries within memory_cgroups {
                    /// 5 times (`MEM_CGROUP_RECLAIM_RETRIES`).
                    Few = "5",
                    /// 16 times (`MAX_RECLAIM_RETRIES`).
                    Many = "16",
                }
                /// When a page that is read from swap is charged to the group that its slot is of.
                swapin_charge: SwapinCharge within memory_cgroups {
                    /// When a task maps it (`do_swap_page`). Until then it is on the lists of the root.
                    Mapped = "mapped",
                    /// Before it is read (`__read_swap_cache_async`).
                    Read = "read",
                }
                /// Whether a task that has charged pages beyond `memory.high` waits after it has reclaimed
                /// (`mem_cgroup_handle_over_high`).
                high_delay: HighDelay within memory_cgroups {
                    /// It does not.
                    None = "none",
                    /// It does, by how far its own group is beyond `memory.high`.
                    Own = "own",
                    /// It does, by the group farthest beyond, of its own and of all above.
                    Ancestors = "ancestors",
                }
                /// How often a task that is beyond `memory.high` reclaims before it waits.
                high_retries: HighRetries within memory_cgroups {
                    /// It has reclaimed once.
                    Once = "once",
                    /// It reclaims as long as that frees pages, and up to 16 times more.
                    Progress = "progress",
                }
                /// When a task reclaims that has charged more than a batch beyond `memory.high` in one call.
                large_overcharge: LargeOvercharge within memory_cgroups {
                    /// On its way out of the kernel.
                    AtReturn = "at-return",
                    /// At once.
                    AtOnce = "at-once",
                }
                /// How far the `memory.min` and `memory.low` of the groups above a memory cgroup limit its own.
                protection_shares: ProtectionShares within memory_cgroups {
                    /// A group is protected as long as it and each of those above it, up to the one for whose sake memory is
                    /// reclaimed, uses less than its own `memory.low` (`mem_cgroup_low`).
                    Each = "each",
                    /// Sibling groups share the protection of the group above them in proportion to their claims. The claim of a group is its
                    /// usage, and 0 if the usage exceeds the group's own setting. A group without a claim gets a part all the same, so
                    /// that the parts of all siblings can add up to more than the group above has (`propagate_protected_usage`).
                    Within = "within",
                    /// Sibling groups share the protection of the group above them. The claim of a group is its usage, or its own setting if
                    /// that is less; if all claims together are more than the group above has, each group gets a part.
                    Claims = "claims",
                    /// The same; if sibling groups claim less, the rest can be shared out, too (`memory_recursiveprot`).
                    Recursive = "recursive",
                }
                /// How many pages a reclaimer scans of a group that is protected in part (`get_scan_count`).
                partly_protected: PartlyProtected within memory_cgroups {
                    /// As much as of others.
                    Whole = "whole",
                    /// The fewer, the more of the group is protected. Reclaim that frees nothing does not come back for them.
                    Proportional = "proportional" needs(memcg.protection_shares = ProtectionShares::Within | ProtectionShares::Claims | ProtectionShares::Recursive),
                    /// The same; and a reclaimer that frees nothing scans in another round what `memory.low` spared in this way.
                    SecondRound = "second-round" needs(memcg.protection_shares = ProtectionShares::Within | ProtectionShares::Claims | ProtectionShares::Recursive),
                }
                /// Which groups a direct reclaimer goes through (`shrink_node_memcgs`). kswapd goes through all.
                memcg_walk: MemcgWalk within memory_cgroups {
                    /// Reclaimers of the same priority share a walk. One for a group that is at its limit stops when it has enough.
                    LimitStops = "limit-stops",
                    /// Reclaimers of the same priority share a walk. All but kswapd stop when they have enough.
                    DirectStops = "direct-stops",
                    /// All of them, each reclaimer for itself (1ba6fc9af35b, 5.4).
                    Whole = "whole",
                    /// Those from where the last one stopped, until it has enough. If a round frees nothing, there is another one
                    /// through all of them.
                    Shared = "shared",
                }
                /// Whether a group for whose sake memory is reclaimed is protected by its own `memory.min` and `memory.low`
                /// (`mem_cgroup_below_min`, `mem_cgroup_below_low`).
                target_protection: TargetProtection within memory_cgroups {
                    /// The group as a whole is not; but a reclaimer scans less of it by the protection that it had when reclaim last came
                    /// by for a group above.
                    StalePart = "stale-part",
                    /// By what it had of them when reclaim last came by for a group above, or for want of memory.
                    Stale = "stale",
                    /// It is not.
                    None = "none",
                }
                /// How many pages `memory.reclaim` reclaims at a time (`memory_reclaim`).
                proactive_batch: ProactiveBatch within memory_cgroups {
                    /// All that are left.
                    Rest = "rest",
                    /// 32.
                    Cluster = "cluster",
                    /// A quarter of what is left, 32 at least.
                    Quarter = "quarter",
                }
                /// Whether pages that shrinkers free count as reclaimed for a group that is at its limit (`flush_reclaim_state`).
                group_slab_credit: GroupSlabCredit within cgroup_slab {
                    /// They do.
                    Counted = "counted",
                    /// Only pages from LRU lists do, as shrinkers may free those of other groups.
                    None = "none",
                }
                /// What `memory.reclaim` counts as in `memory.stat`.
                proactive_counters: ProactiveCounters within memory_cgroups {
                    /// Direct reclaim.
                    Direct = "direct",
                    /// Something of its own, `pgscan_proactive` and `pgsteal_proactive`.
                    Own = "own",
                }
            }
        }
    };
}

pub(super) use memcg;
