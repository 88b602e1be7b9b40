//! Which parts of a kernel the model carries out, and which it leaves out.
//!
//! Mechanisms are changes of the kernel. What the model lacks for some kernels, or for all, is none of those: it is
//! listed here, by `lowmark list coverage`, and named where kernels are compared of which the model has more or less.
//!
//! 1. A [`Subject`] is a part of the kernel, with the versions that have it.
//! 2. The subjects of [`SWITCHED`] are part of the model from some version on, and [`Coverage`] says which of them a run
//!    has. `--kernel v6.1,model.slab_pages=on` changes one for a run.
//! 3. [`ABSENT`] names the parts that the model has for no kernel.

use super::change::{v, v2_6};
use super::{Description, KernelError, Version};

/// A part of the kernel that the model has for some versions or for none.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// What the kernel does, and what a run without it is like.
    pub doc: &'static str,
    /// First version of the kernel that has it; the oldest of the model where it is older.
    pub since: Version,
    /// First version of the kernel that has it no more.
    pub until: Option<Version>,
    /// First version with which the model has it, unless a run says otherwise.
    pub modelled_since: Option<Version>,
    /// First version with which a run can ask for it: what the model does is what this version did.
    pub possible_since: Option<Version>,
}

impl Subject {
    /// Whether a version of the kernel has it.
    pub fn is_in(&self, version: Version) -> bool {
        version >= self.since && self.until.is_none_or(|until| version < until)
    }
}

