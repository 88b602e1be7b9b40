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
use super::{KernelError, Version};

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
    page_tables: OLDEST, Some(v(5, 0)), Some(v(5, 0));
    /// Nodes of the trees in which files, shared memory and swap find their pages take memory (`mm/slub.c`). Without it
    /// they are a part of `occupied`.
    slab_pages: OLDEST, None, Some(v(5, 0));
    /// Reclaim also shrinks caches (`shrink_slab`). The model has those of dentries, inodes and nodes of trees with shadows
    /// alone, in slabs; directories and what file systems cache besides are a part of `occupied`. Without it files leave
    /// nothing behind but pages.
    shrinkers: OLDEST, Some(OLDEST), Some(OLDEST);
    /// Each page that swap writes or reads needs a bio from a slab, and a task that finds none waits for I/O to end
    /// (`bio_alloc`).
    swap_bios: OLDEST, Some(v(5, 0)), Some(v(5, 0));
    /// Requests of virtio disks need memory while they are under way (`virtblk_map_data`, `alloc_indirect_split`).
    virtio_memory: OLDEST, Some(v(5, 0)), Some(v(5, 0));
    /// Pages are moved so that larger blocks become free: in the background (`kcompactd`, 698b1b30642f, 4.6), and by
    /// tasks that need a block and can wait (`compact_zone`, 748446bb6b5a, 2.6.35). The model has it as of 5.1 to 6.6.
    compaction: OLDEST, Some(v(5, 9)), Some(v(5, 1));
    /// Files are read into large folios on file systems that write in them (`page_cache_ra_order`, 793917d997df). The
    /// model has the rules of 6.17, where readahead remembers the order of its folios (c4602f9fa77f) and ends windows
    /// where they end (5a9236b33d51). Without it files are read into single pages.
    read_folios: v(5, 18), Some(v(6, 17)), Some(v(6, 17));
    /// Memory cgroups, v2, with `memory.max` and `memory.high`. A workload with groups is refused without it.
    memory_cgroups: OLDEST, Some(v(6, 0)), Some(v(6, 0));
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
        "lumpy_reclaim",
        OLDEST,
        Some(v(3, 5)),
        "Reclaim for a block of pages takes the neighbours of a page as well (5ad333eb66ff, removed by c53919adc045). The model reclaims for blocks as for single pages.",
    ),
    absent(
        "huge_pages",
        v2_6(38),
        None,
        "Private mappings get transparent huge pages (71e3aac0724f), with defrag modes, splitting and khugepaged. The model maps 4 KiB pages; `thp = true` on a machine raises watermarks only.",
    ),
    absent(
        "lru_gen",
        v(6, 1),
        None,
        "Multi-generational LRU lists (ac35a4902374), where they are switched on. The model has active and inactive lists.",
    ),
    absent(
        "soft_limits",
        OLDEST,
        None,
        "Memory cgroups v1, their hierarchy and soft limits.",
    ),
    absent(
        "memory_protection",
        v(4, 0),
        None,
        "`memory.low` (241994ed8649) and `memory.min` of memory cgroups, `memory.swap.max`, `memory.reclaim`, and groups below groups.",
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

    /// Why a mechanism decides nothing in this run, if it is a part of what the model leaves out.
    pub(super) fn leaves_out(&self, mechanism: &str) -> Option<&'static Subject> {
        let description = super::DESCRIPTIONS.iter().find(|d| d.name == mechanism)?;
        let subject = SWITCHED
            .iter()
            .find(|subject| Some(subject.name) == description.within)?;
        (self.get(subject.name) == Some(false)).then_some(subject)
    }
}
