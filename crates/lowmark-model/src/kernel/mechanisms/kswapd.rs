//! kswapd: when kswapd wakes, which zones it balances, when it waits and when it gives up on a node.

macro_rules! kswapd {
    ($next:ident $($others:ident)*; $($before:tt)*) => {
        $next! { $($others)*;
            $($before)*
            /// kswapd: when kswapd wakes, which zones it balances, when it waits and when it gives up on a node.
            kswapd: Kswapd {
                /// When kswapd gives up on a node and leaves it to direct reclaim.
                hopeless_node: HopelessNode {
                    /// When all reclaimable pages of a zone have been scanned six times without a page freed.
                    PagesScanned = "pages-scanned",
                    /// After sixteen runs that reclaimed nothing (`kswapd_failures`).
                    Failures = "failures" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// kswapd's loop over priorities (`balance_pgdat`).
                balance_pgdat: BalancePgdat {
                    /// Zone by zone up to the end zone, priority raised after every pass, restarted until balanced.
                    EveryPass = "every-pass" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// Raises priority only when a zone was not scanned to its target; waits inside
                    /// `shrink_inactive_list` only.
                    ScannedTarget = "scanned-target" needs(reclaim.lru_unit = LruUnit::Zone),
                    /// One pass over the node's lists per priority.
                    Node = "node" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// Which zones have to be at their high watermarks for kswapd to have done its work at order 0
                /// (`balance_pgdat` over zone lists).
                balanced_zones: BalancedZones {
                    /// Those that the pass went through, for an allocation that could use the highest of them.
                    EndZone = "end-zone",
                    /// Those of the request, each for an allocation that could use no higher one (`pgdat_balanced`).
                    Request = "request",
                }
                /// When reclaim stops treating a node as one whose pages are all under writeback (`PGDAT_WRITEBACK`).
                node_writeback: NodeWriteback {
                    /// After each pass over a zone; never where lists are a node's (1d82de618ddd).
                    AfterPass = "after-pass",
                    /// When a zone is found balanced, and from 4.12 on when kswapd goes to sleep.
                    Balanced = "balanced",
                }
                /// How far above its high watermark kswapd reclaims a zone while another one needs it
                /// (`KSWAPD_ZONE_BALANCE_GAP_RATIO`).
                balance_gap: BalanceGap {
                    /// To eight times the watermark (before 8afdcece4911, 2.6.39).
                    EightTimesHigh = "eight-times-high",
                    /// By the low watermark or a hundredth of the zone, the smaller one.
                    LowOrPercent = "low-or-percent",
                }
                /// What kswapd does after a run down to priority 1 that freed nothing, if kswapd left anonymous pages alone in it because there
                /// seemed to be inactive file pages enough (`cache_trim_mode`).
                cache_trim_retry: CacheTrimRetry {
                    /// kswapd counts the run as a failure.
                    Off = "off",
                    /// kswapd runs once more from the highest priority on, and weighs anonymous pages against those of files.
                    On = "on" needs(reclaim.scan_control = ScanControlTime::Node),
                }
                /// What kswapd does below priority 10 when a balancing run makes no progress.
                kswapd_wait: KswapdWait {
                    /// Up to 100 ms in `congestion_wait`, unless a zone is below its min watermark.
                    CongestionWait = "congestion-wait",
                    /// kswapd goes on.
                    None = "none",
                }
                /// When an allocation in its slow path wakes a sleeping kswapd (`wakeup_kswapd`).
                kswapd_wake: KswapdWake {
                    /// The zone is below its low watermark; the tracepoint is emitted even if kswapd is awake (before
                    /// 88f5acf88ae6, 2.6.38).
                    Told = "told",
                    /// The zone is below its low watermark.
                    BelowLow = "below-low",
                    /// The zone is below its high watermark.
                    NotBalanced = "not-balanced",
                    /// No zone of the node up to the class is at its high watermark.
                    NodeNotBalanced = "node-not-balanced" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// kswapd's classzone index between requests, and what lets it sleep.
                kswapd_classzone: KswapdClasszone {
                    /// Resets to zone 0; every zone up to the class must pass to sleep, any passing zone clears the
                    /// node's congestion bits.
                    Vanilla = "vanilla",
                    /// Any passing zone is enough to sleep, and clears the bits: the first patch of the series alone
                    /// ("fix zone balance check in prepare_kswapd_sleep"), posted to linux-mm on 8 March 2017 with figures of its own.
                    FixCheck = "fixcheck" needs(reclaim.lru_unit = LruUnit::Node),
                    /// Every zone up to the class must pass to sleep, and only going to sleep clears the bits: the second
                    /// patch (631b6e083ec3) without the first.
                    ClearBits = "clear-bits" needs(reclaim.lru_unit = LruUnit::Node),
                    /// Any passing zone is enough to sleep, and only that clears the bits; a node without a zone in the class is never balanced.
                    Clear = "clear" needs(reclaim.lru_unit = LruUnit::Node),
                    /// The same, but a node without a zone in the class counts as balanced: the third patch (e716f2eb24de)
                    /// without its default class.
                    EmptyBalanced = "empty-balanced" needs(reclaim.lru_unit = LruUnit::Node),
                    /// Resets to "none"; a node without a zone in the class counts as balanced.
                    KeepAwake = "keepawake" needs(reclaim.lru_unit = LruUnit::Node),
                    /// The same, and keeps its class if none is asked for, in place of zone 0; one that is asked for
                    /// while it works or naps counts even if it is lower.
                    Remembers = "remembers" needs(reclaim.lru_unit = LruUnit::Node),
                }
                /// Whether direct reclaimers wait for kswapd while less than half of the min watermarks is free
                /// (`throttle_direct_reclaim`).
                direct_throttle: DirectThrottle {
                    /// They do not.
                    Off = "off",
                    /// They wait, and a kswapd that would sleep wakes them and does not sleep.
                    KeepsAwake = "keeps-awake",
                    /// They wait until kswapd has freed enough or goes to sleep.
                    On = "on",
                    /// The same; zones with nothing to reclaim do not count.
                    Reclaimable = "reclaimable",
                }
            }
        }
    };
}

pub(super) use kswapd;
