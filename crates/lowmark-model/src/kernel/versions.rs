//! Which kernel has which mechanism: the oldest one, and what [`HISTORY`] says of later ones.

use super::KernelError;
pub use super::change::{Change, Version};
use super::change::{v, v2_6};
use super::early_history::BEFORE_4_8;
use super::history::BEFORE_6_6;
use super::mechanisms::*;
use super::recent_history::SINCE_6_6;

const CHANGES: usize = BEFORE_4_8.len() + BEFORE_6_6.len() + SINCE_6_6.len();

/// Every change between the oldest and the newest kernel of the model, oldest first.
pub const HISTORY: &[Change] = &joined();

const fn joined() -> [Change; CHANGES] {
    let mut all = [BEFORE_4_8[0]; CHANGES];
    let mut at = 0;
    while at < CHANGES {
        let later = at.saturating_sub(BEFORE_4_8.len());
        all[at] = if at < BEFORE_4_8.len() {
            BEFORE_4_8[at]
        } else if later < BEFORE_6_6.len() {
            BEFORE_6_6[later]
        } else {
            SINCE_6_6[later - BEFORE_6_6.len()]
        };
        at += 1;
    }
    all
}

/// The oldest kernel of the model: 2.6.37.
fn oldest() -> Mechanisms {
    Mechanisms {
        swapin_readahead: SwapinReadahead::Vanilla,
        swap_allocator: SwapAllocator::ScanSwapMap,
        rotating_swap: RotatingSwap::LowestFree,
        swap_slots: SwapSlots::Single,
        swap_turns: SwapTurns::Allocation,
        swap_cache_index: SwapCacheIndex::Trees,
        lru_unit: LruUnit::Zone,
        direct_throttle: DirectThrottle::LeftOut,
        new_anon: NewAnon::Active,
        workingset: Workingset::Off,
        page_references: PageReferences::Anon,
        inactive_ratio: InactiveRatio::ZoneSize,
        enough_inactive_file: EnoughInactiveFile::Ignored,
        scan_balance: ScanBalance::Rotated,
        scan_control: ScanControlTime::Batch,
        refault_deactivation: RefaultDeactivation::Off,
        lruvec_stats: LruvecStats::Current,
        reclaim_stall: ReclaimStall::CongestionWait,
        isolated_limit: IsolatedLimit::All,
        isolated_wait: IsolatedWait::Fewer,
        hopeless_node: HopelessNode::PagesScanned,
        scan_target: ScanTarget::Unbounded,
        small_scan: SmallScan::Saved,
        batch_stall: BatchStall::None,
        plug: Plug::Queue,
        reclaim_plug: ReclaimPlug::Off,
        swapin_plug: SwapinPlug::Off,
        plug_flush: PlugFlush::Requests,
        plug_merge: PlugMerge::All,
        request_tags: RequestTags::Classes,
        balance_pgdat: BalancePgdat::EveryPass,
        balance_gap: BalanceGap::EightTimesHigh,
        kswapd_wait: KswapdWait::CongestionWait,
        kswapd_wake: KswapdWake::Told,
        tail_writeback: TailWriteback::Keep,
        kswapd_classzone: KswapdClasszone::Vanilla,
        watermark_order: WatermarkOrder::Decay,
        watermark_gap: WatermarkGap::QuarterOfMin,
        min_free_bound: MinFreeBound::Megabytes64,
        min_free_without_thp: MinFreeWithoutThp::AtBoot,
        reserve_update: ReserveUpdate::AtBoot,
        fair_zones: FairZones::Off,
        overcommit: Overcommit::Available,
        first_megabyte: FirstMegabyte::Used,
        migrate_types: MigrateTypes::LeftOut,
        watermark_boost: WatermarkBoost::Off,
        page_tables: PageTables::LeftOut,
        slab_pages: SlabPages::LeftOut,
        swap_bios: SwapBios::LeftOut,
        readahead_size: ReadaheadSize::Fixed,
        read_folios: ReadFolios::Pages,
        compaction: Compaction::LeftOut,
        fast_migrateblock: FastMigrateblock::MarkedFirst,
        virtio_memory: VirtioMemory::LeftOut,
        dma_pool: DmaPool::None,
        skipped_pages: SkippedPages::Quarter,
        pcp_lists: PcpLists::LeftOut,
        zone_size: ZoneSize::Present,
        dirtyable: Dirtyable::AnonToo,
        dirty_reserve: DirtyReserve::None,
        dirty_ratios: DirtyRatios::Percent,
        throttle: Throttle::Foreground,
        balanced_rate: BalancedRate::Any,
        position_ratio: PositionRatio::Unbounded,
        strictlimit: Strictlimit::Off,
        idle_devices: IdleDevices::Ratio,
        proportions: Proportions::Prop,
        dirty_limit_start: DirtyLimitStart::Zero,
        write_folios: WriteFolios::Pages,
        max_sectors: MaxSectors::Sectors1024,
        cgroup_writeback: CgroupWriteback::Off,
        group_dirty_stats: GroupDirtyStats::Current,
        bandwidth_sampling: BandwidthSampling::Rounds,
        timer_wheel: TimerWheel::Cascading,
        preemption: Preemption::Prompt,
        fair_class: FairClass::Cfs,
        base_slice: BaseSlice::Long,
        position_time: PositionTime::AfterSample,
        balance_loop: BalanceLoop::AtEnd,
        dirty_exceeded: DirtyExceeded::Either,
        writeback_errors: WritebackErrors::MappingFlag,
        sync_errors: SyncErrors::Cleared,
        nfs_commit: NfsCommit::HalfOfWrites,
        nfs_unstable: NfsUnstable::Reclaimable,
        nfs_congestion: NfsCongestion::Reclaim,
        writeback_slice: WritebackSlice::Fixed,
        list_lock: ListLock::Inode,
        writeback_round: WritebackRound::Open,
        bdi_background: BdiBackground::Off,
        xfs_ahead: XfsAhead::Fixed,
        stable_pages: StablePages::Off,
        reclaim_file_writes: ReclaimFileWrites::Anybody,
        context_readahead: ContextReadahead::AnyPage,
        fault_around: FaultAround::Off,
        alloc_retry: AllocRetry::Always,
    }
}

