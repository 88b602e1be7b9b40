//! `memory.min` and `memory.low`: what of a group's memory reclaim leaves alone (`mem_cgroup_calculate_protection`).
//!
//! 1. What a group uses of the protection that it asks for is what it *claims*.
//! 2. Just below the group whose memory is reclaimed, a group has all that it asks for.
//! 3. Farther below, the groups in one share what the one above has. If they claim more, each gets a part of it by
//!    its claim. If they claim less, each has its claim; with `memory_recursiveprot` (8a931f801340, 5.7) the rest goes to
//!    all of them by what else they use.
//!    Before 5.7 (503970e42325) a group that uses more than it asks for claims nothing, and has its part all the same. Before 4.18
//!    (230671533d64) nothing is shared: what uses less than its own `memory.low` is protected, if the same is so of
//!    all groups above.
//! 4. What comes out is kept in the group (`emin`, `elow`). It is only as new as the last walk that came by: a walk
//!    computes it from the top down, and does not touch that of the group whose memory is reclaimed.

use super::Memcontrol;
use crate::ids::MemcgId;
use crate::kernel::{PartlyProtected, ProtectionShares, TargetProtection};
use crate::mm::Mm;
use crate::mm::types::SWAP_CLUSTER_MAX;

/// What a group has of the protection of the one above it, pages (`effective_protection`).
///
/// `usage` and `parent_usage` are pages in use, `setting` is what the group asks for, `parent_effective` what the group above has,
/// and `siblings_claim` what all groups in that one claim. With `recursive`, what is not claimed is given to all of them.
fn effective_protection(
    usage: u64,
    parent_usage: u64,
    setting: u64,
    parent_effective: u64,
    siblings_claim: u64,
    recursive: bool,
) -> u64 {
    let part =
        |of: u64, by: u64, whole: u64| (u128::from(of) * u128::from(by) / u128::from(whole)) as u64;
    let claim = usage.min(setting);
    if siblings_claim > parent_effective {
        return part(claim, parent_effective, siblings_claim);
    }
    let shares_rest = recursive
        && parent_effective > siblings_claim
        && parent_usage > siblings_claim
        && usage > claim;
    let rest = if shares_rest {
        part(
            parent_effective - siblings_claim,
            usage - claim,
            parent_usage - siblings_claim,
        )
    } else {
        0
    };
    claim + rest
}

/// The same from 4.18 to 5.6 (`mem_cgroup_protected`). `siblings_claim` has nothing of groups that use more than they ask for, yet
/// the part of such a group is computed as if it had: parts can add up to more than the group above has.
fn effective_within(usage: u64, setting: u64, parent_effective: u64, siblings_claim: u64) -> u64 {
    let most = setting.min(parent_effective);
    let claim = usage.min(setting);
    if most == 0 || claim == 0 || siblings_claim == 0 {
        return most;
    }
    let part = u128::from(parent_effective) * u128::from(claim) / u128::from(siblings_claim);
    u128::from(most).min(part) as u64
}

/// Pages of a list that count for how much of it is scanned, where a part of the group's memory is protected
/// (`apply_proportional_protection`, 9783aa9917f8, 5.4).
pub(crate) fn unprotected_part(list: u64, protection: u64, usage: u64) -> u64 {
    let usage = usage.max(protection);
    let kept = u128::from(list) * u128::from(protection) / u128::from(usage + 1);
    (list - kept as u64).max(SWAP_CLUSTER_MAX)
}

/// How far a group is protected from a reclaimer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protected {
    /// Not as a whole.
    No,
    /// All of it, as long as there is anything else (`mem_cgroup_below_low`).
    Low,
    /// All of it (`mem_cgroup_below_min`).
    Min,
}

