//! Memory cgroups: who reclaims from which.

macro_rules! memcg {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// Memory cgroups: who reclaims from which.
            memcg: MemcgRules {
                /// Which groups a direct reclaimer goes through (`shrink_node_memcgs`). kswapd goes through all.
                memcg_walk: MemcgWalk within memory_cgroups {
                    /// All of them, each reclaimer for itself (1ba6fc9af35b, 5.4).
                    Whole = "whole",
                    /// Those from where the last one stopped, until it has enough. If a round frees nothing, there is another one
                    /// through all of them.
                    Shared = "shared",
                }
                /// Whether a group for whose sake memory is reclaimed is protected by its own `memory.min` and `memory.low`
                /// (`mem_cgroup_below_min`, `mem_cgroup_below_low`).
                target_protection: TargetProtection within memory_cgroups {
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
