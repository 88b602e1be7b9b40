//! Which kernel has which mechanism: the oldest one, and what [`HISTORY`] says of later ones.

use super::KernelError;
use super::blk_mq_history::BLK_MQ;
use super::block_history::BLOCKS;
pub use super::change::{Change, Version};
use super::change::{v, v2_6};
use super::early_history::BEFORE_4_8;
use super::free_page_history::FREE_PAGES;
use super::history::BEFORE_6_6;
use super::huge_page_history::HUGE_PAGES;
use super::kswapd_history::KSWAPD;
use super::lru_gen_history::LRU_GEN;
use super::lumpy_history::LUMPY;
use super::mechanisms::*;
use super::memcg_history::MEMCG;
use super::readahead_history::READAHEAD;
use super::recent_history::SINCE_6_6;
use super::shrinker_history::SHRINKERS;
use std::sync::OnceLock;

/// Every change between the oldest and the newest kernel of the model, in parts that are sorted by version each.
const PARTS: [&[Change]; 13] = [
    BEFORE_4_8, KSWAPD, BEFORE_6_6, SINCE_6_6, LUMPY, FREE_PAGES, SHRINKERS, HUGE_PAGES, BLOCKS,
    READAHEAD, LRU_GEN, BLK_MQ, MEMCG,
];

const CHANGES: usize = {
    let (mut part, mut changes) = (0, 0);
    while part < PARTS.len() {
        changes += PARTS[part].len();
        part += 1;
    }
    changes
};

/// Every change between the oldest and the newest kernel of the model, oldest first.
pub const HISTORY: &[Change] = &joined();

/// The parts as one list; what one version changed is in the order of the parts.
const fn joined() -> [Change; CHANGES] {
    let mut all = [BEFORE_4_8[0]; CHANGES];
    let mut taken = [0; PARTS.len()];
    let mut at = 0;
    while at < CHANGES {
        let mut oldest = PARTS.len();
        let mut part = 0;
        while part < PARTS.len() {
            if taken[part] < PARTS[part].len() {
                let next = PARTS[part][taken[part]].version;
                if oldest == PARTS.len() || next.is_before(PARTS[oldest][taken[oldest]].version) {
                    oldest = part;
                }
            }
            part += 1;
        }
        all[at] = PARTS[oldest][taken[oldest]];
        taken[oldest] += 1;
        at += 1;
    }
    all
}

/// Releases from the oldest to the newest kernel of the model: major number, first and last minor number.
const RELEASES: [(u32, u32, u32); 4] = [(3, 0, 19), (4, 0, 20), (5, 0, 19), (6, 0, 18)];
/// Those of 2.6.
const RELEASES_OF_2_6: std::ops::RangeInclusive<u32> = 36..=39;

/// Releases that the model has, oldest first: every one from 2.6.36 to 6.18.
pub fn versions() -> &'static [Version] {
    static ALL: OnceLock<Vec<Version>> = OnceLock::new();
    ALL.get_or_init(|| {
        let later = RELEASES
            .iter()
            .flat_map(|&(major, first, last)| (first..=last).map(move |minor| v(major, minor)));
        RELEASES_OF_2_6.map(v2_6).chain(later).collect()
    })
}

impl Version {
    /// The release that `text` names, `v3.6`, `3.6` or `v2.6.38`, and whether it is a stable kernel of that release,
    /// such as `6.1.192`.
    ///
    /// # Errors
    ///
    /// When the model has no such release.
    pub fn parse(text: &str) -> Result<(Version, bool), KernelError> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        let numbers: Option<Vec<u32>> = bare.split('.').map(|part| part.parse().ok()).collect();
        let (version, stable) = match numbers.as_deref() {
            Some([2, 6, patch]) => (v2_6(*patch), false),
            Some([2, 6, patch, _]) => (v2_6(*patch), true),
            Some([major, minor]) if *major > 2 => (v(*major, *minor), false),
            // The kernel of a distribution may call the release itself 6.1.0.
            Some([major, minor, patch]) if *major > 2 => (v(*major, *minor), *patch > 0),
            _ => (v(0, 0), false),
        };
        if versions().contains(&version) {
            Ok((version, stable))
        } else {
            Err(KernelError::UnknownVersion { found: text.into() })
        }
    }

    /// The release that `text` names.
    ///
    /// # Errors
    ///
    /// When the model has no such release.
    pub fn known(text: &str) -> Result<Version, KernelError> {
        Ok(Version::parse(text)?.0)
    }
}

/// The mechanisms of a release.
pub fn at(version: Version) -> Mechanisms {
    applied(HISTORY.iter().filter(|change| change.version <= version))
}

/// Changes that stable kernels of earlier releases took over, with the release; from which of its stable kernels on is not
/// known here.
pub(super) const STABLE: &[(&str, Version)] = &[
    ("thp-swap-partitions-only", v(4, 14)),
    ("thp-swap-partitions-only", v(4, 19)),
    ("thp-swap-partitions-only", v(5, 4)),
    ("thp-swap-partitions-only", v(5, 8)),
    ("memory-high-above-delays", v(5, 4)),
    ("partly-low-has-a-second-round", v(5, 10)),
    ("one-counter-of-tags", v(6, 1)),
    ("free-inode-at-once", v(6, 1)),
    ("free-inode-at-once", v(6, 6)),
    ("free-pages-of-empty-zones", v(6, 1)),
    ("free-pages-of-empty-zones", v(6, 6)),
    ("free-pages-of-empty-zones", v(6, 12)),
    ("gen-protect-page-cache", v(6, 1)),
    ("gen-protect-page-cache", v(6, 6)),
    ("gen-count-refaults", v(6, 6)),
    ("gen-stop-at-high", v(6, 6)),
    ("gen-small-groups", v(6, 6)),
    ("gen-wake-flusher", v(6, 12)),
];

