//! How many pages came back of those that were taken or kept, by tier, and what follows from it (`struct ctrl_pos`).
//!
//! 1. While a generation is the oldest, pages that are taken from it, pages that are kept although they are in it, and
//!    pages that come back are counted. When the next one is the oldest, half of that goes into averages.
//! 2. Of two kinds of pages the one is taken of which a smaller part comes back, each part being weighted by a gain.

use crate::kernel::GenType;
use crate::mm::frames::generation::MAX_NR_TIERS;

/// The fewest pages that have to come back before it counts (`MIN_LRU_BATCH`).
const FEWEST: u64 = 64;

/// What is known of anonymous pages, or of pages of files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tiers {
    /// `avg_refaulted`
    avg_refaulted: [u64; MAX_NR_TIERS],
    /// `avg_total`
    avg_total: [u64; MAX_NR_TIERS],
    /// Pages that have come back since the oldest generation is this one (`refaulted`).
    pub(in crate::mm) refaulted: [u64; MAX_NR_TIERS],
    /// Pages taken from it (`evicted`).
    pub(in crate::mm) evicted: [u64; MAX_NR_TIERS],
    /// Pages that were kept although they were in it (`protected`).
    pub(in crate::mm) protected: [u64; MAX_NR_TIERS],
}

/// A part of the pages, as it is compared with others (`struct ctrl_pos`).
#[derive(Debug, Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

impl Position {
    /// `positive_ctrl_err`: whether the other ones come back no more often than these, or too few came back to tell.
    fn is_no_better_than(self, other: Position) -> bool {
        let come_back = u128::from(other.refaulted) * u128::from((self.total + FEWEST) * self.gain);
        let here = u128::from(self.refaulted + 1) * u128::from(other.total * other.gain);
        other.refaulted < FEWEST || come_back <= here
    }
}

impl Tiers {
    /// `reset_ctrl_pos`: another generation is the oldest now.
    pub(in crate::mm) fn close(&mut self) {
        for tier in 0..MAX_NR_TIERS {
            let total = self.evicted[tier] + self.protected[tier];
            self.avg_refaulted[tier] = (self.avg_refaulted[tier] + self.refaulted[tier]) / 2;
            self.avg_total[tier] = (self.avg_total[tier] + total) / 2;
        }
        (self.refaulted, self.evicted, self.protected) = Default::default();
    }

    /// `read_ctrl_pos` of a tier.
    fn of(&self, tier: usize, gain: u64) -> Position {
        Position {
            refaulted: self.avg_refaulted[tier] + self.refaulted[tier],
            total: self.avg_total[tier] + self.evicted[tier] + self.protected[tier],
            gain,
        }
    }

    /// The same of all tiers together.
    fn of_all(&self, gain: u64) -> Position {
        let all = (0..MAX_NR_TIERS).map(|tier| self.of(tier, gain));
        let none = Position {
            refaulted: 0,
            total: 0,
            gain,
        };
        all.fold(none, |sum, one| Position {
            refaulted: sum.refaulted + one.refaulted,
            total: sum.total + one.total,
            gain,
        })
    }

    /// The highest tier whose pages may be taken, as none up to it comes back more often than `base`.
    fn highest(&self, base: Position, gain: u64) -> usize {
        let good = |&tier: &usize| base.is_no_better_than(self.of(tier, gain));
        (1..MAX_NR_TIERS).take_while(good).count()
    }

    /// `get_tier_idx`: the highest tier whose pages may be taken. Pages of higher ones are kept.
    pub(in crate::mm) fn tier_limit(&self, rule: GenType) -> usize {
        let (first, others) = match rule {
            GenType::FirstTier => (1, 2),
            GenType::AllTiers => (2, 3),
        };
        self.highest(self.of(0, first), others)
    }