impl Memcontrol {
    /// What the groups in one claim of `memory.min` and of `memory.low` (`children_min_usage`, `children_low_usage`).
    fn claims_of_children(&self, parent: MemcgId) -> (u64, u64) {
        let within = self.rules.protection_shares == ProtectionShares::Within;
        let claim = |usage: u64, setting: u64| {
            if within && usage > setting {
                0
            } else {
                usage.min(setting)
            }
        };
        let children = self.groups.iter().skip(1);
        let children = children.filter(|group| group.parent == parent);
        children.fold((0, 0), |(min, low), group| {
            (
                min + claim(group.usage, group.min),
                low + claim(group.usage, group.low),
            )
        })
    }

    /// `mem_cgroup_calculate_protection`: a walk through the groups in `root` comes to one of them.
    pub(crate) fn calculate_protection(&mut self, root: MemcgId, memcg: MemcgId) {
        if memcg == root || self.groups[memcg].usage == 0 {
            return;
        }
        let group = &self.groups[memcg];
        let (usage, above) = (group.usage, group.parent);
        let (emin, elow) = if above == root {
            (group.min, group.low)
        } else {
            let parent = &self.groups[above];
            let (min_claims, low_claims) = self.claims_of_children(above);
            let within = self.rules.protection_shares == ProtectionShares::Within;
            let share = |setting, effective, claims| {
                if within {
                    return effective_within(usage, setting, effective, claims);
                }
                let recursive = self.recursive_protection;
                effective_protection(usage, parent.usage, setting, effective, claims, recursive)
            };
            (
                share(group.min, parent.emin, min_claims),
                share(group.low, parent.elow, low_claims),
            )
        };
        let group = &mut self.groups[memcg];
        (group.emin, group.elow) = (emin, elow);
    }

    /// What of a group makes that less of it is scanned for the sake of `root`: `memory.min`, `memory.low`
    /// (`mem_cgroup_protection`).
    pub(crate) fn protection(&self, root: MemcgId, memcg: MemcgId) -> (u64, u64) {
        let counts = memcg != root || self.rules.target_protection == TargetProtection::StalePart;
        match self.groups.get(memcg) {
            Some(group) if counts && self.rules.partly_protected != PartlyProtected::Whole => {
                (group.emin, group.elow)
            }
            _ => (0, 0),
        }
    }

    /// `mem_cgroup_low` of 4.13 to 4.17: a group and all above it below `root` use less than their own `memory.low`.
    fn low_of_each(&self, root: MemcgId, memcg: MemcgId) -> Protected {
        let mut above = self.ancestors(memcg).take_while(|&at| at != root);
        let is_low = above.all(|at| self.groups[at].usage < self.groups[at].low);
        if is_low && memcg != root {
            Protected::Low
        } else {
            Protected::No
        }
    }

    /// Pages in use by a group and all inside it (`mem_cgroup_size`).
    pub(crate) fn usage(&self, memcg: MemcgId) -> u64 {
        self.groups[memcg].usage
    }
}