/// Versions that the model knows, oldest first.
const VERSIONS: &[Version] = &[
    v2_6(37),
    v2_6(38),
    v2_6(39),
    v(3, 0),
    v(3, 1),
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
    v(4, 1),
    v(4, 2),
    v(4, 3),
    v(4, 4),
    v(4, 5),
    v(4, 6),
    v(4, 7),
    v(4, 8),
    v(4, 9),
    v(4, 10),
    v(4, 11),
    v(4, 12),
    v(4, 13),
    v(4, 14),
    v(4, 17),
    v(5, 0),
    v(5, 2),
    v(5, 5),
    v(5, 7),
    v(5, 8),
    v(5, 9),
    v(5, 13),
    v(5, 14),
    v(5, 15),
    v(5, 16),
    v(5, 18),
    v(6, 0),
    v(6, 1),
    v(6, 2),
    v(6, 5),
    v(6, 6),
    v(6, 7),
    v(6, 9),
    v(6, 10),
    v(6, 12),
    v(6, 13),
    v(6, 14),
    v(6, 15),
    v(6, 16),
    v(6, 17),
    v(6, 18),
];

/// Versions that the model knows, oldest first.
pub fn versions() -> &'static [Version] {
    VERSIONS
}

impl Version {
    /// The version that `text` names: `v3.6`, `3.6`, `v2.6.38`.
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
    use lowmark_record::Release;

    #[test]
    fn versions_differ_where_history_says() {
        let of = |text| at(Version::known(text).unwrap());
        assert_eq!(of("v2.6.37").plug, Plug::Queue);
        assert_eq!(of("2.6.39").plug, Plug::Task);
        assert_eq!(of("v3.0").throttle, Throttle::Foreground);
        assert_eq!(of("v3.1").throttle, Throttle::ForegroundBounded);
        assert_eq!(of("v3.2").throttle, Throttle::PauseControl);
        assert_eq!(of("v3.13").swapin_readahead, SwapinReadahead::Vanilla);
        assert_eq!(of("v3.14").swapin_readahead, SwapinReadahead::SwapinNrPages);
        assert_eq!(of("3.6").swapin_plug, SwapinPlug::On);
        assert_eq!(of("v3.5").swapin_plug, SwapinPlug::Off);
        assert_eq!(of("v4.7").fair_zones, FairZones::On);
        assert_eq!(of("v4.8").fair_zones, FairZones::Off);
        assert_eq!(of("v4.8").lru_unit, LruUnit::Node);
        assert_eq!(of("v5.8").new_anon, NewAnon::Active);
        assert_eq!(of("v5.9").new_anon, NewAnon::Inactive);
        assert_eq!(of("v6.1").scan_balance, ScanBalance::IoCost);
        assert_eq!(of("v6.2").scan_balance, ScanBalance::WorkCost);
        assert_eq!(of("v6.1").pcp_lists, PcpLists::Fixed);
        assert_eq!(of("v6.12").pcp_lists, PcpLists::Tuned);
        assert_eq!(of("v6.12").swap_slots, SwapSlots::Cache);
        assert_eq!(of("v6.18").swap_slots, SwapSlots::Single);
    }

    #[test]
    fn versions_of_2_6_have_three_numbers() {
        let oldest = Version::known("v2.6.37").unwrap();
        assert_eq!(oldest.to_string(), "v2.6.37");
        assert_eq!(oldest.release(), Release::v2_6(37));
        assert!(VERSIONS.is_sorted());
        for unknown in ["v2.6", "v2.6.36", "v2.6.37.1", "v3.2.0", "2.37"] {
            assert!(Version::known(unknown).is_err(), "{unknown}");
        }
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
    fn swappiness_goes_further_from_5_8_on() {
        let kernel = |version: &str| {
            let mut spec = lowmark_spec::KernelSpec {
                text: version.into(),
                version: version.into(),
                toggles: Vec::new(),
                sysctl: Default::default(),
            };
            spec.sysctl.insert("swappiness".into(), "150".into());
            crate::kernel::Kernel::resolve(&spec)
        };
        assert_eq!(
            kernel("v6.1").map(|kernel| kernel.sysctl.swappiness),
            Ok(150)
        );
        assert!(kernel("v5.5").unwrap_err().to_string().contains("0 to 100"));
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