/// The mechanisms that a change alters in the kernel before it.
pub fn altered_by(change: &Change) -> Vec<&'static str> {
    let before = applied(HISTORY.iter().take_while(|it| it.name != change.name));
    let mut after = before;
    change.apply(&mut after);
    let settings = after.settings().into_iter().zip(before.settings());
    let altered = settings.filter(|(after, before)| after != before);
    altered.map(|((name, _), _)| name).collect()
}

/// The oldest kernel with some changes.
pub(super) fn applied<'c>(changes: impl Iterator<Item = &'c Change>) -> Mechanisms {
    let mut mechanisms = Mechanisms::oldest();
    changes.for_each(|change| change.apply(&mut mechanisms));
    mechanisms
}

/// A change by name.
///
/// # Errors
///
/// When there is none; a mechanism of that name needs a variant.
pub fn change(name: &str) -> Result<&'static Change, KernelError> {
    let found = HISTORY.iter().find(|change| change.name == name);
    found.ok_or_else(|| KernelError::UnknownChange { found: name.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmark_record::Release;

    #[test]
    fn versions_differ_where_history_says() {
        let of = |text| at(Version::known(text).unwrap());
        assert_eq!(of("v2.6.37").block.plug, Plug::Queue);
        assert_eq!(of("2.6.39").block.plug, Plug::Task);
        assert_eq!(of("v3.0").writeback.throttle, Throttle::Foreground);
        assert_eq!(of("v3.1").writeback.throttle, Throttle::ForegroundBounded);
        assert_eq!(of("v3.2").writeback.throttle, Throttle::PauseControl);
        assert_eq!(of("v3.13").swap.swapin_readahead, SwapinReadahead::Vanilla);
        assert_eq!(
            of("v3.14").swap.swapin_readahead,
            SwapinReadahead::SwapinNrPages
        );
        assert_eq!(of("3.6").swap.swapin_plug, SwapinPlug::On);
        assert_eq!(of("v3.5").swap.swapin_plug, SwapinPlug::Off);
        assert_eq!(of("v4.7").zones.fair_zones, FairZones::On);
        assert_eq!(of("v4.8").zones.fair_zones, FairZones::Off);
        assert_eq!(of("v4.8").reclaim.lru_unit, LruUnit::Node);
        assert_eq!(of("v5.8").reclaim.new_anon, NewAnon::Active);
        assert_eq!(of("v5.9").reclaim.new_anon, NewAnon::Inactive);
        assert_eq!(of("v6.1").reclaim.scan_balance, ScanBalance::IoCost);
        assert_eq!(of("v6.2").reclaim.scan_balance, ScanBalance::WorkCost);
        assert_eq!(of("v6.1").zones.pcp_lists, PcpLists::Fixed);
        assert_eq!(of("v6.12").zones.pcp_lists, PcpLists::Tuned);
        assert_eq!(of("v6.12").swap.swap_slots, SwapSlots::Cache);
        assert_eq!(of("v6.18").swap.swap_slots, SwapSlots::Single);
    }

    #[test]
    fn versions_of_2_6_have_three_numbers() {
        let oldest = Version::known("v2.6.36").unwrap();
        assert_eq!(oldest.to_string(), "v2.6.36");
        assert_eq!(oldest.release(), Release::v2_6(36));
        assert!(versions().is_sorted());
        for unknown in [
            "v2.6", "v2.6.35", "2.37", "v3.20", "v6.19", "v6", "v6.1.2.3", "six", "",
        ] {
            assert!(Version::known(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn stable_kernels_and_those_without_a_change_are_versions() {
        for (text, release, stable) in [
            ("v4.19", v(4, 19), false),
            ("5.10", v(5, 10), false),
            ("6.1.192", v(6, 1), true),
            ("v6.1.0", v(6, 1), false),
            ("2.6.38.8", v2_6(38), true),
        ] {
            assert_eq!(Version::parse(text), Ok((release, stable)), "{text}");
        }
        assert_eq!(at(v(5, 10)), at(v(5, 9)));
    }

    #[test]
    fn a_change_applied_alone_is_all_that_differs() {
        let mut alone = at(v(3, 13));
        change("swapin_nr_pages").unwrap().apply(&mut alone);
        alone.swap.swapin_readahead = SwapinReadahead::Vanilla;
        assert_eq!(alone, at(v(3, 13)));
    }

    #[test]
    fn history_is_in_order_and_within_the_known_versions() {
        assert!(HISTORY.is_sorted_by_key(|change| change.version));
        for change in HISTORY {
            assert!(
                versions().contains(&change.version),
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
            let text = format!("{version},swappiness=150");
            crate::kernel::Kernel::resolve(
                &lowmark_spec::KernelSpec::parse(&text).expect("a kernel"),
            )
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