impl Mm {
    /// Whether all of a group is protected from reclaim for the sake of `root`.
    pub(crate) fn protected(&self, root: MemcgId, memcg: MemcgId) -> Protected {
        let stale = self.kernel.mechanisms.memcg.target_protection == TargetProtection::Stale;
        if memcg == MemcgId::ROOT || memcg == root && !stale {
            return Protected::No;
        }
        if self.kernel.mechanisms.memcg.protection_shares == ProtectionShares::Each {
            return self.memcontrol.low_of_each(root, memcg);
        }
        let group = &self.memcontrol.groups[memcg];
        match group.usage {
            usage if group.emin >= usage => Protected::Min,
            usage if group.elow >= usage => Protected::Low,
            _ => Protected::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use lowmark_spec::random::Stream;
    use lowmark_spec::workload::Cgroup;

    /// Pages of a mebibyte.
    const M: u64 = 256;

    /// The kernel's own test expects some 29 and 21 MB of two groups that ask for 75 and 25 MB of 50 MB
    /// (`tools/testing/selftests/cgroup/test_memcontrol.c`): that is where what each has is what each uses.
    #[test]
    fn the_tree_of_the_kernels_test_comes_to_rest_where_that_expects_it() {
        let left = |c: u64, d: u64| {
            let claims = c.min(75 * M) + d.min(25 * M);
            let share =
                |usage, asked| effective_protection(usage, c + d, asked, 50 * M, claims, false);
            (share(c, 75 * M), share(d, 25 * M))
        };
        assert_eq!(left(29 * M, 21 * M), (29 * M, 21 * M));
        // With 50 MB each, either is beyond what it has.
        assert_eq!(left(50 * M, 50 * M), (50 * M * 50 / 75, 25 * M * 50 / 75));
        let (c, d) = left(29 * M + 3, 21 * M + 3);
        assert!(c < 29 * M + 3 && d < 21 * M + 3);
        // A group that asks for nothing has nothing, unless what nobody claims is handed out.
        assert_eq!(
            effective_protection(50 * M, 150 * M, 0, 50 * M, 75 * M, true),
            0
        );
        assert_eq!(
            effective_protection(50 * M, 150 * M, 0, 50 * M, 0, false),
            0
        );
        assert_eq!(
            effective_protection(50 * M, 150 * M, 0, 60 * M, 0, true),
            20 * M
        );
    }

    /// The groups c and d of the kernel's own test, from 4.18 to 5.6. With 50 MB each, c alone claims: c has all 50 MB of the group
    /// above, and d the 25 MB that d asks for. Once d uses no more than 25 MB, both claim and share.
    #[test]
    fn to_5_6_a_group_beyond_what_it_asks_for_claims_nothing() {
        let share = |usage, asked, claims| effective_within(usage, asked, 50 * M, claims);
        assert_eq!(share(50 * M, 75 * M, 50 * M), 50 * M);
        assert_eq!(share(50 * M, 25 * M, 50 * M), 25 * M);
        assert_eq!(share(40 * M, 75 * M, 65 * M), 50 * M * 40 / 65);
        assert_eq!(share(25 * M, 25 * M, 65 * M), 50 * M * 25 / 65);
        // No group claims anything: each group has its own setting, and no more than the group above has.
        assert_eq!(share(90 * M, 75 * M, 0), 50 * M);
        assert_eq!(share(90 * M, 0, 0), 0);
    }

    /// What the documentation says of siblings (`cgroup-v2.rst`): together they have what they claim, or all that the group
    /// above has if they claim more; with `memory_recursiveprot` all that this one has, as far as they use it.
    #[test]
    fn siblings_share_all_that_there_is_and_no_more() {
        let mut stream = Stream::new(7, "siblings", 0);
        for round in 0..2000 {
            let count = 1 + stream.below(6) as usize;
            let mut draw = |most: u64| (0..count).map(|_| stream.below(most)).collect::<Vec<u64>>();
            let (usages, settings) = (draw(1000), draw(800));
            let (usage, claims) = (
                usages.iter().sum::<u64>(),
                usages.iter().zip(&settings).map(|(u, s)| *u.min(s)).sum(),
            );
            let above = stream.below(2000).min(usage);
            for recursive in [false, true] {
                let shares: Vec<u64> = usages
                    .iter()
                    .zip(&settings)
                    .map(|(&own, &asked)| {
                        effective_protection(own, usage, asked, above, claims, recursive)
                    })
                    .collect();
                let whole = if recursive { above } else { above.min(claims) };
                let sum: u64 = shares.iter().sum();
                // Each is rounded down.
                assert!(
                    sum <= whole && whole <= sum + count as u64,
                    "round {round}, {recursive}: {shares:?} of {whole}"
                );
                assert!(shares.iter().zip(&usages).all(|(share, own)| share <= own));
            }
        }
    }

    /// Groups with their parents, `memory.low` and usage in MB.
    fn tree(version: &str, groups: &[(Option<usize>, u64, u64)]) -> World {
        let specs: Vec<Cgroup> = groups
            .iter()
            .map(|&(parent, low, _)| Cgroup {
                parent,
                low: Some(low << 20),
                ..Cgroup::default()
            })
            .collect();
        let mut world = World::of_version(version);
        world.mm.make_cgroups(&specs, false, 1);
        for (at, &(_, _, usage)) in groups.iter().enumerate() {
            world.mm.memcontrol.groups[MemcgId::from(at + 1)].usage = usage * M;
        }
        world
    }

    fn elow(world: &World) -> [u64; 3] {
        [1, 2, 3].map(|group| world.mm.memcontrol.groups[MemcgId::from(group as usize)].elow / M)
    }

    /// The example of `mem_cgroup_protection` (`include/linux/memcontrol.h` of 6.1), MB for GB / 10: A has 20 of 30 protected, in it
    /// B uses 5 and C 25, and both ask for 10.
    #[test]
    fn who_is_protected_depends_on_whose_memory_is_reclaimed() {
        let [a, b, c] = [1, 2, 3].map(|group: usize| MemcgId::from(group));
        for version in ["v6.1", "v6.18"] {
            let mut world = tree(
                version,
                &[(None, 20, 30), (Some(0), 10, 5), (Some(0), 10, 25)],
            );
            for group in [a, b, c] {
                world
                    .mm
                    .memcontrol
                    .calculate_protection(MemcgId::ROOT, group);
            }
            assert_eq!(elow(&world), [20, 5, 10]);
            assert_eq!(world.mm.protected(MemcgId::ROOT, b), Protected::Low);
            assert_eq!(world.mm.protected(MemcgId::ROOT, c), Protected::No);
            assert_eq!(
                world.mm.memcontrol.protection(MemcgId::ROOT, c),
                (0, 10 * M)
            );
            // For the sake of A, B and C have all that they ask for, and A nothing.
            for group in [a, b, c] {
                world.mm.memcontrol.calculate_protection(a, group);
            }
            assert_eq!(elow(&world), [20, 10, 10]);
            assert_eq!(world.mm.memcontrol.protection(a, a), (0, 0));
            // Up to 6.2 what A once had still protects all of it, should it use no more than that.
            world.mm.memcontrol.groups[a].usage = 20 * M;
            let expected = match version {
                "v6.1" => Protected::Low,
                _ => Protected::No,
            };
            assert_eq!(world.mm.protected(a, a), expected, "{version}");
        }
    }

    /// Up to 5.3 a reclaimer scans as much of a protected group as of others; up to 5.8 it scans less by old protection even of
    /// the group at whose limit it reclaims.
    #[test]
    fn what_protects_a_part_of_a_group_depends_on_the_kernel() {
        let [a, b] = [1usize, 2].map(MemcgId::from);
        for (version, of_b, of_a) in [
            ("v5.3", 0, 0),
            ("v5.4", 10, 20),
            ("v5.8", 10, 20),
            ("v5.9", 10, 0),
            ("v6.18", 10, 0),
        ] {
            let mut world = tree(
                version,
                &[(None, 20, 30), (Some(0), 10, 25), (Some(0), 10, 5)],
            );
            for group in [a, b] {
                world
                    .mm
                    .memcontrol
                    .calculate_protection(MemcgId::ROOT, group);
            }
            let memcontrol = &world.mm.memcontrol;
            let low = |root, group| memcontrol.protection(root, group).1 / M;
            let found = (low(MemcgId::ROOT, b), low(a, a));
            assert_eq!(found, (of_b, of_a), "{version}");
        }
    }

    #[test]
    fn lists_are_scanned_by_what_is_not_protected() {
        assert_eq!(unprotected_part(1000, 0, 4000), 1000);
        assert_eq!(unprotected_part(1000, 1000, 3999), 750);
        // At least a batch, and no more is kept than there is.
        assert_eq!(unprotected_part(1000, 4000, 4000), SWAP_CLUSTER_MAX);
        assert_eq!(unprotected_part(1000, 9000, 4000), SWAP_CLUSTER_MAX);
    }
}
