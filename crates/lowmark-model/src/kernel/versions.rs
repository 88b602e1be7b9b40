//! Which kernel has which mechanism.

use super::KernelError;
use super::mechanisms::*;
use lowmark_record::Release;
use std::fmt;

/// A kernel version, `vMAJOR.MINOR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl Version {
    /// The same as a release, by which events are written.
    pub(crate) fn release(self) -> Release {
        Release::new(self.major as u16, self.minor as u16)
    }
}

const fn v(major: u32, minor: u32) -> Version {
    Version { major, minor }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}", self.major, self.minor)
    }
}

/// One change of the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Name by which `--kernel VERSION+NAME` applies it alone.
    pub name: &'static str,
    /// First version that has it.
    pub version: Version,
    /// Mainline commit, at least twelve digits.
    pub commit: &'static str,
    /// What it changes, one line.
    pub summary: &'static str,
    effect: fn(&mut Mechanisms),
}

impl Change {
    /// Applies the change alone.
    pub fn apply(&self, mechanisms: &mut Mechanisms) {
        (self.effect)(mechanisms);
    }
}

/// The oldest kernel of the model: 3.2.
fn oldest() -> Mechanisms {
    Mechanisms {
        swapin_readahead: SwapinReadahead::Vanilla,
        swap_allocator: SwapAllocator::ScanSwapMap,
        lru_unit: LruUnit::Zone,
        new_anon: NewAnon::Active,
        workingset: Workingset::Off,
        page_references: PageReferences::Anon,
        inactive_ratio: InactiveRatio::ZoneSize,
        enough_inactive_file: EnoughInactiveFile::Ignored,
        scan_target: ScanTarget::Unbounded,
        reclaim_plug: ReclaimPlug::On,
        swapin_plug: SwapinPlug::Off,
        balance_pgdat: BalancePgdat::EveryPass,
        kswapd_wait: KswapdWait::CongestionWait,
        kswapd_wake: KswapdWake::BelowLow,
        tail_writeback: TailWriteback::Keep,
        kswapd_classzone: KswapdClasszone::Vanilla,
        watermark_order: WatermarkOrder::Decay,
        watermark_gap: WatermarkGap::QuarterOfMin,
        fair_zones: FairZones::Off,
        zone_size: ZoneSize::Present,
        dirtyable: Dirtyable::AnonToo,
        alloc_retry: AllocRetry::Always,
    }
}