    /// Whether pages of files are to be taken rather than anonymous ones, and the highest tier of the ones that are, where
    /// that follows with it (`get_type_to_scan`).
    pub(in crate::mm) fn file_first(
        [anon, file]: &[Tiers; 2],
        swappiness: u64,
        rule: GenType,
    ) -> (bool, Option<usize>) {
        let gains = [swappiness, 200 - swappiness];
        if rule == GenType::AllTiers {
            let first = anon
                .of_all(gains[0])
                .is_no_better_than(file.of_all(gains[1]));
            return (first, None);
        }
        let [of_anon, of_file] = [anon.of(0, gains[0]), file.of(0, gains[1])];
        if of_anon.is_no_better_than(of_file) {
            (true, Some(file.highest(of_anon, gains[1])))
        } else {
            (false, Some(anon.highest(of_file, gains[0])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that came back, and all, by tier.
    fn tiers(by_tier: [(u64, u64); MAX_NR_TIERS]) -> Tiers {
        Tiers {
            refaulted: by_tier.map(|(refaulted, _)| refaulted),
            evicted: by_tier.map(|(_, total)| total),
            ..Tiers::default()
        }
    }

    const NONE: (u64, u64) = (0, 0);

    fn file_first(anon: Tiers, file: Tiers, swappiness: u64, rule: GenType) -> bool {
        Tiers::file_first(&[anon, file], swappiness, rule).0
    }

    /// Worked out by hand from the formula of `positive_ctrl_err`.
    #[test]
    fn the_kind_that_comes_back_less_often_is_taken() {
        for rule in [GenType::FirstTier, GenType::AllTiers] {
            let first = |refaulted, total| tiers([(refaulted, total), NONE, NONE, NONE]);
            // Nothing is known.
            assert!(file_first(first(0, 0), first(0, 0), 60, rule));
            // 500 * 64 * 60 = 1,920,000 > 1 * 2,000 * 140 = 280,000.
            assert!(!file_first(first(0, 0), first(500, 2000), 60, rule));
            // 500 * 1,064 * 60 = 31,920,000 <= 201 * 2,000 * 140 = 56,280,000.
            assert!(file_first(first(200, 1000), first(500, 2000), 60, rule));
            // 500 * 1,064 * 100 = 53,200,000 > 201 * 2,000 * 100 = 40,200,000.
            assert!(!file_first(first(200, 1000), first(500, 2000), 100, rule));
        }
        // 30 pages are too few to tell; with those of the second tier, 70 * 64 * 60 = 268,800 > 1 * 1,500 * 140 = 210,000.
        let file = || tiers([(30, 1000), (40, 500), NONE, NONE]);
        assert!(file_first(Tiers::default(), file(), 60, GenType::FirstTier));
        assert!(!file_first(Tiers::default(), file(), 60, GenType::AllTiers));
    }

    #[test]
    fn tiers_that_come_back_more_often_are_kept() {
        let file = tiers([(60, 2000), (100, 2000), NONE, NONE]);
        // 100 * 2,064 * 1 = 206,400 <= 61 * 2,000 * 2 = 244,000.
        assert_eq!(file.tier_limit(GenType::FirstTier), 3);
        // 100 * 2,064 * 2 = 412,800 > 61 * 2,000 * 3 = 366,000.
        assert_eq!(file.tier_limit(GenType::AllTiers), 0);
    }

    #[test]
    fn the_first_tier_of_the_other_kind_is_the_measure_when_kinds_are_compared() {
        let limit = |total| {
            let anon = tiers([(200, 1000), NONE, NONE, NONE]);
            let file = tiers([NONE, (300, total), NONE, NONE]);
            Tiers::file_first(&[anon, file], 60, GenType::FirstTier)
        };
        // 300 * 1,064 * 60 = 19,152,000 > 201 * 600 * 140 = 16,884,000, and <= 201 * 1,000 * 140 = 28,140,000.
        assert_eq!(limit(600), (true, Some(0)));
        assert_eq!(limit(1000), (true, Some(3)));
    }

    #[test]
    fn averages_halve_and_are_cut() {
        let mut tiers = tiers([(51, 51), NONE, NONE, NONE]);
        (tiers.avg_refaulted[0], tiers.avg_total[0]) = (100, 100);
        tiers.close();
        assert_eq!((tiers.avg_refaulted[0], tiers.avg_total[0]), (75, 75));
        tiers.close();
        assert_eq!((tiers.avg_refaulted[0], tiers.avg_total[0]), (37, 37));
    }
}