macro_rules! switched {
    ($( $(#[doc = $doc:literal])* $field:ident: $since:expr, $modelled:expr, $possible:expr; )*) => {
        /// Which parts of the kernel a run of the model has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Coverage { $( $(#[doc = $doc])* pub $field: bool, )* }

        /// Parts of the kernel that the model has for some versions.
        pub const SWITCHED: &[Subject] = &[ $( Subject {
            name: stringify!($field),
            doc: concat!($($doc),*),
            since: $since,
            until: None,
            modelled_since: $modelled,
            possible_since: $possible,
        } ),* ];

        impl Coverage {
            /// What the model has of a version unless a run says otherwise.
            pub fn of(version: Version) -> Coverage {
                let has = |since: Option<Version>| since.is_some_and(|since| version >= since);
                Coverage { $( $field: has($modelled), )* }
            }

            /// Every subject with whether it is there, in the order of [`SWITCHED`].
            pub fn settings(&self) -> Vec<(&'static str, bool)> {
                vec![ $( (stringify!($field), self.$field) ),* ]
            }

            /// Whether a subject is there; none if no subject is called so.
            pub fn get(&self, name: &str) -> Option<bool> {
                match name {
                    $( stringify!($field) => Some(self.$field), )*
                    _ => None,
                }
            }

            fn set(&mut self, name: &str, on: bool) {
                match name {
                    $( stringify!($field) => self.$field = on, )*
                    _ => {}
                }
            }
        }
    };
}

/// The oldest kernel of the model.
const OLDEST: Version = v2_6(36);

switched! {
    /// A region has a page of page tables, which cannot be moved, for each 2 MiB in use (`pte_alloc`). Without it they
    /// are a part of what the machine file calls `occupied`.
    page_tables: OLDEST, Some(v(4, 4)), Some(OLDEST);
    /// Nodes of the trees in which files, shared memory and swap find their pages take memory (`mm/slub.c`). Without it
    /// they are a part of `occupied`. Slabs are those of SLUB, and swap has its trees as from 4.11 on.
    slab_pages: OLDEST, None, Some(OLDEST);
    /// A page that a file system writes, and a block of a device, has a buffer head (`fs/buffer.c`), whose slab lies in a reclaimable
    /// pageblock. Without this buffer heads take no memory.
    buffer_heads: OLDEST, None, Some(OLDEST);
    /// Reclaim also shrinks caches (`shrink_slab`). The model has those of dentries, inodes and nodes of trees with shadows
    /// alone, in slabs; what file systems cache besides `metadata` and `extent_status` is a part of `occupied`. Without it files leave
    /// nothing behind but pages.
    shrinkers: OLDEST, Some(OLDEST), Some(OLDEST);
    /// ext3 and ext4 have their metadata in the page cache of the block device, read it from there, and hold on to what a
    /// transaction has changed until their journal has it (`fs/ext4`, `fs/jbd2`). XFS has its in buffers of its own, and its log,
    /// and keeps inodes that the kernel's cache has let go (`fs/xfs`). Without it metadata takes no memory and costs no I/O.
    metadata: OLDEST, Some(v(4, 4)), Some(OLDEST);
    /// ext4 remembers where extents of files lie, in slabs, and a shrinker forgets them (74cd15cd0270). The model has the rules
    /// of 3.19, where the shrinker takes files in turn and spares extents that were used since (2be12de98a1c).
    extent_status: v(3, 9), Some(v(4, 4)), Some(v(3, 19));
    /// Each page that swap writes or reads needs a bio from a slab, and a task that finds none waits for I/O to end
    /// (`bio_alloc`).
    swap_bios: OLDEST, Some(v(5, 0)), Some(v(5, 0));
    /// Requests of virtio disks need memory while they are under way (`virtblk_map_data`, `alloc_indirect_split`).
    virtio_memory: OLDEST, Some(v(5, 0)), Some(v(5, 0));
    /// Pages are moved so that larger blocks become free: by tasks that need a block and can wait (`compact_zone`,
    /// 748446bb6b5a, 2.6.35), and in the background by kswapd (7be62de99adc, 3.4) and kcompactd (698b1b30642f, 4.6). Without
    /// it a kernel is one that was built so.
    compaction: OLDEST, Some(OLDEST), Some(OLDEST);
    /// Private memory gets transparent huge pages where the machine has them (`thp = true`): by faults, by defrag modes,
    /// split and swapped out as the version does (71e3aac0724f). Without them a machine of this kind has higher watermarks
    /// and nothing else. Regions begin on 2 MiB, as from 6.7 on; what a batch of 3.x takes of them ends as from 4.3 on.
    huge_pages: v2_6(38), Some(v2_6(38)), Some(v2_6(38));
    /// Files are read into large folios on file systems that write in them (`page_cache_ra_order`, 793917d997df). The
    /// model has the rules of 6.17, where readahead remembers the order of its folios (c4602f9fa77f) and ends windows
    /// where they end (5a9236b33d51). Without it files are read into single pages.
    read_folios: v(5, 18), Some(v(6, 17)), Some(v(6, 17));
    /// Memory cgroups, v2, in each other to any depth: `memory.max`, `memory.high`, `memory.low`, `memory.min`,
    /// `memory.swap.max`, `memory.reclaim`, `memory.events` and reclaim's part of `memory.stat`; of v1 limits and soft limits.
    /// A workload with groups is refused without it.
    memory_cgroups: OLDEST, Some(v(4, 13)), Some(v(4, 13));
    /// Memory cgroups are charged for objects in slabs, by the object since 964d4bd370d5 (5.9), and their caches are shrunk
    /// apart (cb731d6c62bb, 4.0). The model charges them for dentries, inodes and, with `slab_pages`, nodes of trees of files;
    /// not for stacks and other objects of the kernel. Without it all objects are the root's.
    cgroup_slab: v(3, 8), Some(v(6, 0)), Some(v(6, 0));
}

const fn absent(
    name: &'static str,
    since: Version,
    until: Option<Version>,
    doc: &'static str,
) -> Subject {
    Subject {
        name,
        doc,
        since,
        until,
        modelled_since: None,
        possible_since: None,
    }
}

/// Parts of the kernel that the model has for no version.
pub const ABSENT: &[Subject] = &[
    absent(
        "lru_gen_min_ttl",
        v(6, 1),
        None,
        "`min_ttl_ms` of generations of pages: the kernel kills a process rather than take pages that are younger (1332a809d95a).",
    ),
    absent(
        "cgroup_v1",
        OLDEST,
        None,
        "Memory cgroups v1 but for their limits and soft limits, which go with `memory_cgroups`: swappiness of a group, limits of memory and swap together, thresholds, groups that do not count for those above (to 5.10, bef8620cd8e0), and before 3.3 lists of their own beside those of all pages (925b7673cce3).",
    ),
    absent(
        "cgroup_swap_high",
        v(5, 8),
        None,
        "`memory.swap.high` of memory cgroups, beyond which tasks are slowed down.",
    ),
    absent(
        "oom_killer",
        OLDEST,
        None,
        "The kernel kills a process when memory is out. A run of the model ends there and says so.",
    ),
    absent(
        "numa_balancing",
        v(3, 8),
        None,
        "Pages move to the node of the task that uses them (cbee9f88ec1b), and zone_reclaim.",
    ),
    absent(
        "compressed_swap",
        v(3, 11),
        None,
        "zswap, zram and other swap that lies in memory.",
    ),
    absent(
        "strict_overcommit",
        OLDEST,
        None,
        "`overcommit_memory` = 2.",
    ),
];

/// Prefix of the settings of a kernel that change coverage.
pub const PREFIX: &str = "model.";

impl Coverage {
    /// Changes one subject, as `model.NAME=on` or `off` asks.
    ///
    /// # Errors
    ///
    /// When there is no such subject, or the model does not have it in this version.
    pub(super) fn ask(
        &mut self,
        name: &str,
        value: &str,
        version: Version,
    ) -> Result<(), KernelError> {
        let Some(subject) = SWITCHED.iter().find(|subject| subject.name == name) else {
            let known: Vec<&str> = SWITCHED.iter().map(|subject| subject.name).collect();
            return Err(KernelError::Coverage(format!(
                "{PREFIX}{name}: the model switches no part of the kernel of this name; it has {}",
                known.join(", ")
            )));
        };
        let on = match value {
            "on" => true,
            "off" => false,
            _ => {
                return Err(KernelError::Coverage(format!(
                    "{PREFIX}{name}={value}: expected on or off"
                )));
            }
        };
        if on && subject.possible_since.is_none_or(|since| version < since) {
            let since = subject
                .possible_since
                .map_or(String::new(), |since| format!(" from {since} on, not"));
            return Err(KernelError::Coverage(format!(
                "{PREFIX}{name}=on: the model has it{since} in {version}; see `lowmark list coverage`"
            )));
        }
        self.set(name, on);
        Ok(())
    }

    /// What a version has and a run has not.
    pub fn left_out_of(&self, version: Version) -> Vec<&'static str> {
        let missing = SWITCHED
            .iter()
            .filter(|subject| subject.is_in(version) && self.get(subject.name) == Some(false));
        missing.map(|subject| subject.name).collect()
    }

    /// The subject that a mechanism is a part of, if this run leaves the subject out.
    pub(super) fn leaves_out(&self, description: &Description) -> Option<&'static Subject> {
        let subject = SWITCHED
            .iter()
            .find(|subject| Some(subject.name) == description.within)?;
        (self.get(subject.name) == Some(false)).then_some(subject)
    }
}