/// Every change between the oldest and the newest kernel of the model, oldest first.
pub const HISTORY: &[Change] = &[
    Change {
        name: "activate-swap-backed",
        version: v(3, 5),
        commit: "e48982734ea0",
        summary: "a referenced shmem page is activated like an anonymous one",
        effect: |m| {
            m.page_references = PageReferences::SwapBacked;
        },
    },
    Change {
        name: "swapin-plug",
        version: v(3, 6),
        commit: "3fb5c298b04e",
        summary: "the reads of a swap-in window are merged",
        effect: |m| {
            m.swapin_plug = SwapinPlug::On;
        },
    },
    Change {
        name: "only-evict-file-when-plenty",
        version: v(3, 8),
        commit: "e9868505987a",
        summary: "anon is spared while there are many inactive file pages",
        effect: |m| {
            m.enough_inactive_file = EnoughInactiveFile::FileOnly;
        },
    },
    Change {
        name: "no-wait-in-balance-pgdat",
        version: v(3, 9),
        commit: "258401a60c4d",
        summary: "kswapd no longer waits on congestion",
        effect: |m| {
            m.kswapd_wait = KswapdWait::None;
        },
    },
    Change {
        name: "managed-pages",
        version: v(3, 9),
        commit: "b40da04946aa",
        summary: "watermarks and reserves count managed pages",
        effect: |m| {
            m.zone_size = ZoneSize::Managed;
        },
    },
    Change {
        name: "proportional-scan",
        version: v(3, 11),
        commit: "e82e0561dae9",
        summary: "a pass that has reclaimed enough stops, in proportion",
        effect: |m| {
            m.scan_target = ScanTarget::Proportional;
        },
    },
    Change {
        name: "flatten-kswapd-priority-loop",
        version: v(3, 11),
        commit: "b8e83b942a16",
        summary: "kswapd raises its priority only when it did not scan enough",
        effect: |m| {
            m.balance_pgdat = BalancePgdat::ScannedTarget;
        },
    },
    Change {
        name: "ssd-clusters",
        version: v(3, 12),
        commit: "2a8f94493432",
        summary: "solid-state swap is allocated by clusters, one per CPU (ebc2a1a69111)",
        effect: |m| {
            m.swap_allocator = SwapAllocator::ClusterList;
        },
    },
    Change {
        name: "fair-zone-allocator",
        version: v(3, 12),
        commit: "81c0a2bb515f",
        summary: "zones of a node take turns",
        effect: |m| {
            m.fair_zones = FairZones::On;
        },
    },
    Change {
        name: "numa-reclaim-balance",
        version: v(3, 12),
        commit: "892f795df1eb",
        summary: "kswapd is woken below the high watermark",
        effect: |m| {
            m.kswapd_wake = KswapdWake::NotBalanced;
        },
    },
    Change {
        name: "swapin_nr_pages",
        version: v(3, 14),
        commit: "579f82901f6f",
        summary: "swap-in window from the hits of the last one",
        effect: |m| {
            m.swapin_readahead = SwapinReadahead::SwapinNrPages;
        },
    },
    Change {
        name: "anon-not-dirtyable",
        version: v(3, 14),
        commit: "a1c3bfb2f67e",
        summary: "dirty limits count file pages only",
        effect: |m| {
            m.dirtyable = Dirtyable::FileOnly;
        },
    },
    Change {
        name: "file-workingset",
        version: v(3, 15),
        commit: "a528910e12ec",
        summary: "a file page that comes back soon after its eviction starts active",
        effect: |m| {
            m.workingset = Workingset::File;
        },
    },
    Change {
        name: "order-0-watermarks",
        version: v(4, 4),
        commit: "97a16fc82a7c",
        summary: "one free block is enough for a high order",
        effect: |m| {
            m.watermark_order = WatermarkOrder::FreeBlock;
        },
    },
    Change {
        name: "watermark-scale-factor",
        version: v(4, 6),
        commit: "795ae7a0de6b",
        summary: "watermarks lie further apart on large machines",
        effect: |m| {
            m.watermark_gap = WatermarkGap::ScaleFactor;
        },
    },
    Change {
        name: "smaller-inactive-list",
        version: v(4, 7),
        commit: "59dc76b0d4df",
        summary: "the inactive share shrinks with the size of the lists",
        effect: |m| {
            m.inactive_ratio = InactiveRatio::ListSize;
        },
    },
    Change {
        name: "bounded-alloc-retry",
        version: v(4, 7),
        commit: "0a0337e0d1d1",
        summary: "allocation gives up after sixteen rounds without progress",
        effect: |m| {
            m.alloc_retry = AllocRetry::Bounded;
        },
    },
    Change {
        name: "node-lru",
        version: v(4, 8),
        commit: "599d0c954f91",
        summary: "LRU lists, kswapd and its wake-up test are per node",
        effect: |m| {
            m.lru_unit = LruUnit::Node;
            m.balance_pgdat = BalancePgdat::Node;
            m.kswapd_wake = KswapdWake::NodeNotBalanced;
        },
    },
    Change {
        name: "no-fair-zone-allocator",
        version: v(4, 8),
        commit: "e6cbd7f2efb4",
        summary: "the highest zone comes first again",
        effect: |m| {
            m.fair_zones = FairZones::Off;
        },
    },
    Change {
        name: "activate-tail-writeback",
        version: v(4, 11),
        commit: "c55e8d035b28",
        summary: "pages under writeback are moved out of reclaim's way",
        effect: |m| {
            m.tail_writeback = TailWriteback::Activate;
        },
    },
    Change {
        name: "kswapd-sleep-any-zone",
        version: v(4, 12),
        commit: "631b6e083ec3",
        summary: "one balanced zone lets kswapd sleep",
        effect: |m| {
            m.kswapd_classzone = KswapdClasszone::Clear;
        },
    },
    Change {
        name: "kswapd-keep-awake",
        version: v(4, 12),
        commit: "e716f2eb24de",
        summary: "kswapd remembers the class it worked for",
        effect: |m| {
            m.kswapd_classzone = KswapdClasszone::KeepAwake;
        },
    },
    Change {
        name: "anon-inactive-first",
        version: v(5, 9),
        commit: "b518154e59aa",
        summary: "new anonymous pages start inactive and are activated by their second reference",
        effect: |m| {
            m.new_anon = NewAnon::Inactive;
            m.page_references = PageReferences::SecondLook;
        },
    },
    Change {
        name: "anon-workingset",
        version: v(5, 9),
        commit: "aae466b0052e",
        summary: "evicted anonymous pages are remembered in their swap slots (170b04b7ae49, 3852f6768ede)",
        effect: |m| {
            m.workingset = Workingset::All;
        },
    },
];

/// Versions that the model knows, oldest first.
const VERSIONS: &[Version] = &[
    v(3, 2),
    v(3, 3),
    v(3, 4),
    v(3, 5),
    v(3, 6),
    v(3, 7),
    v(3, 8),
    v(3, 9),
    v(3, 10),
    v(3, 11),
    v(3, 12),
    v(3, 13),
    v(3, 14),
    v(3, 15),
    v(3, 16),
    v(4, 4),
    v(4, 5),
    v(4, 6),
    v(4, 7),
    v(4, 8),
    v(4, 9),
    v(4, 10),
    v(4, 11),
    v(4, 12),
    v(5, 9),
];

/// Versions that the model knows, oldest first.
pub fn versions() -> &'static [Version] {
    VERSIONS
}

impl Version {
    /// The version that `text` names, `v3.6` or `3.6`.
    ///
    /// # Errors
    ///
    /// When the model has no such version.
    pub fn known(text: &str) -> Result<Version, KernelError> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let found = VERSIONS
            .iter()
            .find(|version| version.to_string()[1..] == *bare);
        found.copied().ok_or_else(|| KernelError::UnknownVersion {
            found: text.into(),
            known: VERSIONS
                .iter()
                .map(Version::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        })
    }
}

/// The mechanisms of a version.
pub fn at(version: Version) -> Mechanisms {
    let mut mechanisms = oldest();
    for change in HISTORY.iter().filter(|change| change.version <= version) {
        change.apply(&mut mechanisms);
    }
    mechanisms
}

/// A change by name.
///
/// # Errors
///
/// When there is none.
pub fn change(name: &str) -> Result<&'static Change, KernelError> {
    let found = HISTORY.iter().find(|change| change.name == name);
    found.ok_or_else(|| KernelError::UnknownMechanism { found: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_differ_where_history_says() {
        let of = |text| at(Version::known(text).unwrap());
        assert_eq!(of("v3.13").swapin_readahead, SwapinReadahead::Vanilla);
        assert_eq!(of("v3.14").swapin_readahead, SwapinReadahead::SwapinNrPages);
        assert_eq!(of("3.6").swapin_plug, SwapinPlug::On);
        assert_eq!(of("v3.5").swapin_plug, SwapinPlug::Off);
        assert_eq!(of("v4.7").fair_zones, FairZones::On);
        assert_eq!(of("v4.8").fair_zones, FairZones::Off);
        assert_eq!(of("v4.8").lru_unit, LruUnit::Node);
    }

    #[test]
    fn a_change_applied_alone_is_all_that_differs() {
        let mut alone = at(v(3, 13));
        change("swapin_nr_pages").unwrap().apply(&mut alone);
        alone.swapin_readahead = SwapinReadahead::Vanilla;
        assert_eq!(alone, at(v(3, 13)));
    }

    #[test]
    fn history_is_in_order_and_within_the_known_versions() {
        assert!(HISTORY.is_sorted_by_key(|change| change.version));
        for change in HISTORY {
            assert!(
                VERSIONS.contains(&change.version),
                "{} comes in no known version",
                change.name
            );
            let (before, mut after) = (at(change.version), at(change.version));
            change.apply(&mut after);
            // Applied again to a kernel that has it: nothing, unless a later change of that version
            // overrides it.
            let overridden = HISTORY
                .iter()
                .filter(|other| other.version == change.version)
                .count()
                > 1;
            assert!(overridden || before == after, "{}", change.name);
        }
    }

    #[test]
    fn unknown_names_are_told() {
        assert!(Version::known("v9.9").is_err());
        assert!(change("no-such-change").is_err());
        let mut mechanisms = at(v(3, 6));
        let error = mechanisms
            .set("swapin_readahead", "wrong")
            .unwrap_err()
            .to_string();
        assert!(error.contains("hugh-new"), "{error}");
    }
}
